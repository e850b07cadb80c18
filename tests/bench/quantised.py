"""Quantised and 16-bit networks: Regie beside its own float32 network and ONNX Runtime on the same file.

    quantised.py --build BUILD --models NETWORKS --folder FOLDER [--turns 4] [NAME...]

NAME is <network>.<way> of tests/models/quantise_models.py, or <network>.f16 or .bf16 of narrow_models.py; FOLDER keeps what is
made. The three take turns in one run, each in a process of its own (compare_ort.py). p50 in milliseconds; ratios of them: below
1 is in favour of the quantised network of Regie.
"""
import argparse
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx

import compare_ort

sys.path.insert(0, str(compare_ort.ROOT / "tests" / "models"))
import narrow_models
import quantise_models

NAMES = ["resnet50.qdq", "resnet50.qdq_channel", "resnet50.raw", "mobilenet_v2.qdq", "bert_base.dynamic", "bert_base.qdq", "resnet18.f16",
         "resnet18.bf16"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--models", type=pathlib.Path, required=True)
    parser.add_argument("--folder", type=pathlib.Path, required=True)
    parser.add_argument("--turns", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=0.4, help="a block of runs")
    parser.add_argument("names", nargs="*", default=NAMES)
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    regie = args.build / "bin" / "regie"
    print("| network | threads | Regie ms | Regie float32 ms | ratio | ONNX Runtime ms | ratio |\n|---|---|---|---|---|---|---|")
    for name in args.names:
        network, _, way = name.rpartition(".")
        made, plain = args.folder / f"{name}.onnx", args.models / f"{network}.onnx"
        if way in narrow_models.TYPES:
            onnx.save(narrow_models.narrow(onnx.load(plain), way), made)
        else:
            quantise_models.main(args.models, args.folder, [name])
        with tempfile.TemporaryDirectory() as folder:
            work = pathlib.Path(folder)
            np.savez(work / "inputs.npz", **compare_ort.inputs_of(plain))
            for file, source in (("narrow.rgm", made), ("plain.rgm", plain)):
                subprocess.run([regie, "compile", source, "-o", work / file], check=True, stdout=subprocess.DEVNULL)
            for threads in (1, 2):
                sides = [("narrow", "regie", work / "narrow.rgm"), ("plain", "regie", work / "plain.rgm"), ("ort", "ort", made)]
                if way == "bf16":
                    sides.pop()  # ONNX Runtime has no bfloat16 on a processor
                workers = []
                for side, engine, model in sides:
                    (work / side).mkdir(exist_ok=True)
                    workers.append((side, compare_ort.Worker(args, work / side, engine, str(model), str(work / "inputs.npz"), threads)))
                blocks = {side: max(1, int(args.seconds * 1000 / min(worker.run(3)))) for side, worker in workers}
                samples = {side: [] for side, _ in workers}
                for turn in range(args.turns):
                    for side, worker in workers if turn % 2 == 0 else workers[::-1]:
                        time.sleep(compare_ort.PAUSE_SECONDS)
                        samples[side] += worker.run(blocks[side])
                for _, worker in workers:
                    worker.close()
                p50 = {side: statistics.median(values) for side, values in samples.items()}
                theirs = f"{p50['ort']:.2f} | {p50['narrow'] / p50['ort']:.2f}" if "ort" in p50 else " | "
                print(f"| {name} | {threads} | {p50['narrow']:.2f} | {p50['plain']:.2f} | {p50['narrow'] / p50['plain']:.2f} | "
                      f"{theirs} |", flush=True)


if __name__ == "__main__":
    main()
