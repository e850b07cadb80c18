"""Random graphs of element-wise operators, broadcast in all ways, against ONNX Runtime.

check_fuzz.py REGIE FOLDER [--seed N] [--count N]: each graph optimised and not, with one and two threads, some with symbolic
dimensions at another size than they were planned for. Exits 1 with the seed of each graph that differs.
"""
import argparse
import os
import sys

import numpy as np
import onnxruntime as ort
from onnx import helper

from common import model, run

np.seterr(all="ignore")
ort.set_default_logger_severity(4)
UNARY = ["Abs", "Neg", "Relu", "Sigmoid", "Tanh", "Erf", "HardSwish", "LeakyRelu", "Elu", "HardSigmoid", "Floor", "Exp", "Sqrt"]
EXACT_UNARY = ["Abs", "Neg", "Relu", "Floor"]


class Graph:
    def __init__(self, random):
        self.random = random
        self.nodes, self.inputs, self.constants, self.outputs, self.dims = [], {}, {}, [], {}
        self.values = {}  # name -> (kind, shape, is exact)
        rank = int(random.integers(1, 5))
        self.full = tuple(int(random.choice([1, 2, 3, 7, 16, 49, 129, 300])) for _ in range(rank))
        while np.prod(self.full) > 60000:
            self.full = self.full[1:]
        self.symbolic = random.random() < 0.4

    def pick(self, items):
        return items[int(self.random.integers(len(items)))]

    def shape(self):
        """The whole, or something that is broadcast to it."""
        if self.random.random() < 0.6:
            return self.full
        dims = [1 if self.random.random() < 0.5 else d for d in self.full]
        return tuple(dims[int(self.random.integers(0, len(dims) + 1)):])

    def leaf(self, kind):
        shape, name = self.shape(), f"v{len(self.values)}"
        if kind == "bool":
            array = self.random.random(shape) < 0.5
        elif kind == "i64":
            array = self.random.integers(-5, 6, shape)
        else:
            array = self.random.uniform(-2, 2, shape).astype(np.float32)
        array = np.asarray(array)
        if self.random.random() < 0.35 and self.inputs:
            self.constants[name] = array
        else:
            self.inputs[name] = array
            if self.symbolic:
                skip = len(self.full) - len(shape)
                self.dims[name] = [f"D{skip + i}" if d == self.full[skip + i] and d != 1 else d for i, d in enumerate(shape)]
        self.values[name] = (kind, shape, True)
        return name

    def operand(self, kind, exact=False):
        known = [n for n, (k, _, e) in self.values.items() if k == kind and (e or not exact)]
        if known and self.random.random() < 0.75:
            return self.pick(known[-6:])
        return self.leaf(kind)

    def add(self, op, operands, kind, exact, **attributes):
        name = f"v{len(self.values)}"
        shape = np.broadcast_shapes(*(self.values[o][1] for o in operands))
        self.nodes.append(helper.make_node(op, operands, [name], name=f"n_{name}", **attributes))
        self.values[name] = (kind, shape, exact and all(self.values[o][2] for o in operands))
        return name

    def node(self):
        r = self.random.random()
        if r < 0.3:
            op = self.pick(UNARY)
            x = self.operand("f32", exact=op == "Floor")
            if op in ("Exp", "Sqrt"):  # kept small, kept above zero
                x = self.add("Abs" if op == "Sqrt" else "Tanh", [x], "f32", op == "Sqrt")
            self.add(op, [x], "f32", op in EXACT_UNARY)
        elif r < 0.6:
            op = self.pick(["Add", "Sub", "Mul", "Min", "Max", "Div"])
            a, b = self.operand("f32"), self.operand("f32")
            if op == "Div":
                b = self.add("Exp", [self.add("Tanh", [b], "f32", False)], "f32", False)
            if op == "Mul":
                b = self.add("Tanh", [b], "f32", False)
            self.add(op, [a, b], "f32", op in ("Add", "Sub", "Min", "Max"))
        elif r < 0.68:
            self.add(self.pick(["Less", "Greater", "Equal", "LessOrEqual"]),
                     [self.operand("f32", exact=True), self.operand("f32", exact=True)], "bool", True)
        elif r < 0.74:
            self.add(self.pick(["And", "Or", "Xor"]), [self.operand("bool"), self.operand("bool")], "bool", True)
        elif r < 0.84:
            self.add("Where", [self.operand("bool"), self.operand("f32"), self.operand("f32")], "f32", True)
        elif r < 0.9:
            self.add(self.pick(["Add", "Sub", "Mul", "Min", "Max"]), [self.operand("i64"), self.operand("i64")], "i64", True)
            name = list(self.values)[-1]
            if self.nodes[-1].op_type == "Mul":  # and stays small
                self.constants.setdefault("low", np.array(-9, np.int64))
                self.constants.setdefault("high", np.array(9, np.int64))
                self.values.setdefault("low", ("bound", (), True))
                self.values.setdefault("high", ("bound", (), True))
                self.add("Clip", [name, "low", "high"], "i64", True)
        elif r < 0.95:
            self.add("Cast", [self.operand(self.pick(["i64", "bool"]))], "f32", True, to=1)
        else:
            self.constants.setdefault("two", np.array(self.pick([2.0, 3.0]), np.float32))
            self.values.setdefault("two", ("bound", (), True))
            self.add("Pow", [self.add("Tanh", [self.operand("f32")], "f32", False), "two"], "f32", False)

    def make(self):
        for _ in range(int(self.random.integers(2, 40))):
            self.node()
        made = [n.output[0] for n in self.nodes]
        read = {i for n in self.nodes for i in n.input}
        # What nobody reads, and now and then something from the middle.
        self.outputs = [n for n in made if n not in read or self.random.random() < 0.08]
        used = read | set(self.outputs)
        self.inputs = {n: a for n, a in self.inputs.items() if n in used}
        self.constants = {n: a for n, a in self.constants.items() if n in used}


