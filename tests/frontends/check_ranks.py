"""Branches of an If that give values of other ranks, by Regie and by ONNX Runtime: check_ranks.py REGIE FOLDER.

"Squeeze if the dimension is one" is what exporters make of a squeeze. Each model is run at several shapes, optimised and not, from
the file and from the offline model; what ONNX Runtime refuses must be refused."""
import os
import shutil
import subprocess
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import parser

random = np.random.default_rng(5)
SQUEEZE = """
  sh{n} = Shape ({x})
  c{n} = Gather <axis: int = 0> (sh{n}, {axis})
  is{n} = Equal (c{n}, one)
  {y} = If (is{n}) <then_branch: graph = th{n} () => (float[] s{n}) {{ ax{n} = Unsqueeze ({axis}, zeros) s{n} = Squeeze ({x}, ax{n}) }},
                   else_branch: graph = el{n} () => (float[] i{n}) {{ i{n} = Identity ({x}) }}>
"""


def squeeze(x, y, n=0, axis="one"):
    return SQUEEZE.format(x=x, y=y, n=n, axis=axis)


# name: inputs, outputs, nodes, shapes of x
THREE = [(2, 1, 3), (2, 2, 3), (4, 1, 3), (1, 1, 3)]
CASES = {
    "squeeze": ("float[a,b,3] x", "float[] y", squeeze("x", "y"), THREE),
    "after": ("float[a,b,3] x", "float[] y, float[] z", squeeze("x", "y") + "n = Neg (y) z = Add (n, y)", THREE),
    "matmul": ("float[a,b,3] x", "float[] z", squeeze("x", "y") + "z = MatMul (y, w)", THREE),
    "shape": ("float[a,b,3] x", "int64[] z", squeeze("x", "y") + "z = Shape (y)", THREE),
    "size": ("float[a,b,3] x", "int64[] z", squeeze("x", "y") + "z = Size (y)", THREE),
    "reduce": ("float[a,b,3] x", "float[] z", squeeze("x", "y") + "z = ReduceSum <keepdims: int = 0> (y)", THREE),
    "reduce-last": ("float[a,b,3] x", "float[] z", squeeze("x", "y") + "z = ReduceSum <keepdims: int = 0> (y, last)", THREE),
    "flatten": ("float[a,b,3] x", "float[] z", squeeze("x", "y") + "r = Reshape (y, rows) z = MatMul (r, w)", THREE),
    "one-rank": ("float[a,b,3] x", "float[] z", squeeze("x", "y") + "z = Concat <axis: int = 0> (y, w)", THREE),
    "two": ("float[a,b,c] x", "float[] z", squeeze("x", "p", 0) + "q = Relu (p)" + squeeze("q", "y", 1, "zero") + "z = Add (y, y)",
            [(1, 1, 3), (2, 1, 3), (1, 2, 3), (2, 2, 3)]),
    "apart": ("float[a,b,3] x, float[n] v", "float[] z, float[] u", squeeze("x", "y") + "u = Neg (v) z = Add (y, y)", THREE),
    "twice": ("float[a,b,3] x", "float[] y, float[] z", squeeze("x", "y") + "z = Identity (y)", THREE),
    "condition": ("float[a,b,3] x, bool c", "float[] y", """y = If (c) <then_branch: graph = t () => (float[] p) { p = Flatten <axis: int = 1> (x) },
                  else_branch: graph = e () => (float[] q) { q = Unsqueeze (x, zeros) }>""", THREE),
    "nested": ("float[a,b,3] x, bool c", "float[] z", "y = If (c) <then_branch: graph = t () => (float[] p) {" + squeeze("x", "p") + """},
               else_branch: graph = e () => (float[] q) { q = Neg (x) }> z = Mul (y, y)""", THREE),
    "inside": ("float[a,b,3] x, bool c", "float[] z", squeeze("x", "y") + """z = If (c) <then_branch: graph = t () => (float[] p) { p = Neg (y) },
               else_branch: graph = e () => (float[] q) { q = Relu (y) }>""", THREE),
    "known": ("float[a,b,3] x", "float[] z", "y = If (true) <then_branch: graph = t () => (float[] p) {" + squeeze("x", "p") + """},
              else_branch: graph = e () => (float[] q) { q = Neg (x) }> z = Mul (y, y)""", THREE),
    "beside": ("float[a,b,3] x, bool c", "float[] z", "y, u = If (c) <then_branch: graph = t () => (float[] p, float[] r) { r = Exp (x)" + squeeze("x", "p") + """},
               else_branch: graph = e () => (float[] q, float[] v) { q = Neg (x) v = Abs (x) }> s = ReduceSum <keepdims: int = 0> (u) z = Mul (y, s)""", THREE),
    "known-beside": ("float[a,b,3] x", "float[] z", "y, u = If (true) <then_branch: graph = t () => (float[] p, float[] r) { r = Exp (x)" + squeeze("x", "p") + """},
              else_branch: graph = e () => (float[] q, float[] v) { q = Neg (x) v = Abs (x) }> s = ReduceSum <keepdims: int = 0> (u) z = Mul (y, s)""", THREE),
    "loop": ("float[a,b,3] x", "float[] z", """z, all = Loop (three, true, total) <body: graph = b (int64 i, bool go, float s) => (bool on, float t, float r) {
             """ + squeeze("x", "y") + """on = Identity (go) r = ReduceSum <keepdims: int = 0> (y) t = Add (s, r) }>""", THREE),
    "types": ("int64[a,b] x, bool c", "int64[] y", """y = If (c) <then_branch: graph = t () => (int64[] p) { p = ReduceMax <keepdims: int = 0> (x) },
              else_branch: graph = e () => (int64[] q) { q = Reshape (x, flat) }>""", [(2, 3), (1, 1)]),
    "empty": ("float[a,b,3] x, bool c", "float[] y", """y = If (c) <then_branch: graph = t () => (float[] p) { p = Reshape (x, flat) },
              else_branch: graph = e () => (float[] q) { q = Identity (x) }>""", [(0, 2, 3), (1, 0, 3)]),
}
CONSTANTS = ("int64 zero = {0}, int64 one = {1}, int64[1] zeros = {0}, int64[1] last = {-1}, int64[1] flat = {-1}, int64[2] rows = {-1, 3}, "
             "int64 three = {3}, float total = {0}, bool true = {1}, "
             "float[3,3] w = {1, 2, 3, 4, 5, 6, 7, 8, 10}")


