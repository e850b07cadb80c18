"""Makes models that are cheap to make and tedious to keep: the digits model in other clothes, and single operators.

    python make.py FOLDER

Each model gets a folder of its own, FOLDER/NAME/, with `model.onnx`, one `INPUT.npy` an input and one `OUTPUT.npy` an output,
computed by ONNX Runtime (CPU, optimisations off). `FOLDER/variants.json` lists them:

    [{"name": "digits_opset11", "group": "digits", "model": "digits_opset11/model.onnx", "opset": 11,
      "inputs": {"x": "digits_opset11/x.npy"}, "outputs": {"scores": "digits_opset11/scores.npy"}}, ...]

Groups: digits (scores must equal those of the plain model), control (If), operator (one operator or a few), refused (must not
load; these have no outputs, and "why" says what is wrong). Same input, same bytes out.
"""

import copy
import json
import pathlib
import sys
import zlib

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

DIGITS = pathlib.Path(__file__).resolve().parent.parent / "digits"
NEWEST = onnx.defs.onnx_opset_version()
IR_OF_OPSET = {11: 6, 13: 7, 17: 8}
BATCH = 7


class Folder:
    def __init__(self, root):
        self.root = root
        self.index = []

    def place(self, name):
        folder = self.root / name
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def add(self, name, group, model, inputs, outputs=None, path=None, runnable=True):
        """Checks and runs the model; writes it (unless path says that it is there), its inputs and its outputs."""
        folder = self.place(name)
        if path is None:
            path = folder / "model.onnx"
            onnx.checker.check_model(model, full_check=True)
            path.write_bytes(model.SerializeToString(deterministic=True))
        names = [o.name for o in model.graph.output]
        if runnable:
            options = onnxruntime.SessionOptions()
            options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
            options.log_severity_level = 3
            session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
            measured = dict(zip(names, session.run(names, inputs)))
            for key, want in (outputs or {}).items():
                bound = 1e-4 * np.abs(want).max() + 1e-5
                assert np.abs(measured[key] - want).max() <= bound, f"{name}: {key} differs from the plain model"
            outputs = measured
        entry = {"name": name, "group": group, "model": f"{name}/{path.name}"}
        entry["opset"] = next(o.version for o in model.opset_import if o.domain == "")
        for kind, arrays in (("inputs", inputs), ("outputs", outputs)):
            entry[kind] = {}
            for key, array in arrays.items():
                np.save(folder / f"{key}.npy", array)
                entry[kind][key] = f"{name}/{key}.npy"
        self.index.append(entry)

    def refuse(self, name, path, why):
        self.index.append({"name": name, "group": "refused", "model": f"{name}/{path.name}", "why": why})

    def close(self):
        self.index.sort(key=lambda entry: entry["name"])
        (self.root / "variants.json").write_text(json.dumps(self.index, indent=1) + "\n")
        print(f"{len(self.index)} models in {self.root}")


def stamped(model, opset):
    """The model at another operator set. Its operators read alike in 11 and later; only the stamp changes."""
    result = copy.deepcopy(model)
    del result.opset_import[:]
    result.opset_import.append(helper.make_opsetid("", opset))
    result.ir_version = IR_OF_OPSET.get(opset, 10)
    return result


def initialisers(model):
    return {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}


def constant_node(name, array):
    return helper.make_node("Constant", [], [name], name=name + ".constant", value=numpy_helper.from_array(array, name))


def with_constant_nodes(model, keep=()):
    """Weights from Constant nodes, each before its first reader, none from initialisers."""
    result = copy.deepcopy(model)
    weights = initialisers(model)
    del result.graph.initializer[:]
    del result.graph.node[:]
    for node in model.graph.node:
        for name in node.input:
            if name in weights:
                result.graph.node.append(constant_node(name, weights.pop(name)))
        result.graph.node.append(node)
    return result


