"""Networks with symbolic axes, the shapes that they are tried at, and one running in a process of its own.

`SHAPES[name](random)` gives the dimensions of each input for one draw. The networks are those of export_dynamic.py (whose
weights are those of export_models.py), the OCR networks, which come with symbolic axes, and those of export_families.py.
"""
import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import onnx
import onnxruntime

from inputs import random_inputs

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "bench"))


def pictures(name, batch, sizes, channels=3):
    def draw(random):
        return {name: (random.integers(1, batch + 1), channels, *(int(random.choice(s)) for s in sizes))}

    return draw


def encoder(batch, steps, *names):
    def draw(random):
        shape = (random.integers(1, batch + 1), random.integers(1, steps + 1))
        return {name: shape for name in names}

    return draw


def lstm(random):
    return {"input": (random.integers(1, 9), random.integers(1, 151), 128)}


def gru(random):
    n = random.integers(1, 9)
    return {"input": (n, random.integers(1, 151), 128), "h0": (1, n, 256)}


def decoder(random):
    n = random.integers(1, 5)
    # No keys and values yet is the first step of every text.
    return {"ids": (n, random.integers(1, 9)), "past": (2, 2, n, 2, random.integers(0, 17), 8)}


def audio(random):
    return {"wave": (1, 1, random.integers(60, 1200)), "h": (1, 1, 12), "c": (1, 1, 12)}


def speech(random):
    n = random.integers(1, 9)
    return {"input": (n, 512), "state": (2, n, 128), "sr": ()}


ANY = range(72, 289)  # what five halvings leave is at least three places
SHAPES = {name: pictures("input", 3, (ANY, ANY)) for name in
          ("resnet18", "resnet50", "mobilenet_v2", "mobilenet_v3_large", "squeezenet1_1", "densenet121", "efficientnet_b0")}
SHAPES |= {name: pictures("input", 8, ([224], [224])) for name in ("vgg16", "vit_b_16")}
SHAPES |= {
    "bert_base": encoder(4, 192, "input_ids", "attention_mask", "token_type_ids"),
    "lstm": lstm,
    "gru": gru,
    "ocr_detector": pictures("x", 2, (range(64, 641, 32), range(64, 641, 32))),  # it adds maps of 1/32 of the size
    "ocr_recogniser": pictures("x", 4, ([48], range(16, 641))),
    "ocr_classifier": pictures("x", 6, ([48], range(16, 321))),
    "silero_vad": speech,
    "unet": pictures("x", 3, (range(4, 97, 4), range(4, 97, 4))),
    "decoder": decoder,
    "mixer": pictures("x", 8, ([32], [32])),
    "audio": audio,
    "detector": pictures("x", 3, (range(32, 161), range(32, 161))),
    "words": encoder(5, 40, "ids", "mask"),
}


def shapes_of(name, count, seed):
    """`count` draws, in their order, without those that come again."""
    random = np.random.default_rng([seed, *name.encode()])
    drawn = []
    for _ in range(count):
        shape = {port: tuple(int(d) for d in dims) for port, dims in SHAPES[name](random).items()}
        if shape not in drawn:
            drawn.append(shape)
    return drawn


def shape_options(shape):
    return [word for name, dims in shape.items() for word in ("--shape", f"{name}={','.join(map(str, dims))}")]


def inputs_at(model, shape, seed=7):
    """`model`: an onnx.ModelProto."""
    arrays = random_inputs(model, seed, lambda name, dims: list(shape[name]))
    if "sr" in arrays:
        arrays["sr"] = np.array(16000, np.int64)  # windows of 512 are of that rate
    return arrays


