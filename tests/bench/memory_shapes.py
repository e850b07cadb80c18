#!/usr/bin/env python3
"""Prints, for five models with symbolic dimensions (batch; batch, height and width; batch and width; batch and steps), what their
one plan takes at 1,000 sampled shapes beside a plan made for each shape alone, and how long laying out takes. With --static K the
model is also compiled for K of such shapes, each fixed, and the greatest and mean ratio of the two arenas is printed: there order,
sharing and kernels are those of that shape as well. Needs onnx and the models of build/models.

usage: tests/bench/memory_shapes.py [--build build/release] [--count 1000] [--seed 1] [--static K] [NAME ...]"""

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
ROOT = os.path.join(HERE, "..", "..")
os.environ["REGIE_CACHE"] = "off"


def batched(path, out, symbol="N"):
    """The model with its first dimension left open."""
    model = onnx.load(path)
    for value in [*model.graph.input, *model.graph.output]:
        value.type.tensor_type.shape.dim[0].dim_param = symbol
    del model.graph.value_info[:]
    onnx.save(model, out)


def encoder(path, out, layers=4, heads=4, width=256):
    """A transformer encoder as exporters write it: attention of many nodes, batch N and S steps, widths of BERT-small; its weights
    are drawn. `path` is not read."""
    weights = numpy.random.RandomState(1)
    nodes, constants = [], []

    def emit(op, inputs, output, **attributes):
        nodes.append(helper.make_node(op, inputs, [output], name=f"n_{output}", **attributes))
        return output

    def constant(name, value):
        constants.append(numpy_helper.from_array(value, name))
        return name

    def linear(x, name, rows, columns):
        w = constant(f"{name}_w", (weights.standard_normal((rows, columns)) / math.sqrt(rows)).astype(numpy.float32))
        b = constant(f"{name}_b", weights.standard_normal(columns).astype(numpy.float32))
        return emit("Add", [emit("MatMul", [x, w], f"{name}_m"), b], name)

    def norm(x, name):
        scale, bias = (constant(f"{name}_{k}", numpy.full(width, v, numpy.float32)) for k, v in (("s", 1), ("o", 0)))
        return emit("LayerNormalization", [x, scale, bias], name, axis=-1)

    split = constant("split", numpy.array([0, 0, heads, width // heads], numpy.int64))
    join = constant("join", numpy.array([0, 0, width], numpy.int64))
    scale = constant("scale", numpy.float32(math.sqrt(width / heads)).reshape(()))
    half, one, root = (constant(k, numpy.float32(v).reshape(())) for k, v in (("half", .5), ("one", 1), ("root", math.sqrt(2))))
    x = "x"
    for k in range(layers):
        q, key, v = (emit("Transpose", [emit("Reshape", [linear(x, f"{t}{k}", width, width), split], f"{t}r{k}")], f"{t}t{k}",
                          perm=[0, 2, 3, 1] if t == "k" else [0, 2, 1, 3]) for t in "qkv")
        scores = emit("Div", [emit("MatMul", [q, key], f"qk{k}"), scale], f"score{k}")
        mixed = emit("MatMul", [emit("Softmax", [scores], f"soft{k}", axis=-1), v], f"mix{k}")
        mixed = emit("Reshape", [emit("Transpose", [mixed], f"mixt{k}", perm=[0, 2, 1, 3]), join], f"mixr{k}")
        x = norm(emit("Add", [linear(mixed, f"o{k}", width, width), x], f"add{k}"), f"ln{k}")
        h = linear(x, f"up{k}", width, 4 * width)
        erf = emit("Erf", [emit("Div", [h, root], f"gd{k}")], f"ge{k}")
        h = emit("Mul", [emit("Mul", [h, emit("Add", [erf, one], f"g1{k}")], f"gm{k}"), half], f"gelu{k}")
        x = norm(emit("Add", [linear(h, f"down{k}", 4 * width, width), x], f"addb{k}"), f"lnb{k}")
    emit("Identity", [x], "y")
    graph = helper.make_graph(nodes, "encoder", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", "S", width])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", "S", width])], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    onnx.save(model, out)


# Name, what makes the file (None: it is one of build/models), input with its dimensions, ranges by the symbols that the model has.
MODELS = [
    ("resnet50", batched, ("input", ["N", 3, 224, 224]), ["N=1..32"]),
    ("mobilenet_v2", batched, ("input", ["N", 3, 224, 224]), ["N=1..64"]),
    ("ocr_detector", None, ("x", ["p2o_DynamicDimension_0", 3, "p2o_DynamicDimension_1", "p2o_DynamicDimension_2"]), ["p2o_DynamicDimension_0=1..4", "p2o_DynamicDimension_1=32..1280/32",
                             "p2o_DynamicDimension_2=32..1280/32"]),
    ("ocr_recogniser", None, ("x", ["p2o_DynamicDimension_0", 3, "x_2", "p2o_DynamicDimension_1"]),
     ["p2o_DynamicDimension_0=1..8", "p2o_DynamicDimension_1=16..960/8", "x_2=48..48"]),
    ("encoder", encoder, ("x", ["N", "S", 256]), ["N=1..16", "S=1..512"]),
]


def arena_of(build, made, ranges):
    """Of the symbolic plan at one shape: ranges of one value each."""
    done = subprocess.run([os.path.join(build, "bin", "regie-shape-bench"), made, "1", "1", *ranges], capture_output=True, text=True)
    return int(re.search(r"at most (\d+) bytes", done.stdout).group(1))


def beside_fixed(build, path, made, port, ranges, count, seed, folder):
    """Ratios of the symbolic plan's arena to that of the model compiled for the shape alone."""
    draw, ratios = random.Random(seed), []
    for _ in range(count):
        at = {}
        for r in ranges:
            symbol, low, high, step = re.fullmatch(r"(.*)=(\d+)\.\.(\d+)(?:/(\d+))?", r).groups()
            at[symbol] = draw.randrange(int(low), int(high) + 1, int(step or 1))
        shape = f"{port[0]}={','.join(str(at.get(d, d)) for d in port[1])}"
        fixed = os.path.join(folder, "fixed.rgm")
        subprocess.run([os.path.join(build, "bin", "regie"), "compile", path, "-o", fixed, "--shape", shape], check=True,
                       stdout=subprocess.DEVNULL)
        text = subprocess.run([os.path.join(build, "bin", "regie"), "inspect", fixed], check=True, capture_output=True,
                              text=True).stdout
        alone = sum(int(n) for n in re.findall(r" of \S+: (\d+) bytes, lower bound", text))
        ratios.append((arena_of(build, made, [f"{k}={v}..{v}" for k, v in at.items()]) / alone, shape))
    return ratios


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.path.join(ROOT, "build", "release"))
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--static", type=int, default=0, metavar="K")
    parser.add_argument("names", nargs="*", metavar="NAME")
    arguments = parser.parse_args()
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, make, port, ranges in MODELS:
            if arguments.names and name not in arguments.names:
                continue
            path = os.path.join(ROOT, "build", "models", f"{name}.onnx")
            if make:
                make(path, os.path.join(folder, f"{name}.onnx"))
                path = os.path.join(folder, f"{name}.onnx")
            made = os.path.join(folder, "m.rgm")
            subprocess.run([os.path.join(arguments.build, "bin", "regie"), "compile", path, "-o", made], check=True,
                           stdout=subprocess.DEVNULL)
            done = subprocess.run([os.path.join(arguments.build, "bin", "regie-shape-bench"), made, str(arguments.count),
                                   str(arguments.seed), *ranges], capture_output=True, text=True)
            print(f"{name}: {' '.join(r.removeprefix('p2o_') for r in ranges)} {(done.stdout or done.stderr).strip()}", flush=True)
            failed += done.returncode != 0
            if arguments.static:
                ratios = beside_fixed(arguments.build, path, made, port, ranges, arguments.static, arguments.seed, folder)
                worst = max(ratios)
                print(f"{name}: beside the model compiled for the shape alone, {len(ratios)} shapes: mean "
                      f"{sum(r for r, _ in ratios) / len(ratios):.3f}, worst {worst[0]:.3f} at {worst[1]}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
