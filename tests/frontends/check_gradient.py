"""ai.onnx.preview.training.Gradient, by Regie and by differences: check_gradient.py REGIE FOLDER."""
import os
import shutil
import subprocess
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper

random = np.random.default_rng(3)
# (nodes as "op: inputs -> output", y is called y), shapes of the inputs, and the function in NumPy.
CASES = {
    "products": (["Mul: a b -> p", "Add: p a -> q", "Sub: q b -> y"], {"a": (2, 3), "b": (2, 3)}, lambda a, b: a * b + a - b),
    "broadcast": (["Mul: a b -> p", "Div: p c -> y"], {"a": (2, 3), "b": (3,), "c": (2, 1)}, lambda a, b, c: a * b / c),
    "activations": (["Tanh: a -> p", "Sigmoid: b -> q", "Mul: p q -> r", "Exp: r -> s", "Sqrt: s -> u", "Log: u -> v", "Neg: v -> y"], {"a": (4,), "b": (4,)},
                    lambda a, b: -np.log(np.sqrt(np.exp(np.tanh(a) / (1 + np.exp(-b)))))),
    "matrices": (["MatMul: a b -> p", "Relu: p -> q", "Identity: q -> r", "Sum: r r c -> y"], {"a": (2, 3), "b": (3, 4), "c": (2, 4)}, lambda a, b, c: 2 * np.maximum(a @ b, 0) + c),
    "apart": (["Mul: a a -> y"], {"a": (3,), "b": (2,)}, lambda a, b: a * a),
}


def main():
    regie, folder = sys.argv[1:]
    shutil.rmtree(folder, ignore_errors=True)
    wrong = 0
    for name, (lines, shapes, function) in CASES.items():
        where = os.path.join(folder, name)
        os.makedirs(where)
        nodes = [helper.make_node(op, left.split(), [right.strip()]) for op, rest in (line.split(": ") for line in lines) for left, right in [rest.split("->")]]
        nodes.append(helper.make_node("Gradient", list(shapes), [f"d{n}" for n in shapes], domain="ai.onnx.preview.training", xs=list(shapes), y="y"))
        graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in shapes.items()],
                                  [helper.make_tensor_value_info(f"d{n}", TensorProto.FLOAT, s) for n, s in shapes.items()])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.preview.training", 1)], ir_version=8)
        onnx.save(model, f"{where}/model.onnx")
        values = {n: random.uniform(0.5, 1.5, s) * random.choice([1, 1, -1] if n == "a" and name == "matrices" else [1], s) for n, s in shapes.items()}
        command = [regie, "run", f"{where}/model.onnx", "--output-dir", where]
        for n, v in values.items():
            np.save(f"{where}/{n}.npy", v.astype(np.float32))
            command += ["--input", f"{n}={where}/{n}.npy"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        if done.returncode != 0:
            print(f"{name}: {done.stderr}")
            wrong += 1
            continue
        for n, v in values.items():
            want = np.zeros(v.shape)
            for i in np.ndindex(*v.shape):
                step = np.zeros(v.shape)
                step[i] = 1e-5
                want[i] = (function(**{**values, n: v + step}).sum() - function(**{**values, n: v - step}).sum()) / 2e-5
            got = np.load(f"{where}/d{n}.npy")
            if got.shape != want.shape or not np.allclose(got, want, rtol=1e-3, atol=1e-4):
                print(f"{name}: the derivative by {n} is {got}, must be {want}")
                wrong += 1
    print(f"{len(CASES)} models, {wrong} wrong")
    sys.exit(wrong != 0)


main()
