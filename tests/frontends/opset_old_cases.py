"""Cases of check_opsets.py for operator sets 1 to 6. Expected values are NumPy's, from the operators' texts at those versions;
where none are given, the reference is the usual one (the operator means what it does now)."""
import numpy as np
from onnx import TensorProto

from opset_cases import Case, f32, i64


HINT = ("consumed_inputs",)  # it said which inputs may be overwritten, and changes nothing: the reference is version 6


def hinted(make=lambda: f32(3, 4), inputs=1, constants=lambda: {}, **attributes):
    def cases(v):
        if v > 1:
            return [Case({"x": make()}, constants(), **attributes)]
        x = make()
        return [Case({"x": x}, constants(), newer=6, rank=x.ndim, dropped=HINT, consumed_inputs=[0] * inputs, **attributes)]
    return cases


def legacy(function, make=f32, hints=True):
    """Broadcasting by the attributes `broadcast` and `axis`."""
    def cases(v):
        a = make(2, 3, 4, 5)
        made = [(make(2, 3, 4, 5), (2, 3, 4, 5), {})]
        for dims, axis in (((), None), ((1, 1), None), ((5,), None), ((4, 5), None), ((3, 4), 1), ((2,), 0), ((3,), 1), ((3,), -3), ((1,), 1)):
            start = 4 - len(dims) if axis is None else axis % 4
            fitted = dims if np.prod(dims, dtype=int) == 1 else dims + (1,) * (4 - start - len(dims))
            made.append((make(*dims), fitted, {"broadcast": 1, **({} if axis is None else {"axis": axis})}))
        if v == 1 and hints:
            made[0][2]["consumed_inputs"] = [0, 0]
        return [Case({"a": a, "b": b}, expected=[function(a, b.reshape(fitted))], **attributes) for b, fitted, attributes in made]
    return cases


def positive(*dims):
    return (np.abs(f32(*dims)) + 0.5).astype(np.float32)


def flags(*dims):
    return np.asarray(f32(*dims) > 0)


def whole(*dims):
    return np.asarray(np.round(f32(*dims))).astype(np.int32)


def selu(v):
    """The first version's defaults had fewer digits."""
    x = f32(3, 4)
    alpha, gamma, hint = (1.6732, 1.0507, {"consumed_inputs": [0]}) if v == 1 else (1.67326319, 1.05070102, {})
    return [Case({"x": x}, expected=[(gamma * np.where(x > 0, x, alpha * (np.exp(x) - 1))).astype(np.float32)], **hint)]


def prelu(v):
    x = f32(2, 3, 4, 5)
    cases = []
    for slope, fitted in ((f32(1), (1,)), (f32(3), (3, 1, 1))):
        cases.append(Case({"x": x, "s": slope}, expected=[np.where(x < 0, x * slope.reshape(fitted), x)]))
    y, slope = f32(2, 3), f32(3)
    return cases + [Case({"x": y, "s": slope}, expected=[np.where(y < 0, y * slope, y)])]


def normalization(v):
    x = f32(4, 3, 2, 5)
    hints = {"consumed_inputs": [0, 0, 0, 1, 1]} if v == 1 else {}
    s, b, m, var = f32(3), f32(3), f32(3), positive(3)

    def normal(mean, variance, scale, shift, epsilon):
        return (x - mean) / np.sqrt(variance + epsilon) * scale + shift

    def wide(p):
        return p.reshape(3, 1, 1)

    given = {"s": s, "b": b, "m": m, "v": var}
    batch = x.mean((0, 2, 3), keepdims=True), x.var((0, 2, 3), keepdims=True)
    each = {"s": f32(3, 2, 5), "b": f32(3, 2, 5), "m": f32(3, 2, 5), "v": positive(3, 2, 5)}
    return [Case({"x": x}, given, expected=[normal(wide(m), wide(var), wide(s), wide(b), 0.01)], is_test=1, epsilon=0.01, **hints),
            Case({"x": x}, given, expected=[normal(*batch, wide(s), wide(b), 1e-5)], **hints),
            Case({"x": x}, each, expected=[normal(each["m"], each["v"], each["s"], each["b"], 1e-5)], is_test=1, spatial=0, **hints),
            Case({"x": x}, each, expected=[normal(x.mean(0), x.var(0), each["s"], each["b"], 1e-5)], is_test=0, spatial=0, **hints)]


