"""The Python package against ONNX Runtime and NumPy. Run by build/venv/bin/python, into which ./bootstrap has installed it."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import unittest

import ml_dtypes
import numpy as np
import onnx
import onnx.parser
import onnxruntime

import regie
import regie.onnx_backend

MODELS = pathlib.Path(__file__).resolve().parents[1] / "models"
DIGITS = MODELS / "digits" / "digits.onnx"


def model_of(text):
    return onnx.parser.parse_model('<ir_version: 9, opset_import: ["" : 20]>\n' + text)


def reference(path, feeds):
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return dict(zip([o.name for o in session.get_outputs()], session.run(None, feeds)))


class Package(unittest.TestCase):
    def setUp(self):
        random = np.random.default_rng(1)
        self.images = random.random((5, 1, 8, 8), np.float32)
        self.want = reference(DIGITS, {"x": self.images})["scores"]

    def close(self, got, want):
        self.assertEqual(got.dtype, want.dtype)
        self.assertLessEqual(np.abs(got - want).max(), 1e-4 * np.abs(want).max() + 1e-5)

    def test_path_bytes_and_proto(self):
        for model in (str(DIGITS), DIGITS, DIGITS.read_bytes(), onnx.load(DIGITS)):
            self.close(regie.compile(model).run({"x": self.images})["scores"], self.want)

    def test_open_ahead(self):
        """What is opened ahead changes no answer and no words; a process that does nothing more ends, and so does a child of fork."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "digits.rgm")
            regie.compile(DIGITS).save(path)
            np.save(os.path.join(folder, "x.npy"), self.images)
            load = "m = regie.load(sys.argv[1]); np.save(sys.argv[2], m.run({'x': np.load(sys.argv[3])})['scores'])\n"
            answers = []
            for i, code in enumerate(("", "regie.open_ahead()\n", "regie.open_ahead('no_such_device')\n")):
                result = os.path.join(folder, f"{i}.npy")
                subprocess.run([sys.executable, "-c", "import sys, numpy as np, regie\n" + code + load, path, result,
                                os.path.join(folder, "x.npy")], check=True, timeout=120)
                answers.append(np.load(result))
        self.close(answers[0], self.want)
        for other in answers[1:]:
            self.assertEqual(answers[0].tobytes(), other.tobytes())
        for code in ("", "import os, sys; child = os.fork(); sys.exit(os.waitpid(child, 0)[1] if child else 0)"):
            done = subprocess.run([sys.executable, "-c", "import regie; regie.open_ahead()\n" + code], capture_output=True, text=True,
                                  timeout=120)
            self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_cache(self):
        """Many requests of few shapes: one compile each, with a good folder and without one; none in the next process."""
        code = ("import sys, json, regie\n"
                "for i in range(100):\n"
                "    regie.compile(sys.argv[1], shapes={'x': (i % 4 + 1, 1, 8, 8)}, cache_dir=sys.argv[2])\n"
                "print(json.dumps(regie.cache_statistics()))")
        with tempfile.TemporaryDirectory() as folder:
            a_file = os.path.join(folder, "file")
            pathlib.Path(a_file).write_text("no folder")
            good = os.path.join(folder, "good")
            environment = {k: v for k, v in os.environ.items() if not k.startswith("REGIE_CACHE")}
            for where, compiles, warnings in ((good, 4, 0), (good, 0, 0), (a_file, 4, 1)):
                done = subprocess.run([sys.executable, "-c", code, str(DIGITS), where], env=environment, capture_output=True, text=True)
                self.assertEqual(done.returncode, 0, done.stderr)
                told = json.loads(done.stdout)
                self.assertEqual(told["compiles"], compiles, where)
                self.assertEqual(told["process_hits"] + told["folder_hits"], 100 - compiles)
                self.assertEqual(done.stderr.count("cannot be used"), warnings, done.stderr)
            model = regie.compile(DIGITS, shapes={"x": (5, 1, 8, 8)}, cache="on", cache_dir=good, threads=2)
            self.assertEqual(model.report["cache"]["outcome"], "miss")
            self.assertIn("the option threads: 2 here, 1 there", model.report["cache"]["why"])
            again = regie.compile(DIGITS, shapes={"x": (5, 1, 8, 8)}, cache="on", cache_dir=good, threads=2)
            self.assertEqual(again.report["cache"]["outcome"], "hit")
            self.close(again.run({"x": self.images})["scores"], self.want)
        self.assertEqual(regie.compile(DIGITS, cache="off").report["cache"]["outcome"], "off")

    def test_ports(self):
        model = regie.compile(DIGITS)
        (x,), (scores,) = model.inputs, model.outputs
        self.assertEqual((x.name, x.dtype, x.shape), ("x", "float32", ("N", 1, 8, 8)))
        self.assertEqual((scores.name, scores.shape), ("scores", ("N", 10)))
        del model
        self.assertEqual(x.shape[1:], (1, 8, 8))  # a port outlives its model
        fixed = regie.compile(DIGITS, shapes={"x": (5, 1, 8, 8)})
        self.assertEqual(fixed.outputs[0].shape, (5, 10))
        self.close(fixed.run({"x": self.images})["scores"], self.want)

    def test_expressions_as_shapes(self):
        model = regie.compile(model_of("g (float[N,M] x) => (float[K] y) { s = Constant<value_ints=[-1]>() y = Reshape(x, s) }"))
        self.assertEqual(len(model.outputs[0].shape), 1)
        self.assertIsInstance(model.outputs[0].shape[0], str)

    def test_results_are_new_each_run(self):
        model = regie.compile(DIGITS)
        first = model.run({"x": self.images})["scores"]
        kept = first.copy()
        second = model.run({"x": self.images * 2})["scores"]
        np.testing.assert_array_equal(first, kept)
        self.assertFalse(np.shares_memory(first, second))

    def test_layouts_of_arrays(self):
        model = regie.compile(DIGITS)
        wide = np.zeros((5, 1, 8, 16), np.float32)
        wide[..., ::2] = self.images
        frozen = self.images.copy()
        frozen.flags.writeable = False
        for x in (wide[..., ::2], np.asfortranarray(self.images), frozen, self.images[::-1][::-1]):
            self.close(model.run({"x": x})["scores"], self.want)
            np.testing.assert_array_equal(np.asarray(x), self.images)

    def test_element_types(self):
        for dtype, onnx_type in ((np.float32, "float"), (np.float64, "double"), (np.float16, "float16"),
                                 (ml_dtypes.bfloat16, "bfloat16"), (np.int8, "int8"), (np.int64, "int64"),
                                 (np.uint8, "uint8"), (np.bool_, "bool")):
            model = regie.compile(model_of(f"g ({onnx_type}[2,3] x) => ({onnx_type}[3,2] y) {{ y = Transpose(x) }}"))
            x = np.array([[0, 1, 2], [3, 4, 5]]).astype(dtype)
            y = model.run({"x": x})["y"]
            self.assertEqual(y.dtype, x.dtype)
            np.testing.assert_array_equal(y, x.T)

    def test_scalars_and_empty(self):
        model = regie.compile(model_of("g (float x, float[0,3] z) => (float y, float[3,0] w) { y = Neg(x) w = Transpose(z) }"))
        result = model.run({"x": np.float32(2), "z": np.zeros((0, 3), np.float32)})
        self.assertEqual((result["y"].shape, float(result["y"]), result["w"].shape), ((), -2.0, (3, 0)))

    def test_chosen_outputs(self):
        model = regie.compile(model_of("g (float[2] x) => (float[2] a, float[2] b) { a = Neg(x) b = Abs(x) }"))
        x = np.array([1, -2], np.float32)
        self.assertEqual(list(model.run({"x": x})), ["a", "b"])
        self.assertEqual(list(model.run({"x": x}, ["b"])), ["b"])
        with self.assertRaisesRegex(KeyError, "no output 'c'.*'a', 'b'"):
            model.run({"x": x}, ["c"])

    def test_wrong_arguments(self):
        model = regie.compile(DIGITS)
        with self.assertRaisesRegex(KeyError, "input 'x' is missing"):
            model.run({})
        with self.assertRaisesRegex(KeyError, "no input 'y'"):
            model.run({"x": self.images, "y": self.images})
        with self.assertRaisesRegex(TypeError, "'x' is float32, not float64"):
            model.run({"x": self.images.astype(np.float64)})
        with self.assertRaisesRegex(regie.Error, "must have 4 dimensions") as caught:
            model.run({"x": self.images[0]})
        self.assertEqual(caught.exception.code, "INVALID_INPUT")
        with self.assertRaises(TypeError):
            regie.compile(3)
        with self.assertRaisesRegex(regie.Error, "optimize.*optimise"):
            regie.compile(DIGITS, optimize=False)

    def test_engine_failures(self):
        with self.assertRaises(regie.Error) as caught:
            regie.compile(b"not a model", name="rubbish.onnx")
        self.assertEqual(caught.exception.code, "INVALID_MODEL")
        self.assertIn("rubbish.onnx", str(caught.exception))
        with self.assertRaises(regie.Error) as caught:
            regie.load("/absent/model.rgm")
        self.assertIn("/absent/model.rgm", str(caught.exception))

    def test_saved_model_in_a_new_process(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "digits.rgm")
            regie.compile(DIGITS).save(pathlib.Path(path))
            np.save(os.path.join(folder, "x.npy"), self.images)
            script = ("import sys, numpy as np, regie\n"
                      "m = regie.load(sys.argv[1] + '/digits.rgm', threads=2)\n"
                      "np.save(sys.argv[1] + '/y.npy', m.run({'x': np.load(sys.argv[1] + '/x.npy')})['scores'])\n")
            subprocess.run([sys.executable, "-c", script, folder], check=True)
            self.close(np.load(os.path.join(folder, "y.npy")), self.want)

    def test_targets(self):
        self.close(regie.compile(DIGITS, target="host_and_null").run({"x": self.images})["scores"], self.want)
        self.close(regie.compile(DIGITS, optimise=False).run({"x": self.images})["scores"], self.want)

    def test_options_of_the_runs(self):
        with tempfile.TemporaryDirectory() as folder:
            log, path = os.path.join(folder, "log.jsonl"), os.path.join(folder, "d.rgm")
            model = regie.compile(DIGITS, target="ascend310-sim", shapes={"x": (2, 1, 8, 8)}, shape_log=log, devices={"npu.mode": "sink"})
            model.save(path)
            x = np.random.default_rng(1).random((2, 1, 8, 8), np.float32)
            want = model.run({"x": x})["scores"]
            again = regie.load(path, shape_log=log, devices={"npu.mode": "issue"}, timeout_ms=60000)
            np.testing.assert_array_equal(again.run({"x": x})["scores"], want)
            self.assertEqual([json.loads(line) for line in pathlib.Path(log).read_text().splitlines()], [{"x": [2, 1, 8, 8]}] * 2)
            self.assertRaisesRegex(regie.Error, "mode", regie.load(path, devices={"npu.mode": "backwards"}).run, {"x": x})
            self.assertRaisesRegex(regie.Error, "unknown parameter 'colour'", regie.load(path, devices={"npu.colour": 1}).run, {"x": x})

    def test_report(self):
        report = regie.compile(DIGITS).report
        self.assertIsInstance(report, dict)
        self.assertTrue(report)

    def test_many_threads_on_one_model(self):
        model = regie.compile(DIGITS)
        inputs = [np.random.default_rng(i).random((1 + i % 4, 1, 8, 8), np.float32) for i in range(16)]
        want = [model.run({"x": x})["scores"] for x in inputs]
        failures = []

        def work(start):
            for k in range(200):
                i = (start + k) % len(inputs)
                if not np.array_equal(model.run({"x": inputs[i]})["scores"], want[i]):
                    failures.append(i)

        threads = [threading.Thread(target=work, args=(2 * t,)) for t in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(failures, [])

    def test_other_threads_run_meanwhile(self):
        # A product that takes long enough to be seen; this thread counts while the other computes.
        model = regie.compile(model_of("g (float[700,700] x) => (float[700,700] y) { a = MatMul(x, x) b = MatMul(a, x) "
                                       "c = MatMul(b, x) y = MatMul(c, x) }"))
        x = np.random.default_rng(1).random((700, 700), np.float32) / 700
        model.run({"x": x})
        counted = []
        runner = threading.Thread(target=lambda: [model.run({"x": x}) for _ in range(20)])
        switch = sys.getswitchinterval()
        sys.setswitchinterval(1000)  # so that only a lock given up by the call lets this thread go on
        try:
            runner.start()
            while runner.is_alive():
                counted.append(1)
                runner.join(1e-4)
        finally:
            sys.setswitchinterval(switch)
            runner.join()
        self.assertGreater(len(counted), 5)

    def test_what_the_documents_show(self):
        root = pathlib.Path(__file__).resolve().parents[2]
        for page in (root / "docs" / "python.md", root / "sdk" / "python" / "README.md"):
            text = page.read_text()
            blocks = text.split("```python\n")[1:]
            self.assertTrue(blocks)
            with tempfile.TemporaryDirectory() as folder:
                os.symlink(root / "tests", os.path.join(folder, "tests"))
                os.symlink(DIGITS, os.path.join(folder, "model.onnx"))
                for block in blocks:
                    subprocess.run([sys.executable, "-c", block.split("```")[0]], cwd=folder, check=True,
                                   stdout=subprocess.DEVNULL)

    def test_backend_of_onnx(self):
        model = onnx.load(DIGITS)
        self.assertTrue(regie.onnx_backend.supports_device("CPU"))
        self.assertFalse(regie.onnx_backend.supports_device("CUDA"))
        (scores,) = regie.onnx_backend.prepare(model).run([self.images])
        self.close(scores, self.want)
        (scores,) = regie.onnx_backend.run_model(model, [self.images])
        self.close(scores, self.want)


if __name__ == "__main__":
    unittest.main()
