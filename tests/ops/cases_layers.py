"""Cases of normalisations, recurrent layers and Resize."""
import numpy as np
from onnx import helper

from values import FLOATS

I64 = np.int64


def norms(writer, v):
    for _ in range(30):
        elem, shape = v.choose(FLOATS), v.shape(1, 4, zeros=False)
        axis = v.integer(0, len(shape) - 1)
        x, part = v.tensor(elem, shape), shape[axis:]
        given = {"axis": axis - (len(shape) if v.flag() else 0), "epsilon": v.choose([1e-5, 0.01])}
        scale = v.tensor(elem, part, 0.5, 1.5)
        bias = v.tensor(elem, part, -1, 1) if v.flag() else None
        # The mean and the inverse deviation are of f32 whatever the input is; ONNX Runtime gives them for f32 only.
        count = v.choose([1, 3]) if elem == "f32" else 1
        writer.add("LayerNormalization", [x, scale, bias], results=count, tolerance=1e-4, reference=False, **given)
        writer.add("RMSNormalization", [x, scale], tolerance=1e-4, **given)
    for _ in range(25):
        elem, groups = v.choose(FLOATS), v.integer(1, 3)
        channels = groups * v.integer(1, 3)
        shape = (v.integer(1, 2), channels, *[v.integer(2, 5) for _ in range(v.integer(1, 3))])
        parameters = [v.tensor(elem, (channels,), 0.5, 1.5), v.tensor(elem, (channels,), -1, 1)]
        writer.add("InstanceNormalization", [v.tensor(elem, shape), *parameters], tolerance=1e-4)
        writer.add("GroupNormalization", [v.tensor(elem, shape), *parameters], tolerance=1e-4, num_groups=groups, epsilon=0.01)
        if len(shape) == 4 and elem != "f64":  # what ONNX Runtime has
            writer.add("LRN", [v.tensor(elem, shape)], reference=False, size=v.choose([1, 3, 5]), alpha=0.1, beta=0.6, bias=1.5)
        if len(shape) == 4 and elem != "f64":
            writer.add("MeanVarianceNormalization", [v.tensor(elem, shape)], tolerance=1e-4, **v.choose([{}, {"axes": [0, 2, 3]}, {"axes": [2, 3]}]))
    for _ in range(20):
        shape = v.shape(1, 4, zeros=False)
        axis = {"axis": v.integer(-len(shape), len(shape) - 1)} if v.flag() else {}
        writer.add("LpNormalization", [v.tensor(v.choose(["f32", "f64"]), shape)], p=v.choose([1, 2]), tolerance=2e-5, reference=False, **axis)  # onnx.reference takes no absolute values
        writer.add("Hardmax", [v.distinct(v.choose(["f32", "f64"]), shape)], reference=False, **axis)


def recurrent(writer, v):
    for op, gates, states, functions in (("RNN", 1, 1, 1), ("GRU", 3, 1, 2), ("LSTM", 4, 2, 3)):
        for _ in range(40):
            steps, batch, width, hidden = v.integer(1, 5), v.integer(1, 3), v.integer(1, 4), v.integer(1, 6)
            direction = v.choose(["forward", "reverse", "bidirectional"])
            count = 2 if direction == "bidirectional" else 1
            given = {"direction": direction, "hidden_size": hidden}
            operands = [v.tensor("f32", (steps, batch, width), -1, 1), v.tensor("f32", (count, gates * hidden, width), -1, 1),
                        v.tensor("f32", (count, gates * hidden, hidden), -1, 1)]
            operands.append(v.tensor("f32", (count, 2 * gates * hidden), -1, 1) if v.flag() else None)
            operands.append(v.rng.integers(1, steps + 1, batch).astype(np.int32) if v.flag() else None)
            for _ in range(states):
                operands.append(v.tensor("f32", (count, batch, hidden), -1, 1) if v.flag() else None)
            if op == "LSTM":
                operands.append(v.tensor("f32", (count, 3 * hidden), -1, 1) if v.flag() else None)
                if v.integer(0, 3) == 0:
                    given["input_forget"] = 1
            if op == "GRU" and v.flag():
                given["linear_before_reset"] = v.flag()
            if v.integer(0, 3) == 0:
                given["clip"] = 0.6
            if v.integer(0, 2) == 0:
                given["activations"] = [v.choose(["Relu", "Tanh", "Sigmoid", "Softsign", "Softplus", "HardSigmoid", "Elu", "LeakyRelu"]) for _ in range(functions * count)]
            # onnx.reference knows the plain cases only. Omitted results come with it.
            writer.add(op, operands, results=states + 1, reference=False, tolerance=2e-5, **given)
            if v.integer(0, 3) == 0:
                last = [r for r in range(states + 1) if v.flag()][:states]
                writer.add(op, operands, results=states + 1, omitted=tuple(r for r in last if r < states), reference=False, tolerance=2e-5, **given)
    layout(writer, v)


