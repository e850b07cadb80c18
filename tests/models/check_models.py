"""Runs networks with Regie and with ONNX Runtime and compares what both compute.

    check_models.py REGIE FOLDER WORK NAME... [--shape INPUT=1,3,48,320]... [--keep] [--parts PART,...]

FOLDER/NAME.onnx each. ONNX Runtime (CPU, optimisations off) is the reference; the bound is max|diff| <= 1e-4 max|ref| + 1e-5 for
floats, equality for the rest. Parts:

  every      without optimisation, 1 thread, from the .onnx file: every tensor of the model
  survivors  optimised, 2 threads, from the .onnx file: every tensor of the model that the optimised graph still has (those at
             the ends of fusions), found in the dump of a compile of the model as it is
  offline    optimised, from an .rgm file in a new process, 1 and 2 threads: the outputs
  plain      not optimised, from an .rgm file in a new process, 2 threads: the outputs

Exits 1 with one line a tensor that differs. What a part compares is counted and printed; none may compare nothing.
"""
import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import time

import numpy as np
import onnx
import onnxruntime

from inputs import input_options, random_inputs

PARTS = ("every", "survivors", "offline", "plain")
VALUE = re.compile(r'%(?:"((?:[^"\\]|\\.)*)"|([^\s:,()="]+))(?=: )')


def run(command):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=1200)
    if done.returncode:
        raise RuntimeError(f"exit {done.returncode}: {' '.join(map(str, command))}\n{done.stderr.strip()[-1500:]}")
    return done.stdout


def with_outputs(model, names):
    """A copy of the model whose outputs are `names` (each made by a node)."""
    tapped = onnx.ModelProto()
    tapped.CopyFrom(model)
    known = {o.name: o for o in model.graph.output}
    del tapped.graph.output[:]
    for name in names:
        tapped.graph.output.append(known.get(name) or onnx.ValueInfoProto(name=name))
    return tapped


def file_names(names):
    """The files of `regie run --output-dir`, by output."""
    used = {}
    for name in names:
        file = re.sub(r"[/\\:\x00-\x1f]", "_", name)
        file = ("_" if not file or file[0] == "." else "") + file + ".npy"
        while file in used.values():
            file = "_" + file
        used[name] = file
    return used


def compare(names, folder, expected):
    """Lines about what differs, and the worst ratio to the bound."""
    problems, worst = [], 0.0
    for name, file in file_names(names).items():
        got, want = np.load(folder / file), expected[name]
        if got.dtype != want.dtype or got.shape != want.shape:
            problems.append(f"{name} is {got.dtype}{list(got.shape)}, must be {want.dtype}{list(want.shape)}")
        elif want.dtype.kind != "f":
            if not np.array_equal(got, want):
                problems.append(f"{name} ({want.dtype}) is not equal")
        elif want.size:
            finite = np.isfinite(want)
            same = np.array_equal(got[~finite], want[~finite], equal_nan=True)
            largest = np.abs(want[finite]).max(initial=0)
            ratio = np.abs(got[finite].astype(np.float64) - want[finite]).max(initial=0) / (1e-4 * largest + 1e-5)
            worst = max(worst, ratio)
            if not same or not ratio <= 1:
                problems.append(f"{name} differs by {ratio:.3g} of the bound (greatest value {largest:.4g})")
    return problems, worst


class Check:
    def __init__(self, regie, path, work, shapes):
        self.regie, self.path, self.work, self.shapes = regie, path, work, shapes
        self.model = onnx.load(path)
        self.inputs = random_inputs(self.model, 7, lambda name, dims: shapes.get(name) or dims)
        self.input_options = input_options(self.inputs, work)
        # Constants are not computed.
        self.tensors = [o for n in self.model.graph.node if n.op_type != "Constant" for o in n.output if o]
        self.outputs = [o.name for o in self.model.graph.output]
        reference = work / "reference.onnx"
        onnx.save(with_outputs(self.model, self.tensors), reference)
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.log_severity_level = 4
        session = onnxruntime.InferenceSession(reference, options, providers=["CPUExecutionProvider"])
        self.expected = dict(zip(self.tensors, session.run(self.tensors, self.inputs)))
        for name in self.outputs:
            if name not in self.expected:  # an input or a weight that is an output as well
                self.expected[name] = self.inputs[name]

    def regie_run(self, model, names, *options):
        out = self.work / "out"
        shutil.rmtree(out, ignore_errors=True)
        run([self.regie, "run", model, *self.input_options, "--output-dir", out, *options])
        return compare(names, out, self.expected)

    def every(self):
        tapped = self.work / "tapped.onnx"
        onnx.save(with_outputs(self.model, self.tensors), tapped)
        return self.tensors, [self.regie_run(tapped, self.tensors, "--no-optimise", "--threads", 1)]

    def survivors(self):
        dump = self.work / "dump"
        shutil.rmtree(dump, ignore_errors=True)
        run([self.regie, "compile", self.path, "-o", self.work / "dumped.rgm", "--dump", dump])
        (self.work / "dumped.rgm").unlink()
        left = set()
        for line in sorted(dump.iterdir())[-1].read_text().splitlines():
            if not re.match(r"  %", line):
                continue  # the head of the graph, or a scalar within a fused chain
            for quoted, plain in VALUE.findall(line.split(" = ")[0]):
                left.add(quoted.replace('\\"', '"').replace("\\\\", "\\") or plain)
        names = [t for t in self.tensors if t in left]
        tapped = self.work / "tapped.onnx"
        onnx.save(with_outputs(self.model, names), tapped)
        return names, [self.regie_run(tapped, names, "--threads", 2)]

    def offline(self):
        made = self.work / "model.rgm"
        run([self.regie, "compile", self.path, "-o", made])
        return self.outputs, [self.regie_run(made, self.outputs, "--threads", n) for n in (1, 2)]

    def plain(self):
        made = self.work / "model.rgm"
        run([self.regie, "compile", self.path, "-o", made, "--no-optimise"])
        return self.outputs, [self.regie_run(made, self.outputs, "--threads", 2)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("regie")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("work", type=pathlib.Path)
    parser.add_argument("names", nargs="+")
    parser.add_argument("--shape", action="append", default=[], help="INPUT=1,3,48,320, for inputs with symbolic dimensions")
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--keep", action="store_true", help="leave the models and tensors in WORK")
    options = parser.parse_args()
    shapes = {}
    for text in options.shape:
        name, _, dims = text.rpartition("=")
        shapes[name] = [int(d) for d in dims.split(",")]
    failed = 0
    for name in options.names:
        work = options.work / "-".join([name, *(text.replace("=", "_").replace(",", "x") for text in options.shape)])
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(parents=True)
        try:
            check = Check(options.regie, options.folder / f"{name}.onnx", work, shapes)
        except Exception as error:
            print(f"{name}: {error}")
            failed += 1
            continue
        for part in options.parts.split(","):
            begin = time.monotonic()
            try:
                names, results = getattr(check, part)()
                problems = [p for some, _ in results for p in some]
                worst = max(w for _, w in results)
                if not names:
                    problems.append("no tensor was compared")
            except Exception as error:
                names, worst, problems = [], 0.0, [str(error)]
            for problem in problems[:20]:
                print(f"{name} {part}: {problem}")
            failed += len(problems)
            print(f"{name} {part}: {len(names)} tensors, {len(problems)} wrong, at most {worst:.3g} of the bound, "
                  f"{time.monotonic() - begin:.1f} s", flush=True)
        if not options.keep:
            shutil.rmtree(work, ignore_errors=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
