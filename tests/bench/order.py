#!/usr/bin/env python3
"""Prints what the order of tasks does for peak memory: 100 randomly wired networks whose nodes stand in the file in a
uniformly random valid order, compiled once in that order and once in the order that schedule-for-memory chooses. The same
seed gives the same networks. Needs onnx.

usage: tests/bench/order.py [--regie build/release/bin/regie] [--count 100] [--nodes 40]"""

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


def network(seed, count):
    """A node takes one to three earlier results, joins them and has a 1x1 convolution to 4..64 channels; what nobody
    takes is pooled and handed out."""
    draw = random.Random(seed).random

    def below(n):
        return int(draw() * n)

    side, weights = 16, numpy.random.RandomState(seed)
    inputs, channels = [[]], [8]
    for i in range(1, count):
        reach = min(i, 12)
        inputs.append(sorted({i - 1 - below(reach) for _ in range(1 + below(3))}))
        channels.append(4 * (1 + below(16)))
    readers = {i: [j for j in range(count) if i in inputs[j]] for i in range(count)}
    ends = [i for i in range(count) if not readers[i]]
    missing = [len(x) for x in inputs]
    ready, order = [0], []
    while ready:
        order.append(ready.pop(below(len(ready))))
        for j in readers[order[-1]]:
            missing[j] -= 1
            if missing[j] == 0:
                ready.append(j)
    nodes, constants = [], []

    def conv(i, source, width):
        w = weights.standard_normal((channels[i], width, 1, 1)).astype(numpy.float32) / math.sqrt(width)
        constants.append(numpy_helper.from_array(w, f"w{i}"))
        nodes.append(helper.make_node("Conv", [source, f"w{i}"], [f"v{i}"], name=f"conv{i}"))

    for i in order:
        sources = [f"v{j}" for j in inputs[i]]
        if not sources:
            conv(i, "x", 8)
        elif len(sources) == 1:
            conv(i, sources[0], channels[inputs[i][0]])
        else:
            nodes.append(helper.make_node("Concat", sources, [f"c{i}"], name=f"concat{i}", axis=1))
            conv(i, f"c{i}", sum(channels[j] for j in inputs[i]))
    for i in ends:
        nodes.insert(next(k for k, n in enumerate(nodes) if n.output[0] == f"v{i}") + 1,
                     helper.make_node("GlobalAveragePool", [f"v{i}"], [f"p{i}"], name=f"pool{i}"))
    nodes.append(helper.make_node("Concat", [f"p{i}" for i in ends], ["y"], name="end", axis=1))
    graph = helper.make_graph(
        nodes, "wired", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 8, side, side])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, sum(channels[i] for i in ends), 1, 1])], constants)
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
    parser.add_argument("--nodes", type=int, default=40)
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
