"""Cases of check_opsets.py for the operators beyond the first: what each takes at an operator set."""
import numpy as np
from onnx import TensorProto

random = np.random.default_rng(11)


class Case:
    """One node: inputs by name (fed), constants by name (initializers), None for an absent operand."""

    def __init__(self, inputs, constants=None, outputs=1, rank=None, runtime=True, expected=None, newer=None, dropped=(), **attributes):
        self.inputs, self.constants, self.outputs, self.attributes = inputs, constants or {}, outputs, attributes
        self.runtime = runtime  # False: ONNX Runtime deviates from the specification
        self.expected = expected  # by NumPy, where no reference implements this version
        self.newer, self.dropped = newer, dropped  # the reference is this newer version, which lacks these attributes
        self.rank = rank  # of float results (of all, or of each), where ONNX's own inference says nothing of them


def f32(*dims):
    return random.standard_normal(dims).astype(np.float32)


def i64(*values):
    return np.array(values, dtype=np.int64)


def scalar(value, dtype=np.float32):
    return np.array(value, dtype)


def bytes_of(*dims, dtype=np.uint8):
    info = np.iinfo(dtype)
    return random.integers(info.min, info.max + 1, dims).astype(dtype)


def one(make):
    """Cases of an operator with one float operand of this making."""
    return lambda v: [Case({"x": make()})]


def within(low, high):
    return one(lambda: random.uniform(low, high, (3, 4)).astype(np.float32))


def with_attributes(*variants):
    return lambda v: [Case({"x": f32(3, 4) * 2}, **a) for a in variants]


def integers(v):
    return [Case({"a": bytes_of(3, 4), "b": bytes_of(4)})]


def recurrent(gates, states):
    def cases(v):
        hidden, steps, batch, width = 5, 4, 3, 2
        made = []
        for direction, count in (("forward", 1), ("reverse", 1), ("bidirectional", 2)):
            weights = {"w": f32(count, gates * hidden, width) * 0.5, "r": f32(count, gates * hidden, hidden) * 0.5}
            outputs = states + 1
            made.append(Case({"x": f32(steps, batch, width)}, weights, outputs, hidden_size=hidden, direction=direction))
            more = {"b": f32(count, 2 * gates * hidden), "l": np.array([4, 2, 3], np.int32)}
            more.update({f"s{i}": f32(count, batch, hidden) for i in range(states)})
            if gates == 4:
                more["p"] = f32(count, 3 * hidden)
            made.append(Case({"x": f32(steps, batch, width)}, {**weights, **more}, outputs, hidden_size=hidden, direction=direction))
            names = {4: ["HardSigmoid", "Softsign", "Tanh"], 3: ["HardSigmoid", "Elu"], 1: ["LeakyRelu"]}[gates]
            made.append(Case({"x": f32(steps, batch, width)}, weights, outputs, hidden_size=hidden, direction=direction,
                             activations=names * count, clip=0.7))
        if gates == 3:
            weights = {"w": f32(1, 15, 2), "r": f32(1, 15, 5), "b": f32(1, 30)}
            made.append(Case({"x": f32(4, 3, 2)}, weights, 2, hidden_size=5, linear_before_reset=1))
        if gates == 4:
            weights = {"w": f32(1, 20, 2), "r": f32(1, 20, 5)}
            made.append(Case({"x": f32(4, 3, 2)}, weights, 3, hidden_size=5, input_forget=1))
        return made
    return cases


