"""Every operator of the ONNX frontend at every operator set where something changed, run by Regie and by ONNX Runtime.

check_opsets.py REGIE FOLDER [OPERATOR...]: makes one model for each operator and operator set in FOLDER, checks it with
onnx.checker, runs it with `REGIE run` and compares every output with the reference. Where ONNX Runtime does not know an
operator set yet, the reference is the newest one that it knows (the operators' meaning did not change after 21).
"""
import concurrent.futures
import functools
import os
import shutil
import subprocess
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import opset_cases
import opset_old_cases
from opset_cases import Case, f32, i64

OPSETS = range(1, 29)
NEWEST_OF_RUNTIME = 21


def unary(*dims, **attributes):
    return lambda v: [Case({"x": f32(*dims)}, **attributes)]


def positive(v):
    return [Case({"x": np.abs(f32(3, 4)) + 0.5})]


def binary(v):
    cases = [Case({"a": f32(2, 3, 4), "b": f32(2, 3, 4)}), Case({"a": f32(2, 3, 4), "b": f32(3, 1)})]
    return cases


def logical(v):
    return [Case({"a": f32(3, 4) > 0, "b": f32(4) > 0})]


def compare(v):
    a = np.round(f32(4, 5))
    return [Case({"a": a, "b": np.round(f32(5))})]


def variadic(v):
    return [Case({"a": f32(3, 4), "b": f32(3, 4), "c": f32(3, 4)}), Case({"a": f32(3, 4)})]


def reduce_from(since):
    def cases(v):
        x = np.abs(f32(2, 3, 4)) + 0.1
        if v < since:
            return [Case({"x": x}, axes=[1]), Case({"x": x}, axes=[-1, 0] if v >= 11 else [0, 2], keepdims=0), Case({"x": x})]
        return [Case({"x": x}, {"axes": i64(1)}), Case({"x": x}, {"axes": i64(-1, 0)}, keepdims=0), Case({"x": x}),
                Case({"x": x}, noop_with_empty_axes=1)]
    return cases


def arg(v):
    x = np.round(f32(3, 5))
    return [Case({"x": x}), Case({"x": x}, axis=1, keepdims=0)] + ([Case({"x": x}, axis=1, select_last_index=1)] if v >= 12 else [])


def softmax(v):
    x = f32(2, 3, 4)
    cases = [Case({"x": x}), Case({"x": x}, axis=0), Case({"x": x}, axis=2)]
    return cases + ([Case({"x": x}, axis=-1), Case({"x": x}, axis=-2)] if v >= 11 else [])


def squeeze(v):
    x = f32(1, 3, 1, 2)
    if v < 13:
        return [Case({"x": x}, axes=[0]), Case({"x": x}, axes=[0, 2]), Case({"x": x})]
    return [Case({"x": x}, {"axes": i64(0)}), Case({"x": x}, {"axes": i64(-2, 0)}), Case({"x": x})]


def unsqueeze(v):
    x = f32(3, 2)
    return [Case({"x": x}, axes=[0, 3])] if v < 13 else [Case({"x": x}, {"axes": i64(0, -1)})]


def split(v):
    x = f32(2, 6)
    if v < 13:
        return [Case({"x": x}, outputs=2, axis=1), Case({"x": x}, outputs=2, axis=1, split=[2, 4])]
    if v < 18:
        return [Case({"x": x}, outputs=3, axis=1), Case({"x": x}, {"split": i64(2, 4)}, outputs=2, axis=1)]
    return [Case({"x": x}, outputs=4, axis=1, num_outputs=4), Case({"x": x}, {"split": i64(2, 4)}, outputs=2, axis=1)]


def pad(v):
    x = f32(2, 3)
    if v < 11:
        return [Case({"x": x}, pads=[0, 1, 1, 2]), Case({"x": x}, pads=[0, 1, 1, 2], value=1.5), Case({"x": x}, pads=[0, 1, 0, 1], mode="edge")]
    cases = [Case({"x": x}, {"pads": i64(0, 1, 1, 2)}), Case({"x": x}, {"pads": i64(0, 1, 1, 2), "value": np.array(1.5, np.float32)}),
             Case({"x": x}, {"pads": i64(0, 1, 0, 1)}, mode="reflect")]
    if v >= 18:
        cases.append(Case({"x": x}, {"pads": i64(2, 1), "value": None, "axes": i64(1)}))
    return cases


def slices(v):
    x = f32(5, 6)
    if v < 10:
        return [Case({"x": x}, starts=[1, -3], ends=[4, 100]), Case({"x": x}, axes=[1], starts=[2], ends=[-1])]
    return [Case({"x": x}, {"starts": i64(1, -3), "ends": i64(4, 100)}),
            Case({"x": x}, {"starts": i64(4), "ends": i64(-100), "axes": i64(0), "steps": i64(-2)})]


