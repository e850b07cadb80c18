"""Plans for several sizes: requests padded and cropped against ONNX Runtime, compiles counted with a good cache folder, without one
and in a second process, what is above the largest size, saved files, the log of shapes and what is proposed from it."""

import itertools
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import unittest

import numpy as np
import onnx.parser
import onnxruntime

import regie

MODELS = pathlib.Path(__file__).resolve().parents[1] / "models"
DIGITS = MODELS / "digits" / "digits.onnx"
COMMAND = pathlib.Path(sys.argv.pop(1)).resolve() if len(sys.argv) > 1 and not sys.argv[1].startswith("-") else None

# 1,000 requests of 40 shapes on four plans.
SERVICE = """
import json, sys
import numpy as np, onnxruntime, regie
model, folder = sys.argv[1:3]
random = np.random.default_rng(3)
served = regie.compile(model, shapes="buckets:x.0=4|10|24|40", cache_dir=folder)
peer = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
wrong = 0
for n in random.permutation(np.arange(1000) % 40 + 1):
    x = random.random((n, 1, 8, 8), np.float32)
    got, = served.run({"x": x}).values()
    want, = peer.run(None, {"x": x})
    wrong += got.shape != want.shape or not np.allclose(got, want, rtol=1e-4, atol=1e-4)
print(json.dumps({"wrong": wrong, "cache": regie.cache_statistics(), "runs": served.statistics}))
"""


def model_of(text):
    return onnx.parser.parse_model('<ir_version: 9, opset_import: ["" : 20]>\n' + text).SerializeToString()


def peer_of(proto):
    return onnxruntime.InferenceSession(proto, providers=["CPUExecutionProvider"])


