"""Randomly wired networks in a random file order: the order that is chosen for memory never takes more than that of the file,
gives the same bits, and the plan is checked by the compile and again here.

    check_orders.py REGIE WORK"""
import csv
import os
import pathlib
import subprocess
import sys

import numpy as np
import onnx

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "bench"))
import memory  # noqa: E402
import order  # noqa: E402

regie, work = sys.argv[1], pathlib.Path(sys.argv[2])
work.mkdir(parents=True, exist_ok=True)
os.environ["REGIE_CACHE"] = "off"


def call(*arguments):
    done = subprocess.run([regie, *map(str, arguments)], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, arguments))}: exit code {done.returncode}\n{done.stderr}")
    return done.stdout


def live_and_end(plan):
    """The greatest sum of bytes alive at one step and the greatest end, of rows checked for overlaps."""
    with open(plan, newline="") as file:
        rows = [{"id": r["id"], **{k: int(r[k]) for k in ("lower", "upper", "size", "offset")}} for r in csv.DictReader(file)]
    end, live = memory.judge(rows, rows)
    return live, end


in_order = work / "in-order.toml"
in_order.write_text(order.IN_ORDER)
better = 0
for seed, (wiring, block) in enumerate([(w, b) for b in ("separable", "conv", "mixed") for w in order.WIRINGS]):
    model = work / "m.onnx"
    onnx.save(order.network(seed, 20, wiring, block), str(model))
    peaks = []
    for name, options in (("file", ["--pipeline", in_order]), ("chosen", [])):
        call("compile", model, "-o", work / f"{name}.rgm", "--export-plan", work / f"{name}.csv", *options)
        call("run", work / f"{name}.rgm", "--random", 7, "--output-dir", work / name)
        peaks.append(live_and_end(work / f"{name}.csv"))
    (file_live, file_end), (live, end) = peaks
    assert live <= file_live and end <= file_end, f"{wiring} {block}: {peaks}"
    better += end < file_end
    a, b = (np.load(work / name / "y.npy") for name in ("file", "chosen"))
    assert a.dtype == b.dtype and a.tobytes() == b.tobytes(), f"{wiring} {block}: the order changes the result"
assert better >= 9, f"only {better} of 12 networks take less memory in the order that was chosen"
print(f"{better} of 12 networks take less memory, none more; results are the same bits")
