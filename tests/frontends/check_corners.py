"""Resize with align_corners by scales that give no whole length: check_corners.py REGIE FOLDER.

ONNX's tests and reference implementation take the length times the scale for the resized length; ONNX Runtime and PyTorch the size of
the result. A model that PyTorch exported means the latter (expected: ONNX Runtime), every other one the former (expected: ONNX's
reference implementation); where the length is whole, all agree. Optimised and not, with fixed and with open sizes, alone and behind
a convolution (blocked channels)."""
import itertools
import os
import shutil
import subprocess
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator


def make_model(producer, mode, scales, wide, opens):
    dims = [1, 16 if wide else 2, *("HW" if opens else (7, 5))]
    random = np.random.default_rng(5)
    weights = [numpy_helper.from_array(np.float32([1, 1, *scales]), "s")]
    nodes = [helper.make_node("Resize", ["t" if wide else "x", "", "s"], ["y"], mode=mode, coordinate_transformation_mode="align_corners")]
    if wide:
        weights.append(numpy_helper.from_array(random.standard_normal((16, 16, 1, 1)).astype(np.float32) / 4, "w"))
        nodes.insert(0, helper.make_node("Conv", ["x", "w"], ["t"]))
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, dims)],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, dims[1], "P", "Q"])], weights)
    model = helper.make_model(graph, producer_name=producer, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    x = random.standard_normal((1, dims[1], 7, 5)).astype(np.float32)
    return model, x


def main(regie, folder):
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    failed = apart = count = 0
    for producer, mode, scales, kind, opens in itertools.product(("pytorch", "tool", ""), ("nearest", "linear", "cubic"),
                                                                 ((0.5, 1.5), (2, 3), (0.7, 0.45)), ("f32", "wide"), (False, True)):
        model, x = make_model(producer, mode, scales, kind == "wide", opens)
        file, given = os.path.join(folder, "model.onnx"), os.path.join(folder, "x.npy")
        onnx.save(model, file)
        np.save(given, x)
        theirs = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"]).run(None, {"x": x})[0]
        standard = ReferenceEvaluator(model).run(None, {"x": x})[0]
        expected, other = (theirs, standard) if producer == "pytorch" else (standard, theirs)
        apart += expected.shape == other.shape and not np.allclose(expected, other, 1e-4, 1e-4)
        for level in ([], ["--no-optimise"]):
            out = os.path.join(folder, "out")
            shutil.rmtree(out, ignore_errors=True)
            run = subprocess.run([regie, "run", file, "--input", f"x={given}", "--output-dir", out, *level], capture_output=True, text=True)
            count += 1
            y = np.load(os.path.join(out, "y.npy")) if run.returncode == 0 else np.zeros(0)
            if y.shape != expected.shape or not np.allclose(y, expected, 1e-4, 1e-4):
                print(f"producer '{producer}', {mode}, scales {scales}, {kind}, {'open' if opens else 'fixed'} sizes {level}: not as expected\n{run.stderr}")
                failed += 1
    print(f"{count} runs, {failed} wrong; the two meanings differ in {apart} models")
    sys.exit(1 if failed or not apart else 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