def with_affine_norms(model):
    """Each BatchNormalization as a Mul and an Add with constant nodes: what some exporters leave of it."""
    result = copy.deepcopy(model)
    weights = initialisers(model)
    del result.graph.node[:]
    gone = set()
    for node in model.graph.node:
        if node.op_type != "BatchNormalization":
            result.graph.node.append(node)
            continue
        scale, shift, mean, variance = (weights[name] for name in node.input[1:])
        gone.update(node.input[1:])
        factor = scale / np.sqrt(variance + np.float32(1e-5))
        offset = shift - mean * factor
        result.graph.node.append(constant_node(node.name + ".factor", factor.reshape(-1, 1, 1)))
        result.graph.node.append(constant_node(node.name + ".offset", offset.reshape(-1, 1, 1)))
        result.graph.node.append(
            helper.make_node("Mul", [node.input[0], node.name + ".factor"], [node.name + ".mul"], name=node.name + ".mul")
        )
        result.graph.node.append(
            helper.make_node("Add", [node.name + ".mul", node.name + ".offset"], list(node.output), name=node.name + ".add")
        )
    kept = [t for t in model.graph.initializer if t.name not in gone]
    del result.graph.initializer[:]
    result.graph.initializer.extend(kept)
    return result


def external(folder, model, location="weights.bin", write=True, cut=0):
    """Saves model.onnx with every initialiser in an external file, each 64-byte aligned."""
    result = copy.deepcopy(model)
    data = bytearray()
    for tensor in result.graph.initializer:
        raw = numpy_helper.to_array(tensor).tobytes()
        data.extend(b"\0" * (-len(data) % 64))
        tensor.ClearField("raw_data")
        tensor.data_location = TensorProto.EXTERNAL
        for key, value in (("location", location), ("offset", len(data)), ("length", len(raw))):
            tensor.external_data.add(key=key, value=str(value))
        data.extend(raw)
    if write:
        target = folder / location
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data[: len(data) - cut])
    path = folder / "model.onnx"
    path.write_bytes(result.SerializeToString(deterministic=True))
    return path


def make_digits(out):
    plain = onnx.load(DIGITS / "digits.onnx")
    images = np.load(DIGITS / "images.npy")[:BATCH]
    scores = np.load(DIGITS / "ort_scores.npy")[:BATCH]
    x, want = {"x": images}, {"scores": scores}

    for opset in (11, 13, 17):
        out.add(f"digits_opset{opset}", "digits", stamped(plain, opset), x, want)
    out.add("digits_opset_newest", "digits", stamped(plain, NEWEST), x, want, runnable=False)

    out.add("digits_constant_nodes", "digits", with_constant_nodes(plain), x, want)
    out.add("digits_affine_norms", "digits", with_affine_norms(plain), x, want)

    folder = out.place("digits_external")
    out.add("digits_external", "digits", plain, x, want, path=external(folder, plain))
    folder = out.place("digits_external_subfolder")
    out.add("digits_external_subfolder", "digits", plain, x, want, path=external(folder, plain, "data/w.bin"))
    folder = out.place("refused_external_outside")
    path = external(folder, plain, "../outside.bin")
    out.refuse("refused_external_outside", path, "external data outside the model's folder")
    folder = out.place("refused_external_absolute")
    path = external(folder, plain, "/dev/zero", write=False)
    out.refuse("refused_external_absolute", path, "external data at an absolute path")
    folder = out.place("refused_external_absent")
    out.refuse("refused_external_absent", external(folder, plain, write=False), "external data file absent")
    folder = out.place("refused_external_short")
    out.refuse("refused_external_short", external(folder, plain, cut=64), "external data file too short")

    model = copy.deepcopy(plain)
    for tensor in model.graph.initializer:
        values = numpy_helper.to_array(tensor).ravel()
        tensor.ClearField("raw_data")
        tensor.float_data.extend(values.tolist())
    out.add("digits_typed_data", "digits", model, x, want)

    model = stamped(plain, 11)
    model.ir_version = 3  # initialisers are inputs too
    for tensor in model.graph.initializer:
        model.graph.input.append(helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims)))
    out.add("digits_initialisers_as_inputs", "digits", model, x, want)

    model = copy.deepcopy(plain)
    for node in model.graph.node:
        node.name = ""
    out.add("digits_unnamed", "digits", model, x, want)

    out.add("digits_inferred", "digits", onnx.shape_inference.infer_shapes(plain, data_prop=True), x, want)

    model = copy.deepcopy(plain)
    for value in (model.graph.input[0], model.graph.output[0]):
        value.type.tensor_type.shape.dim[0].dim_value = 1
    out.add("digits_static", "digits", model, {"x": images[:1]}, {"scores": scores[:1]})

    model = copy.deepcopy(plain)
    model.graph.node.append(helper.make_node("Softmax", ["scores"], ["chances"], name="softmax", axis=1))
    model.graph.output.append(helper.make_tensor_value_info("chances", TensorProto.FLOAT, ["N", 10]))
    out.add("digits_two_outputs", "digits", model, x, want)

    model = copy.deepcopy(plain)  # inner values that a fusion would like to swallow
    for name, shape in (("stem.conv.out", [16, 8, 8]), ("block1.norm1.out", [16, 8, 8]), ("block2.conv2.out", [32, 4, 4])):
        model.graph.output.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N"] + shape))
    out.add("digits_inner_outputs", "digits", model, x, want)


