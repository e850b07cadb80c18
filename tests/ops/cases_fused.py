"""Cases of configs/ops/fused.toml that are no single product or convolution: their meaning in ONNX's operators."""
import numpy as np
from onnx import helper

from values import FLOATS


def attention(writer, v):
    for number in range(60):
        elem = v.choose(FLOATS)
        batch = v.shape(0, 3)
        queries, keys, depth, columns = (v.choose([1, 2, 3, 5, 8]) for _ in range(4))
        sides = [v.broadcastable(batch), v.broadcastable(batch), v.broadcastable(batch)]
        sides[v.integer(0, 2)] = batch
        swapped = v.flag()
        q = v.tensor(elem, (*sides[0], queries, depth), -2, 2)
        k = v.tensor(elem, (*sides[1], depth, keys) if swapped else (*sides[1], keys, depth), -2, 2)
        v_ = v.tensor(elem, (*sides[2], keys, columns), -2, 2)
        scale = v.choose([1.0, 0.125, float(np.float32(1 / np.sqrt(depth)))])
        order = [*range(k.ndim - 2), k.ndim - 1, k.ndim - 2]
        nodes = [] if swapped else [helper.make_node("Transpose", ["x1"], ["kt"], perm=order)]
        nodes += [helper.make_node("MatMul", ["x0", "x1" if swapped else "kt"], ["p"]),
                  helper.make_node("Constant", [], ["c"], value_float=scale), helper.make_node("CastLike", ["c", "x0"], ["ct"]),
                  helper.make_node("Mul", ["p", "ct"], ["scaled"])]
        last, mask = "scaled", None
        if v.flag():
            scores = (*np.broadcast_shapes(sides[0], sides[1]), queries, keys)
            mask = v.tensor(elem, v.broadcastable(scores), -3, 3)
            if number % 3 == 0 and keys > 1:  # some keys are not seen at all
                mask = np.broadcast_to(mask, np.broadcast_shapes(mask.shape, (keys,))).copy()
                mask[..., v.integer(0, keys - 1)] = -np.inf
            nodes.append(helper.make_node("Add", ["scaled", "x3"], ["masked"]))
            last = "masked"
        nodes += [helper.make_node("Softmax", [last], ["s"], axis=-1), helper.make_node("MatMul", ["s", "x2"], ["y0"])]
        writer.add("regie.Attention", [q, k, v_, mask], nodes=nodes, reference=False, scale=scale, transpose_k=swapped)


# Scales are powers of two and sums small: floats are exact, and no result depends on how they are summed.
def quantised_products(writer, v):
    def scale(*shape):
        return np.array(2.0 ** v.rng.integers(-5, -1, shape), np.float32)

    for number in range(40):
        x_type, w_type, y_type = (v.choose([np.uint8, np.int8]) for _ in range(3))
        conv, channels = number % 2 == 0, v.integer(1, 2)
        integers = lambda kind, shape: v.rng.integers(np.iinfo(kind).min, np.iinfo(kind).max + 1, shape).astype(kind)
        zero = lambda kind: np.array(v.integer(np.iinfo(kind).min, np.iinfo(kind).max), kind)
        attrs, given = {}, {}
        if conv:
            group, filters = channels, 4
            x, w = integers(x_type, (2, 2 * group, 5, 6)), integers(w_type, (filters, 2, 3, 2))
            attrs = {"group": group, "pads": [v.integer(0, 1) for _ in range(4)], "strides": [v.integer(1, 2)] * 2}
        else:
            turned = v.flag()
            x, w = integers(x_type, (3, 2, 5)), integers(w_type, (4, 5) if turned else (5, 4))
            filters, given = 4, {"transB": int(turned)}
        each = v.flag()
        x_scale, w_scale, x_zero = scale(), scale(filters) if each else scale(), zero(x_type)
        w_zero = integers(w_type, (filters,)) if each else zero(w_type)
        axis = 0 if conv or given["transB"] else 1
        bias = np.array(v.rng.integers(-50, 50, filters) / 64, np.float32) if v.flag() else None
        operands = [x, x_scale, x_zero, w, w_scale, w_zero, bias]
        nodes = [helper.make_node("DequantizeLinear", ["x0", "x1", "x2"], ["xd"]),
                 helper.make_node("DequantizeLinear", ["x3", "x4", "x5"], ["wd"], axis=axis)]
        if conv:
            nodes.append(helper.make_node("Conv", ["xd", "wd"] + (["x6"] if bias is not None else []), ["p"], **attrs))
        else:
            weight = "wd"
            if given["transB"]:
                nodes.append(helper.make_node("Transpose", ["wd"], ["wt"], perm=[1, 0]))
                weight = "wt"
            nodes.append(helper.make_node("MatMul", ["xd", weight], ["q" if bias is not None else "p"]))
            if bias is not None:
                nodes.append(helper.make_node("Add", ["q", "x6"], ["p"]))
        activation = v.choose([None, "Relu", "LeakyRelu", "Clip"])
        if activation == "Clip":
            nodes += [helper.make_node("Constant", [], ["low"], value_float=-3.0),
                      helper.make_node("Constant", [], ["high"], value_float=6.0),
                      helper.make_node("Clip", ["p", "low", "high"], ["a"])]
            given |= {"activation": "Clip", "activation_alpha": -3.0, "activation_beta": 6.0}
        elif activation == "LeakyRelu":
            nodes.append(helper.make_node("LeakyRelu", ["p"], ["a"], alpha=0.25))
            given |= {"activation": "LeakyRelu", "activation_alpha": 0.25}
        elif activation:
            nodes.append(helper.make_node(activation, ["p"], ["a"]))
            given["activation"] = activation
        last = "a" if activation else "p"
        if number % 5 != 0:
            operands += [scale(), zero(y_type)]
            nodes.append(helper.make_node("QuantizeLinear", [last, "x7", "x8"], ["y0"]))
        else:
            nodes.append(helper.make_node("Identity", [last], ["y0"]))
        writer.add("regie.QConv" if conv else "regie.QMatMul", operands, nodes=nodes, reference=False, **attrs, **given)


