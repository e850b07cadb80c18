"""Split into equal parts of an axis whose size only the run says, against ONNX Runtime: the same results, and a failure that names the
node wherever ONNX Runtime has one. Run by build/venv/bin/python, into which ./bootstrap has installed the package."""

import copy
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

import numpy as np
import onnxruntime
from onnx import TensorProto, helper

import regie

OPTIONS = [{}, {"optimise": False}, {"target": "host_and_null"}, {"threads": 2}]
OPSETS = (1, 2, 11, 13, 18)
TOLD = 18  # from here on the number of parts is told, and the last may be smaller


def split(opset, parts, axis, outputs=None, x="x"):
    attributes = {"axis": axis} | ({"num_outputs": parts} if opset >= TOLD else {})
    return helper.make_node("Split", [x], outputs or [f"y{i}" for i in range(parts)], name="cut", **attributes)


def model_of(opset, dims, nodes, outputs, x="x", more=(), initializers=()):
    """Outputs by name with their element type; their shapes are what the run makes them."""
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info(x, TensorProto.FLOAT, dims), *more],
        [helper.make_tensor_value_info(o, TensorProto.FLOAT, None) for o in outputs], initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)


def reference(model):
    if model.opset_import[0].version == 1:  # which ONNX Runtime does not have, and which differs in nothing here
        model = copy.deepcopy(model)
        model.opset_import[0].version = 2
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    names = [o.name for o in session.get_outputs()]

    def run(feeds):
        try:
            return dict(zip(names, session.run(None, feeds)))
        except Exception as failure:  # each kind of failure is a class of its own
            return str(failure)
    return run


