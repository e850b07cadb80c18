"""Models for predictions and stories, written operator by operator: weights are random numbers of a fixed seed, so that
a time, which depends on shapes alone, can be worked out without a training framework."""

import numpy as np
from onnx import TensorProto, helper, numpy_helper, save


class Network:
    """A graph under construction: each method adds an operator and returns the name of its result."""

    def __init__(self, name, seed=1):
        self.name, self.nodes, self.weights, self.inputs = name, [], [], []
        self.random = np.random.default_rng(seed)

    def input(self, name, shape, elem=TensorProto.FLOAT):
        self.inputs.append(helper.make_tensor_value_info(name, elem, shape))
        return name

    def constant(self, name, array):
        self.weights.append(numpy_helper.from_array(array, name))
        return name

    def weight(self, name, shape, scale=0.05, elem=np.float32):
        return self.constant(name, (self.random.standard_normal(shape, np.float32) * np.float32(scale)).astype(elem))

    def add(self, op, name, operands, **attributes):
        result = name + ".out"
        self.nodes.append(helper.make_node(op, operands, [result], name=name, **attributes))
        return result

    def conv(self, x, name, inputs, outputs, kernel, stride=1, bias=False):
        operands = [x, self.weight(name + ".weight", [outputs, inputs, kernel, kernel], (2 / (inputs * kernel * kernel)) ** 0.5)]
        if bias:
            operands.append(self.weight(name + ".bias", [outputs]))
        return self.add("Conv", name, operands, strides=[stride] * 2, pads=[kernel // 2] * 4, kernel_shape=[kernel] * 2)

    def norm(self, x, name, channels):
        scale, shift, mean = (self.weight(f"{name}.{part}", [channels], 0.1) for part in ("scale", "shift", "mean"))
        variance = self.constant(name + ".variance", self.random.uniform(0.5, 1.5, channels).astype(np.float32))
        return self.add("BatchNormalization", name, [x, scale, shift, mean, variance])

    def save(self, path, results):
        """`results`: names of values with their shapes."""
        outputs = [helper.make_tensor_value_info(r, elem, shape) for r, shape, elem in results]
        graph = helper.make_graph(self.nodes, self.name, self.inputs, outputs, self.weights)
        save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9), path)
        return path