def quantised_sums(writer, v):
    for number in range(24):
        kinds = [v.choose([np.uint8, np.int8]) for _ in range(3)]
        integers = lambda kind, shape: v.rng.integers(np.iinfo(kind).min, np.iinfo(kind).max + 1, shape).astype(kind)
        scale = lambda shape=(): np.array(v.rng.integers(1, 16, shape) / 64, np.float32)
        x_kind, y_kind, r_kind = kinds
        x, w, r = integers(x_kind, (2, 4, 5, 6)), integers(np.int8, (3, 4, 3, 3)), integers(r_kind, (2, 3, 5, 6))
        bias = np.array(v.rng.integers(-50, 50, 3) / 64, np.float32) if v.flag() else None
        relu = v.flag()
        w_scale = scale((3,)) if v.flag() else scale()
        operands = [x, scale(), integers(x_kind, ()), w, w_scale, np.zeros(w_scale.shape, np.int8), bias, scale() * 64, integers(y_kind, ()),
                    r, scale(), integers(r_kind, ()), scale() * 16, integers(y_kind, ())]
        nodes = [helper.make_node("DequantizeLinear", ["x0", "x1", "x2"], ["xd"]),
                 helper.make_node("DequantizeLinear", ["x3", "x4", "x5"], ["wd"], axis=0),
                 helper.make_node("Conv", ["xd", "wd"] + (["x6"] if bias is not None else []), ["p"], pads=[1, 1, 1, 1]),
                 helper.make_node("QuantizeLinear", ["p", "x7", "x8"], ["c"]),
                 helper.make_node("DequantizeLinear", ["c", "x7", "x8"], ["cd"]),
                 helper.make_node("DequantizeLinear", ["x9", "x10", "x11"], ["rd"]),
                 helper.make_node("Add", ["cd", "rd"], ["s"]),
                 *([helper.make_node("Relu", ["s"], ["a"])] if relu else []),
                 helper.make_node("QuantizeLinear", ["a" if relu else "s", "x12", "x13"], ["y0"])]
        given = {"activation": "Relu"} if relu else {}
        writer.add("regie.QConvAdd", operands, nodes=nodes, reference=False, pads=[1, 1, 1, 1], **given)


def quantised_elements(writer, v):
    for _ in range(10):
        kind = v.choose([np.uint8, np.int8])
        x, channels = v.tensor("f32", (2, 3, 5), -300, 300), v.flag()
        s = v.tensor("f32", (3,) if channels else (), 0.5, 2)
        z = v.rng.integers(np.iinfo(kind).min, np.iinfo(kind).max + 1, s.shape).astype(kind)
        flat = [helper.make_node("Constant", [], ["n"], value_ints=[-1]), helper.make_node("Reshape", ["x1", "n"], ["s"]),
                helper.make_node("Reshape", ["x2", "n"], ["z"])]
        wide = lambda a: a.reshape(3, 1) if channels else a
        writer.add("regie.Quantize", [x, wide(s), wide(z)], reference=False,
                   nodes=[*flat, helper.make_node("QuantizeLinear", ["x0", "s", "z"], ["y0"], axis=1)])
        q = v.rng.integers(np.iinfo(kind).min, np.iinfo(kind).max + 1, (2, 3, 5)).astype(kind)
        writer.add("regie.Dequantize", [q, wide(s), wide(z)], reference=False,
                   nodes=[*flat, helper.make_node("DequantizeLinear", ["x0", "s", "z"], ["y0"], axis=1)])


def quantised_rest(writer, v):
    quantised_elements(writer, v)
    quantised_sums(writer, v)


FAMILIES = [attention, quantised_products, quantised_rest]
