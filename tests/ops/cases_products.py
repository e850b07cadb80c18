"""Cases of Einsum, losses, determinants and attention."""
import numpy as np

I64 = np.int64


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


FAMILIES = [products]
