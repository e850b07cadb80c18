"""Cases of configs/ops/tensor.toml and the copy of structural.toml."""
import numpy as np
from onnx import helper

from cases import ELEMS, numpy_type

MOVED = ["f32", "f64", "i32", "i64", "u8", "bool", "f16", "i8", "u16"]
I64 = np.int64


def divide(v, count):
    """A random shape with `count` elements."""
    dims = []
    while count > 1 and len(dims) < 4:
        divisors = [d for d in range(1, count + 1) if count % d == 0]
        dims.append(v.choose(divisors))
        count //= dims[-1]
    dims.append(count)
    return dims


def views(writer, v):
    for number in range(20):
        elem = v.choose(MOVED)
        x = v.distinct(elem, v.shape())
        writer.add("Identity", [x])
        writer.add("regie.Copy", [x], nodes=[helper.make_node("Identity", ["x0"], ["y0"])])
        writer.add("regie.Require", [x, np.array(number % 2 == 0)], nodes=[helper.make_node("Identity", ["x0"], ["y0"])],
                   expected=int(number % 2 == 0), message="no")
    for _ in range(40):
        shape = v.shape(0, 4)
        attrs = {"axis": v.integer(-len(shape), len(shape))} if v.flag() or not shape else {}
        x = v.distinct(v.choose(MOVED), shape)
        writer.add("Flatten", [x], reference=False, **attrs)
    for _ in range(60):
        x = v.distinct(v.choose(MOVED), v.shape(0, 4))
        target = divide(v, x.size) if x.size else [0 if d == 0 else d for d in v.rng.permutation(x.shape)]
        allow = v.flag()
        if x.size == 0:
            allow = 1
        if x.size and v.flag():
            target[v.integer(0, len(target) - 1)] = -1
        if not allow:
            target = [0 if i < x.ndim and x.shape[i] == d and v.flag() else d for i, d in enumerate(target)]
        writer.add("Reshape", [x, np.array(target, I64)], allowzero=allow)
    writer.add("Reshape", [np.zeros((1, 1), np.float32), np.zeros(0, I64)])
    writer.add("Reshape", [np.zeros((0, 3), np.float32), np.array([0, 3], I64)])
    for _ in range(40):
        shape = list(v.shape(0, 4))
        ones = [i for i, d in enumerate(shape) if d == 1]
        x = v.distinct(v.choose(MOVED), tuple(shape))
        if v.flag() or not ones:
            writer.add("Squeeze", [x])
        else:
            axes = [a - (len(shape) if v.flag() else 0) for a in ones[: v.integer(1, len(ones))]]
            writer.add("Squeeze", [x, np.array(axes, I64)])
        count = v.integer(1, 3)
        rank = len(shape) + count
        axes = v.rng.permutation(rank)[:count]
        axes = [int(a) - (rank if v.flag() else 0) for a in axes]
        writer.add("Unsqueeze", [x, np.array(axes, I64)], reference=False)


def transpose(writer, v):
    for _ in range(60):
        shape = v.shape(0, 5)
        attrs = {"perm": [int(i) for i in v.rng.permutation(len(shape))]} if v.flag() and shape else {}
        writer.add("Transpose", [v.distinct(v.choose(MOVED), shape)], **attrs)


def concat(writer, v):
    for _ in range(60):
        shape = list(v.shape(1, 4))
        axis = v.integer(0, len(shape) - 1)
        elem = v.choose(MOVED)
        parts = []
        for _ in range(v.integer(1, 4)):
            part = list(shape)
            part[axis] = v.integer(0, 4)
            parts.append(v.distinct(elem, tuple(part)))
        writer.add("Concat", parts, axis=axis - (len(shape) if v.flag() else 0))