def resnet(path, blocks=(3, 4, 6, 3), between=None):
    """ResNet with bottlenecks, 224 x 224, batch N: (3, 4, 6, 3) is ResNet-50, (3, 4, 23, 3) ResNet-101. `between(network, value, name)`
    may put something between the convolution `name` and its normalisation."""
    n = Network("resnet%d" % (3 * sum(blocks) + 2))

    def unit(x, name, inputs, outputs, kernel, stride=1, relu=True):
        y = n.conv(x, name + ".conv", inputs, outputs, kernel, stride)
        if between:
            y = between(n, y, name + ".conv")
        y = n.norm(y, name + ".bn", outputs)
        return n.add("Relu", name + ".relu", [y]) if relu else y

    x = unit(n.input("x", ["N", 3, 224, 224]), "stem", 3, 64, 7, 2)
    x = n.add("MaxPool", "stem.pool", [x], kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    channels = 64
    for stage, count in enumerate(blocks):
        width = 64 << stage
        for block in range(count):
            name, stride = f"layer{stage + 1}.{block}", 2 if stage and not block else 1
            y = unit(x, name + ".1", channels, width, 1)
            y = unit(y, name + ".2", width, width, 3, stride)
            y = unit(y, name + ".3", width, 4 * width, 1, relu=False)
            if not block:
                x = unit(x, name + ".down", channels, 4 * width, 1, stride, relu=False)
            x = n.add("Relu", name + ".relu", [n.add("Add", name + ".add", [y, x])])
            channels = 4 * width
    x = n.add("Flatten", "flatten", [n.add("GlobalAveragePool", "pool", [x])])
    x = n.add("Gemm", "head", [x, n.weight("head.weight", [1000, channels]), n.weight("head.bias", [1000])], transB=1)
    return n.save(path, [(x, ["N", 1000], TensorProto.FLOAT)])


def gemm(path, m, n, k, half=True):
    """One product of matrices with constant weights."""
    elem, kind = (TensorProto.FLOAT16, np.float16) if half else (TensorProto.FLOAT, np.float32)
    net = Network(f"gemm_{m}x{n}x{k}")
    # The values do not matter, and random numbers of that many take long.
    y = net.add("MatMul", "gemm", [net.input("x", [m, k], elem), net.constant("w", np.full([k, n], 0.01, kind))])
    return net.save(path, [(y, [m, n], elem)])


def elementwise(path, op, elements, half=True):
    elem = TensorProto.FLOAT16 if half else TensorProto.FLOAT
    net = Network(op.lower())
    y = net.add(op, op.lower(), [net.input("x", [elements], elem)])
    return net.save(path, [(y, [elements], elem)])


def bert(path, layers=12, hidden=768, heads=12, length=128):
    """The encoder of BERT-base on embeddings [N, length, hidden]."""
    n = Network(f"bert{layers}")
    depth = hidden // heads

    def dense(x, name, inputs, outputs):
        y = n.add("MatMul", name, [x, n.weight(name + ".weight", [inputs, outputs], 0.02)])
        return n.add("Add", name + ".add", [y, n.weight(name + ".bias", [outputs], 0.02)])

    def split(x, name, order):
        x = n.add("Reshape", name + ".heads", [x, shape])
        return n.add("Transpose", name + ".turn", [x], perm=order)

    def norm(x, name):
        operands = [x, n.weight(name + ".scale", [hidden]), n.weight(name + ".shift", [hidden])]
        return n.add("LayerNormalization", name, operands, axis=-1)

    shape = n.constant("heads", np.array([0, 0, heads, depth], np.int64))
    merged = n.constant("merged", np.array([0, 0, hidden], np.int64))
    scale = n.constant("scale", np.float32(depth**-0.5))
    x = n.input("x", ["N", length, hidden])
    for i in range(layers):
        name = f"layer{i}"
        q = split(dense(x, name + ".q", hidden, hidden), name + ".q", [0, 2, 1, 3])
        k = split(dense(x, name + ".k", hidden, hidden), name + ".k", [0, 2, 3, 1])
        v = split(dense(x, name + ".v", hidden, hidden), name + ".v", [0, 2, 1, 3])
        scores = n.add("Mul", name + ".scale", [n.add("MatMul", name + ".scores", [q, k]), scale])
        y = n.add("MatMul", name + ".values", [n.add("Softmax", name + ".softmax", [scores], axis=-1), v])
        y = n.add("Reshape", name + ".merge", [n.add("Transpose", name + ".back", [y], perm=[0, 2, 1, 3]), merged])
        x = norm(n.add("Add", name + ".residual", [dense(y, name + ".out", hidden, hidden), x]), name + ".norm")
        y = n.add("Gelu", name + ".gelu", [dense(x, name + ".up", hidden, 4 * hidden)])
        x = norm(n.add("Add", name + ".residual2", [dense(y, name + ".down", 4 * hidden, hidden), x]), name + ".norm2")
    return n.save(path, [(x, ["N", length, hidden], TensorProto.FLOAT)])


def resnet_training(path, batch, blocks=(3, 4, 6, 3), size=224):
    """Work like a training step's of `resnet`, without its values: for each convolution the product itself, the statistics and the
    normalisation of its result, and backwards two sums over gradient and result, the normalisation's gradient, the weights' gradient (as
    the product of the same size: of the same input, added to the gradient) and the input's gradient (of a step of two, as a product with
    four times the channels, seen as a picture twice as wide and high). Each reads and writes the tensors that the step's own would, but
    for the weights' gradients, which are as large as a result here. Weights are constant; the optimiser's update is left out."""
    n = Network("resnet%d_training" % (3 * sum(blocks) + 2))
    zero, one = n.constant("zero", np.float32(0)), n.constant("one", np.float32(1))
    sizes = {}

    def mean(x, name):
        return n.add("GlobalAveragePool", name, [x])

    def unit(x, name, inputs, outputs, kernel, stride=1, relu=True, residual=None):
        """The result, and what the way back needs."""
        c = n.conv(x, name + ".conv", inputs, outputs, kernel, stride)
        y = n.add("Mul", name + ".norm", [n.add("Sub", name + ".centre", [c, mean(c, name + ".mean")]), n.weight(name + ".scale", [1, outputs, 1, 1])])
        y = n.add("Add", name + ".shift", [y, n.weight(name + ".shift.weight", [1, outputs, 1, 1])])
        if residual:
            y = n.add("Add", name + ".add", [y, residual])
        y = n.add("Relu", name + ".relu", [y]) if relu else y
        sizes[y] = sizes[x] // stride
        return y, (x, c, y, name, inputs, outputs, kernel, stride, relu)

    def back(g, made, last=False):
        """From the gradient of the result that of the input, and of what was added before the activation."""
        x, c, y, name, inputs, outputs, kernel, stride, relu = made
        name += ".back"
        if relu:
            g = n.add("Mul", name + ".masked", [g, n.add("Clip", name + ".mask", [y, zero, one])])
        h = n.add("Sub", name + ".less", [g, mean(g, name + ".sum")])
        h = n.add("Sub", name + ".norm", [h, n.add("Mul", name + ".product", [c, mean(c, name + ".sum2")])])
        w = n.add("Add", name + ".weights", [n.conv(x, name + ".weights.conv", inputs, outputs, kernel, stride), h])
        if last:
            return w, g
        r = n.conv(w, name + ".input", outputs, inputs * stride * stride, kernel)
        if stride > 1:
            r = n.add("Reshape", name + ".wide", [r, n.constant(name + ".shape", np.array([batch, inputs, sizes[x], sizes[x]], np.int64))])
        return r, g

    x = n.input("x", [batch, 3, size, size])
    sizes[x] = size
    x, stem = unit(x, "stem", 3, 64, 7, 2)
    x = n.add("MaxPool", "stem.pool", [x], kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    sizes[x] = size // 4
    tape, channels = [], 64
    for stage, count in enumerate(blocks):
        width = 64 << stage
        for block in range(count):
            name, stride = f"layer{stage + 1}.{block}", 2 if stage and not block else 1
            y, first = unit(x, name + ".1", channels, width, 1)
            y, second = unit(y, name + ".2", width, width, 3, stride)
            skip, down = unit(x, name + ".down", channels, 4 * width, 1, stride, relu=False) if not block else (x, None)
            x, third = unit(y, name + ".3", width, 4 * width, 1, residual=skip)
            tape.append((name, first, second, third, down))
            channels = 4 * width
    f = n.add("Flatten", "flatten", [n.add("GlobalAveragePool", "pool", [x])])
    p = n.add("Softmax", "softmax", [n.add("Gemm", "head", [f, n.weight("head.weight", [1000, channels]), n.weight("head.bias", [1000])], transB=1)], axis=1)
    g = n.add("MatMul", "head.back", [p, n.weight("head.weight.turned", [1000, channels])])
    g = n.add("Add", "pool.back", [n.add("Reshape", "pool.shape", [g, n.constant("pooled", np.array([batch, channels, 1, 1], np.int64))]), x])
    for name, first, second, third, down in reversed(tape):
        inner, outer = back(g, third)
        inner, _ = back(inner, second)
        inner, _ = back(inner, first)
        if down:
            outer, _ = back(outer, down)
        g = n.add("Add", name + ".back", [inner, outer])
    g = n.add("Reshape", "stem.pool.wide", [n.conv(g, "stem.pool.back", 64, 256, 1), n.constant("stem.shape", np.array([batch, 64, size // 2, size // 2], np.int64))])
    g, _ = back(g, stem, last=True)
    return n.save(path, [(mean(g, "end"), [batch, 64, 1, 1], TensorProto.FLOAT)])
