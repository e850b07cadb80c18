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


FAMILIES = [attention]
