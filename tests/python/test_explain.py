"""Model.explain and Model.profile: what they tell of models about which it is known beforehand. Run by build/venv/bin/python, into
which ./bootstrap has installed the package; argument: the command regie, which must tell the same."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest

import numpy as np
import onnx
import onnx.numpy_helper
import onnx.parser

import regie

DIGITS = pathlib.Path(__file__).resolve().parents[1] / "models" / "digits" / "digits.onnx"


def named(text, names, opset=20):
    model = onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["" : {opset}]>\n' + text)
    assert len(model.graph.node) == len(names)
    for node, name in zip(model.graph.node, names):
        node.name = name
    return model


def conv_relu(second):
    """A convolution and its activation; `second`: the convolution's result has a second reader."""
    model = named("g (float[1,3,8,8] x, float[4,3,3,3] w) => (float[1,4,6,6] y" + (", float[1,4,6,6] z" if second else "") + ") {\n"
                  "  c = Conv(x, w)\n  y = Relu(c)\n" + ("  z = Sigmoid(c)\n" if second else "") + "}",
                  ["stem", "act"] + (["gate"] if second else []))
    weight = np.random.default_rng(1).standard_normal((4, 3, 3, 3)).astype(np.float32)
    model.graph.initializer.append(onnx.numpy_helper.from_array(weight, "w"))
    del model.graph.input[1]
    return model


def command(*arguments):
    done = subprocess.run([sys.argv[1], *map(str, arguments)], capture_output=True, text=True, timeout=300,
                          env={k: v for k, v in os.environ.items() if not k.startswith("REGIE_CACHE")})
    assert done.returncode == 0, done.stderr
    return done.stdout