def make_model(case):
    inputs, outputs, nodes, _ = CASES[case]
    return parser.parse_model(f'<ir_version: 8, opset_import: ["": 17]> {case.replace("-", "_")} ({inputs}) => ({outputs}) <{CONSTANTS}> {{ {nodes} }}')


def command(*words):
    return subprocess.run([str(w) for w in words], capture_output=True, text=True, timeout=120)


def values(case):
    given = CASES[case][0]
    for shape in CASES[case][3]:
        if "int64[a,b] x" in given:
            x = random.integers(-9, 9, shape)
        else:
            x = random.standard_normal(shape).astype(np.float32)
        for c in (True, False) if "bool c" in given else (None,):
            feeds = {"x": x}
            if c is not None:
                feeds["c"] = np.array(c)
            if "float[n] v" in given:
                feeds["v"] = random.standard_normal(4).astype(np.float32)
            yield feeds


def check(case, regie, where):
    model = make_model(case)
    onnx.save(model, f"{where}/model.onnx")
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4  # it says each refusal on standard error, too
    session = onnxruntime.InferenceSession(f"{where}/model.onnx", options)
    names = [o.name for o in session.get_outputs()]
    wrong, right = [], 0
    for more in [], ["--no-optimise"]:
        done = command(regie, "compile", f"{where}/model.onnx", "-o", f"{where}/model.rgm", *more)
        if done.returncode:
            return [done.stderr]
        for path, flags in ("model.onnx", more), ("model.rgm", []):
            for feeds in values(case):
                what = f"{path} {more} at {[v.shape for v in feeds.values()]} c={feeds.get('c')}"
                try:
                    want = session.run(names, feeds)
                except Exception:
                    want = None
                words = [regie, "run", f"{where}/{path}", "--output-dir", f"{where}/out", *flags]
                for name, value in feeds.items():
                    np.save(f"{where}/{name}.npy", value)
                    words += ["--input", f"{name}={where}/{name}.npy"]
                shutil.rmtree(f"{where}/out", ignore_errors=True)
                done = command(*words)
                if done.returncode not in (0, 2):
                    wrong.append(f"{what}: ended with {done.returncode}: {done.stderr}")
                elif want is None:
                    if done.returncode == 0:
                        wrong.append(f"{what}: ONNX Runtime refuses it")
                elif done.returncode:
                    wrong.append(f"{what}: {done.stderr}")
                else:
                    for name, w in zip(names, want):
                        got = np.load(f"{where}/out/{name}.npy")
                        if got.shape != w.shape or got.dtype != w.dtype or not np.allclose(got, w, rtol=1e-5, atol=1e-6):
                            wrong.append(f"{what}: {name} is {got.dtype}{got.shape}, must be {w.dtype}{w.shape}")
                    right += 1
    if not right:
        wrong.append("no run gave values")
    return wrong


def main():
    regie, folder = sys.argv[1:3]
    shutil.rmtree(folder, ignore_errors=True)
    failed = 0
    for case in sys.argv[3:] or CASES:
        os.makedirs(f"{folder}/{case}")
        wrong = check(case, regie, f"{folder}/{case}")
        failed += bool(wrong)
        for line in wrong[:3]:
            print(f"{case}: {line}")
    print(f"{len(sys.argv[3:] or CASES)} models, {failed} wrong")
    sys.exit(failed != 0)


main()