class Split(unittest.TestCase):
    def setUp(self):
        onnxruntime.set_default_logger_severity(4)
        self.random = np.random.default_rng(7)
        self.refused = self.agreed = 0

    def check(self, model, feeds_of_runs, options=OPTIONS, node="cut"):
        run = reference(model)
        wanted = [run(feeds) for feeds in feeds_of_runs]
        for option in options:
            compiled = regie.compile(model, **option)
            for feeds, want in zip(feeds_of_runs, wanted):
                with self.subTest(option=option, shapes={k: v.shape for k, v in feeds.items()}):
                    if isinstance(want, str):
                        with self.assertRaisesRegex(regie.Error, rf"node '{node}' \(Split\): ") as caught:
                            compiled.run(feeds)
                        self.assertEqual(caught.exception.code, "INVALID_INPUT")
                        self.refused += 1
                    else:
                        got = compiled.run(feeds)
                        for name in want:
                            np.testing.assert_array_equal(got[name], want[name], name)
                        self.agreed += 1

    def feeds(self, shape):
        return {"x": self.random.random(shape, np.float32)}

    def test_every_small_size(self):
        for opset in OPSETS:
            for parts in (1, 2, 3, 4, 7):
                for dims, axis in ((["N", 3], 0), ([2, "N", 3], 1), ([2, "N"], -1), ([3, "N", "M"], -2)):
                    with self.subTest(opset=opset, parts=parts, dims=dims, axis=axis):
                        shapes = [[size if d == "N" else 5 if d == "M" else d for d in dims] for size in (6, 7, 1, 12, 5, 0, 8, 14)]
                        self.check(model_of(opset, dims, [split(opset, parts, axis)], [f"y{i}" for i in range(parts)]),
                                   [self.feeds(s) for s in shapes], OPTIONS[:1])
        self.assertGreater(self.refused, 100)
        self.assertGreater(self.agreed, 300)

    def test_in_every_way_to_run(self):
        """Parts that meet again, in element-wise code and joined, of rows that could be views and of columns that are not."""
        for opset in (11, 13, 18):
            for axis in (0, 1):
                nodes = [helper.make_node("Neg", ["x"], ["r"]), split(opset, 2, axis, ["a", "b"], "r"),
                         helper.make_node("Abs", ["b"], ["s"]), helper.make_node("Concat", ["s", "a"], ["joined"], axis=axis),
                         helper.make_node("Neg", ["a"], ["n"])]
                with self.subTest(opset=opset, axis=axis):
                    self.check(model_of(opset, ["N", "M"], nodes, ["joined", "n"]),
                               [self.feeds(s) for s in ((4, 6), (5, 6), (4, 7), (2, 2), (1, 1), (8, 6))])
        for opset in (11, 13):  # parts of one size may be added; uneven ones could not
            nodes = [split(opset, 2, -1, ["a", "b"]), helper.make_node("Add", ["a", "b"], ["y"])]
            self.check(model_of(opset, [2, "N"], nodes, ["y"]), [self.feeds((2, n)) for n in (4, 5, 6, 2, 1, 9)])
        self.assertGreater(self.refused, 20)

    def test_sizes_that_data_tell(self):
        for opset in (13, 18):
            nodes = [helper.make_node("NonZero", ["x"], ["places"]), helper.make_node("Cast", ["places"], ["c"], to=TensorProto.FLOAT),
                     split(opset, 3, 1, ["a", "b", "c3"], "c")]
            feeds = []
            for count in (6, 5, 9, 4, 3, 1, 7):
                x = np.zeros((4, 4), np.float32)
                x.flat[self.random.permutation(16)[:count]] = 1
                feeds.append({"x": x})
            self.check(model_of(opset, ["N", "M"], nodes, ["a", "b", "c3"]), feeds, OPTIONS[:3])
        self.assertGreater(self.refused, 5)

    def test_a_branch_that_is_not_taken_refuses_nothing(self):
        for opset in (13, 18):
            def branch(name, nodes, result):
                return helper.make_graph(nodes, name, [], [helper.make_tensor_value_info(result, TensorProto.FLOAT, None)])
            taken = branch("t", [split(opset, 3, 0, ["a", "b", "c"], "x"), helper.make_node("ReduceSum", ["b"], ["t"], keepdims=0)], "t")
            other = branch("e", [helper.make_node("ReduceSum", ["x"], ["e"], keepdims=0)], "e")
            nodes = [helper.make_node("If", ["cond"], ["y"], then_branch=taken, else_branch=other)]
            model = model_of(opset, ["N", 2], nodes, ["y"],
                             more=[helper.make_tensor_value_info("cond", TensorProto.BOOL, [])])
            feeds = []
            for n in (6, 5, 3, 7):
                for taken in (True, False):  # sums of small whole numbers are exact
                    feeds.append({"x": self.random.integers(0, 9, (n, 2)).astype(np.float32), "cond": np.array(taken)})
            self.check(model, feeds, OPTIONS[:2])

    def test_fixed_sizes_are_refused_by_the_compile(self):
        for opset in (2, 13):
            model = model_of(opset, [5, 2], [split(opset, 2, 0)], ["y0", "y1"])
            with self.assertRaisesRegex(regie.Error, r"node 'cut' \(Split\): .*5.*2 equal parts") as caught:
                regie.compile(model)
            self.assertEqual(caught.exception.code, "INVALID_MODEL")
            open_size = model_of(opset, ["N", 2], [split(opset, 2, 0)], ["y0", "y1"])
            with self.assertRaisesRegex(regie.Error, r"node 'cut' \(Split\): .*5.*2 equal parts"):
                regie.compile(open_size, shapes={"x": (5, 2)})
            with self.assertRaisesRegex(regie.Error, r"node 'cut' \(Split\): .*3.*2 equal parts"):
                regie.compile(open_size, shapes="buckets:x.0=2|3", padding="refuse")
        with self.assertRaisesRegex(regie.Error, r"node 'cut' \(Split\): .*too small for 4 parts"):
            regie.compile(model_of(18, [5, 2], [split(18, 4, 0)], [f"y{i}" for i in range(4)]))

    def test_saved_and_compiled_again(self):
        """An offline model refuses the same, and so does what is made of the graph in it."""
        model = model_of(13, ["N", 2], [split(13, 3, 0)], ["y0", "y1", "y2"])
        with tempfile.TemporaryDirectory() as folder:
            path = str(pathlib.Path(folder) / "m.rgm")
            regie.compile(model).save(path)
            for made in (regie.load(path), regie.compile(path), regie.compile(path, optimise=False)):
                x = self.random.random((9, 2), np.float32)
                for i, part in enumerate(made.run({"x": x}).values()):
                    np.testing.assert_array_equal(part, x[3 * i:3 * i + 3])
                with self.assertRaisesRegex(regie.Error, r"node 'cut' \(Split\): .*size 8.*3 equal parts"):
                    made.run({"x": x[:8]})
            with self.assertRaisesRegex(regie.Error, "3 equal parts"):
                regie.compile(path, shapes={"x": (8, 2)})

    def test_planned_sizes_are_ones_that_can_be_run(self):
        """Inputs that nobody gives have the planned sizes: the least that every operator takes."""
        for nodes, parts in (([split(13, 3, 0)], 3), ([split(13, 7, 0)], 7), ([split(18, 4, 0)], 4)):
            model = model_of(13 if parts != 4 else 18, ["N", 2], nodes, [f"y{i}" for i in range(parts)])
            with tempfile.TemporaryDirectory() as folder:
                path = str(pathlib.Path(folder) / "m.onnx")
                pathlib.Path(path).write_bytes(model.SerializeToString())
                done = subprocess.run([sys.argv[1], "profile", path, "--runs", "1", "--warm-ups", "0", "--json"],
                                      capture_output=True, text=True, timeout=120)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual([t["operator"] for t in json.loads(done.stdout)["tasks"]], ["Split"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
