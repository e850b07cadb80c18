"""How far off results are on the simulated accelerators, beside what the engine `aicore` estimates while it compiles.

    estimates.py REGIE WORK MODEL.onnx... [--shape MODEL:INPUT=1,3,320,480]... [--target ascend910a-sim]... [--inputs noise]... [--set aicore.operands=f16]

Weights and inputs are rounded to halves, for the target and for ONNX Runtime in f32, as check_simulated.py does. Inputs are other than those
that the engine tries: NumPy's noise, numbers in [0, 1), the printed page of tests/models/ocr as recognisers and as classifiers are given it,
a landscape of waves and edges, one value everywhere. Per network, target and kind of inputs: the worst relative error (Euclidean norm) of
any tensor that the graph for the target still has. All of them are looked at as outputs of the model; then its own outputs and the
three tensors that rounding disturbs most, as a model with fewer outputs has more between tasks. A size that a model leaves open is 1
unless --shape says it.

Prints a table, and at the end the largest ratio of what was measured to what was estimated. Exits 1 if an error is above 5e-3.
"""
import argparse
import json
import pathlib
import re
import shutil
import subprocess
import sys
import time

import numpy as np
import onnx

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(SOURCE / "tests/models"))
import check_ocr  # noqa: E402
from check_models import file_names, run, with_outputs  # noqa: E402
from check_simulated import BOUND, TARGETS, error_of, rounded, session_of, surviving_tensors  # noqa: E402
from inputs import INTEGERS, input_options, ports_of  # noqa: E402
from rounder import Rounder, halves  # noqa: E402


def page(random, dims, mean, deviation):
    height, width = dims[-2:]
    picture = check_ocr.read_pgm(SOURCE / "tests/models/ocr/picture.pgm")
    one = check_ocr.as_input(check_ocr.resized(picture, height, width), mean, deviation)[0]
    channels = [one[i % 3] for i in range(int(np.prod(dims[1:-2])))]
    return np.broadcast_to(np.stack(channels).reshape(1, *dims[1:]), dims)


def landscape(random, dims):
    y, x = np.mgrid[0:1:dims[-2] * 1j, 0:1:dims[-1] * 1j]
    planes = []
    for _ in range(int(np.prod(dims[:-2]))):
        a, b, c, d, e = random.uniform(size=5)
        plane = 0.5 + 0.3 * np.sin(9 * a * x + 7 * b * y + 6 * c) + 0.2 * (y > d) * np.cos(20 * e * x)
        planes.append((plane - 0.45) / 0.225)
    return np.stack(planes).reshape(dims)


