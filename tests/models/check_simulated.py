"""Compares networks on the simulated accelerators with ONNX Runtime in f32 that was given the same halves.

    check_simulated.py REGIE FOLDER WORK [NAME...] [--target ascend910a-sim]... [--operands auto|f16|f16x2]...

NAMEs are networks (FOLDER/NAME.onnx), `digits` or `ocr`; all of them if none is named, on all four targets if none is named, with all
settings of the engine's parameter `operands` if none is named; `auto` is the targets as they are. Prints a line each and a table; exits 1
if a bound is missed.

  a network  inputs and weights are rounded to halves, in a copy of the model. At every tensor that the graph for the target still
             has, relative errors in the Euclidean norm (integers: equal). Of its own operators, ONNX Runtime given the operands that
             the target had: at most 5e-3. From the inputs on, with "auto" and "f16x2": at most 5e-3 as well. With "f16": at most
             what NETWORKS says. That is 1.2 times what was measured and may be more than 5e-3: networks of random weights make more of
             each error in the next layer, and ONNX Runtime, when nothing but the operands of its products are rounded to halves, is as
             far off ("halves" in the table).
  digits     the model of tests/models/digits: of its 360 images at least 97 % read right, and the scores within 5e-3
  ocr        the text of tests/models/ocr/picture.pgm, read by detector, classifier and recogniser, all on the target
"""
import argparse
import itertools
import pathlib
import re
import shutil
import subprocess
import sys
import time

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper

import check_ocr
from check_models import VALUE, file_names, run, with_outputs
from inputs import input_options, random_inputs
from rounder import Rounder, halves
from targets import with_aicore

HERE = pathlib.Path(__file__).resolve().parent
TARGETS = ("ascend310-sim", "ascend310p3-sim", "ascend910a-sim", "ascend910b3-sim")
BOUND = 5e-3
GREEDY = ("--set", "placement=greedy")
OPERANDS = ("auto", "f16", "f16x2")  # the default of the targets first


def printed_text(height, width, part, mean=(0.5, 0.5, 0.5), deviation=(0.5, 0.5, 0.5)):
    """The upper part of the picture of tests/models/ocr: trained networks get what they were trained for, the others noise."""
    picture = check_ocr.read_pgm(HERE / "ocr/picture.pgm")
    return check_ocr.as_input(check_ocr.resized(picture[:int(len(picture) * part)], height, width), mean, deviation)


# The inputs, random where there are none, and how far off any tensor may be with operands = "f16".
NETWORKS = {
    "resnet50": ({}, 1.15e-2),
    "mobilenet_v2": ({}, 5.3e-2),
    "bert_base": ({}, 1e-3),
    "ocr_detector": ({"x": printed_text(320, 480, 1, (0.485, 0.456, 0.406), (0.229, 0.224, 0.225))}, BOUND),
    "ocr_classifier": ({"x": printed_text(48, 192, 0.5)}, 1e-2),
    "ocr_recogniser": ({"x": printed_text(48, 320, 0.5)}, 1.95e-2),
}


def rounded(model):
    """A copy whose weights are halves. Single numbers stay: they are parameters of formulas, as an epsilon is."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    weights = list(copy.graph.initializer)
    weights += [a.t for n in copy.graph.node if n.op_type == "Constant" for a in n.attribute if a.name == "value"]
    for tensor in weights:
        if tensor.data_type == onnx.TensorProto.FLOAT:
            array = numpy_helper.to_array(tensor)
            if array.size > 1:
                tensor.CopyFrom(numpy_helper.from_array(halves(array), tensor.name))
    return copy


def session_of(path):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def error_of(got, want):
    """Relative, in the Euclidean norm; infinite where shapes, types, or values that are not finite differ."""
    if got.dtype != want.dtype or got.shape != want.shape:
        return np.inf
    if want.dtype.kind != "f":
        return 0.0 if np.array_equal(got, want) else np.inf
    got, want = got.astype(np.float64), want.astype(np.float64)
    finite = np.isfinite(want)
    if not np.array_equal(got[~finite], want[~finite], equal_nan=True) or not np.isfinite(got[finite]).all():
        return np.inf
    norm, difference = np.linalg.norm(want[finite]), np.linalg.norm((got - want)[finite])
    return difference / norm if norm else (0.0 if difference == 0 else np.inf)


def surviving_tensors(stage, tensors):
    """Those of the model's tensors that a dumped graph has."""
    left = set()
    for line in stage.read_text().splitlines():
        if re.match(r"  %", line):
            for quoted, plain in VALUE.findall(line.split(" = ")[0]):
                left.add(quoted.replace('\\"', '"').replace("\\\\", "\\") or plain)
    return [t for t in tensors if t in left]


def target_file(work, target, operands):
    """The target with that setting of its AI Cores; its own text where it is the default."""
    if operands == OPERANDS[0]:
        return target
    path = work / f"{target}-{operands}.toml"
    path.write_text(with_aicore(target, f'operands = "{operands}"'))
    return path


