"""Regie beside ONNX Runtime, in one run, on every .onnx of a folder.

Latency: both engines in processes of their own that take turns, a block of runs each, on the same inputs; the other one sleeps
meanwhile. Start: load or creation with the first inference, and peak memory, each in new processes, in turns, with one thread and
with two; and those processes as a whole, from the call that makes them to the first answer. Then what the compile reports: arena against its bound, what was left unfused; the large graphs; `regie opt` on a tiny one.

Prints a table (Markdown) and, with --out, writes it; --json FILE keeps every figure. Exit code 1 if a target is missed.
"""
import argparse
import json
import math
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx

import graph_counts
import scale_models

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE.parent / "models"))
from inputs import random_inputs

os.environ["REGIE_CACHE"] = "off"  # compiles are measured

BLOCK_SECONDS, PAUSE_SECONDS = 0.4, 0.05
# Sizes of networks whose inputs have symbolic ones.
SHAPES = {
    "ocr_detector": [1, 3, 640, 640],
    "ocr_recogniser": [1, 3, 48, 320],
    "ocr_classifier": [1, 3, 48, 192],
}
# Not measured here, and why.
APART = {"silero_vad": "which branch it takes depends on the value of an input; tests/models/check_speech.py runs it"}


def inputs_of(path):
    def shape(_, dims):
        return dims if all(d > 0 for d in dims) else SHAPES.get(path.stem) or [d if d > 0 else 1 for d in dims]

    return random_inputs(onnx.load(path, load_external_data=False), 1, shape)


class Worker:
    def __init__(self, args, work, engine, model, inputs, threads):
        self.result = work / f"{engine}.npz"
        environment = dict(os.environ, REGIE_BUILD=str(args.build), OMP_NUM_THREADS=str(threads))
        self.begun = time.monotonic()
        self.process = subprocess.Popen(
            [sys.executable, HERE / "compare_worker.py", engine, model, inputs, str(threads), self.result],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        self.start = self.answer()
        self.start["whole_ms"] = (self.start["answered"] - self.begun) * 1000

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"the worker ended with code {self.process.wait()}")
        return json.loads(line)

    def run(self, count):
        self.process.stdin.write(f"{count}\n")
        self.process.stdin.flush()
        return self.answer()

    def close(self):
        self.process.stdin.close()
        if self.process.wait():
            raise RuntimeError("a worker failed")

    def outputs(self):
        with np.load(self.result) as file:
            return [file[name] for name in file.files]


def check_settings(settings, threads):
    """The peer at its best, and alike."""
    expected = {
        "optimisation": "ORT_ENABLE_ALL",
        "intra_op_threads": threads,
        "inter_op_threads": 1,
        "execution": "ORT_SEQUENTIAL",
        "providers": ["CPUExecutionProvider"],
    }
    for key, value in expected.items():
        assert settings[key] == value, f"ONNX Runtime's {key} is {settings[key]}, not {value}"


def greatest_error(ours, theirs):
    worst = 0.0
    for a, b in zip(ours, theirs, strict=True):
        assert a.shape == b.shape, f"shapes {a.shape} and {b.shape}"
        if a.size and np.issubdtype(a.dtype, np.floating):
            bound = 1e-4 * np.abs(b).max() + 1e-5
            ratio = float(np.abs(a.astype(np.float64) - b).max() / bound)
            worst = max(worst, math.inf if math.isnan(ratio) else ratio)  # max() would leave NaN out
        elif a.size and not np.array_equal(a, b):
            worst = math.inf
    return worst


