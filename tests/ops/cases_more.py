"""Cases of the operators beyond the first: mathematics, normalisation, recurrent layers, resizing, indexing, sampling, signals,
quantised numbers."""
import numpy as np

from cases import ELEMS, numpy_type

FLOATS = ["f32", "f32", "f32", "f64", "f16", "bf16"]
I64 = np.int64


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
    for _ in range(20):
        shape = v.shape(1, 4)
        x = v.tensor(v.choose(FLOATS), shape)
        writer.add("PRelu", [x, v.tensor("f32", v.broadcastable(shape), -1, 1).astype(x.dtype)])


def norms(writer, v):
    for _ in range(30):
        elem, shape = v.choose(FLOATS), v.shape(1, 4, zeros=False)
        axis = v.integer(0, len(shape) - 1)
        x, part = v.tensor(elem, shape), shape[axis:]
        given = {"axis": axis - (len(shape) if v.flag() else 0), "epsilon": v.choose([1e-5, 0.01])}
        scale = v.tensor(elem, part, 0.5, 1.5)
        bias = v.tensor(elem, part, -1, 1) if v.flag() else None
        # The mean and the inverse deviation are of f32 whatever the input is; ONNX Runtime gives them for f32 only.
        count = v.choose([1, 3]) if elem == "f32" else 1
        if elem == "f64":
            count = 1
        writer.add("LayerNormalization", [x, scale, bias], results=count, tolerance=1e-4, reference=False, **given)
        writer.add("RMSNormalization", [x, scale], tolerance=1e-4, **given)
    for _ in range(25):
        elem, groups = v.choose(FLOATS), v.integer(1, 3)
        channels = groups * v.integer(1, 3)
        shape = (v.integer(1, 2), channels, *[v.integer(2, 5) for _ in range(v.integer(1, 3))])
        parameters = [v.tensor(elem, (channels,), 0.5, 1.5), v.tensor(elem, (channels,), -1, 1)]
        writer.add("InstanceNormalization", [v.tensor(elem, shape), *parameters], tolerance=1e-4)
        writer.add("GroupNormalization", [v.tensor(elem, shape), *parameters], tolerance=1e-4, num_groups=groups, epsilon=0.01)
        if len(shape) == 4 and elem != "f64":  # what ONNX Runtime has
            writer.add("LRN", [v.tensor(elem, shape)], reference=False, size=v.choose([1, 3, 5]), alpha=0.1, beta=0.6, bias=1.5)
        if len(shape) == 4 and elem != "f64":
            writer.add("MeanVarianceNormalization", [v.tensor(elem, shape)], tolerance=1e-4, **v.choose([{}, {"axes": [0, 2, 3]}, {"axes": [2, 3]}]))
    for _ in range(20):
        shape = v.shape(1, 4, zeros=False)
        axis = {"axis": v.integer(-len(shape), len(shape) - 1)} if v.flag() else {}
        writer.add("LpNormalization", [v.tensor(v.choose(["f32", "f64"]), shape)], p=v.choose([1, 2]), tolerance=2e-5, reference=False, **axis)  # onnx.reference takes no absolute values
        writer.add("Hardmax", [v.distinct(v.choose(["f32", "f64"]), shape)], reference=False, **axis)


