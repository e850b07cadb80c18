"""Models at the limits: tensors that must not be made at compile time, chains of 100,000 nodes and regions as deep as may be on a
stack of 1 MiB, operators of 20,000 operands.

    check_limits.py REGIE WORK [PART...] [--verbose]

Commands run with `ulimit -s 1024`, and their processor time (not the clock) is what is held to a limit, as the machine may be
shared. Numbers come from NumPy. Exits 1 with a line a fault.
"""
import argparse
import pathlib
import resource
import shutil
import subprocess
import sys
import traceback

import numpy as np
import onnx
import onnx.parser
from onnx import TensorProto, helper, numpy_helper

DEEPEST = 100  # regions in each other that the ONNX reader takes (docs/frontend.md)


class Failed(Exception):
    pass


def need(condition, words):
    if not condition:
        raise Failed(words)


class Shell:
    def __init__(self, regie, work, verbose):
        self.regie, self.work, self.verbose = regie, work, verbose

    def run(self, *arguments, code=0):
        """Standard output and error, seconds of processor time, megabytes at most."""
        words = [str(self.regie), *map(str, arguments)]
        done = subprocess.run([sys.executable, "-c", LIMITED, *words], capture_output=True, text=True, timeout=300)
        *lines, told = done.stderr.splitlines()
        peak, seconds = (float(word) for word in told.split())
        text = "\n".join(lines)
        if self.verbose:
            print(f"  {seconds:6.2f} s {peak:7.0f} MB: {' '.join(map(str, arguments))[:150]}", flush=True)
        need(done.returncode == code, f"exit code {done.returncode}, not {code}: {' '.join(map(str, arguments))}: {text[-800:]}")
        return done.stdout, text, seconds, peak

    def save(self, name, model):
        path = self.work / f"{name}.onnx"
        onnx.save(model, path)
        return path

    def results(self, model, inputs, outputs, *options):
        given = []
        for i, (name, array) in enumerate(inputs.items()):
            np.save(self.work / f"in{i}.npy", array)
            given += ["--input", f"{name}={self.work / f'in{i}.npy'}"]
        out = self.work / "out"
        shutil.rmtree(out, ignore_errors=True)
        told = self.run("run", model, *given, "--output-dir", out, *options)
        return [np.load(out / f"{o}.npy") for o in outputs], told


# As `ulimit -s 1024`; the last line on standard error is of megabytes and seconds.
LIMITED = """
import os, resource, subprocess, sys
limit = (1 << 20, resource.getrlimit(resource.RLIMIT_STACK)[1])
child = subprocess.Popen(sys.argv[1:], preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_STACK, limit))
_, status, usage = os.wait4(child.pid, 0)
print("\\n" + str(usage.ru_maxrss / 1024), usage.ru_utime + usage.ru_stime, file=sys.stderr)
code = os.waitstatus_to_exitcode(status)
sys.exit(code if code >= 0 else 128 - code)
"""

