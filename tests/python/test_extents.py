"""Every standard operator with nothing in an operand, or with a scalar for an operand, beside ONNX Runtime.

    build/venv/bin/python tests/python/test_extents.py [--all] [--only SUBSTRING] [--verbose]

The models are those of ONNX's own node tests: one a combination of operator, operator set, attributes that are set and operands
that are given, or with --all every one. Of each, every axis of every operand has its size made 0, in that operand alone and in all that
have an axis of that size; every operand is made a scalar, alone and with the others. Operands are inputs, and once more all but
the first constants. Each is run as Regie compiles it, optimised and not.

ONNX Runtime (optimisations off) decides: what it computes, Regie computes, equal in shape, type and value. Where ONNX's reference
evaluator agrees with Regie against it, or ONNX Runtime gives what its own shape inference forbids, DISPUTED says why. What ONNX
Runtime refuses, Regie may refuse or compute; --verbose says where the reference evaluator computes something else. Nothing may crash,
and no refusal may be an internal one. Exits 1 with a line a fault.
"""
from __future__ import annotations

import argparse
import collections
import multiprocessing
import re
import sys
import warnings

import numpy as np
import onnx
import onnx.numpy_helper
from onnx.backend.test import loader

SECONDS = 60
RANDOM = {"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial", "Bernoulli", "Dropout"}
# Faults of ONNX Runtime, by a pattern of "operator what": it computes what the operator's text says otherwise.
DISPUTED: dict[str, str] = {
    r"^Attention .*: Q axis 0 empty": "query, key and value of different batches",
    r"^DFT .*: sizes 10 empty": "a transform of no points",
    r"^Expand .*: new_shape scalar": "the shape must be a list",
    r"^GatherND .*(sizes 2|of all|axis 1|axis 2) empty": "an index must have at least one number",
    r"^GatherND .*batch_dim1.*: indices axis 0 empty": "batch dimensions must be equal",
    r"^GroupNormalization .*: (scale|bias) scalar": "scale and bias must be lists of a number a channel",
    r"^LayerNormalization .*: B axis . empty": "B must be broadcast to the normalized shape",
    r"^Loop .*: y scalar": "a carried value whose rank changes (docs/frontend.md)",
    # What it does not write is whatever was there, at times the right thing.
    r"^(LSTM|GRU|RNN) .*(bidirectional|reverse).*: X axis 0 empty": "it does not write the last state",
    r"^(LSTM|GRU|RNN|MatMulInteger|QLinearMatMul|ConvInteger|QLinearConv) .*: sizes . empty": "it does not write sums of nothing",
    r"^(NegativeLogLikelihood|SoftmaxCrossEntropy)Loss .*: sizes . empty": "the mean of nothing is 0 / 0",
    r"^Reduce\w+ .*: data scalar": "an axis that a scalar does not have",
    r"^PRelu .*: x scalar": "the slope is broadcast to x, not x to the slope",
    r"^CenterCropPad .*: shape scalar": "the shape must be a list",
    r"^ReduceMean .*: (data axis .|sizes 2|axis . of all) empty": "the mean of nothing is 0 / 0",
    r"^NonMaxSuppression .*: (.* axis 0|sizes 1|axis 0 of all) empty": "a limit must be one number",
    r"^NonZero .*: condition scalar": "of a scalar the result is [0, N], as the operator's text says",
    r"^RoiAlign .*: (X axis [23]|sizes \d) empty": "it reads pixels of a picture that has none",
    r"^Scan test_scan_sum": "Scan of operator set 8 (docs/frontend.md)",
    r"^Split .*: (split axis 0|axis 0 of all) empty": "one size a result",
    r"^Squeeze .*: axes axis 0 empty": "no axes are given, which is not the same as that they are not given",
}


def arrays_of(case):
    """Operands by name, or None where one is no tensor."""
    if case.model is None or not case.data_sets:
        return None
    found = {}
    names = [p.name for p in case.model.graph.input]
    for name, value in zip(names, case.data_sets[0][0]):
        if isinstance(value, onnx.TensorProto):
            value = onnx.numpy_helper.to_array(value)
        if not isinstance(value, np.ndarray) or value.dtype.kind not in "fiub":
            return None
        found[name] = value
    return found


def kind_of(case):
    """What tells one test's form from another's."""
    parts = []
    for node in case.model.graph.node:
        parts.append((node.domain, node.op_type, tuple(bool(i) for i in node.input),
                      tuple(sorted((a.name, a.s if a.type == onnx.AttributeProto.STRING else b"") for a in node.attribute)), len(node.output)))
    return tuple(parts), tuple((o.domain, o.version) for o in case.model.opset_import)