def resize(v):
    x = f32(1, 2, 5, 6)
    if v < 11:
        return [Case({"x": x}, {"s": np.array(s, np.float32)}, mode=m)
                for s in ((1, 1, 2, 3), (1, 1, 0.5, 0.6)) for m in ("nearest", "linear")]
    empty = np.zeros(0, np.float32)

    def by(scales=None, sizes=None, roi=None, **attributes):
        given = {"roi": empty if roi is None else np.array(roi, np.float32), "scales": empty if scales is None else np.array(scales, np.float32)}
        if v >= 13 and roi is None:
            given["roi"] = None
        if v >= 13 and scales is None:
            given["scales"] = None
        if sizes is not None:
            given["sizes"] = i64(*sizes)
        return Case({"x": x}, given, **attributes)

    cases = []
    coordinates = ["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"] + (["half_pixel_symmetric"] if v >= 19 else [])
    for c in coordinates:
        for mode in ("nearest", "linear", "cubic"):
            cases.append(by(scales=(1, 1, 1.6, 2), mode=mode, coordinate_transformation_mode=c))
            cases.append(by(sizes=(1, 2, 3, 4), mode=mode, coordinate_transformation_mode=c))
    for n in ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"):
        cases.append(by(scales=(1, 1, 0.6, 1.5), nearest_mode=n))
    cases.append(by(scales=(1, 1, 2, 2), mode="cubic", exclude_outside=1, cubic_coeff_a=-0.5))
    cases.append(by(sizes=(1, 2, 4, 4), roi=(0, 0, 0.1, 0.2, 1, 1, 0.8, 1.4), mode="linear", coordinate_transformation_mode="tf_crop_and_resize", extrapolation_value=3.5))
    if v < 13:
        cases.append(by(scales=(1, 1, 2, 2), coordinate_transformation_mode="tf_half_pixel_for_nn"))
    if v >= 18:
        cases.append(Case({"x": x}, {"roi": None, "scales": None, "sizes": i64(7, 3)}, axes=[2, 3], mode="linear"))
        cases.append(Case({"x": x}, {"roi": None, "scales": None, "sizes": i64(3, 4)}, axes=[2, 3], keep_aspect_ratio_policy="not_larger", mode="linear"))
        cases.append(by(scales=(1, 1, 0.5, 0.5), mode="linear", antialias=1))
        cases.append(by(scales=(1, 1, 0.6, 0.5), mode="cubic", antialias=1, exclude_outside=1))
    return cases


def upsample(v):
    x = f32(1, 2, 3, 4)
    cases = []
    for mode in ("nearest", "linear"):
        for scales in ((1.0, 1.0, 2.0, 3.0), (1.0, 1.0, 1.5, 2.0)):
            cases.append(Case({"x": x}, mode=mode, scales=list(scales)) if v < 9 else Case({"x": x}, {"s": np.array(scales, np.float32)}, mode=mode))
    return cases


def group_norm(v):
    count = 3 if v < 21 else 6
    return [Case({"x": f32(2, 6, 4, 3)}, {"s": f32(count), "b": f32(count)}, num_groups=3)]


def layer_norm(v):
    x = f32(2, 3, 4)
    return [Case({"x": x}, {"s": f32(4), "b": f32(4)}), Case({"x": x}, {"s": f32(3, 4)}, 3, axis=1), Case({"x": x}, {"s": f32(4), "b": f32(4)}, 1, axis=-1, epsilon=0.1)]


def rms_norm(v):
    return [Case({"x": f32(2, 3, 4)}, {"s": f32(4)}), Case({"x": f32(2, 3, 4)}, {"s": f32(3, 4)}, axis=1, epsilon=0.1)]


def top_k(v):
    x = f32(3, 7)
    if v < 10:
        return [Case({"x": x}, outputs=2, k=3), Case({"x": x}, outputs=2, k=2, axis=0)]
    cases = [Case({"x": x}, {"k": i64(3)}, 2), Case({"x": x}, {"k": i64(2)}, 2, axis=0)]
    return cases + ([Case({"x": x}, {"k": i64(4)}, 2, largest=0)] if v >= 11 else [])


def reductions(v):
    return (["add", "mul"] if v >= 16 else []) + (["max", "min"] if v >= 18 else [])


def scatter_elements(v):
    indices = np.array([[0, 2, 1], [1, 0, 2]], np.int64)

    def case(**attributes):
        return Case({"x": f32(3, 3), "i": indices, "u": f32(2, 3)}, **attributes)

    return [case(), case(axis=1)] + [case(reduction=how) for how in reductions(v)]


