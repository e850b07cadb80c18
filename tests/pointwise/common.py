"""What the checks of element-wise kernels share: models of any nodes, and running them through the command line."""
import pathlib
import subprocess

import numpy as np
import onnx
from onnx import helper, numpy_helper


def model(nodes, inputs, outputs, constants=None, dims=None):
    """`inputs`: name -> array; `dims`: name -> dimensions with symbols, else those of the array. `outputs`: names."""
    dims = dims or {}
    made = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), dims.get(n, a.shape))
            for n, a in inputs.items()]
    results = [onnx.ValueInfoProto(name=n) for n in outputs]
    initial = [numpy_helper.from_array(a, n) for n, a in (constants or {}).items()]
    graph = helper.make_graph(nodes, "g", made, results, initial)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def run(regie, folder, proto, inputs, outputs, arguments=()):
    """Outputs by name, of `regie run` in a process of its own."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "model.onnx"
    path.write_bytes(proto.SerializeToString())
    command = [regie, "run", str(path), "--output-dir", str(folder / "out"), *arguments]
    for name, array in inputs.items():
        np.save(folder / f"{name}.npy", array)
        command += ["--input", f"{name}={folder / (name + '.npy')}"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}\nexit code {done.returncode}\n{done.stderr}")
    return {name: np.load(folder / "out" / f"{name}.npy") for name in outputs}