def recurrent(writer, v):
    for op, gates, states, functions in (("RNN", 1, 1, 1), ("GRU", 3, 1, 2), ("LSTM", 4, 2, 3)):
        for _ in range(40):
            steps, batch, width, hidden = v.integer(1, 5), v.integer(1, 3), v.integer(1, 4), v.integer(1, 6)
            direction = v.choose(["forward", "reverse", "bidirectional"])
            count = 2 if direction == "bidirectional" else 1
            given = {"direction": direction, "hidden_size": hidden}
            operands = [v.tensor("f32", (steps, batch, width), -1, 1), v.tensor("f32", (count, gates * hidden, width), -1, 1),
                        v.tensor("f32", (count, gates * hidden, hidden), -1, 1)]
            operands.append(v.tensor("f32", (count, 2 * gates * hidden), -1, 1) if v.flag() else None)
            operands.append(v.rng.integers(1, steps + 1, batch).astype(np.int32) if v.flag() else None)
            for _ in range(states):
                operands.append(v.tensor("f32", (count, batch, hidden), -1, 1) if v.flag() else None)
            if op == "LSTM":
                operands.append(v.tensor("f32", (count, 3 * hidden), -1, 1) if v.flag() else None)
                if v.integer(0, 3) == 0:
                    given["input_forget"] = 1
            if op == "GRU" and v.flag():
                given["linear_before_reset"] = v.flag()
            if v.integer(0, 3) == 0:
                given["clip"] = 0.6
            if v.integer(0, 2) == 0:
                given["activations"] = [v.choose(["Relu", "Tanh", "Sigmoid", "Softsign", "Softplus", "HardSigmoid", "Elu", "LeakyRelu"]) for _ in range(functions * count)]
            # onnx.reference knows the plain cases only. Omitted results come with it.
            writer.add(op, operands, results=states + 1, reference=False, tolerance=2e-5, **given)
            if v.integer(0, 3) == 0:
                last = [r for r in range(states + 1) if v.flag()][:states]
                writer.add(op, operands, results=states + 1, omitted=tuple(r for r in last if r < states), reference=False, tolerance=2e-5, **given)
    layout(writer, v)


def layout(writer, v):
    """Batch first, which ONNX Runtime lacks: what it says of the steps first, with the axes exchanged."""
    from onnx import helper
    for op, gates, states in (("RNN", 1, 1), ("GRU", 3, 1), ("LSTM", 4, 2)):
        for direction, count in (("forward", 1), ("bidirectional", 2)):
            operands = [v.tensor("f32", (2, 4, 3), -1, 1), v.tensor("f32", (count, gates * 5, 3), -1, 1), v.tensor("f32", (count, gates * 5, 5), -1, 1), None, None,
                        *[v.tensor("f32", (2, count, 5), -1, 1) for _ in range(states)]]
            inputs = ["x", "x1", "x2", "", "", *[f"s{i}" for i in range(states)]]
            nodes = [helper.make_node("Transpose", ["x0"], ["x"], perm=[1, 0, 2])]
            nodes += [helper.make_node("Transpose", [f"x{5 + i}"], [f"s{i}"], perm=[1, 0, 2]) for i in range(states)]
            nodes.append(helper.make_node(op, inputs, ["t", *[f"t{i}" for i in range(states)]], hidden_size=5, direction=direction))
            nodes.append(helper.make_node("Transpose", ["t"], ["y0"], perm=[2, 0, 1, 3]))
            nodes += [helper.make_node("Transpose", [f"t{i}"], [f"y{i + 1}"], perm=[1, 0, 2]) for i in range(states)]
            writer.add(op, operands, results=states + 1, nodes=nodes, reference=False, tolerance=2e-5, hidden_size=5, direction=direction, layout=1)


