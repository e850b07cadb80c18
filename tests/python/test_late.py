"""Shapes that depend on data, against ONNX Runtime: networks as exporters of detectors and of text models write them, with other
counts in each run. Run by build/venv/bin/python, into which ./bootstrap has installed the package."""

import pathlib
import tempfile
import threading
import unittest

import numpy as np
import onnx.parser
import onnxruntime

import regie

OPTIONS = [{}, {"optimise": False}, {"target": "host_and_null"}]

# Boxes and scores of three classes; those that are left, with class and score, best first.
DETECTOR = """g (float[1,n,4] boxes, float[1,3,n] scores, int64[1] most) => (float[K,6] best, int64[K2,3] kept) {
  iou = Constant<value = float[1] {0.5}>()
  least = Constant<value = float[1] {0.3}>()
  ten = Constant<value = int64[1] {10}>()
  kept = NonMaxSuppression(boxes, scores, ten, iou, least)
  one = Constant<value = int64[1] {1}>()
  two = Constant<value = int64[1] {2}>()
  three = Constant<value = int64[1] {3}>()
  flat = Constant<value = int64[1] {-1}>()
  column = Constant<value = int64[2] {-1, 1}>()
  class_ = Slice(kept, one, two, one)
  box_ = Slice(kept, two, three, one)
  box = Reshape(box_, flat)
  zero = Constant<value = int64[1] {0}>()
  flat_boxes = Squeeze(boxes, zero)
  picked = Gather<axis = 0>(flat_boxes, box)
  score = GatherND(scores, kept)
  count = Shape(score)
  smaller = Min(count, most)
  values, order = TopK(score, smaller)
  rows = Gather<axis = 0>(picked, order)
  classes = Gather<axis = 0>(class_, order)
  class_f = Cast<to = 1>(classes)
  score_column = Reshape(values, column)
  best = Concat<axis = 1>(rows, class_f, score_column)
}"""

# Embeddings of the words that are no padding, their sum, and a mask made for as many as there are.
WORDS = """g (int64[w] ids, float[20,6] table) => (float[K,6] sum, float[A,B] mask) {
  pad = Constant<value = int64[1] {0}>()
  is_pad = Equal(ids, pad)
  real = Not(is_pad)
  words = Compress<axis = 0>(ids, real)
  e = Gather<axis = 0>(table, words)
  axis = Constant<value = int64[1] {0}>()
  sum = ReduceSum<keepdims = 1>(e, axis)
  n = Shape(words)
  nn = Concat<axis = 0>(n, n)
  ones = ConstantOfShape<value = float[1] {1.0}>(nn)
  mask = Trilu<upper = 0>(ones)
}"""


def model_of(text):
    return onnx.parser.parse_model('<ir_version: 9, opset_import: ["" : 20]>\n' + text).SerializeToString()


def detections(random, n):
    corners = random.random((1, n, 4), np.float32)
    corners[..., 2:] = corners[..., :2] + 0.3 * corners[..., 2:] + 0.05
    return corners


class Late(unittest.TestCase):
    def same(self, model, runs):
        session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
        names = [o.name for o in session.get_outputs()]
        counts = set()
        for options in OPTIONS:
            made = regie.compile(model, **options)
            with tempfile.TemporaryDirectory() as folder:
                path = pathlib.Path(folder) / "m.rgm"
                made.save(path)
                read = regie.load(path)
            for one in (made, read):
                for feeds in runs:
                    want = session.run(names, feeds)
                    got = one.run(feeds)
                    counts.add(want[-1].shape)
                    for name, w in zip(names, want):
                        self.assertEqual(got[name].shape, w.shape, name)
                        self.assertEqual(got[name].dtype, w.dtype, name)
                        np.testing.assert_allclose(got[name], w, rtol=1e-5, atol=1e-6, err_msg=name)
        return counts

    def test_detector(self):
        random = np.random.default_rng(5)
        runs = []
        for n, scale, most in ((40, 1.0, 5), (40, 0.2, 5), (7, 1.0, 100), (1, 1.0, 1), (40, 1.0, 5), (120, 0.6, 50)):
            runs.append({"boxes": detections(random, n), "scores": scale * random.random((1, 3, n), np.float32),
                         "most": np.array([most], np.int64)})
        counts = self.same(model_of(DETECTOR), runs)
        self.assertIn((0, 3), counts)
        self.assertGreater(len(counts), 2)

    def test_words(self):
        random = np.random.default_rng(6)
        table = random.random((20, 6), np.float32)
        runs = [{"ids": np.where(random.random(w) < share, random.integers(1, 20, w), 0), "table": table}
                for w, share in ((8, 0.5), (8, 1.0), (3, 0.7), (30, 0.5), (8, 0.5))]
        self.assertGreater(len(self.same(model_of(WORDS), runs)), 3)

    def test_threads(self):
        model = regie.compile(model_of(WORDS))
        random = np.random.default_rng(7)
        table = random.random((20, 6), np.float32)
        failures = []

        def work(seed):
            mine = np.random.default_rng(seed)
            for _ in range(100):
                ids = np.where(mine.random(12) < 0.5, mine.integers(1, 20, 12), 0)
                words = ids[ids != 0]
                got = model.run({"ids": ids, "table": table})
                want = np.tril(np.ones((len(words), len(words)), np.float32))
                if not np.array_equal(got["mask"], want):
                    failures.append(ids)
                if not np.allclose(got["sum"], table[words].sum(0, keepdims=True), 1e-5):
                    failures.append(ids)

        threads = [threading.Thread(target=work, args=(s,)) for s in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(failures, [])

    def test_what_is_wrong_is_said(self):
        model = regie.compile(model_of("g (float[2,3] x, int64[2] s) => (float[a,b] y) { y = Reshape(x, s) }"))
        self.assertEqual(len(model.outputs[0].shape), 2)
        self.assertTrue(all(isinstance(d, str) for d in model.outputs[0].shape))
        x = np.arange(6, dtype=np.float32).reshape(2, 3)
        with self.assertRaisesRegex(regie.Error, r"Reshape.*cannot have the shape \[4, 2\].*while running task"):
            model.run({"x": x, "s": np.array([4, 2])})
        np.testing.assert_array_equal(model.run({"x": x, "s": np.array([3, 2])})["y"], x.reshape(3, 2))
        with self.assertRaisesRegex(regie.Error, "rank of the result depends on the length of operand 1"):
            regie.compile(model_of("g (float[2,3] x, int64[k] s) => (float[a,b] y) { y = Reshape(x, s) }"))


if __name__ == "__main__":
    unittest.main()