def cast(v):
    if v >= 6:
        return [Case({"x": f32(3, 4) * 3}, to=TensorProto.INT64)]
    x = (f32(3, 4) * 3).astype(np.float32)
    return [Case({"x": x}, expected=[x.astype(t)], to=n) for n, t in (("INT32", np.int32), ("DOUBLE", np.float64), ("BOOL", np.bool_), ("FLOAT16", np.float16))]


def clip(v):
    x = f32(3, 4)
    return [Case({"x": x}, expected=[np.clip(x, -0.5, 0.5)], min=-0.5, max=0.5), Case({"x": x}, expected=[np.minimum(x, 0.25)], max=0.25)]


def concat(v):
    a, b = f32(2, 3), f32(2, 1)
    return [Case({"a": a, "b": b}, expected=[np.concatenate([a, b], 1)], **({} if v < 4 else {"axis": 1}))]


def dropout(v):
    x = f32(3, 4)
    return [Case({"x": x}, expected=[x], is_test=1, ratio=0.3), Case({"x": x}, expected=[x], ratio=0.0)]


def gemm(v):
    a, b = f32(3, 4), f32(4, 5)
    cases = [Case({"a": a}, {"b": b, "c": c}, expected=[a @ b + c], broadcast=1) for c in (f32(5), f32(1), f32(3, 5))]
    c = f32(3, 5)
    return cases + [Case({"a": a.T.copy()}, {"b": b.T.copy(), "c": c}, expected=[0.5 * (a @ b) + 2 * c], transA=1, transB=1, alpha=0.5, beta=2.0)]


def lp_pool(v):
    x = f32(1, 2, 6, 6)
    return [Case({"x": x}, expected=[np.sqrt((x.reshape(1, 2, 3, 2, 3, 2) ** 2).sum((3, 5)))], kernel_shape=[2, 2], strides=[2, 2], p=2 if v >= 2 else 2.0)]


def global_lp(v):
    x = f32(2, 3, 4, 5)
    return [Case({"x": x}, expected=[np.sqrt((x ** 2).sum((2, 3), keepdims=True))], **({"p": 2.0} if v < 2 else {"p": 2})),
            Case({"x": x}, expected=[np.abs(x).sum((2, 3), keepdims=True)], **({"p": 1.0} if v < 2 else {"p": 1}))]


def pad(v):
    x, name = f32(2, 3), "paddings" if v < 2 else "pads"
    widths = ((0, 1), (1, 2))
    return [Case({"x": x}, expected=[np.pad(x, widths)], **{name: [0, 1, 1, 2]}),
            Case({"x": x}, expected=[np.pad(x, widths, constant_values=1.5)], value=1.5, **{name: [0, 1, 1, 2]}),
            Case({"x": x}, expected=[np.pad(x, ((0, 0), (1, 1)), "edge")], mode="edge", **{name: [0, 1, 0, 1]}),
            Case({"x": x}, expected=[np.pad(x, ((0, 0), (1, 2)), "reflect")], mode="reflect", **{name: [0, 1, 0, 2]})]


def reshape(v):
    x = f32(2, 3, 4)
    if v >= 5:
        return [Case({"x": x}, {"shape": i64(0, -1)}, expected=[x.reshape(2, 12)])]
    return [Case({"x": x}, expected=[x.reshape(2, 12)], shape=[0, -1]), Case({"x": x}, expected=[x.reshape(4, 6)], shape=[4, 6])]


def split(v):
    x = f32(4, 6)
    cases = [Case({"x": x}, outputs=2, expected=np.split(x, 2, 1), axis=1), Case({"x": x}, outputs=2, expected=np.split(x, 2, 0)),
             Case({"x": x}, outputs=2, expected=np.split(x, [2], 1), axis=1, split=[2, 4])]
    if v == 1:
        cases.append(Case({"x": x}, {"s": np.array([1, 3, 2], np.float32)}, outputs=3, expected=np.split(x, [1, 4], 1), axis=1))
    return cases


def tile(v):
    x = f32(2, 3)
    if v >= 6:
        return [Case({"x": x}, {"r": i64(2, 3)}, expected=[np.tile(x, (2, 3))])]
    return [Case({"x": x}, {"t": np.array(3, np.float32), "a": np.array(axis, np.float32)}, expected=[np.concatenate([x] * 3, axis)]) for axis in (0, 1)]


def upsample(v):
    x = f32(1, 2, 3, 4)
    return [Case({"x": x}, expected=[x.repeat(2, 2).repeat(3, 3)], height_scale=2.0, width_scale=3.0)]


