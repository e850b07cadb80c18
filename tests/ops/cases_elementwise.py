"""Cases of configs/ops/elementwise.toml."""
import numpy as np

from cases import ELEMS, numpy_type

SPECIAL = [0.0, -0.0, 0.5, -0.5, 1.5, 2.5, -2.5, 1e-30, -1e-30, 80.0, -80.0, np.inf, -np.inf, np.nan]


def unary(writer, v):
    attrs = {"LeakyRelu": ["alpha"], "HardSigmoid": ["alpha", "beta"], "Elu": ["alpha"]}
    ops = ["Relu", "LeakyRelu", "Sigmoid", "Tanh", "HardSigmoid", "HardSwish", "Elu", "Erf", "Exp", "Log", "Sqrt",
           "Reciprocal", "Floor", "Ceil", "Round", "Abs", "Neg"]
    for op in ops:
        for elem in writer.schemas[op].types_of():
            if op == "Erf" and elem not in ("f16", "bf16", "f32", "f64"):
                continue  # nobody computes it on integers
            for _ in range(6):
                x = v.tensor(elem, v.shape())
                given = {a: float(np.float32(v.rng.uniform(-2, 2))) for a in attrs.get(op, []) if v.flag()}
                writer.add(op, [x], **given)
        # onnx.reference's formulas make NaN of infinities here; HardSwish and Elu likewise.
        specials = np.array(SPECIAL, np.float32)
        if op in ("HardSwish", "HardSigmoid", "Relu", "LeakyRelu", "Elu"):
            specials = specials[np.isfinite(specials)]
        writer.add(op, [specials], reference=op not in ("Sigmoid", "Erf"))
    for _ in range(8):
        writer.add("Not", [v.tensor("bool", v.shape())])


def extremes(writer, _):
    for name in ("i32", "i64", "i8"):
        info = np.iinfo(numpy_type(name))
        x = np.array([info.min, info.max, 0, -1], numpy_type(name))
        writer.add("Neg", [x])
        writer.add("Add", [x, x[::-1].copy()])
        writer.add("Sub", [x, np.array([1], x.dtype)])
        writer.add("Mul", [x, np.array(3, x.dtype)])


def clip(writer, v):
    for elem in writer.schemas["Clip"].types_of():
        for bounds in ((None, None), (1, None), (None, 2), (1, 2), (2, 1)):
            low, high = (None if b is None else np.array(b, numpy_type(elem)) for b in bounds)
            writer.add("Clip", [v.tensor(elem, v.shape()), low, high])


def binary(writer, v):
    for op in ("Add", "Sub", "Mul", "Div"):
        for elem in writer.schemas[op].types_of():
            for _ in range(8):
                shape = v.shape(0, 5)
                a, b = shape, v.broadcastable(shape)
                if v.flag():
                    a, b = b, a
                low = 1 if op == "Div" and elem[0] in "iu" else -4
                x, y = v.tensor(elem, a, -9, 9), v.tensor(elem, b, low, 9)
                if op == "Div" and elem[0] == "i":
                    y = y * v.choose([1, -1])
                    y = y.astype(x.dtype)
                # onnx.reference divides integers by numpy's rules, which round down.
                writer.add(op, [x, y], reference=not (op == "Div" and elem[0] == "i" and writer_has(elem)))
    writer.add("Div", [np.array([1.0, -1.0, 0.0], np.float32), np.array(0.0, np.float32)])
    for op in ("And", "Or", "Xor"):
        for _ in range(8):
            shape = v.shape(0, 4)
            writer.add(op, [v.tensor("bool", shape), v.tensor("bool", v.broadcastable(shape))])


def writer_has(elem):
    """Does ONNX Runtime divide this type?"""
    return elem in ("i32", "i64", "i8")


def two_sided(writer, v):
    """Both operands are stretched."""
    for op in ("Add", "Less"):
        writer.add(op, [v.tensor("f32", (3, 1, 5)), v.tensor("f32", (4, 1))])
        writer.add(op, [v.tensor("f32", (1, 4)), v.tensor("f32", (2, 3, 1))])
        writer.add(op, [v.tensor("i64", (0, 1)), v.tensor("i64", (1, 3))])
        writer.add(op, [v.tensor("f32", ()), v.tensor("f32", ())])