def latency(args, work, rgm, onnx_path, inputs, threads):
    ours = Worker(args, work, "regie", rgm, inputs, threads)
    theirs = Worker(args, work, "ort", onnx_path, inputs, threads)
    settings = theirs.start["settings"]
    check_settings(settings, threads)
    samples = {"regie": [], "ort": []}
    blocks = {}
    for name, worker in (("regie", ours), ("ort", theirs)):
        warm = worker.run(3)
        blocks[name] = max(1, min(2000, int(BLOCK_SECONDS * 1000 / max(1e-3, min(warm)))))
        worker.run(blocks[name])
    for turn in range(args.turns):
        order = [("regie", ours), ("ort", theirs)]
        for name, worker in order if turn % 2 == 0 else reversed(order):
            time.sleep(PAUSE_SECONDS)
            samples[name] += worker.run(blocks[name])
    error = greatest_error(ours.outputs(), theirs.outputs())
    ours.close()
    theirs.close()
    p50 = {name: statistics.median(s) for name, s in samples.items()}
    return {"regie_ms": p50["regie"], "ort_ms": p50["ort"], "ratio": p50["regie"] / p50["ort"], "error": error, "ort": settings}


def starts(args, work, rgm, onnx_path, inputs, threads):
    seen = {"regie": [], "ort": []}
    for turn in range(args.starts):
        engines = [("regie", rgm), ("ort", onnx_path)]
        for name, model in engines if turn % 2 == 0 else reversed(engines):
            worker = Worker(args, work, name, model, inputs, threads)
            worker.close()
            seen[name].append(worker.start)
    time_of = {n: statistics.median(s["load_ms"] + s["first_ms"] for s in list_) for n, list_ in seen.items()}
    peak = {n: statistics.median(s["peak_bytes"] for s in list_) for n, list_ in seen.items()}
    base = {n: statistics.median(s["base_bytes"] for s in list_) for n, list_ in seen.items()}
    settings = seen["ort"][0]["settings"]
    check_settings(settings, threads)
    whole = {n: statistics.median(s["whole_ms"] for s in list_) for n, list_ in seen.items()}
    return {
        "regie_ms": time_of["regie"],
        "ort_ms": time_of["ort"],
        "ratio": time_of["regie"] / time_of["ort"],
        "regie_peak": peak["regie"],
        "ort_peak": peak["ort"],
        "regie_base": base["regie"],
        "ort_base": base["ort"],
        "peak_ratio": peak["regie"] / peak["ort"],
        "ort": settings,
        "regie_whole_ms": whole["regie"],
        "ort_whole_ms": whole["ort"],
        "whole_ratio": whole["regie"] / whole["ort"],
    }


def regie(args, *arguments):
    start = time.perf_counter()
    done = subprocess.run([args.build / "bin" / "regie", *map(str, arguments)], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"regie {' '.join(map(str, arguments))}: {done.stderr.strip()}")
    return done.stdout, (time.perf_counter() - start) * 1000


def compile_model(args, work, path, inputs, threads):
    rgm = work / f"{path.stem}_{threads}.rgm"
    dump = work / f"{path.stem}_{threads}"
    shapes = []
    model = onnx.load(path, load_external_data=False)
    for value in model.graph.input:
        if value.name in inputs and any(d.dim_value <= 0 for d in value.type.tensor_type.shape.dim):
            shapes += ["--shape", value.name + "=" + ",".join(map(str, inputs[value.name].shape))]
    text, _ = regie(args, "compile", path, "-o", rgm, "--threads", threads, "--dump", dump, "--json", *shapes)
    report = json.loads(text)
    last = sorted(dump.glob("*.rg"))[-1].read_text()
    profile = json.loads(regie(args, "profile", rgm, "--runs", 3, "--json", "--threads", threads)[0])
    return rgm, {
        "arena": report["arena_bytes"],
        "bound": report["arena_lower_bound_bytes"],
        "arena_ratio": report["arena_bytes"] / max(1, report["arena_lower_bound_bytes"]),
        "compile_ms": report["compile_ms"],
        "reference_share": profile["reference_share"],
        "left": graph_counts.counts(last),
        "rgm_bytes": rgm.stat().st_size,
        "onnx_bytes": path.stat().st_size,
    }


def geometric_mean(values):
    values = list(values)
    return math.exp(sum(map(math.log, values)) / len(values)) if values else math.nan


