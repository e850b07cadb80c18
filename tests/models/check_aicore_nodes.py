"""Single operators at random shapes on the AI Cores of a simulated target, against ONNX Runtime.

    check_aicore_nodes.py REGIE WORK [--cases N] [--seed S] [--targets T...]

Rows longer than UB (reductions, soft-max, layer normalisation, global pooling), slices with steps, and Resize by
interpolation in all its modes. Cases are nodes of one graph, all taken by the AI Cores; relative errors in the Euclidean
norm are at most 1e-3 where nothing but rounding of results is lost, 2e-3 of what the cube rounds.
"""
import argparse
import json
import pathlib
import subprocess
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper


class Graph:
    def __init__(self, random):
        self.random, self.nodes, self.inputs, self.constants, self.outputs, self.bounds = random, [], {}, [], [], {}

    def input(self, *shape, offset=0.0):
        name = f"x{len(self.inputs)}"
        self.inputs[name] = (self.random.standard_normal(shape) + offset).astype(np.float16).astype(np.float32)
        return name

    def constant(self, value):
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def node(self, op, inputs, bound, **attributes):
        name = f"{op}_{len(self.outputs)}"
        self.nodes.append(helper.make_node(op, inputs, [name], name=name, **attributes))
        self.outputs.append(name)
        self.bounds[name] = bound

    def model(self):
        info = helper.make_tensor_value_info
        graph = helper.make_graph(self.nodes, "nodes", [info(n, TensorProto.FLOAT, x.shape) for n, x in self.inputs.items()],
                                  [info(n, TensorProto.FLOAT, None) for n in self.outputs], self.constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def row(g):
    random = g.random
    width, op = int(random.integers(3000, 150000)), random.choice(["ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "Softmax",
                                                                 "LayerNormalization", "GlobalAveragePool", "GlobalMaxPool"])
    rows = int(random.integers(1, 300000 // width + 2))
    offset = float(random.choice([0.5, 3, 40]))
    if op.startswith("Global"):
        across = int(random.integers(1, 200))
        return g.node(op, [g.input(1, rows, width // across, across, offset=offset)], 1e-3)
    x = g.input(rows, width, offset=offset)
    if op == "Softmax":
        g.node(op, [x], 1e-3, axis=1)
    elif op == "LayerNormalization":
        parameters = [g.constant(random.standard_normal(width).astype(np.float32)) for _ in range(int(random.integers(1, 3)))]
        g.node(op, [x, *parameters], 1e-3, axis=-1)
    else:
        g.node(op, [x, g.constant(np.array([1]))], 1e-3, keepdims=int(random.integers(0, 2)))


def slice_of(g):
    random = g.random
    shape = [int(n) for n in random.integers(1, 12, random.integers(2, 5))]
    shape[-1] = int(random.integers(8, 60))
    axes = random.permutation(len(shape))[: random.integers(1, len(shape) + 1)]
    starts = [int(random.integers(0, shape[a])) for a in axes]
    ends = [int(random.integers(s + 1, shape[a] + 1)) for a, s in zip(axes, starts)]
    steps = [int(n) for n in random.integers(1, 4, len(axes))]
    lists = [g.constant(np.array(v, np.int64)) for v in (starts, ends, axes, steps)]
    g.node("Slice", [g.input(*shape), *lists], 1e-3)


def resize(g):
    random = g.random
    shape = [1, int(random.integers(1, 9)), int(random.integers(2, 60)), int(random.integers(2, 60))]
    attributes = {"mode": str(random.choice(["linear", "cubic"])),
                  "coordinate_transformation_mode": str(random.choice(
                      ["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel", "half_pixel_symmetric"]))}
    if attributes["coordinate_transformation_mode"] in ("half_pixel", "pytorch_half_pixel") and random.integers(0, 3) == 0:
        attributes["antialias"] = 1
    if attributes["mode"] == "cubic":
        attributes["cubic_coeff_a"] = float(random.choice([-0.75, -0.5]))
        if attributes["coordinate_transformation_mode"] == "half_pixel" and "antialias" not in attributes:
            attributes["exclude_outside"] = int(random.integers(0, 2))
    # Corners by a scale that gives no whole length are read in two ways (decision 16).
    if random.integers(0, 2) or attributes["coordinate_transformation_mode"] == "align_corners":
        sizes = [*shape[:2], *(int(n) for n in random.integers(2, 150, 2))]
        operands = ["", "", g.constant(np.array(sizes, np.int64))]
    else:
        scales = [1, 1, *random.choice([0.5, 1, 1.5, 2, 2.3, 4, 8], 2)]
        operands = ["", g.constant(np.array(scales, np.float32))]
    g.node("Resize", [g.input(*shape), *operands], 2e-3, **attributes)


def main():
    options = argparse.ArgumentParser()
    options.add_argument("regie")
    options.add_argument("work", type=pathlib.Path)
    options.add_argument("--cases", type=int, default=24)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--targets", nargs="*", default=["ascend910a-sim", "ascend910b3-sim"])
    o = options.parse_args()
    o.work.mkdir(parents=True, exist_ok=True)
    g = Graph(np.random.default_rng(o.seed))
    for i in range(o.cases):
        (row, slice_of, resize)[i % 3](g)
    path = o.work / "nodes.onnx"
    onnx.save(g.model(), path)
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    expected = dict(zip(g.outputs, session.run(g.outputs, g.inputs)))
    given = []
    for name, x in g.inputs.items():
        np.save(o.work / f"{name}.npy", x)
        given += ["--input", f"{name}={o.work / name}.npy"]
    failures = 0
    for target in o.targets:
        how = ["--target", target, "--set", "placement=greedy"]
        told = subprocess.run([o.regie, "compile", path, "-o", o.work / "nodes.rgm", *how, "--json"], capture_output=True, text=True)
        if told.returncode:
            sys.exit(told.stderr)
        for p in json.loads(told.stdout)["placements"]:
            if p["engine"] != "aicore" and not p.get("view"):
                failures += 1
                print(f"{target}: not on the AI Cores: {json.dumps(p)[:500]}")
        out = o.work / target
        subprocess.run([o.regie, "run", path, *how, *given, "--output-dir", out], check=True, stdout=subprocess.DEVNULL)
        worst = 0.0
        for name, want in expected.items():
            got = np.load(out / f"{name}.npy").astype(np.float64)
            if got.shape != want.shape:
                failures += 1
                print(f"{target}: {name} is {got.shape}, must be {want.shape}")
                continue
            error = np.linalg.norm(got - want) / max(np.linalg.norm(want.astype(np.float64)), 1e-30)
            worst = max(worst, error / g.bounds[name])
            if not error <= g.bounds[name]:
                failures += 1
                print(f"{target}: {name} is {error:.1e} off")
        print(f"{target}: {len(expected)} nodes, at most {worst:.2f} of their bounds off")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
