"""Networks in 16-bit floats: every float32 weight, constant and value of an exported network in float16 or bfloat16.

    narrow_models.py SOURCE.onnx TARGET.onnx f16|bf16

Inputs and outputs stay float32, converted where the network reads and gives them, as the usual converters do it.
"""
import pathlib
import sys

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

TYPES = {"f16": (TensorProto.FLOAT16, np.float16), "bf16": (TensorProto.BFLOAT16, ml_dtypes.bfloat16)}
# Operands that are float32 whatever the rest is.
FIXED = {"Resize": (1, 2), "Upsample": (1,)}


def fixed_in(graph):
    """The names of those operands."""
    return {n.input[i] for n in graph.node for i in FIXED.get(n.op_type, ()) if i < len(n.input)}


def narrowed(tensor, elem, dtype):
    values = numpy_helper.to_array(tensor).astype(dtype)
    raw = values.view(np.uint16).astype("<u2").tobytes()
    return helper.make_tensor(tensor.name, elem, tensor.dims, raw, raw=True)


def narrow(model, kind):
    elem, dtype = TYPES[kind]
    graph = model.graph
    fixed = fixed_in(graph)
    for tensor in graph.initializer:
        if tensor.data_type == TensorProto.FLOAT and tensor.name not in fixed:
            tensor.CopyFrom(narrowed(tensor, elem, dtype))
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.TENSOR and attribute.t.data_type == TensorProto.FLOAT:
                if node.output[0] not in fixed:
                    attribute.t.CopyFrom(narrowed(attribute.t, elem, dtype))
            if node.op_type == "Cast" and attribute.name == "to" and attribute.i == TensorProto.FLOAT:
                attribute.i = elem
    del graph.value_info[:]
    weights = {w.name for w in graph.initializer}
    before, after = [], []
    renamed = {}
    for value in graph.input:
        if value.name not in weights and value.type.tensor_type.elem_type == TensorProto.FLOAT:
            renamed[value.name] = value.name + "/narrow"
            before.append(helper.make_node("Cast", [value.name], [renamed[value.name]], to=elem))
    for value in graph.output:
        if value.type.tensor_type.elem_type == TensorProto.FLOAT:
            renamed[value.name] = value.name + "/narrow"
            after.append(helper.make_node("Cast", [renamed[value.name]], [value.name], to=TensorProto.FLOAT))
    for node in graph.node:
        for names in (node.input, node.output):
            names[:] = [renamed.get(name, name) for name in names]
    nodes = [*before, *graph.node, *after]
    del graph.node[:]
    graph.node.extend(nodes)
    return model


if __name__ == "__main__":
    if len(sys.argv) != 4 or sys.argv[3] not in TYPES:
        sys.exit(__doc__.split("\n\n")[1].strip())
    onnx.save(narrow(onnx.load(sys.argv[1]), sys.argv[3]), pathlib.Path(sys.argv[2]))