def measure_model(args, work, path):
    arrays = inputs_of(path)
    inputs = work / "inputs.npz"
    np.savez(inputs, **arrays)
    row = {"model": path.stem}
    for threads in (1, 2):
        rgm, report = compile_model(args, work, path, arrays, threads)
        if not args.only_starts:
            row[f"t{threads}"] = latency(args, work, rgm, path, inputs, threads)
        row[f"start{threads}"] = starts(args, work, rgm, path, inputs, threads)
        if threads == 1:
            row["compile"] = report
        else:
            rgm.unlink()
    return row


def scale(args, work):
    rows = []
    counts = [1000, 10000, 50000]
    paths = scale_models.make(work / "scale", counts)
    for name in ("chain", "fan", "fan_outputs"):
        for count in counts:
            times = []
            for _ in range(args.starts):
                text, wall = regie(args, "compile", paths[name, count], "-o", work / "scale.rgm", "--json")
                times.append((wall, json.loads(text)["compile_ms"]))
            rows.append({"graph": name, "nodes": count, "wall_ms": min(t[0] for t in times), "compile_ms": min(t[1] for t in times)})
    return rows


def tiny_opt(args, work):
    graph = work / "tiny.rg"
    graph.write_text("graph @g(%x: f32[2,3]) -> (%y) {\n  %a: f32[2,3] = Identity(%x)\n  %y: f32[2,3] = Relu(%a)\n}\n")
    times = [regie(args, "opt", graph, "--pipeline", "default")[1] for _ in range(21)]
    return statistics.median(times)


PAGE = """# Benchmarks

Regie beside ONNX Runtime on one machine, measured in one run with the engines taking turns: `tests/bench/compare_ort.py` says how,
and wrote this page. p50 is the median latency; *start* is loading an offline model (or creating a session from .onnx) and the first
inference, in a new process that has imported the engine and read its inputs: for ONNX Runtime the import maps and relocates the
library with all kernels, for Regie it is followed by `regie_open_ahead`, which opens the libraries of host_cpu on a thread, and what is
not open when the model is loaded is waited for within the start. *Process* is all of it, from the call that makes the process to the first answer, with Python, NumPy and the import. *Peak* is the greatest resident memory of such a process, both driven from the same Python; *arena /
bound* is the memory plan against the greatest sum of bytes live at one time; *reference kernels* is their share of the time in
kernels; *left* counts batch normalizations and activations that stand alone behind a convolution, and layer normalizations and
GELUs that are still in parts. A ratio below 1 is in Regie's favour. What misses its target is said so.

"""


def machine():
    cpu = next((l.split(":", 1)[1].strip() for l in open("/proc/cpuinfo") if l.startswith("model name")), platform.processor())
    return f"{cpu}, {os.cpu_count()} processors, {platform.system()} {platform.release()}"


