"""Networks with symbolic axes at random shapes: right, as quick as a plan for the one shape, and soon ready for a new one.

    dynamic_shapes.py --build BUILD --work FOLDER [--dynamic FOLDER] [--models FOLDER] [--families FOLDER] [--shapes 50] [NAME...]

One row of a table each, of tests/models/dynamic.py (all unless named), made where they are not there: --dynamic by
export_dynamic.py, --models by export_models.py, --families by export_families.py.

* outputs at every shape beside ONNX Runtime without optimisations: max|diff| <= 1e-4 max|ref| + 1e-5, the second visit equal to
  the first to the last bit
* the first run of a new shape beside the median of the later ones: within 10 times that or 20 ms, whichever is more. The first
  shape is left out of this: it is the load of the model as well
* for --timed of the shapes, the median beside that of a model compiled for this shape alone, in turns, each in a process of its
  own: within 1.15

The process fails if a limit is missed.
"""
import argparse
import math
import pathlib
import statistics
import subprocess
import sys
import time

import numpy as np
import onnx

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "models"))
import dynamic
import export_dynamic
import export_models

LIMITS = {"ratio": 1.15, "first": 10.0, "first_ms": 20.0}
PAUSE_SECONDS = 0.05


def folder_of(name, args):
    if name in export_dynamic.AXES:
        return args.dynamic, "export_dynamic.py", [name]
    if name in export_models.OCR or name == "silero_vad":
        return args.models, "export_models.py", [name]
    return args.families, "export_families.py", []


def file_of(name, args):
    folder, script, names = folder_of(name, args)
    path = folder / f"{name}.onnx"
    if not path.exists():
        subprocess.run(["/usr/bin/python3", "-W", "ignore", ROOT / "tests" / "models" / script, folder, *names], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return path


def block_size(milliseconds, seconds):
    return max(3, min(500, int(seconds * 1000 / max(1e-3, milliseconds))))


def visit(args, path, shapes, threads):
    """Lines about what is wrong, the worst distance, and the first run and the median of the later ones of each shape."""
    made = dynamic.compiled(args.regie, path, args.work / "dynamic.rgm", "--threads", threads)
    taken = []
    with dynamic.Running(args.regie, made, threads, args.work) as running:
        def later(first):
            _, runs = running.again(max(3, min(15, int(150 / max(0.1, first)))))
            taken.append((first, statistics.median(runs)))

        problems, worst = dynamic.visit(running, path, shapes, later)
    return problems, worst, taken


def beside_static(args, path, shape, threads):
    """Median milliseconds of the model for all shapes and of the model for this one."""
    model = onnx.load(path)
    arrays = dynamic.inputs_at(model, shape)
    static = dynamic.compiled(args.regie, path, args.work / "static.rgm", "--threads", threads, *dynamic.shape_options(shape))
    with dynamic.Running(args.regie, args.work / "dynamic.rgm", threads, args.work) as a, \
            dynamic.Running(args.regie, static, threads, args.work) as b:
        sides = [(a, []), (b, [])]
        for running, _ in sides:
            running.run(arrays, 2)
        count = min(block_size(min(running.again(3)[1]), args.seconds) for running, _ in sides)
        for turn in range(args.turns):
            for running, samples in sides if turn % 2 == 0 else sides[::-1]:
                time.sleep(PAUSE_SECONDS)
                samples += running.again(count)[1]
    return [statistics.median(samples) for _, samples in sides]


def geometric(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def text_of(shape):
    return " ".join(f"{name}={'x'.join(map(str, dims))}" for name, dims in shape.items())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--dynamic", type=pathlib.Path, default=ROOT / "build" / "dynamic")
    parser.add_argument("--models", type=pathlib.Path, default=ROOT / "build" / "models")
    parser.add_argument("--families", type=pathlib.Path, default=ROOT / "build" / "families")
    parser.add_argument("--shapes", type=int, default=50)
    parser.add_argument("--timed", type=int, default=4)
    parser.add_argument("--turns", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=0.15, help="a block of runs")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("names", nargs="*", default=list(dynamic.SHAPES))
    args = parser.parse_args()
    args.regie = args.build / "bin" / "regie"
    args.work.mkdir(parents=True, exist_ok=True)
    failed = []
    print("| network | threads | shapes | wrong | of the bound | new shape ms, worst (its p50) | of its limit "
          "| dynamic / static, mean | greatest | at |\n|---|---|---|---|---|---|---|---|---|---|", flush=True)
    for name in args.names:
        path = file_of(name, args)
        shapes = dynamic.shapes_of(name, args.shapes, args.seed)
        for threads in map(int, args.threads.split(",")):
            problems, worst, taken = visit(args, path, shapes, threads)
            parts = [(first / max(LIMITS["first"] * p50, LIMITS["first_ms"]), first, p50) for first, p50 in taken[1:]]
            part, first, p50 = max(parts)
            random = np.random.default_rng(args.seed)
            chosen = [shapes[i] for i in random.permutation(len(shapes))[:args.timed]]
            ratios = []
            for shape in chosen:
                ours, theirs = beside_static(args, path, shape, threads)
                ratios.append((ours / theirs, shape))
            most, at = max(ratios, key=lambda r: r[0])
            print(f"| {name} | {threads} | {len(shapes)} | {len(problems)} | {worst:.3f} | {first:.1f} ({p50:.2f}) | {part:.2f} | "
                  f"{geometric([r for r, _ in ratios]):.2f} | {most:.2f} | {text_of(at)} |", flush=True)
            failed += [f"{name}, {threads} threads: {p}" for p in problems]
            if part > 1:
                failed.append(f"{name}, {threads} threads: a new shape took {first:.1f} ms, {part:.2f} of the limit")
            if most > LIMITS["ratio"]:
                failed.append(f"{name}, {threads} threads: {most:.2f} times a plan for {text_of(at)}")
    for line in failed[:100]:
        print(line, file=sys.stderr)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
