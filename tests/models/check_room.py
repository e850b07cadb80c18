"""What Winograd's algorithm works in beside what a network needs without it: `check_room.py REGIE WORK`.

Four 3x3 convolutions, whose transformed maps may be many times what they read and write: oneDNN cuts them to the caches of the
processor, so sizes that show it on one are modest on another, and what has to hold follows from what is measured. The plans
are recomputed from --export-plan: the greatest sum of bytes that are live at one time.
"""
import csv
import json
import pathlib
import subprocess
import sys

import numpy as np
import onnx
from onnx import helper, numpy_helper

HOST = pathlib.Path(__file__).resolve().parents[2] / "configs" / "targets" / "host_cpu.toml"
SIZES = ((128, 28), (256, 28), (64, 56))  # channels, side of a map


def network(path, channels, side):
    random = np.random.default_rng(1)
    nodes, weights, last = [], [], "x"
    for i in range(4):
        w = random.standard_normal((channels, channels, 3, 3)).astype(np.float32) * 0.03
        weights.append(numpy_helper.from_array(w, f"w{i}"))
        nodes += [helper.make_node("Conv", [last, f"w{i}"], [f"c{i}"], pads=[1, 1, 1, 1]), helper.make_node("Relu", [f"c{i}"], [f"y{i}"])]
        last = f"y{i}"
    shape = [1, channels, side, side]
    graph = helper.make_graph(
        nodes, "room", [helper.make_tensor_value_info("x", 1, shape)], [helper.make_tensor_value_info(last, 1, shape)], weights
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 16)], ir_version=8), path)


def peak_of(plan):
    with open(plan, newline="") as file:
        rows = [(int(r["lower"]), int(r["upper"]), int(r["size"])) for r in csv.DictReader(file) if not r["alias"]]
    return max(sum(size for low, high, size in rows if low <= step < high) for step in range(max(high for _, high, _ in rows)))


def check(regie, work, channels, side):
    network(work / "room.onnx", channels, side)
    peaks, kernels = {}, {}
    for setting in ("off", "auto", "always"):
        target = work / f"{setting}.toml"
        target.write_text(HOST.read_text().replace('winograd = "auto"', f'winograd = "{setting}"'))
        assert setting in target.read_text()
        model, plan = work / f"{setting}.rgm", work / f"{setting}.csv"
        compiled = [regie, "compile", work / "room.onnx", "-o", model, "--target", target, "--export-plan", plan, "--json"]
        report = json.loads(subprocess.run(compiled, check=True, capture_output=True, text=True).stdout)
        peaks[setting] = peak_of(plan)
        assert peaks[setting] <= report["arena_bytes"], (setting, peaks, report["arena_bytes"])
        kernels[setting] = subprocess.run([regie, "inspect", model], check=True, capture_output=True, text=True).stdout.count("wino")
        print(f"{channels} channels of {side} x {side}, {setting}: {kernels[setting]} by Winograd's algorithm, {peaks[setting]:,} bytes")
    assert kernels["off"] == 0
    little = max(4 * 2**20, 2 * 9 * channels**2 * side**2 // 50)
    assert peaks["auto"] <= max(peaks["off"], little + 3 * 4 * channels * side * side), "auto takes more room than it should"
    # What the algorithm works in is part of the peak, and at least what the peak grows by.
    if peaks["always"] - peaks["off"] > little:
        assert kernels["auto"] < kernels["always"], "auto takes it where its room is large"
    elif peaks["always"] <= little:
        assert kernels["auto"] == kernels["always"], "auto leaves it out where its room is little"


def main():
    regie, work = sys.argv[1], pathlib.Path(sys.argv[2])
    work.mkdir(parents=True, exist_ok=True)
    for channels, side in SIZES:
        check(regie, work, channels, side)


if __name__ == "__main__":
    main()