class Shapes(unittest.TestCase):
    def setUp(self):
        self.random = np.random.default_rng(11)
        self.peer = peer_of(str(DIGITS))

    def check(self, model, n):
        x = self.random.random((n, 1, 8, 8), np.float32)
        got = model.run({"x": x})["scores"]
        want, = self.peer.run(None, {"x": x})
        self.assertEqual(got.shape, want.shape)
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)

    def test_four_plans_four_compiles(self):
        environment = {k: v for k, v in os.environ.items() if not k.startswith("REGIE_CACHE")}
        with tempfile.TemporaryDirectory() as folder:
            no_folder = os.path.join(folder, "file")
            pathlib.Path(no_folder).write_text("no folder")
            good = os.path.join(folder, "good")
            for where, compiles in ((good, 4), (good, 0), (no_folder, 4)):
                done = subprocess.run([sys.executable, "-c", SERVICE, str(DIGITS), where], env=environment, capture_output=True, text=True)
                self.assertEqual(done.returncode, 0, done.stderr)
                told = json.loads(done.stdout)
                self.assertEqual(told["wrong"], 0)
                self.assertEqual(told["cache"]["compiles"], compiles)
                runs = told["runs"]
                self.assertEqual(runs["runs"], {"x.0=4": 100, "x.0=10": 150, "x.0=24": 350, "x.0=40": 400})
                self.assertEqual((runs["exact"], runs["padded"], runs["shapes_prepared"]), (100, 900, 4))

    def test_saved_and_loaded(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "d.rgm")
            regie.compile(DIGITS, shapes="buckets:x.0=1|6").save(path)
            model = regie.load(path)
            for n in (1, 2, 6, 5, 1):
                self.check(model, n)
            self.assertEqual(model.inputs[0].shape, ("N", 1, 8, 8))
            with self.assertRaisesRegex(regie.Error, r"dimension 0 \(N\) is 7, .* is 6"):
                model.run({"x": np.zeros((7, 1, 8, 8), np.float32)})
            # A run checks what it reads, and may go on without the rest: then nothing of the damage is in its answer.
            damaged, x = bytearray(pathlib.Path(path).read_bytes()), {"x": np.ones((1, 1, 8, 8), np.float32)}
            expected, found = model.run(x), []
            for at in range(0, len(damaged), 211):
                damaged[at] ^= 64
                broken = os.path.join(folder, "broken.rgm")
                pathlib.Path(broken).write_bytes(damaged)
                try:
                    answer = regie.load(broken).run(x)
                    for name, array in expected.items():
                        np.testing.assert_array_equal(answer[name], array)
                    found.append(False)
                except regie.Error:
                    found.append(True)
                damaged[at] ^= 64
            self.assertGreater(np.mean(found), 0.5)

    def test_above_the_largest(self):
        self.assertRaisesRegex(regie.Error, r"input 'x': dimension 0 \(N\) is 9, and the largest .* is 8",
                               regie.compile(DIGITS, shapes="max:x.0=8").run, {"x": np.zeros((9, 1, 8, 8), np.float32)})
        model = regie.compile(DIGITS, shapes="buckets:x.0=2|8", overflow="dynamic")
        for n in (1, 8, 9, 30, 2):
            self.check(model, n)
        told = model.statistics
        self.assertEqual((told["exact"], told["padded"], told["dynamic"]), (2, 1, 2))

    def test_exact_sizes_only(self):
        model = regie.compile(DIGITS, shapes="buckets:x.0=2|8", padding="refuse")
        self.check(model, 2)
        self.check(model, 8)
        with self.assertRaisesRegex(regie.Error, "is 3, and there are plans for 2 and 8 only"):
            self.check(model, 3)
        model = regie.compile(DIGITS, shapes="buckets:x.0=2|8", padding="refuse", overflow="dynamic")
        for n in (2, 3, 8, 9):
            self.check(model, n)
        self.assertEqual(model.statistics["padded"], 0)

    def test_more_than_there_is_memory(self):
        model = regie.compile(DIGITS, shapes="max:x.0=100000000000")
        self.assertRaisesRegex(regie.Error, "this computer has", model.run, {"x": np.zeros((2, 1, 8, 8), np.float32)})

    def test_two_inputs_two_axes(self):
        proto = model_of("""two (float[N,L,4] x, float[N,4,3] w) => (float[N,L,3] y, float[N,L] s) {
            m = MatMul(x, w)
            y = Relu(m)
            axis = Constant <value = int64[1] {2}> ()
            s = ReduceSum <keepdims = 0> (y, axis) }""")
        peer = peer_of(proto)
        for spec in ("buckets:x.0=2|4,x.1=3|9", "buckets:x.0=2|4,w.0=2|4,x.1=3|9"):
            model = regie.compile(proto, shapes=spec)
            for n, length in itertools.product((1, 2, 3, 4), (1, 3, 7, 9)):
                feeds = {"x": self.random.standard_normal((n, length, 4)).astype(np.float32),
                         "w": self.random.standard_normal((n, 4, 3)).astype(np.float32)}
                for (name, got), want in zip(model.run(feeds).items(), peer.run(None, feeds)):
                    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5, err_msg=name)
        with self.assertRaisesRegex(regie.Error, "dimension 0 must be 2, not 3"):
            model.run({"x": np.zeros((2, 3, 4), np.float32), "w": np.zeros((3, 4, 3), np.float32)})
        with self.assertRaisesRegex(regie.Error, r"w.0: it is the same as x.0 .*2\|4, not 2\|5"):
            regie.compile(proto, shapes="buckets:x.0=2|4,w.0=2|5")

    def test_through_control_flow(self):
        proto = model_of("""control (bool c, float[N,4] x) => (float[N,4] y, float[N,4] z, float[3,N,4] all) {
            y = If (c) <then_branch = t () => (float[N,4] u) { u = Relu(x) },
                        else_branch = e () => (float[N,4] v) { v = Softmax <axis = 1> (x) }>
            count = Constant <value = int64 {3}> ()
            go = Constant <value = bool {1}> ()
            z, all = Loop (count, go, x) <body = b (int64 i, bool g, float[N,4] h) => (bool same, float[N,4] n, float[N,4] m) {
                same = Identity(g)
                s = Sigmoid(h)
                n = Add(s, h)
                m = Neg(s) }> }""")
        peer, model = peer_of(proto), regie.compile(proto, shapes="buckets:x.0=2|5")
        for n, c in itertools.product((1, 2, 3, 5), (True, False)):
            feeds = {"c": np.array(c), "x": self.random.standard_normal((n, 4)).astype(np.float32)}
            for (name, got), want in zip(model.run(feeds).items(), peer.run(None, feeds)):
                self.assertEqual(got.shape, want.shape)
                np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6, err_msg=name)
        self.assertEqual(model.statistics["padded"], 4)

    def test_images_made_smaller(self):
        proto = model_of("""image (float[N,3,H,W] x) => (float[N,3,H,W] y) { y = Sigmoid(x) }""")
        model = regie.compile(proto, shapes="buckets:x.2=16|32,x.3=16|32", overflow="resize")
        ramp = np.broadcast_to(np.linspace(0, 1, 64, dtype=np.float32), (2, 3, 40, 64)).copy()
        got = model.run({"x": ramp})["y"]
        self.assertEqual(got.shape, (2, 3, 20, 32))  # half of it, as 64 is to be 32
        resize = model_of("""r (float[N,3,H,W] x, int64[4] s) => (float[a,b,c,d] y) {
            z = Resize <mode = "linear", coordinate_transformation_mode = "half_pixel"> (x, , , s)
            y = Sigmoid(z) }""")
        want, = peer_of(resize).run(None, {"x": ramp, "s": np.array([2, 3, 20, 32])})
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
        small = self.random.standard_normal((1, 3, 7, 32)).astype(np.float32)
        np.testing.assert_allclose(model.run({"x": small})["y"], 1 / (1 + np.exp(-small)), rtol=1e-5)
        self.assertEqual(model.statistics["resized"], 1)
        with self.assertRaisesRegex(regie.Error, "resize is for a model with one image"):
            regie.compile(proto, shapes="buckets:x.0=2", overflow="resize")
        with self.assertRaisesRegex(regie.Error, "--padding refuse forbids"):
            regie.compile(proto, shapes="buckets:x.2=16,x.3=16", overflow="resize", padding="refuse")

    def test_padding_by_force(self):
        proto = model_of("""s (float[N,M] x) => (float[N,M] y) { y = Softmax <axis = 1> (x) }""")
        with self.assertRaisesRegex(regie.Error, r"\(Softmax\) does not keep the elements along axis 1 .* x.1"):
            regie.compile(proto, shapes="buckets:x.1=8")
        x = self.random.standard_normal((2, 5)).astype(np.float32)
        got = regie.compile(proto, shapes="buckets:x.1=8", padding="force").run({"x": x})["y"]
        e = np.exp(np.pad(x, ((0, 0), (0, 3))))
        np.testing.assert_allclose(got, (e / e.sum(1, keepdims=True))[:, :5], rtol=1e-5)

    def test_what_is_wrong(self):
        for spec, words in (("buckets:y.0=1", "no input 'y'"), ("buckets:x.4=1", "no axis 4"), ("buckets:x.1=1", "one size only"),
                            ("buckets:x.0=", "has no sizes"), ("buckets:x.0=4|2", "2 comes after 4"), ("buckets:x.0=2|2", "twice"),
                            ("buckets:x.0=0", "size of 0"), ("buckets:x.0=1|", "empty size"), ("buckets:x0=1", "no input.axis"),
                            ("max:x.0=1|2", "one size an axis"), ("bucket:x.0=1", "did you mean 'buckets'"), ("buckets:", "no axis is named"),
                            ("buckets:x.0=1,x.0=2", "there twice"), ("buckets:x.0=" + "|".join(map(str, range(1, 70))), "more than 64 plans")):
            with self.subTest(spec):
                with self.assertRaisesRegex(regie.Error, re.escape(words)):
                    regie.compile(DIGITS, shapes=spec)
        with self.assertRaisesRegex(regie.Error, "not one of error, dynamic, resize"):
            regie.compile(DIGITS, shapes="max:x.0=4", overflow="maybe")
        with self.assertRaisesRegex(regie.Error, "this is for --shapes buckets"):
            regie.compile(DIGITS, overflow="dynamic")

    def test_threads_share_a_model(self):
        model = regie.compile(DIGITS, shapes="buckets:x.0=2|8", overflow="dynamic")
        failures = []

        def work(seed):
            random = np.random.default_rng(seed)
            for _ in range(60):
                x = random.random((int(random.integers(1, 11)), 1, 8, 8), np.float32)
                want, = self.peer.run(None, {"x": x})
                if not np.allclose(model.run({"x": x})["scores"], want, rtol=1e-4, atol=1e-4):
                    failures.append(x.shape)

        threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(failures, [])
        told = model.statistics
        self.assertEqual(told["exact"] + told["padded"] + told["dynamic"], 240)

    def test_inputs_that_may_be_left_out(self):
        proto = model_of('''g (float[n,4] x, float[4] b, float[n,4] c) => (float[n,4] y) <float[4] b = {1, -2, 3, -4}> {
            s = Add(x, b)
            t = Mul(s, c)
            y = Relu(t)
        }''')
        peer = peer_of(proto)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "o.rgm")
            regie.compile(proto, shapes="buckets:x.0=2|6").save(path)
            for model in (regie.compile(proto, shapes="buckets:x.0=2|6"), regie.load(path)):
                for n in (1, 2, 5, 6):
                    given = {name: self.random.standard_normal((n, 4), np.float32) for name in "xc"}
                    for more in ({}, {"b": self.random.standard_normal(4, np.float32)}, {}):
                        want, = peer.run(None, {**given, **more})
                        np.testing.assert_allclose(model.run({**given, **more})["y"], want, rtol=1e-6)

    def test_dynamic_shapes_are_counted(self):
        model = regie.compile(DIGITS, shapes="dynamic")
        for n in (1, 3, 1, 3, 5):
            self.check(model, n)
        self.assertEqual(model.statistics["shapes_prepared"], 3)


