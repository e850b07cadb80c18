"""Predictions of the simulated accelerators beside published figures, as docs/simulator-accuracy.md.

    simulator_accuracy.py REGIE WORK_FOLDER [--page docs/simulator-accuracy.md]

Without --page only the points are predicted. An error beyond what is allowed for a point (`points`) fails."""

import argparse
import json
import pathlib
import re
import subprocess
import sys

import networks
from onnx import TensorProto

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(SOURCE / "tests/models"))
from targets import with_aicore  # noqa: E402

TARGETS = ["ascend310-sim", "ascend310p3-sim", "ascend910a-sim", "ascend910b3-sim"]
# A 910B2 differs from the 910B3 in what the platform tables of CANN say of it.
B2 = {"core_count": 24, "memory_bytes_per_ns": 1382}


class Predictor:
    def __init__(self, regie, work):
        self.regie, self.work = regie, pathlib.Path(work)
        self.work.mkdir(parents=True, exist_ok=True)
        self.models = {}

    def parameters(self, target):
        text = self.target_file(target).read_text()
        return {k: float(v) for k, v in re.findall(r"^(\w+) = ([\d.]+)\s", text, re.M)}

    def target_file(self, target):
        if isinstance(target, pathlib.Path):
            return target
        if target != "ascend910b2":
            return SOURCE / "configs/targets" / f"{target}.toml"
        text = (SOURCE / "configs/targets/ascend910b3-sim.toml").read_text().replace('"ascend910b3-sim"', '"ascend910b2"')
        for key, value in B2.items():
            text, count = re.subn(rf"^{key} = \S+", f"{key} = {value}", text, flags=re.M)
            assert count == 1, key
        path = self.work / "ascend910b2.toml"
        path.write_text(text)
        return path

    def model(self, name, make, *arguments, **more):
        path = str(self.work / (name + ".onnx"))
        if name not in self.models:
            make(path, *arguments, **more)
            self.models[name] = path
        return path

    def profile(self, model, target, *options):
        command = [self.regie, "profile", model, "--target", str(self.target_file(target)), "--runs", "1", "--warm-ups", "1",
                   "--json", "--device-set", "npu.numerics=off", "--set", "aicore.operands=f16", *options]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{' '.join(command)}\n{done.stderr}")
        return json.loads(done.stdout)["simulated"][0]

    def kernel(self, model, target, name):
        """Microseconds of the task that the operator `name` became, as it is written in the model."""
        run = self.profile(model, target, "--no-optimise", "--set", "placement=greedy")
        return sum(o["us"] for o in run["by_source"] if o["name"].startswith(name + " "))

    def gemm(self, target, m, n, k):
        model = self.model(f"gemm{m}x{n}x{k}", networks.gemm, m, n, k)
        return self.kernel(model, target, "gemm")

    def sigmoid(self, target, elements):
        """The last of three in a row: what it reads lies in the cache."""

        def make(path):
            net = networks.Network("sigmoids")
            x = net.input("x", [elements], TensorProto.FLOAT16)
            for name in "abc":
                x = net.add("Sigmoid", name, [x])
            net.save(path, [(x, [elements], TensorProto.FLOAT16)])

        return self.kernel(self.model(f"sigmoid{elements}", make), target, "c")

    def launch_and_wait(self, target):
        """The host hands a small kernel over and waits for it."""
        p = self.parameters(target)
        return p["issue_ns"] / 1e3 + self.sigmoid(target, 1024) + p["wait_ns"] / 1e3

    def copy(self, target, size, out=False):
        """One copy that the host waits for."""
        p = self.parameters(target)
        model = self.model(f"relu{size}", networks.elementwise, "Relu", size // 2)
        run = self.profile(model, target, "--no-optimise", "--set", "placement=greedy")
        lane = "copy from the device" if out else "copy to the device"
        busy = sum(e["busy_us"] for e in run["engines"] if e["name"] == lane)
        return p["issue_ns"] / 1e3 + busy + p["wait_ns"] / 1e3

    def halves(self, target):
        """The target with all that lies between tasks of the AI Cores in halves, as mixed precision has it."""
        path = self.work / f"{target}-halves.toml"
        path.write_text(with_aicore(target, 'between_tasks = "f16-everywhere"').replace(f'"{target}"', f'"{target}-halves"'))
        return path

    def training_step(self, target, batch):
        """Microseconds, pictures of the next step copied meanwhile."""
        model = self.model(f"training{batch}", networks.resnet_training, batch)
        run = self.profile(model, self.halves(target), "--device-set", "npu.mode=sink")
        return run["run_us"] - sum(e["busy_us"] for e in run["engines"] if e["name"] == "copy to the device")

    def network(self, model, target, batch, shape, mode="sink"):
        """Of a run from its first copy to the end of the last wait."""
        return self.profile(model, target, "--shape", f"x={batch},{shape}", "--device-set", f"npu.mode={mode}")


def points(p):
    """(what, unit, published, predicted, fitted, allowed error)"""
    r101 = p.model("resnet101", networks.resnet, (3, 4, 23, 3))
    best = max(2 * n**3 / p.gemm("ascend910a-sim", n, n, n) / 1e6 for n in (2048, 4096))
    yield "910A: largest rate of a product of halves", "TFLOP/s", 216, best, "", 0.1
    yield "910B2: product 4096 x 8000 x 4096", "us", 917, p.gemm("ascend910b2", 4096, 4096, 8000), "cube_efficiency", 0.05
    for elements in (1 << 10, 1 << 20, 1 << 22, 1 << 24, 24 << 20):
        size = elements * 4  # read and written
        yield (f"910B2: sigmoid of halves, {size / 2**20:.3g} MiB moved", "us", 3.4 + size / 2.45e6, p.sigmoid("ascend910b2", elements),
               "software_start_ns, slow_passes", 0.1)
    yield "910B3: launch and wait", "us", 26, p.launch_and_wait("ascend910b3-sim"), "issue_ns, wait_ns", 0.16
    yield "310P3: launch and wait", "us", 75, p.launch_and_wait("ascend310p3-sim"), "issue_ns, wait_ns", 0.1
    yield "910B3: copy of 32 bytes to the device", "us", 26, p.copy("ascend910b3-sim", 32), "copy_start_ns", 0.1
    rates = [batch * 1e6 / p.network(r101, "ascend310-sim", batch, "3,224,224")["run_us"] for batch in (1, 16)]
    yield "310: ResNet-101, batch 1", "images/s", 248, rates[0], "", 0.3
    yield "310: ResNet-101, batch 16", "images/s", 401, rates[1], "", 0.3
    yield "310: ResNet-101, batch 16 to batch 1", "", 401 / 248, rates[1] / rates[0], "", 0.3
    rates = [batch * 1e6 / p.training_step("ascend910a-sim", batch) for batch in (32, 256)]
    yield "910A: ResNet-50, training, batch 32", "images/s", 1787, rates[0], "", 0.3
    yield "910A: ResNet-50, training, batch 256", "images/s", 2115, rates[1], "", 0.3
    yield "910A: ResNet-50, training, batch 256 to batch 32", "", 2115 / 1787, rates[1] / rates[0], "", 0.3


def table(head, rows):
    cells = [head] + [[str(c) for c in row] for row in rows]
    widths = [max(len(row[i]) for row in cells) for i in range(len(head))]
    lines = ["| " + " | ".join(c.ljust(w) for c, w in zip(row, widths)) + " |" for row in cells]
    return "\n".join([lines[0], "|" + "|".join("-" * (w + 2) for w in widths) + "|", *lines[1:]]) + "\n"


def number(x):
    return f"{x:.3g}" if x < 100 else f"{x:,.0f}"


def page(p, calibration):
    errors = [abs(got / want - 1) for _, _, want, got, fitted, _ in calibration if not fitted]
    text = (SOURCE / "tests/bench/simulator_accuracy.md").read_text()
    parts = {"POINTS": table(["point", "unit", "published", "predicted", "error", "fitted on it"],
                             [[what, unit, number(want), number(got), f"{100 * (got / want - 1):+.1f} %", fitted]
                              for what, unit, want, got, fitted, _ in calibration]),
             "MEDIAN": f"{100 * sorted(errors)[len(errors) // 2]:.0f} %"}
    short = [t.replace("ascend", "").replace("-sim", "").upper() for t in TARGETS]
    rows = []
    for n in (256, 512, 1024, 2048, 4096, 8192):
        times = [p.gemm(t, n, n, n) for t in TARGETS]
        rows.append([f"{n}"] + [f"{number(us)} ({number(2 * n**3 / us / 1e6)})" for us in times])
    parts["PRODUCTS"] = table(["m = n = k", *short], rows)
    resnet = p.model("resnet50", networks.resnet)
    rows = []
    for batch in (1, 2, 4, 8, 16, 32):
        row = [f"ResNet-50, batch {batch}"]
        for t in TARGETS:
            us = p.network(resnet, t, batch, "3,224,224")["run_us"]
            row.append(f"{number(us)} ({number(batch * 1e6 / us)})")
        rows.append(row)
    bert = p.model("bert", networks.bert)
    for batch in (1, 8, 32):
        row = [f"BERT-base, 128 tokens, batch {batch}"]
        for t in TARGETS:
            us = p.network(bert, t, batch, "128,768")["run_us"]
            row.append(f"{number(us)} ({number(batch * 1e6 / us)})")
        rows.append(row)
    parts["NETWORKS"] = table(["network", *short], rows)
    rows = []
    for size in (32, 1 << 10, 1 << 20, 16 << 20, 256 << 20):
        name = f"{size} bytes" if size < 1 << 20 else f"{size >> 20} MiB"
        rows.append([name] + [f"{number(p.copy(t, size))} / {number(p.copy(t, size, True))}" for t in TARGETS])
    parts["COPIES"] = table(["bytes", *short], rows)
    for key, value in parts.items():
        text = text.replace(f"@{key}@", value)
    return text


def main():
    options = argparse.ArgumentParser()
    options.add_argument("regie")
    options.add_argument("work")
    options.add_argument("--page")
    given = options.parse_args()
    p = Predictor(given.regie, given.work)
    calibration = list(points(p))
    for what, unit, want, got, _, allowed in calibration:
        print(f"{what:52} {want:10.2f} {got:10.2f} {unit:9} {100 * (got / want - 1):+6.1f} %")
    if given.page:
        path = pathlib.Path(given.page)
        path.with_suffix(".new").write_text(page(p, calibration))
        path.with_suffix(".new").rename(path)
    wrong = [what for what, _, want, got, _, allowed in calibration if abs(got / want - 1) > allowed]
    for model in p.models.values():
        pathlib.Path(model).unlink()
    if wrong:
        sys.exit("further off than is allowed: " + "; ".join(wrong))


if __name__ == "__main__":
    main()
