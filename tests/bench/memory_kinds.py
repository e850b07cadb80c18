#!/usr/bin/env python3
"""Prints what the memory planner makes of problems of many kinds, drawn from a seed: heavy-tailed lives, fixed places, large
alignments, forward and backward passes, caches of a language model, queues, all alive at once, perfectly packed ones; up to
60,000 buffers. Every plan is checked here again: no overlap, alignments and fixed places as asked. The bound is recomputed: the most
bytes live at one step, those aligned to a power of two or more in whole multiples of it, all but the one with most to spare.

usage: tests/bench/memory_kinds.py [--regie build/release/bin/regie] [--effort fast|default] [--seed 7] [KIND ...]"""

import argparse
import bisect
import csv
import os
import random
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
MANY = 60_000


def long_tail(r):
    return [(t := r.randrange(MANY), min(MANY + 1, t + 1 + int(r.paretovariate(0.8))), int(r.paretovariate(0.9) * 512))
            for _ in range(MANY)]


def fixed(r):
    """A stack of weights with their places, and what is computed around them."""
    rows, at = [], 0
    for _ in range(50):
        size = r.randrange(1, 100) * 4096
        rows.append((0, 100, size, 1, at))
        at += size
    return rows + [(t := r.randrange(95), t + r.randrange(1, 6), r.randrange(1, 400) * 64, r.choice([64, 256, 4096]))
                   for _ in range(1000)]


def alignments(r):
    return [(t := r.randrange(200), t + r.randrange(1, 20), r.randrange(1, 50_000), 1 << r.randrange(22)) for _ in range(1000)]


def alignments_many(r):
    return [(t := r.randrange(20_000), t + r.randrange(1, 30), r.randrange(1, 50_000), r.choice([1, 64, 512, 4096, 1 << 21]))
            for _ in range(MANY)]


def weights_and_steps(r):
    return [(0, 30_000, r.randrange(1, 1000) * 4096) for _ in range(300)] + \
        [(t := r.randrange(29_990), t + r.randrange(1, 6), r.randrange(1, 2000) * 256) for _ in range(MANY - 300)]


def training(r, layers=8500, kept=4):
    rows = []
    for i in range(layers):
        back = 2 * (2 * layers - i)
        rows += [(2 * i, back + 1, r.choice([4, 8, 16, 32]) * 1024 * (1 + e % 3)) for e in range(kept)]
        rows += [(2 * i, 2 * i + 2, r.randrange(1, 64) * 4096), (back - 1, back + 3, r.randrange(1, 64) * 4096),
                 (back, 4 * layers + 4, r.randrange(1, 16) * 4096)]
    return rows


def key_value_pages(r):
    rows = []
    for _ in range(400):
        begin, length = r.randrange(20_000), r.randrange(50, 2000)
        rows += [(begin + b, begin + length, 8192 * r.choice([1, 1, 1, 2])) for b in range(0, length, 16)]
    return rows


def key_value_doubled(r):
    rows = []
    for _ in range(3000):
        at, size = r.randrange(50_000), 4096
        for d in range(r.randrange(1, 9)):
            rows.append((at, at + (8 << d) + 1, size))
            at, size = at + (8 << d), size * 2
    return rows


def clique(r):
    return [(r.randrange(100), r.randrange(200, 300), r.randrange(1, 10_000)) for _ in range(MANY)]


def thick(r):
    """A thousand alive at every step."""
    return [(t := r.randrange(MANY), t + r.randrange(1, 2000), r.randrange(1, 10_000) * 64) for _ in range(MANY)]


def queue(r):
    return [(i, i + 50, 64 * (1 + i % 97)) for i in range(MANY)]


