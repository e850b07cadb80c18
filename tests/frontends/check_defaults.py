"""Inputs that have an initializer, by Regie and by ONNX Runtime: check_defaults.py REGIE FOLDER.

Since IR version 4 a run may give such an input or leave it out; before, it is a constant and no input. Each model is run with
nothing given, with each of its defaults replaced, and with all of them; optimised and not, from the file and from the offline
model. `--fold-defaults` makes them constants."""
import os
import shutil
import subprocess
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

random = np.random.default_rng(11)


def floats(*shape):
    return random.standard_normal(shape).astype(np.float32)


def ints(*values):
    return np.array(values, np.int64)


X = floats(2, 3, 8, 8)
# name: nodes, shape of x, defaults as {name: (declared shape, its value, another one)}
CASES = {
    "conv": (["Conv: x w b -> c", "Relu: c -> y"], [None, 3, 8, 8],
             {"w": ([4, 3, 3, 3], floats(4, 3, 3, 3), floats(4, 3, 3, 3)), "b": ([4], floats(4), floats(4))}),
    "norm": (["BatchNormalization: x s b m v -> y"], [2, 3, 8, 8],
             {n: ([3], np.abs(floats(3)) + 0.5, np.abs(floats(3)) + 0.5) for n in "sbmv"}),
    "conv-norm": (["Conv: x w -> c", "BatchNormalization: c s s s s -> y"], [2, 3, 8, 8],
                  {"w": ([3, 3, 1, 1], floats(3, 3, 1, 1), floats(3, 3, 1, 1)), "s": ([3], np.float32([1, 2, 3]), np.float32([4, 5, 6]))}),
    "matmul": (["MatMul: x w -> m", "Add: m b -> y"], ["N", 3, 8, 8], {"w": ([8, "M"], floats(8, 4), floats(8, 4)), "b": (["M"], floats(4), floats(4))}),
    "reshape": (["Reshape: x s -> y"], [2, 3, 8, 8], {"s": ([2], ints(6, -1), ints(-1, 16))}),
    "unsqueeze": (["Unsqueeze: x a -> y"], [2, 3, 8, 8], {"a": ([1], ints(0), ints(2))}),
    "squeeze": (["Squeeze: x a -> y"], [2, 1, 1, 8], {"a": ([1], ints(1), ints(2))}),
    "reduce": (["ReduceSum: x a -> y"], [2, 3, 8, 8], {"a": ([1], ints(1), ints(3))}),
    "slice": (["Slice: x s e a t -> y"], [2, 3, 8, 8],
              {"s": ([2], ints(0, 1), ints(1, 2)), "e": ([2], ints(3, 7), ints(2, 8)), "a": ([2], ints(1, 2), ints(1, 3)), "t": ([2], ints(1, 1), ints(1, 2))}),
    "pad": (["Pad: x p v -> y"], [2, 3, 8, 8], {"p": ([8], ints(0, 0, 1, 1, 0, 0, 1, 1), ints(0, 1, 0, 0, 0, 0, 2, 0)), "v": ([], np.array(1, np.float32), np.array(7, np.float32))}),
    "expand": (["Expand: x s -> y"], [1, 3, 8, 8], {"s": ([4], ints(2, 3, 8, 8), ints(4, 1, 1, 1))}),
    "tile": (["Tile: x r -> y"], [2, 3, 8, 8], {"r": ([4], ints(1, 2, 1, 1), ints(1, 1, 1, 3))}),
    "clip": (["Clip: x l h -> y"], [2, 3, 8, 8], {"l": ([], np.array(-0.5, np.float32), np.array(-0.1, np.float32)), "h": ([], np.array(0.5, np.float32), np.array(0.1, np.float32))}),
    "gather": (["Gather: x i -> y"], [2, 3, 8, 8], {"i": (["K"], ints(1, 0), ints(0, 0, 1))}),
    "topk": (["TopK: x k -> y i"], [2, 3, 8, 8], {"k": ([1], ints(2), ints(5))}),
    "resize": (["Resize: x e s -> y"], [2, 3, 8, 8], {"e": ([0], floats(0), floats(0)), "s": ([4], np.float32([1, 1, 2, 2]), np.float32([1, 1, 1, 3]))}),
    "if": (["If: c -> y"], [2, 3, 8, 8], {"c": ([], np.array(True), np.array(False))}),
    "unused": (["Neg: x -> y"], [2, 3, 8, 8], {"w": ([2], floats(2), floats(2))}),
    "output": (["Identity: w -> y"], [2, 3, 8, 8], {"w": ([2], floats(2), floats(2))}),
    "wide": (["Mul: x w -> y"], [2, 3, 8, 8], {"w": ([3, 8, 8], floats(3, 8, 8), floats(3, 8, 8))}),
    "double": (["Cast: x -> d", "Mul: d w -> y"], [2, 3, 8, 8], {"w": ([1], np.array([1 / 3]), np.array([2 / 3]))}),
}


