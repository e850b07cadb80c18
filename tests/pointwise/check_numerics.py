"""Every element-wise operator on special and random values against numpy in a wider type, within bounds in units of the
last place.

check_numerics.py REGIE FOLDER: one model a type, each operator an output of it, run as it is and as one regie.Pointwise,
with one and two threads. Expected values are computed in float64 for float32 and 16-bit floats, in long double for float64.
"""
import math
import sys

import ml_dtypes
import numpy as np
from onnx import helper

from common import model, run

np.seterr(all="ignore")
EXACT, FEW, MORE = 0.5, 4.0, 8.0
random = np.random.default_rng(20240817)


def specials(dtype):
    info = np.finfo(dtype)
    values = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 3.0, -3.0, 6.0, 1e-3, -1e-3, 20.0, -20.0, 87.0, -87.0, 100.0,
              -100.0, 700.0, -700.0, math.inf, -math.inf, math.nan, float(info.max), float(info.min), float(info.tiny),
              -float(info.tiny), float(info.smallest_subnormal), float(info.eps), 4194304.5, -8388609.0]
    return np.array(values, dtype=np.float64).astype(dtype)


def floats(dtype, count, low=-30, high=30):
    """Specials among values of all magnitudes, more tiles than one and a rest."""
    spread = random.uniform(low, high, count)
    small = np.exp(random.uniform(-40, 3, count)) * random.choice([-1, 1], count)
    values = np.where(random.random(count) < 0.5, spread, small).astype(dtype)
    s = specials(dtype)
    at = random.permutation(count)[: 3 * len(s)]
    values[at] = np.tile(s, 3)
    return values


def erf(x):
    return np.array([math.erf(v) for v in x.astype(np.float64).ravel()]).reshape(x.shape).astype(x.dtype)


SELU = 1.67326319217681884765625, 1.05070102214813232421875


def power(x, e):
    # numpy takes the square root for 0.5; C's pow, which ONNX means, has no sign of zero and no NaN of -inf there.
    return np.where(x == -np.inf, np.inf, np.sqrt(x) + 0.0) if e == 0.5 else np.power(x, e)


def sigmoid(x):
    return np.where(x >= 0, 1 / (1 + np.exp(-x)), np.exp(x) / (1 + np.exp(x)))