def targets(rows, scales, opt_ms):
    """(what, target, measured, met)."""
    out = []

    def add(what, target, value, met, form="{:.2f}"):
        out.append((what, target, form.format(value), met))

    for threads in (1, 2):
        ratios = [r[f"t{threads}"]["ratio"] for r in rows if f"t{threads}" in r]
        if ratios:
            add(f"p50 / ONNX Runtime, {threads} thread(s), geometric mean", "<= 1.15", geometric_mean(ratios), geometric_mean(ratios) <= 1.15)
            add("the same, greatest", "<= 1.5", max(ratios), max(ratios) <= 1.5)
    if rows:
        for threads in (1, 2):
            start = geometric_mean(r[f"start{threads}"]["ratio"] for r in rows)
            what = f"load and first inference / creation and first inference, {threads} thread(s), geometric mean"
            add(what, "<= 0.15", start, start <= 0.15, "{:.3f}")
            whole = geometric_mean(r[f"start{threads}"]["whole_ratio"] for r in rows)
            what = f"the whole process to the first answer, imports included, {threads} thread(s), geometric mean"
            add(what, "", whole, None)
        arena = max(r["compile"]["arena_ratio"] for r in rows)
        add("arena / lower bound, greatest", "<= 1.02", arena, arena <= 1.02, "{:.4f}")
        peak = geometric_mean(r["start1"]["peak_ratio"] for r in rows)
        add("peak resident memory, geometric mean", "<= 0.9", peak, peak <= 0.9)
        left = sum(sum(r["compile"]["left"].values()) for r in rows)
        add("Conv+BN+activation unfused, LayerNormalization and GELU decomposed", "0", left, left == 0, "{}")
        share = max(r["compile"]["reference_share"] for r in rows)
        add("share of reference kernels, greatest", "<= 2 %", 100 * share, share <= 0.02, "{:.2f} %")
        errors = [r[f"t{t}"]["error"] for r in rows for t in (1, 2) if f"t{t}" in r]
        if errors:
            error = max(errors)
            add("difference / (1e-4 max + 1e-5), greatest", "<= 1", error, error <= 1, "{:.3f}")
    for name in sorted({s["graph"] for s in scales}):
        by = {s["nodes"]: s["wall_ms"] for s in scales if s["graph"] == name}
        add(f"{name} of 50,000 nodes, whole process", "<= 2.5 s", by[50000] / 1000, by[50000] <= 2500, "{:.2f} s")
        growth = by[50000] / by[10000] / 5
        add(f"{name}, time a node at 50,000 / at 10,000", "near 1", growth, growth <= 1.5)
    if opt_ms is not None:
        add("regie opt on a tiny graph, whole process", "<= 30 ms", opt_ms, opt_ms <= 30, "{:.1f} ms")
    return out


VERDICTS = {True: "met", False: "**missed**", None: ""}