def resized(array, axis, size):
    shape = list(array.shape)
    shape[axis] = size
    return np.zeros(shape, array.dtype)


def mutations(arrays):
    """(what, arrays by name)"""
    seen = set()

    def fresh(what, changed):
        key = tuple((n, a.shape) for n, a in changed.items())
        if key in seen:
            return []
        seen.add(key)
        return [(what, changed)]

    for name, array in arrays.items():
        for axis, size in enumerate(array.shape):
            yield from fresh(f"{name} axis {axis} empty", {**arrays, name: resized(array, axis, 0)})
            every = dict(arrays)
            for other, b in arrays.items():
                for at, s in enumerate(b.shape):
                    if s == size:
                        every[other] = resized(every[other], at, 0)
            yield from fresh(f"sizes {size} empty", every)
            aligned = dict(arrays)
            for other, b in arrays.items():
                if b.ndim == array.ndim:
                    aligned[other] = resized(b, axis, 0)
            yield from fresh(f"axis {axis} of all empty", aligned)
        if array.ndim and array.size:
            yield from fresh(f"{name} scalar", {**arrays, name: array.reshape(-1)[:1].reshape(())})
    if all(a.size for a in arrays.values()):
        yield from fresh("all scalars", {n: a.reshape(-1)[:1].reshape(()) for n, a in arrays.items()})