def clip(v):
    x = f32(3, 4)
    if v < 11:
        return [Case({"x": x}, min=-0.5, max=0.5), Case({"x": x}, max=0.25), Case({"x": x})]
    low, high = np.array(-0.5, np.float32), np.array(0.5, np.float32)
    return [Case({"x": x}, {"min": low, "max": high}), Case({"x": x}, {"min": None, "max": high}), Case({"x": x}, {"min": low})]


def normalization(v):
    return [Case({"x": f32(2, 3, 4)}, {"s": f32(3), "b": f32(3), "m": f32(3), "v": np.abs(f32(3)) + 0.5}, epsilon=0.01)]


def pool(average):
    def cases(v):
        x = f32(1, 2, 7, 7)
        out = [Case({"x": x}, kernel_shape=[3, 3]), Case({"x": x}, kernel_shape=[3, 2], strides=[2, 2], pads=[1, 0, 1, 1]),
               Case({"x": x}, kernel_shape=[2, 2], strides=[2, 2], auto_pad="SAME_UPPER")]
        if average:
            out.append(Case({"x": x}, kernel_shape=[3, 3], pads=[1, 1, 1, 1], count_include_pad=1))
        if v >= 10:
            out.append(Case({"x": x}, kernel_shape=[3, 3], strides=[3, 3], ceil_mode=1))
        if v >= (19 if average else 10):
            out.append(Case({"x": x}, kernel_shape=[2, 2], dilations=[2, 2]))
        return out
    return cases


def conv(v):
    x = f32(1, 4, 6, 6)
    return [Case({"x": x}, {"w": f32(6, 4, 3, 3), "b": f32(6)}, pads=[1, 1, 1, 1], strides=[2, 2]),
            Case({"x": x}, {"w": f32(8, 1, 3, 3)}, group=4, dilations=[2, 2]),
            Case({"x": x}, {"w": f32(2, 4, 2, 2)}, auto_pad="SAME_LOWER")]


def conv_transpose(v):
    x = f32(1, 4, 5, 5)
    return [Case({"x": x}, {"w": f32(4, 3, 3, 3), "b": f32(3)}, strides=[2, 2], pads=[1, 1, 1, 1], output_padding=[1, 1]),
            Case({"x": x}, {"w": f32(4, 2, 2, 2)}, group=2, strides=[2, 2])]


def gemm(v):
    cases = [Case({"a": f32(3, 4)}, {"b": f32(4, 5), "c": f32(5)}), Case({"a": f32(4, 3)}, {"b": f32(5, 4), "c": f32(3, 1)}, transA=1, transB=1, alpha=0.5, beta=2.0)]
    return cases + ([Case({"a": f32(3, 4)}, {"b": f32(4, 5)})] if v >= 11 else [])


def reshape(v):
    return [Case({"x": f32(2, 3, 4)}, {"shape": i64(0, -1)}), Case({"x": f32(2, 3, 4)}, {"shape": i64(4, 6)})]


def dropout(v):
    x = f32(3, 4)
    return [Case({"x": x}, ratio=0.3)] if v < 12 else opset_cases.training_dropout(v) + [Case({"x": x}, {"ratio": np.array(0.3, np.float32)}), Case({"x": x}, seed=3)]


def shape(v):
    return [Case({"x": f32(2, 3, 4)})] + ([Case({"x": f32(2, 3, 4)}, start=1, end=-1)] if v >= 15 else [])


def constant_of_shape(v):
    return [Case({}, {"s": i64(2, 3)}), Case({}, {"s": i64(3)}, value=numpy_helper.from_array(np.array([7], np.int64)))]


def constant(v):
    cases = [Case({}, value=numpy_helper.from_array(f32(2, 3)))]
    if v >= 12:
        cases += [Case({}, value_float=1.5), Case({}, value_ints=[1, 2, 3])]
    return cases