def compare(graph, got, want):
    for name, expected in zip(graph.outputs, want):
        actual = got[name]
        if actual.shape != expected.shape or actual.dtype != expected.dtype:
            return f"{name}: {actual.dtype}{actual.shape}, not {expected.dtype}{expected.shape}"
        if expected.dtype != np.float32:
            if not np.array_equal(actual, expected):
                return f"{name} differs"
            continue
        finite = np.abs(expected[np.isfinite(expected)])
        bound = 1e-5 * (finite.max() if finite.size else 0) + 1e-6
        if not np.allclose(actual, expected, rtol=0, atol=bound, equal_nan=True):
            return f"{name}: off by {np.abs(actual - expected).max()}, {bound} is allowed"
    return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("regie")
    parser.add_argument("folder")
    parser.add_argument("--seed", type=int, default=int(os.environ.get("REGIE_POINTWISE_SEED", "1")))
    parser.add_argument("--count", type=int, default=int(os.environ.get("REGIE_POINTWISE_COUNT", "60")))
    options = parser.parse_args()
    faults, graphs, nodes = 0, 0, 0
    for seed in range(options.seed, options.seed + options.count):
        graph = Graph(np.random.default_rng(seed))
        graph.make()
        if not graph.inputs:
            continue
        proto = model(graph.nodes, graph.inputs, graph.outputs, graph.constants, graph.dims)
        session = ort.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
        want = session.run(graph.outputs, {i.name: graph.inputs[i.name] for i in session.get_inputs()})
        graphs += 1
        nodes += len(graph.nodes)
        for arguments in ([], ["--no-optimise"], ["--threads", "2"]):
            try:
                got = run(options.regie, os.path.join(options.folder, str(seed)), proto, graph.inputs, graph.outputs, arguments)
                fault = compare(graph, got, want)
            except RuntimeError as error:
                fault = str(error)
            if fault:
                faults += 1
                print(f"seed {seed} {arguments} ({len(graph.nodes)} nodes, {graph.full}): {fault}")
    print(f"{graphs} of {options.count} graphs, {nodes} nodes, {faults} faults")
    sys.exit(1 if faults or nodes < 5 * options.count else 0)


main()