class Network:
    """A network whose inputs and weights are halves, and what ONNX Runtime makes of them."""

    def __init__(self, regie, path, work, given, bound):
        self.regie, self.work, self.bound = regie, work, bound
        work.mkdir(parents=True, exist_ok=True)
        self.model = rounded(onnx.load(path))
        inputs = given or random_inputs(self.model, 7, lambda name, dims: dims)
        inputs = {name: halves(a) if a.dtype == np.float32 else a for name, a in inputs.items()}
        self.input_options = input_options(inputs, work)
        self.shape_options = [o for name, a in inputs.items() for o in ("--shape", f"{name}={','.join(map(str, a.shape))}")]
        self.path = work / "rounded.onnx"
        onnx.save(self.model, self.path)
        self.tensors = [o for n in self.model.graph.node if n.op_type != "Constant" for o in n.output if o]
        self.expected = dict(zip(self.tensors, self.run(with_outputs(self.model, self.tensors), self.tensors, inputs)))
        floor = dict(zip(self.tensors, self.run(with_outputs(Rounder(self.model, operands=1).model, self.tensors), self.tensors, inputs)))
        self.floor = {name: error_of(floor[name], self.expected[name]) for name in self.tensors}
        self.inputs = inputs

    def run(self, model, names, inputs):
        path = self.work / "reference.onnx"
        onnx.save(model, path)
        try:
            return session_of(path).run(names, inputs)
        finally:
            path.unlink()

    def own_errors(self, got, operands):
        """Of each tensor, against ONNX Runtime with the operands that its operators had on the target."""
        model = onnx.ModelProto()
        model.CopyFrom(self.model)
        for node in model.graph.node:
            for i, name in enumerate(node.output):
                if name in got:
                    node.output[i] = name + " of its own"
        del model.graph.output[:]
        feeds = dict(self.inputs)
        for name, array in got.items():
            feeds[name] = halves(array) if array.dtype == np.float32 and operands == "f16" else array
            kind = onnx.helper.np_dtype_to_tensor_dtype(array.dtype)
            model.graph.input.append(onnx.helper.make_tensor_value_info(name, kind, array.shape))
            model.graph.output.append(onnx.ValueInfoProto(name=name + " of its own"))
        own = self.run(model, [name + " of its own" for name in got], feeds)
        return {name: error_of(array, own[i]) for i, (name, array) in enumerate(got.items())}

    def compiled(self, path, out, target, *more):
        """What the compiler says. All that can be on the AI Cores is where all is looked at: results that leave them change what placement
        by cost prefers."""
        return run([self.regie, "compile", path, "-o", out, "--target", target, *self.shape_options, *more])

    def survivors(self, target):
        """The tensors of the model that the graph for the target has."""
        dump = self.work / "dump"
        shutil.rmtree(dump, ignore_errors=True)
        self.compiled(self.path, "/dev/null", target, "--dump", dump, *GREEDY)
        return surviving_tensors(sorted(dump.iterdir())[-1], self.tensors)

    def on_target(self, names, target, *more):
        """What these tensors are there, and the engines with how many operators they have."""
        tapped, offline, out = self.work / "tapped.onnx", self.work / "tapped.rgm", self.work / "out"
        onnx.save(with_outputs(self.model, names), tapped)
        shutil.rmtree(out, ignore_errors=True)
        words = self.compiled(tapped, offline, target, *more)
        run([self.regie, "run", offline, *self.input_options, "--output-dir", out])
        got = {name: np.load(out / file) for name, file in file_names(names).items()}
        shutil.rmtree(out)
        return got, {name: int(count) for count, name in re.findall(r"(\d+) operators? on (\w+)", words)}

    def check(self, target, operands):
        names = self.survivors(target)
        got, engines = self.on_target(names, target, *GREEDY)
        if not got or not engines.get("aicore"):
            return ["nothing was compared, or nothing ran on the AI Cores"], ["-"] * 7
        errors = {name: error_of(array, self.expected[name]) for name, array in got.items()}
        own = self.own_errors(got, operands)
        bound = self.bound if operands == "f16" else BOUND
        problems = [f"{name}: {error:.2e} from the inputs on, {self.floor[name]:.2e} for its operands being halves, allowed is {bound:.1e}"
                    for name, error in errors.items() if not error <= bound]
        problems += [f"{name}: {error:.2e} of its own" for name, error in own.items() if not error <= BOUND]
        if operands == "auto":
            # What leaves the AI Cores is f32, and so is what the next product reads: a network of which all is looked at
            # rounds less. So once more, with nothing to see but its outputs and the tensors that rounding disturbs most.
            names = [o.name for o in self.model.graph.output]
            names += sorted((n for n in got if got[n].dtype == np.float32 and n not in names), key=self.floor.get)[-3:]
            for name, array in self.on_target(names, target)[0].items():
                errors[name] = max(errors.get(name, 0), error_of(array, self.expected[name]))
                if not errors[name] <= bound:
                    problems.append(f"{name}: {errors[name]:.2e} from the inputs on, as one of a few outputs")
        above = sum(error > BOUND for error in errors.values())
        outputs = [o.name for o in self.model.graph.output if o.name in errors]
        return problems, [f"{engines['aicore']} of {sum(engines.values())}", str(len(got)), f"{max(own.values()):.1e}",
                          f"{max(errors.values()):.1e}", str(above), f"{max(self.floor[name] for name in got):.1e}",
                          f"{max(errors[o] for o in outputs):.1e}" if outputs else "-"]