def float_cases(dtype):
    """name -> (operator, operands, attributes, expected in the wide type, bound in last places or absolute scale)"""
    half, f32 = dtype == np.float16, np.dtype(np.float32)
    cases = {
        "abs": ("Abs", "x", {}, lambda x: np.abs(x), EXACT),
        "neg": ("Neg", "x", {}, lambda x: -x, EXACT),
        "relu": ("Relu", "x", {}, lambda x: np.where(x < 0, 0, x), EXACT),
        "sqrt": ("Sqrt", "x", {}, np.sqrt, EXACT),
        "reciprocal": ("Reciprocal", "x", {}, lambda x: 1 / x, EXACT),
        "floor": ("Floor", "x", {}, np.floor, EXACT),
        "ceil": ("Ceil", "x", {}, np.ceil, EXACT),
        "round": ("Round", "x", {}, np.round, EXACT),
        "leaky": ("LeakyRelu", "x", {"alpha": 0.25}, lambda x: np.where(x < 0, 0.25 * x, x), EXACT),
        "leaky_default": ("LeakyRelu", "x", {}, lambda x: np.where(x < 0, float(f32.type(0.01)) * x, x), 1.0),
        "exp": ("Exp", "x", {}, np.exp, FEW),
        "log": ("Log", "x", {}, np.log, FEW),
        "tanh": ("Tanh", "x", {}, np.tanh, FEW),
        "erf": ("Erf", "x", {}, erf, FEW),
        "sigmoid": ("Sigmoid", "x", {}, sigmoid, MORE),
        "elu": ("Elu", "x", {"alpha": 1.5}, lambda x: np.where(x < 0, 1.5 * np.expm1(x), x), MORE),
        "add": ("Add", "xy", {}, lambda x, y: x + y, EXACT),
        "sub": ("Sub", "xy", {}, lambda x, y: x - y, EXACT),
        "mul": ("Mul", "xy", {}, lambda x, y: x * y, EXACT),
        "div": ("Div", "xy", {}, lambda x, y: x / y, EXACT),
        "min": ("Min", "xy", {}, np.minimum, EXACT),
        "max": ("Max", "xy", {}, np.maximum, EXACT),
        "min3": ("Min", "xyp", {}, lambda x, y, p: np.minimum(np.minimum(x, y), p), EXACT),
        "equal": ("Equal", "xy", {}, lambda x, y: x == y, None),
        "equal_same": ("Equal", "xx", {}, lambda x, _: x == x, None),
        "less": ("Less", "xy", {}, lambda x, y: x < y, None),
        "greater": ("Greater", "xy", {}, lambda x, y: x > y, None),
        "less_equal": ("LessOrEqual", "xy", {}, lambda x, y: x <= y, None),
        "greater_equal": ("GreaterOrEqual", "xx", {}, lambda x, _: x >= x, None),
        "pow": ("Pow", "py", {}, lambda p, y: p**y, MORE),
        "clip": ("Clip", "xlh", {}, lambda x, low, high: np.where(x < low, low, np.where(x > high, high, x)), EXACT),
        "clip_low": ("Clip", "xl", {}, lambda x, low: np.minimum(np.where(x < low, low, x), ml_dtypes.finfo(dtype).max.astype(f32 if half else dtype)), EXACT),
        "where": ("Where", "bxy", {}, lambda b, x, y: np.where(b, x, y), EXACT),
        "to_i32": ("Cast", "x", {"to": 6}, None, None),
        "to_i64": ("Cast", "x", {"to": 7}, None, None),
        "to_bool": ("Cast", "x", {"to": 9}, lambda x: x != 0, None),
        "to_f32": ("Cast", "x", {"to": 1}, lambda x: x, EXACT),
        "to_f64": ("Cast", "x", {"to": 11}, lambda x: x, EXACT),
        "to_f16": ("Cast", "x", {"to": 10}, lambda x: x, EXACT),
    }
    cases["sin"] = ("Sin", "x", {}, np.sin, "scale")
    cases["cos"] = ("Cos", "x", {}, np.cos, "scale")
    cases["sign"] = ("Sign", "x", {}, np.sign, EXACT)
    cases["is_nan"] = ("IsNaN", "x", {}, np.isnan, None)
    cases["softsign"] = ("Softsign", "x", {}, lambda x: x / (1 + np.abs(x)), 2.0)
    cases["softplus"] = ("Softplus", "x", {}, lambda x: np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x))), MORE)
    cases["prelu"] = ("PRelu", "xy", {}, lambda x, y: np.where(x < 0, x * y, x), EXACT)
    # Of results below the normal numbers the last place is fixed; the tails of three functions meet there.
    cases["mish"] = ("Mish", "x", {}, lambda x: x * np.tanh(np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))), 64.0)
    cases["selu"] = ("Selu", "x", {}, lambda x: SELU[1] * np.where(x > 0, x, SELU[0] * np.expm1(x)), MORE)
    cases["gelu"] = ("Gelu", "x", {}, lambda x: 0.5 * x * (1 + erf(x / np.sqrt(x.dtype.type(2)))), "scale")
    cases["gelu_tanh"] = ("Gelu", "x", {"approximate": "tanh"}, lambda x: 0.5 * x * (
        1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x * x * x))), "scale")
    for e in (2.0, 3.0, 0.5, -1.5):
        cases[f"pow_{str(e).replace('.', '_').replace('-', 'm')}"] = (
            "Pow", f"x{e}", {}, lambda x, e=e: power(x, e), 2.0 if e > 0 else MORE)
    # Cancellation: bounds in last places of the greatest term.
    alpha, beta = float(f32.type(0.2)), 0.5
    cases["hard_sigmoid"] = ("HardSigmoid", "x", {}, lambda x: np.clip(alpha * x + beta, 0, 1), "scale")
    cases["hard_swish"] = ("HardSwish", "x", {}, lambda x: x * np.clip(x / 6 + 0.5, 0, 1), "scale")
    return cases


def saturating(x, to):
    """Cut towards zero, held within the range; NaN becomes 0."""
    info = np.iinfo(to)
    wide = [0 if math.isnan(v) else info.max if v >= float(info.max) else info.min if v <= float(info.min) else int(v)
            for v in x.astype(np.float64)]
    return np.array(wide, dtype=to)


