"""Strings through the Python package: operators with them against Python's own str, and what is refused."""

import pathlib
import tempfile
import threading
import unittest

import numpy as np
import onnx
from onnx import TensorProto, helper

import regie

S, I, B = TensorProto.STRING, TensorProto.INT64, TensorProto.BOOL


def model_of(nodes, inputs, outputs, initializers=()):
    ports = [[helper.make_tensor_value_info(n, t, d) for n, (t, d) in side.items()] for side in (inputs, outputs)]
    graph = helper.make_graph(nodes, "g", *ports, list(initializers))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def one(op, inputs, outputs, **attributes):
    return regie.compile(model_of([helper.make_node(op, list(inputs), list(outputs), name="it", **attributes)], inputs, outputs))


def texts(values):
    return np.array(values, dtype=object)


class Strings(unittest.TestCase):
    def same(self, got, want):
        want = np.asarray(want, dtype=object)
        self.assertEqual(got.dtype, object)
        self.assertEqual(got.shape, want.shape)
        self.assertEqual(got.tolist(), want.tolist())

    def test_concatenation_broadcasts(self):
        model = one("StringConcat", {"a": (S, ["N", 1]), "b": (S, [3])}, {"y": (S, None)})
        for n in (1, 2, 5):
            a, b = texts([[f"é{i}"] for i in range(n)]), texts(["", "b", "语言" * 50])
            self.same(model.run({"a": a, "b": b})["y"], np.char.add(a.astype(str), b.astype(str)))
        self.same(model.run({"a": np.array([["x"]]), "b": np.array([b"1", b"2", b"3"])})["y"], [["x1", "x2", "x3"]])

    def test_equal(self):
        model = one("Equal", {"a": (S, [2, 3]), "b": (S, [3])}, {"y": (B, [2, 3])})
        a, b = texts([["x", "y", ""], ["X", "y", " "]]), texts(["x", "y", ""])
        np.testing.assert_array_equal(model.run({"a": a, "b": b})["y"], a == b)

    def test_normalizer(self):
        words = ["Monday", "tuesday", "Ärger", "MONDAY", "ß", ""]
        for action, change in (("NONE", str), ("LOWER", str.lower), ("UPPER", lambda s: s if s == "ß" else s.upper())):
            for exact in (0, 1):
                for stops in ([], ["monday"], ["Monday", "ärger"], words):
                    model = one("StringNormalizer", {"x": (S, ["N"])}, {"y": (S, None)}, case_change_action=action, is_case_sensitive=exact, **({"stopwords": stops} if stops else {}))
                    known = set(stops) if exact else {s.lower() for s in stops}
                    want = [change(w) for w in words if (w if exact else w.lower()) not in known] or [""]
                    self.same(model.run({"x": texts(words)})["y"], want)
                    self.same(model.run({"x": texts([words])[0]})["y"], want)

    def test_split(self):
        lines = ["a bc  d", "", "  x ", "one", "a,b,,c", ",", "tab\tand\nline"]
        for delimiter in (None, "", ",", "bc"):
            for most in (None, 0, 1, 3):
                given = {} if delimiter is None else {"delimiter": delimiter}
                model = one("StringSplit", {"x": (S, ["N"])}, {"y": (S, None), "z": (I, None)}, **given, **({} if most is None else {"maxsplit": most}))
                got = model.run({"x": texts(lines)})
                parts = [s.split(delimiter or None, -1 if most is None else most) for s in lines]
                width = max(map(len, parts))
                self.same(got["y"], [p + [""] * (width - len(p)) for p in parts])
                self.assertEqual(got["z"].tolist(), [len(p) for p in parts])

    def test_made_strings_stay_while_they_are_read(self):
        nodes = [helper.make_node("StringConcat", ["x", "x"], ["d"]), helper.make_node("StringNormalizer", ["d"], ["u"], case_change_action="UPPER"),
                 helper.make_node("StringConcat", ["u", "d"], ["y"])]
        model = regie.compile(model_of(nodes, {"x": (S, ["N"])}, {"y": (S, None), "u": (S, None)}))
        kept = [model.run({"x": texts([f"w{i}" * (i + 1)] * 3)}) for i in range(20)]
        for i, results in enumerate(kept):
            word = f"w{i}" * (i + 1) * 2
            self.same(results["u"], [word.upper()] * 3)
            self.same(results["y"], [word.upper() + word] * 3)

    def test_threads(self):
        model = one("StringConcat", {"a": (S, ["N"]), "b": (S, ["N"])}, {"y": (S, ["N"])})
        wrong = []

        def work(k):
            for i in range(200):
                a = texts([f"{k}-{i}-{j}" for j in range(1 + (k + i) % 7)])
                if model.run({"a": a, "b": a})["y"].tolist() != [s * 2 for s in a]:
                    wrong.append((k, i))

        threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(wrong, [])

    def test_from_a_file(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "m.rgm"
            one("StringSplit", {"x": (S, [2])}, {"y": (S, None)}).save(path)
            self.same(regie.load(path).run({"x": texts(["a b", "c"])})["y"], [["a", "b"], ["c", ""]])

    def test_what_is_refused(self):
        model = one("StringConcat", {"a": (S, [1]), "b": (S, [1])}, {"y": (S, [1])})
        with self.assertRaisesRegex(TypeError, "input 'a' is of strings, not float32"):
            model.run({"a": np.zeros(1, np.float32), "b": texts(["x"])})
        with self.assertRaisesRegex(TypeError, "no text"):
            model.run({"a": texts([3]), "b": texts(["x"])})
        constant = helper.make_tensor("b", S, [1], [b"k"])
        node = helper.make_node("StringConcat", ["a", "b"], ["y"], name="it")
        with self.assertRaisesRegex(regie.Error, "string cannot be stored"):
            regie.compile(model_of([node], {"a": (S, [1])}, {"y": (S, [1])}, [constant]))


if __name__ == "__main__":
    unittest.main()
