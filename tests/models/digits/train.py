"""Trains the digits model and writes everything in this folder that is not text.

    python train.py [--out FOLDER] [--epochs 60]

Needs numpy, scikit-learn (for the data only), onnx and onnxruntime. The network is small enough to be trained with numpy
alone: each layer below has a forward and a backward pass. The seed is fixed; the last digits of the weights still depend
on the BLAS that numpy was built with, so the files in this folder are kept and not made anew at each build.
"""

import argparse
import pathlib

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

SEED = 7
HELD_BACK = 360
OPSET = 17
EPSILON = 1e-5


class Conv:
    """3x3, stride 1, padding 1. x: [N,C,H,W], weight: [K,C,3,3], bias: [K] or None."""

    def __init__(self, rng, channels, kernels, bias):
        deviation = np.sqrt(2 / (9 * channels))
        self.params = {"weight": rng.normal(0, deviation, (kernels, channels, 3, 3)).astype(np.float32)}
        if bias:
            self.params["bias"] = np.zeros(kernels, np.float32)
        self.grads = {}

    def forward(self, x, training):
        n, c, h, w = x.shape
        padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
        windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))  # [N,C,H,W,3,3]
        self.columns = windows.transpose(0, 2, 3, 1, 4, 5).reshape(n * h * w, c * 9)
        self.shape = x.shape
        weight = self.params["weight"]
        y = self.columns @ weight.reshape(len(weight), -1).T
        if "bias" in self.params:
            y += self.params["bias"]
        return y.reshape(n, h, w, -1).transpose(0, 3, 1, 2)

    def backward(self, dy):
        n, c, h, w = self.shape
        weight = self.params["weight"]
        flat = dy.transpose(0, 2, 3, 1).reshape(n * h * w, -1)
        self.grads["weight"] = (flat.T @ self.columns).reshape(weight.shape)
        if "bias" in self.params:
            self.grads["bias"] = flat.sum(0)
        columns = (flat @ weight.reshape(len(weight), -1)).reshape(n, h, w, c, 3, 3)
        dx = np.zeros((n, c, h + 2, w + 2), np.float32)
        for i in range(3):
            for j in range(3):
                dx[:, :, i : i + h, j : j + w] += columns[..., i, j].transpose(0, 3, 1, 2)
        return dx[:, :, 1:-1, 1:-1]


class BatchNorm:
    def __init__(self, channels):
        self.params = {"scale": np.ones(channels, np.float32), "shift": np.zeros(channels, np.float32)}
        self.grads = {}
        self.mean = np.zeros(channels, np.float32)
        self.variance = np.ones(channels, np.float32)

    def forward(self, x, training):
        if training:
            mean, variance = x.mean((0, 2, 3)), x.var((0, 2, 3))
            self.mean += 0.1 * (mean - self.mean)
            self.variance += 0.1 * (variance - self.variance)
        else:
            mean, variance = self.mean, self.variance
        self.inverse = 1 / np.sqrt(variance + EPSILON)
        self.normal = (x - mean[:, None, None]) * self.inverse[:, None, None]
        return self.normal * self.params["scale"][:, None, None] + self.params["shift"][:, None, None]

    def backward(self, dy):
        axes = (0, 2, 3)
        self.grads["scale"], self.grads["shift"] = (dy * self.normal).sum(axes), dy.sum(axes)
        count = dy.size / dy.shape[1]
        inner = dy - (self.grads["shift"] / count)[:, None, None]
        inner -= self.normal * (self.grads["scale"] / count)[:, None, None]
        return inner * (self.params["scale"] * self.inverse)[:, None, None]


class Relu:
    params, grads = {}, {}

    def forward(self, x, training):
        self.mask = x > 0
        return x * self.mask

    def backward(self, dy):
        return dy * self.mask