def distance(got, want):
    """Greatest distance in units of the last place of `got`'s type; infinite where kinds of numbers differ."""
    dtype = got.dtype
    wide = np.longdouble if dtype == np.float64 else np.float64
    info = np.finfo(dtype)
    want = want.astype(wide)
    nan = np.isnan(want)
    if (np.isnan(got) != nan).any():
        return math.inf
    rounded = want.astype(dtype)
    infinite = np.isinf(got) | np.isinf(rounded)
    # Just beyond the greatest number, either side is right by a last place.
    edge = infinite & ~nan & (got != rounded)
    if edge.any() and (np.abs(np.where(np.isinf(got), rounded, got)[edge].astype(wide)) < wide(info.max) * 0.999).any():
        return math.inf
    finite = ~nan & ~infinite
    magnitude = np.maximum(np.abs(want[finite]), wide(info.tiny))
    last_place = np.exp2(np.floor(np.log2(magnitude))) * wide(info.eps)
    error = np.abs(got[finite].astype(wide) - want[finite]) / last_place
    return float(error.max()) if error.size else 0.0


def check_floats(regie, folder, dtype, arguments):
    dtype = np.dtype(dtype)
    count = 5003
    inputs = {"x": floats(dtype, count), "y": floats(dtype, count, -4, 4), "b": random.random(count) < 0.5}
    inputs["p"] = np.abs(floats(dtype, count, 0.1, 5))
    constants = {"l": np.array(-0.75, dtype), "h": np.array(2.5, dtype)}
    cases, nodes = float_cases(dtype), []
    for name, (op, operands, attributes, _, _) in cases.items():
        names = list(operands)
        if op == "Pow" and operands[0] == "x":
            constants[f"e_{name}"] = np.array(float(operands[1:]), dtype)
            names = ["x", f"e_{name}"]
        nodes.append(helper.make_node(op, names, [name], **attributes))
    got = run(regie, folder, model(nodes, inputs, cases, constants), inputs, cases, arguments)
    wide = np.longdouble if dtype == np.float64 else np.float64
    values = {n: (a if a.dtype == np.bool_ else a.astype(wide)) for n, a in {**inputs, **constants}.items()}
    faults = []
    for name, (op, operands, attributes, expected, bound) in cases.items():
        args = [values["x"]] if op == "Pow" and operands[0] == "x" else [values[o] for o in operands]
        if expected is None:
            want = saturating(inputs["x"], np.int32 if name == "to_i32" else np.int64)
        else:
            want = expected(*args)
        if bound is None:
            if got[name].dtype != want.dtype or not np.array_equal(got[name], want):
                at = np.flatnonzero(got[name] != want)[:3]
                faults.append(f"{dtype} {name}: {got[name][at]} where {want[at]} is right, of {inputs['x'][at]}")
            continue
        if bound == "scale":
            rounded = want.astype(dtype)
            finite = np.isfinite(rounded)
            same = np.array_equal(got[name][~finite], rounded[~finite], equal_nan=True)
            error = np.abs(got[name][finite].astype(wide) - want[finite])
            limit = 8 * wide(np.finfo(dtype).eps) * np.maximum(1, np.abs(inputs["x"][finite].astype(wide)))
            if not same or not (error <= limit).all():
                faults.append(f"{dtype} {name}: off by {float((error - limit).max())}")
            continue
        # 16-bit floats are the float32 result, rounded once more.
        limit = max(bound, 0.51) if dtype != np.float16 or name.startswith("to_") else 1.0
        if name == "to_f16":
            limit = 0.51
        if dtype == np.float16 and name.startswith("pow_"):
            limit = 1.5  # a product of products is rounded twice
        d = distance(got[name], want)
        if not d <= limit:
            faults.append(f"{dtype} {name}: {d:.2f} last places; {limit} are allowed")
    return len(cases), faults


