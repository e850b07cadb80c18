#!/usr/bin/env python3
"""Prints, for four models with symbolic dimensions (batch; batch, height and width; batch and width), what their one plan takes at 1,000
sampled shapes beside a plan made for each shape alone, and how long laying out takes. Needs onnx and the models of build/models.

usage: tests/bench/memory_shapes.py [--build build/release] [--count 1000] [--seed 1]"""

import argparse
import os
import subprocess
import sys
import tempfile

import onnx

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
os.environ["REGIE_CACHE"] = "off"


def batched(path, out, symbol="N"):
    """The model with its first dimension left open."""
    model = onnx.load(path)
    for value in [*model.graph.input, *model.graph.output]:
        value.type.tensor_type.shape.dim[0].dim_param = symbol
    del model.graph.value_info[:]
    onnx.save(model, out)


# File, whether its batch is to be opened, ranges by the symbols that the model has.
MODELS = [
    ("resnet50", True, ["N=1..32"]),
    ("mobilenet_v2", True, ["N=1..64"]),
    ("ocr_detector", False, ["p2o_DynamicDimension_0=1..4", "p2o_DynamicDimension_1=32..1280/32",
                             "p2o_DynamicDimension_2=32..1280/32"]),
    ("ocr_recogniser", False, ["p2o_DynamicDimension_0=1..8", "p2o_DynamicDimension_1=16..960/8"]),
]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.path.join(ROOT, "build", "release"))
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, open_batch, ranges in MODELS:
            path = os.path.join(ROOT, "build", "models", f"{name}.onnx")
            if open_batch:
                batched(path, os.path.join(folder, f"{name}.onnx"))
                path = os.path.join(folder, f"{name}.onnx")
            made = os.path.join(folder, "m.rgm")
            subprocess.run([os.path.join(arguments.build, "bin", "regie"), "compile", path, "-o", made], check=True,
                           stdout=subprocess.DEVNULL)
            done = subprocess.run([os.path.join(arguments.build, "bin", "regie-shape-bench"), made, str(arguments.count),
                                   str(arguments.seed), *ranges], capture_output=True, text=True)
            print(f"{name}: {' '.join(r.removeprefix('p2o_') for r in ranges)} {(done.stdout or done.stderr).strip()}", flush=True)
            failed += done.returncode != 0
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
