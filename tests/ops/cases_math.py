"""Cases of mathematics of one tensor, of tests of floats, and of bits."""
import numpy as np

from cases import ELEMS, numpy_type
from values import FLOATS


def unary(writer, v):
    ranges = {"Asin": (-1, 1), "Acos": (-1, 1), "Acosh": (1, 5), "Atanh": (-0.95, 0.95), "Tan": (-1.3, 1.3)}
    attrs = {"Selu": ["alpha", "gamma"], "Celu": ["alpha"], "ThresholdedRelu": ["alpha"], "Swish": ["alpha"], "Shrink": ["bias", "lambd"]}
    for op in ("Sin", "Cos", "Tan", "Asin", "Acos", "Atan", "Sinh", "Cosh", "Asinh", "Acosh", "Atanh", "Softsign", "Softplus", "Mish", "Selu", "Celu",
               "ThresholdedRelu", "Swish", "Gelu"):
        for _ in range(10):
            elem = v.choose(FLOATS)
            low, high = ranges.get(op, (-4, 4))
            x = v.tensor(elem, v.shape(1, 4), low, high)
            given = {a: float(np.float32(v.rng.uniform(0.2, 2))) for a in attrs.get(op, []) if v.flag()}
            if op == "Gelu" and v.flag():
                given["approximate"] = "tanh"
            # Where the slope is steep, 16-bit inputs that were rounded count; Selu and Celu of the reference need no special care.
            writer.add(op, [x], tolerance=2e-5, **given)
    for elem in ("f32", "i32", "i8", "u8", "i64", "f64"):
        writer.add("Sign", [v.tensor(elem, v.shape(), -2, 2)])
        writer.add("Shrink", [v.tensor(elem, v.shape(), -3, 3)], lambd=1.0, bias=float(v.integer(0, 1)))
    for source, target in (("f32", "i32"), ("i64", "f64"), ("u8", "i8"), ("f16", "u16"), ("u32", "f32")):
        x = v.tensor(source, v.shape(), 0, 9)
        writer.known("BitCast", [x], [x.view(numpy_type(target))], to=ELEMS[target][0])
    for elem in ("f32", "f64", "f16"):
        special = np.array([1, np.nan, np.inf, -np.inf, 0], numpy_type(elem))
        writer.add("IsNaN", [special])
        for given in ({}, {"detect_negative": 0}, {"detect_positive": 0}):
            # ONNX Runtime has no f16 here at this version; the generator widens it, which keeps these values.
            writer.add("IsInf", [special], **given)
    for elem in ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"):
        x = v.tensor(elem, v.shape(1, 3), -9, 9)
        writer.add("BitwiseNot", [x])
        for op in ("BitwiseAnd", "BitwiseOr", "BitwiseXor"):
            writer.add(op, [x, v.tensor(elem, v.broadcastable(x.shape), -9, 9)])
        y = v.tensor(elem, v.broadcastable(x.shape), 1, 5) * (v.choose([1, -1]) if elem[0] == "i" else 1)
        writer.add("Mod", [x, y.astype(x.dtype)])
    for elem in ("f32", "f64", "i32"):
        writer.add("Mod", [v.tensor(elem, (3, 4), -9, 9), v.tensor(elem, (4,), 1, 5)], fmod=1)
    for elem in ("u8", "u32", "u64"):
        writer.add("BitShift", [v.tensor(elem, (3, 4), 0, 99), v.tensor(elem, (4,), 0, 5)], direction=v.choose(["LEFT", "RIGHT"]))
    writer.add("BitShift", [np.array([200, 3], np.uint16), np.array([2, 1], np.uint16)], direction="RIGHT", runtime=False)
    # Signed ones came with operator set 28: the right shift keeps the sign.
    for elem, bits in (("i8", 8), ("i16", 16), ("i32", 32), ("i64", 64)):
        x, y = v.tensor(elem, (3, 6), -99, 99), np.array([0, 1, 5, bits - 1, bits, -2], numpy_type(elem))
        far, places = (y < 0) | (y >= bits), np.where((y < 0) | (y >= bits), 0, y)
        left = (x.view(f"u{bits // 8}") << places.astype(f"u{bits // 8}")).view(x.dtype)
        writer.known("BitShift", [x, y], [np.where(far, np.where(x < 0, -1, 0), x >> places).astype(x.dtype)], direction="RIGHT")
        writer.known("BitShift", [x, y], [np.where(far, 0, left).astype(x.dtype)], direction="LEFT")
    for _ in range(20):
        shape = v.shape(1, 4)
        x = v.tensor(v.choose(FLOATS), shape)
        writer.add("PRelu", [x, v.tensor("f32", v.broadcastable(shape), -1, 1).astype(x.dtype)])


FAMILIES = [unary]
