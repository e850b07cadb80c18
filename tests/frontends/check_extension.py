"""A model with an operator of another domain: refused by name, and run once a plug-in brings the operator.

check_extension.py REGIE FOLDER PLUGINS
"""
import os
import subprocess
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper

regie, folder, plugins = sys.argv[1:]
os.makedirs(folder, exist_ok=True)
graph = helper.make_graph(
    [helper.make_node("Triple", ["x"], ["t"], name="triple", domain="com.example", factor=0.5),
     helper.make_node("Relu", ["t"], ["y"], name="relu")], "g",
    [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N"])],
    [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N"])])
model = helper.make_model(graph, ir_version=8,
                          opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("com.example", 1)])
onnx.save(model, f"{folder}/model.onnx")
np.save(f"{folder}/x.npy", np.array([-1, 2, 4], np.float32))


def run(**environment):
    return subprocess.run([regie, "run", f"{folder}/model.onnx", "--input", f"x={folder}/x.npy", "--output-dir", folder],
                          capture_output=True, text=True, env={**os.environ, **environment})


alone = run()
assert alone.returncode == 2, alone
assert "operator com.example.Triple (node 'triple') is not supported" in alone.stderr, alone.stderr
helped = run(REGIE_PLUGIN_PATH=plugins)
assert helped.returncode == 0, helped.stderr
y = np.load(f"{folder}/y.npy")
assert np.array_equal(y, np.array([0, 3, 6], np.float32)), y

# It is element-wise, so it is one node with what follows; on more elements than a tile has, too.
x = np.random.default_rng(3).standard_normal(5000).astype(np.float32)
np.save(f"{folder}/x.npy", x)
helped = run(REGIE_PLUGIN_PATH=plugins)
assert helped.returncode == 0, helped.stderr
assert np.array_equal(np.load(f"{folder}/y.npy"), np.maximum(np.float32(1.5) * x, 0))
done = subprocess.run([regie, "compile", f"{folder}/model.onnx", "-o", f"{folder}/model.rgm", "--dump", f"{folder}/dump"],
                      capture_output=True, text=True, env={**os.environ, "REGIE_PLUGIN_PATH": plugins})
assert done.returncode == 0, done.stderr
stages = sorted(n for n in os.listdir(f"{folder}/dump") if n.endswith("-group.rg"))
text = open(f"{folder}/dump/{stages[-1]}").read()
assert "regie.Pointwise(%x)" in text and "com.example.Triple(%" in text, text
