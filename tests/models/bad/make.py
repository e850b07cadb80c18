"""Makes ONNX models that are wrong, each in one way, for the test that every one is refused with words that help.

    python make.py FOLDER

Writes FOLDER/NAME.onnx and FOLDER/bad.json: [{"name", "model", "says": [words that the message must hold]}, ...].
"""

import json
import pathlib
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

F32 = TensorProto.FLOAT


def value(name, shape, elem=F32):
    return helper.make_tensor_value_info(name, elem, shape)


def model(nodes, inputs, outputs, initializers=(), opset=17, domains=()):
    graph = helper.make_graph(list(nodes), "bad", list(inputs), list(outputs), list(initializers))
    opsets = [helper.make_opsetid("", opset)] + [helper.make_opsetid(d, 1) for d in domains]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def relu(x, y, name):
    return helper.make_node("Relu", [x], [y], name=name)


def constant(name, array):
    return numpy_helper.from_array(np.asarray(array), name)


def cases():
    x, y = value("x", [1, 4]), value("y", [1, 4])
    yield "unknown_operator", model([helper.make_node("Frobnicate", ["x"], ["y"], name="mystery")], [x], [y]), ["Frobnicate", "mystery"]
    yield "unknown_domain", model([helper.make_node("Relu", ["x"], ["y"], name="mine", domain="com.example")], [x], [y],
                                  domains=["com.example"]), ["com.example", "mine"]
    yield "cycle", model([helper.make_node("Add", ["x", "b"], ["a"], name="first"), relu("a", "b", "second"), relu("b", "y", "third")],
                         [x], [y]), ["cycle"]
    yield "undefined_value", model([helper.make_node("Add", ["x", "ghost"], ["y"], name="adder")], [x], [y]), ["ghost", "adder"]
    yield "undefined_output", model([relu("x", "z", "act")], [x], [y]), ["y"]
    yield "duplicate_value", model([relu("x", "y", "one"), relu("x", "y", "two")], [x], [y]), ["y"]
    yield "duplicate_input", model([relu("x", "y", "one")], [x, x], [y]), ["x"]
    yield "short_initializer", model([helper.make_node("Add", ["x", "w"], ["y"], name="adder")], [x], [y],
                                     [TensorProto(name="w", data_type=F32, dims=[1, 4], raw_data=b"\0" * 12)]), ["w", "16", "12"]
    yield "channels_differ", model([helper.make_node("Conv", ["x4", "w"], ["y4"], name="conv1")], [value("x4", [1, 4, 8, 8])],
                                   [value("y4", [1, 2, 6, 6])], [constant("w", np.zeros((2, 3, 3, 3), np.float32))]), ["conv1", "3", "4"]
    yield "matmul_sizes", model([helper.make_node("MatMul", ["x", "w"], ["y"], name="product")], [x], [y],
                                [constant("w", np.zeros((5, 4), np.float32))]), ["product", "4", "5"]
    yield "types_differ", model([helper.make_node("Add", ["x", "w"], ["y"], name="adder")], [x], [y],
                                [constant("w", np.zeros((1, 4), np.int64))]), ["adder"]
    yield "missing_operand", model([helper.make_node("Add", ["x"], ["y"], name="adder")], [x], [y]), ["adder"]
    yield "attribute_type", model([helper.make_node("Softmax", ["x"], ["y"], name="soft", axis="last")], [x], [y]), ["soft", "axis"]
    yield "attribute_unknown", model([helper.make_node("Relu", ["x"], ["y"], name="act", slope=1)], [x], [y]), ["act", "slope"]
    yield "broadcast", model([helper.make_node("Add", ["x", "w"], ["y"], name="adder")], [x], [y],
                             [constant("w", np.zeros(3, np.float32))]), ["adder", "4", "3"]
    yield "reshape_count", model([helper.make_node("Reshape", ["x", "s"], ["y"], name="shaper")], [x], [y],
                                 [constant("s", np.array([3, 3], np.int64))]), ["shaper"]
    escape = model([helper.make_node("Add", ["x", "w"], ["y"], name="adder")], [x], [y])
    w = escape.graph.initializer.add(name="w", data_type=F32, dims=[1, 4], data_location=TensorProto.EXTERNAL)
    w.external_data.add(key="location", value="../../etc/passwd")
    yield "path_escapes", escape, ["../../etc/passwd"]
    absent = onnx.ModelProto()
    absent.CopyFrom(escape)
    absent.graph.initializer[0].external_data[0].value = "nowhere.bin"
    yield "external_absent", absent, ["nowhere.bin"]
    yield "if_condition", model([helper.make_node(
        "If", ["x"], ["y"], name="choice",
        then_branch=helper.make_graph([relu("x", "t", "a")], "then", [], [value("t", [1, 4])]),
        else_branch=helper.make_graph([relu("x", "e", "b")], "else", [], [value("e", [1, 4])]))], [x], [y]), ["choice"]


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    index = []
    for name, made, says in cases():
        (folder / f"{name}.onnx").write_bytes(made.SerializeToString(deterministic=True))
        index.append({"name": name, "model": f"{name}.onnx", "says": says})
    (folder / "bad.json").write_text(json.dumps(index, indent=1))


if __name__ == "__main__":
    main()