def scatter(v):
    return [Case({"x": f32(3, 3), "i": np.array([[0, 2, 1]], np.int64), "u": f32(1, 3)})]


def scatter_nd(v):
    indices = np.array([[0, 1], [2, 0]], np.int64)
    cases = [Case({"x": f32(3, 3, 2), "i": indices, "u": f32(2, 2)})]
    return cases + [Case({"x": f32(3, 3, 2), "i": indices, "u": f32(2, 2)}, reduction=how) for how in reductions(v)]


def gather_nd(v):
    cases = [Case({"x": f32(2, 3, 4), "i": np.array([[[0, 1], [1, -1]]], np.int64)})]
    return cases + ([Case({"x": f32(2, 3, 4), "i": np.array([[1], [2]], np.int64)}, batch_dims=1)] if v >= 12 else [])


def one_hot(v):
    return [Case({"i": i64(0, 2, 1, 3)}, {"d": i64(4), "v": np.array([2, 5], np.float32)}), Case({"i": np.array([[0, 1]], np.int64)}, {"d": scalar(3, np.int64), "v": np.array([0, 1], np.int64)}, axis=1)]


def ranges(v):
    return [Case({}, {"a": scalar(1, np.int64), "b": scalar(9, np.int64), "c": scalar(3, np.int64)}), Case({}, {"a": scalar(5), "b": scalar(-1), "c": scalar(-0.75)})]


def cumulative(v):
    return [Case({"x": f32(3, 4)}, {"a": scalar(1, np.int64)}), Case({"x": f32(3, 4)}, {"a": scalar(-2, np.int32)}, exclusive=1, reverse=1)]


def quantize(v):
    x = f32(3, 4) * 4
    cases = [Case({"x": x}, {"s": scalar(0.05), "z": scalar(120, np.uint8)}), Case({"x": x}, {"s": scalar(0.05)})]
    if v >= 13:
        cases.append(Case({"x": x}, {"s": np.array([0.02, 0.05, 0.1], np.float32), "z": np.array([1, -2, 3], np.int8)}, axis=0))
    if v >= 21:
        cases.append(Case({"x": x}, {"s": np.abs(f32(3, 2)) + 0.1, "z": bytes_of(3, 2)}, axis=1, block_size=2))
        cases.append(Case({"x": x}, {"s": scalar(0.01)}, output_dtype=TensorProto.INT16))
    return cases


def dequantize(v):
    x = bytes_of(3, 4)
    cases = [Case({"x": x}, {"s": scalar(0.05), "z": scalar(120, np.uint8)}), Case({"x": x.astype(np.int32)}, {"s": scalar(0.05)})]
    if v >= 13:
        cases.append(Case({"x": x}, {"s": np.array([0.02, 0.05, 0.1], np.float32), "z": bytes_of(3)}, axis=0))
    if v >= 21:
        cases.append(Case({"x": x}, {"s": np.abs(f32(3, 2)) + 0.1, "z": bytes_of(3, 2)}, axis=1, block_size=2))
    return cases


def integer_matmul(v):
    return [Case({"a": bytes_of(2, 3, 4), "b": bytes_of(4, 5, dtype=np.int8)}, {"za": scalar(7, np.uint8), "zb": scalar(-3, np.int8)}), Case({"a": bytes_of(3, 4), "b": bytes_of(4, 5)})]


def integer_conv(v):
    return [Case({"x": bytes_of(1, 4, 6, 6)}, {"w": bytes_of(6, 2, 3, 3), "zx": scalar(11, np.uint8)}, group=2, pads=[1, 1, 1, 1], strides=[2, 2])]


def linear_matmul(v):
    s, z = scalar(0.02), scalar(100, np.uint8)
    return [Case({"a": bytes_of(3, 4)}, {"as": s, "az": z, "b": bytes_of(4, 5), "bs": scalar(0.03), "bz": scalar(130, np.uint8), "ys": scalar(0.4), "yz": scalar(128, np.uint8)})]


