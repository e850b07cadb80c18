"""Graphs that show what is not linear: `scale_models.py FOLDER [COUNT...]` writes chain_COUNT.onnx and fan_COUNT.onnx.

chain: MatMul, Add and an activation, one after the other. fan: COUNT/11 branches of eleven nodes from one input; each ends
in an Add to the sum of those before it. fan_outputs: the same, but every branch ends in an output of the graph. Weights are
small, seeded, and different in every node.
"""
import os
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

WIDTH = 8
ACTIVATIONS = ["Relu", "Tanh", "Sigmoid", "LeakyRelu"]


class Builder:
    def __init__(self, name):
        self.name, self.nodes, self.weights = name, [], []
        self.random = np.random.default_rng(1)

    def weight(self, *shape):
        name = f"w{len(self.weights)}"
        values = self.random.standard_normal(shape).astype(np.float32) / np.float32(WIDTH**0.5)
        self.weights.append(numpy_helper.from_array(values, name))
        return name

    def node(self, op, *inputs):
        out = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [out], name=f"n{len(self.nodes)}"))
        return out

    def step(self, value, i):
        """The i-th node of a chain."""
        if i % 3 == 0:
            return self.node("MatMul", value, self.weight(WIDTH, WIDTH))
        if i % 3 == 1:
            return self.node("Add", value, self.weight(WIDTH))
        return self.node(ACTIVATIONS[i // 3 % len(ACTIVATIONS)], value)

    def save(self, path, outputs):
        info = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, [4, WIDTH])
        graph = helper.make_graph(self.nodes, self.name, [info("x")], [info(o) for o in outputs], self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        onnx.save(model, path)


def chain(count, path):
    b = Builder("chain")
    value = "x"
    for i in range(count):
        value = b.step(value, i)
    b.save(path, [value])


def fan(count, path, add_up=True):
    b = Builder("fan")
    total, ends = None, []
    for _ in range(count // 11):
        value = "x"
        for i in range(10):
            value = b.step(value, i)
        if not add_up:
            ends.append(b.step(value, 10))
        else:
            total = b.node("Add", value, total if total else "x")
    b.save(path, [total] if add_up else ends)


def make(folder, counts):
    os.makedirs(folder, exist_ok=True)
    paths = {}
    for count in counts:
        for name, write in (("chain", chain), ("fan", fan), ("fan_outputs", lambda n, p: fan(n, p, False))):
            path = paths[name, count] = os.path.join(folder, f"{name}_{count}.onnx")
            if not os.path.exists(path):
                write(count, path + ".part")
                os.rename(path + ".part", path)
    return paths


if __name__ == "__main__":
    make(sys.argv[1], [int(n) for n in sys.argv[2:]] or [1000, 10000, 50000])