def check_digits(regie, work, target):
    folder = HERE / "digits"
    images, labels = np.load(folder / "images.npy"), np.load(folder / "labels.npy")
    path, out = work / "digits.onnx", work / "out"
    model = rounded(onnx.load(folder / "digits.onnx"))
    onnx.save(model, path)
    run([regie, "run", path, "--input", f"x={folder / 'images.npy'}", "--shape", f"x={','.join(map(str, images.shape))}", "--target", target,
         "--output-dir", out])
    scores = np.load(out / "scores.npy")
    error = error_of(scores, session_of(path).run(["scores"], {"x": images})[0])
    right = float((scores.argmax(axis=1) == labels).mean())
    problems = ([] if right >= 0.97 else [f"{right:.1%} right"]) + ([] if error <= BOUND else [f"scores: {error:.2e}"])
    return problems, [f"{right:.1%} of {len(labels)} images right, scores {error:.1e}"]


class OcrNetwork:
    """One of the three, compiled for the target and the size of each input that comes."""

    def __init__(self, regie, folder, work, target, name):
        self.regie, self.work, self.target, self.path = regie, work, target, folder / f"{name}.onnx"
        model = onnx.load(self.path)
        self.input, self.output = model.graph.input[0].name, model.graph.output[0].name

    def __call__(self, x):
        np.save(self.work / "x.npy", x)
        run([self.regie, "run", self.path, "--target", self.target, "--shape", f"{self.input}={','.join(map(str, x.shape))}", "--input",
             f"{self.input}={self.work}/x.npy", "--output-dir", self.work / "out"])
        return np.load(self.work / "out" / f"{self.output.replace('/', '_')}.npy")


def check_text(regie, folder, work, target):
    networks = [OcrNetwork(regie, folder, work, target, f"ocr_{n}") for n in ("detector", "classifier", "recogniser")]
    texts, turns = check_ocr.read_picture(*networks, check_ocr.alphabet_of(folder))
    expected = check_ocr.printed_lines()
    problems = [] if texts == expected and turns == [False, True] else [f"read {texts}, turned {turns}; must be {expected}"]
    return problems, [f"read {texts}"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("regie")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("work", type=pathlib.Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--target", action="append", help="may be repeated; default: all four")
    parser.add_argument("--operands", action="append", choices=OPERANDS, help="may be repeated; default: all")
    options = parser.parse_args()
    names, targets = options.names or [*NETWORKS, "digits", "ocr"], options.target or TARGETS
    for name in names:
        if name not in NETWORKS and name not in ("digits", "ocr"):
            parser.error(f"unknown network '{name}'; known: {', '.join([*NETWORKS, 'digits', 'ocr'])}")
    rows, failed = [], 0
    for name in names:
        work = options.work / name
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(parents=True)
        network = Network(options.regie, options.folder / f"{name}.onnx", work, *NETWORKS[name]) if name in NETWORKS else None
        for target, operands in itertools.product(targets, options.operands or OPERANDS):
            begin = time.monotonic()
            where = target_file(work, target, operands)
            try:
                if network:
                    problems, words = network.check(where, operands)
                elif name == "digits":
                    problems, words = check_digits(options.regie, work, where)
                else:
                    problems, words = check_text(options.regie, options.folder, work, where)
            except (RuntimeError, subprocess.TimeoutExpired) as error:
                problems, words = [str(error)], ["-"]
            for problem in problems[:20]:
                print(f"{name} on {target}, {operands}: {problem}")
            failed += bool(problems)
            rows.append((name, f"{target}, {operands}", "ok" if not problems else f"{len(problems)} wrong", words))
            print(f"{name} on {target}, {operands}: {rows[-1][2]}, {'; '.join(words)}, {time.monotonic() - begin:.1f} s", flush=True)
        shutil.rmtree(work)
    print("\n| network | target, operands | | operators on AI Cores | tensors | of its own | from the inputs on | above 5e-3 | halves | outputs |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for name, target, verdict, words in rows:
        if name in NETWORKS:
            print("| " + " | ".join([name, target, verdict, *words]) + " |")
    # The same in short: the worst tensor, how many are above 5e-3, by network and setting.
    print(f"\n| network, operands | tensors | {' | '.join(targets)} | operands rounded in ONNX Runtime |\n|---|---|{'---|' * len(targets)}---|")
    for name, operands in itertools.product([n for n in names if n in NETWORKS], options.operands or OPERANDS):
        own = [words for n, where, _, words in rows if n == name and where.endswith(f", {operands}")]
        print(f"| {name}, {operands} | {own[0][1]} | " + " | ".join(f"{w[3]}, {w[4]}" for w in own) + f" | {own[0][5]} |")
    print()
    for name, target, verdict, words in rows:
        if name not in NETWORKS:
            print(f"{name} on {target}: {verdict}, {words[0]}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