def linear_conv(v):
    s, z = scalar(0.02), scalar(100, np.uint8)
    return [Case({"x": bytes_of(1, 3, 5, 5)}, {"xs": s, "xz": z, "w": bytes_of(4, 3, 3, 3), "ws": scalar(0.01), "wz": scalar(120, np.uint8), "ys": scalar(0.3), "yz": scalar(128, np.uint8),
                                             "b": np.array([5, -100, 20, 0], np.int32)}, pads=[1, 1, 1, 1])]


def grid_sample(v):
    modes = ("bilinear", "nearest", "bicubic") if v < 20 else ("linear", "nearest", "cubic")
    grid = random.uniform(-1.4, 1.4, (1, 4, 5, 2)).astype(np.float32)
    return [Case({"x": f32(1, 2, 6, 7), "g": grid}, mode=m, padding_mode=p, align_corners=c) for m in modes for p, c in (("zeros", 0), ("border", 1), ("reflection", 0))]


def roi_align(v):
    rois = np.array([[0, 0, 4, 5], [1.3, 0.7, 5.2, 3.9]], np.float32)
    cases = [Case({"x": f32(2, 3, 6, 6)}, {"r": rois, "i": i64(0, 1)}, output_height=2, output_width=3, sampling_ratio=2, mode=m) for m in ("avg", "max")]
    cases.append(Case({"x": f32(2, 3, 6, 6)}, {"r": rois, "i": i64(1, 0)}, output_height=2, output_width=2, spatial_scale=0.5))
    return cases + ([Case({"x": f32(2, 3, 6, 6)}, {"r": rois, "i": i64(0, 1)}, output_height=2, output_width=2, sampling_ratio=2, coordinate_transformation_mode="output_half_pixel")] if v >= 16 else [])


def einsum(v):
    return [Case({"a": f32(2, 3, 4), "b": f32(2, 4, 5)}, equation="bij,bjk->bik"), Case({"a": f32(3, 3)}, equation="ii->i"), Case({"a": f32(2, 3), "b": f32(3, 4)}, equation="ij,jk"),
            Case({"a": f32(2, 3, 4), "b": f32(4, 5)}, equation="...i,ij->...j"), Case({"a": f32(2, 4, 3, 5), "b": f32(2, 6, 3, 5)}, equation="bqhd,bkhd->bhqk"), Case({"a": f32(3, 4)}, equation="ij->")]


def dft(v):
    x = f32(2, 6, 1)
    more = {"n": None, "a": scalar(1, np.int64)} if v >= 20 else {}
    attributes = {} if v >= 20 else {"axis": 1}
    return [Case({"x": x}, more, **attributes), Case({"x": x}, more, onesided=1, **attributes), Case({"x": f32(2, 6, 2)}, more, inverse=1, **attributes),
            Case({"x": x}, {**more, "n": scalar(8, np.int64)}, **attributes)]


def stft(v):
    return [Case({"x": f32(2, 32, 1)}, {"s": scalar(4, np.int64), "w": np.abs(f32(8))}), Case({"x": f32(1, 32, 1)}, {"s": scalar(8, np.int64), "w": np.ones(16, np.float32), "n": scalar(16, np.int64)}, onesided=0)]


def windows(v):
    return [Case({}, {"n": scalar(9, np.int64)}), Case({}, {"n": scalar(10, np.int64)}, periodic=0)]


def mel(v):
    return [Case({}, {"b": scalar(8, np.int64), "n": scalar(128, np.int64), "r": scalar(8000, np.int64), "l": scalar(20.0), "h": scalar(4000.0)})]


def attention(v):
    q, k, w = f32(2, 4, 3, 8), f32(2, 2, 5, 8), f32(2, 2, 5, 6)
    mask = f32(3, 5)
    cases = [Case({"q": q, "k": k, "v": w}), Case({"q": q, "k": k, "v": w}, {"m": mask}), Case({"q": q, "k": k, "v": w}, {"m": mask > -0.5}, softcap=0.5),
             Case({"q": f32(2, 3, 32), "k": f32(2, 3, 32), "v": f32(2, 3, 32)}, {}, q_num_heads=4, kv_num_heads=4, is_causal=1, scale=0.3),
             Case({"q": q, "k": k, "v": w}, {"m": None, "pk": f32(2, 2, 4, 8), "pv": f32(2, 2, 4, 6)}, 3, is_causal=1)]
    return cases


