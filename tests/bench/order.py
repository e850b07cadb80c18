#!/usr/bin/env python3
"""Prints what the order of tasks does for peak memory: 100 randomly wired networks (Watts-Strogatz, Erdos-Renyi and
Barabasi-Albert as of Xie and others, 2019, and uniform ones) whose nodes stand in the file in a random valid order, drawn
node by node from those that are ready; compiled once in that order and once in the order that schedule-for-memory chooses,
with the same passes otherwise. The same seed gives the same network. Needs onnx.

usage: tests/bench/order.py [--regie build/release/bin/regie] [--count 100] [--nodes 32] [--seed 0]
                            [--wiring ws|er|ba|uniform] [--block separable|conv|mixed]"""

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
passes = [{ pass = "schedule-in-order", overwrite = 1 }]
"""

os.environ["REGIE_CACHE"] = "off"  # compiles are measured


def watts_strogatz(draw, count, neighbours=4, rewired=0.75):
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


def erdos_renyi(draw, count, chance=0.2):
    return {(i, j) for i in range(count) for j in range(i + 1, count) if draw() < chance * 32 / count}


def barabasi_albert(draw, count, links=5):
    """A new node is tied to `links` others, to each with a chance that grows with the ties it has."""
    edges, ends, targets = set(), [], list(range(links))
    for i in range(links, count):
        edges.update((t, i) for t in targets)
        for t in targets:
            ends += [t, i]
        targets = []
        while len(targets) < links:
            t = ends[int(draw() * len(ends))]
            if t not in targets:
                targets.append(t)
    return edges


def uniform(draw, count):
    """A node reads one to three of those before it."""
    return {(int(draw() * i), i) for i in range(1, count) for _ in range(1 + int(draw() * 3))}


WIRINGS = {"ws": watts_strogatz, "er": erdos_renyi, "ba": barabasi_albert, "uniform": uniform}


def network(seed, count, wiring, block):
    """A node joins its inputs and computes; what nobody reads is joined and pooled. `block`: "separable" (the sum, Relu,
    a depthwise and a 1x1 convolution), "conv" (the sum, Relu, a 3x3 convolution), or "mixed" (the inputs concatenated,
    a 1x1 convolution to a random number of channels, Relu)."""
    draw = random.Random(seed).random
    weights = numpy.random.RandomState(seed)
    channels, side = 32, 16
    edges = WIRINGS[wiring](draw, count)
    nodes, constants, width = [], [], {"x": channels}

    def emit(op, inputs, output, name, **attributes):
        nodes.append(helper.make_node(op, inputs, [output], name=name, **attributes))
        return output

    def weight(name, *shape):
        w = weights.standard_normal(shape).astype(numpy.float32) / math.sqrt(math.prod(shape[1:]))
        constants.append(numpy_helper.from_array(w, name))
        return name

    def join(sources, name):
        if len(sources) == 1:
            return sources[0]
        if block == "mixed":
            width[name] = sum(width[v] for v in sources)
            return emit("Concat", sources, name, f"concat_{name}", axis=1)
        total = sources[0]
        for k, source in enumerate(sources[1:]):
            total = emit("Add", [total, source], f"{name}_{k}", f"add_{name}_{k}")
        return total

    for i in range(count):
        total = join([f"v{a}" for a in sorted(a for a, b in edges if b == i)] or ["x"], f"s{i}")
        if block == "mixed":
            width[f"v{i}"] = 8 * (1 + int(draw() * 8))
            emit("Conv", [total, weight(f"w{i}", width[f"v{i}"], width[total], 1, 1)], f"c{i}", f"conv{i}")
            emit("Relu", [f"c{i}"], f"v{i}", f"relu{i}")
            continue
        width[f"v{i}"] = channels
        emit("Relu", [total], f"r{i}", f"relu{i}")
        if block == "conv":
            emit("Conv", [f"r{i}", weight(f"w{i}", channels, channels, 3, 3)], f"v{i}", f"conv{i}", pads=[1, 1, 1, 1])
            continue
        emit("Conv", [f"r{i}", weight(f"d{i}", channels, 1, 3, 3)], f"e{i}", f"depthwise{i}", pads=[1, 1, 1, 1],
             group=channels)
        emit("Conv", [f"e{i}", weight(f"w{i}", channels, channels, 1, 1)], f"v{i}", f"pointwise{i}")
    ends = join([f"v{i}" for i in range(count) if not any(a == i for a, _ in edges)], "end")
    emit("GlobalAveragePool", [ends], "y", "pool")

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
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, width.get(ends, channels), 1, 1])], constants)
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
    parser.add_argument("--seed", type=int, default=0, help="of the first network")
    parser.add_argument("--wiring", choices=list(WIRINGS), help="only this one; otherwise all in turn")
    parser.add_argument("--block", choices=["separable", "conv", "mixed"], default="separable")
    arguments = parser.parse_args()
    ratios = {}
    with tempfile.TemporaryDirectory() as folder:
        in_order = os.path.join(folder, "in-order.toml")
        with open(in_order, "w") as file:
            file.write(IN_ORDER)
        for seed in range(arguments.seed, arguments.seed + arguments.count):
            wiring = arguments.wiring or list(WIRINGS)[seed % len(WIRINGS)]
            onnx.save(network(seed, arguments.nodes, wiring, arguments.block), os.path.join(folder, "m.onnx"))
            before = arena(arguments.regie, folder, ["--pipeline", in_order])
            after = arena(arguments.regie, folder, [])
            ratios.setdefault(wiring, []).append(after / before)
            print(f"network {seed:>3} ({wiring:<7}): file order {before:>9}, chosen order {after:>9}, "
                  f"ratio {after / before:.3f}", flush=True)
    every = [r for some in ratios.values() for r in some]
    for name, some in [*ratios.items(), ("all", every)]:
        mean = math.exp(sum(map(math.log, some)) / len(some))
        print(f"{name:<8} {len(some):>4} networks: geometric mean {mean:.3f}, best {min(some):.3f}, worst {max(some):.3f}, "
              f"above 1: {sum(r > 1 for r in some)}")
    return 0 if max(every) <= 1 else 1


if __name__ == "__main__":
    sys.exit(main())
