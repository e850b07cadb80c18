#!/usr/bin/env python3
"""Prints what the planner makes of real models, with everything recomputed here from `regie compile --export-plan`:

* plans: the peak at alignments 1, 64 and 512 beside the bound (aliases count: a view takes no bytes), and beside what four
  greedy strategies make of the same lifetimes: by size with best fit (TFLite's), by size with first fit (OpenVINO's), by time
  with best fit (ONNX Runtime's), the better of by size and by length of life (XLA's).
* inplace: the bound of unfused networks with results written in place and parts in their whole, beside the bound without.
* arena: the least arena with which ONNX Runtime runs the model (its own session, weights apart), found by bisection, beside
  our arena. Needs onnxruntime.

usage: tests/bench/memory_models.py [--regie build/release/bin/regie] [--only plans|inplace|arena] [MODEL.onnx ...]"""

import argparse
import bisect
import csv
import glob
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
sys.path.insert(0, HERE)
import memory  # noqa: E402

os.environ["REGIE_CACHE"] = "off"
ALIASES = """schema = 1
name = "aliases"
extends = "unoptimised"
[[insert]]
into = "schedule"
before = "schedule-in-order"
passes = ["alias-in-place"]
"""


def up(size, alignment):
    return -(-size // alignment) * alignment


def bound(rows, alignment):
    """No plan has a lower peak: at each step all that is alive, each but the topmost in whole units."""
    events = sorted([(r["lower"], 1, i) for i, r in enumerate(rows)] + [(r["upper"], 0, i) for i, r in enumerate(rows)])
    live, total, slack, most = set(), 0, [], 0
    for _, start, i in events:
        size = rows[i]["size"]
        gap = up(size, alignment) - size
        if start:
            live.add(i)
            total += up(size, alignment)
            bisect.insort(slack, gap)
        else:
            live.discard(i)
            total -= up(size, alignment)
            del slack[bisect.bisect_left(slack, gap)]
        most = max(most, total - (slack[-1] if slack else 0))
    return most


class Placed:
    """Buffers that have their place; gaps between those that share time with another."""

    def __init__(self):
        self.done = []

    def gaps(self, row, alignment):
        """(begin, end) of free ranges, the last one without an end."""
        at, ranges = 0, []
        for offset, end, lower, upper in self.done:
            if row["upper"] <= lower or upper <= row["lower"]:
                continue
            if offset > at:
                ranges.append((at, offset))
            at = max(at, up(end, alignment))
        return [*ranges, (at, None)]

    def put(self, row, offset):
        bisect.insort(self.done, (offset, offset + row["size"], row["lower"], row["upper"]))
        return offset + row["size"]


def by_order(rows, key, best_fit, alignment):
    placed, peak = Placed(), 0
    for row in sorted(rows, key=key):
        fitting = [g for g in placed.gaps(row, alignment) if g[1] is None or g[1] - g[0] >= row["size"]]
        gap = fitting[0]
        if best_fit:
            closed = [g for g in fitting if g[1] is not None]
            gap = min(closed, key=lambda g: (g[1] - g[0], g[0])) if closed else fitting[-1]
        peak = max(peak, placed.put(row, gap[0]))
    return peak


def by_time(rows, alignment):
    """As an allocator sees it: the smallest free block that is large enough, else the end of the arena."""
    events = sorted([(r["upper"], 0, i) for i, r in enumerate(rows)] + [(r["lower"], 1, i) for i, r in enumerate(rows)])
    used, peak = [], 0  # used: (offset, end)
    places = {}
    for _, start, i in events:
        if not start:
            used.remove(places[i])
            continue
        size, at, best = up(rows[i]["size"], alignment), 0, None
        for offset, end in used:
            if offset - at >= size and (best is None or offset - at < best[0]):
                best = (offset - at, at)
            at = max(at, end)
        # A free block at the end of the arena counts as a block as well.
        if up(peak, alignment) - at >= size and (best is None or up(peak, alignment) - at < best[0]):
            best = (up(peak, alignment) - at, at)
        offset = best[1] if best else at
        places[i] = (offset, offset + size)
        bisect.insort(used, places[i])
        peak = max(peak, offset + rows[i]["size"])
    return peak


def strategies(rows, alignment):
    def size(r):
        return -r["size"], r["lower"], r["id"]

    spatial = by_order(rows, size, True, alignment)
    temporal = by_order(rows, lambda r: (r["lower"] - r["upper"], *size(r)), True, alignment)
    return {"by size, best fit": spatial, "by size, first fit": by_order(rows, size, False, alignment),
            "by time": by_time(rows, alignment), "best of two": min(spatial, temporal)}


def call(*arguments):
    done = subprocess.run([*map(str, arguments)], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, arguments))}: {done.stderr}")
    return done.stdout


def exported(regie, model, folder, *options):
    """Rows of the plan that take bytes, by memory space."""
    path = os.path.join(folder, "plan.csv")
    call(regie, "compile", model, "-o", os.path.join(folder, "m.rgm"), "--export-plan", path, *options)
    spaces = {}
    with open(path, newline="") as file:
        for row in csv.DictReader(file):
            if int(row["size"]) and not row["alias"]:
                spaces.setdefault(row["space"], []).append(
                    {k: int(row[k]) if k != "id" else row[k] for k in ("id", "lower", "upper", "size")} |
                    {"kind": row["kind"], "end": int(row["offset"]) + int(row["size"])})
    return spaces