def rotary(v):
    cos, sin = f32(10, 4), f32(10, 4)
    ids = np.array([[1, 2, 3], [0, 5, 9]], np.int64)
    return [Case({"x": f32(2, 2, 3, 8)}, {"c": cos, "s": sin, "p": ids}), Case({"x": f32(2, 3, 16)}, {"c": cos, "s": sin, "p": ids}, num_heads=2, interleaved=1),
            Case({"x": f32(2, 2, 3, 8)}, {"c": f32(2, 3, 2), "s": f32(2, 3, 2)}, rotary_embedding_dim=4)]


def lp_pool(v):
    x = f32(1, 2, 7, 7)
    return [Case({"x": x}, kernel_shape=[3, 3], pads=[1, 1, 1, 1]), Case({"x": x}, kernel_shape=[2, 3], strides=[2, 2], p=1)]


def max_unpool(v):
    x = np.array([[[[1, 2], [3, 4]]]], np.float32)
    indices = np.array([[[[5, 7], [13, 15]]]], np.int64)
    # ONNX Runtime takes indices as those of the larger result.
    return [Case({"x": x, "i": indices}, kernel_shape=[2, 2], strides=[2, 2]),
            Case({"x": x, "i": indices}, {"s": i64(1, 1, 5, 5)}, rank=4, runtime=False, kernel_shape=[2, 2], strides=[2, 2])]


def reduce_log(v):
    x = np.abs(f32(2, 3, 4)) + 0.1
    if v < 18:
        return [Case({"x": x}, axes=[1]), Case({"x": x}, axes=[0, 2], keepdims=0), Case({"x": x})]
    return [Case({"x": x}, {"a": i64(1)}), Case({"x": x}, {"a": i64(-1, 0)}, keepdims=0), Case({"x": x})]


def hardmax(v):
    cases = [Case({"x": f32(2, 3, 4)}), Case({"x": f32(2, 3, 4)}, axis=0)]
    return cases + ([Case({"x": f32(2, 3, 4)}, axis=-1)] if v >= 11 else [])


def depth_to_space(v):
    cases = [Case({"x": f32(1, 8, 2, 3)}, blocksize=2)]
    return cases + ([Case({"x": f32(1, 8, 2, 3)}, blocksize=2, mode="CRD")] if v >= 11 else [])


def tile(v):
    return [Case({"x": f32(2, 3)}, {"r": i64(2, 3)}), Case({"x": f32(1, 2, 1)}, {"r": i64(1, 1, 4)})]


def loss(results):
    classes = np.array([1, 0, 3])
    return [Case({"x": f32(3, 4), "t": classes}, {"w": np.abs(f32(4))}, results), Case({"x": f32(3, 4), "t": classes}, outputs=results, reduction="none"), Case({"x": f32(3, 4), "t": classes}, outputs=1, ignore_index=0)]


def causal_conv(v):
    x, w, b, past = f32(2, 3, 6), f32(3, 1, 4), f32(3), f32(2, 3, 3)
    return [Case({"x": x}, {"w": w}, outputs=2), Case({"x": x}, {"w": w, "b": b, "past": past}, outputs=2, activation="silu"),
            Case({"x": x}, {"w": w, "b": None, "past": past}, outputs=2), Case({"x": x}, {"w": f32(3, 1, 1)}, outputs=2, activation="swish")]