def make_model(case, ir_version):
    lines, shape, defaults = CASES[case]
    nodes = []
    for line in lines:
        op, rest = line.split(": ")
        inputs, outputs = rest.split(" -> ")
        attributes = {"Cast": {"to": TensorProto.DOUBLE}, "ReduceSum": {"keepdims": 0}}.get(op, {})
        if op == "If":
            for branch, inner in (("then_branch", "Neg"), ("else_branch", "Abs")):
                attributes[branch] = helper.make_graph([helper.make_node(inner, ["x"], [branch])], branch, [],
                                                       [helper.make_tensor_value_info(branch, TensorProto.FLOAT, None)])
        nodes.append(helper.make_node(op, inputs.split(), outputs.split(), **attributes))
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)]
    inputs += [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(v.dtype), s) for n, (s, v, _) in defaults.items()]
    element = TensorProto.DOUBLE if case == "double" else TensorProto.FLOAT
    graph = helper.make_graph(nodes, "g", inputs, [helper.make_tensor_value_info("y", element, None)],
                              [numpy_helper.from_array(v, n) for n, (_, v, _) in defaults.items()])
    return helper.make_model(graph, ir_version=ir_version, opset_imports=[helper.make_opsetid("", 15)])


class Wrong(Exception):
    pass


def command(*words):
    return subprocess.run([str(w) for w in words], capture_output=True, text=True, timeout=120)


def run(regie, where, model, given, *options):
    """y, or the message of the refusal."""
    words = [regie, "run", model, "--output-dir", where, *options]
    for name, value in given.items():
        np.save(f"{where}/{name}.npy", value)
        words += ["--input", f"{name}={where}/{name}.npy"]
    if os.path.exists(f"{where}/y.npy"):
        os.remove(f"{where}/y.npy")
    done = command(*words)
    if done.returncode not in (0, 2):
        raise Wrong(f"ended with {done.returncode}: {done.stderr}")
    return done.stderr if done.returncode else np.load(f"{where}/y.npy")


def check(case, regie, where):
    shape, defaults = CASES[case][1:]
    onnx.save(make_model(case, 8), f"{where}/model.onnx")
    onnx.save(make_model(case, 3), f"{where}/old.onnx")
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(f"{where}/model.onnx", options)
    x = {"x": floats(*(d if isinstance(d, int) else 2 for d in shape))}
    others = {n: other for n, (_, _, other) in defaults.items()}
    runs = [{}, others] + [{n: v} for n, v in others.items() if len(others) > 1]
    for options in [], ["--no-optimise"]:
        done = command(regie, "compile", f"{where}/model.onnx", "-o", f"{where}/model.rgm", *options)
        if done.returncode:
            raise Wrong(done.stderr)
        for model, more in ("model.onnx", options), ("model.rgm", []):
            for given in runs:
                try:
                    want = session.run(["y"], {**x, **given})[0]
                except Exception:  # ONNX Runtime has no one type for all of its own
                    if given in ({}, others):
                        raise
                    continue  # this one alone does not go together with the other defaults
                got = run(regie, where, f"{where}/{model}", {**x, **given}, *more)
                if isinstance(got, str):
                    raise Wrong(f"{model} {more} with {sorted(given)}: {got}")
                if got.dtype != want.dtype or got.shape != want.shape or not np.allclose(got, want, rtol=1e-5, atol=1e-5):
                    raise Wrong(f"{model} {more} with {sorted(given)}: {got.dtype}{got.shape}, must be {want.dtype}{want.shape}: {got} {want}")
    name, value = next(iter(others.items()))
    want = session.run(["y"], x)[0]
    for model, more in ("old.onnx", []), ("model.onnx", ["--fold-defaults"]):
        got = run(regie, where, f"{where}/{model}", x, *more)
        if isinstance(got, str) or got.shape != want.shape or not np.allclose(got, want, rtol=1e-5, atol=1e-5):
            raise Wrong(f"{model} {more}: {got}, must be {want}")
        got = run(regie, where, f"{where}/{model}", {**x, name: value}, *more)
        if not isinstance(got, str) or name not in got:
            raise Wrong(f"{model} {more}: '{name}' is a constant, but a run may give it")


def check_hint(regie, where):
    """What cannot be without the value of a default says how to have it."""
    os.makedirs(where)
    CASES["rank"] = (["Reshape: x s -> y"], [2, 3, 8, 8], {"s": (["R"], ints(6, -1), ints(2, 3, 64))})
    onnx.save(make_model("rank", 8), f"{where}/model.onnx")
    refused = command(regie, "compile", f"{where}/model.onnx", "-o", f"{where}/model.rgm")
    if refused.returncode != 2 or "'s'" not in refused.stderr or "--fold-defaults" not in refused.stderr:
        raise Wrong(f"ended with {refused.returncode}: {refused.stderr}")
    got = run(regie, where, f"{where}/model.onnx", {"x": X}, "--fold-defaults")
    if isinstance(got, str) or not np.array_equal(got, X.reshape(6, -1)):
        raise Wrong(f"with --fold-defaults: {got}")


def main():
    regie, folder = sys.argv[1:3]
    shutil.rmtree(folder, ignore_errors=True)
    wrong = 0
    for case in sys.argv[3:] or CASES:
        os.makedirs(f"{folder}/{case}")
        try:
            check(case, regie, f"{folder}/{case}")
        except Wrong as error:
            print(f"{case}: {error}")
            wrong += 1
    print(f"{len(sys.argv[3:] or CASES)} models, {wrong} wrong")
    try:
        check_hint(regie, f"{folder}/hint")
    except Wrong as error:
        print(f"hint: {error}")
        wrong += 1
    sys.exit(wrong != 0)


main()
