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

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "models"))
from check_models import with_outputs
from check_simulated import BOUND, NETWORKS, error_of, rounded, session_of
from inputs import random_inputs
from rounder import Rounder, halves

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
