"""Cases of operators that pick, write and move elements by index, and of those that rearrange blocks."""
import numpy as np

I64 = np.int64


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
        few = np.round(v.tensor(v.choose(["f32", "i64", "f64"]), shape, -2, 2))
        # onnx.reference keeps numpy's order of inverse indices along an axis.
        writer.add("Unique", [few], results=4, sorted=v.flag(), reference=False)
        writer.add("Unique", [few.reshape(-1)], results=4, omitted=v.choose([(), (1,), (2, 3)]), axis=0, reference=False)
        rows = np.round(v.tensor("f32", (v.integer(2, 6), v.integer(1, 3)), 0, 1))
        writer.add("Unique", [rows], results=4, sorted=v.flag(), axis=0, reference=False)
        writer.add("Unique", [rows], results=4, sorted=v.flag(), axis=1, reference=False)
        batch, classes, boxes = v.integer(1, 2), v.integer(1, 3), v.integer(1, 12)
        corners = v.tensor("f32", (batch, boxes, 4), 0, 1)
        centred = np.concatenate([corners[..., :2], 0.2 + corners[..., 2:] / 2], axis=-1)
        limits = [np.array(v.choose([[0], [2], [100]]), I64), np.array([v.choose([0.0, 0.2, 0.5])], np.float32),
                  np.array([v.choose([0.0, 0.4])], np.float32)][: v.integer(0, 3)]
        scores = v.tensor("f32", (batch, classes, boxes), 0, 1)
        writer.add("NonMaxSuppression", [corners, scores, *limits], reference=False)
        writer.add("NonMaxSuppression", [centred, scores, *limits], center_point_box=1, reference=False)
    # As many boxes as detectors bring: small and large ones, equal ones, some without an area, some far away.
    for boxes in (40, 300, 1500):
        for side in (0.01, 0.2, 2.0):
            centres, sizes = v.tensor("f32", (2, boxes, 2), -1, 1), side * v.tensor("f32", (2, boxes, 2), 0.1, 2) ** 3
            centred = np.concatenate([centres, sizes], axis=-1).astype(np.float32)
            centred[:, ::9] = centred[:, ::9][:, ::-1]
            centred[:, 5::17] = centred[:, 4::17][:, : centred[:, 5::17].shape[1]]
            centred[:, 6::23, 2] = 0
            centred[0, 7::29, 0] *= 1e4
            scores = v.tensor("f32", (2, 2, boxes), 0, 1)
            limits = [np.array([v.choose([20, 10000])], I64), np.array([v.choose([0.0, 0.3, 0.6])], np.float32), np.array([0.1], np.float32)]
            writer.add("NonMaxSuppression", [centred, scores, *limits], center_point_box=1, reference=False)
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


FAMILIES = [indexing, blocks]
