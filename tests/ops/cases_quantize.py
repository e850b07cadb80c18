"""Cases of configs/ops/quantize.toml."""
import numpy as np


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


FAMILIES = [quantized]