def make_control(out):
    """Two heads on the digits' trunk: `careful` picks. Both branches capture a computed value and weights from outside."""
    plain = onnx.load(DIGITS / "digits.onnx")
    images = np.load(DIGITS / "images.npy")[:BATCH]
    scores = np.load(DIGITS / "ort_scores.npy")[:BATCH]

    def branch(prefix, pool):
        nodes = [
            helper.make_node(pool, ["block2.relu2.out"], [prefix + ".pooled"], name=prefix + ".pool"),
            helper.make_node("Flatten", [prefix + ".pooled"], [prefix + ".flat"], name=prefix + ".flatten", axis=1),
            helper.make_node(
                "Gemm",
                [prefix + ".flat", "head.linear.weight", "head.linear.bias"],
                [prefix + ".scores"],
                name=prefix + ".linear",
                transB=1,
            ),
        ]
        result = helper.make_tensor_value_info(prefix + ".scores", TensorProto.FLOAT, ["N", 10])
        return helper.make_graph(nodes, prefix, [], [result])

    def head(computed):
        model = copy.deepcopy(plain)
        trunk = [n for n in model.graph.node if not n.name.startswith("head.")]
        del model.graph.node[:]
        model.graph.node.extend(trunk)
        condition = "careful"
        if computed:  # bright pictures are read carefully
            model.graph.initializer.append(numpy_helper.from_array(np.float32(4.5), "limit"))
            model.graph.node.append(helper.make_node("ReduceMean", ["x"], ["mean"], name="mean", keepdims=0))
            model.graph.node.append(helper.make_node("Greater", ["mean", "limit"], ["careful"], name="bright"))
        else:
            model.graph.input.append(helper.make_tensor_value_info("careful", TensorProto.BOOL, []))
        model.graph.node.append(
            helper.make_node(
                "If",
                [condition],
                ["scores"],
                name="head",
                then_branch=branch("careful_head", "GlobalAveragePool"),
                else_branch=branch("hasty_head", "GlobalMaxPool"),
            )
        )
        return model

    out.add("if_then", "control", head(False), {"x": images, "careful": np.array(True)}, {"scores": scores})
    out.add("if_else", "control", head(False), {"x": images, "careful": np.array(False)})
    out.add("if_computed_then", "control", head(True), {"x": images + np.float32(1)})
    out.add("if_computed_else", "control", head(True), {"x": images * np.float32(0.5)})


