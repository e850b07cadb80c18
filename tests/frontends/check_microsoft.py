"""Quantised operators of com.microsoft, by Regie and by ONNX Runtime: check_microsoft.py REGIE FOLDER.

Each with u8 and s8, with zero points and, where they are optional, without. Integers may be one apart where a float lies between
two of them: ONNX Runtime computes some of these by tables and in other orders; nine of ten are equal."""
import os
import shutil
import subprocess
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

random = np.random.default_rng(7)
SHAPE = (2, 8, 6, 6)


def cases(kind):
    low = np.iinfo(kind).min

    def tensor(*shape):
        return random.integers(low, low + 256, shape).astype(kind)

    def scale(value):
        return np.array(value, np.float32)

    def zero(value):
        return np.array(value + (0 if kind == np.int8 else 128), kind)

    a, b = (tensor(*SHAPE), scale(0.02), zero(3)), (tensor(*SHAPE), scale(0.03), zero(-5))
    y = (scale(0.05), zero(7))
    none = None
    yield "QLinearAdd", [*a, *b, *y], {}
    yield "QLinearAdd", [*a, tensor(1, 8, 1, 1), scale(0.03), zero(1), *y], {}
    yield "QLinearMul", [*a, *b, *y], {}
    yield "QLinearMul", [*a, *b, scale(0.03), zero(0)], {}
    yield "QLinearSigmoid", [*a, scale(1 / 256), zero(-128)], {}
    yield "QLinearLeakyRelu", [*a, *y], {"alpha": 0.2}
    yield "QLinearLeakyRelu", [*a, *y], {}
    yield "QLinearGlobalAveragePool", [*a, *y], {}
    yield "QLinearGlobalAveragePool", [*a, *y], {"channels_last": 1}
    yield "QLinearAveragePool", [*a, *y], {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "strides": [2, 2]}
    yield "QLinearAveragePool", [*a, *y], {"kernel_shape": [2, 3], "count_include_pad": 1, "pads": [1, 1, 0, 1]}
    yield "QLinearConcat", [*y, *a, *b, tensor(2, 3, 6, 6), scale(0.05), zero(7)], {"axis": 1}
    yield "QLinearSoftmax", [*a, scale(1 / 256), zero(-128)], {"axis": 1, "opset": 13}
    yield "QLinearSoftmax", [*a, scale(1 / 256), zero(-128)], {"axis": -1, "opset": 12}
    if kind == np.uint8:
        yield "QLinearSoftmax", [*a, scale(1 / 256), zero(-128)], {"axis": 2, "opset": 11}
    yield "QLinearWhere", [random.integers(0, 2, SHAPE) > 0, *a, *b, *y], {}
    m, w = tensor(5, 12), random.integers(-128, 128, (12, 4)).astype(np.int8)
    c = random.integers(-3000, 3000, 4).astype(np.int32)
    columns = random.uniform(0.01, 0.03, 4).astype(np.float32)
    yield "QGemm", [m, scale(0.02), zero(3), w, scale(0.03), np.array(0, np.int8), c, *y], {}
    yield "QGemm", [m, scale(0.02), zero(3), w, scale(0.03), np.array(0, np.int8), none, *y], {}
    yield "QGemm", [m, scale(0.02), zero(3), w, scale(0.03), np.array(0, np.int8), c], {}
    yield "QGemm", [m, scale(0.02), zero(3), w, columns, np.zeros(4, np.int8), c, *y], {}
    yield "QGemm", [m.T.copy(), scale(0.02), zero(3), w.T.copy(), scale(0.03), np.array(0, np.int8), c, *y], {"transA": 1, "transB": 1}
    yield "QuantizeLinear", [random.standard_normal(SHAPE).astype(np.float32), scale(0.02), zero(3)], {}
    yield "DequantizeLinear", list(a), {}
    if kind == np.uint8:
        x, bias = random.standard_normal((5, 12)).astype(np.float32), random.standard_normal(4).astype(np.float32)
        yield "DynamicQuantizeMatMul", [x, w, scale(0.03), np.array(0, np.int8), bias], {}
        yield "DynamicQuantizeMatMul", [x, w, scale(0.03)], {}
        yield "MatMulIntegerToFloat", [m, w, scale(0.02), scale(0.03), zero(3), np.array(0, np.int8), bias], {}
        yield "MatMulIntegerToFloat", [m, w, scale(0.02), scale(0.03)], {}


def run_regie(regie, where, feeds):
    words = [regie, "run", f"{where}/model.onnx", "--output-dir", where]
    for name, value in feeds.items():
        np.save(f"{where}/{name}.npy", value)
        words += ["--input", f"{name}={where}/{name}.npy"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120)
    return done.stderr if done.returncode else np.load(f"{where}/y.npy")


def main():
    regie, folder = sys.argv[1:]
    shutil.rmtree(folder, ignore_errors=True)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    count = wrong = 0
    for kind in np.uint8, np.int8:
        for number, (op, operands, attributes) in enumerate(cases(kind)):
            where = f"{folder}/{np.dtype(kind).name}-{number}-{op}"
            os.makedirs(where)
            names = ["" if v is None else f"i{i}" for i, v in enumerate(operands)]
            # What has elements is an input, what belongs to the quantisation is constant.
            given = {n: v for n, v in zip(names, operands) if n and (v.size > 40 or v.dtype == bool)}
            fixed = {n: v for n, v in zip(names, operands) if n and n not in given}
            node = helper.make_node(op, names, ["y"], domain="com.microsoft", **attributes)
            graph = helper.make_graph([node], "g", [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape) for n, v in given.items()],
                                      [helper.make_tensor_value_info("y", TensorProto.UNDEFINED, None)], [numpy_helper.from_array(v, n) for n, v in fixed.items()])
            graph.output[0].type.ClearField("tensor_type")
            model = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)])
            onnx.save(model, f"{where}/model.onnx")
            what = f"{op} of {np.dtype(kind).name} {attributes}"
            try:
                want = onnxruntime.InferenceSession(f"{where}/model.onnx", options).run(["y"], given)[0]
            except Exception as error:
                print(f"{what}: ONNX Runtime: {str(error)[-200:]}")
                wrong += 1
                continue
            count += 1
            got = run_regie(regie, where, given)
            if isinstance(got, str) or got.shape != want.shape or got.dtype != want.dtype:
                print(f"{what}: {got if isinstance(got, str) else (got.dtype, got.shape)}, must be {want.dtype}{want.shape}")
                wrong += 1
            elif want.dtype.kind == "f":
                if not np.allclose(got, want, rtol=1e-5, atol=1e-5):
                    print(f"{what}: floats differ by {np.abs(got - want).max()}")
                    wrong += 1
            else:
                apart = np.abs(got.astype(int) - want)
                if apart.max() > 1 or (apart > 0).mean() > 0.1:
                    print(f"{what}: {apart.max()} apart, {(apart == 0).mean():.2%} equal")
                    wrong += 1
    print(f"{count} nodes, {wrong} wrong")
    sys.exit(wrong != 0)


main()