def mixed_sizes(r):
    return [(i // 3, i // 3 + (r.randrange(1, 8) if r.random() < .9 else r.randrange(8, 400)), int(2 ** r.uniform(6, 22)))
            for i in range(MANY)]


def perfect(r, count=400, steps=60, height=1 << 20):
    """A rectangle cut by straight lines: a plan without a gap exists."""
    pieces = [(0, steps, 0, height)]
    while len(pieces) < count:
        pieces.sort(key=lambda p: (p[1] - p[0]) * (p[3] - p[2]))
        a, b, low, high = pieces.pop()
        if b - a >= 2 and (r.random() < .5 or high - low < 4096):
            middle = r.randrange(a + 1, b)
            pieces += [(a, middle, low, high), (middle, b, low, high)]
        else:
            middle = r.randrange(low // 1024 + 1, high // 1024) * 1024
            pieces += [(a, b, low, middle), (a, b, middle, high)]
    r.shuffle(pieces)
    return [(a, b, high - low) for a, b, low, high in pieces]


KINDS = {f.__name__: f for f in (long_tail, fixed, alignments, alignments_many, weights_and_steps, training, key_value_pages,
                                 key_value_doubled, clique, thick, queue, mixed_sizes, perfect)}


def bound(rows):
    most = 0
    for grain in sorted({row[3] for row in rows}):
        events = []
        for i, (lower, upper, size, alignment, _) in enumerate(rows):
            if alignment >= grain:
                events += [(lower, 1, i), (upper, 0, i)]
        live, slack = 0, []
        for _, start, i in sorted(events):
            whole = -(-rows[i][2] // grain) * grain
            gap = whole - rows[i][2]
            if start:
                live += whole
                bisect.insort(slack, gap)
                most = max(most, live - slack[-1])
            else:
                live -= whole
                del slack[bisect.bisect_left(slack, gap)]
    return most


def judge(rows, offsets):
    """The peak of a plan without fault."""
    events, live = [], []
    for i, (lower, upper, _, alignment, place) in enumerate(rows):
        assert offsets[i] % alignment == 0, f"buffer {i} is not aligned"
        assert place in ("", offsets[i]), f"buffer {i} is not where it is fixed"
        events += [(lower, 1, i), (upper, 0, i)]
    for _, start, i in sorted(events):
        own = (offsets[i], offsets[i] + rows[i][2])
        at = bisect.bisect_left(live, own)
        if not start:
            del live[at]
            continue
        assert at == len(live) or live[at][0] >= own[1], f"buffer {i} overlaps"
        assert at == 0 or live[at - 1][1] <= own[0], f"buffer {i} overlaps"
        live.insert(at, own)
    return max(o + row[2] for o, row in zip(offsets, rows))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--regie", default=os.path.join(HERE, "..", "..", "build", "release", "bin", "regie"))
    parser.add_argument("--effort", choices=["fast", "default", "exhaustive"], default="default")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=", ".join(KINDS))
    arguments = parser.parse_args()
    print(f"{'problem':<20}{'buffers':>9}{'peak':>14}{'bound':>14}{'ratio':>9}{'s':>8}")
    with tempfile.TemporaryDirectory() as folder:
        source, planned = os.path.join(folder, "in.csv"), os.path.join(folder, "out.csv")
        for kind in arguments.kinds or KINDS:
            rows = [(*row, *(1, "")[len(row) - 3:]) for row in KINDS[kind](random.Random(arguments.seed))]
            with open(source, "w", newline="") as file:
                out = csv.writer(file, lineterminator="\n")
                out.writerow(["id", "lower", "upper", "size", "alignment", "offset"])
                out.writerows([i, *row] for i, row in enumerate(rows))
            start = time.perf_counter()
            subprocess.run([arguments.regie, "plan-memory", source, "-o", planned, "--verify", "--effort", arguments.effort],
                           check=True, stdout=subprocess.DEVNULL)
            seconds = time.perf_counter() - start
            with open(planned, newline="") as file:
                peak = judge(rows, [int(row["offset"]) for row in csv.DictReader(file)])
            least = bound(rows)
            print(f"{kind:<20}{len(rows):>9}{peak:>14}{least:>14}{peak / least:>9.4f}{seconds:>8.2f}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
