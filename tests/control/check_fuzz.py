"""Random bodies of loops against ONNX Runtime.

check_fuzz.py REGIE FOLDER [--seed N] [--count N]: each graph optimised and not, at several trip counts. A body is a random chain of
element-wise operators, products, joins, branches and further loops over what is carried, captured and made so far; carried values
come back as they are, swapped, changed or longer; the loop ends by count, by condition or both. Exits 1 with the seed of each graph
that differs.
"""
import argparse
import pathlib
import sys

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "pointwise"))
from common import run  # noqa: E402

ort.set_default_logger_severity(4)
WIDTH = 4


def value(name, rows=None, elem=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, elem, [rows, WIDTH] if elem == TensorProto.FLOAT else [])


class Maker:
    def __init__(self, random):
        self.random, self.names = random, 0

    def name(self, what="v"):
        self.names += 1
        return f"{what}{self.names}"

    def pick(self, items):
        return items[int(self.random.integers(len(items)))]

    def constant(self, nodes, array):
        out = self.name("k")
        nodes.append(helper.make_node("Constant", [], [out], value=numpy_helper.from_array(np.asarray(array), out)))
        return out

    def steps(self, nodes, one, depth, count):
        """Appends nodes over [1, WIDTH] tensors; `one` are those that can be read."""
        for _ in range(count):
            kind = self.random.random()
            out = self.name()
            if kind < 0.35:
                nodes.append(helper.make_node(self.pick(["Add", "Sub", "Mul", "Max"]), [self.pick(one), self.pick(one)], [out]))
            elif kind < 0.6:
                nodes.append(helper.make_node(self.pick(["Tanh", "Sigmoid", "Neg", "Relu"]), [self.pick(one)], [out]))
            elif kind < 0.75:
                w = self.constant(nodes, self.random.uniform(-1, 1, (WIDTH, WIDTH)).astype(np.float32))
                nodes.append(helper.make_node("MatMul", [self.pick(one), w], [out]))
            elif kind < 0.88 or depth == 0:
                self.branch(nodes, one, depth, out)
            else:
                self.loop(nodes, one, depth - 1, [out])
            tame = self.name()
            nodes.append(helper.make_node("Tanh", [out], [tame]))  # nothing runs away
            one.append(tame)

    def branch(self, nodes, one, depth, out):
        total, zero, positive = self.name(), self.constant(nodes, np.float32(0)), self.name()
        nodes.append(helper.make_node("ReduceSum", [self.pick(one)], [total], keepdims=0))
        nodes.append(helper.make_node("Greater", [total, zero], [positive]))
        graphs = []
        for which in ("then", "else"):
            inner, seen = [], list(one)
            if depth:
                self.steps(inner, seen, 0, int(self.random.integers(1, 3)))
            else:
                operand = self.pick(one)
                seen.append(self.name())
                inner.append(helper.make_node("Neg", [operand], [seen[-1]]))
            graphs.append(helper.make_graph(inner, which, [], [value(seen[-1], 1)]))
        nodes.append(helper.make_node("If", [positive], [out], then_branch=graphs[0], else_branch=graphs[1]))

    def loop(self, nodes, one, depth, outputs, trips=None):
        """A loop whose first result has one row; `outputs` names it, and may name one that grows and one collected."""
        trips = trips or self.constant(nodes, np.int64(self.random.integers(0, 4)))
        count = int(self.random.integers(1, 4))
        initial = [self.pick(one) for _ in range(count)]
        inner, number, goes_on = [], self.name("i"), self.name("c")
        carried = [self.name("s") for _ in range(count)]
        seen = list(one) + carried
        self.steps(inner, seen, depth, int(self.random.integers(1, 5)))
        made = seen[len(one) + count:]
        back = [self.pick(carried + made + made) for _ in range(count)]
        again = self.name()
        if self.random.random() < 0.4:
            limit = self.constant(inner, np.int64(self.random.integers(0, 3)))
            inner.append(helper.make_node("Less", [number, limit], [again]))
        else:
            inner.append(helper.make_node("Identity", [goes_on], [again]))
        ins = [value(number, elem=TensorProto.INT64), value(goes_on, elem=TensorProto.BOOL)] + [value(n, 1) for n in carried]
        outs = [again] + back
        results = outputs[:1] + [self.name() for _ in range(count - 1)]
        if len(outputs) > 1:  # grows
            past, longer = self.name("p"), self.name()
            inner.append(helper.make_node("Concat", [past, self.pick(seen)], [longer], axis=0))
            initial.append(self.pick(one))
            ins.append(value(past))
            outs.append(longer)
            results.append(outputs[1])
            outs.append(self.pick(made))
            results.append(outputs[2])
        # An output of a body may be named once.
        unique = []
        for o in outs:
            if o in unique or o in carried or o in one:
                copy = self.name()
                inner.append(helper.make_node("Identity", [o], [copy]))
                o = copy
            unique.append(o)
        body = helper.make_graph(inner, "body", ins, [value(unique[0], elem=TensorProto.BOOL)] + [
            value(o, None if i == count else 1) for i, o in enumerate(unique[1:])])
        first = "" if self.random.random() < 0.5 else self.constant(nodes, np.array(True))
        nodes.append(helper.make_node("Loop", [trips, first, *initial], results, body=body))


def graph(seed):
    random = np.random.default_rng(seed)
    maker = Maker(random)
    inputs = {f"x{i}": random.uniform(-1, 1, (1, WIDTH)).astype(np.float32) for i in range(int(random.integers(1, 4)))}
    nodes = []
    maker.loop(nodes, list(inputs), int(random.integers(0, 3)), ["last", "long", "all"], trips="n")
    ins = [value(n, 1) for n in inputs] + [value("n", elem=TensorProto.INT64)]
    made = helper.make_graph(nodes, "g", ins, [onnx.ValueInfoProto(name=n) for n in ("last", "long", "all")])
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), inputs


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("regie")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=40)
    given = parser.parse_args()
    wrong = 0
    for seed in range(given.seed, given.seed + given.count):
        model, inputs = graph(seed)
        session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
        for trips in (0, 3):
            values = {**inputs, "n": np.array(trips, np.int64)}
            wanted = dict(zip(("last", "long", "all"), session.run(None, values)))
            for arguments in ([], ["--no-optimise"]):
                try:
                    got = run(given.regie, given.folder / str(seed), model, values, wanted, arguments)
                except RuntimeError as error:
                    wrong += 1
                    print(f"seed {seed}, {trips} trips, {arguments}: {error}")
                    continue
                for name, want in wanted.items():
                    if got[name].shape != want.shape or not np.allclose(got[name], want, rtol=1e-4, atol=1e-5):
                        wrong += 1
                        print(f"seed {seed}, {trips} trips, {arguments}: {name} is {got[name].shape} {got[name].ravel()[:6]}, "
                              f"not {want.shape} {want.ravel()[:6]}")
    print(f"{given.count} graphs, {wrong} differences")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
