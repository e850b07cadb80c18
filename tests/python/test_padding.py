"""Padding, operator by operator: every operator that declares how padding passes through it (configs/ops/*.toml) is run in a
network of its own at random sizes, padded up to its plan's sizes, and compared with ONNX Runtime at the request's own sizes.
Along an axis that an operator needs whole it must be refused, by name. An operator that declares something and is not tried
here fails the test."""

import pathlib
import sys
import tomllib
import unittest

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

import regie

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "configs" / "ops"
SIZES = {"N": (3, 6), "M": (5, 8)}
TYPES = {np.dtype(np.float32): TensorProto.FLOAT, np.dtype(np.int64): TensorProto.INT64, np.dtype(np.int32): TensorProto.INT32,
         np.dtype(np.bool_): TensorProto.BOOL, np.dtype(np.uint8): TensorProto.UINT8, np.dtype(np.int8): TensorProto.INT8,
         np.dtype(np.float64): TensorProto.DOUBLE}
F, I64, I32, B, U8, I8 = np.float32, np.int64, np.int32, np.bool_, np.uint8, np.int8


class Case:
    """inputs: name -> (dtype, dims); constants: name -> array; nodes: of onnx.helper. Padding along the symbols in `good` must
    be right, along each in `bad` be refused with the operator's name."""

    def __init__(self, op, inputs, nodes, good="", bad="", constants=None, outputs=1, least=None, opset=20):
        self.op, self.inputs, self.good, self.bad = op, inputs, good, bad
        self.constants, self.least, self.opset = constants or {}, least or {}, opset
        if isinstance(nodes, dict):
            names = [n for n in (nodes.pop("operands", None) or list(inputs) + list(self.constants))]
            nodes = [helper.make_node(op, names, [f"y{i}" for i in range(outputs)], name="it", **nodes)]
        self.nodes, self.outputs = nodes, [f"y{i}" for i in range(outputs)]

    def model(self):
        made = onnx.helper.make_graph(
            self.nodes, "case",
            [helper.make_tensor_value_info(n, TYPES[np.dtype(t)], list(dims)) for n, (t, dims) in self.inputs.items()],
            [helper.make_empty_tensor_value_info(o) for o in self.outputs],
            [numpy_helper.from_array(a, n) for n, a in self.constants.items()])
        proto = helper.make_model(made, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=9)
        return onnx.shape_inference.infer_shapes(proto)

    def feeds(self, random, sizes):
        out = {}
        for name, (dtype, dims) in self.inputs.items():
            shape = [sizes.get(d, d) if isinstance(d, str) else d for d in dims]
            if dtype == F:
                out[name] = random.standard_normal(shape).astype(F) if self.least.get(name) is None else (
                    random.random(shape, F) + self.least[name]).astype(F)
            elif dtype == B:
                out[name] = random.random(shape) < 0.5
            else:
                low = self.least.get(name, 0)
                out[name] = random.integers(low, low + 4, shape).astype(dtype)
        return out

    def symbols(self):
        return sorted({d for _, dims in self.inputs.values() for d in dims if isinstance(d, str)})

    def spec(self, symbols):
        parts = []
        for s in symbols:
            name, axis = next((n, i) for n, (_, dims) in self.inputs.items() for i, d in enumerate(dims) if d == s)
            parts.append(f"{name}.{axis}={'|'.join(map(str, SIZES[s]))}")
        return "buckets:" + ",".join(parts)


