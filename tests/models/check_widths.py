"""What the engine `aicore` decides by default about operands of one and of two halves, and how it says so.

    check_widths.py REGIE NETWORKS WORK

A network of a large batch is tried at a batch of one, and its outputs at all of the batch are within 5e-3 of ONNX Runtime's. What cannot
be tried has two halves everywhere, with the reason. One product or convolution alone has no need of two halves, and what is of halves in
the model takes (nearly) what it takes with operands = "f16". What was found is told by `regie compile` and `regie explain`, and kept in the cache, so that
another compile of the same graph does not look for it again.
"""
import json
import os
import pathlib
import re
import subprocess
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from check_models import run
from check_simulated import BOUND, error_of, session_of
from rounder import halves

TARGET = ("--target", "ascend910a-sim")


class Maker:
    """A model, node by node, with weights that are halves."""

    def __init__(self, elem=TensorProto.FLOAT):
        self.random, self.elem = np.random.default_rng(3), elem
        self.nodes, self.weights, self.inputs = [], [], []

    def input(self, name, dims):
        self.inputs.append(helper.make_tensor_value_info(name, self.elem, dims))
        return name

    def constant(self, array):
        name = f"c{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(array, name))
        return name

    def weight(self, *dims):
        scale = (2 / np.prod(dims[1:])) ** 0.5
        array = halves((scale * self.random.standard_normal(dims)).astype(np.float32))
        return self.constant(array.astype(helper.tensor_dtype_to_np_dtype(self.elem)))

    def add(self, op, *operands, **attributes):
        self.nodes.append(helper.make_node(op, operands, [f"v{len(self.nodes)}"], f"n{len(self.nodes)}", **attributes))
        return self.nodes[-1].output[0]

    def save(self, path, result):
        graph = helper.make_graph(self.nodes, "g", self.inputs, [helper.make_tensor_value_info(result, self.elem, None)], self.weights)
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
        return path


