"""What rounding to halves costs a network, one cause at a time, in ONNX Runtime alone: no device and no engine of ours.

    rounding.py FOLDER [NAME...]      NAMEs as in tests/models/check_simulated.py; default: all that it knows

For each network, whose inputs and weights are halves, a row of a table: the worst relative error in the Euclidean norm over all
tensors, and how many are above 5e-3, when nothing but this is rounded:
  operands  what products and convolutions multiply that is not constant
  weights   of convolutions with a batch normalisation behind, after its factor was multiplied into them
  sums      what convolutions give, before the normalisation's shift
  all       these three
  two       operands as the sum of two halves
"""
import copy
import pathlib
import sys
import tempfile

import numpy as np
import onnx
from onnx import helper, numpy_helper

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "models"))
from check_models import with_outputs
from check_simulated import BOUND, NETWORKS, error_of, halves, rounded, session_of
from inputs import random_inputs

CAUSES = {"operands": {"operands": 1}, "weights": {"weights": True}, "sums": {"sums": True},
          "all": {"operands": 1, "weights": True, "sums": True}, "two": {"operands": 2}}


def with_initializers(model):
    """Constant nodes become initializers, so that there is one place to look."""
    left = []
    for node in model.graph.node:
        if node.op_type == "Constant" and node.attribute[0].name == "value":
            tensor = copy.deepcopy(node.attribute[0].t)
            tensor.name = node.output[0]
            model.graph.initializer.append(tensor)
        else:
            left.append(copy.deepcopy(node))
    del model.graph.node[:]
    model.graph.node.extend(left)
    return model


class Rounder:
    """A copy of the model that rounds what it is told to."""

    def __init__(self, model, operands=0, weights=False, sums=False):
        self.source, self.operands, self.weights, self.sums = model, operands, weights, sums
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


def run(model, names, inputs):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "model.onnx"
        onnx.save(with_outputs(model, names), path)
        return dict(zip(names, session_of(path).run(names, inputs)))


def main():
    folder, names = pathlib.Path(sys.argv[1]), sys.argv[2:] or list(NETWORKS)
    print(f"| network | tensors | {' | '.join(CAUSES)} |\n|---|---|{'---|' * len(CAUSES)}")
    for name in names:
        model = with_initializers(rounded(onnx.load(folder / f"{name}.onnx")))
        inputs = NETWORKS[name][0] or random_inputs(model, 7, lambda _, dims: dims)
        inputs = {n: halves(a) if a.dtype == np.float32 else a for n, a in inputs.items()}
        # What a normalisation reads has no counterpart once its factor is in the weights.
        normalised = {n.input[0] for n in model.graph.node if n.op_type == "BatchNormalization"}
        tensors = [o for n in model.graph.node for o in n.output if o and o not in normalised]
        expected = run(model, tensors, inputs)
        words = []
        for cause in CAUSES.values():
            got = run(Rounder(model, **cause).model, tensors, inputs)
            errors = [error_of(got[t], expected[t]) for t in tensors]
            words.append(f"{max(errors):.1e}, {sum(e > BOUND for e in errors)}")
        print(f"| {name} | {len(tensors)} | {' | '.join(words)} |", flush=True)


if __name__ == "__main__":
    main()