def linear_attention(v):
    q, k, w = f32(2, 4, 6), f32(2, 4, 3), f32(2, 4, 2)
    decay, beta, past = -np.abs(f32(2, 4, 1)), np.abs(f32(2, 4, 1)), f32(2, 1, 3, 2)
    heads = {"q_num_heads": 2, "kv_num_heads": 1}
    return [Case({"q": q, "k": k, "v": w}, outputs=2, update_rule="linear", **heads),
            Case({"q": q, "k": k, "v": w, "past": past, "d": decay, "b": beta}, outputs=2, scale=0.3, **heads)]


def deform_conv(v):
    return [Case({"x": f32(1, 2, 5, 6), "w": f32(3, 2, 2, 3), "o": f32(1, 2 * 6, 4, 4)}, {"b": f32(3), "m": np.abs(f32(1, 6, 4, 4))}, rank=4)]


def ngrams(v):
    x = np.array([[1, 2, 3, 2, 1, 2], [3, 3, 1, 2, 2, 3]], np.int64)
    return [Case({"x": x}, mode=m, min_gram_length=1, max_gram_length=2, max_skip_count=1, ngram_counts=[0, 2], ngram_indexes=[0, 1, 2, 3], pool_int64s=[2, 3, 1, 2, 2, 3])
            for m in ("TF", "IDF", "TFIDF")]


def training_dropout(v):
    """By NumPy's generator with the node's seed, as onnx.reference does."""
    x = f32(5, 6)
    mask = np.random.RandomState(7).uniform(0, 1, x.shape) >= 0.25
    inputs = {"ratio": scalar(0.25), "mode": np.array(True)}
    return [Case({"x": x}, inputs, 2, expected=[np.where(mask, x / 0.75, 0).astype(np.float32), mask], seed=7),
            Case({"x": x, **inputs}, outputs=2, expected=[np.where(mask, x / 0.75, 0).astype(np.float32), mask], seed=7),
            Case({"x": x, "ratio": scalar(0.25), "mode": np.array(False)}, outputs=2, expected=[x, np.ones(x.shape, bool)], seed=7)]


def drawn(normal, like):
    def cases(v):
        state = np.random.RandomState(5)
        given = {"mean": 0.5, "scale": 2.0} if normal else {"low": -1.0, "high": 3.0}
        values = 0.5 + 2 * state.standard_normal((3, 4)) if normal else -1 + 4 * state.uniform(0, 1, (3, 4))
        return [Case({"x": f32(3, 4)} if like else {}, expected=[values.astype(np.float32)], seed=5.0, **given, **({} if like else {"shape": [3, 4]}))]
    return cases


def multinomial(v):
    """The greatest of logarithmic weights and noise of Gumbel's distribution is drawn by the weights."""
    x = f32(3, 5)
    u = np.random.RandomState(9).uniform(0, 1, (3, 7, 5))
    want = (x.astype(np.float64)[:, None] - np.log(-np.log(u))).argmax(2)
    return [Case({"x": x}, expected=[want.astype(np.int32)], sample_size=7, seed=9.0), Case({"x": x}, expected=[want], sample_size=7, seed=9.0, dtype=TensorProto.INT64)]


