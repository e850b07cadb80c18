"""Runs quantised networks with Regie and with ONNX Runtime (all optimisations) and counts how many outputs are equal.

    check_quantised.py REGIE NETWORKS FOLDER NAME... [--least 0.999] [--kernels QConv=20] [--target T [--on aicore=70]]

Quantises NETWORKS into FOLDER first (quantise_models.py says what NAME means). A value counts as equal within one quantum of its
output: the scale of the DequantizeLinear that makes it, or 1/127 of the greatest value where no such node does. Compared are
the optimised model online and from an .rgm file, with 1 and 2 threads. The share must be `--least`; `--kernels` says how many
nodes of regie.QConv or regie.QMatMul the optimised model must have, so that nothing is compared that was never fused. `--target`
runs on a simulated device, and `--on` says how many nodes of the model an engine must have at least.
"""
import argparse
import pathlib
import re
import shutil
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper

import quantise_models
from check_models import file_names, run
from inputs import input_options, random_inputs


def quantum_of(model, output, value):
    weights = {w.name: w for w in model.graph.initializer}
    for node in model.graph.node:
        if output in node.output and node.op_type == "DequantizeLinear" and node.input[1] in weights:
            return float(numpy_helper.to_array(weights[node.input[1]]).max())
    return float(np.abs(value).max()) / 127


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("regie")
    parser.add_argument("networks", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("names", nargs="+")
    parser.add_argument("--least", type=float, default=0.999)
    parser.add_argument("--kernels", action="append", default=[])
    parser.add_argument("--target")
    parser.add_argument("--on", action="append", default=[])
    options = parser.parse_args()
    quantise_models.main(options.networks, options.folder, options.names)
    failed = 0
    for name in options.names:
        path, work = options.folder / f"{name}.onnx", options.folder / f"{name}.work"
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir()
        model = onnx.load(path)
        inputs = random_inputs(model, 7, lambda _, dims: dims)
        given = input_options(inputs, work)
        session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        outputs = [o.name for o in session.get_outputs()]
        expected = dict(zip(outputs, session.run(outputs, inputs)))
        made = work / "model.rgm"
        target = ["--target", options.target] if options.target else []
        run([options.regie, "compile", path, "-o", made, "--dump", work / "dump", *target])
        last = sorted((work / "dump").iterdir())[-1].read_text()
        for text in options.kernels:
            kind, _, count = text.partition("=")
            found = last.count(f" = regie.{kind}(")
            if found != int(count):
                print(f"{name}: {found} of regie.{kind} in the optimised model, not {count}")
                failed += 1
        for text in options.on:
            engine, _, count = text.partition("=")
            found = last.count(f'@engine("{engine}")') - len(re.findall(rf'= regie.Copy\(.*@engine\("{engine}"\)', last))
            if found < int(count):
                print(f"{name}: {found} nodes on {engine}, not {count}")
                failed += 1
        ways = [("online", path, "--threads", 2), ("offline", made, "--threads", 1), ("two threads", made, "--threads", 2)]
        if options.target:  # which computes on one thread
            ways = [("online", path, *target), ("offline", made, *target)]
        for way, file, *how in ways:
            out = work / "out"
            shutil.rmtree(out, ignore_errors=True)
            run([options.regie, "run", file, *given, "--output-dir", out, *how])
            for output, written in file_names(outputs).items():
                got, want = np.load(out / written), expected[output]
                if got.shape != want.shape or got.dtype != want.dtype or not want.size:
                    print(f"{name} {way}: {output} is {got.dtype}{list(got.shape)}, must be {want.dtype}{list(want.shape)}")
                    failed += 1
                    continue
                distance = np.abs(got.astype(np.float64) - want) / quantum_of(model, output, want)
                share = float((distance <= 1.001).mean())  # NaN is no agreement
                print(f"{name} {way}: {output}: {share:.2%} within one quantum, {float((got == want).mean()):.2%} equal, "
                      f"at most {distance.max():.3g} quanta apart")
                failed += share < options.least
        shutil.rmtree(work)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