class CommandLine(unittest.TestCase):
    def setUp(self):
        self.assertIsNotNone(COMMAND, "the regie command line is to be given as the first argument: test_shapes.py build/dev/bin/regie")

    def run_command(self, *arguments, code=0, **environment):
        done = subprocess.run([COMMAND, *map(str, arguments)], capture_output=True, text=True, env={**os.environ, **environment})
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def test_a_run_says_what_is_new(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "d.rgm")
            told = json.loads(self.run_command("compile", DIGITS, "-o", path, "--shapes", "buckets:x.0=1|8", "--json").stdout)
            self.assertEqual([p["sizes"] for p in told["shapes"]["plans"]], ["x.0=1", "x.0=8"])
            log = os.path.join(folder, "log.jsonl")
            done = self.run_command("-v", "run", path, "--random", 1, "--shape", "x=5,1,8,8", "--shape-log", log)
            self.assertIn("scores: f32[5,10]", done.stdout)
            self.assertRegex(done.stderr, r"request of x.0=5 is the first here for the plan of x.0=8")
            self.run_command("run", path, "--random", 1, "--shape", "x=2,1,8,8", REGIE_SHAPE_LOG=log)
            self.assertEqual([json.loads(line) for line in pathlib.Path(log).read_text().splitlines()], [{"x": [5, 1, 8, 8]}, {"x": [2, 1, 8, 8]}])
            self.assertIn("x.0=8", self.run_command("inspect", path).stdout)
            again = os.path.join(folder, "again.rgm")
            self.run_command("compile", path, "-o", again)
            self.assertIn("buckets:x.0=1|8", self.run_command("inspect", again).stdout)
            self.run_command("compile", path, "-o", again, "--shapes", "dynamic")
            self.assertNotIn("buckets:", self.run_command("inspect", again).stdout)
            # A file that is no log is left as it is.
            before = pathlib.Path(path).read_bytes()
            done = self.run_command("run", path, "--random", 1, "--shape", "x=5,1,8,8", "--shape-log", path, code=2)
            self.assertIn("no log of shapes", done.stderr)
            self.assertEqual(pathlib.Path(path).read_bytes(), before)
            done = self.run_command("explain", path, "--json")
            self.assertIn("the plan for x.0=8; --plan chooses another: x.0=1; x.0=8", done.stderr)
            json.loads(done.stdout)
            self.assertEqual(self.run_command("explain", path, "--plan", "x.0=1").stderr, "")
            self.assertIn("there are: x.0=1; x.0=8", self.run_command("explain", path, "--plan", "x.0=2", code=2).stderr)
            self.assertIn("scores: f32[3,10]", self.run_command("run", again, "--random", 1, "--shape", "x=3,1,8,8").stdout)
            self.run_command("run", path, "--random", 1, "--shape", "x=9,1,8,8", code=2)

    def test_bench_a_shape(self):
        quick = ("--duration", "0.02", "--warm-up-ms", "1", "--json")
        told = json.loads(self.run_command("bench", DIGITS, "--shapes", "buckets:x.0=2|8", "--shape", "x=1,1,8,8", "--shape", "x=8,1,8,8",
                                           *quick).stdout)
        self.assertEqual([s["shape"]["x"][0] for s in told["shapes"]], [1, 8])
        self.assertEqual([s["plan"] for s in told["shapes"]], ["x.0=2", "x.0=8"])
        self.assertEqual((told["compiles_in_runs"], told["session"]["shapes_prepared"]), (0, 2))
        one = json.loads(self.run_command("bench", DIGITS, "--shapes", "buckets:x.0=2|8", "--shape", "x=1,1,8,8", *quick).stdout)
        self.assertEqual(one["inputs"][0]["dims"], [1, 1, 8, 8])  # one shape: the usual report
        self.assertGreater(one["latency_ms"]["median"], 0)
        with tempfile.TemporaryDirectory() as folder:
            trace = os.path.join(folder, "t.jsonl")
            pathlib.Path(trace).write_text("".join(json.dumps({"x": [n, 1, 8, 8]}) + "\n" for n in (1, 3, 1, 1)))
            told = json.loads(self.run_command("bench", DIGITS, "--trace", trace, *quick).stdout)
        self.assertEqual([(s["requests"], s["prepared"]) for s in told["shapes"]], [(3, 1), (1, 1)])
        for s in told["shapes"]:
            self.assertGreaterEqual(s["iterations"], 10)
            self.assertGreater(s["latency_ms"]["median"], 0)

    def test_bench_of_what_is_refused(self):
        quick = ("--duration", "0.02", "--warm-up-ms", "1")
        with tempfile.TemporaryDirectory() as folder:
            trace = os.path.join(folder, "t.jsonl")
            pathlib.Path(trace).write_text("".join(json.dumps({"x": [n, 1, 8, 8]}) + "\n" for n in (9, 1, 9, 2)))
            told = json.loads(self.run_command("bench", DIGITS, "--shapes", "max:x.0=2", "--trace", trace, *quick, "--json").stdout)
            self.assertEqual([(s["shape"]["x"][0], s["requests"], "refused" in s) for s in told["shapes"]],
                             [(9, 2, True), (1, 1, False), (2, 1, False)])
            self.assertIn("refused: x=9,1,8,8", self.run_command("bench", DIGITS, "--shapes", "max:x.0=2", "--trace", trace, *quick).stdout)
            pathlib.Path(trace).write_text(json.dumps({"x": [9, 1, 8, 8]}) + "\n")
            done = self.run_command("bench", DIGITS, "--shapes", "max:x.0=2", "--trace", trace, *quick, code=2)
            self.assertIn("takes none of the shapes", done.stderr)
            self.run_command("bench", DIGITS, "--shapes", "max:x.0=2", "--shape", "x=9,1,8,8", "--shape", "x=1,1,8,8", *quick, code=2)

    def advise(self, rows, *options):
        with tempfile.TemporaryDirectory() as folder:
            trace = os.path.join(folder, "t.jsonl")
            pathlib.Path(trace).write_text("".join(json.dumps(r) + "\n" for r in rows))
            return json.loads(self.run_command("shapes", "advise", trace, *options, "--json").stdout)

    def test_advice_for_one_axis_is_the_best(self):
        random = np.random.default_rng(2)
        lengths = [int(v) for v in random.choice([3, 4, 7, 8, 15, 16, 40, 41, 90], 200)]
        told = self.advise([{"x": [2, n, 5]} for n in lengths])
        sizes = sorted(set(lengths))
        for plans, choice in enumerate(told["choices"], 1):
            self.assertEqual(choice["hit_rate"], 1)
            best = min(sum(min(b for b in (*some, sizes[-1]) if b >= n) for n in lengths)
                       for k in range(plans) for some in itertools.combinations(sizes[:-1], k))
            chosen = choice["sizes"][0]
            cost = sum(min(b for b in chosen if b >= n) for n in lengths)
            self.assertEqual(cost, best)
            self.assertAlmostEqual(choice["padding"], 1 - sum(lengths) / cost, places=9)
            self.assertAlmostEqual(choice["exact"], sum(n in chosen for n in lengths) / len(lengths), places=9)
            self.assertEqual(choice["memory_bytes"], sum(4 * 2 * n * 5 for n in chosen))

    def test_advice_for_two_axes(self):
        random = np.random.default_rng(4)
        rows = [(int(random.choice([32, 48, 64, 96])), int(random.choice([32, 64, 100]))) for _ in range(150)]
        told = self.advise([{"x": [1, 3, h, w], "size": [h]} for h, w in rows], "--most", 6)
        self.assertEqual([a["places"] for a in told["axes"]], [["size.0", "x.2"], ["x.3"]])

        def cost(hs, ws):
            up = lambda sizes, v: min(s for s in sizes if s >= v)
            return sum(3 * up(hs, h) * up(ws, w) + up(hs, h) for h, w in rows)

        heights, widths = sorted({h for h, _ in rows}), sorted({w for _, w in rows})
        subsets = lambda sizes: [(*s, sizes[-1]) for k in range(len(sizes)) for s in itertools.combinations(sizes[:-1], k)]
        for choice in told["choices"]:
            best = min(cost(hs, ws) for hs in subsets(heights) for ws in subsets(widths) if len(hs) * len(ws) <= choice["most_plans"])
            got = cost(*choice["sizes"])
            self.assertLessEqual(got, 1.02 * best)
            self.assertAlmostEqual(choice["padding"], 1 - sum(3 * h * w + h for h, w in rows) / got, places=9)
            self.assertLessEqual(choice["plans"], choice["most_plans"])

    def test_advice_has_no_row_twice(self):
        """Of so few sizes, and on axes that divide no larger number of plans, more plans are the same ones."""
        random = np.random.default_rng(6)
        for rows in ([{"x": [n]} for n in (1, 4, 4, 9)],
                     [{"x": [int(random.choice([8, 16])), int(random.choice([3, 5, 7]))]} for _ in range(80)]):
            told = self.advise(rows, "--most", 24)
            sizes = [json.dumps(c["sizes"]) for c in told["choices"]]
            self.assertEqual(len(set(sizes)), len(sizes))
            self.assertLess(len(sizes), 24)
            # Nothing that a larger number finds is lost: all sizes are there, with no padding.
            self.assertEqual(min(c["padding"] for c in told["choices"]), 0)
            self.assertEqual(told["choices"][0]["most_plans"], 1)
            most = [c["most_plans"] for c in told["choices"]]
            self.assertEqual(most, sorted(set(most)))

    def test_advice_leaves_out_the_largest(self):
        told = self.advise([{"x": [n]} for n in [1] * 90 + [2] * 9 + [500]], "--cover", "0.99")
        self.assertEqual(told["choices"][1]["sizes"], [[1, 2]])
        self.assertAlmostEqual(told["choices"][1]["hit_rate"], 0.99)

    def test_advice_with_a_model(self):
        with tempfile.TemporaryDirectory() as folder:
            trace = os.path.join(folder, "t.jsonl")
            pathlib.Path(trace).write_text("".join(json.dumps({"x": [n, 1, 8, 8]}) + "\n" for n in (1, 2, 3, 16) * 5))
            told = json.loads(self.run_command("shapes", "advise", trace, DIGITS, "--json").stdout)
            table = self.run_command("shapes", "advise", trace, DIGITS).stdout
            spec = re.search(r"--shapes '(.*)'", table).group(1)
            self.assertEqual(spec, told["proposed"])
            self.run_command("run", DIGITS, "--random", 1, "--shapes", spec, "--shape", "x=3,1,8,8")
            for line, words in (("{}x", "no JSON object"), ('{"x":3}', "no list"), ('{"x":[-1]}', "no number")):
                pathlib.Path(trace).write_text(line + "\n")
                self.assertIn(words, self.run_command("shapes", "advise", trace, code=2).stderr)


if __name__ == "__main__":
    unittest.main()
