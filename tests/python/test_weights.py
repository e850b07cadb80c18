"""Weights of an offline model: equal ones are stored once, they lie in the mapped file, and two models, two threads that run one
and two processes have them in memory once. Run by build/venv/bin/python, into which ./bootstrap has installed the package."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import numpy as np
from onnx import TensorProto, helper, numpy_helper

import regie

SIZE = 1024  # 4 MiB a matrix

CHILD = """
import sys
import numpy as np
import regie
model = regie.load(sys.argv[1])
model.run({"x": np.ones((4, int(sys.argv[2])), np.float32)})
print("ready", flush=True)
sys.stdin.readline()
"""


def network():
    """Three products; two of the matrices are the same."""
    random = np.random.RandomState(0)
    a, b = (random.standard_normal((SIZE, SIZE)).astype(np.float32) / SIZE for _ in range(2))
    nodes = [helper.make_node("MatMul", ["x", "a"], ["h"]), helper.make_node("Relu", ["h"], ["r"]),
             helper.make_node("MatMul", ["r", "b"], ["i"]), helper.make_node("Relu", ["i"], ["s"]),
             helper.make_node("MatMul", ["s", "c"], ["y"])]
    shape = [4, SIZE]
    graph = helper.make_graph(nodes, "weights", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
                              [numpy_helper.from_array(w, n) for n, w in (("a", a), ("b", b), ("c", a))])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def mapped(path, process="self"):
    """Kilobytes by field of the mappings of a file, and of all anonymous memory as "all"."""
    found, ours = {"all": 0}, False
    with open(f"/proc/{process}/smaps") as file:
        for line in file:
            words = line.split()
            if "-" in words[0]:
                ours = len(words) > 5 and os.path.exists(words[5]) and os.path.samefile(words[5], path)
            elif words[-1] == "kB":
                if words[0] == "Anonymous:":
                    found["all"] += int(words[1])
                if ours:
                    found[words[0]] = found.get(words[0], 0) + int(words[1])
    return found


class Weights(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = pathlib.Path(self.folder.name) / "m.rgm"
        regie.compile(network(), cache="off").save(self.path)
        self.x = np.ones((4, SIZE), np.float32)

    def tearDown(self):
        self.folder.cleanup()

    def test_equal_weights_are_stored_once(self):
        # As they were, and packed as kernels want them: two matrices, each in two forms at most.
        self.assertLess(self.path.stat().st_size, 4.5 * SIZE * SIZE * 4)

    def test_two_models_of_a_file_have_its_weights_once(self):
        first = regie.load(self.path)
        expected = first.run({"x": self.x})["y"]
        one = mapped(self.path)
        self.assertGreater(one["Rss:"], 2 * SIZE * SIZE * 4 // 1024, "the weights are read where the file is mapped")
        self.assertEqual(one["Anonymous:"], 0, "and not copied")
        second = regie.load(self.path)
        np.testing.assert_array_equal(second.run({"x": self.x})["y"], expected)
        two = mapped(self.path)
        self.assertLess(two["Pss:"], one["Pss:"] * 1.5, "the second model maps the same pages")
        self.assertLess(two["all"], one["all"] + SIZE * SIZE * 4 // 1024 // 2, "and has no copy of its own")

    def test_two_processes_have_them_once(self):
        model = regie.load(self.path)
        model.run({"x": self.x})
        alone = mapped(self.path)["Pss:"]
        child = subprocess.Popen([sys.executable, "-c", CHILD, str(self.path), str(SIZE)], stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE, text=True)
        try:
            self.assertEqual(child.stdout.readline().strip(), "ready")
            theirs = mapped(self.path, child.pid)
            self.assertEqual(theirs["Anonymous:"], 0)
            self.assertLess(mapped(self.path)["Pss:"] + theirs["Pss:"], alone * 1.5, "each counts half of the pages")
        finally:
            child.communicate("\n")
        self.assertEqual(child.returncode, 0)


if __name__ == "__main__":
    unittest.main()