def reference(path, threads=2):
    """ONNX Runtime without its optimisations."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    options.intra_op_num_threads = threads
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def difference(got, want):
    """What is wrong with an output, or None; and its distance as a part of the bound 1e-4 max|ref| + 1e-5."""
    if got.dtype != want.dtype or got.shape != want.shape:
        return f"is {got.dtype}{list(got.shape)}, must be {want.dtype}{list(want.shape)}", np.inf
    if want.dtype.kind != "f":
        return (None, 0.0) if np.array_equal(got, want) else (f"({want.dtype}) is not equal", np.inf)
    if not want.size:
        return None, 0.0
    finite = np.isfinite(want)
    largest = np.abs(want[finite]).max(initial=0)
    ratio = np.abs(got[finite].astype(np.float64) - want[finite]).max(initial=0) / (1e-4 * largest + 1e-5)
    if not np.array_equal(got[~finite], want[~finite], equal_nan=True) or not ratio <= 1:
        return f"differs by {ratio:.3g} of the bound (greatest value {largest:.4g})", ratio
    return None, ratio


def compiled(regie, path, made, *options):
    done = subprocess.run([str(regie), "compile", str(path), "-o", str(made), *map(str, options)], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"exit {done.returncode}: compile {path} {' '.join(map(str, options))}: {done.stderr.strip()[-1500:]}")
    return made


class Running:
    """A model in a process of its own, with one session and one context."""

    def __init__(self, regie, model, threads, work):
        environment = dict(os.environ, REGIE_BUILD=str(pathlib.Path(regie).resolve().parents[1]), OMP_NUM_THREADS=str(threads))
        self.files = work / f"{pathlib.Path(model).name}.in.npz", work / f"{pathlib.Path(model).name}.out.npz"
        self.process = subprocess.Popen([sys.executable, "-B", __file__, str(model), str(threads), *map(str, self.files)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)

    def run(self, arrays, count):
        """Runs `count` times on these arrays; the outputs of the last and the milliseconds of each."""
        np.savez(self.files[0], **arrays)
        return self.again(count, True)

    def again(self, count, bind=False):
        self.process.stdin.write(json.dumps([count, bind]) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"the process of the model ended with code {self.process.wait()}")
        answer = json.loads(line)
        if isinstance(answer, str):
            raise RuntimeError(answer)
        with np.load(self.files[1]) as file:
            return [file[f"arr_{i}"] for i in range(len(file.files))], answer

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()


def visit(running, path, shapes, new=None):
    """Runs every shape, new, and once more when all others were: lines about what is wrong beside ONNX Runtime or the second
    time, and the worst distance as a part of the bound. `new` gets the milliseconds of each first run, right after it."""
    model = onnx.load(path)
    names = [o.name for o in model.graph.output]
    session = reference(str(path))
    problems, worst, seen = [], 0.0, []
    for shape in shapes:
        arrays = inputs_at(model, shape)
        got, taken = running.run(arrays, 1)
        if new:
            new(taken[0])
        seen.append(got)
        for name, a, b in zip(names, got, session.run(names, arrays), strict=True):
            problem, ratio = difference(a, b)
            worst = max(worst, ratio)
            if problem:
                problems.append(f"{shape}: {name} {problem}")
    for shape, first in zip(shapes, seen, strict=True):
        again, _ = running.run(inputs_at(model, shape), 1)
        if not all(np.array_equal(a, b, equal_nan=a.dtype.kind == "f") for a, b in zip(again, first, strict=True)):
            problems.append(f"{shape}: the second run gives something else")
    return problems, worst


def serve(model, threads, given, results):
    import time

    import compare_worker

    runner = None
    for line in sys.stdin:
        count, bind = json.loads(line)
        try:
            if bind:
                with np.load(given) as file:
                    arrays = {name: file[name] for name in file.files}
                if runner is None:
                    runner = compare_worker.Regie(model, threads)
                    runner.load(arrays)
                else:
                    runner.bind(arrays)
            taken = []
            for _ in range(count):
                begin = time.perf_counter()
                outputs = runner.run()
                taken.append((time.perf_counter() - begin) * 1000)
            np.savez(results, *outputs)
            print(json.dumps(taken), flush=True)
        except RuntimeError as error:
            print(json.dumps(str(error)), flush=True)


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4])