def plans(regie, models):
    print(f"{'model':<22}{'align':>6}{'buffers':>9}{'peak':>13}{'bound':>13} {'':<9}"
          + "".join(f"{name:>20}" for name in ("by size, best fit", "by size, first fit", "by time", "best of two")))
    sound = True
    with tempfile.TemporaryDirectory() as folder:
        for model in models:
            for space, rows in exported(regie, model, folder).items():
                for alignment in (1, 64, 512):
                    problem, out = os.path.join(folder, "p.csv"), os.path.join(folder, "o.csv")
                    with open(problem, "w") as file:
                        file.write("id,lower,upper,size\n")
                        file.writelines(f"{r['id']},{r['lower']},{r['upper']},{r['size']}\n" for r in rows)
                    told = call(regie, "plan-memory", problem, "-o", out, "--alignment", alignment, "--json")
                    plan = memory.read(out)
                    assert all(r["offset"] % alignment == 0 for r in plan)
                    peak, _ = memory.judge(memory.read(problem), plan)
                    least, others = bound(rows, alignment), strategies(rows, alignment)
                    verdict = "= bound" if peak == least else "proven" if '"proven_optimal":true' in told.replace(" ", "") else "ABOVE"
                    sound &= verdict != "ABOVE" and peak <= min(others.values())
                    print(f"{os.path.basename(model).removesuffix('.onnx'):<22}{alignment:>6}{len(rows):>9}{peak:>13}{least:>13} "
                          f"{verdict:<9}" + "".join(f"{n:>12} {n / max(peak, 1):>6.3f}x" for n in others.values()), flush=True)
    return sound


def inplace(regie, models):
    print(f"{'unfused':<22}{'plain bound':>14}{'in place':>14}{'ratio':>8}")
    sound = True
    with tempfile.TemporaryDirectory() as folder:
        aliases = os.path.join(folder, "aliases.toml")
        with open(aliases, "w") as file:
            file.write(ALIASES)
        for model in models:
            least = []
            for pipeline in ("unoptimised", aliases):
                spaces = exported(regie, model, folder, "--pipeline", pipeline)
                least.append(sum(bound([r for r in rows if r["kind"] == "tensor"], 64) for rows in spaces.values()))
            sound &= least[1] <= least[0]
            print(f"{os.path.basename(model).removesuffix('.onnx'):<22}{least[0]:>14}{least[1]:>14}"
                  f"{least[1] / least[0]:>8.3f}", flush=True)
    return sound


RUN = """
import sys, numpy, onnxruntime
from onnxruntime.capi import onnxruntime_pybind11_state as state
info = state.OrtMemoryInfo("Cpu", state.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, state.OrtMemType.DEFAULT)
state.create_and_register_allocator(info, state.OrtArenaCfg({"max_mem": int(sys.argv[2]), "arena_extend_strategy": 1}))
options = onnxruntime.SessionOptions()
options.log_severity_level, options.intra_op_num_threads = 4, 1
options.add_session_config_entry("session.use_device_allocator_for_initializers", "1")
options.add_session_config_entry("session.use_env_allocators", "1")
session = onnxruntime.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
types = {"tensor(float)": "float32", "tensor(int64)": "int64", "tensor(int32)": "int32"}
fed = {i.name: numpy.ones([d if isinstance(d, int) and d > 0 else 1 for d in i.shape], types[i.type])
       for i in session.get_inputs()}
for _ in range(2):
    session.run(None, fed)
"""


def fixed(model):
    import onnx
    graph = onnx.load(model, load_external_data=False).graph
    constants = {t.name for t in graph.initializer}
    return all(d.dim_value > 0 for i in graph.input if i.name not in constants for d in i.type.tensor_type.shape.dim)


def arena(regie, models):
    print(f"{'model':<22}{'ORT arena':>14}{'ours':>14}{'ratio':>8}")
    sound = True

    def runs(model, limit):
        return subprocess.run([sys.executable, "-c", RUN, model, str(limit)], capture_output=True).returncode == 0

    with tempfile.TemporaryDirectory() as folder:
        for model in models:
            if not fixed(model):
                continue  # its inputs have no sizes of which both could take the same
            # From above, in small steps: far below what it needs the runtime goes round its arena, and runs.
            ours = sum(max(r["end"] for r in rows) for rows in exported(regie, model, folder).values())
            high = 4 * ours
            while not runs(model, high):
                high *= 2
            while runs(model, int(high / 1.15)):
                high = int(high / 1.15)
                if high < ours // 8:
                    break
            name = os.path.basename(model).removesuffix(".onnx")
            if high < ours // 8:
                # Whatever is refused it gets elsewhere: this is no measure.
                print(f"{name:<22}{'never fails':>14}{ours:>14}", flush=True)
                continue
            low = int(high / 1.15)
            while high - low > max(low // 256, 4096):
                middle = (low + high) // 2
                low, high = (low, middle) if runs(model, middle) else (middle, high)
            sound &= ours <= high
            print(f"{name:<22}{high:>14}{ours:>14}{ours / high:>8.3f}", flush=True)
    return sound


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--regie", default=os.path.join(ROOT, "build", "release", "bin", "regie"))
    parser.add_argument("--only", choices=["plans", "inplace", "arena"])
    parser.add_argument("models", nargs="*", help="default: those of build/models")
    arguments = parser.parse_args()
    models = arguments.models or sorted(glob.glob(os.path.join(ROOT, "build", "models", "*.onnx")))
    sound = True
    if arguments.only in (None, "plans"):
        sound &= plans(arguments.regie, models)
    if arguments.only in (None, "inplace"):
        unfused = [m for m in models if os.path.basename(m) in ("resnet50.onnx", "bert_base.onnx", "densenet121.onnx")]
        sound &= inplace(arguments.regie, arguments.models or unfused)
    if arguments.only in (None, "arena"):
        sound &= arena(arguments.regie, models)
    return 0 if sound else 1


if __name__ == "__main__":
    sys.exit(main())