def compare(writer, v):
    for op in ("Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual"):
        for elem in writer.schemas[op].types_of():
            if elem == "string":
                continue
            for _ in range(3):
                shape = v.shape(0, 4)
                writer.add(op, [v.tensor(elem, shape, -2, 2), v.tensor(elem, v.broadcastable(shape), -2, 2)])
        x = np.array([np.nan, 1, np.inf, -0.0], np.float32)
        writer.add(op, [x, x])
        writer.add(op, [x, np.zeros(4, np.float32)])


def power(writer, v):
    for base in writer.schemas["Pow"].types_of():
        for exponent in ("f32", "f64", "i32", "i64", "u8", "f16"):
            shape = v.shape(0, 3)
            x = v.tensor(base, shape, 0.1 if exponent[0] == "f" else -4, 4)
            y = v.tensor(exponent, v.broadcastable(shape), 0 if base[0] == "i" else -3, 3)
            # Both references must see a mixture of 16-bit floats and others in one type.
            if "16" in base + exponent and base != exponent:
                if base not in ("f16", "bf16"):
                    continue
                y = v.tensor("f32", y.shape, -3, 3)
            if base[0] == "i" and exponent in ("u8", "f16"):
                continue  # onnx.reference computes these in the exponent's type, ONNX Runtime not at all
            writer.add("Pow", [x, y], reference=base[0] != "i")


def extremum(writer, v):
    for op in ("Min", "Max"):
        for elem in writer.schemas[op].types_of():
            for count in (1, 2, 3, 4):
                shape = v.shape(0, 4)
                operands = [v.tensor(elem, v.broadcastable(shape)) for _ in range(count - 1)] + [v.tensor(elem, shape)]
                writer.add(op, operands)
        writer.add(op, [np.array([np.nan, 1, 2], np.float32), np.array([0, np.nan, 3], np.float32)])


def where(writer, v):
    for elem in writer.schemas["Where"].types_of():
        if elem not in ("f32", "f64", "i32", "i64", "u8", "bool", "f16"):
            continue
        for _ in range(4):
            shape = v.shape(0, 4)
            operands = [v.tensor("bool", v.broadcastable(shape)), v.tensor(elem, shape), v.tensor(elem, v.broadcastable(shape))]
            writer.add("Where", operands)


def cast(writer, v):
    names = ["f32", "f64", "f16", "bf16", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "bool"]

    def add(x, target):
        if target == "bf16":  # ONNX Runtime cannot hand it out
            writer.known("Cast", [x], [x.astype(np.float32).astype(numpy_type(target))], to=ELEMS[target][0])
        else:
            writer.add("Cast", [x], to=ELEMS[target][0])

    for source in names:
        for target in names:
            low = 0 if target[0] == "u" or source[0] == "u" else -100
            x = v.tensor(source, v.shape(), low, 100)
            add(x, target)
    # More than one chunk of the kernel, and rounding to 16 bits: ties, subnormals, overflow.
    edge = np.concatenate([np.float32([65504, 65519.996, 65520, 1e6, np.inf, -np.inf, np.nan, 2**-24, 2**-25, 3 * 2**-25,
                                       2**-26, 1 + 2**-11, 1 + 3 * 2**-11, 0, -0.0, 6.1e-5, 6.0e-5]),
                           v.tensor("f32", (700,), -70000, 70000), v.tensor("f32", (300,), -1e-4, 1e-4)])
    writer.add("Cast", [edge.astype(np.float32)], to=10)
    add(edge.astype(np.float32), "bf16")
    writer.add("Cast", [np.array([2**53 + 1, -(2**53) - 1, 2**62 + 1], np.int64)], to=1)
    writer.add("Cast", [np.array([2**64 - 1, 2**63], np.uint64)], to=1)
    writer.add("Cast", [np.array([300, -1, 2**40 + 5], np.int64)], to=2)
    writer.add("Cast", [np.array([0.3, -0.0, np.nan, 7], np.float32)], to=9)


FAMILIES = [unary, extremes, clip, binary, two_sided, compare, power, extremum, where, cast]
