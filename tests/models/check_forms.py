"""Forms of models that are easy to get wrong at their edges, run by Regie (optimised and not) and by ONNX Runtime.

    check_forms.py REGIE WORK

What comes out again as it went in, values with several names, taps between fused nodes, states in and out, weights as outputs,
inputs of every element type, inputs and outputs that nobody reads.
"""
import pathlib
import shutil
import subprocess
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

random = np.random.default_rng(3)
FLOAT = TensorProto.FLOAT


def node(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs, outputs, name=f"{op}_{'_'.join(outputs)}", **attributes)


def forms():
    """name -> (nodes, inputs by name, weights by name, outputs by name: element type)"""
    x = random.standard_normal((2, 4, 6, 6)).astype(np.float32)
    w = random.standard_normal((4, 4, 3, 3)).astype(np.float32) * 0.3
    bn = {"s": np.ones(4, np.float32) * 1.2, "b": np.zeros(4, np.float32) + 0.1, "m": np.zeros(4, np.float32), "v": np.ones(4, np.float32) * 2}
    conv = [node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]), node("BatchNormalization", ["c", "s", "b", "m", "v"], ["n"]), node("Relu", ["n"], ["r"])]
    small = random.standard_normal((3, 4)).astype(np.float32)
    yield "taps", conv + [node("Add", ["r", "x"], ["y"])], {"x": x}, {"w": w, **bn}, {"c": FLOAT, "n": FLOAT, "r": FLOAT, "y": FLOAT}
    yield "two_names", [node("Relu", ["x"], ["a"]), node("Identity", ["a"], ["b"]), node("Identity", ["b"], ["d"])], {"x": small}, {}, {"a": FLOAT, "b": FLOAT, "d": FLOAT}
    yield "identity", [node("Identity", ["x"], ["y"])], {"x": small}, {}, {"y": FLOAT}
    yield "identity_twice", [node("Identity", ["x"], ["y"]), node("Identity", ["x"], ["z"])], {"x": small}, {}, {"y": FLOAT, "z": FLOAT}
    yield "reshaped_twice", [node("Reshape", ["x", "s"], ["y"]), node("Flatten", ["y"], ["z"]), node("Neg", ["y"], ["n"])], {"x": small}, {"s": np.array([2, 6])}, {"y": FLOAT, "z": FLOAT, "n": FLOAT}
    yield "constant", [node("Relu", ["x"], ["y"]), node("Add", ["w", "w"], ["z"]), node("Identity", ["w"], ["i"])], {"x": small}, {"w": small}, {"y": FLOAT, "z": FLOAT, "i": FLOAT}
    yield "state", [node("Add", ["x", "h"], ["t"]), node("Tanh", ["t"], ["h_next"]), node("Concat", ["cache", "h_next"], ["cache_next"], axis=0), node("Identity", ["h"], ["h_before"])], \
        {"x": small, "h": small * 0.5, "cache": random.standard_normal((5, 4)).astype(np.float32)}, {}, {"h_next": FLOAT, "cache_next": FLOAT, "h_before": FLOAT}
    yield "unread", [node("Relu", ["x"], ["y"]), node("Split", ["x"], ["p", "q"], axis=1), node("Neg", ["p"], ["z"]), node("Exp", ["x"], ["nobody"])], \
        {"x": small, "unused": small}, {}, {"y": FLOAT, "z": FLOAT}
    for name, dtype in (("f16", np.float16), ("f64", np.float64), ("i64", np.int64), ("i32", np.int32), ("u8", np.uint8), ("i8", np.int8), ("bool", bool)):
        value = (random.standard_normal((3, 4)) * 20).astype(np.int64) % 2 if dtype == bool else np.abs(random.standard_normal((3, 4)) * 20)
        value = value.astype(dtype)
        kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        yield f"input_{name}", [node("Cast", ["x"], ["f"], to=FLOAT), node("Relu", ["f"], ["y"]), node("Cast", ["y"], ["back"], to=kind), node("Transpose", ["x"], ["t"])], \
            {"x": value}, {}, {"y": FLOAT, "back": kind, "t": kind}
    half = (random.standard_normal((2, 3, 8, 8)) * 0.5).astype(np.float16)
    kernel = (random.standard_normal((4, 3, 3, 3)) * 0.3).astype(np.float16)
    yield "half_network", [node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]), node("Relu", ["c"], ["r"]), node("GlobalAveragePool", ["r"], ["p"]), node("Flatten", ["p"], ["y"])], \
        {"x": half}, {"w": kernel}, {"y": TensorProto.FLOAT16}
    ids = np.array([[0, 3, 1]])
    yield "picture_u8", [node("Cast", ["x"], ["f"], to=FLOAT), node("Mul", ["f", "k"], ["s"]), node("Transpose", ["s"], ["y"], perm=[0, 3, 1, 2])], \
        {"x": random.integers(0, 256, (1, 5, 6, 3)).astype(np.uint8)}, {"k": np.array(1 / 255, np.float32)}, {"y": FLOAT}
    yield "masked", [node("Gather", ["table", "ids"], ["e"]), node("Where", ["keep", "e", "zero"], ["y"])], \
        {"ids": ids, "keep": np.array([[[True], [False], [True]]])}, {"table": small.repeat(2, 0), "zero": np.array(0, np.float32)}, {"y": FLOAT}


def main():
    regie, work = sys.argv[1], pathlib.Path(sys.argv[2])
    shutil.rmtree(work, ignore_errors=True)
    failures = count = 0
    for name, nodes, inputs, weights, outputs in forms():
        folder = work / name
        folder.mkdir(parents=True)
        graph = helper.make_graph(nodes, name, [helper.make_tensor_value_info(k, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape) for k, v in inputs.items()],
                                  [onnx.ValueInfoProto(name=k) for k in outputs], [numpy_helper.from_array(v, k) for k, v in weights.items()])
        for value in graph.output:
            value.type.tensor_type.elem_type = outputs[value.name]
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
        onnx.save(model, folder / "model.onnx")
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        expected = dict(zip(outputs, session.run(list(outputs), inputs)))
        given = []
        for key, value in inputs.items():
            np.save(folder / f"in_{key}.npy", value)
            given += ["--input", f"{key}={folder}/in_{key}.npy"]
        compiled = subprocess.run([regie, "compile", folder / "model.onnx", "-o", folder / "model.rgm"], capture_output=True, text=True)
        for way, command in (("optimised", ["model.onnx"]), ("plain", ["model.onnx", "--no-optimise"]), ("offline", ["model.rgm"])):
            done = compiled
            if way != "offline" or not compiled.returncode:
                done = subprocess.run([regie, "run", folder / command[0], *command[1:], *given, "--output-dir", folder / way], capture_output=True, text=True)
            if done.returncode:
                failures += 1
                print(f"{name} {way}: exit {done.returncode}: {done.stderr.strip()[:300]}")
                continue
            for key, want in expected.items():
                count += 1
                got = np.load(folder / way / f"{key}.npy")
                # Halves are summed in different orders; all else as everywhere.
                bound = (5e-3 if want.dtype == np.float16 else 1e-4) * np.abs(want.astype(np.float64)).max(initial=0) + 1e-5
                if got.dtype != want.dtype or got.shape != want.shape or not np.abs(got.astype(np.float64) - want.astype(np.float64)).max(initial=0) <= bound:
                    failures += 1
                    print(f"{name} {way}: {key} differs: {got.dtype}{got.shape}, must be {want.dtype}{want.shape}")
    print(f"{count} tensors, {failures} wrong")
    sys.exit(1 if failures or count < 100 else 0)


main()
