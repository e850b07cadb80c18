"""Cases of operators that came late: linear attention, deformable convolution, random numbers, n-grams."""
import numpy as np

from cases import ELEMS, numpy_type


def linear_attention(writer, v):
    for rule, extra in (("linear", ()), ("gated", ("decay",)), ("delta", ("beta",)), ("gated_delta", ("decay", "beta"))):
        for _ in range(4):
            batch, length, pair = v.integer(1, 2), v.integer(1, 5), v.choose([1, 2])
            heads, key, value = pair * v.choose([1, 2]), v.integer(1, 3), v.integer(1, 4)
            elem = v.choose(["f32", "f32", "f16", "bf16"])
            operands = [v.tensor(elem, (batch, length, n), -1, 1) for n in (heads * key, pair * key, pair * value)]
            operands.append(v.tensor(elem, (batch, pair, key, value), -1, 1) if v.flag() else None)
            operands.append(v.tensor(elem, (batch, length, pair * v.choose([1, key])), -1, 0) if "decay" in extra else None)
            operands.append(v.tensor(elem, (batch, length, v.choose([1, pair])), 0, 1) if "beta" in extra else None)
            writer.add("LinearAttention", operands, results=2, runtime=False, q_num_heads=heads, kv_num_heads=pair, update_rule=rule,
                       scale=v.choose([None, 0.5]))


def deform_conv(writer, v):
    for _ in range(8):
        group, places = v.choose([1, 2]), v.choose([1, 2])
        channels, filters = 2 * group, group * v.integer(1, 2)
        size, kernel = (v.integer(4, 7), v.integer(4, 7)), (v.integer(1, 3), v.integer(1, 3))
        strides, dilations, pads = [v.integer(1, 2)] * 2, [v.integer(1, 2)] * 2, [v.integer(0, 1) for _ in range(4)]
        out = [(size[i] + pads[i] + pads[i + 2] - (kernel[i] - 1) * dilations[i] - 1) // strides[i] + 1 for i in range(2)]
        if min(out) < 1:
            continue
        taps = kernel[0] * kernel[1]
        elem = v.choose(["f32", "f32", "f64"])
        operands = [v.tensor(elem, (2, channels, *size)), v.tensor(elem, (filters, channels // group, *kernel)), v.tensor(elem, (2, 2 * places * taps, *out), -2, 2),
                    v.tensor(elem, (filters,)) if v.flag() else None, v.tensor(elem, (2, places * taps, *out), 0, 1) if v.flag() else None]
        writer.add("DeformConv", operands, reference=False, group=group, offset_group=places, strides=strides, dilations=dilations, pads=pads)


def random_numbers(writer, v):
    """NumPy's own generator with the same seed."""
    for elem in ("f32", "f64", "f16"):
        shape, seed, kind = v.shape(0, 3), v.integer(0, 10**6), numpy_type(elem)
        like = v.tensor("i32", shape)
        uniform, normal = np.random.RandomState(seed), np.random.RandomState(seed)
        given = {"dtype": ELEMS[elem][0], "seed": float(seed)}
        writer.known("RandomUniformLike", [like], [np.asarray(-1 + 3 * uniform.uniform(0, 1, shape)).astype(kind)], 1e-3, low=-1.0, high=2.0, **given)
        writer.known("RandomNormalLike", [like], [np.asarray(0.5 + 2 * normal.standard_normal(shape)).astype(kind)], 1e-3, mean=0.5, scale=2.0, **given)


def ngrams(writer, v):
    pool = [2, 3, 5, 4] + [5, 6, 7, 8, 6, 7] + [2, 3, 5]  # of one item, of two, of three
    for mode in ("TF", "IDF", "TFIDF"):
        for low, high, skips in ((1, 1, 0), (2, 2, 0), (2, 2, 5), (1, 2, 5), (1, 3, 2), (3, 3, 1)):
            for shape in ((12,), (2, 9)):
                x = v.rng.integers(1, 9, shape).astype(v.choose([np.int32, np.int64]))
                given = {"weights": [0.5, 2.0, 1.5, 3.0, 0.25, 1.0, 4.0, 0.75]} if v.flag() and mode != "TF" else {}
                writer.add("TfIdfVectorizer", [x], reference=False, mode=mode, min_gram_length=low, max_gram_length=high, max_skip_count=skips,
                           ngram_counts=[0, 4, 10], ngram_indexes=[0, 1, 2, 3, 5, 4, 7, 6], pool_int64s=pool, **given)


FAMILIES = [linear_attention, deform_conv, random_numbers, ngrams]