def resize(writer, v):
    coordinates = ["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "half_pixel_symmetric"]
    for _ in range(140):
        mode = v.choose(["nearest", "nearest", "linear", "cubic"])
        shape = (1, v.integer(1, 2), v.integer(2, 6), v.integer(2, 6))
        given = {"mode": mode, "coordinate_transformation_mode": v.choose(coordinates)}
        if mode == "nearest":
            given["nearest_mode"] = v.choose(["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])
        if mode == "cubic":
            given["cubic_coeff_a"] = v.choose([-0.75, -0.5])
            given["exclude_outside"] = v.flag()
        elem = v.choose(["f32", "f32", "u8", "i32", "f16"] if mode == "nearest" else ["f32"])
        x = v.distinct(elem, shape) if mode == "nearest" else v.tensor(elem, shape)
        if v.flag():
            sizes = np.array([1, shape[1], v.integer(1, 9), v.integer(1, 9)], I64)
            operands = [x, None, None, sizes]
        else:
            operands = [x, None, np.array([1, 1, v.choose([0.5, 1.5, 2, 0.75, 3]), v.choose([2, 0.6, 1.25, 1])], np.float32)]
        writer.add("Resize", operands, reference=False, tolerance=1e-4, **given)
    for _ in range(10):  # other ranks, and positions in a region
        x = v.tensor("f32", (2, 3, v.integer(2, 8)))
        writer.add("Resize", [x, None, np.array([1, 1, v.choose([0.5, 2, 1.5])], np.float32)], mode=v.choose(["nearest", "linear"]), reference=False, tolerance=1e-4)
        region = np.array([0, 0, 0.1, 0.2, 1, 1, v.rng.uniform(0.5, 1.2), v.rng.uniform(0.5, 1.2)], np.float32)
        writer.add("Resize", [v.tensor("f32", (1, 2, 5, 6)), region, None, np.array([1, 2, 4, 3], I64)], mode="linear", extrapolation_value=2.5,
                   coordinate_transformation_mode="tf_crop_and_resize", reference=False, tolerance=1e-4)


def indexing(writer, v):
    for _ in range(30):
        shape = v.shape(1, 4, zeros=False)
        axis = v.integer(0, len(shape) - 1)
        wanted = tuple(v.integer(1, 4) if i == axis else v.integer(1, d) for i, d in enumerate(shape))
        kind = v.choose([np.int64, np.int32])
        indices = v.rng.integers(-shape[axis], shape[axis], wanted).astype(kind)
        writer.add("GatherElements", [v.distinct(v.choose(["f32", "i64", "u8", "f64"]), shape), indices], axis=axis, reference=False)
        # Without repetition: the order of writing is open.
        size = v.integer(1, shape[axis])
        target = tuple(size if i == axis else v.integer(1, d) for i, d in enumerate(shape))
        order = np.argsort(v.rng.random(target[:axis] + (shape[axis],) + target[axis + 1:]), axis=axis)
        unique = np.take(order, np.arange(size), axis=axis).astype(I64)
        how = v.choose(["none", "add", "mul", "max", "min"])
        elem = v.choose(["f32", "i32", "i64", "f64"])
        writer.add("ScatterElements", [v.tensor(elem, shape), unique, v.tensor(elem, target)], axis=axis, reduction=how, reference=False)
    for _ in range(30):
        shape = v.shape(2, 4, zeros=False)
        batch = v.integer(0, 1)
        depth = v.integer(1, len(shape) - batch)
        rows = (*shape[:batch], v.integer(1, 4))
        indices = np.stack([v.rng.integers(-d, d, rows) for d in shape[batch:batch + depth]], axis=-1).astype(I64)
        writer.add("GatherND", [v.distinct(v.choose(["f32", "i64", "i32"]), shape), indices], batch_dims=batch, reference=False)
        flat = v.rng.permutation(int(np.prod(shape[:depth])))[: v.integer(1, 4)]
        places = np.stack(np.unravel_index(flat, shape[:depth]), axis=-1).astype(I64)
        elem = v.choose(["f32", "i64"])
        writer.add("ScatterND", [v.tensor(elem, shape), places, v.tensor(elem, (len(flat), *shape[depth:]))], reduction=v.choose(["none", "add", "mul", "max", "min"]), reference=False)
    for _ in range(20):
        indices = v.rng.integers(-3, 4, v.shape(1, 3, zeros=False)).astype(v.choose([np.int64, np.int32]))
        values = v.choose([np.array([0, 1], np.float32), np.array([3, 7], I64)])
        writer.add("OneHot", [indices.astype(I64), np.array(v.integer(4, 6), I64), values], axis=v.integer(-indices.ndim - 1, indices.ndim), reference=False)
        kind = v.choose([np.int64, np.int32, np.float32])
        start, limit, step = v.integer(-5, 5), v.integer(-5, 9), v.choose([1, 2, -1, -3])
        writer.add("Range", [np.array(x, kind) for x in (start, limit, step)])
        shape = v.shape(1, 4, zeros=False)
        x = v.tensor(v.choose(["f32", "f64", "i32", "i64"]), shape)
        writer.add("CumSum", [x, np.array(v.integer(-len(shape), len(shape) - 1), v.choose([np.int64, np.int32]))], exclusive=v.flag(), reverse=v.flag(), reference=False)
        writer.add("CumProd", [v.tensor("f32", shape, 0.5, 1.5), np.array(v.integer(0, len(shape) - 1), I64)], exclusive=v.flag(), reverse=v.flag())
        matrix = v.distinct(v.choose(["f32", "i64", "i32"]), (*v.shape(0, 2, zeros=False), v.integer(1, 5), v.integer(1, 5)))
        writer.add("Trilu", [matrix] + ([np.array(v.integer(-6, 6), I64)] if v.flag() else []), upper=v.flag())
        writer.add("EyeLike", [v.tensor("f32", (v.integer(1, 5), v.integer(1, 5)))], k=v.integer(-3, 3), **v.choose([{}, {"dtype": 7}, {"dtype": 11}]))
        writer.add("Tile", [v.distinct(v.choose(["f32", "i64", "u8", "bool"]), shape), np.array([v.integer(0 if v.integer(0, 9) == 0 else 1, 3) for _ in shape], I64)])
        axis = v.integer(0, len(shape) - 1)
        ties = np.round(v.tensor("f32", shape, -2, 2)) if v.flag() else v.tensor("f32", shape)
        writer.add("TopK", [ties, np.array([v.integer(1, shape[axis])], I64)], results=2, axis=axis, largest=v.flag(), reference=False)
        sequences = (v.integer(1, 5), v.integer(1, 4), *v.shape(0, 2, zeros=False))
        writer.add("ReverseSequence", [v.distinct("f32", sequences), v.rng.integers(1, sequences[0] + 1, sequences[1]).astype(I64)])
        writer.add("NonZero", [v.tensor(v.choose(["f32", "i64", "bool", "u8"]), shape, -1, 1)])
        condition = v.rng.integers(0, 2, shape[axis]).astype(bool)
        writer.add("Compress", [v.distinct("f32", shape), condition], axis=axis)
        writer.add("Compress", [v.distinct("i64", shape), condition], reference=False)
    for _ in range(10):
        batch, rows, size = v.integer(1, 3), v.integer(1, 3), v.integer(3, 6)
        cache, update = v.distinct("f32", (batch, 2, size, 3)), v.tensor("f32", (batch, 2, rows, 3))
        mode = v.choose(["linear", "circular"])
        places = v.rng.integers(0, size if mode == "circular" else size - rows + 1, batch).astype(I64)
        writer.add("TensorScatter", [cache, update] + ([places] if v.flag() else []), mode=mode)
    for op in ("ReduceLogSum", "ReduceLogSumExp"):
        for _ in range(25):
            shape = v.shape(1, 4, zeros=False)
            operands = [v.tensor(v.choose(["f32", "f64", "f16"]), shape, 0.1, 4 if op == "ReduceLogSum" else 8)]
            if v.flag():
                operands.append(np.array([v.integer(-len(shape), len(shape) - 1)], I64))
            writer.add(op, operands, keepdims=v.flag(), tolerance=2e-5, reference=False)
    writer.add("ReduceLogSumExp", [np.array([1000, 1001, -5], np.float32)], reference=False)


def blocks(writer, v):
    for _ in range(15):
        b, elem = v.integer(1, 3), v.choose(["f32", "f64"])
        writer.add("DepthToSpace", [v.distinct(elem, (v.integer(1, 2), b * b * v.integer(1, 3), v.integer(1, 3), v.integer(1, 3)))], blocksize=b, mode=v.choose(["DCR", "CRD"]))
        writer.add("SpaceToDepth", [v.distinct(elem, (v.integer(1, 2), v.integer(1, 3), b * v.integer(1, 3), b * v.integer(1, 3)))], blocksize=b)
        kernel = [v.integer(1, 3) for _ in range(2)]
        image = (v.integer(1, 2), v.integer(1, 3), v.integer(4, 7), v.integer(4, 7))
        writer.add("LpPool", [v.tensor("f32", image)], kernel_shape=kernel, p=v.choose([1, 2]), strides=[v.integer(1, 2), v.integer(1, 2)], reference=False)
        writer.add("GlobalLpPool", [v.tensor("f32", image)], p=v.choose([1, 2, 3]), reference=False)
        pooled = v.distinct("f32", (1, v.integer(1, 2), 2, 3))
        places = np.stack([v.rng.permutation(24)[:6].reshape(2, 3) + 24 * c for c in range(pooled.shape[1])])[None].astype(I64)
        writer.add("MaxUnpool", [pooled, places], kernel_shape=[2, 2], strides=[2, 2], reference=False)
        size = [v.integer(3, 6), v.integer(3, 6)]
        block = [v.integer(1, 3), v.integer(1, 3)]
        strides, pads = [v.integer(1, 2), v.integer(1, 2)], [v.integer(0, 1) for _ in range(4)]
        count = int(np.prod([(s + pads[i] + pads[i + 2] - k) // t + 1 for i, (s, k, t) in enumerate(zip(size, block, strides))]))
        writer.add("Col2Im", [v.tensor("f32", (1, 2 * block[0] * block[1], count)), np.array(size, I64), np.array(block, I64)], strides=strides, pads=pads, reference=False)
        shape = v.shape(1, 3, zeros=False)
        writer.add("CenterCropPad", [v.distinct("f32", shape), np.array([v.integer(1, 7) for _ in shape], I64)], reference=False)


def sampling(writer, v):
    for _ in range(30):
        grid = v.rng.uniform(-1.5, 1.5, (2, v.integer(1, 4), v.integer(1, 4), 2)).astype(np.float32)
        writer.add("GridSample", [v.tensor("f32", (2, 2, v.integer(2, 5), v.integer(2, 5))), grid], mode=v.choose(["linear", "nearest", "cubic"]),
                   padding_mode=v.choose(["zeros", "border", "reflection"]), align_corners=v.flag(), reference=False, tolerance=1e-3)
        corner = v.rng.uniform(0, 3, (3, 2))
        rois = np.concatenate([corner, corner + v.rng.uniform(0.5, 4, (3, 2))], axis=1).astype(np.float32)
        writer.add("RoiAlign", [v.tensor("f32", (2, 2, 6, 7)), rois, v.rng.integers(0, 2, 3).astype(I64)], output_height=v.integer(1, 3), output_width=v.integer(1, 3),
                   sampling_ratio=v.integer(0, 2), mode=v.choose(["avg", "max"]), coordinate_transformation_mode=v.choose(["half_pixel", "output_half_pixel"]),
                   spatial_scale=v.choose([1.0, 0.5]), reference=False, tolerance=1e-4)
        boxes = np.concatenate([v.rng.integers(0, 2, (3, 1)), np.floor(corner), np.floor(corner) + v.rng.integers(0, 5, (3, 2))], axis=1).astype(np.float32)
        writer.add("MaxRoiPool", [v.tensor("f32", (2, 2, 8, 8)), boxes], pooled_shape=[v.integer(1, 3), v.integer(1, 3)], reference=False)
        writer.add("AffineGrid", [v.tensor("f32", (2, 2, 3)), np.array([2, 1, v.integer(2, 4), v.integer(2, 4)], I64)], align_corners=v.flag(), tolerance=1e-4)


def products(writer, v):
    sizes = {c: v.integer(1, 4) for c in "abcdij"}
    for equation in ("ab,bc->ac", "abc,acd->abd", "ab->ba", "ab->", "aa->a", "ab,ab->a", "a,b->ab", "abc,cd", "ab,bc,cd->ad", "abij,cbij->aci", "...ab,...bc->...ac", "a...,a...->...", "abij,acij->abc"):
        for elem in ("f32", "f64", "i32"):
            operands = []
            for term in equation.split("->")[0].split(","):
                hidden = term.index("...") if "..." in term else None
                dims = [sizes[c] for c in term.replace("...", "")]
                if hidden is not None:
                    dims[hidden:hidden] = [2, 3]
                operands.append(v.tensor(elem, dims))
            writer.add("Einsum", operands, equation=equation, tolerance=1e-4, reference=elem != "i32")
    for _ in range(25):
        shape = (v.integer(1, 3), v.integer(2, 4), *v.shape(0, 2, zeros=False))
        scores, classes = v.tensor("f32", shape, -3, 0), v.rng.integers(0, shape[1], (shape[0], *shape[2:])).astype(I64)
        weight = v.tensor("f32", (shape[1],), 0.2, 1.5) if v.flag() else None
        given = {"reduction": v.choose(["mean", "sum", "none"])}
        if v.flag() and (classes != 0).any():
            given["ignore_index"] = 0
        writer.add("NegativeLogLikelihoodLoss", [scores, classes, weight], reference=False, tolerance=1e-4, **given)
        writer.add("SoftmaxCrossEntropyLoss", [scores, classes, weight], results=v.choose([1, 2]), reference=False, tolerance=1e-4, **given)
    for n in (1, 2, 3, 5):
        writer.add("Det", [v.tensor("f32", (2, n, n))], tolerance=1e-4)
    for _ in range(25):
        heads, kv, flat = v.choose([(2, 2), (4, 2), (3, 1)]) + (v.flag(),)
        batch, steps, fresh, size, wide = v.integer(1, 2), v.integer(1, 4), v.integer(1, 4), v.choose([2, 4]), v.choose([2, 4])
        if flat:
            operands = [v.tensor("f32", (batch, steps, heads * size)), v.tensor("f32", (batch, fresh, kv * size)), v.tensor("f32", (batch, fresh, kv * wide))]
            given = {"q_num_heads": heads, "kv_num_heads": kv}
        else:
            operands = [v.tensor("f32", (batch, heads, steps, size)), v.tensor("f32", (batch, kv, fresh, size)), v.tensor("f32", (batch, kv, fresh, wide))]
            given = {}
        past = v.integer(1, 3) if v.flag() else 0
        mask_shape = v.choose([(steps, past + fresh), (heads, steps, past + fresh), (batch, 1, steps, past + fresh)])
        mask = v.choose([None, v.tensor("f32", mask_shape), v.rng.integers(0, 4, mask_shape) > 0])
        operands += [mask]
        if past:
            operands += [v.tensor("f32", (batch, kv, past, size)), v.tensor("f32", (batch, kv, past, wide))]
        if v.flag():
            given["is_causal"] = 1
        if v.flag():
            given["softcap"] = 0.8
        # onnx.reference alone: its text of the operator is the newest.
        writer.add("Attention", operands, results=3 if past else 1, runtime=False, tolerance=1e-4, **given)
        half = size // 2
        x = v.tensor("f32", (batch, heads, steps, size))
        cache = [v.tensor("f32", (9, half)), v.tensor("f32", (9, half)), v.rng.integers(0, 9, (batch, steps)).astype(I64)]
        writer.add("RotaryEmbedding", [x, *cache], interleaved=v.flag(), tolerance=1e-4)


def signals(writer, v):
    for _ in range(20):
        length = v.integer(2, 9)
        x = v.tensor("f32", (2, length, v.choose([1, 2])))
        inverse = v.flag() if x.shape[-1] == 2 else 0
        writer.add("DFT", [x, None, np.array(1, I64)], inverse=inverse, onesided=0 if inverse or x.shape[-1] == 2 else v.flag(), tolerance=1e-4, reference=False)
        frame, step = v.choose([4, 8]), v.integer(1, 4)
        writer.add("STFT", [v.tensor("f32", (1, 24, 1)), np.array(step, I64), v.tensor("f32", (frame,), 0, 1)], onesided=v.flag(), tolerance=1e-4, reference=False)
        for op in ("HannWindow", "HammingWindow", "BlackmanWindow"):
            writer.add(op, [np.array(v.integer(3, 12), I64)], periodic=v.flag(), tolerance=1e-4, reference=False)
    for bins, length, rate in ((4, 64, 8000), (10, 256, 16000)):
        writer.add("MelWeightMatrix", [np.array(bins, I64), np.array(length, I64), np.array(rate, I64), np.array(20, np.float32), np.array(rate / 2, np.float32)], reference=False, tolerance=1e-4)


def quantized(writer, v):
    for _ in range(20):
        low, kind = v.choose([(0, np.uint8), (-100, np.int8)])
        shape = v.shape(2, 4, zeros=False)
        scale, zero = np.array(v.rng.uniform(0.01, 0.1), np.float32), np.array(v.integer(low, low + 100), kind)
        writer.add("QuantizeLinear", [v.tensor("f32", shape), scale, zero], reference=False)
        axis = v.integer(0, len(shape) - 1)
        scales = v.tensor("f32", (shape[axis],), 0.01, 0.1)
        zeros = v.rng.integers(low, low + 100, shape[axis]).astype(kind)
        writer.add("QuantizeLinear", [v.tensor("f32", shape), scales, zeros], axis=axis, reference=False)
        x = v.rng.integers(np.iinfo(kind).min, np.iinfo(kind).max + 1, shape).astype(kind)
        writer.add("DequantizeLinear", [x, scale, zero], reference=False)
        writer.add("DequantizeLinear", [x, scales, zeros], axis=axis - len(shape), reference=False)
        writer.add("DynamicQuantizeLinear", [v.tensor("f32", shape)], results=3, reference=False)
        m, k, n = v.integer(1, 4), v.integer(1, 6), v.integer(1, 4)
        a = v.rng.integers(0, 256, (2, m, k)).astype(np.uint8)
        b = v.rng.integers(np.iinfo(kind).min, np.iinfo(kind).max + 1, (k, n)).astype(kind)
        writer.add("MatMulInteger", [a, b, np.array(v.integer(0, 200), np.uint8), zero], reference=False)
        writer.add("QLinearMatMul", [a, scale, np.array(128, np.uint8), b, scale, zero, np.array(0.7, np.float32), np.array(120, np.uint8)], reference=False)
        group = v.integer(1, 2)
        image = v.rng.integers(0, 256, (1, 2 * group, 5, 6)).astype(np.uint8)
        weight = v.rng.integers(0, 256, (2 * group, 2, 3, 2)).astype(np.uint8)
        given = {"group": group, "pads": [v.integer(0, 1) for _ in range(4)], "strides": [v.integer(1, 2)] * 2}
        writer.add("ConvInteger", [image, weight, np.array(9, np.uint8)], reference=False, **given)
        writer.add("QLinearConv", [image, scale, np.array(9, np.uint8), weight, scale, np.array(100, np.uint8), np.array(1.3, np.float32), np.array(77, np.uint8),
                                   v.rng.integers(-500, 500, 2 * group).astype(np.int32)], reference=False, **given)


FAMILIES = [unary, norms, recurrent, resize, indexing, blocks, sampling, products, signals, quantized]
