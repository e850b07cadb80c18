#!/usr/bin/env python3
"""Prints the tables of the memory planner: public problems at their capacity, without one, with --effort fast, and
synthetic problems of 100,000 and 1,000,000 buffers. Every plan is checked here again: no overlap, offsets in their
place, peak and bound recomputed. Times are of the whole command, memory is its peak resident set.

usage: tests/bench/memory.py [--regie build/release/bin/regie] [--only capacity|default|fast|synthetic] [FILE.csv ...]"""

import argparse
import csv
import os
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
MODELS = os.path.join(HERE, "..", "models", "memory")
HARD = ["A", "C", "D", "F", "G", "K"]
CAPACITY = 1048576


def read(path):
    with open(path, newline="") as file:
        return [{k: (v if k == "id" else int(v)) for k, v in row.items()} for row in csv.DictReader(file)]


def judge(problem, plan):
    """(peak, most bytes live at one step) of a plan without fault; a sweep with the live buffers sorted by offset."""
    import bisect

    assert [(r["id"], r["lower"], r["upper"], r["size"]) for r in problem] == \
        [(r["id"], r["lower"], r["upper"], r["size"]) for r in plan], "rows were changed"
    events = []
    for i, r in enumerate(plan):
        if r["size"]:
            events.append((r["lower"], 1, i))
            events.append((r["upper"], 0, i))
    events.sort()
    live, bytes_live, most, peak = [], 0, 0, 0
    for _, start, i in events:
        r = plan[i]
        key = (r["offset"], r["offset"] + r["size"])
        at = bisect.bisect_left(live, key)
        if not start:
            del live[at]
            bytes_live -= r["size"]
            continue
        assert at == len(live) or live[at][0] >= key[1], f"buffer {r['id']} overlaps"
        assert at == 0 or live[at - 1][1] <= key[0], f"buffer {r['id']} overlaps"
        live.insert(at, key)
        bytes_live += r["size"]
        most = max(most, bytes_live)
        peak = max(peak, key[1])
    return peak, most


def run(regie, path, *options):
    """(exit code, seconds, megabytes, peak, bound, buffers)"""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "out.csv")
        start = time.perf_counter()
        child = subprocess.Popen([regie, "plan-memory", path, "-o", out, *options], stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(child.pid, 0)
        seconds = time.perf_counter() - start
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode not in (0, 1):
            sys.exit(f"{path}: exit code {child.returncode}")
        problem = read(path)
        peak, most = judge(problem, read(out))
        return child.returncode, seconds, usage.ru_maxrss / 1024, peak, most, len(problem)


def table(title, regie, paths, *options):
    print(f"\n{title}\n{'problem':<24}{'buffers':>9}{'peak':>14}{'bound':>14}{'ratio':>9}{'exit':>6}{'s':>8}{'MB':>7}")
    total = 0.0
    for path in paths:
        code, seconds, megabytes, peak, most, count = run(regie, path, *options)
        total += seconds
        name = os.path.basename(path).removesuffix(".csv")
        print(f"{name:<24}{count:>9}{peak:>14}{most:>14}{peak / max(most, 1):>9.4f}{code:>6}{seconds:>8.2f}"
              f"{megabytes:>7.0f}", flush=True)
    print(f"{'all':<24}{'':>58}{total:>8.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--regie", default=os.path.join(HERE, "..", "..", "build", "release", "bin", "regie"))
    parser.add_argument("--only", choices=["capacity", "default", "fast", "synthetic"])
    parser.add_argument("files", nargs="*", help="instead of the public problems")
    arguments = parser.parse_args()
    hard = arguments.files or [os.path.join(MODELS, name + ".csv") for name in HARD]
    easy = [] if arguments.files else [os.path.join(MODELS, name + ".csv") for name in ("G_1", "somas_resnet50")]

    def wanted(name):
        return arguments.only in (None, name)

    if wanted("capacity") and not arguments.files:
        table(f"capacity {CAPACITY}", arguments.regie, hard, "--capacity", str(CAPACITY))
    if wanted("default"):
        table("no capacity, default effort", arguments.regie, hard + easy)
    if wanted("fast"):
        table("no capacity, --effort fast", arguments.regie, hard + easy, "--effort", "fast")
    if wanted("synthetic") and not arguments.files:
        with tempfile.TemporaryDirectory() as folder:
            paths = []
            for count in (100_000, 1_000_000):
                paths.append(os.path.join(folder, f"synthetic_{count}.csv"))
                with open(paths[-1], "w") as file:
                    subprocess.run([sys.executable, os.path.join(HERE, "make_buffers.py"), str(count)], stdout=file,
                                   check=True)
            table("synthetic, default effort", arguments.regie, paths)


if __name__ == "__main__":
    main()
