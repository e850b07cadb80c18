"""A network with values rounded to halves, for ONNX Runtime to say what that costs."""
import numpy as np
import onnx
from onnx import helper, numpy_helper


def halves(array):
    """As halves hold it; what is beyond them stays (variances of a normalisation, which no product has as an operand)."""
    with np.errstate(over="ignore"):
        narrow = array.astype(np.float16).astype(np.float32)
    return np.where(np.isfinite(narrow), narrow, array)


class Rounder:
    """A copy of the model that rounds what it is told to, and computes all else in f32: the operands of products and convolutions that are
    not constant to `operands` halves, `weights` after a normalisation's factor was multiplied into them, `sums` of convolutions."""

    def __init__(self, model, operands=0, weights=False, sums=False):
        self.operands, self.weights, self.sums = operands, weights, sums
        self.model = onnx.ModelProto()
        self.model.CopyFrom(model)
        del self.model.graph.node[:]
        self.constants = {i.name: i for i in model.graph.initializer}
        self.readers = {}
        for node in model.graph.node:
            for name in node.input:
                self.readers.setdefault(name, []).append(node)
        folded = set()
        for node in model.graph.node:
            normalisation = self.behind(node)
            if node.output[0] in folded:
                continue
            if normalisation is not None and weights | sums:
                self.convolution(node, normalisation)
                folded.add(normalisation.output[0])
            else:
                self.other(node)

    def add(self, kind, inputs, output=None, **attributes):
        name = output or f"rounding {len(self.model.graph.node)}"
        self.model.graph.node.append(helper.make_node(kind, inputs, [name], **attributes))
        return name

    def constant(self, name, array):
        self.model.graph.initializer.append(numpy_helper.from_array(array, name))
        return name

    def half(self, name):
        return self.add("Cast", [self.add("Cast", [name], to=onnx.TensorProto.FLOAT16)], to=onnx.TensorProto.FLOAT)

    def operand(self, name):
        if name in self.constants or not self.operands:
            return name
        high = self.half(name)
        return high if self.operands == 1 else self.add("Add", [high, self.half(self.add("Sub", [name, high]))])

    def behind(self, node):
        """The normalisation that is all that reads this convolution."""
        readers = self.readers.get(node.output[0], [])
        fits = node.op_type == "Conv" and len(readers) == 1 and readers[0].op_type == "BatchNormalization"
        return readers[0] if fits and all(n in self.constants for n in readers[0].input[1:5]) else None

    def convolution(self, node, normalisation):
        epsilon = next((a.f for a in normalisation.attribute if a.name == "epsilon"), 1e-5)
        array = {name: numpy_helper.to_array(self.constants[name]) for name in (*node.input[1:], *normalisation.input[1:5]) if name}
        gain, shift, mean, variance = (array[n] for n in normalisation.input[1:5])
        factor = (gain / np.sqrt(variance + np.float32(epsilon))).astype(np.float32)
        weight = array[node.input[1]]
        spatial = [1] * (weight.ndim - 2)
        weight = (weight * factor.reshape(-1, 1, *spatial)).astype(np.float32)
        bias = array[node.input[2]] if len(node.input) > 2 and node.input[2] else np.float32(0)
        term = ((bias - mean) * factor + shift).astype(np.float32)
        name = normalisation.output[0]
        own = self.model.graph.node.add()
        own.CopyFrom(node)
        del own.input[:]
        self.model.graph.node.pop()
        own.input.extend([self.operand(node.input[0]), self.constant(f"{name} weight", halves(weight) if self.weights else weight)])
        own.output[0] = f"{name} sum"
        self.model.graph.node.append(own)
        total = self.half(own.output[0]) if self.sums else own.output[0]
        self.add("Add", [total, self.constant(f"{name} term", term.reshape(1, -1, *spatial))], name)

    def other(self, node):
        own = onnx.NodeProto()
        own.CopyFrom(node)
        if node.op_type in ("Conv", "ConvTranspose", "Gemm", "MatMul"):
            for i in range(2):
                own.input[i] = self.operand(node.input[i])
        if node.op_type == "Conv" and self.sums:
            own.output[0] = f"{node.output[0]} sum"
        self.model.graph.node.append(own)
        if own.output[0] != node.output[0]:
            self.add("Identity", [self.half(own.output[0])], node.output[0])