def layout(writer, v):
    """Batch first, which ONNX Runtime lacks: what it says of the steps first, with the axes exchanged."""
    for op, gates, states in (("RNN", 1, 1), ("GRU", 3, 1), ("LSTM", 4, 2)):
        for direction, count in (("forward", 1), ("bidirectional", 2)):
            operands = [v.tensor("f32", (2, 4, 3), -1, 1), v.tensor("f32", (count, gates * 5, 3), -1, 1), v.tensor("f32", (count, gates * 5, 5), -1, 1), None, None,
                        *[v.tensor("f32", (2, count, 5), -1, 1) for _ in range(states)]]
            inputs = ["x", "x1", "x2", "", "", *[f"s{i}" for i in range(states)]]
            nodes = [helper.make_node("Transpose", ["x0"], ["x"], perm=[1, 0, 2])]
            nodes += [helper.make_node("Transpose", [f"x{5 + i}"], [f"s{i}"], perm=[1, 0, 2]) for i in range(states)]
            nodes.append(helper.make_node(op, inputs, ["t", *[f"t{i}" for i in range(states)]], hidden_size=5, direction=direction))
            nodes.append(helper.make_node("Transpose", ["t"], ["y0"], perm=[2, 0, 1, 3]))
            nodes += [helper.make_node("Transpose", [f"t{i}"], [f"y{i + 1}"], perm=[1, 0, 2]) for i in range(states)]
            writer.add(op, operands, results=states + 1, nodes=nodes, reference=False, tolerance=2e-5, hidden_size=5, direction=direction, layout=1)


def resize(writer, v):
    coordinates = ["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "half_pixel_symmetric"]
    for _ in range(140):
        mode = v.choose(["nearest", "nearest", "linear", "cubic"])
        shape = (1, v.integer(1, 2), v.integer(2, 6), v.integer(2, 6))
        given = {"mode": mode, "coordinate_transformation_mode": v.choose(coordinates)}
        if mode == "nearest":
            given["nearest_mode"] = v.choose(["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])
        if mode == "cubic":
            given["cubic_coeff_a"] = v.choose([-0.75, -0.5])
            given["exclude_outside"] = v.flag()
        elem = v.choose(["f32", "f32", "u8", "i32", "f16"] if mode == "nearest" else ["f32"])
        x = v.distinct(elem, shape) if mode == "nearest" else v.tensor(elem, shape)
        # By scales that give no whole length, ONNX Runtime's align_corners is PyTorch's and not ONNX's.
        if v.flag() or given["coordinate_transformation_mode"] == "align_corners":
            sizes = np.array([1, shape[1], v.integer(1, 9), v.integer(1, 9)], I64)
            operands = [x, None, None, sizes]
        else:
            operands = [x, None, np.array([1, 1, v.choose([0.5, 1.5, 2, 0.75, 3]), v.choose([2, 0.6, 1.25, 1])], np.float32)]
        writer.add("Resize", operands, reference=False, tolerance=1e-4, **given)
    for _ in range(10):  # other ranks, and positions in a region
        x = v.tensor("f32", (2, 3, v.integer(2, 8)))
        writer.add("Resize", [x, None, np.array([1, 1, v.choose([0.5, 2, 1.5])], np.float32)], mode=v.choose(["nearest", "linear"]), reference=False, tolerance=1e-4)
        region = np.array([0, 0, 0.1, 0.2, 1, 1, v.rng.uniform(0.5, 1.2), v.rng.uniform(0.5, 1.2)], np.float32)
        writer.add("Resize", [v.tensor("f32", (1, 2, 5, 6)), region, None, np.array([1, 2, 4, 3], I64)], mode="linear", extrapolation_value=2.5,
                   coordinate_transformation_mode="tf_crop_and_resize", reference=False, tolerance=1e-4)


FAMILIES = [norms, recurrent, resize]