# By name: of an array of floats with at least two axes.
KINDS = {
    "noise": lambda random, dims: random.standard_normal(dims),
    "unit": lambda random, dims: random.uniform(size=dims),
    "page": lambda random, dims: page(random, dims, (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
    "page1": lambda random, dims: page(random, dims, (0.5, 0.5, 0.5), (0.5, 0.5, 0.5)),
    "waves": landscape,
    "constant": lambda random, dims: np.full(dims, 0.7),
}


def inputs_of(model, kind, shapes, seed=23):
    random, arrays = np.random.default_rng(seed), {}
    for value in ports_of(model):
        dims = [d.dim_value or 1 for d in value.type.tensor_type.shape.dim]
        dims = shapes.get(value.name, dims)
        dtype = onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        if np.issubdtype(dtype, np.integer):
            most = INTEGERS.get(value.name, 10)
            a = random.integers(0, most, dims)
            if kind in ("page", "constant"):
                a = np.ones(dims) if most == 2 else np.where(np.arange(dims[-1]) < 9, a, 0) + np.zeros(dims)
            arrays[value.name] = a.astype(dtype)
        elif dtype == np.bool_:
            arrays[value.name] = random.integers(0, 2, dims).astype(bool)
        else:
            a = KINDS[kind](random, dims) if len(dims) >= 3 else KINDS["unit" if kind == "unit" else "noise"](random, dims)
            arrays[value.name] = halves(a.astype(np.float32)).astype(dtype)
    return arrays


class Network:
    def __init__(self, regie, path, work, shapes, more):
        self.regie, self.work, self.more, self.shapes = regie, work, more, shapes
        self.model = rounded(onnx.load(path))
        self.path = work / "rounded.onnx"
        onnx.save(self.model, self.path)
        self.tensors = [o for n in self.model.graph.node if n.op_type != "Constant" for o in n.output if o]
        self.references, self.arrays, self.floor = {}, {}, None
        first = inputs_of(self.model, "noise", shapes)
        self.shape_options = [o for name, a in first.items() for o in ("--shape", f"{name}={','.join(map(str, a.shape))}")]

    def reference(self, kind):
        if kind not in self.references:
            arrays = self.arrays[kind] = inputs_of(self.model, kind, self.shapes)
            self.references[kind] = self.values(self.model, arrays)
            if self.floor is None:
                floor = self.values(Rounder(self.model, operands=1).model, arrays)
                self.floor = {t: error_of(floor[t], self.references[kind][t]) for t in self.tensors}
        return self.references[kind]

    def values(self, model, arrays):
        path = self.work / "reference.onnx"
        onnx.save(with_outputs(model, self.tensors), path)
        try:
            values = dict(zip(self.tensors, session_of(path).run(self.tensors, arrays)))
        finally:
            path.unlink()
        # ONNX Runtime's sigmoid is right to 1e-7 in all, which is much of what it leaves near zero.
        for node in model.graph.node:
            if node.op_type == "Sigmoid" and node.input[0] in values:
                values[node.output[0]] = (1 / (1 + np.exp(-values[node.input[0]].astype(np.float64)))).astype(np.float32)
        return values

    def compiled(self, path, out, target, *more):
        return run([self.regie, "compile", path, "-o", out, "--target", target, "--json", *self.more, *self.shape_options, *more])

    def measure(self, target, kinds):
        """Worst error by kind, the estimate, products in two halves and in all, milliseconds of the compile, predicted time."""
        dump = self.work / "dump"
        shutil.rmtree(dump, ignore_errors=True)
        report = json.loads(self.compiled(self.path, self.work / "plain.rgm", target, "--dump", dump))
        names = surviving_tensors(sorted(dump.iterdir())[-1], self.tensors)
        report = report["report"] if "report" in report else report
        finding = next((f for f in find_all(report, "findings") if f["topic"] == "operands"), None)
        outputs = [o.name for o in self.model.graph.output]
        self.reference(kinds[0])
        few = outputs + sorted((t for t in names if t not in outputs and self.references[kinds[0]][t].dtype == np.float32), key=self.floor.get)[-3:]
        worst = {}
        for looked_at in ([*outputs, *(n for n in names if n not in outputs)], few):
            tapped, offline = self.work / "tapped.onnx", self.work / "tapped.rgm"
            onnx.save(with_outputs(self.model, looked_at), tapped)
            self.compiled(tapped, offline, target)
            for kind in kinds:
                want, out = self.reference(kind), self.work / "out"
                shutil.rmtree(out, ignore_errors=True)
                run([self.regie, "run", offline, *input_options(self.arrays[kind], self.work), "--output-dir", out])
                for name, file in file_names(looked_at).items():
                    error = error_of(np.load(out / file), want[name])
                    if not error <= worst.get(kind, (-1, ""))[0]:
                        worst[kind] = (error, name)
        return worst, finding, report


def find_all(report, key):
    """Wherever it stands in the report."""
    if isinstance(report, dict):
        for k, v in report.items():
            if k == key and isinstance(v, list):
                yield from v
            else:
                yield from find_all(v, key)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("regie")
    parser.add_argument("work", type=pathlib.Path)
    parser.add_argument("models", nargs="+", type=pathlib.Path)
    parser.add_argument("--shape", action="append", default=[])
    parser.add_argument("--target", action="append", choices=TARGETS)
    parser.add_argument("--inputs", action="append", choices=[*KINDS])
    parser.add_argument("--set", action="append", default=[])
    options = parser.parse_args()
    kinds = options.inputs or [*KINDS]
    shapes = {}
    for text in options.shape:
        network, name, dims = re.fullmatch(r"([^:]+):(.+)=([\d,]+)", text).groups()
        shapes.setdefault(network, {})[name] = [int(d) for d in dims.split(",")]
    print(f"| network | target | two halves | estimated, all as halves | estimated | {' | '.join(kinds)} |")
    print(f"|---|---|---|---|---|{'---|' * len(kinds)}", flush=True)
    ratios, failed = [], False
    for path in options.models:
        work = options.work / path.stem
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(parents=True)
        network = Network(options.regie, path, work, shapes.get(path.stem, {}), [o for s in options.set for o in ("--set", s)])
        for target in options.target or TARGETS:
            began = time.monotonic()
            worst, finding, report = network.measure(target, kinds)
            figures = finding["figures"] if finding else {}
            estimate = figures.get("estimated")
            words = [path.stem, target.removesuffix("-sim"), f"{figures.get('two_halves', 0):.0f} of {figures.get('products', 0):.0f}",
                     f"{figures['estimated_all_halves']:.1e}" if estimate is not None else "-", f"{estimate:.1e}" if estimate is not None else "-"]
            print("| " + " | ".join(words + [f"{worst[k][0]:.1e}" for k in kinds]) + " |", flush=True)
            most = max(worst.values())
            failed |= not most[0] <= BOUND
            if estimate:
                ratios.append((most[0] / estimate, path.stem, target))
            if not most[0] <= BOUND:
                print(f"  {path.stem} on {target}: {most[1]} is {most[0]:.1e} off", file=sys.stderr)
            print(f"  {path.stem} on {target}: {time.monotonic() - began:.1f} s; {finding['text'] if finding else 'no finding'}", file=sys.stderr)
        shutil.rmtree(work)
    if ratios:
        print("\nmeasured / estimated, the largest: " + ", ".join(f"{r:.2f} ({n}, {t})" for r, n, t in sorted(ratios)[-3:][::-1]))
    sys.exit(failed)


if __name__ == "__main__":
    main()