def sequence(gates, states):
    """output_sequence said whether output 0 may be absent: it changes nothing, so the reference is the next version."""
    def cases(v):
        hidden, width = 4, 2
        weights = {"w": f32(1, gates * hidden, width) * 0.5, "r": f32(1, gates * hidden, hidden) * 0.5}
        return [Case({"x": f32(3, 2, width)}, weights, states + 1, newer=7, rank=(4, 3, 3), dropped=("output_sequence",), hidden_size=hidden, output_sequence=1)]
    return cases


def several(function):
    def cases(v):
        a, b, c = f32(3, 4), f32(3, 4), f32(3, 4)
        hints = {"consumed_inputs": [0, 0, 0]} if v == 1 else {}
        return [Case({"a": a, "b": b, "c": c}, expected=[function([a, b, c])], **hints), Case({"a": a}, expected=[a])]
    return cases


OPERATORS = {
    **{op: hinted() for op in ("Abs", "Ceil", "Exp", "Floor", "Neg", "Relu", "Sigmoid", "Tanh")},
    **{op: hinted(lambda: positive(3, 4)) for op in ("Log", "Reciprocal", "Sqrt")},
    "Elu": hinted(alpha=0.7), "HardSigmoid": hinted(alpha=0.3, beta=0.4), "LeakyRelu": hinted(alpha=0.2), "Selu": selu,
    "InstanceNormalization": hinted(lambda: f32(2, 3, 4, 5), 3, lambda: {"s": f32(3), "b": f32(3)}, epsilon=0.01),
    "Add": legacy(np.add), "Sub": legacy(np.subtract), "Mul": legacy(np.multiply), "Div": legacy(np.divide, positive),
    "And": legacy(np.logical_and, flags, False), "Or": legacy(np.logical_or, flags, False), "Xor": legacy(np.logical_xor, flags, False),
    "Equal": legacy(np.equal, whole, False), "Greater": legacy(np.greater, f32, False), "Less": legacy(np.less, f32, False),
    "Pow": legacy(np.power, positive, False), "PRelu": prelu, "BatchNormalization": normalization, "Cast": cast, "Clip": clip, "Concat": concat,
    "Dropout": dropout, "Gemm": gemm, "GlobalLpPool": global_lp, "Pad": pad, "Reshape": reshape, "Split": split, "Tile": tile, "Upsample": upsample,
    "Max": several(lambda l: np.max(l, 0)), "Min": several(lambda l: np.min(l, 0)), "Sum": several(lambda l: np.sum(l, 0)), "Mean": several(lambda l: np.mean(l, 0)),
    "RNN": sequence(1, 1), "GRU": sequence(3, 1), "LSTM": sequence(4, 2), "LpPool": lp_pool,
}


def withdrawn():
    """Operators that were experimental up to ONNX 1.4, by their texts there."""
    x = f32(2, 3, 6, 5)
    bias = np.array([0.5, -1.0, 2.0], np.float32)
    spread = x - x.mean((2, 3), keepdims=True)
    wide = x - x.mean((1, 2, 3), keepdims=True)

    def case(expected, **attributes):
        return Case({"x": x}, expected=[expected.astype(np.float32)], **attributes)

    return {
        "Affine": [case(1.5 * x - 0.5, alpha=1.5, beta=-0.5), case(x)], "Scale": [case(2 * x, scale=2.0)],
        "Crop": [case(x[:, :, 2:5, 1:4], border=[1, 2, 1, 1]), case(x[:, :, 1:, 0:4], border=[0, 1, 1, 0]), case(x[:, :, 2:5, 1:3], border=[1, 2, 0, 0], scale=[3, 2])],
        "ImageScaler": [case(x / 4 + bias[:, None, None], scale=0.25, bias=bias.tolist()), case(x * 2, scale=2.0)],
        "ParametricSoftplus": [case(1.5 * np.log1p(np.exp(0.5 * x)), alpha=1.5, beta=0.5)],
        "ScaledTanh": [case(1.5 * np.tanh(0.5 * x), alpha=1.5, beta=0.5)],
        "ThresholdedRelu": [case(np.where(x > 0.5, x, 0), alpha=0.5), case(np.where(x > 1, x, 0))],
        "MeanVarianceNormalization": [case(spread / x.std((2, 3), keepdims=True)), case(wide / x.std((1, 2, 3), keepdims=True), across_channels=1), case(spread, normalize_variance=0)],
    }
