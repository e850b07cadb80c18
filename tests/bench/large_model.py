"""A model of more than 2 GB, its weights beside it: how long a compile, a load and a run take, and how much memory.

    large_model.py --build BUILD [--width 8192] [--layers 9] [--folder FOLDER]

`layers` products of `width` x `width` (2.25 GiB as it is), each scaled and followed by Tanh, made in a temporary folder, compiled,
run from .onnx and from .rgm, and compared with ONNX Runtime: max|diff| <= 1e-4 max|ref| + 1e-5. The process fails otherwise.
"""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper


def make(folder, width, layers):
    """The bytes of each weight are written as they are made."""
    random = np.random.default_rng(1)
    nodes, weights, last = [], [], "x"
    with open(folder / "weights.bin", "wb") as file:
        for i in range(layers):
            weight = onnx.TensorProto(name=f"w{i}", data_type=TensorProto.FLOAT, dims=[width, width], data_location=TensorProto.EXTERNAL)
            block = random.standard_normal((width, width), dtype=np.float32) / np.float32(width**0.5)
            for key, value in (("location", "weights.bin"), ("offset", str(file.tell())), ("length", str(block.nbytes))):
                weight.external_data.add(key=key, value=value)
            block.tofile(file)
            weights.append(weight)
            nodes += [helper.make_node("MatMul", [last, f"w{i}"], [f"p{i}"]), helper.make_node("Tanh", [f"p{i}"], [f"t{i}"])]
            last = f"t{i}"
        size = file.tell()
    info = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", width])
    graph = helper.make_graph(nodes, "large", [info("x")], [info(last)], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    (folder / "large.onnx").write_bytes(model.SerializeToString())
    return size, last


def measured(*words):
    begin = time.perf_counter()
    child = subprocess.Popen([str(w) for w in words], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        sys.exit(f"exit code {child.returncode}: {' '.join(map(str, words))}")
    return time.perf_counter() - begin, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--width", type=int, default=8192)
    parser.add_argument("--layers", type=int, default=9)
    parser.add_argument("--folder", help="where the temporary folder is made; it takes three times the size of the weights")
    args = parser.parse_args()
    regie = args.build / "bin" / "regie"
    with tempfile.TemporaryDirectory(dir=args.folder) as name:
        folder = pathlib.Path(name)
        size, output = make(folder, args.width, args.layers)
        x = np.random.default_rng(2).standard_normal((2, args.width)).astype(np.float32)
        np.save(folder / "x.npy", x)
        given = ["--input", f"x={folder / 'x.npy'}", "--output-dir"]
        print(f"| {size / 1e9:.2f} GB of weights | s | processor s | peak MB |\n|---|---|---|---|")
        for title, words in (("compile", ["compile", folder / "large.onnx", "-o", folder / "large.rgm"]),
                             ("run of the .rgm", ["run", folder / "large.rgm", *given, folder / "offline"]),
                             ("run of the .onnx", ["run", folder / "large.onnx", *given, folder / "online"])):
            seconds, processor, peak = measured(regie, *words)
            print(f"| {title} | {seconds:.2f} | {processor:.2f} | {peak:.0f} |", flush=True)
        file = (folder / "large.rgm").stat().st_size
        begin = time.perf_counter()
        want = onnxruntime.InferenceSession(str(folder / "large.onnx"), providers=["CPUExecutionProvider"]).run(None, {"x": x})[0]
        print(f"| ONNX Runtime, session and run | {time.perf_counter() - begin:.2f} | | |\n\nThe .rgm has {file / 1e9:.2f} GB.")
        for way in ("offline", "online"):
            got = np.load(folder / way / f"{output}.npy")
            if not np.abs(got - want).max() <= 1e-4 * np.abs(want).max() + 1e-5:
                sys.exit(f"{way}: {np.abs(got - want).max()} from what ONNX Runtime computes")


if __name__ == "__main__":
    main()
