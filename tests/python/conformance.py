"""ONNX's backend suite through Regie and through ONNX Runtime: passed, wrong, refused, crashed.

    build/venv/bin/python tests/python/conformance.py [--engine regie] [--engine onnxruntime] [--kind node ...] [--verbose]
    build/venv/bin/python tests/python/conformance.py --check tests/python/onnx_not_passed.txt     # what the test runs
    build/venv/bin/python tests/python/conformance.py --write tests/python/onnx_not_passed.txt

The data are those of the pinned PyPI package `onnx`. Outputs are compared as ONNX's own runner does. Every model runs in a worker
process, so that one that crashes is counted and the rest go on. The list names each test that Regie does not pass, with how and
why; --check fails for a test that should be on the list and for one that should not.
"""

from __future__ import annotations

import argparse
import glob
import multiprocessing
import os
import re
import sys
import warnings

import numpy as np
import onnx
import onnx.numpy_helper
from onnx.backend.test import loader
from onnx.backend.test.case.test_case import TestCase
from onnx.backend.test.runner import Runner

KINDS = ("node", "simple", "pytorch-operator", "pytorch-converted", "light")
SECONDS = 120
# Tests whose expected values are less exact than the suite's tolerance: the absolute tolerance that they are good for, and why.
INEXACT = {
    "test_dft_inverse": (1e-6, "expected is NumPy's rounding in single precision where the exact value is 0"),
    "test_dft_inverse_opset19": (1e-6, "expected is NumPy's rounding in single precision where the exact value is 0"),
    "test_attention_4d_causal_fp16_expanded": (5e-4, "expected is made in half precision, a unit off, and further from the exact value than ours"),
}

# "The generator is non-deterministic and may not produce the same values in different implementations even if a seed is specified" (the
# suite's own words): type, shape and range are compared.
RANDOM = re.compile(r"test_bernoulli")


def load(path, type_proto):
    with open(path, "rb") as f:
        data = f.read()
    kind = type_proto.WhichOneof("value")
    if kind == "sequence_type":
        return onnx.numpy_helper.to_list(onnx.SequenceProto.FromString(data))
    if kind == "optional_type":
        return onnx.numpy_helper.to_optional(onnx.OptionalProto.FromString(data))
    return onnx.numpy_helper.to_array(onnx.TensorProto.FromString(data))


def run_regie(model, inputs, wanted):
    import regie

    results = regie.compile(model).run(inputs)
    return [results[w] for w in wanted]


def run_onnxruntime(model, inputs, wanted):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return session.run(wanted, inputs)


ENGINES = {"regie": run_regie, "onnxruntime": run_onnxruntime}


def sets_of(case):
    """The model's bytes, and pairs of inputs by name and outputs by name."""
    if case.model is not None:
        model, sets = case.model, case.data_sets
    else:
        model = onnx.load(os.path.join(case.model_dir, "model.onnx"))
        sets = []
        for data in sorted(glob.glob(os.path.join(case.model_dir, "test_data_set_*"))):
            sets.append([[load(os.path.join(data, f"{what}_{k}.pb"), p.type) for k, p in enumerate(ports)
                          if os.path.exists(os.path.join(data, f"{what}_{k}.pb"))]
                         for what, ports in (("input", ports_of(model)), ("output", model.graph.output))])
    sets = [[[onnx.numpy_helper.to_array(v) if isinstance(v, onnx.TensorProto) else v for v in half] for half in pair]
            for pair in sets]
    names = [p.name for p in ports_of(model)]
    wanted = [o.name for o in model.graph.output]
    return model.SerializeToString(), [(dict(zip(names, i)), dict(zip(wanted, o))) for i, o in sets]


def ports_of(model):
    constants = {i.name for i in model.graph.initializer}
    return [i for i in model.graph.input if i.name not in constants]