OPERATORS = {
    "Abs": (6, unary(3, 4)), "Add": (7, binary), "And": (7, logical), "ArgMax": (1, arg), "ArgMin": (1, arg),
    "AveragePool": (7, pool(True)), "BatchNormalization": (7, normalization),
    "Cast": (6, lambda v: [Case({"x": f32(3, 4) * 3}, to=t) for t in (TensorProto.INT64, TensorProto.BOOL, TensorProto.DOUBLE, TensorProto.FLOAT16)]),
    "Ceil": (6, unary(3, 4)), "Clip": (6, clip), "Concat": (4, lambda v: [Case({"a": f32(2, 3), "b": f32(2, 1)}, axis=1)]),
    "Constant": (1, constant), "ConstantOfShape": (9, constant_of_shape), "Conv": (1, conv), "ConvTranspose": (1, conv_transpose),
    "Div": (7, lambda v: [Case({"a": f32(3, 4), "b": np.abs(f32(4)) + 0.5})]), "Dropout": (7, dropout), "Elu": (6, unary(3, 4, alpha=0.7)),
    "Equal": (7, lambda v: compare(v) if v >= 11 else [Case({"a": i64(1, 2, 3), "b": i64(1, 0, 3)})]), "Erf": (9, unary(3, 4)), "Exp": (6, unary(3, 4)),
    "Expand": (8, lambda v: [Case({"x": f32(3, 1)}, {"shape": i64(2, 1, 4)})]), "Flatten": (1, lambda v: [Case({"x": f32(2, 3, 4)}, axis=a) for a in (0, 1, 2)]),
    "Floor": (6, unary(3, 4)), "Gather": (1, lambda v: [Case({"x": f32(4, 3)}, {"i": np.array([[0, 3], [1, 1]], np.int64)}), Case({"x": f32(4, 3)}, {"i": i64(2)}, axis=1)]),
    "Gemm": (7, gemm), "GlobalAveragePool": (1, unary(2, 3, 4, 5)), "GlobalMaxPool": (1, unary(2, 3, 4, 5)), "Greater": (7, compare),
    "GreaterOrEqual": (12, compare), "HardSigmoid": (6, unary(3, 4, alpha=0.3, beta=0.4)), "HardSwish": (14, unary(3, 4)), "Identity": (1, unary(3, 4)),
    "LeakyRelu": (6, unary(3, 4, alpha=0.2)), "Less": (7, compare), "LessOrEqual": (12, compare), "Log": (6, positive), "LogSoftmax": (1, softmax),
    "MatMul": (1, lambda v: [Case({"a": f32(2, 3, 4), "b": f32(4, 5)})]), "Max": (6, variadic), "MaxPool": (1, pool(False)), "Min": (6, variadic),
    "Mul": (7, binary), "Neg": (6, unary(3, 4)), "Not": (1, lambda v: [Case({"x": f32(3, 4) > 0})]), "Or": (7, logical), "Pad": (2, pad),
    "Pow": (7, lambda v: [Case({"a": np.abs(f32(3, 4)), "b": f32(4)})]), "Reciprocal": (6, positive), "ReduceL1": (1, reduce_from(18)), "ReduceL2": (1, reduce_from(18)),
    "ReduceMax": (1, reduce_from(18)), "ReduceMean": (1, reduce_from(18)), "ReduceMin": (1, reduce_from(18)), "ReduceProd": (1, reduce_from(18)),
    "ReduceSum": (1, reduce_from(13)), "ReduceSumSquare": (1, reduce_from(18)), "Relu": (6, unary(3, 4)), "Reshape": (5, reshape), "Round": (11, lambda v: [Case({"x": np.array([0.5, 1.5, -2.5, 2.4], np.float32)})]),
    "Shape": (1, shape), "Sigmoid": (6, unary(3, 4)), "Size": (1, unary(3, 4)), "Slice": (1, slices), "Softmax": (1, softmax), "Split": (2, split),
    "Sqrt": (6, positive), "Squeeze": (1, squeeze), "Sub": (7, binary), "Sum": (6, variadic), "Tanh": (6, unary(3, 4)),
    "Transpose": (1, lambda v: [Case({"x": f32(2, 3, 4)}), Case({"x": f32(2, 3, 4)}, perm=[1, 2, 0])]), "Unsqueeze": (1, unsqueeze),
    "Where": (9, lambda v: [Case({"c": f32(3, 4) > 0, "a": f32(4), "b": f32(3, 1)})]), "Xor": (7, logical),
}

OPERATORS.update(opset_cases.OPERATORS)


def result_info(name, case, index):
    """ONNX's inference knows nothing of some old versions."""
    if case.expected is not None:
        value = np.asarray(case.expected[index])
        return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
    if case.rank is None:
        return helper.make_empty_tensor_value_info(name)
    rank = case.rank[index] if isinstance(case.rank, tuple) else case.rank
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, [None] * rank)