# By operator: the first operator set of the oldest version that is read, and its cases there.
OPERATORS = {
    "Multinomial": (7, multinomial),
    "CausalConvWithState": (27, causal_conv), "LinearAttention": (27, linear_attention), "TfIdfVectorizer": (9, ngrams), "DeformConv": (19, deform_conv),
    "RandomNormal": (1, drawn(True, False)), "RandomNormalLike": (1, drawn(True, True)), "RandomUniform": (1, drawn(False, False)), "RandomUniformLike": (1, drawn(False, True)),
    "Acos": (7, within(-1, 1)), "Acosh": (9, within(1, 4)), "Asin": (7, within(-1, 1)), "Asinh": (9, within(-3, 3)), "Atan": (7, within(-3, 3)), "Atanh": (9, within(-0.9, 0.9)),
    "Cos": (7, within(-3, 3)), "Cosh": (9, within(-3, 3)), "Sin": (7, within(-3, 3)), "Sinh": (9, within(-3, 3)), "Tan": (7, within(-1, 1)), "Sign": (9, within(-1, 1)),
    "Softplus": (1, within(-5, 5)), "Softsign": (1, within(-5, 5)), "Mish": (18, within(-5, 5)), "Selu": (6, with_attributes({}, {"alpha": 1.5, "gamma": 1.1})),
    "Celu": (12, with_attributes({}, {"alpha": 0.5})), "ThresholdedRelu": (10, with_attributes({}, {"alpha": 0.3})), "Shrink": (9, with_attributes({}, {"lambd": 1.0, "bias": 0.5})),
    "Gelu": (20, with_attributes({}, {"approximate": "tanh"})), "Swish": (24, with_attributes({}, {"alpha": 0.5})),
    "PRelu": (7, lambda v: [Case({"x": f32(2, 3, 4)}, {"s": f32(3, 1)})]), "IsNaN": (9, one(lambda: np.array([1, np.nan, np.inf], np.float32))),
    "IsInf": (10, lambda v: [Case({"x": np.array([1, -np.inf, np.inf, np.nan], np.float32)}, **a) for a in ({}, {"detect_negative": 0})]),
    "Mod": (10, lambda v: [Case({"a": i64(-7, 7, 5), "b": i64(3, -3, 4)}), Case({"a": f32(3), "b": f32(3)}, fmod=1)]),
    "BitShift": (11, lambda v: [Case({"a": bytes_of(4), "b": np.array([1, 2, 3, 0], np.uint8)}, direction=d) for d in ("LEFT", "RIGHT")]),
    "BitwiseAnd": (18, integers), "BitwiseOr": (18, integers), "BitwiseXor": (18, integers), "BitwiseNot": (18, lambda v: [Case({"x": bytes_of(3, 4)})]),
    "Mean": (6, lambda v: [Case({"a": f32(3, 4), "b": f32(3, 4), "c": f32(3, 4)}), Case({"a": f32(3, 4)})]),
    "CastLike": (15, lambda v: [Case({"x": f32(3, 4) * 3, "l": i64(1)}), Case({"x": i64(1, 2), "l": scalar(1.0)})]),
    "LayerNormalization": (17, layer_norm), "RMSNormalization": (23, rms_norm), "GroupNormalization": (18, group_norm),
    "InstanceNormalization": (6, lambda v: [Case({"x": f32(2, 3, 4, 5)}, {"s": f32(3), "b": f32(3)}, epsilon=0.01)]),
    "MeanVarianceNormalization": (9, lambda v: [Case({"x": f32(2, 3, 4, 5)}, axes=a) for a in ([0, 2, 3], [2, 3])]),
    "LpNormalization": (1, lambda v: [Case({"x": f32(2, 3, 4)}, p=p, axis=a) for p in (1, 2) for a in (1, -1)]), "LRN": (1, lambda v: [Case({"x": f32(2, 7, 3, 3)}, size=s, alpha=0.01, bias=1.5) for s in (3, 5)]),
    "Hardmax": (1, hardmax), "RNN": (7, recurrent(1, 1)), "GRU": (7, recurrent(3, 1)), "LSTM": (7, recurrent(4, 2)), "Resize": (10, resize), "Upsample": (7, upsample),
    "GatherElements": (11, lambda v: [Case({"x": f32(3, 4), "i": np.array([[0, 2, -1], [1, 0, 2]], np.int64)}, axis=1)]), "GatherND": (11, gather_nd), "Scatter": (9, scatter),
    "ScatterElements": (11, scatter_elements), "ScatterND": (11, scatter_nd), "OneHot": (9, one_hot), "Range": (11, ranges), "CumSum": (11, cumulative), "CumProd": (26, cumulative),
    "Trilu": (14, lambda v: [Case({"x": f32(2, 4, 5)}, {"k": scalar(k, np.int64)}, upper=u) for k in (-1, 0, 2) for u in (0, 1)] + [Case({"x": f32(4, 5)})]),
    "EyeLike": (9, lambda v: [Case({"x": f32(3, 4)}), Case({"x": f32(3, 4)}, k=1, dtype=TensorProto.INT64)]), "Tile": (6, tile), "TopK": (1, top_k),
    "ReverseSequence": (10, lambda v: [Case({"x": f32(4, 3, 2)}, {"l": i64(1, 4, 3)}), Case({"x": f32(3, 4)}, {"l": i64(1, 4, 3)}, batch_axis=0, time_axis=1)]),
    "NonZero": (9, lambda v: [Case({}, {"x": np.array([[0, 1, 2], [3, 0, 0]], np.float32)})]),
    "Compress": (9, lambda v: [Case({"x": f32(3, 4)}, {"c": np.array([True, False, True])}, rank=2, axis=0), Case({"x": f32(3, 4)}, {"c": np.array([True, False, True, True])}, rank=1)]),
    "ReduceLogSum": (1, reduce_log), "ReduceLogSumExp": (1, reduce_log), "DepthToSpace": (1, depth_to_space), "SpaceToDepth": (1, lambda v: [Case({"x": f32(1, 2, 4, 6)}, blocksize=2)]),
    "LpPool": (2, lp_pool), "GlobalLpPool": (2, lambda v: [Case({"x": f32(2, 3, 4, 5)}), Case({"x": f32(2, 3, 4)}, p=1)]), "MaxUnpool": (9, max_unpool),
    "Col2Im": (18, lambda v: [Case({"x": f32(1, 12, 4)}, {"i": i64(4, 4), "b": i64(2, 2)}, strides=[2, 2]), Case({"x": f32(1, 9, 9)}, {"i": i64(3, 3), "b": i64(3, 3)}, pads=[1, 1, 1, 1])]),
    "CenterCropPad": (18, lambda v: [Case({"x": f32(5, 4)}, {"s": i64(3, 7)}), Case({"x": f32(5, 4)}, {"s": i64(8)}, axes=[0])]),
    "GridSample": (16, grid_sample), "RoiAlign": (10, roi_align), "MaxRoiPool": (1, lambda v: [Case({"x": f32(1, 2, 8, 8)}, {"r": np.array([[0, 0, 0, 5, 6], [0, 1, 2, 7, 7]], np.float32)}, pooled_shape=[2, 3])]),
    "AffineGrid": (20, lambda v: [Case({"t": f32(2, 2, 3)}, {"s": i64(2, 3, 4, 5)}, align_corners=a) for a in (0, 1)] + [Case({"t": f32(1, 3, 4)}, {"s": i64(1, 1, 2, 3, 4)})]),
    "Einsum": (12, einsum), "Det": (11, lambda v: [Case({"x": f32(2, 4, 4)})]), "DFT": (17, dft), "STFT": (17, stft), "HannWindow": (17, windows), "HammingWindow": (17, windows),
    "BlackmanWindow": (17, windows), "MelWeightMatrix": (17, mel), "QuantizeLinear": (10, quantize), "DequantizeLinear": (10, dequantize),
    "DynamicQuantizeLinear": (11, lambda v: [Case({"x": f32(3, 4) * 3}, outputs=3)]), "MatMulInteger": (10, integer_matmul), "ConvInteger": (10, integer_conv),
    "QLinearMatMul": (10, linear_matmul), "QLinearConv": (10, linear_conv), "NegativeLogLikelihoodLoss": (12, lambda v: loss(1)), "SoftmaxCrossEntropyLoss": (12, lambda v: loss(2)), "BitCast": (26, lambda v: [Case({"x": f32(3, 4)}, to=TensorProto.INT32)]), "Attention": (23, attention), "SwiGLU": (28, lambda v: [Case({"a": f32(3, 4), "b": f32(3, 4)}), Case({"a": f32(3, 4), "b": f32(3, 4)}, alpha=0.5)]),
    "TensorScatter": (24, lambda v: [Case({"c": f32(2, 6, 3), "u": f32(2, 2, 3), "i": i64(1, 5)}, mode="circular"), Case({"c": f32(2, 6, 3), "u": f32(2, 2, 3)})]), "RotaryEmbedding": (23, rotary),
}
