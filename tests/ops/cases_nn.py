"""Cases of configs/ops/nn.toml and fused.toml."""
import numpy as np
from onnx import helper

from cases import numpy_type
from values import FLOATS

AUTO_PADS = ["NOTSET", "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"]


def window(v, rank, dilated=True):
    """Random kernel, strides, dilations and padding of `rank` axes, some of them left to their defaults."""
    kernel = [v.integer(1, 3) for _ in range(rank)]
    attrs = {"auto_pad": v.choose(AUTO_PADS)}
    if v.flag():
        attrs["strides"] = [v.integer(1, 3) for _ in range(rank)]
    # ONNX leaves SAME with dilation open.
    if v.flag() and dilated and not attrs["auto_pad"].startswith("SAME"):
        attrs["dilations"] = [v.integer(1, 2) for _ in range(rank)]
    if attrs["auto_pad"] == "NOTSET":
        del attrs["auto_pad"]
        if v.flag():
            attrs["pads"] = [v.integer(0, k - 1) for k in kernel * 2]
    return kernel, attrs


def spatial(v, kernel, attrs):
    return [v.integer((k - 1) * d + 1, 9) for k, d in zip(kernel, attrs.get("dilations", [1] * len(kernel)))]


def convolution(v, elem, transposed=False):
    rank = v.choose([1, 2, 2, 2, 3])
    kernel, attrs = window(v, rank)
    group = v.choose([1, 1, 2, 3])
    channels, filters, batch = group * v.integer(1, 3), group * v.integer(1, 3), v.choose([1, 2, 3, 0])
    size = spatial(v, kernel, attrs)
    if group > 1 or v.flag():
        attrs["group"] = group
    if v.flag():
        attrs["kernel_shape"] = kernel
    weight = (channels, filters // group, *kernel) if transposed else (filters, channels // group, *kernel)
    x, w = v.tensor(elem, (batch, channels, *size), -1, 1), v.tensor(elem, weight, -1, 1)
    b = v.tensor(elem, (filters,), -1, 1) if v.flag() else None
    return x, w, b, attrs


def conv(writer, v):
    for _ in range(160):
        x, w, b, attrs = convolution(v, v.choose(FLOATS))
        # onnx.reference has no 3-D, deviates with SAME_* and with empty batches.
        reference = len(x.shape) < 5 and not attrs.get("auto_pad", "").startswith("SAME") and x.size > 0
        writer.add("Conv", [x, w, b], reference=reference, **attrs)


def conv_transpose(writer, v):
    for _ in range(120):
        x, w, b, attrs = convolution(v, v.choose(FLOATS), transposed=True)
        rank = len(x.shape) - 2
        if rank == 3 or x.shape[0] == 0:
            continue
        auto = attrs.get("auto_pad", "NOTSET")
        strides = attrs.get("strides", [1] * rank)
        if auto.startswith("SAME") and any(s > k for s, k in zip(strides, w.shape[2:])):
            continue  # the result is to be the input's size times the stride; ONNX Runtime's is smaller then
        if auto != "VALID" and v.integer(0, 2) == 0 and max(strides) > 1:
            attrs["output_padding"] = [v.integer(0, s - 1) for s in strides]
            if auto.startswith("SAME"):
                del attrs["output_padding"]
        if auto == "NOTSET" and v.integer(0, 3) == 0:
            attrs.pop("pads", None)
            dilations = attrs.get("dilations", [1] * rank)
            padding = attrs.get("output_padding", [0] * rank)
            attrs["output_shape"] = [s * (n - 1) + p + (k - 1) * d + 1 - v.integer(0, min(2, s * (n - 1) + p))
                                     for s, n, p, k, d in zip(strides, x.shape[2:], padding, w.shape[2:], dilations)]
        writer.add("ConvTranspose", [x, w, b], reference=False, **attrs)


def pool(writer, v):
    for op in ("MaxPool", "AveragePool"):
        for _ in range(120):
            rank = v.choose([1, 2, 2, 3])
            kernel, attrs = window(v, rank)
            if attrs.get("auto_pad", "").startswith("SAME") and "strides" in attrs:
                # ONNX Runtime refuses the negative padding that a stride beyond the kernel would need.
                attrs["strides"] = [min(s, k) for s, k in zip(attrs["strides"], kernel)]
            attrs["kernel_shape"] = kernel
            if v.flag():
                attrs["ceil_mode"] = v.flag() if "auto_pad" not in attrs else 0
            elem = v.choose(FLOATS + (["i8", "u8"] if op == "MaxPool" else []))
            shape = (v.choose([1, 2]), v.integer(1, 3), *spatial(v, kernel, attrs))
            count, omitted = 1, ()
            if op == "MaxPool":
                x = v.distinct(elem, shape)
                if v.flag():
                    attrs["storage_order"] = v.flag()
                if elem not in ("f16", "bf16", "i8", "u8") and v.flag():
                    count = 2
            else:
                x = v.tensor(elem, shape)
                if v.flag():
                    attrs["count_include_pad"] = v.flag()
            # onnx.reference knows too few of the combinations.
            writer.add(op, [x], results=count, omitted=omitted, reference=False, **attrs)
    for op in ("GlobalAveragePool", "GlobalMaxPool"):
        for _ in range(20):
            shape = (v.choose([1, 2, 0]), v.integer(1, 4), *[v.integer(1, 6) for _ in range(v.integer(1, 3))])
            writer.add(op, [v.tensor(v.choose(FLOATS), shape)], reference=op == "GlobalAveragePool" and shape[0] > 0)


def batch_norm(writer, v):
    for _ in range(40):
        elem = v.choose(FLOATS)
        shape = v.shape(2, 5)
        parameters = [v.tensor(elem, (shape[1],), -1, 1) for _ in range(3)] + [v.tensor(elem, (shape[1],), 0.1, 2)]
        attrs = {"epsilon": float(np.float32(v.choose([1e-5, 1e-3, 0.1])))} if v.flag() else {}
        writer.add("BatchNormalization", [v.tensor(elem, shape), *parameters], tolerance=2e-5, **attrs)
    for _ in range(20):
        shape = v.shape(2, 5)
        operands = [v.tensor("f32", shape)] + [v.tensor("f32", (shape[1],), -1, 1) for _ in range(3)] + [v.tensor("f32", (shape[1],), 0.1, 2)]
        relu = v.flag()
        nodes = [helper.make_node("BatchNormalization", ["x0", "x1", "x2", "x3", "x4"], ["n" if relu else "y0"], epsilon=0.125)]
        if relu:
            nodes.append(helper.make_node("Relu", ["n"], ["y0"]))
        writer.add("regie.FusedBatchNormalization", operands, nodes=nodes, reference=False, tolerance=2e-5, epsilon=0.125,
                   activation="Relu" if relu else "")


def softmax(writer, v):
    for op in ("Softmax", "LogSoftmax"):
        for _ in range(40):
            shape = v.shape(1, 4)
            attrs = {"axis": v.integer(-len(shape), len(shape) - 1)} if v.flag() else {}
            x = v.tensor(v.choose(FLOATS), shape, -20, 20)
            writer.add(op, [x], reference=x.size > 0, **attrs)


def gemm(writer, v):
    for _ in range(80):
        elem = v.choose(FLOATS + ["i32", "i64", "u32", "u64"])
        m, k, n = (v.choose([1, 2, 3, 5, 8]) for _ in range(3))
        if v.integer(0, 9) == 0:
            m, k, n = v.choose([(0, 3, 2), (2, 3, 0), (2, 0, 3)])
        ta, tb = v.flag(), v.flag()
        a, b = v.tensor(elem, (k, m) if ta else (m, k)), v.tensor(elem, (n, k) if tb else (k, n))
        c = v.tensor(elem, v.choose([(m, n), (n,), (1, n), (m, 1), (), (1,)])) if v.flag() else None
        attrs = {"transA": ta, "transB": tb}
        if v.flag() and elem not in ("i32", "i64", "u32", "u64"):
            attrs.update(alpha=v.choose([0.5, 1.0, -2.0]), beta=v.choose([0.25, 1.0, 0.0]))
        if elem[0] in "iu":  # ONNX Runtime has no such kernel, onnx.reference makes floats of them
            y = (a.T if ta else a) @ (b.T if tb else b)
            writer.known("Gemm", [a, b, c], [y if c is None else y + c], **attrs)
        else:
            writer.add("Gemm", [a, b, c], reference=k != 0, **attrs)


def matmul_shapes(v):
    batch = v.shape(0, 3)
    m, k, n = (v.choose([1, 2, 3, 5]) for _ in range(3))
    a, b = (*v.broadcastable(batch), m, k), (*batch, k, n)
    if v.flag():
        a, b = (*batch, m, k), (*v.broadcastable(batch), k, n)
    kind = v.integer(0, 7)
    if kind == 0:
        a = (k,)
    if kind == 1:
        b = (k,)
    if kind == 2:
        a, b = (k,), (k,)
    return a, b


def matmul(writer, v):
    for _ in range(90):
        elem = v.choose(FLOATS + ["i32", "i64", "u32", "u64"])
        a, b = matmul_shapes(v)
        writer.add("MatMul", [v.tensor(elem, a), v.tensor(elem, b)])
    writer.add("MatMul", [v.tensor("f32", (2, 0)), v.tensor("f32", (0, 3))])
    writer.add("MatMul", [v.tensor("f32", (4, 40)), v.tensor("f32", (40, 33))])


def dropout(writer, v):
    for elem in ("f32", "f64", "f16"):
        for count in (1, 2):
            x = v.tensor(elem, v.shape())
            writer.add("Dropout", [x], results=count)
            writer.add("Dropout", [x, np.array(0.3, x.dtype)], results=count)
            writer.add("Dropout", [x, None, np.array(False)], results=count)


# ---- Fused operators: their meaning in ONNX's ----

def activation_nodes(v, name, x, y):
    """Nodes that compute y = act(x), and the fused operator's attributes."""
    alpha, beta = float(np.float32(v.rng.uniform(0.05, 0.5))), float(np.float32(v.rng.uniform(0.2, 0.8)))
    attrs = {"activation": name}
    if name == "":
        return [helper.make_node("Identity", [x], [y])], attrs
    if name == "Swish":
        return [helper.make_node("Sigmoid", [x], ["s"]), helper.make_node("Mul", [x, "s"], [y])], attrs
    if name in ("Gelu", "GeluTanh"):
        return [helper.make_node("Gelu", [x], [y], approximate="tanh" if name == "GeluTanh" else "none")], attrs
    if name == "Clip":
        low = [helper.make_node("Constant", [], [n], value_float=f) for n, f in (("low", -alpha), ("high", beta))]
        to_type = [helper.make_node("CastLike", [n, x], [n + "_t"]) for n in ("low", "high")]
        attrs.update(activation_alpha=-alpha, activation_beta=beta)
        return low + to_type + [helper.make_node("Clip", [x, "low_t", "high_t"], [y])], attrs
    given = {}
    if name in ("LeakyRelu", "Elu", "HardSigmoid"):
        given["alpha"] = attrs["activation_alpha"] = alpha
    if name == "HardSigmoid":
        given["beta"] = attrs["activation_beta"] = beta
    return [helper.make_node(name, [x], [y], **given)], attrs


ACTIVATIONS = ["", "Relu", "LeakyRelu", "Sigmoid", "Tanh", "HardSigmoid", "HardSwish", "Clip", "Elu", "Swish", "Gelu",
               "GeluTanh"]


def fused_conv(writer, v):
    for number in range(80):
        x, w, b, attrs = convolution(v, v.choose(["f32", "f32", "f16", "bf16"]))
        wide = [a if a is None else a.astype(np.float32) for a in (x, w, b)]
        node = helper.make_node("Conv", ["x0", "x1"] + (["x2"] if b is not None else []), ["c"], **attrs)
        from cases import by_onnxruntime, model_of
        shape = by_onnxruntime(model_of([node], wide, ["c"]), wide, ["c"])[0].shape
        nodes, last, r = [node], "c", None
        if v.flag():
            r = v.tensor("f32", shape, -1, 1).astype(x.dtype)
            nodes.append(helper.make_node("Add", ["c", "x3"], ["sum"]))
            last = "sum"
        more, fused = activation_nodes(v, ACTIVATIONS[number % len(ACTIVATIONS)], last, "y0")
        writer.add("regie.FusedConv", [x, w, b, r], nodes=nodes + more, reference=False, **attrs, **fused)


def fused_matmul(writer, v):
    for number in range(80):
        elem = v.choose(["f32", "f32", "f64", "f16", "bf16"])
        name = ACTIVATIONS[number % len(ACTIVATIONS)]
        if elem == "f64" and name in ("HardSwish", "Swish", "HardSigmoid", "Elu", "Clip", "LeakyRelu"):
            elem = "f32"
        a_shape, b_shape = matmul_shapes(v)
        ta, tb, alpha = v.flag(), v.flag(), v.choose([1.0, 0.5])
        a, b = v.tensor(elem, a_shape, -1, 1), v.tensor(elem, b_shape, -1, 1)
        y_shape = np.matmul(a.astype(np.float32), b.astype(np.float32)).shape
        nodes = []
        operands = [a, b, None, None]
        sides = []
        for i, (side, transposed) in enumerate(((a, ta), (b, tb))):
            if not transposed or side.ndim < 2:
                sides.append(f"x{i}")
                continue
            operands[i] = np.ascontiguousarray(np.swapaxes(side, -1, -2))
            order = [*range(side.ndim - 2), side.ndim - 1, side.ndim - 2]
            nodes.append(helper.make_node("Transpose", [f"x{i}"], [f"t{i}"], perm=order))
            sides.append(f"t{i}")
        nodes.append(helper.make_node("MatMul", sides, ["p"]))
        last = "p"
        if alpha != 1:
            nodes += [helper.make_node("Constant", [], ["a"], value_float=alpha), helper.make_node("CastLike", ["a", "p"], ["at"]),
                      helper.make_node("Mul", ["p", "at"], ["scaled"])]
            last = "scaled"
        for i in (2, 3):
            if v.flag():
                shape = v.broadcastable(y_shape) if i == 2 else y_shape
                operands[i] = v.tensor(elem, shape, -1, 1)
                nodes.append(helper.make_node("Add", [last, f"x{i}"], [f"sum{i}"]))
                last = f"sum{i}"
        more, fused = activation_nodes(v, name, last, "y0")
        writer.add("regie.FusedMatMul", operands, nodes=nodes + more, reference=False, transA=ta, transB=tb, alpha=alpha,
                   **fused)


FAMILIES = [conv, conv_transpose, pool, batch_norm, softmax, gemm, matmul, dropout, fused_conv, fused_matmul]