def cases():
    x = {"x": (F, ("N", "M"))}
    for op in ("Abs Acos Acosh Asin Asinh Atan Atanh Ceil Celu Cos Cosh Elu Erf Exp Floor Gelu HardSigmoid HardSwish LeakyRelu Log Mish "
               "Neg Reciprocal Relu Round Selu Shrink Sigmoid Sign Sin Sinh Softplus Softsign Sqrt Tan Tanh ThresholdedRelu IsNaN IsInf "
               "Identity").split():
        yield Case(op, {"x": (F, ("N", "M"))}, {}, "NM", least={"x": 1.0} if op == "Acosh" else {"x": 0.0} if op in
                   ("Acos", "Asin", "Log", "Sqrt", "Atanh") else None)
    yield Case("Not", {"x": (B, ("N", "M"))}, {}, "NM")
    yield Case("BitwiseNot", {"x": (I32, ("N", "M"))}, {}, "NM")
    for op in "Add Sub Mul Min Max Mean Sum Pow PRelu Div".split():
        yield Case(op, {"x": (F, ("N", 1, "M")), "z": (F, ("M",))}, {}, "NM", least={"x": 0.5, "z": 0.5})
    yield Case("Div", {"x": (I64, ("N", "M"))}, {}, "NM", constants={"z": np.array([3], I64)})
    yield Case("Div", {"x": (I64, ("N", "M")), "z": (I64, ("N", "M"))}, {}, "", "NM", least={"z": 1})
    yield Case("Mod", {"x": (I64, ("N", "M"))}, {}, "NM", constants={"z": np.array([3], I64)})
    yield Case("Mod", {"x": (F, ("N", "M")), "z": (F, ("N", "M"))}, {"fmod": 1}, "NM", least={"x": 1.0, "z": 0.5})
    for op in "And Or Xor".split():
        yield Case(op, {"x": (B, ("N", "M")), "z": (B, ("N", 1))}, {}, "NM")
    for op in "Equal Less Greater LessOrEqual GreaterOrEqual".split():
        yield Case(op, {"x": (F, ("N", "M")), "z": (F, ("N", 1))}, {}, "NM")
    for op in "BitwiseAnd BitwiseOr BitwiseXor".split():
        yield Case(op, {"x": (I32, ("N", "M")), "z": (I32, ("M",))}, {}, "NM")
    yield Case("BitShift", {"x": (U8, ("N", "M")), "z": (U8, ("M",))}, {"direction": "LEFT"}, "NM")
    yield Case("Where", {"c": (B, ("N", 1)), "x": (F, ("N", "M")), "z": (F, ("M",))}, {}, "NM")
    yield Case("Clip", dict(x), {}, "NM", constants={"a": np.array(-0.5, F), "b": np.array(0.5, F)})
    yield Case("Cast", dict(x), {"to": TensorProto.INT32}, "NM")
    yield Case("Dropout", dict(x), {}, "NM")
    yield Case("Concat", {"x": (F, ("N", 4)), "z": (F, ("N", "M"))}, {"axis": 1}, "N", "M")
    w = np.random.default_rng(5)
    r = lambda *dims: w.standard_normal(dims).astype(F)
    image = {"x": (F, ("N", 4, 9, "M"))}
    yield Case("Conv", dict(image), {}, "N", "M", {"w": r(6, 4, 3, 3), "b": r(6)})
    yield Case("ConvTranspose", dict(image), {}, "N", "M", {"w": r(4, 3, 3, 3)})
    for op in ("MaxPool", "AveragePool", "LpPool"):
        yield Case(op, dict(image), {"kernel_shape": [3, 2]}, "N", "M")
    for op in ("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"):
        yield Case(op, dict(image), {}, "N", "M")
    yield Case("BatchNormalization", dict(image), {}, "NM", "", {"s": r(4), "b": r(4), "m": r(4), "v": np.abs(r(4)) + 1})
    yield Case("InstanceNormalization", dict(image), {}, "N", "M", {"s": r(4), "b": r(4)})
    yield Case("LRN", dict(image), {"size": 3}, "NM")
    yield Case("LRN", {"x": (F, (2, "N", 5, 5))}, {"size": 3}, "", "N")
    yield Case("DepthToSpace", dict(image), {"blocksize": 2}, "N", "M")
    yield Case("SpaceToDepth", {"x": (F, ("N", 4, 8, 8))}, {"blocksize": 2}, "N")
    yield Case("Resize", {"x": (F, ("N", 4, 6, "M"))}, {"operands": ["x", "", "s"], "mode": "linear"}, "N", "M",
               {"s": np.array([1, 1, 2, 2], F)})
    shape = lambda of, to: helper.make_node("Shape", [of], [to])
    sizes = [shape("x", "s"), helper.make_node("Slice", ["s", "zero", "two"], ["nc"]), helper.make_node("Concat", ["nc", "hw"], ["to"], axis=0),
             helper.make_node("Resize", ["x", "", "", "to"], ["y0"], name="it", mode="linear")]
    yield Case("Resize", {"x": (F, ("N", 4, 6, 5))}, sizes, "N", "", {"zero": np.array([0], I64), "two": np.array([2], I64), "hw": np.array([9, 3], I64)})
    yield Case("Resize", {"x": (F, ("N", 4, 6, 5)), "z": (F, ("M",))}, [
        shape("x", "s"), shape("z", "m"), helper.make_node("Slice", ["s", "zero", "two"], ["nc"]),
        helper.make_node("Concat", ["nc", "m", "w"], ["to"], axis=0),
        helper.make_node("Resize", ["x", "", "", "to"], ["y0"], name="it", mode="linear")], "N", "M",
        {"zero": np.array([0], I64), "two": np.array([2], I64), "w": np.array([3], I64)})
    qkv = {"q": (F, ("N", 2, 5, 8)), "k": (F, ("N", 2, "M", 8)), "v": (F, ("N", 2, "M", 8))}
    yield Case("Attention", dict(qkv), {}, "N", "M", opset=23)
    yield Case("Attention", {"q": (F, ("N", 5, 8)), "k": (F, ("N", 6, 8)), "v": (F, ("N", 6, 8)), "mask": (F, ("N", 1, 5, 6))},
               {"q_num_heads": 2, "kv_num_heads": 2}, "N", opset=23)
    yield Case("GridSample", {"x": (F, ("N", 3, 6, 6)), "g": (F, ("N", "M", 5, 2))}, {}, "N", "M")
    yield Case("Col2Im", {"x": (F, ("N", 12, 16))}, {}, "N", "", {"i": np.array([5, 5], I64), "b": np.array([2, 2], I64)})
    for a, b in ((0, 0), (0, 1), (1, 0), (1, 1)):
        yield Case("Gemm", {"x": (F, (5, "N") if a else ("N", 5)), "w": (F, ("M", 5) if b else (5, "M"))},
                   {"transA": a, "transB": b}, "NM")
    yield Case("Gemm", {"x": (F, ("N", "M")), "w": (F, ("M", 4))}, {}, "N", "M", {"c": r(4)})
    yield Case("MatMul", {"x": (F, ("N", 3, "M")), "w": (F, ("M", 4))}, {}, "N", "M")
    yield Case("MatMul", {"x": (F, ("N", "M", 4)), "w": (F, ("N", 4, 5))}, {}, "NM")
    yield Case("MatMul", {"x": (F, (4,)), "w": (F, ("N", 4, "M"))}, {}, "NM")
    for op in ("Softmax", "LogSoftmax", "Hardmax", "LpNormalization"):
        yield Case(op, dict(x), {"axis": 1}, "N", "M")
    yield Case("MeanVarianceNormalization", dict(image), {"axes": [2, 3]}, "N", "M")
    yield Case("LayerNormalization", {"x": (F, ("N", "M", 8))}, {"axis": 2}, "NM", "", {"s": r(8), "b": r(8)})
    yield Case("GroupNormalization", {"x": (F, ("N", 4, "M"))}, {"num_groups": 2}, "N", "M", {"s": r(4), "b": r(4)}, opset=21)
    yield Case("RMSNormalization", {"x": (F, ("N", "M", 8))}, {"axis": 2}, "NM", "", {"s": r(8)}, opset=23)
    for op, gates, outputs in (("RNN", 1, 2), ("GRU", 3, 2), ("LSTM", 4, 3)):
        for direction, d in (("forward", 1), ("bidirectional", 2)):
            yield Case(op, {"x": (F, ("M", "N", 4))}, {"hidden_size": 5, "direction": direction}, "N", "M",
                       {"w": r(d, gates * 5, 4), "r": r(d, gates * 5, 5), "b": r(d, gates * 10)}, outputs)
    yield Case("GRU", {"x": (F, (4, "N", 4)), "l": (I32, ("N",))}, {"operands": ["x", "w", "r", "", "l"], "hidden_size": 5}, "N", "",
               {"w": r(1, 15, 4), "r": r(1, 15, 5)}, 2, {"l": 1})
    yield Case("Einsum", {"x": (F, ("N", "M", 4)), "z": (F, ("N", 4, 5))}, {"equation": "bij,bjk->bik"}, "NM")
    yield Case("Einsum", {"x": (F, ("N", "M"))}, {"equation": "ij->i"}, "N", "M")
    yield Case("Det", {"x": (F, ("N", 3, 3))}, {}, "N")
    yield Case("QuantizeLinear", dict(x), {}, "NM", "", {"s": np.array(0.1, F), "z": np.array(3, U8)})
    yield Case("DequantizeLinear", {"x": (U8, ("N", 4, "M"))}, {"axis": 1}, "NM", "", {"s": np.array([0.1, 0.2, 0.3, 0.4], F)})
    yield Case("MatMulInteger", {"x": (U8, ("N", "M")), "w": (U8, ("M", 4))}, {}, "N", "M")
    yield Case("ConvInteger", {"x": (U8, ("N", 2, 5, "M"))}, {}, "N", "M", {"w": w.integers(0, 9, (3, 2, 3, 3)).astype(U8)})
    one, zero = np.array(0.1, F), np.array(2, U8)
    yield Case("QLinearMatMul", {"x": (U8, ("N", 5))}, {"operands": ["x", "s", "z", "w", "s", "z", "s", "z"]}, "N", "",
               {"s": one, "z": zero, "w": w.integers(0, 9, (5, 4)).astype(U8)})
    yield Case("QLinearConv", {"x": (U8, ("N", 2, 5, "M"))}, {"operands": ["x", "s", "z", "w", "s", "z", "s", "z"]}, "N", "M",
               {"s": one, "z": zero, "w": w.integers(0, 9, (3, 2, 3, 3)).astype(U8)})
    yield Case("Flatten", {"x": (F, ("N", 3, "M"))}, {"axis": 1}, "N", "M")
    yield Case("Reshape", {"x": (F, ("N", "M", 6))}, {}, "NM", "", {"s": np.array([0, 0, 2, 3], I64)})
    yield Case("Reshape", {"x": (F, ("N", "M", 6))}, {}, "N", "M", {"s": np.array([-1, 6], I64)})
    yield Case("Squeeze", {"x": (F, ("N", 1, "M"))}, {}, "NM", "", {"a": np.array([1], I64)})
    yield Case("Unsqueeze", dict(x), {}, "NM", "", {"a": np.array([1, 3], I64)})
    yield Case("Transpose", {"x": (F, ("N", 3, "M"))}, {"perm": [2, 1, 0]}, "NM")
    yield Case("Split", dict(image), {"axis": 1, "num_outputs": 2}, "NM", "", None, 2)
    yield Case("Split", {"x": (F, ("N", "M"))}, {"axis": 1, "num_outputs": 1}, "N", "M")
    a = lambda *v: np.array(v, I64)
    yield Case("Slice", {"x": (F, ("N", "M", 9))}, {}, "NM", "", {"s": a(1), "e": a(8), "a": a(2), "t": a(3)})
    yield Case("Slice", {"x": (F, ("N", "M"))}, {}, "N", "M", {"s": a(1), "e": a(2 ** 40), "a": a(1)})
    yield Case("Slice", {"x": (F, ("N", "M"))}, {}, "N", "M", {"s": a(-1), "e": a(-2 ** 40), "a": a(1), "t": a(-1)})
    yield Case("Gather", {"x": (F, (7, 3)), "i": (I64, ("N", "M"))}, {"axis": 0}, "NM")
    yield Case("Gather", {"x": (F, ("N", "M"))}, {"axis": 1}, "N", "M", {"i": a(-1)})
    yield Case("Gather", {"i": (I32, ("N", "M"))}, [helper.make_node("Cast", ["i"], ["j"], to=TensorProto.INT64),
                                                    helper.make_node("Gather", ["w", "j"], ["y0"], name="it")], "NM", "", {"w": r(7, 3)})
    yield Case("Gather", {"i": (I64, ("N", "M"))}, [helper.make_node("Sub", ["i", "one"], ["j"]),
                                                    helper.make_node("Gather", ["w", "j"], ["y0"], name="it")], "", "NM",
               {"w": r(7, 3), "one": a(1)}, 1, {"i": 1})
    yield Case("Expand", {"x": (F, ("N", "M")), "z": (F, (1, "M"))}, [shape("x", "s"), helper.make_node("Expand", ["z", "s"], ["y0"], name="it")],
               "NM")
    yield Case("Tile", {"x": (F, ("N", 1, "M"))}, {}, "NM", "", {"r": a(1, 3, 1)})
    yield Case("Tile", {"x": (F, ("N", "M"))}, {}, "N", "M", {"r": a(1, 2)})
    yield Case("Pad", {"x": (F, ("N", "M", 4))}, {}, "NM", "", {"p": a(0, 0, 1, 0, 0, 2)})
    yield Case("Pad", {"x": (F, ("N", "M"))}, {}, "N", "M", {"p": a(0, 1, 0, -1)})
    yield Case("ConstantOfShape", dict(x), [shape("x", "s"), helper.make_node("ConstantOfShape", ["s"], ["c"], name="it"),
                                            helper.make_node("Add", ["x", "c"], ["y0"])], "NM")
    yield Case("Range", dict(x), [shape("x", "s"), helper.make_node("Gather", ["s", "last"], ["n"]),
                                  helper.make_node("Range", ["zero", "n", "one"], ["y0"], name="it")], "NM", "",
               {"last": np.array(1, I64), "zero": np.array(0, I64), "one": np.array(1, I64)})
    yield Case("Cast", dict(x), [shape("x", "s"), helper.make_node("Cast", ["s"], ["f"], to=TensorProto.FLOAT),
                                 helper.make_node("ReduceProd", ["f"], ["p"], keepdims=0),
                                 helper.make_node("Div", ["x", "p"], ["y0"], name="it")], "", "NM")
    for op in "ReduceSum ReduceMean ReduceMax ReduceMin ReduceProd ReduceL1 ReduceL2 ReduceSumSquare ReduceLogSum ReduceLogSumExp".split():
        opset = 13 if op == "ReduceSum" else 18
        yield Case(op, {"x": (F, ("N", 4, "M"))}, {"keepdims": 0}, "NM", "", {"a": a(1)}, 1, {"x": 0.5}, opset)
        yield Case(op, {"x": (F, ("N", 4, "M"))}, {}, "N", "M", {"a": a(-1)}, 1, {"x": 0.5}, opset)
    for op in ("ArgMax", "ArgMin"):
        yield Case(op, {"x": (F, ("N", 4, "M"))}, {"axis": 1, "keepdims": 0}, "NM")
        yield Case(op, {"x": (F, ("N", 4, "M"))}, {"axis": 2}, "N", "M")
    yield Case("CumSum", dict(x), {}, "N", "M", {"a": np.array(1, I64)})
    yield Case("CumProd", {"x": (F, ("N", "M"))}, {}, "N", "M", {"a": np.array(1, I64)}, opset=26)
    yield Case("Trilu", {"x": (F, (3, "N", "M"))}, {"upper": 0}, "NM")
    yield Case("TopK", dict(x), {}, "N", "M", {"k": a(3)}, 2)
    yield Case("OneHot", {"x": (I64, ("N", "M"))}, {}, "NM", "", {"d": np.array(5, I64), "v": np.array([0, 1], F)})
    # Nothing is declared for these.
    yield Case("NonZero", dict(x), {}, "", "NM")
    yield Case("ReverseSequence", {"x": (F, (4, "N")), "l": (I64, ("N",))}, {}, "", "N", None, 1, {"l": 1})


