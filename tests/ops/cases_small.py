"""Cases of types of 8 bits and fewer: by the operators' texts, with NumPy and ml_dtypes."""
import numpy as np

from cases import ELEMS, numpy_type

SMALL_FLOATS = ["f8e4m3fn", "f8e4m3fnuz", "f8e5m2", "f8e5m2fnuz", "f4e2m1"]
SMALL_INTEGERS = ["u4", "i4", "u2", "i2"]


def power_of_two(x, saturate, mode):
    """x as e8m0 by the text of Cast: a byte."""
    if np.isnan(x) or x < 0 or (not saturate and (np.isinf(x) or x < 2.0**-127)):
        return 255
    if np.isinf(x) or x < 2.0**-127:
        return 254 if x > 1 else 0
    low = int(np.floor(np.log2(x)))
    low += 1 if 2.0 ** (low + 1) <= x else -1 if 2.0**low > x else 0
    up = x > 2.0**low if mode == "up" else mode == "nearest" and x >= 1.5 * 2.0**low
    byte = low + up + 127
    return byte if byte <= 254 else 254 if saturate else 255


def small_cast(writer, v):
    """Types of 8 bits and fewer, by ml_dtypes (which never saturates) and the text of Cast."""
    every = {n: np.arange(2 ** {"u": 4, "i": 4, "f": 8}[n[0]] if n not in ("f4e2m1", "u2", "i2") else 16 if n == "f4e2m1" else 4, dtype=np.uint8).view(numpy_type(n))
             for n in SMALL_FLOATS + SMALL_INTEGERS + ["f8e8m0"]}
    for name, values in every.items():
        if name in ("i4", "i2"):  # ml_dtypes keeps them with their sign in the whole byte
            values = np.arange(-len(values) // 2, len(values) // 2, dtype=np.int8).astype(numpy_type(name))
        for target in ("f32", "f64", "f16", "bf16"):
            writer.known("Cast", [values], [values.astype(np.float64).astype(numpy_type(target))], to=ELEMS[target][0])
        if name in SMALL_INTEGERS:
            writer.known("Cast", [values], [values.astype(np.int8)], to=ELEMS["i8"][0])
            writer.known("Cast", [values], [values.astype(np.int64)], to=ELEMS["i64"][0])
    edges = [0, -0.0, np.nan, np.inf, -np.inf, 1e6, -1e6, 1e-7, -1e-7, 448, 464, 464.01, 480, 240, 247.9, 248, -248, 57344, 61439, 61440, -61440,
             2**-9, 2**-10, 2**-10 * 1.01, 3 * 2**-11, 2**-16, 2**-17, 2**-18 * 1.5, 6, 7, 0.25, 0.75, 5, 2.5, 3.5, -5]
    halves = np.concatenate([every[n].astype(np.float64) for n in SMALL_FLOATS])
    halves = np.unique(halves[np.isfinite(halves)])
    ties = (halves[1:] + halves[:-1]) / 2
    x = np.concatenate([edges, halves, ties, v.rng.uniform(-500, 500, 300), v.rng.uniform(-0.02, 0.02, 300), v.rng.uniform(-7, 7, 100)]).astype(np.float32)
    for name in SMALL_FLOATS:
        kind = numpy_type(name)
        signed = x if name == "f4e2m1" else np.concatenate([x, np.float32([-np.nan])])  # which has no NaN
        for source in ("f32", "f64", "f16"):
            given = signed.astype(numpy_type(source))
            plain = given.astype(np.float32).astype(kind)
            limit = {"f8e4m3fn": 448, "f8e4m3fnuz": 240, "f8e5m2": 57344, "f8e5m2fnuz": 57344, "f4e2m1": 6}[name]
            held = np.where(np.isnan(given), given, np.clip(given, -limit, limit)).astype(np.float32).astype(kind)
            writer.known("Cast", [given], [held], to=ELEMS[name][0])
            if name != "f4e2m1":
                writer.known("Cast", [given], [plain], to=ELEMS[name][0], saturate=0)
        writer.known("Cast", [np.arange(-20, 20)], [np.clip(np.arange(-20, 20), -limit, limit).astype(np.float32).astype(kind)], to=ELEMS[name][0])
    powers = np.concatenate([[0, np.nan, np.inf, 1, 1.49, 1.5, 1.51, 2, 3, 2**-126, 2**-127, 2**-128, 3 * 2.0**-128, 2.0**127, 1.2 * 2.0**127, 1.6 * 2.0**127, 1e-45], v.rng.uniform(0, 9, 100)]).astype(np.float32)
    for mode in ("up", "down", "nearest"):
        for saturate in (0, 1):
            bytes_ = np.array([power_of_two(float(p), saturate, mode) for p in powers], np.uint8)
            writer.known("Cast", [powers], [bytes_.view(numpy_type("f8e8m0"))], to=ELEMS["f8e8m0"][0], saturate=saturate, round_mode=mode)
    for name in SMALL_INTEGERS:
        kind = numpy_type(name)
        for given in (np.arange(-300, 301, 7), np.arange(-9, 10, dtype=np.int8), np.arange(0, 40, dtype=np.uint64) + np.uint64(2**63)):
            writer.known("Cast", [given], [given.astype(np.int64).astype(kind)], to=ELEMS[name][0])
        cut = v.rng.uniform(-20, 20, 67).astype(np.float32)
        writer.known("Cast", [cut], [np.trunc(cut).astype(np.int64).astype(kind)], to=ELEMS[name][0])
        writer.known("Cast", [cut.astype(np.float16)], [np.trunc(cut.astype(np.float16)).astype(np.int64).astype(kind)], to=ELEMS[name][0])
        writer.known("Cast", [np.arange(16, dtype=np.uint8).view(numpy_type("f4e2m1"))], [np.trunc(np.arange(16, dtype=np.uint8).view(numpy_type("f4e2m1")).astype(np.float32)).astype(np.int64).astype(kind)], to=ELEMS[name][0])


def quantized(writer, v):
    """4 and 2 bits, and small floats: by the operators' texts in NumPy, single precision."""
    ranges = {"u4": (0, 15), "i4": (-8, 7), "u2": (0, 3), "i2": (-2, 1)}
    limits = {"f8e4m3fn": 448, "f8e4m3fnuz": 240, "f8e5m2": 57344, "f8e5m2fnuz": 57344, "f4e2m1": 6}
    for name in (*ranges, *limits):
        kind = numpy_type(name)
        for layout in ("tensor", "axis", "block"):
            x = v.rng.uniform(-300 if name in limits else -4, 300 if name in limits else 4, (3, 8)).astype(np.float32)
            scale = v.rng.uniform(0.3, 0.8, {"tensor": (), "axis": 3, "block": (3, 3)}[layout]).astype(np.float32)
            given = {"tensor": {}, "axis": {"axis": 0}, "block": {"axis": 1, "block_size": 3}}[layout]
            wide = {"tensor": lambda s: s, "axis": lambda s: s[:, None], "block": lambda s: s.repeat(3, 1)[:, :8]}[layout]
            if name in ranges:
                low, high = ranges[name]
                zero = v.rng.integers(low, high + 1, scale.shape)
                q = np.clip(np.rint(x / wide(scale)) + wide(zero), low, high).astype(np.int8)
                y = ((q - wide(zero)).astype(np.float32) * wide(scale)).astype(np.float32)
            else:
                zero = np.zeros(scale.shape)
                q = np.clip(x / wide(scale), -limits[name], limits[name]).astype(np.float32)
                y = (q.astype(kind).astype(np.float32) * wide(scale)).astype(np.float32)
            zero = np.asarray(zero).astype(kind)
            writer.known("QuantizeLinear", [x, scale, zero], [q.astype(kind)], **given)
            writer.known("QuantizeLinear", [x, scale], [np.asarray(q + 0 if name in limits else np.clip(np.rint(x / wide(scale)), low, high)).astype(kind)],
                         output_dtype=ELEMS[name][0], **given)
            writer.known("DequantizeLinear", [q.astype(kind), scale, zero], [y], **given)
            if name in limits:
                writer.known("DequantizeLinear", [q.astype(kind), scale], [y], **given)
        if name in limits and name != "f4e2m1":
            x = np.array([1e6, -1e6, 3, np.nan], np.float32)
            writer.known("QuantizeLinear", [x, np.float32(1), np.zeros((), kind)], [x.astype(kind)], saturate=0)


FAMILIES = [small_cast, quantized]
