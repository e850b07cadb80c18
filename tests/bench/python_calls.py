"""What a call from Python costs beside the same run through the C API, and how two threads on one model get on.

    PYTHONPATH=... python_calls.py --build BUILD [--models build/models] [--calls 1000] [--turns 7]

* a model of three operators (MatMul, Add, Relu) on 1 x 16 numbers: the median of --calls calls of model.run, in turns with `regie
  bench` on the same model file, which runs through the C API. Their difference must be at most 20 us. The second row asks for
  sizes that the model leaves open
* resnet18 on one thread a run: the runs a second of one Python thread and of two, in turns; two on two processors must be at
  least 1.6 times as many

The process fails if a limit is missed.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import numpy as np
import onnx
import onnx.parser

import regie

LIMIT_US, LIMIT_SCALE = 20.0, 1.6


def three_operators(rows):
    random = np.random.default_rng(1)
    model = onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["" : 17]>
    g (float[{rows},16] x) => (float[{rows},16] y) {{
        a = MatMul(x, w)
        b = Add(a, k)
        y = Relu(b)
    }}""")
    for name, shape in (("w", (16, 16)), ("k", (16,))):
        model.graph.initializer.append(onnx.numpy_helper.from_array(random.standard_normal(shape).astype(np.float32), name))
    return model


def overhead(args, rows, folder):
    """Median microseconds of a call, of a run, and how many tasks that is."""
    model = regie.compile(three_operators(rows), threads=1)
    path = pathlib.Path(folder) / "three.rgm"
    model.save(path)
    x = {"x": np.random.default_rng(2).standard_normal((1, 16)).astype(np.float32)}
    tasks = model.report["tasks"]
    model.run(x)
    ours, theirs = [], []
    for _ in range(args.turns):
        taken = []
        for _ in range(args.calls):
            begin = time.perf_counter_ns()
            model.run(x)
            taken.append(time.perf_counter_ns() - begin)
        ours.append(statistics.median(taken) / 1000)
        done = subprocess.run([args.build / "bin" / "regie", "bench", path, "--json", "--duration", "0.1", "--iterations", str(args.calls),
                               "--warm-up-ms", "20", "--shape", "x=1,16"], check=True, capture_output=True, text=True)
        theirs.append(json.loads(done.stdout)["latency_ms"]["median"] * 1000)
    return statistics.median(ours), statistics.median(theirs), tasks


def rate(model, x, threads, seconds):
    """Runs a second of so many threads together."""
    counts = [0] * threads
    start = threading.Barrier(threads + 1)
    stop = threading.Event()

    def work(i):
        model.run(x)
        start.wait()
        while not stop.is_set():
            model.run(x)
            counts[i] += 1

    workers = [threading.Thread(target=work, args=(i,)) for i in range(threads)]
    for w in workers:
        w.start()
    start.wait()
    begin = time.perf_counter()
    time.sleep(seconds)
    stop.set()
    for w in workers:
        w.join()
    return sum(counts) / (time.perf_counter() - begin)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--models", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[2] / "build" / "models")
    parser.add_argument("--calls", type=int, default=1000)
    parser.add_argument("--turns", type=int, default=7)
    args = parser.parse_args()
    missed = []
    print("| model of three operators | tasks | Python us a call | C API us a run | overhead us | wanted |\n|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for rows in (1, "N"):
            ours, theirs, tasks = overhead(args, rows, folder)
            print(f"| x: float[{rows},16] | {tasks} | {ours:.2f} | {theirs:.2f} | {ours - theirs:.2f} | <= {LIMIT_US:.0f} |", flush=True)
            if ours - theirs > LIMIT_US:
                missed.append(f"a call costs {ours - theirs:.1f} us more than a run")
    model = regie.compile(args.models / "resnet18.onnx", threads=1)
    x = {"input": np.random.default_rng(3).standard_normal((1, 3, 224, 224)).astype(np.float32)}
    rate(model, x, 2, 0.5)
    one, two = [], []
    for turn in range(args.turns):
        for threads, rates in ((1, one), (2, two)) if turn % 2 == 0 else ((2, two), (1, one)):
            rates.append(rate(model, x, threads, 1.0))
    scale = statistics.median(two) / statistics.median(one)
    print(f"\n| one model | 1 thread, runs/s | 2 threads, runs/s | scales by | wanted |\n|---|---|---|---|---|\n"
          f"| resnet18 | {statistics.median(one):.1f} | {statistics.median(two):.1f} | {scale:.2f} | >= {LIMIT_SCALE} |")
    if scale < LIMIT_SCALE:
        missed.append(f"two threads run {scale:.2f} times as much as one")
    for line in missed:
        print(line, file=sys.stderr)
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