class Explain(unittest.TestCase):
    def test_a_fusion_that_happened_and_one_that_a_second_reader_stopped(self):
        fused, kept = regie.compile(conv_relu(False)), regie.compile(conv_relu(True))
        of_fused, of_kept = (m.explain(rule="conv-activation", json=True) for m in (fused, kept))
        self.assertEqual((of_fused["applied"], of_kept["applied"]), (1, 0))
        self.assertEqual([p["removed"] for p in of_fused["fired"]], [["node 'act' (Relu)", "node 'stem' (Conv)"]])
        # It stopped at the activation, as its operand is read by the other one too.
        stops = [s for s in of_kept["stopped"] if s["node"] == "node 'act' (Relu)"]
        self.assertEqual(len(stops), 1)
        self.assertIn("2 readers: node 'act' (Relu), node 'gate' (Sigmoid)", stops[0]["text"])
        self.assertEqual(stops[0]["in_the_way"], "node 'gate' (Sigmoid)")

        of_node = kept.explain(node="act", json=True)
        self.assertEqual(of_node["patches"], [])
        (tried,) = [r for r in of_node["rules"] if r["name"] == "conv-activation"]
        self.assertIn("node 'gate' (Sigmoid)", [s["in_the_way"] for s in tried["stopped"]])
        text = kept.explain("act")
        for part in ("no pass changed it", "conv-activation stopped at", "in the way: node 'gate' (Sigmoid)"):
            self.assertIn(part, text)
        (runs,) = fused.explain(node="act", json=True)["runs_as"]
        self.assertEqual((runs["engine"], runs["from"]), ("cpu", ["stem (Conv)", "act (Relu)"]))

    def test_names_of_tensors_and_those_that_are_not_there(self):
        model = regie.compile(conv_relu(True))
        self.assertEqual(model.explain(node="c", json=True)["tensor"], "tensor 'c' is made by node 'stem' (Conv)")
        for asked, near in (({"node": "stam"}, "'stem'"), ({"rule": "conv-activatoin"}, "'conv-activation'")):
            with self.assertRaisesRegex(regie.Error, f"did you mean {near}") as caught:
                model.explain(**asked)
            self.assertEqual(caught.exception.code, "NOT_FOUND")
        with self.assertRaisesRegex(regie.Error, "'node' or 'rule', one of them"):
            model.explain("act", rule="conv-activation")
        with self.assertRaisesRegex(regie.Error, "has one plan; leave out the option 'plan'"):
            model.explain(plan="x.0=4")

    def test_what_the_command_tells(self):
        """Of a model that was compiled, saved, loaded, or is compiled to see: the words of `regie explain`, but for the file's name."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "digits.rgm")
            compiled = regie.compile(DIGITS)
            compiled.save(path)
            loaded = regie.load(path)
            for words, asked in (([], {}), (["block1.add"], {"node": "block1.add"}), (["--rule", "conv-residual"], {"rule": "conv-residual"}),
                                 (["--all"], {"all": True})):
                with self.subTest(asked=asked):
                    want = command("explain", path, *words)
                    self.assertIn("conv-", want)
                    self.assertEqual(loaded.explain(**asked), want)
                    self.assertEqual(compiled.explain(**asked).replace(str(DIGITS), path), want)
                    self.assertEqual(regie.explain(path, **asked), want)
                    self.assertEqual(json.loads(command("explain", path, *words, "--json")), loaded.explain(**asked, json=True))
                    want = command("explain", DIGITS, *words)
                    self.assertEqual(regie.explain(DIGITS, **asked), want)
                    self.assertEqual(regie.compile(DIGITS, explain=True).explain(**asked), want)
            again = regie.explain(path, node="block1.add", target="host_and_null", json=True)
            self.assertEqual(again, json.loads(command("explain", path, "block1.add", "--target", "host_and_null", "--json")))
        bytes_and_name = regie.explain(DIGITS.read_bytes(), "pool", name="some.onnx", json=True)
        self.assertEqual((bytes_and_name["model"], bytes_and_name["nodes"]), ("some.onnx", ["node 'pool' (MaxPool)"]))

    def test_details_that_are_not_kept(self):
        """A compile keeps the first misses of a rule and tells how many more there were; one that is to be explained keeps all."""
        count = 300
        steps = "\n".join(f"  c{i} = Conv(x, w)\n  y{i} = Relu(c{i})\n  z{i} = Sigmoid(c{i})" for i in range(count))
        outputs = ", ".join(f"float[1,4,6,6] y{i}, float[1,4,6,6] z{i}" for i in range(count))
        names = [f"{kind}{i}" for i in range(count) for kind in ("conv", "act", "gate")]
        model = named(f"g (float[1,3,8,8] x, float[4,3,3,3] w) => ({outputs}) {{\n{steps}\n}}", names)
        # Convolutions of equal weights would be one.
        for i, node in enumerate(n for n in model.graph.node if n.op_type == "Conv"):
            node.input[1] = f"w{i}"
            model.graph.initializer.append(onnx.numpy_helper.from_array(np.full((4, 3, 3, 3), i, np.float32), f"w{i}"))
        del model.graph.input[1]
        kept, whole = regie.compile(model), regie.compile(model, explain=True)
        few, all_ = (m.explain(rule="conv-activation", json=True) for m in (kept, whole))
        misses = sum(few["near_misses"].values())
        self.assertEqual(few["near_misses"], all_["near_misses"])
        self.assertGreaterEqual(misses, count)
        self.assertEqual(len(all_["stopped"]), misses)
        self.assertNotIn("not_kept", all_)
        self.assertLess(len(few["stopped"]), misses)
        self.assertEqual(kept.explain(f"act{count - 1}", json=True)["not_kept"]["near_misses"] > 0, True)
        self.assertIn("does not keep", kept.explain(rule="conv-activation"))
        self.assertIn(f"gate{count - 1}", whole.explain(f"act{count - 1}"))

    def test_several_plans(self):
        model = regie.compile(DIGITS, shapes="buckets:x.0=1|4")
        self.assertEqual(model.explain(), model.explain(plan="x.0=4"))
        self.assertNotEqual(model.explain(), model.explain(plan="x.0=1"))
        with self.assertRaisesRegex(regie.Error, "no plan for 'x.0=2'; there are: x.0=1; x.0=4"):
            model.explain(plan="x.0=2")


class Profile(unittest.TestCase):
    def setUp(self):
        self.x = np.random.default_rng(3).random((64, 1, 8, 8), np.float32)

    def test_times_and_names(self):
        model = regie.compile(DIGITS)
        names = {f"{n.name} ({n.op_type})" for n in onnx.load(DIGITS).graph.node}
        for runs in (1, 20):
            began = time.perf_counter()
            profile = model.profile({"x": self.x}, runs=runs, warm_ups=2)
            wall = (time.perf_counter() - began) * 1000
            self.assertGreater(len(profile), 5)
            seen = set()
            for task in profile:
                self.assertGreater(task.ms_a_run, 0)
                self.assertLessEqual(task.least_ms_a_call, task.ms_a_run * (1 + 1e-9))
                self.assertEqual((task.calls, task.clock, task.kind, task.engine), (runs, "real", "launch", "cpu"))
                self.assertTrue(task.kernel)
                self.assertTrue(set(task.sources) <= names, task.sources)
                seen.update(task.sources)
            # A view is no task: nothing runs for it.
            self.assertEqual(names - seen, {"head.flatten (Flatten)"})
            # One task at a time: together they take no longer than the runs, nor those than what was measured around them.
            self.assertLessEqual(sum(t.ms_a_run for t in profile), profile.run_ms["mean"])
            self.assertLessEqual(profile.run_ms["min"], profile.run_ms["median"])
            self.assertLessEqual(runs * profile.run_ms["mean"], wall)
            self.assertAlmostEqual(sum(t.ms_a_run for t in profile), profile.summary["kernels_ms_a_run"], delta=1e-6)
        convolutions = sum(t.ms_a_run for t in profile if any("Conv" in s for s in t.sources))
        self.assertGreater(convolutions, sum(t.ms_a_run for t in profile) / 2)
        table = str(profile).splitlines()
        self.assertEqual(len(table), 1 + len(profile))
        self.assertIn(" + ".join(max(profile, key=lambda t: t.ms_a_run).sources), table[1])
        self.assertIsNone(profile.trace)
        with self.assertRaisesRegex(ValueError, "trace=True"):
            profile.save_trace("nowhere.json")

    def test_a_profiled_run_is_as_others_are(self):
        """Runs before and after give the same, and are not slower for a profile that was made meanwhile."""
        model = regie.compile(DIGITS)
        want = model.run({"x": self.x})["scores"]
        model.profile({"x": self.x}, runs=2)
        np.testing.assert_array_equal(model.run({"x": self.x})["scores"], want)
        self.assertEqual(len(model.profile({"x": self.x[:1]}, runs=3, warm_ups=0)), len(model.profile({"x": self.x}, runs=1)))

    def test_trace(self):
        model = regie.compile(DIGITS)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "trace.json"
            profile = model.profile({"x": self.x}, runs=2, trace=path)
            events = json.loads(path.read_text())["traceEvents"]
            self.assertEqual(path.read_text(), profile.trace)
            kernels = [e for e in events if e.get("cat") == "kernel"]
            self.assertEqual(len(kernels), 2 * len(profile))
            by_node = {}
            for e in kernels:
                by_node[e["args"]["node"]] = by_node.get(e["args"]["node"], 0) + e["dur"] / 1000
            for task in profile:
                self.assertAlmostEqual(by_node[task.node] / 2, task.ms_a_run, delta=1e-6)
            kept = model.profile({"x": self.x}, runs=1, trace=True)
            kept.save_trace(path)
            self.assertEqual(json.loads(path.read_text()), json.loads(kept.trace))

    def test_a_loop_and_two_devices(self):
        model = named("g (float[2] x, int64 n) => (float[2] y) {\n  go = Constant<value = bool {1}>()\n"
                      "  y = Loop<body = b (int64 i, bool c, float[2] s) => (bool k, float[2] t) {\n"
                      "    k = Identity(c)\n    t = Sin(s)\n  }>(n, go, x)\n}", ["go", "loop"])
        model.graph.node[1].attribute[0].g.node[1].name = "inner"
        compiled = regie.compile(model)
        profile = compiled.profile({"x": np.ones(2, np.float32), "n": np.array(7)}, runs=3)
        (inner,) = [t for t in profile if t.sources == ("inner (Sin)",)]
        self.assertEqual(inner.calls, 3 * 7)
        (loop,) = [t for t in profile if t.operator == "Loop"]
        self.assertEqual((loop.engine, loop.kernel, loop.kind, loop.calls), (None, None, "loop", 3))

        both = regie.compile(DIGITS, target="ascend310-sim", shapes={"x": (1, 1, 8, 8)}, settings={"placement": "greedy"})
        profile = both.profile({"x": self.x[:1]}, runs=2)
        simulated = [t for t in profile if t.clock == "simulated"]
        self.assertGreater(len(simulated), 0)
        self.assertTrue(all(t.ms_a_run > 0 for t in simulated))
        (npu,) = profile.summary["simulated"]
        (npu,) = profile.summary["simulated"]
        self.assertAlmostEqual(sum(t.ms_a_run for t in simulated), sum(s["busy_us"] for s in npu["streams"]) / 1000, delta=1e-9)
        self.assertEqual({t.engine for t in simulated}, {"aicore", None})
        self.assertEqual({t.kind for t in simulated if t.engine is None}, {"copy"})

    def test_what_is_refused(self):
        model = regie.compile(DIGITS)
        with self.assertRaisesRegex(ValueError, "runs are from 1"):
            model.profile({"x": self.x}, runs=0)
        with self.assertRaises(TypeError):
            model.profile({"x": self.x}, trace=5)  # no open file
        with self.assertRaisesRegex(KeyError, "input 'x' is missing"):
            model.profile({})
        with self.assertRaisesRegex(TypeError, "x"):
            model.profile({"x": self.x.astype(np.float64)})
        with self.assertRaises(regie.Error) as caught:
            model.profile({"x": self.x[:, :, :4]})
        self.assertEqual(caught.exception.code, "INVALID_INPUT")
        several = regie.compile(DIGITS, shapes="buckets:x.0=1|4")
        self.assertGreater(len(several.profile({"x": self.x[:4]}, runs=1)), 5)
        with self.assertRaisesRegex(regie.Error, "only the one of the greatest sizes can be profiled"):
            several.profile({"x": self.x[:1]}, runs=1)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