HUGE = {  # what makes 8 GB and more of nothing much
    "constant_of_shape": ("s = Constant<value = int64[4] {2,1024,1024,1024}>()\n v = ConstantOfShape<value = float[1] {1.5}>(s)", "float"),
    "expand": ("s = Constant<value = int64[3] {2,32768,32768}>()\n o = Constant<value = float[1] {1.5}>()\n v = Expand(o, s)", "float"),
    "tile": ("s = Constant<value = int64[2] {2,536870912}>()\n o = Constant<value = float[1,2] {1.5, 1.5}>()\n v = Tile(o, s)", "float"),
    "range": ("a = Constant<value = int64 {0}>()\n b = Constant<value = int64 {1073741824}>()\n c = Constant<value = int64 {1}>()\n"
              " v = Range(a, b, c)", "int64"),
    "one_hot": ("i = Constant<value = int64[65536] {ZEROS}>()\n d = Constant<value = int64 {32768}>()\n"
                " o = Constant<value = float[2] {0.0, 1.5}>()\n v = OneHot(i, d, o)", "float"),
    "outer": ("s = Constant<value = int64[2] {16384,1}>()\n t = Constant<value = int64[2] {1,131072}>()\n"
              " p = ConstantOfShape<value = float[1] {1.5}>(s)\n q = ConstantOfShape<value = float[1] {1.0}>(t)\n v = Mul(p, q)", "float"),
    "gather": ("s = Constant<value = int64[1] {1048576}>()\n z = ConstantOfShape<value = int64[1] {0}>(s)\n"
               " o = Constant<value = float[1,2048] {ROW}>()\n v = Gather<axis=0>(o, z)", "float"),
    "pad": ("o = Constant<value = float[1] {1.5}>()\n p = Constant<value = int64[2] {0,2147483647}>()\n v = Pad(o, p)", "float"),
    "of_two": ("s = Constant<value = int64[1] {1073741824}>()\n a = ConstantOfShape<value = float[1] {1.0}>(s)\n"
               " b = ConstantOfShape<value = float[1] {2.0}>(s)\n w = Concat<axis=0>(a, b)\n v = Neg(w)", "float"),
}