class MaxPool2:
    params, grads = {}, {}

    def forward(self, x, training):
        n, c, h, w = x.shape
        tiles = x.reshape(n, c, h // 2, 2, w // 2, 2)
        y = tiles.max((3, 5))
        self.mask = tiles == y[:, :, :, None, :, None]
        self.mask = self.mask / self.mask.sum((3, 5), keepdims=True, dtype=np.float32)
        return y

    def backward(self, dy):
        n, c, h, w = dy.shape
        return (self.mask * dy[:, :, :, None, :, None]).reshape(n, c, 2 * h, 2 * w)


class Residual:
    """x + inner(x)"""

    def __init__(self, inner):
        self.inner = inner

    def forward(self, x, training):
        y = x
        for layer in self.inner:
            y = layer.forward(y, training)
        return x + y

    def backward(self, dy):
        dx = dy
        for layer in reversed(self.inner):
            dx = layer.backward(dx)
        return dy + dx


class Head:
    """Global average, then a linear layer. weight: [10,C] (Gemm with transB = 1)."""

    def __init__(self, rng, channels):
        self.params = {
            "weight": rng.normal(0, np.sqrt(1 / channels), (10, channels)).astype(np.float32),
            "bias": np.zeros(10, np.float32),
        }
        self.grads = {}

    def forward(self, x, training):
        self.area, self.shape, self.pooled = x.shape[2] * x.shape[3], x.shape, x.mean((2, 3))
        return self.pooled @ self.params["weight"].T + self.params["bias"]

    def backward(self, dy):
        self.grads["weight"], self.grads["bias"] = dy.T @ self.pooled, dy.sum(0)
        pooled = dy @ self.params["weight"] / self.area
        return np.broadcast_to(pooled[:, :, None, None], self.shape).astype(np.float32)


def leaves(layers):
    for layer in layers:
        if isinstance(layer, Residual):
            yield from leaves(layer.inner)
        else:
            yield layer


def build(rng):
    """The layers by the names that their nodes have in the model."""
    named = {
        "stem.conv": Conv(rng, 1, 16, bias=False),
        "stem.norm": BatchNorm(16),
        "block1.conv1": Conv(rng, 16, 16, bias=False),
        "block1.norm1": BatchNorm(16),
        "block1.conv2": Conv(rng, 16, 16, bias=True),
        "block1.norm2": BatchNorm(16),
        "widen.conv": Conv(rng, 16, 32, bias=False),
        "widen.norm": BatchNorm(32),
        "block2.conv1": Conv(rng, 32, 32, bias=True),
        "block2.norm1": BatchNorm(32),
        "block2.conv2": Conv(rng, 32, 32, bias=True),
        "head.linear": Head(rng, 32),
    }
    for conv in ("block1.conv2", "block2.conv2"):
        named[conv].params["weight"] *= np.float32(0.5)
    n = named
    block1 = Residual([n["block1.conv1"], n["block1.norm1"], Relu(), n["block1.conv2"], n["block1.norm2"]])
    block2 = Residual([n["block2.conv1"], n["block2.norm1"], Relu(), n["block2.conv2"]])
    layers = [n["stem.conv"], n["stem.norm"], Relu(), block1, Relu(), MaxPool2()]
    layers += [n["widen.conv"], n["widen.norm"], Relu(), block2, Relu(), n["head.linear"]]
    return named, layers


def run(layers, x, training=False):
    y = x / np.float32(16)
    for layer in layers:
        y = layer.forward(y, training)
    return y


def shift(rng, images):
    """Each image moved by up to one pixel in each direction."""
    padded = np.pad(images, ((0, 0), (0, 0), (1, 1), (1, 1)))
    moves = rng.integers(0, 3, (len(images), 2))
    return np.stack([padded[k, :, i : i + 8, j : j + 8] for k, (i, j) in enumerate(moves)])


def train(rng, layers, images, labels, epochs):
    moments = [{k: [np.zeros_like(p), np.zeros_like(p)] for k, p in leaf.params.items()} for leaf in leaves(layers)]
    batch, step = 32, 0
    total = epochs * (len(images) // batch)
    for epoch in range(epochs):
        order = rng.permutation(len(images))
        loss = 0.0
        for begin in range(0, len(order) - batch + 1, batch):
            pick = order[begin : begin + batch]
            scores = run(layers, shift(rng, images[pick]), training=True)
            scores = scores - scores.max(1, keepdims=True)
            softmax = np.exp(scores)
            softmax /= softmax.sum(1, keepdims=True)
            target = np.full_like(softmax, 0.005)
            target[np.arange(batch), labels[pick]] += 0.95
            loss -= float((target * np.log(softmax + 1e-9)).sum()) / batch
            gradient = (softmax - target) / batch
            for layer in reversed(layers):
                gradient = layer.backward(gradient)
            step += 1
            rate = 2e-3 * 0.5 * (1 + np.cos(np.pi * step / total))
            for leaf, moment in zip(leaves(layers), moments):
                for key, param in leaf.params.items():
                    grad = leaf.grads[key]
                    if key == "weight":
                        grad = grad + 1e-4 * param
                    first, second = moment[key]
                    first += 0.1 * (grad - first)
                    second += 0.001 * (grad * grad - second)
                    unbiased = second / (1 - 0.999**step)
                    param -= (rate * first / (1 - 0.9**step) / (np.sqrt(unbiased) + 1e-8)).astype(np.float32)
        if epoch % 10 == 9:
            print(f"epoch {epoch + 1}: loss {loss / (len(order) // batch):.4f}", flush=True)


def export(named):
    """The model as a framework would export it: normalisations kept, every node named."""
    nodes, tensors = [], []

    def constant(name, array):
        tensors.append(numpy_helper.from_array(np.ascontiguousarray(array, np.float32), name))
        return name

    def node(op, name, inputs, **attributes):
        nodes.append(helper.make_node(op, inputs, [name + ".out"], name=name, **attributes))
        return name + ".out"

    def conv(name, x):
        inputs = [x] + [constant(f"{name}.{k}", p) for k, p in named[name].params.items()]
        return node("Conv", name, inputs, kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[1, 1], dilations=[1, 1], group=1)

    def norm(name, x):
        layer = named[name]
        values = {**layer.params, "mean": layer.mean, "variance": layer.variance}
        inputs = [x] + [constant(f"{name}.{k}", v) for k, v in values.items()]
        return node("BatchNormalization", name, inputs, epsilon=EPSILON)

    x = node("Mul", "scale", ["x", constant("scale.factor", np.float32(1 / 16))])
    x = node("Relu", "stem.relu", [norm("stem.norm", conv("stem.conv", x))])
    y = node("Relu", "block1.relu1", [norm("block1.norm1", conv("block1.conv1", x))])
    y = norm("block1.norm2", conv("block1.conv2", y))
    x = node("Relu", "block1.relu2", [node("Add", "block1.add", [y, x])])
    x = node("MaxPool", "pool", [x], kernel_shape=[2, 2], strides=[2, 2])
    x = node("Relu", "widen.relu", [norm("widen.norm", conv("widen.conv", x))])
    y = node("Relu", "block2.relu1", [norm("block2.norm1", conv("block2.conv1", x))])
    x = node("Relu", "block2.relu2", [node("Add", "block2.add", [x, conv("block2.conv2", y)])])
    x = node("GlobalAveragePool", "head.pool", [x])
    x = node("Flatten", "head.flatten", [x], axis=1)
    weight = constant("head.linear.weight", named["head.linear"].params["weight"])
    bias = constant("head.linear.bias", named["head.linear"].params["bias"])
    nodes.append(helper.make_node("Gemm", [x, weight, bias], ["scores"], name="head.linear", transB=1))

    graph = helper.make_graph(
        nodes,
        "digits",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 1, 8, 8])],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["N", 10])],
        tensors,
    )
    model = helper.make_model(graph, producer_name="regie-digits", opset_imports=[helper.make_opsetid("", OPSET)])
    model.ir_version = 8
    onnx.checker.check_model(model, full_check=True)
    return model


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path(__file__).parent)
    parser.add_argument("--epochs", type=int, default=60)
    args = parser.parse_args()

    digits = load_digits()
    images = digits.images.astype(np.float32)[:, None]
    labels = digits.target.astype(np.int64)
    known, held, known_labels, held_labels = train_test_split(
        images, labels, test_size=HELD_BACK, stratify=labels, random_state=SEED
    )
    rng = np.random.default_rng(SEED)
    named, layers = build(rng)
    train(rng, layers, known, known_labels, args.epochs)

    args.out.mkdir(parents=True, exist_ok=True)
    onnx.save(export(named), args.out / "digits.onnx")
    np.save(args.out / "images.npy", held)
    np.save(args.out / "labels.npy", held_labels)

    session = onnxruntime.InferenceSession(args.out / "digits.onnx", providers=["CPUExecutionProvider"])
    (scores,) = session.run(["scores"], {"x": held})
    np.save(args.out / "ort_scores.npy", scores)
    own = run(layers, held)
    right = scores.argmax(1) == held_labels
    for digit in range(10):
        pick = int(np.flatnonzero(right & (held_labels == digit))[0])
        np.save(args.out / f"digit_{digit}.npy", held[pick : pick + 1])
    top = np.sort(scores, axis=1)
    print(f"held back: {right.sum()} of {len(right)} right ({right.mean():.4f}) by ONNX Runtime {onnxruntime.__version__}")
    print(f"largest difference from the scores in training: {np.abs(own - scores).max():.2e}")
    print(f"smallest lead of an answer over the next: {(top[:, -1] - top[:, -2]).min():.4f}, max |score| {np.abs(scores).max():.2f}")


if __name__ == "__main__":
    main()
