"""Random graphs that join and cut along the channels of one image, with shared and handed-out parts, against ONNX Runtime.

check_parts.py REGIE FOLDER [--seed N] [--count N]: results with parts that are not copied and with parts that are, one and two
threads; and the greatest sum of bytes alive at once must not be larger without the copies, in program order for each graph (that is
where the nodes are chosen), in the order that the scheduler chooses for all of them together. Exits 1 with the seed of each graph
that differs.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import onnxruntime as ort
from onnx import helper

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "bench"))
from common import model, run  # noqa: E402
from order import IN_ORDER  # noqa: E402

ort.set_default_logger_severity(4)


class Graph:
    def __init__(self, random):
        self.random = random
        self.nodes, self.constants, self.channels = [], {}, {}
        self.side = int(random.choice([2, 4, 4, 4, 5]))
        self.inputs = {}
        for i in range(int(random.integers(1, 3))):
            self.input(int(random.choice([16, 32, 48])))

    def input(self, channels):
        name = f"x{len(self.inputs)}"
        self.inputs[name] = self.random.uniform(-1, 1, (1, channels, self.side, self.side)).astype(np.float32)
        self.channels[name] = channels

    def pick(self):
        names = list(self.channels)
        name = names[-1 - min(int(self.random.exponential(3)), len(names) - 1)]
        # Mostly of what is computed: inputs are never parts.
        return self.made("Tanh", [name], self.channels[name]) if name in self.inputs and self.random.random() < 0.9 else name

    def made(self, op, operands, channels, **attributes):
        name = f"v{len(self.channels)}"
        self.nodes.append(helper.make_node(op, operands, [name], name=f"n_{name}", **attributes))
        self.channels[name] = channels
        return name

    def numbers(self, *values):
        name = f"k{len(self.constants)}"
        self.constants[name] = np.array(values, np.int64)
        return name

    def node(self):
        r, x = self.random.random(), self.pick()
        if r < 0.35:
            self.made(str(self.random.choice(["Relu", "Tanh", "Neg", "Abs"])), [x], self.channels[x])
        elif r < 0.45:
            self.made("Softmax", [x], self.channels[x], axis=1)
        elif r < 0.7:
            parts = [x] + [self.pick() for _ in range(int(self.random.integers(1, 4)))]
            if sum(self.channels[p] for p in parts) <= 512:
                self.made("Concat", parts, sum(self.channels[p] for p in parts), axis=1)
        elif r < 0.85 and self.channels[x] >= 32:
            first = int(self.random.choice([16, 16, self.channels[x] - 16, self.channels[x] // 2, 7]))
            sizes = self.numbers(first, self.channels[x] - first)
            names = [f"v{len(self.channels)}", f"v{len(self.channels) + 1}"]
            self.nodes.append(helper.make_node("Split", [x, sizes], names, axis=1, name=f"n_{names[0]}"))
            self.channels[names[0]], self.channels[names[1]] = first, self.channels[x] - first
        elif self.channels[x] >= 32:
            begin = int(self.random.choice([0, 16, 16, 5]))
            end = int(self.random.choice([self.channels[x], self.channels[x] - 8]))
            self.made("Slice", [x, self.numbers(begin), self.numbers(end), self.numbers(1)], end - begin)

    def make(self):
        while len(self.nodes) < 3 + int(self.random.integers(0, 25)):
            self.node()
        read = {i for n in self.nodes for i in n.input}
        made = [o for n in self.nodes for o in n.output]
        self.outputs = [n for n in made if n not in read or self.random.random() < 0.03]
        used = read | set(self.outputs)
        self.inputs = {n: a for n, a in self.inputs.items() if n in used}


def bound(regie, path, arguments):
    done = subprocess.run([regie, "compile", path, "-o", path + ".rgm", "--json", *arguments], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr)
    report = json.loads(done.stdout)
    return report["arena_lower_bound_bytes"], report["tasks"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("regie")
    parser.add_argument("folder")
    parser.add_argument("--seed", type=int, default=int(os.environ.get("REGIE_PARTS_SEED", "1")))
    parser.add_argument("--count", type=int, default=int(os.environ.get("REGIE_PARTS_COUNT", "50")))
    options = parser.parse_args()
    copying = ["--set", "alias-in-place.parts=0"]
    os.makedirs(options.folder, exist_ok=True)
    in_order = os.path.join(options.folder, "in-order.toml")
    with open(in_order, "w") as file:
        file.write(IN_ORDER)
    faults = saved = all_less = all_plain = 0
    for seed in range(options.seed, options.seed + options.count):
        graph = Graph(np.random.default_rng(seed))
        graph.make()
        proto = model(graph.nodes, graph.inputs, graph.outputs, graph.constants)
        session = ort.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
        want = session.run(graph.outputs, graph.inputs)
        folder = os.path.join(options.folder, str(seed))
        found = []
        try:
            for arguments in ([], ["--threads", "2"]):
                got = run(options.regie, folder, proto, graph.inputs, graph.outputs, arguments)
                found += [f"{n}: {got[n].shape}, not {w.shape}" for n, w in zip(graph.outputs, want) if got[n].shape != w.shape]
                found += [f"{n}: off by {np.abs(got[n] - w).max()}" for n, w in zip(graph.outputs, want)
                          if got[n].shape == w.shape and not np.allclose(got[n], w, rtol=1e-5, atol=1e-6)]
            (less, tasks), (plain, all_tasks) = (bound(options.regie, f"{folder}/model.onnx", a) for a in ([], copying))
            saved += all_tasks - tasks
            all_less, all_plain = all_less + less, all_plain + plain
            if less > plain:
                print(f"seed {seed}: {less} bytes alive at once in the chosen order, {plain} with copies")
            (less, _), (plain, _) = (bound(options.regie, f"{folder}/model.onnx", ["--pipeline", in_order, *a])
                                     for a in ([], copying))
            if less > plain:
                found.append(f"{less} bytes alive at once in program order, {plain} with copies")
        except RuntimeError as error:
            found.append(str(error))
        for f in found:
            print(f"seed {seed} ({len(graph.nodes)} nodes): {f}")
        faults += bool(found)
    print(f"{options.count} graphs, {saved} tasks less than with copies, {faults} faults; "
          f"{all_less} bytes in the chosen orders, {all_plain} with copies")
    sys.exit(1 if faults or all_less > all_plain or saved < options.count // 4 else 0)


main()