def split(writer, v):
    for _ in range(60):
        shape = list(v.shape(1, 4, zeros=False))
        axis, count = v.integer(0, len(shape) - 1), v.integer(1, 4)
        attrs = {"axis": axis - (len(shape) if v.flag() else 0)} if v.flag() or axis else {}
        elem = v.choose(["f32", "f64", "i32", "i64", "u8", "bool"])
        if v.flag():
            sizes = [v.integer(0, 3) for _ in range(count)]
            shape[axis] = sum(sizes)
            writer.add("Split", [v.distinct(elem, tuple(shape)), np.array(sizes, I64)], results=count, **attrs)
        else:
            # Parts of one size, the last one may be smaller.
            each = v.integer(1, 4)
            shape[axis] = each * count - (v.integer(0, each - 1) if count == 1 else v.integer(0, min(each - 1, 1)))
            if -(-shape[axis] // count) * (count - 1) > shape[axis]:
                shape[axis] = each * count
            writer.add("Split", [v.distinct(elem, tuple(shape))], results=count, num_outputs=count, **attrs)


def slice_(writer, v):
    for _ in range(160):
        shape = v.shape(1, 4)
        count = v.integer(1, len(shape))
        axes = [int(a) for a in v.rng.permutation(len(shape))[:count]]
        kind = v.choose([np.int64, np.int32])
        far = int(np.iinfo(kind).max)
        starts, ends, steps = [], [], []
        with_axes, with_steps = v.flag(), v.flag()
        if not with_axes:
            axes = list(range(count))
        for axis in axes:
            n = shape[axis]
            step = v.choose([1, 1, 2, 3, -1, -2, 7]) if with_steps else 1
            steps.append(step)
            starts.append(v.choose([0, 1, v.integer(-n - 2, n + 2), far if step < 0 else -far]))
            ends.append(v.choose([n, far if step > 0 else -far, v.integer(-n - 2, n + 2), -1]))
        operands = [v.distinct(v.choose(MOVED), shape), np.array(starts, kind), np.array(ends, kind)]
        if with_axes or with_steps:
            signed = [a - (len(shape) if v.flag() else 0) for a in axes]
            operands.append(np.array(signed, kind) if with_axes else None)
        if with_steps:
            operands.append(np.array(steps, kind))
        writer.add("Slice", operands, reference=False)


def gather(writer, v):
    for _ in range(60):
        shape = v.shape(1, 4, zeros=False)
        axis = v.integer(0, len(shape) - 1)
        indices = v.rng.integers(-shape[axis], shape[axis], v.shape(0, 2)).astype(v.choose([np.int64, np.int32]))
        attrs = {"axis": axis - (len(shape) if v.flag() else 0)} if axis or v.flag() else {}
        writer.add("Gather", [v.distinct(v.choose(MOVED), shape), indices], reference=indices.size > 0, **attrs)


def expand(writer, v):
    for _ in range(40):
        shape = v.shape(0, 4)
        x = v.broadcastable(shape)
        wanted = shape
        if v.flag():  # ones in the wanted shape keep the input's size
            wanted = tuple(1 if v.flag() and len(x) == len(shape) else d for d in shape)
        writer.add("Expand", [v.distinct(v.choose(MOVED), x), np.array(wanted, I64)])


def pad(writer, v):
    for _ in range(120):
        shape = v.shape(1, 4, zeros=False)
        mode = v.choose(["constant", "constant", "reflect", "edge", "wrap"])
        elem = v.choose(["f32", "f64", "i32", "i64", "u8", "bool"])
        count = v.integer(1, len(shape)) if v.flag() else len(shape)
        axes = sorted(int(a) for a in v.rng.permutation(len(shape))[:count])
        pads = [[], []]
        for axis in axes:
            n = shape[axis]
            most = {"constant": 3, "edge": 3, "reflect": n - 1, "wrap": n}[mode]
            least = 0 if mode != "constant" else -(n // 2)
            for side in pads:
                side.append(v.integer(least, max(most, 0)))
        operands = [v.distinct(elem, shape), np.array(pads[0] + pads[1], I64)]
        value = v.tensor(elem, ()) if mode == "constant" and v.flag() else None
        if count < len(shape) or v.flag():
            signed = [a - (len(shape) if v.flag() else 0) for a in axes]
            operands += [value, np.array(signed, v.choose([np.int64, np.int32]))]
        elif value is not None:
            operands.append(value)
        attrs = {"mode": mode} if mode != "constant" or v.flag() else {}
        writer.add("Pad", operands, reference=False, **attrs)


def shapes(writer, v):
    for _ in range(20):
        x = v.tensor(v.choose(MOVED), v.shape(0, 4))
        attrs = {}
        if v.flag():
            attrs["start"] = v.integer(-5, 5)
        if v.flag():
            attrs["end"] = v.integer(-5, 5)
        writer.add("Shape", [x], reference=False, **attrs)
        writer.add("Size", [x])
    for _ in range(30):
        shape = v.shape(0, 3)
        elem = v.choose(["f32", "f64", "f16", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "bool"])
        attrs = {"value": v.tensor(elem, (1,))} if v.flag() else {}
        writer.add("ConstantOfShape", [np.array(shape, I64)], **attrs)


def reductions(writer, v):
    for op in ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceSumSquare"):
        for _ in range(50):
            elem = v.choose(["f32", "f32", "f64", "i32", "i64", "f16"] + (["i8", "u8", "bool"] if op in ("ReduceMax", "ReduceMin") else []))
            # There is nothing greater than nothing, and integers have no root.
            shape = v.shape(0, 4, zeros=op in ("ReduceSum", "ReduceProd") and elem[0] == "f")
            if op == "ReduceL2" and elem[0] == "i":
                elem = "f32"
            x = v.tensor(elem, shape)
            operands, attrs = [x], {}
            if v.flag():
                attrs["keepdims"] = v.flag()
            kind = v.integer(0, 3)
            if kind == 0 and shape:
                attrs["noop_with_empty_axes"] = v.flag()
            elif shape:
                axes = [int(a) - (len(shape) if v.flag() else 0) for a in v.rng.permutation(len(shape))[: v.integer(1, len(shape))]]
                operands.append(np.array(axes, I64))
            reference = x.size > 0 and bool(shape) and elem[0] == "f" and not attrs.get("noop_with_empty_axes")
            writer.add(op, operands, reference=reference, **attrs)
    # Sums of these do not fit where the results do.
    writer.add("ReduceL2", [np.array([50000], np.int32)], reference=False)
    writer.add("ReduceL2", [np.array([[30000, 40000], [-3, 4]], np.int32), np.array([1], I64)], reference=False)
    writer.add("ReduceMean", [np.array([2147483647, 3, 2147483647, 2], np.int32)], reference=False)
    for op in ("ArgMax", "ArgMin"):
        for _ in range(40):
            shape = v.shape(1, 4, zeros=False)
            attrs = {}
            if v.flag():
                attrs["axis"] = v.integer(-len(shape), len(shape) - 1)
            if v.flag():
                attrs["keepdims"] = v.flag()
            if v.flag():
                attrs["select_last_index"] = v.flag()
            x = v.tensor(v.choose(["f32", "f64", "i32", "i8", "u8", "f16"]), shape, -2, 2)
            writer.add(op, [np.round(x.astype(np.float32)).astype(x.dtype)], reference=False, **attrs)


FAMILIES = [views, transpose, concat, split, slice_, gather, expand, pad, shapes, reductions]