# Declared, and in no ONNX file or without a peer here: the same pattern as their like, or ours alone.
NOT_IN_ONNX = {"regie.Copy", "regie.Require"}
NO_PEER = {"CumProd", "RMSNormalization"}  # ONNX Runtime has no kernel: compared with NumPy


def numpy_peer(case, feeds):
    x = feeds["x"]
    if case.op == "CumProd":
        return [np.cumprod(x, axis=1)]
    return [x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * case.constants["s"]]


class Padding(unittest.TestCase):
    def test_declared_operators_pad_as_they_say(self):
        random = np.random.default_rng(7)
        declared, tried, padded = set(), set(), 0
        for path in sorted(FOLDER.glob("*.toml")):
            declared |= {op["name"] for op in tomllib.loads(path.read_text())["op"] if "padding" in op}
        for case in cases():
            tried.add(case.op)
            proto = case.model()
            for symbol in case.bad:
                with self.subTest(op=case.op, bad=symbol):
                    with self.assertRaises(regie.Error) as failed:
                        regie.compile(proto.SerializeToString(), shapes=case.spec(symbol))
                    self.assertRegex(str(failed.exception), "--shapes dynamic")
                    self.assertRegex(str(failed.exception), r"\((" + "|".join(n.op_type for n in case.nodes) + r")\)")
            if not case.good:
                continue
            with self.subTest(op=case.op, good=case.good):
                model = regie.compile(proto.SerializeToString(), shapes=case.spec(case.good))
                peer = None if case.op in NO_PEER else onnxruntime.InferenceSession(
                    proto.SerializeToString(), providers=["CPUExecutionProvider"])
                for run in range(5):
                    sizes = {s: int(random.integers(1, SIZES[s][1] + 1)) if s in case.good else SIZES[s][0] for s in case.symbols()}
                    if case.op == "TopK":
                        sizes["M"] = 5
                    feeds = case.feeds(random, sizes)
                    want = numpy_peer(case, feeds) if peer is None else peer.run(case.outputs, feeds)
                    got = model.run(feeds)
                    for name, w in zip(case.outputs, want):
                        self.assertEqual(got[name].shape, w.shape, f"{case.op} at {sizes}")
                        np.testing.assert_allclose(got[name], w, rtol=2e-4, atol=2e-5, equal_nan=True, err_msg=f"{case.op} at {sizes}")
                padded += model.statistics["padded"]
        self.assertGreater(padded, 200)
        self.assertEqual(declared - tried - NOT_IN_ONNX, set(), "declared, and not tried here")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[1:])