def make_operators(out):
    def rng(name):
        return np.random.default_rng(zlib.crc32(name.encode()))

    def one(name, op, inputs, weights=(), opset=17, symbolic=True, outputs=("y",), **attributes):
        """inputs: {name: shape or array}; weights: the names among them that are initialisers. The first axis of
        the others is the symbol N."""
        random = rng(name)
        arrays = {
            key: np.asarray(value) if hasattr(value, "dtype") else random.normal(size=value).astype(np.float32)
            for key, value in inputs.items()
        }
        node = helper.make_node(op, list(inputs), list(outputs), name=name, **attributes)
        given = [key for key in inputs if key and key not in weights]

        def info(key):
            shape = list(arrays[key].shape)
            if symbolic and shape:
                shape[0] = "N"
            return helper.make_tensor_value_info(key, helper.np_dtype_to_tensor_dtype(arrays[key].dtype), shape)

        graph = helper.make_graph(
            [node],
            name,
            [info(key) for key in given],
            [helper.make_empty_tensor_value_info(key) for key in outputs],
            [numpy_helper.from_array(arrays[key], key) for key in weights],
        )
        model = helper.make_model(graph, producer_name="regie-variants", opset_imports=[helper.make_opsetid("", opset)])
        model.ir_version = IR_OF_OPSET.get(opset, 10)
        inferred = onnx.shape_inference.infer_shapes(model, strict_mode=True)
        out.add(name, "operator", inferred, {key: arrays[key] for key in given})

    image = [3, 5, 9, 7]
    one("conv", "Conv", {"x": image, "w": [4, 5, 3, 3], "b": [4]}, ["w", "b"], pads=[1, 1, 1, 1])
    one("conv_plain", "Conv", {"x": image, "w": [4, 5, 3, 3]}, ["w"])
    one("conv_strides", "Conv", {"x": image, "w": [4, 5, 3, 2]}, ["w"], strides=[2, 3], pads=[0, 1, 2, 0])
    one("conv_dilations", "Conv", {"x": image, "w": [4, 5, 3, 3]}, ["w"], dilations=[2, 1], pads=[2, 1, 2, 1])
    one("conv_depthwise", "Conv", {"x": image, "w": [5, 1, 3, 3], "b": [5]}, ["w", "b"], group=5)
    one("conv_groups", "Conv", {"x": [2, 6, 8, 8], "w": [4, 3, 3, 3]}, ["w"], group=2)
    one("conv_same_upper", "Conv", {"x": image, "w": [4, 5, 2, 4]}, ["w"], auto_pad="SAME_UPPER", strides=[2, 2])
    one("conv_same_lower", "Conv", {"x": image, "w": [4, 5, 2, 4]}, ["w"], auto_pad="SAME_LOWER", strides=[2, 2])
    one("conv_valid", "Conv", {"x": image, "w": [4, 5, 3, 3]}, ["w"], auto_pad="VALID")
    one("conv_computed_weight", "Conv", {"x": image, "w": [4, 5, 3, 3]}, symbolic=False)
    one("conv_1d", "Conv", {"x": [2, 3, 11], "w": [4, 3, 3]}, ["w"], pads=[1, 1])
    one("conv_opset11", "Conv", {"x": image, "w": [4, 5, 3, 3], "b": [4]}, ["w", "b"], opset=11)

    norm = {"x": image, "scale": [5], "shift": [5], "mean": [5], "variance": np.float32([0.5, 1, 2, 0.1, 3])}
    for opset in (11, 14, 17):
        name = f"batch_norm_opset{opset}"
        one(name, "BatchNormalization", norm, list(norm)[1:], opset=opset, epsilon=1e-3)

    for op in ("Relu", "Sigmoid", "Tanh", "LeakyRelu", "Identity", "Neg", "Exp", "HardSigmoid", "Erf"):
        one(op.lower(), op, {"x": image})
    one("clip", "Clip", {"x": image, "low": np.float32(-0.5), "high": np.float32(0.7)}, ["low", "high"])
    one("clip_opset11", "Clip", {"x": image, "low": np.float32(0), "high": np.float32(6)}, ["low", "high"], opset=11)
    one("clip_high_only", "Clip", {"x": image, "": np.float32(0), "high": np.float32(0.3)}, ["high"])

    for op in ("Add", "Sub", "Mul", "Div"):
        one(op.lower(), op, {"a": image, "b": image})
    one("add_channel", "Add", {"a": image, "b": [5, 1, 1]}, ["b"])
    one("mul_scalar", "Mul", {"a": image, "b": np.float32(0.25)}, ["b"])
    one("add_spread", "Add", {"a": [3, 1, 4], "b": [3, 5, 1]})

    one("max_pool", "MaxPool", {"x": image}, kernel_shape=[2, 2], strides=[2, 2])
    one("max_pool_pads", "MaxPool", {"x": image}, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    one("max_pool_ceil", "MaxPool", {"x": image}, kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1)
    one("average_pool", "AveragePool", {"x": image}, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    counted = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1], "count_include_pad": 1}
    one("average_pool_counted", "AveragePool", {"x": image}, **counted)
    one("average_pool_opset11", "AveragePool", {"x": image}, kernel_shape=[2, 2], opset=11)
    one("global_average_pool", "GlobalAveragePool", {"x": image})
    one("global_max_pool", "GlobalMaxPool", {"x": image})

    one("flatten", "Flatten", {"x": image}, axis=1)
    one("flatten_axis_2", "Flatten", {"x": image}, axis=2)
    one("flatten_axis_0", "Flatten", {"x": image}, axis=0)
    one("reshape", "Reshape", {"x": image, "s": np.int64([0, -1])}, ["s"])
    one("transpose", "Transpose", {"x": image}, perm=[0, 2, 3, 1])
    one("concat", "Concat", {"a": image, "b": [3, 2, 9, 7]}, axis=1)

    one("gemm", "Gemm", {"a": [3, 6], "b": [6, 4], "c": [4]}, ["b", "c"])
    one("gemm_transposed", "Gemm", {"a": [3, 6], "b": [4, 6], "c": [4]}, ["b", "c"], transB=1)
    one("gemm_scaled", "Gemm", {"a": [3, 6], "b": [6, 4], "c": [1, 4]}, ["b", "c"], alpha=0.5, beta=2.0)
    one("gemm_plain", "Gemm", {"a": [3, 6], "b": [6, 4]}, ["b"])
    one("gemm_trans_a", "Gemm", {"a": [6, 3], "b": [6, 4], "c": [4]}, ["b", "c"], transA=1, symbolic=False)
    one("gemm_opset11", "Gemm", {"a": [3, 6], "b": [6, 4], "c": [4]}, ["b", "c"], opset=11)
    one("matmul", "MatMul", {"a": [3, 6], "b": [6, 4]}, ["b"])
    one("matmul_batched", "MatMul", {"a": [3, 2, 5, 6], "b": [3, 2, 6, 4]})
    one("matmul_spread", "MatMul", {"a": [3, 2, 5, 6], "b": [6, 4]}, ["b"])

    one("softmax", "Softmax", {"x": [3, 10]}, axis=1)
    one("softmax_last", "Softmax", {"x": [3, 4, 5]}, axis=-1)
    one("softmax_opset11", "Softmax", {"x": [3, 4, 5]}, axis=1, opset=11)  # over the 20 values of a row, as it was then
    one("softmax_opset13", "Softmax", {"x": [3, 4, 5]}, axis=1, opset=13)

    # The newest operator set, as far as the reference runs it: the semantics that changed on the way.
    one("reduce_mean_opset17", "ReduceMean", {"x": image}, axes=[2, 3], keepdims=0)
    one("reduce_mean_opset18", "ReduceMean", {"x": image, "axes": np.int64([2, 3])}, ["axes"], opset=18, keepdims=0)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    out = Folder(pathlib.Path(sys.argv[1]))
    make_digits(out)
    make_control(out)
    make_operators(out)
    out.close()


if __name__ == "__main__":
    main()
