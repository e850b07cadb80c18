#!/usr/bin/env python3
"""Writes random single-node cases of every operator, with expectations by ONNX Runtime and onnx.reference.

    generate.py FOLDER [--seed N] [--scale N] [--report]

REGIE_OPS_SEED and REGIE_OPS_SCALE in the environment are the defaults, so that one can search on through the unit tests.
"""
import argparse
import itertools
import os
import pathlib
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import cases_elementwise  # noqa: E402
import cases_fused  # noqa: E402
import cases_index  # noqa: E402
import cases_layers  # noqa: E402
import cases_math  # noqa: E402
import cases_newer  # noqa: E402
import cases_nn  # noqa: E402
import cases_products  # noqa: E402
import cases_quantize  # noqa: E402
import cases_sampling  # noqa: E402
import cases_signal  # noqa: E402
import cases_small  # noqa: E402
import cases_tensor  # noqa: E402
import schemas  # noqa: E402
from cases import Writer  # noqa: E402
from values import Values  # noqa: E402


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--seed", type=int, default=int(os.environ.get("REGIE_OPS_SEED", "20240229")))
    parser.add_argument("--scale", type=int, default=int(os.environ.get("REGIE_OPS_SCALE", "1")),
                        help="so many times as many random cases")
    parser.add_argument("--report", action="store_true", help="print how many cases each operator has, and their source")
    options = parser.parse_args()
    writer = Writer(options.folder, schemas.load())
    # The order counts: a family's number is in its seed.
    modules = (cases_elementwise, cases_nn, cases_tensor, cases_math, cases_layers, cases_index, cases_sampling, cases_products,
               cases_signal, cases_quantize, cases_fused, cases_small, cases_newer)
    families = itertools.chain(*(m.FAMILIES for m in modules))
    for number, family in enumerate(families):
        for round_ in range(options.scale):
            family(writer, Values(np.random.default_rng([options.seed, number, round_])))
    sources = writer.finish()
    if options.report:
        for op in sorted(sources):
            print(f"{op:24}", ", ".join(f"{n} {source}" for source, n in sorted(sources[op].items())))
    print(f"{len(writer.cases)} cases of {len(sources)} operators, {len(writer.blob)} bytes")


if __name__ == "__main__":
    main()