def model_of(model, arrays, constants):
    """The model for operands of these shapes; those in `constants` are kept in it."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    graph = made.graph
    types = {i.name: i.type.tensor_type.elem_type for i in graph.input}
    del graph.input[:], graph.value_info[:]
    for name, array in arrays.items():
        if name in constants:
            graph.initializer.append(onnx.numpy_helper.from_array(array, name))
        else:
            graph.input.append(onnx.helper.make_tensor_value_info(name, types[name], array.shape))
    for output in graph.output:
        output.type.tensor_type.ClearField("shape")
    return made.SerializeToString()


def by_onnxruntime(model, inputs):
    import onnxruntime

    onnxruntime.set_default_logger_severity(4)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"]).run(None, inputs)


def by_reference(model, inputs):
    from onnx.reference import ReferenceEvaluator

    return ReferenceEvaluator(onnx.load_from_string(model)).run(None, inputs)


def by_regie(model, inputs, optimise):
    import regie

    compiled = regie.compile(model, optimise=optimise)
    results = compiled.run(inputs)
    return [results[o.name] for o in compiled.outputs]


def attempt(run, *arguments):
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return run(*arguments), ""
        except Exception as error:
            return None, f"{type(error).__name__}: {error}"


def differs(got, want):
    for a, b in zip(got, want, strict=True):
        if b is None:
            continue
        b = np.asarray(b)
        if b.dtype == np.uint8 and a.dtype.name.startswith("float8"):
            a = a.view(np.uint8)  # as ONNX Runtime gives them to Python
        if a.dtype != b.dtype or a.shape != b.shape:
            return f"is {a.dtype}{list(a.shape)}, must be {b.dtype}{list(b.shape)}"
        if a.dtype.kind in "fc" or a.dtype.kind == "V":
            a, b = a.astype(np.float64), b.astype(np.float64)
        if not np.allclose(a, b, rtol=1e-3, atol=1e-5, equal_nan=True):
            return f"is {a.reshape(-1)[:4]}, must be {b.reshape(-1)[:4]}"
    return ""


def judge(model, inputs):
    """(kind of fault or "", words)"""
    theirs, refused = attempt(by_onnxruntime, model, inputs)
    faults = []
    for optimise in (True, False):
        ours, error = attempt(by_regie, model, inputs, optimise)
        how = "optimised" if optimise else "not optimised"
        if ours is None:
            if "internal" in error.lower() or not error.startswith("Error: "):
                faults.append(("internal", f"{how}: {error}"))
            elif theirs is not None:
                faults.append(("refused", f"{how}: {error}"))
            continue
        if theirs is not None:
            problem = differs(ours, theirs)
            if not problem:
                continue
            other, _ = attempt(by_reference, model, inputs)
            agrees = other is not None and len(other) == len(ours) and not differs(ours, other)
            faults.append(("disputed" if agrees else "wrong", f"{how}: {problem}"))
            continue
        other, _ = attempt(by_reference, model, inputs)
        if other is not None and len(other) == len(ours) and (problem := differs(ours, other)):
            faults.append(("unlike the reference", f"{how}: {problem}; ONNX Runtime: {refused[:150]}"))
    if not faults:
        return ("both refuse" if theirs is None and ours is None else "only Regie" if theirs is None else ""), ""
    return faults[0]


def serve(pipe):
    while (given := pipe.recv()) is not None:
        pipe.send(judge(*given))


def known_to_onnxruntime(case, arrays):
    """The model at the newest operator set at which ONNX Runtime runs it; as it is if there is none."""
    for version in (None, 26, 24, 22, 21, 20):
        made = onnx.ModelProto()
        made.CopyFrom(case.model)
        for used in made.opset_import:
            if used.domain == "" and version:
                if version >= used.version:
                    break
                used.version = version
        else:
            if version:
                made.ir_version = min(made.ir_version, 10)
            if attempt(by_onnxruntime, made.SerializeToString(), arrays)[0] is not None:
                return made
    return case.model


class Worker:
    """Runs one after the other in a process that may die."""

    def __init__(self):
        self.process = None

    def judge(self, model, inputs):
        if self.process is None:
            self.pipe, theirs = multiprocessing.Pipe()
            self.process = multiprocessing.Process(target=serve, args=(theirs,), daemon=True)
            self.process.start()
            theirs.close()
        self.pipe.send((model, inputs))
        try:
            if self.pipe.poll(SECONDS):
                return self.pipe.recv()
            words = "hangs"
        except EOFError:
            self.process.join()
            words = f"ended with {self.process.exitcode}"
        self.process.kill()
        self.process = None
        return self.who_died(model, inputs, words)

    def who_died(self, model, inputs, words):
        """ONNX Runtime dies of some of these itself."""
        process = multiprocessing.Process(target=attempt, args=(by_onnxruntime, model, inputs), daemon=True)
        process.start()
        process.join(SECONDS)
        theirs = process.exitcode != 0
        process.kill()
        if not theirs:
            return "crashed", words
        for optimise in (True, False):
            process = multiprocessing.Process(target=attempt, args=(by_regie, model, inputs, optimise), daemon=True)
            process.start()
            process.join(SECONDS)
            code = process.exitcode
            process.kill()
            if code != 0:
                return "crashed", "and so did ONNX Runtime"
        return "only ONNX Runtime crashed", ""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--all", action="store_true", help="every node test, not one of each form")
    parser.add_argument("--only", default="", help="tests whose name has this in it")
    parser.add_argument("--part", default="0/1", help="K/N: every N-th test from the K-th on")
    parser.add_argument("--verbose", action="store_true")
    args = parser.parse_args()
    at, step = map(int, args.part.split("/"))
    warnings.simplefilter("ignore")
    with np.errstate(all="ignore"):
        cases = loader.load_model_tests(kind="node")
    known, chosen = set(), []
    for case in sorted(cases, key=lambda c: c.name):
        if args.only not in case.name or (case.name.endswith("_expanded") or "_expanded_" in case.name) or arrays_of(case) is None:
            continue
        if any(n.op_type in RANDOM or n.domain not in ("", "ai.onnx") for n in case.model.graph.node):
            continue
        kind = kind_of(case)
        if not args.all and kind in known:
            continue
        known.add(kind)
        chosen.append(case)
    worker, counts, faults, operators = Worker(), collections.Counter(), 0, set()
    for case in chosen[at::step]:
        arrays = arrays_of(case)
        operators |= {n.op_type for n in case.model.graph.node}
        names = list(arrays)
        base = known_to_onnxruntime(case, arrays)
        hopeless = set()
        for constants in ((), tuple(names[1:])) if len(names) > 1 else ((),):
            for what, changed in mutations(arrays):
                if what in hopeless:
                    continue
                counts["models"] += 1
                model = model_of(base, changed, constants)
                inputs = {n: a for n, a in changed.items() if n not in constants}
                kind, words = worker.judge(model, inputs)
                told = f"{case.model.graph.node[0].op_type} {case.name}{' constant' if constants else ''}: {what}"
                if kind == "disputed" or kind in ("wrong", "refused"):
                    if any(re.search(pattern, told) for pattern in DISPUTED):
                        counts["disputed, known"] += 1
                        continue
                counts[kind or "equal"] += 1
                if kind == "both refuse":
                    hopeless.add(what)
                if kind in ("wrong", "refused", "disputed", "crashed", "internal"):
                    faults += 1
                    print(f"{kind}: {told}: {words}", flush=True)
                elif args.verbose and kind:
                    print(f"{kind}: {told} {words}", flush=True)
    print(f"{len(chosen[at::step])} tests of {len(operators)} operators: " + ", ".join(f"{n} {what}" for what, n in sorted(counts.items())))
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
