#!/usr/bin/env python3
"""Writes a synthetic memory problem: many buffers, most of them short-lived, some long, sizes over four orders of
magnitude. The number of buffers alive at once grows with the count (780 of 100,000, 5,300 of 1,000,000), so pairs that
share time go into the thousands of millions. The same arguments give the same bytes.

usage: make_buffers.py COUNT [SEED] > buffers.csv"""

import random
import sys


def main():
    count = int(sys.argv[1])
    draw = random.Random(int(sys.argv[2]) if len(sys.argv) > 2 else 1).random
    lines = ["id,lower,upper,size"]
    for i in range(count):
        lower = int(draw() * count)
        kind = draw()
        if kind < 0.70:
            life = 1 + int(draw() * 50)
        elif kind < 0.95:
            life = 50 + int(draw() * 1950)
        else:
            life = 2000 + int(draw() * count / 5)
        size = 64 * int(2 ** (draw() * 14))
        lines.append(f"{i},{lower},{lower + life},{size}")
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
