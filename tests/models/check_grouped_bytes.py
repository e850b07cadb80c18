"""Convolutions of bytes in groups of few channels, by Regie and by ONNX Runtime: check_grouped_bytes.py REGIE FOLDER.

All combinations of window, groups, channels, activation and result (bytes or floats) are outputs of one model, which is run online
and from the offline model, with one thread and with two. Bytes must be ONNX Runtime's but for one quantum in one element of a hundred."""
import itertools
import pathlib
import shutil
import subprocess
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

random = np.random.default_rng(11)
ACTIVATIONS = [None, "Relu", "Sigmoid", "Tanh", "HardSwish"]
CHANNELS = [(2, 4, 16), (2, 8, 8), (2, 4, 20), (2, 16, 20), (4, 3, 5), (4, 16, 17), (2, 16, 16)]  # groups, of each: in, out


def build():
    nodes, weights, inputs, outputs = [], {}, {}, []

    def constant(name, value):
        weights[name] = np.asarray(value)
        return name

    def add(kind, operands, name, **attrs):
        nodes.append(helper.make_node(kind, operands, [name], name=name, **attrs))
        return name

    scale = constant("scale", np.float32(1 / 32))
    for kind in (np.uint8, np.int8):
        letter = np.dtype(kind).char
        zero = constant(f"zero_{letter}", np.array(100 if kind == np.uint8 else 3, kind))
        for (groups, each, filters), window in itertools.product(CHANNELS, (1, 3)):
            x = f"x_{letter}{groups * each}"
            if x not in inputs:
                inputs[x] = random.integers(np.iinfo(kind).min, np.iinfo(kind).max + 1, (2, groups * each, 8, 7)).astype(kind)
                add("DequantizeLinear", [x, scale, zero], x + "_f")
            base = f"y_{letter}{groups}_{each}_{filters}_{window}"
            shape = (groups * filters, each, window, window)
            for activation in ACTIVATIONS:
                for to_bytes in (False, True):  # weights of its own: what several convolutions read is not taken into one
                    name = f"{base}_{activation}_{'b' if to_bytes else 'f'}"
                    w = constant(name + "_w", random.integers(-127, 128, shape).astype(np.int8))
                    each_scale = constant(name + "_s", random.integers(1, 5, shape[0]).astype(np.float32) / 512)
                    add("DequantizeLinear", [w, each_scale, constant(name + "_z", np.zeros(shape[0], np.int8))], name + "_d", axis=0)
                    bias = [constant(name + "_o", random.integers(-50, 50, shape[0]).astype(np.float32) / 64)] if window == 3 else []
                    y = add("Conv", [x + "_f", name + "_d", *bias], name + "_c", group=groups, pads=[window // 2] * 4)
                    if activation:
                        y = add(activation, [y], name + "_a")
                    if to_bytes:
                        y = add("QuantizeLinear", [y, scale, zero], name)
                    outputs.append((y, kind if to_bytes else np.float32))
    of = helper.np_dtype_to_tensor_dtype
    graph = helper.make_graph(nodes, "grouped", [helper.make_tensor_value_info(n, of(v.dtype), v.shape) for n, v in inputs.items()],
                              [helper.make_tensor_value_info(n, of(np.dtype(k)), None) for n, k in outputs],
                              [numpy_helper.from_array(v, n) for n, v in weights.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), inputs, [n for n, _ in outputs]


def main():
    regie, work = sys.argv[1], pathlib.Path(sys.argv[2])
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    model, inputs, outputs = build()
    onnx.save(model, work / "model.onnx")
    given = []
    for name, value in inputs.items():
        np.save(work / f"{name}.npy", value)
        given += ["--input", f"{name}={work / name}.npy"]
    plain = onnxruntime.SessionOptions()
    plain.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    expected = dict(zip(outputs, onnxruntime.InferenceSession(str(work / "model.onnx"), plain).run(outputs, inputs)))
    subprocess.run([regie, "compile", work / "model.onnx", "-o", work / "model.rgm"], check=True, stdout=subprocess.DEVNULL)
    failed = 0
    for file, *how in (("model.onnx",), ("model.rgm",), ("model.rgm", "--threads", "2")):
        out = work / "out"
        shutil.rmtree(out, ignore_errors=True)
        done = subprocess.run([regie, "run", work / file, *given, "--output-dir", out, *how], stdout=subprocess.DEVNULL)
        if done.returncode:
            sys.exit(f"{file} {how}: cannot be run")
        for name, want in expected.items():
            got = np.load(out / f"{name}.npy")
            if got.shape != want.shape or got.dtype != want.dtype:
                print(f"{file} {how}: {name} is {got.dtype}{list(got.shape)}, must be {want.dtype}{list(want.shape)}")
                failed += 1
                continue
            apart = np.abs(got.astype(np.float64) - want)
            right = np.allclose(got, want, rtol=1e-5, atol=1e-4) if want.dtype == np.float32 else apart.max() <= 1 and (apart > 0).mean() <= 0.01
            if not right:
                print(f"{file} {how}: {name}: up to {apart.max():.3g} apart, {(apart > 0).mean():.1%} differ")
                failed += 1
    print(f"{len(outputs)} convolutions, {failed} failures")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