def starts_table(rows):
    """Milliseconds of a start and of its whole process."""
    lines = [
        "",
        "| network | start, 1 thread: Regie / ORT ms | ratio | 2 threads: Regie / ORT ms | ratio "
        "| process, 1 thread: Regie / ORT ms | ratio | 2 threads: Regie / ORT ms | ratio |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for r in rows:
        line = f"| {r['model']} "
        for ratio, ours, theirs, form in (("ratio", "regie_ms", "ort_ms", "{:.1f}"), ("whole_ratio", "regie_whole_ms", "ort_whole_ms", "{:.0f}")):
            for s in (r["start1"], r["start2"]):
                line += f"| {form.format(s[ours])} / {form.format(s[theirs])} | {s[ratio]:.3f} "
        lines.append(line + "|")
    return lines


def table(args, rows, scales, opt_ms, command):
    ort = rows[0]["start1"]["ort"] if rows else {}
    lines = [
        f"{machine()}. ONNX Runtime {ort.get('version', '-')} with {ort.get('optimisation', '-')}, {ort.get('providers', ['-'])[0]}, "
        "the same number of threads.",
        f"`{command}`",
        "",
        "| target | wanted | measured | |",
        "|---|---|---|---|",
    ]
    lines += [f"| {what} | {target} | {value} | {VERDICTS[met]} |" for what, target, value, met in targets(rows, scales, opt_ms)]
    if any("t1" in r for r in rows):
        lines += [
            "",
            "| network | 1 thread: Regie / ORT ms | ratio | 2 threads: Regie / ORT ms | ratio "
            "| peak MiB: Regie / ORT | ratio | arena / bound | reference kernels | left |",
            "|---|---|---|---|---|---|---|---|---|---|",
        ]
    for r in rows:
        if "t1" not in r:
            continue
        a, b, s, c = r["t1"], r["t2"], r["start1"], r["compile"]
        left = ", ".join(f"{k} {v}" for k, v in c["left"].items() if v) or "0"
        lines.append(
            f"| {r['model']} | {a['regie_ms']:.3f} / {a['ort_ms']:.3f} | {a['ratio']:.2f} | {b['regie_ms']:.3f} / {b['ort_ms']:.3f} "
            f"| {b['ratio']:.2f} | {s['regie_peak'] / 2**20:.0f} / {s['ort_peak'] / 2**20:.0f} | {s['peak_ratio']:.2f} | {c['arena_ratio']:.4f} "
            f"| {100 * c['reference_share']:.2f} % | {left} |"
        )
    if rows:
        lines += starts_table(rows)
    if scales:
        lines += ["", "| graph | nodes | whole process ms | compile ms |", "|---|---|---|---|"]
        lines += [f"| {s['graph']} | {s['nodes']:,} | {s['wall_ms']:.0f} | {s['compile_ms']:.0f} |" for s in scales]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--models", type=pathlib.Path, default=ROOT / "build" / "models", help="folder with .onnx files")
    parser.add_argument("--only", action="append", default=[], help="this network; may be repeated")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release")
    parser.add_argument("--out", type=pathlib.Path, help="write the table here")
    parser.add_argument("--json", type=pathlib.Path, help="write every figure here")
    parser.add_argument("--turns", type=int, default=6, help="blocks of runs that each engine gets")
    parser.add_argument("--starts", type=int, default=3, help="new processes of each engine")
    parser.add_argument("--only-starts", action="store_true", help="leave the latency out")
    parser.add_argument("--from-json", type=pathlib.Path, action="append", default=[], help="figures of earlier runs, to be joined")
    parser.add_argument("--no-scale", action="store_true", help="leave the large graphs and regie opt out")
    parser.add_argument("--no-models", action="store_true", help="only those")
    args = parser.parse_args()
    args.build = args.build.resolve()
    command = " ".join(["tests/bench/compare", *sys.argv[1:]])
    rows, scales, opt_ms, failed = [], [], None, []
    for earlier in args.from_json:
        known = json.loads(earlier.read_text())
        rows += [r for r in known["models"] if r["model"] not in {k["model"] for k in rows}]
        scales, opt_ms, failed = scales or known["scale"], opt_ms or known["opt_ms"], failed + known["failed"]
    with tempfile.TemporaryDirectory(prefix="regie-compare-") as folder:
        work = pathlib.Path(folder)
        paths = [] if args.no_models else sorted(args.models.glob("*.onnx"))
        for path in paths:
            if path.stem in APART:
                print(f"{path.stem} is left out: {APART[path.stem]}", file=sys.stderr)
        paths = [p for p in paths if p.stem not in APART]
        if args.only:
            paths = [p for p in paths if p.stem in args.only]
        if not paths and not args.no_models:
            parser.error(f"there is no .onnx file in {args.models}")
        for path in paths:
            try:
                row = measure_model(args, work, path)
            except Exception as error:  # one network must not hide the others; it is told below
                failed.append(f"{path.stem}: {error}")
                print(f"{path.stem}: FAILED: {error}", file=sys.stderr, flush=True)
                continue
            rows.append(row)
            if len(rows) == 1:
                print("ONNX Runtime:", json.dumps(row["start1"]["ort"]), flush=True)
            latencies = "" if args.only_starts else f"1 thread {row['t1']['ratio']:.2f}, 2 threads {row['t2']['ratio']:.2f}, "
            print(
                f"{row['model']:20} {latencies}start {row['start1']['ratio']:.3f} and {row['start2']['ratio']:.3f}, peak "
                f"{row['start1']['peak_ratio']:.2f}, arena {row['compile']['arena_ratio']:.4f}, "
                f"reference {100 * row['compile']['reference_share']:.2f} %",
                flush=True,
            )
        rows.sort(key=lambda r: r["model"])
        if not args.no_scale and not scales:
            scales, opt_ms = scale(args, work), tiny_opt(args, work)
    text = table(args, rows, scales, opt_ms, command)
    text += "".join(f"\nNot measured: {f}\n" for f in failed)
    print(text)
    if args.out:
        args.out.write_text(PAGE + text)
    if args.json:
        args.json.write_text(json.dumps({"models": rows, "scale": scales, "opt_ms": opt_ms, "failed": failed}, indent=1))
    sys.exit(0 if not failed and all(t[3] is not False for t in targets(rows, scales, opt_ms)) else 1)


if __name__ == "__main__":
    main()