def assert_like(wanted, results):
    for want, result in zip(wanted, results, strict=True):
        assert result.dtype == want.dtype and result.shape == want.shape, f"{result.dtype}{result.shape}, not {want.dtype}{want.shape}"
        assert np.isin(result, (0, 1)).all(), f"not only 0 and 1: {result}"


def one(engine, model, sets, rtol, atol, random):
    """What became of one test: (outcome, words)."""
    if not sets or not all(outputs for _, outputs in sets):
        return "wrong", "the suite has no data for it"
    for inputs, outputs in sets:
        try:
            results = ENGINES[engine](model, inputs, list(outputs))
        except Exception as e:
            return "refused", f"{type(e).__name__}: {e}"
        try:
            if random:
                assert_like(outputs.values(), results)
            else:
                Runner.assert_similar_outputs(list(outputs.values()), results, rtol=rtol, atol=atol)
        except Exception as e:
            return "wrong", " ".join(str(e).split())[:300]
    return "passed", ""


def worker(engine, pipe):
    sys.stderr = open(os.devnull, "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    while (job := pipe.recv()) is not None:
        try:
            pipe.send(one(engine, *job))
        except Exception as e:  # of this script or of the suite: never counted as anything good
            pipe.send(("wrong", f"{type(e).__name__}: {e}"))


class Worker:
    def __init__(self, engine):
        self.engine = engine
        self.process = None

    def run(self, *job):
        if self.process is None:
            context = multiprocessing.get_context("spawn")
            self.pipe, other = context.Pipe()
            self.process = context.Process(target=worker, args=(self.engine, other), daemon=True)
            self.process.start()
            other.close()
        self.pipe.send(job)
        try:
            if self.pipe.poll(SECONDS):
                return self.pipe.recv()
            words = f"no answer within {SECONDS} s"
        except EOFError:
            self.process.join()
            words = f"the process ended with {self.process.exitcode}"
        self.process.kill()
        self.process = None
        return "crashed", words

    def close(self):
        if self.process is not None:
            self.pipe.send(None)
            self.process.join()


def domain_of(case):
    """Where the operators of a model come from, its subgraphs and functions included: ai.onnx if all of them do."""
    model = case.model or onnx.load(os.path.join(case.model_dir, "model.onnx"), load_external_data=False)
    functions = {(f.domain, f.name) for f in model.functions}
    domains = {n.domain for n in nodes_of(model) if (n.domain, n.op_type) not in functions} - {"", "ai.onnx"}
    return sorted(domains)[0] if domains else "ai.onnx"


def nodes_of(model):
    waiting = [model.graph.node, *(f.node for f in model.functions)]
    while waiting:
        for node in waiting.pop():
            yield node
            for attribute in node.attribute:
                waiting += [g.node for g in (*attribute.graphs, *([attribute.g] if attribute.HasField("g") else []))]


def cases_of(kind):
    if kind != "light":
        return loader.load_model_tests(kind=kind)
    # Real architectures with weights from ConstantOfShape, and their first output for inputs that are all ones.
    cases = []
    for path in sorted(glob.glob(os.path.join(loader.DATA_DIR, "light", "light_*.onnx"))):
        model = onnx.load(path)
        shape = [d.dim_value for d in ports_of(model)[0].type.tensor_type.shape.dim]
        with open(path[: -len(".onnx")] + "_output_0.pb", "rb") as f:
            output = onnx.numpy_helper.to_array(onnx.TensorProto.FromString(f.read()))
        cases.append(TestCase(name=os.path.basename(path)[: -len(".onnx")], model_name="", url=None, model_dir=None,
                              model=model, data_sets=[([light_input(shape)], [output])], kind=kind, rtol=1e-3, atol=1e-7))
    return cases


def light_input(shape):
    """As onnx.backend.test.runner makes it."""
    n = int(np.prod(shape))
    return (np.arange(n).reshape(shape) / np.float32(n)).astype(np.float32)


def collect(kinds, engines, pattern):
    """{engine: {(kind, test): (outcome, words)}} and the domains of the tests."""
    found = {e: {} for e in engines}
    domains = {}
    workers = {e: Worker(e) for e in engines}
    for kind in kinds:
        for case in sorted(cases_of(kind), key=lambda c: c.name):
            if (case.model is None and case.model_dir is None) or not re.search(pattern, case.name):
                continue
            domains[kind, case.name] = domain_of(case)
            model, sets = sets_of(case)
            atol = max(case.atol, INEXACT.get(case.name, (0, ""))[0])
            for e in engines:
                found[e][kind, case.name] = workers[e].run(model, sets, case.rtol, atol, bool(RANDOM.match(case.name)))
    for w in workers.values():
        w.close()
    return found, domains


def table(found, domains, kinds):
    print(f"{'suite':<32}{'engine':<14}{'tests':>7}{'passed':>8}{'wrong':>7}{'refused':>9}{'crashed':>9}{'share':>9}")
    groups = [(f"{k} ({d})" if k == "node" else k, [k], d) for k in kinds
              for d in sorted({domains[t] for t in domains if t[0] == k} if k == "node" else {""})]
    groups += [("all of ai.onnx", kinds, "ai.onnx"), ("all", kinds, "")]
    for title, of_kinds, domain in groups:
        for engine, results in found.items():
            chosen = [r[0] for t, r in results.items() if t[0] in of_kinds and (not domain or domains[t] == domain)]
            count = {o: chosen.count(o) for o in ("passed", "wrong", "refused", "crashed")}
            share = f"{100 * count['passed'] / len(chosen):.1f} %" if chosen else "-"
            print(f"{title:<32}{engine:<14}{len(chosen):>7}{count['passed']:>8}{count['wrong']:>7}{count['refused']:>9}"
                  f"{count['crashed']:>9}{share:>9}")


def shortened(words):
    """A reason without folders and figures that change."""
    return re.sub(r"/\S*/", "", " ".join(words.split()))[:110]


def lines(results):
    return [f"{kind} {name}: {outcome}: {shortened(words)}" for (kind, name), (outcome, words) in sorted(results.items())
            if outcome != "passed"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", action="append", choices=sorted(ENGINES))
    parser.add_argument("--kind", action="append", choices=KINDS)
    parser.add_argument("--filter", default="", help="regular expression over the tests' names")
    parser.add_argument("--verbose", action="store_true", help="a line for each test that is not passed")
    parser.add_argument("--check", metavar="LIST")
    parser.add_argument("--write", metavar="LIST")
    arguments = parser.parse_args()
    kinds = arguments.kind or KINDS
    engines = arguments.engine or (["regie"] if arguments.check or arguments.write else sorted(ENGINES))
    np.seterr(all="ignore")  # the suite casts values that do not fit on purpose
    warnings.simplefilter("ignore")
    found, domains = collect(kinds, engines, arguments.filter)
    table(found, domains, kinds)
    if arguments.verbose:
        for engine in engines:
            for line in lines(found[engine]):
                print(f"{engine} {line}")
    if arguments.write:
        bad = [line for line in lines(found["regie"]) if not line.split(": ")[1].startswith("refused")]
        if bad:
            sys.exit("wrong or crashed tests do not go on a list, they are mended:\n" + "\n".join(bad))
        with open(arguments.write + ".new", "w") as f:
            f.write("\n".join(lines(found["regie"])) + "\n")
        os.replace(arguments.write + ".new", arguments.write)
    if arguments.check:
        with open(arguments.check) as f:
            listed = dict(line.split(": ", 1) for line in f.read().splitlines())
        actual = dict(line.split(": ", 1) for line in lines(found["regie"]))
        for name in sorted(listed.keys() | actual.keys()):
            if listed.get(name) != actual.get(name):
                print(f"{name}\n  listed: {listed.get(name, 'passed')}\n  is:     {actual.get(name, 'passed')}")
        if listed != actual:
            sys.exit(1)


if __name__ == "__main__":
    main()