def budgets(shell):
    for name, (body, kind) in HUGE.items():
        body = body.replace("ZEROS", ",".join(["0"] * 65536)).replace("ROW", ",".join(["1.5"] * 2048))
        model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]>\ng ({kind} x) => ({kind} y) {{\n {body}\n'
                                        " m = ReduceMax<keepdims = 0>(v)\n y = Add(m, x)\n}")
        path = shell.save(name, model)
        for options in ((), ("--no-optimise",)):
            out = shell.work / f"{name}.rgm"
            _, _, seconds, peak = shell.run("compile", path, "-o", out, *options)
            need(out.stat().st_size < 4 << 20, f"{name}: the compiled model has {out.stat().st_size} bytes")
            need(peak < 400, f"{name}: the compile took {peak:.0f} MB")
            need(seconds < 3, f"{name}: the compile took {seconds:.1f} s")


def chain_of(kind, count):
    """Nodes and weights of a chain from x to y, each [4], and what it does to x."""
    nodes, weights = [], []
    values = ["x", *(f"v{i}" for i in range(count - 1)), "y"]
    if kind == "relu_neg":
        ops, result = ["Neg", "Relu"], lambda x: 0 * x  # the second Relu leaves nothing
    elif kind == "add":
        weights.append(numpy_helper.from_array(np.float32([0.5, 1, -1, 2]), "k"))
        ops, result = None, lambda x: x + np.float32(count) * np.float32([0.5, 1, -1, 2])
    elif kind == "identity":
        ops, result = ["Identity"], lambda x: x
    elif kind == "reshape":
        weights += [numpy_helper.from_array(np.int64(s), n) for s, n in (([2, 2], "s0"), ([4], "s1"))]
        ops, result = None, lambda x: x
    elif kind == "transpose":
        ops, result = ["Transpose"], lambda x: x
    elif kind == "matmul":
        weights.append(numpy_helper.from_array(np.eye(4, dtype=np.float32)[[1, 2, 3, 0]], "w"))
        ops, result = None, lambda x: np.roll(x, count % 4)
    elif kind == "softsign":
        ops, result = ["Softsign"], lambda x: x / (1 + count * np.abs(x.astype(np.float64)))
    for i in range(count):
        inputs = [values[i]]
        if kind == "add":
            op, inputs = "Add", [values[i], "k"]
        elif kind == "reshape":
            op, inputs = "Reshape", [values[i], f"s{i % 2}"]
        elif kind == "matmul":
            op, inputs = "MatMul", [values[i], "w"]
        else:
            op = ops[i % len(ops)]
        nodes.append(helper.make_node(op, inputs, [values[i + 1]]))
    return nodes, weights, result


def model_of(nodes, weights, x=("x", [4]), y=("y", [4]), kind=TensorProto.FLOAT):
    info = lambda port: helper.make_tensor_value_info(port[0], kind, port[1])
    graph = helper.make_graph(nodes, "g", [info(x)], [info(y)], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def chains(shell):
    x = np.float32([0.25, -1, 2, 0])
    for kind in ("relu_neg", "add", "identity", "reshape", "transpose", "matmul", "softsign"):
        nodes, weights, result = chain_of(kind, 100000)
        path = shell.save(f"chain_{kind}", model_of(nodes, weights))
        for options in ((), ("--no-optimise",)):
            (y,), (_, _, seconds, _) = shell.results(path, {"x": x}, ["y"], *options)
            need(np.allclose(y, result(x), rtol=1e-3, atol=1e-6), f"chain of {kind}: {y}, must be {result(x)}")
            need(seconds < 20, f"chain of {kind}: {seconds:.1f} s")
        out = shell.work / "chain.rgm"
        shell.run("compile", path, "-o", out, "--no-optimise")
        shell.run("run", out, "--random", "1")
    shell.run("inspect", out)
    shell.run("explain", path)


def symbols(shell):
    """Chains that make expressions of dimensions, sums and least values in each other."""
    for kind, count in (("grow", 3000), ("halve", 3000), ("slice", 300)):
        nodes, weights, last = [], [], "x"
        for i in range(count):
            to = f"v{i}" if i < count - 1 else "y"
            if kind == "grow":  # N + 1, N + 2, ...
                nodes.append(helper.make_node("Concat", [last, "one"], [to], axis=0))
            elif kind == "halve":  # half of it, and again what is cut off
                if i % 2 == 0:
                    nodes.append(helper.make_node("MaxPool", [last], [to], kernel_shape=[2], strides=[2], pads=[0, 1]))
                else:
                    nodes.append(helper.make_node("Concat", [last, last], [to], axis=2))
            else:  # the least of the size and a number, less one
                nodes.append(helper.make_node("Slice", [last, "first" if i % 2 else "none", "end"], [to]))
            last = to
        if kind == "grow":
            weights = [numpy_helper.from_array(np.zeros(1, np.float32), "one")]
        if kind == "slice":
            weights = [numpy_helper.from_array(np.int64([v]), n) for n, v in (("first", 1), ("none", 0), ("end", 1 << 40))]
        shape = [1, 1, "N"] if kind == "halve" else ["N"]
        path = shell.save(f"symbols_{kind}", model_of(nodes, weights, ("x", shape), ("y", [*shape[:-1], "M"])))
        x = np.arange(2000 if kind == "slice" else 9, dtype=np.float32)
        expected = np.concatenate([x, np.zeros(count, np.float32)]) if kind == "grow" else x[count // 2:]
        if kind == "halve":
            expected = x = x.reshape(1, 1, -1)
            for i in range(count):
                if i % 2 == 0:
                    padded = np.pad(expected, ((0, 0), (0, 0), (0, 1)), constant_values=-np.inf)
                    expected = padded[..., :padded.shape[-1] // 2 * 2].reshape(1, 1, -1, 2).max(-1)
                else:
                    expected = np.concatenate([expected, expected], 2)
        for options in ((), ("--no-optimise",)):
            (y,), (_, _, seconds, _) = shell.results(path, {"x": x}, ["y"], *options)
            need(y.shape == expected.shape and np.array_equal(y, expected), f"symbols, {kind}: {y.shape}, must be {expected.shape}")
            need(seconds < 20, f"symbols, {kind}: {seconds:.1f} s")


def field(number, payload):
    """One field of bytes, as protobuf writes it."""
    size, head = len(payload), bytearray()
    for value in (number << 3 | 2, size):
        while value > 127:
            head.append(value & 127 | 128)
            value >>= 7
        head.append(value)
    return bytes(head) + payload


def with_graph(node, name, graph):
    """The bytes of a node that has this graph, given as bytes, for an attribute: protobuf for Python takes no message so deep."""
    return node.SerializeToString() + field(5, field(1, name.encode()) + field(6, graph) + b"\xa0\x01\x05")


def nested(kind, depth):
    """The bytes of a model of `depth` regions in each other."""

    def value(name, elem=TensorProto.FLOAT, shape=(2,)):
        return helper.make_tensor_value_info(name, elem, shape)

    def graph(nodes, name, inputs, outputs, weights=()):
        return helper.make_graph([], name, inputs, outputs, weights).SerializeToString() + b"".join(field(1, n) for n in nodes)

    def plain(*words):
        return helper.make_node(*words).SerializeToString()

    deepest, other = plain("Neg", ["x"], ["r0"]), graph([plain("Abs", ["x"], ["e0"])], "e0", [], [value("e0")])
    for i in range(1, depth + 1):
        if kind == "If":
            inner = graph([deepest], f"b{i}", [], [value(f"r{i - 1}")])
            deepest = with_graph(helper.make_node("If", ["c"], [f"r{i}"]), "then_branch", inner)
            deepest += field(5, field(1, b"else_branch") + field(6, other) + b"\xa0\x01\x05")
        else:
            body = graph([plain("Identity", [f"g{i}"], [f"h{i}"]), deepest, plain("Add", [f"a{i}", f"r{i - 1}"], [f"s{i}"])], f"b{i}",
                         [value(f"i{i}", TensorProto.INT64, ()), value(f"g{i}", TensorProto.BOOL, ()), value(f"a{i}")],
                         [value(f"h{i}", TensorProto.BOOL, ()), value(f"s{i}")])
            deepest = with_graph(helper.make_node("Loop", ["n", "", "x"], [f"r{i}"]), "body", body)
    whole = graph([deepest, plain("Identity", [f"r{depth}"], ["y"])], "g", [value("x"), value("c", TensorProto.BOOL, ())], [value("y")],
                  [numpy_helper.from_array(np.int64(1), "n")])
    model = helper.make_model(helper.make_graph([], "g", [], []), opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    model.ClearField("graph")
    return model.SerializeToString() + field(7, whole)


def regions(shell):
    x = np.float32([3, -4])
    for kind in ("If", "Loop"):
        path = shell.work / f"nested_{kind}.onnx"
        path.write_bytes(nested(kind, DEEPEST))
        for condition in (True, False):
            # Each of the loops runs once and adds x to what the one inside of it gave.
            expected = (-x if condition else np.abs(x)) if kind == "If" else (DEEPEST - 1) * x
            for options in ((), ("--no-optimise",)):
                (y,), _ = shell.results(path, {"x": x, "c": np.array(condition)}, ["y"], *options)
                need(np.allclose(y, expected), f"{DEEPEST} of {kind} in each other: {y}, must be {expected}")
        out = shell.work / "nested.rgm"
        shell.run("compile", path, "-o", out)
        (y,), _ = shell.results(out, {"x": x, "c": np.array(True)}, ["y"])
        need(np.allclose(y, -x if kind == "If" else (DEEPEST - 1) * x), f"{kind}, offline: {y}")
        shell.run("inspect", out)
        deeper = shell.work / "deeper.onnx"
        deeper.write_bytes(nested(kind, DEEPEST + 1))
        _, words, _, _ = shell.run("compile", deeper, "-o", shell.work / "deeper.rgm", code=2)
        need(f"deeper than {DEEPEST}" in words, f"a deeper {kind}: {words}")
        need(not (shell.work / "deeper.rgm").exists(), "half a model was written")


def wide(kind, count):
    """count operands or results of one node, and what NumPy makes of x[count, 3]."""
    rows = [f"r{i}" for i in range(count)]
    nodes, weights = [], []
    if kind == "split":
        nodes = [helper.make_node("Split", ["x"], rows, axis=0), *(helper.make_node("Neg", [r], [f"n{i}"]) for i, r in enumerate(rows)),
                 helper.make_node("Concat", [f"n{i}" for i in range(count)], ["y"], axis=0)]
        return nodes, weights, lambda x: -x
    weights = [numpy_helper.from_array(np.int64([i]), f"i{i}") for i in range(count + 1)]
    nodes = [helper.make_node("Slice", ["x", f"i{i}", f"i{i + 1}", "i0"], [r]) for i, r in enumerate(rows)]
    if kind == "views":
        return [*nodes, helper.make_node("Concat", rows[::-1], ["y"], axis=0)], weights, lambda x: x[::-1]
    nodes += [helper.make_node("Tanh", [r], [f"t{i}"]) for i, r in enumerate(rows)]
    made = [f"t{i}" for i in range(count)]
    if kind == "concat":
        return [*nodes, helper.make_node("Concat", made, ["y"], axis=0)], weights, np.tanh
    if kind == "columns":  # not one behind the other in memory
        return [*nodes, helper.make_node("Concat", made, ["y"], axis=1)], weights, lambda x: np.tanh(x).reshape(1, -1)
    return [*nodes, helper.make_node(kind, made, ["y"])], weights, {
        "Sum": lambda x: np.tanh(x).sum(0, keepdims=True), "Max": lambda x: np.tanh(x).max(0, keepdims=True)}[kind]


def operands(shell):
    for kind in ("concat", "columns", "views", "split", "Sum", "Max"):
        taken, most = [], 5000 if kind in ("Sum", "Max") else 20000  # chains of that many additions
        for count in (most // 4, most):
            nodes, weights, result = wide(kind, count)
            model = model_of(nodes, weights, ("x", [count, 3]), ("y", None))
            path = shell.save(f"wide_{kind}", model)
            x = np.random.default_rng(count).standard_normal((count, 3)).astype(np.float32)
            _, _, seconds, _ = shell.run("compile", path, "-o", shell.work / "wide.rgm")
            taken.append(seconds)
            for source in (path, shell.work / "wide.rgm") if count == most else (path,):
                (y,), _ = shell.results(source, {"x": x}, ["y"])
                need(np.allclose(y, result(x), rtol=1e-3, atol=1e-3), f"{kind} of {count}: {y.shape}")
        # Near linear; how long it may take in all is for benchmarks to say.
        need(taken[1] < 4 * 2.5 * taken[0],
             f"{kind}: the compile took {taken[0]:.2f} s of {most // 4} operands and {taken[1]:.2f} s of {most}")
    # Inputs of the graph themselves.
    names = [f"x{i}" for i in range(20000)]
    info = lambda name, shape: helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
    graph = helper.make_graph([helper.make_node("Concat", names, ["y"], axis=0)], "g", [info(n, [1]) for n in names], [info("y", [20000])])
    path = shell.save("inputs", helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8))
    _, _, seconds, _ = shell.run("compile", path, "-o", shell.work / "wide.rgm")
    need(seconds < 10, f"Concat of 20,000 inputs: the compile took {seconds:.1f} s")
    shell.run("run", shell.work / "wide.rgm", "--random", "1")


PARTS = {"budgets": budgets, "chains": chains, "symbols": symbols, "regions": regions, "operands": operands}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("regie", type=pathlib.Path)
    parser.add_argument("work", type=pathlib.Path)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], default=[])
    parser.add_argument("--verbose", action="store_true")
    args = parser.parse_args()
    shutil.rmtree(args.work, ignore_errors=True)
    args.work.mkdir(parents=True)
    failed = 0
    for name in args.parts or PARTS:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        try:
            PARTS[name](Shell(args.regie.resolve(), args.work, args.verbose))
            words = "all right"
        except Failed as failure:
            failed += 1
            words = str(failure)
        except Exception:
            failed += 1
            words = traceback.format_exc()
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        print(f"{name}: {words}, {after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime:.1f} s", flush=True)
    shutil.rmtree(args.work, ignore_errors=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