def check_integers(regie, folder, dtype, arguments):
    dtype = np.dtype(dtype)
    info, count = np.iinfo(dtype), 4111
    x = random.integers(info.min, info.max, count, dtype=dtype, endpoint=True)
    x[:8] = [info.min, info.max, 0, 1, 2, info.max - 1, info.min + 1, 5]
    small = random.integers(1, 9, count).astype(dtype)
    inputs = {"x": x, "y": random.permutation(x), "s": small, "b": random.random(count) < 0.5}
    constants = {"l": np.array(3, dtype), "h": np.array(77, dtype)}
    cases = {
        "add": ("Add", "xy", {}, lambda a, b: a + b), "sub": ("Sub", "xy", {}, lambda a, b: a - b),
        "mul": ("Mul", "xy", {}, lambda a, b: a * b),
        "div": ("Div", "xs", {}, lambda a, b: (np.abs(a.astype(object)) // b.astype(object) * np.where(a < 0, -1, 1)).astype(dtype)),
        "min": ("Min", "xy", {}, np.minimum), "max": ("Max", "xy", {}, np.maximum),
        "abs": ("Abs", "x", {}, np.abs),
        "clip": ("Clip", "xlh", {}, lambda a, low, high: np.clip(a, low, high)),
        "equal": ("Equal", "xs", {}, lambda a, b: a == b), "less": ("Less", "xy", {}, lambda a, b: a < b),
        "greater": ("Greater", "xy", {}, lambda a, b: a > b),
        "less_equal": ("LessOrEqual", "xy", {}, lambda a, b: a <= b),
        "greater_equal": ("GreaterOrEqual", "xy", {}, lambda a, b: a >= b),
        "where": ("Where", "bxy", {}, np.where),
        "to_f32": ("Cast", "x", {"to": 1}, lambda a: a.astype(np.float32)),
        "to_f64": ("Cast", "x", {"to": 11}, lambda a: a.astype(np.float64)),
        "to_i64": ("Cast", "x", {"to": 7}, lambda a: a.astype(np.int64)),
        "to_i32": ("Cast", "x", {"to": 6}, lambda a: a.astype(np.int32)),
        "to_u8": ("Cast", "x", {"to": 2}, lambda a: a.astype(np.uint8)),
        "to_bool": ("Cast", "x", {"to": 9}, lambda a: a != 0),
    }
    if info.min < 0:
        cases["neg"] = ("Neg", "x", {}, lambda a: -a)
        cases["relu"] = ("Relu", "x", {}, lambda a: np.maximum(a, 0))
    nodes = [helper.make_node(op, list(operands), [n], **attributes) for n, (op, operands, attributes, _) in cases.items()]
    got = run(regie, folder, model(nodes, inputs, cases, constants), inputs, cases, arguments)
    values = {**inputs, **constants}
    faults = []
    for name, (op, operands, _, expected) in cases.items():
        want = expected(*[values[o] for o in operands])
        if got[name].dtype != want.dtype or not np.array_equal(got[name], want):
            at = np.flatnonzero(got[name] != want)[:3]
            faults.append(f"{dtype} {name}: {got[name][at]} where {want[at]} is right")
    return len(cases), faults


def check_logic(regie, folder, arguments):
    inputs = {"x": random.random(3001) < 0.5, "y": random.random(3001) < 0.5}
    cases = {"and": ("And", "xy", {}, np.logical_and), "or": ("Or", "xy", {}, np.logical_or),
             "xor": ("Xor", "xy", {}, np.logical_xor), "not": ("Not", "x", {}, np.logical_not),
             "equal": ("Equal", "xy", {}, np.equal), "where": ("Where", "xyx", {}, np.where),
             "to_f32": ("Cast", "x", {"to": 1}, lambda a: a.astype(np.float32)),
             "to_i64": ("Cast", "x", {"to": 7}, lambda a: a.astype(np.int64))}
    nodes = [helper.make_node(op, list(operands), [n], **attributes) for n, (op, operands, attributes, _) in cases.items()]
    got = run(regie, folder, model(nodes, inputs, cases), inputs, cases, arguments)
    faults = [f"bool {name}" for name, (_, operands, _, expected) in cases.items()
              if not np.array_equal(got[name], expected(*[inputs[o] for o in operands]))]
    return len(cases), faults


def main():
    regie, folder = sys.argv[1:3]
    total, faults = 0, []
    for arguments in (["--no-optimise"], [], ["--threads", "2"]):
        for dtype in (np.float32, np.float64, np.float16):
            count, found = check_floats(regie, folder, dtype, arguments)
            total, faults = total + count, faults + [f"{arguments} {f}" for f in found]
        for dtype in (np.int32, np.int64, np.int8, np.uint8, np.int16, np.uint16, np.uint32, np.uint64):
            count, found = check_integers(regie, folder, dtype, arguments)
            total, faults = total + count, faults + [f"{arguments} {f}" for f in found]
        count, found = check_logic(regie, folder, arguments)
        total, faults = total + count, faults + [f"{arguments} {f}" for f in found]
    for f in faults:
        print(f)
    print(f"{total} cases, {len(faults)} faults")
    sys.exit(1 if faults or total < 600 else 0)


main()
