"""Networks with symbolic axes at random shapes, one session each, beside ONNX Runtime.

    check_dynamic.py REGIE WORK --in FOLDER NAME... [--in FOLDER NAME...] [--shapes 6] [--seed 1] [--threads 2]

FOLDER/NAME.onnx each, at draws of dynamic.SHAPES. Every shape is run twice: new, and once all others were. The reference is ONNX
Runtime without optimisations, the bound max|diff| <= 1e-4 max|ref| + 1e-5 for floats, equality for the rest. The two runs of a
shape must be equal to the last bit.
"""
import argparse
import pathlib
import sys
import time

import dynamic


def check(regie, path, work, shapes, threads):
    """Lines about what is wrong, and the worst distance as a part of the bound."""
    made = dynamic.compiled(regie, path, work / f"{path.stem}.rgm", "--threads", threads)
    with dynamic.Running(regie, made, threads, work) as running:
        found = dynamic.visit(running, path, shapes)
    made.unlink()
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("regie", type=pathlib.Path)
    parser.add_argument("work", type=pathlib.Path)
    parser.add_argument("--in", dest="groups", action="append", nargs="+", required=True)
    parser.add_argument("--shapes", type=int, default=6)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    args.work.mkdir(parents=True, exist_ok=True)
    failed = 0
    for folder, *names in args.groups:
        for name in names:
            begin = time.monotonic()
            shapes = dynamic.shapes_of(name, args.shapes, args.seed)
            try:
                problems, worst = check(args.regie, pathlib.Path(folder) / f"{name}.onnx", args.work, shapes, args.threads)
            except Exception as error:
                problems, worst = [str(error)], float("nan")
            for problem in problems[:20]:
                print(f"{name}: {problem}")
            failed += len(problems)
            print(f"{name}: {len(shapes)} shapes, {len(problems)} wrong, at most {worst:.3g} of the bound, "
                  f"{time.monotonic() - begin:.1f} s", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