def make_model(op, case, opset):
    names = list(case.inputs) + [n if v is not None else "" for n, v in case.constants.items()]
    outputs = [f"y{i}" for i in range(case.outputs)]
    attributes = {n: a for n, a in case.attributes.items() if case.newer != opset or n not in case.dropped}
    graph = helper.make_graph(
        [helper.make_node(op, names, outputs, name="it", **attributes)], "g",
        [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape) for n, v in case.inputs.items()],
        [result_info(o, case, i) for i, o in enumerate(outputs)],
        [numpy_helper.from_array(v, n) for n, v in case.constants.items() if v is not None])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    if withdrawn(op, opset):
        return model
    return onnx.shape_inference.infer_shapes(model, strict_mode=True, data_prop=True)


@functools.cache
def born(op):
    return min(s.since_version for s in onnx.defs.get_all_schemas_with_history() if s.name == op and s.domain == "")


def withdrawn(op, opset):
    """Is it one that the onnx package does not know any more, or then not yet?"""
    return not any(s.name == op and s.domain == "" and s.since_version <= opset for s in onnx.defs.get_all_schemas_with_history())


def since(op, opset):
    return onnx.defs.get_schema(op, opset, "").since_version


def reference_of(op, case, opset):
    """By ONNX Runtime; operators that it does not have, or not at this version, by onnx.reference."""
    names = [f"y{i}" for i in range(case.outputs)]
    if case.expected is not None:
        return dict(zip(names, map(np.asarray, case.expected)))
    opset = case.newer or opset
    try:
        if not case.runtime:
            raise RuntimeError("NOT_IMPLEMENTED")
        model = make_model(op, case, opset if born(op) > NEWEST_OF_RUNTIME else min(opset, NEWEST_OF_RUNTIME))
        session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
        return dict(zip(names, session.run(names, case.inputs)))
    except Exception as error:
        if not any(word in str(error) for word in ("NOT_IMPLEMENTED", "not a registered", "NotImplemented", "is under development")):
            raise RuntimeError(f"{op}-{opset}: {error}")
    model = make_model(op, case, opset)
    return dict(zip(names, map(np.asarray, ReferenceEvaluator(model).run(names, case.inputs))))


def compare_one(regie, folder, op, opset, k, case):
    where = os.path.join(folder, f"{op}-{opset}-{k}")
    os.makedirs(where)
    model = make_model(op, case, opset)
    if not withdrawn(op, opset):
        onnx.checker.check_model(model)
    path = os.path.join(where, "model.onnx")
    onnx.save(model, path)
    expected = reference_of(op, case, opset)
    command = [regie, "run", path, "--output-dir", where]
    for name, value in case.inputs.items():
        np.save(os.path.join(where, f"{name}.npy"), value)
        command += ["--input", f"{name}={where}/{name}.npy"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    if done.returncode != 0:
        return f"{op}-{opset}-{k}: exit {done.returncode}: {done.stderr.strip()[:300]}"
    for name, want in expected.items():
        got = np.load(os.path.join(where, f"{name}.npy"))
        if got.dtype != want.dtype or got.shape != want.shape:
            return f"{op}-{opset}-{k}: {name} is {got.dtype}{got.shape}, must be {want.dtype}{want.shape}"
        exact = want.dtype.kind in "biu"
        if exact and not np.array_equal(got, want):
            return f"{op}-{opset}-{k}: {name} differs"
        if not exact and not np.allclose(got, want, rtol=1e-4, atol=1e-5, equal_nan=True):
            return f"{op}-{opset}-{k}: {name} differs by {np.max(np.abs(got - want))}"
    return None


def main():
    regie, folder, *only = sys.argv[1:]
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    onnxruntime.set_default_logger_severity(4)
    jobs = []
    for op, (first, cases) in OPERATORS.items():
        if only and op not in only:
            continue
        seen = set()
        for opset in OPSETS:
            if opset < born(op) or (opset < first and not (opset < 7 and op in opset_old_cases.OPERATORS)):
                continue
            if onnx.defs.get_schema(op, opset, "").deprecated:
                break
            version = (since(op, opset), opset < 7)  # at 7 with today's cases too
            if version in seen:
                continue
            seen.add(version)
            of_it = opset_old_cases.OPERATORS.get(op, cases) if opset < 7 else cases
            jobs += [(op, opset, k, c) for k, c in enumerate(of_it(opset))]
    jobs += [(op, 6, k, c) for op, cases in opset_old_cases.withdrawn().items() if not only or op in only for k, c in enumerate(cases)]
    with concurrent.futures.ThreadPoolExecutor(2) as pool_of_runs:
        failures = [f for f in pool_of_runs.map(lambda j: compare_one(regie, folder, *j), jobs) if f]
    for f in failures:
        print(f)
    print(f"{len(jobs)} models, {len(failures)} wrong")
    sys.exit(1 if failures or (not only and len(jobs) < 300) else 0)


main()
