#!/usr/bin/env python3
"""Prints what the order of tasks does for peak memory: 100 randomly wired networks whose nodes stand in the file in a
uniformly random valid order, compiled once in that order and once in the order that schedule-for-memory chooses. The same
seed gives the same networks. Needs onnx.

usage: tests/bench/order.py [--regie build/release/bin/regie] [--count 100] [--nodes 32]"""

import argparse
import math
import os
import random
import re
import subprocess
import sys
import tempfile

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

HERE = os.path.dirname(os.path.abspath(__file__))
IN_ORDER = """schema = 1
name = "in-order"
extends = "default"
[[remove]]
from = "schedule"
passes = ["schedule-for-memory"]
[[insert]]
into = "schedule"
after = "alias-in-place"
passes = ["schedule-in-order"]
"""

os.environ["REGIE_CACHE"] = "off"  # compiles are measured


def wiring(draw, count, neighbours=4, rewired=0.75):
    """Edges of a small-world graph (Watts and Strogatz), from the lower to the higher node, as randomly wired networks
    use them (Xie and others, 2019)."""
    edges = set()
    for i in range(count):
        for d in range(1, neighbours // 2 + 1):
            j = (i + d) % count
            if draw() < rewired:
                j = int(draw() * count)
                while j == i or (min(i, j), max(i, j)) in edges:
                    j = int(draw() * count)
            edges.add((min(i, j), max(i, j)))
    return edges


def network(seed, count):
    """A node adds up its inputs, then Relu and a 3x3 convolution; what nobody reads is added up and pooled."""
    draw = random.Random(seed).random
    weights = numpy.random.RandomState(seed)
    channels, side = 16, 16
    edges = wiring(draw, count)
    nodes, constants = [], []

    def add_up(sources, name):
        for k, source in enumerate(sources[1:]):
            nodes.append(helper.make_node("Add", [sources[0] if k == 0 else f"{name}_{k - 1}", source],
                                          [f"{name}_{k}"], name=f"add_{name}_{k}"))
        return sources[0] if len(sources) == 1 else f"{name}_{len(sources) - 2}"

    for i in range(count):
        total = add_up([f"v{a}" for a in sorted(a for a, b in edges if b == i)] or ["x"], f"s{i}")
        nodes.append(helper.make_node("Relu", [total], [f"r{i}"], name=f"relu{i}"))
        w = weights.standard_normal((channels, channels, 3, 3)).astype(numpy.float32) / 12
        constants.append(numpy_helper.from_array(w, f"w{i}"))
        nodes.append(helper.make_node("Conv", [f"r{i}", f"w{i}"], [f"v{i}"], name=f"conv{i}", pads=[1, 1, 1, 1]))
    ends = [f"v{i}" for i in range(count) if not any(a == i for a, _ in edges)]
    nodes.append(helper.make_node("GlobalAveragePool", [add_up(ends, "end")], ["y"], name="pool"))

    maker = {node.output[0]: k for k, node in enumerate(nodes)}
    missing = [{maker[v] for v in node.input if v in maker} for node in nodes]
    ready, order = [k for k, m in enumerate(missing) if not m], []
    while ready:
        done = ready.pop(int(draw() * len(ready)))
        order.append(done)
        for k, m in enumerate(missing):
            if done in m:
                m.remove(done)
                if not m:
                    ready.append(k)
    graph = helper.make_graph(
        [nodes[k] for k in order], "wired",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, channels, side, side])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, channels, 1, 1])], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    return model


def arena(regie, folder, pipeline):
    model = os.path.join(folder, "m.rgm")
    subprocess.run([regie, "compile", os.path.join(folder, "m.onnx"), "-o", model, *pipeline], check=True,
                   stdout=subprocess.DEVNULL)
    text = subprocess.run([regie, "inspect", model], check=True, capture_output=True, text=True).stdout
    return sum(int(n) for n in re.findall(r" of \S+: (\d+) bytes, lower bound", text))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--regie", default=os.path.join(HERE, "..", "..", "build", "release", "bin", "regie"))
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--nodes", type=int, default=32)
    arguments = parser.parse_args()
    ratios = []
    with tempfile.TemporaryDirectory() as folder:
        in_order = os.path.join(folder, "in-order.toml")
        with open(in_order, "w") as file:
            file.write(IN_ORDER)
        for seed in range(arguments.count):
            onnx.save(network(seed, arguments.nodes), os.path.join(folder, "m.onnx"))
            before = arena(arguments.regie, folder, ["--pipeline", in_order])
            after = arena(arguments.regie, folder, [])
            ratios.append(after / before)
            print(f"network {seed:>3}: file order {before:>9}, chosen order {after:>9}, ratio {ratios[-1]:.3f}", flush=True)
    mean = math.exp(sum(math.log(r) for r in ratios) / len(ratios))
    print(f"geometric mean {mean:.3f}, worst {max(ratios):.3f}, above 1: {sum(r > 1 for r in ratios)}")
    return 0 if max(ratios) <= 1 else 1


if __name__ == "__main__":
    sys.exit(main())