def large_batch(path, batch):
    """Deep and narrow, so that roundings add up; with all that makes a batch hard to cut: shapes that say it, several branches."""
    m = Maker()
    x = m.add("Relu", m.add("Conv", m.input("x", [batch, 3, 64, 64]), m.weight(32, 3, 3, 3), pads=[1, 1, 1, 1]))
    for _ in range(12):
        y = m.add("Mul", m.add("Conv", x, m.weight(32, 32, 3, 3), pads=[1, 1, 1, 1]), m.constant(np.array(0.3, np.float32)))
        x = m.add("Relu", m.add("Add", x, y))
    x = m.add("Concat", m.add("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2]),
              m.add("AveragePool", x, kernel_shape=[2, 2], strides=[2, 2]), axis=1)
    x = m.add("Reshape", m.add("Conv", x, m.weight(16, 64, 1, 1)), m.constant(np.array([batch, 16, 1024])))
    x = m.add("ReduceMean", x, axes=[2], keepdims=0)
    return m.save(path, m.add("Softmax", m.add("MatMul", x, m.weight(16, 16)), axis=-1))


def with_loop(path):
    m = Maker()
    x = m.add("MatMul", m.input("x", [8, 64]), m.weight(64, 64))
    body = helper.make_graph(
        [helper.make_node("Mul", ["carried", "carried"], ["next"]), helper.make_node("Identity", ["go"], ["on"])], "body",
        [helper.make_tensor_value_info("i", TensorProto.INT64, []), helper.make_tensor_value_info("go", TensorProto.BOOL, []),
         helper.make_tensor_value_info("carried", TensorProto.FLOAT, [8, 64])],
        [helper.make_tensor_value_info("on", TensorProto.BOOL, []), helper.make_tensor_value_info("next", TensorProto.FLOAT, [8, 64])])
    count = m.input("count", [])
    m.inputs[-1] = helper.make_tensor_value_info("count", TensorProto.INT64, [])
    return m.save(path, m.add("Loop", count, "", x, body=body))


def one_product(path):
    m = Maker()
    return m.save(path, m.add("MatMul", m.input("x", [4096, 1024]), m.weight(1024, 1024)))


def one_convolution(path):
    m = Maker()
    return m.save(path, m.add("Conv", m.input("x", [8, 64, 56, 56]), m.weight(64, 64, 3, 3), pads=[1, 1, 1, 1]))


def of_halves(path):
    m = Maker(TensorProto.FLOAT16)
    x = m.input("x", [1, 16, 32, 32])
    for _ in range(24):
        x = m.add("Relu", m.add("Conv", x, m.weight(16, 16, 3, 3), pads=[1, 1, 1, 1]))
    return m.save(path, x)


def compiled(tool, model, out, *options):
    report = json.loads(run([tool, "compile", model, "-o", out, *TARGET, "--json", *options]))
    return report, next((f for f in report.get("findings", []) if f["topic"] == "operands"), None)


def check_batch(tool, work):
    model = large_batch(work / "batch.onnx", 48)
    report, found = compiled(tool, model, work / "batch.rgm")
    assert found and found["figures"]["products"] >= 14 and 0 < found["figures"]["estimated"] <= BOUND, found
    assert report["compile_ms"] < 20000, report["compile_ms"]
    x = halves(np.random.default_rng(9).standard_normal([48, 3, 64, 64]).astype(np.float32))
    np.save(work / "x.npy", x)
    run([tool, "run", work / "batch.rgm", "--input", f"x={work / 'x.npy'}", "--output-dir", work / "out"])
    error = error_of(np.load(next((work / "out").glob("*.npy"))), session_of(model).run(None, {"x": x})[0])
    print(f"a batch of 48: {found['text']}; {error:.1e} off, compiled in {report['compile_ms']:.0f} ms")
    assert error <= BOUND, error


def check_without_products(tool, work):
    """Nothing is chosen, but other operators that read halves are asked about: windows with holes, in the padding as well."""
    for number, (dims, window) in enumerate([
            ([1, 16, 32, 32], dict(kernel_shape=[3, 3], dilations=[2, 2], pads=[2, 2, 2, 2])),
            ([2, 5, 23, 19], dict(kernel_shape=[2, 2], dilations=[2, 2], pads=[1, 0, 0, 0], strides=[2, 1]))]):
        m = Maker()
        model = m.save(work / f"pool{number}.onnx", m.add("MaxPool", m.input("x", dims), **window))
        _, found = compiled(tool, model, work / "pool.rgm")
        assert found is None, found
        x = halves(np.random.default_rng(number).standard_normal(dims).astype(np.float32))
        np.save(work / "x.npy", x)
        run([tool, "run", work / "pool.rgm", "--input", f"x={work / 'x.npy'}", "--output-dir", work / f"pool{number}"])
        got = np.load(next((work / f"pool{number}").glob("*.npy")))
        assert np.array_equal(got, session_of(model).run(None, {"x": x})[0]), number


def check_untried(tool, work):
    report, found = compiled(tool, with_loop(work / "loop.onnx"), work / "loop.rgm", "--set", "placement=greedy")
    assert found and found["figures"]["two_halves"] == found["figures"]["products"] == 1, found
    assert "cannot be tried" in found["text"] and "control flow" in found["text"], found
    assert "--set aicore.operands=f16" in found["text"], found


def check_unchanged(tool, networks, work):
    for model in (one_product(work / "product.onnx"), one_convolution(work / "convolution.onnx")):
        report, found = compiled(tool, model, work / "one.rgm")
        halves_alone, none = compiled(tool, model, work / "one.rgm", "--set", "aicore.operands=f16")
        assert found["figures"]["two_halves"] == 0 and found["figures"]["estimated"] < 1e-3 and none is None, (model, found, none)
        # An input of the model lies as f32: it is read as two halves, or turned into halves before.
        ratio = report["predicted_ns"] / halves_alone["predicted_ns"]
        print(f"{model.stem}: {found['text']}; {ratio:.2f} of the time with halves")
        assert ratio <= 1.05, (model, ratio)
    # Deep enough to want two halves, were it of single precision.
    model = of_halves(work / "halves.onnx")
    report, found = compiled(tool, model, work / "one.rgm")
    halves_alone, _ = compiled(tool, model, work / "one.rgm", "--set", "aicore.operands=f16")
    ratio = report["predicted_ns"] / halves_alone["predicted_ns"]
    assert found is None and ratio <= 1.05, (found, ratio)


def check_words(tool, networks, work):
    model = networks / "squeezenet1_1.onnx"
    words = run([tool, "compile", model, "-o", work / "s.rgm", *TARGET])
    assert re.search(r"^operands +aicore: \d+ of 26 products as two halves for 0.005 \(estimated: ", words, re.M), words
    convolution = next(n.name for n in onnx.load(model).graph.node if n.op_type == "Conv")
    told = run([tool, "explain", model, convolution, *TARGET])
    assert re.search(r"operands.*halves", told), told
    for option, said in {"aicor.operands=f16": "did you mean 'aicore'", "aicore.operands=f8": "is f16, f16x2 or auto, not 'f8'"}.items():
        done = subprocess.run([tool, "compile", model, "-o", work / "s.rgm", *TARGET, "--set", option], capture_output=True, text=True)
        assert done.returncode == 2 and said in done.stderr, done


def check_kept(tool, networks, work):
    cache = ("--cache", "on", "--cache-dir", work / "cache")
    model = networks / "resnet50.onnx"
    first, found = compiled(tool, model, work / "first.rgm", *cache)
    second, again = compiled(tool, model, work / "second.rgm", *cache, "--no-verify")  # another model, of the same kernels
    assert first["cache"]["outcome"] == second["cache"]["outcome"] == "miss", (first["cache"], second["cache"])
    assert found == again and found["figures"]["two_halves"] > 0, (found, again)
    print(f"resnet50: {found['text']}; {first['compile_ms']:.0f} ms, then {second['compile_ms']:.0f} ms")
    assert second["compile_ms"] < 0.7 * first["compile_ms"], (first["compile_ms"], second["compile_ms"])
    # Another accuracy is another question.
    _, other = compiled(tool, model, work / "third.rgm", *cache, "--set", "aicore.accuracy=0.1")
    assert other["figures"]["two_halves"] == 0, other
    assert any(b"regie.finding" in f.read_bytes()[:400] for f in (work / "cache").rglob("*.kernel"))


def main():
    tool, networks, work = (pathlib.Path(a) for a in sys.argv[1:4])
    (work / "out").mkdir(parents=True, exist_ok=True)
    for variable in ("REGIE_CACHE", "REGIE_CACHE_DIR"):
        os.environ.pop(variable, None)
    check_batch(tool, work)
    check_without_products(tool, work)
    check_untried(tool, work)
    check_unchanged(tool, networks, work)
    check_words(tool, networks, work)
    check_kept(tool, networks, work)


main()
