"""Formats between the tasks of a simulated accelerator: what is converted at run time, and what halves cost.

    check_layout.py REGIE NETWORKS WORK

resnet50 on the 910A: at most two conversions of format, one sub-graph on the AI Cores, no events. Then networks with each setting of
`between_tasks` against ONNX Runtime in single precision, fed the same inputs and weights rounded to halves: relative L2 error of the
output within 5e-3 with operands of one half, and rounding only where all readers round anyway adds nothing to it. By default the output is
within the accuracy that is asked for, products that are named are in two halves, and what no product needs is in none. Settings that
are none, or contradict each other, are refused by name.
"""
import json
import pathlib
import re
import subprocess
import sys

import numpy as np
import onnx

from check_models import run
from check_simulated import error_of, rounded, session_of
from rounder import halves
from targets import with_aicore

NETWORKS = ["resnet18", "squeezenet1_1", "resnet50"]
SETTINGS = ["f32", "f16-where-exact", "f16", "f16-everywhere"]


def check_plan(tool, model, work, target="ascend910a-sim"):
    dump = work / "stages"
    out = json.loads(run([tool, "compile", model, "--target", target, "-o", work / "model.rgm", "--dump", dump, "--json"]))
    engines, conversions = [], 0
    for line in sorted(dump.glob("*.rg"))[-1].read_text().splitlines():
        node = re.match(r"  %.* = ([A-Za-z.]+)[({].*@engine\(\"(\w+)\"\)", line)
        if not node or "@alias(" in line or node[1] == "regie.Copy":  # a view is no task
            continue
        engines.append(node[2])
        conversions += node[1] == "regie.Reformat"
    parts = sum(e == "aicore" and (i == 0 or engines[i - 1] != "aicore") for i, e in enumerate(engines))
    tasks = (out["model"] if "model" in out else out)["tasks"]
    print(f"{model.stem}: {len(engines)} kernels, {conversions} conversions, {parts} sub-graph(s) on the AI Cores, {tasks['events']} events")
    assert len(engines) == tasks["launches"], (len(engines), tasks)
    assert conversions <= 2 and parts == 1 and tasks["events"] == 0


def target_with(work, name, settings):
    target = work / f"{name}.toml"
    target.write_text(with_aicore("ascend910a-sim", settings))
    return target


def check_refusals(tool, model, work):
    for settings, words in {'operands = "f8"': "'operands' is f16, f16x2 or auto, not 'f8'",
                            'operands = "auto", accuracy = 2': "'accuracy' is between 0 and 1, not '2'",
                            'operands = "f16", two_halves = "Conv"': "'two_halves' is for operands = \"auto\"",
                            'between_tasks = "half"': "'between_tasks' is f32, f16-where-exact, f16 or f16-everywhere, not 'half'",
                            'operands = "f16x2", between_tasks = "f16"': "'between_tasks' must be f32, or left out"}.items():
        target, out = target_with(work, "refused", settings), work / "refused.rgm"
        done = subprocess.run([tool, "compile", model, "--target", target, "-o", out], capture_output=True, text=True)
        assert done.returncode == 2 and words in done.stderr and not out.exists(), (settings, done)


def check_numbers(tool, path, work):
    model = rounded(onnx.load(path))
    given = work / path.name
    onnx.save(model, given)
    source = model.graph.input[0]
    dims = [d.dim_value for d in source.type.tensor_type.shape.dim]
    x = halves(np.random.default_rng(5).standard_normal(dims).astype(np.float32))
    np.save(work / "x.npy", x)
    expected = session_of(given).run(None, {source.name: x})[0]
    errors = {}
    for setting in SETTINGS:
        target = target_with(work, setting, f'operands = "f16", between_tasks = "{setting}"')
        for old in work.glob("result/*.npy"):
            old.unlink()
        run([tool, "run", given, "--target", target, "--input", f"{source.name}={work / 'x.npy'}", "--output-dir", work / "result"])
        errors[setting] = error_of(np.load(next((work / "result").glob("*.npy"))), expected)
    print(path.stem, " ".join(f"{s} {e:.2e}" for s, e in errors.items()))
    assert all(e <= 5e-3 for e in errors.values()), errors
    assert errors["f16-where-exact"] <= 1.02 * errors["f32"], errors


def check_computed_bias(tool, work):
    """What is tried with operands = "auto" runs with a bias that an input gives, too."""
    random = np.random.default_rng(3)
    made = {name: halves(random.standard_normal(dims).astype(np.float32)) for name, dims in {"x": (2, 4, 9, 9), "b": (8,), "w": (8, 4, 3, 3)}.items()}
    typed = {name: onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, dims) for name, dims in {"x": (2, 4, 9, 9), "b": (8,), "y": (2, 8, 7, 7)}.items()}
    graph = onnx.helper.make_graph([onnx.helper.make_node("Conv", ["x", "w", "b"], ["y"])], "g", [typed["x"], typed["b"]], [typed["y"]],
                                   [onnx.numpy_helper.from_array(made.pop("w"), "w")])
    given, target = work / "bias.onnx", target_with(work, "auto", 'operands = "auto"')
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8), given)
    for name, array in made.items():
        np.save(work / f"{name}.npy", array)
    run([tool, "run", given, "--target", target, "--set", "placement=greedy", "--output-dir", work / "bias",
         *(o for name in made for o in ("--input", f"{name}={work / name}.npy"))])
    error = error_of(np.load(work / "bias/y.npy"), session_of(given).run(None, made)[0])
    assert error <= 5e-3, error


def in_two_halves(tool, given, work, settings):
    """How many products the engine says are in two halves, and of how many."""
    options = [o for s in settings for o in ("--set", f"aicore.{s}")]
    report = json.loads(run([tool, "compile", given, "--target", "ascend910a-sim", "-o", work / "auto.rgm", "--json", "--cache", "off", *options]))
    said = next(f for f in report["findings"] if f["topic"] == "operands")
    assert said["engine"] == "aicore" and "products as two halves" in said["text"], said
    return said["figures"]["two_halves"], said["figures"]["products"]


def check_accuracy(tool, path, work):
    given = work / path.name
    model = rounded(onnx.load(path))
    onnx.save(model, given)
    source = model.graph.input[0]
    x = halves(np.random.default_rng(11).standard_normal([d.dim_value for d in source.type.tensor_type.shape.dim]).astype(np.float32))
    np.save(work / "x.npy", x)
    expected = session_of(given).run(None, {source.name: x})[0]
    needed = []
    for accuracy in (0.5, 5e-3, 5e-4):
        count, products = in_two_halves(tool, given, work, [f"accuracy={accuracy}"])
        for old in work.glob("result/*.npy"):
            old.unlink()
        run([tool, "run", work / "auto.rgm", "--input", f"{source.name}={work / 'x.npy'}", "--output-dir", work / "result"])
        error = error_of(np.load(next((work / "result").glob("*.npy"))), expected)
        print(f"{path.stem}, accuracy {accuracy}: {count} of {products} in two halves, {error:.1e} off")
        assert error <= accuracy, (path, accuracy, error)
        needed.append(count)
    assert needed[0] == 0 and needed[0] <= needed[1] < needed[2], needed
    convolution = next(n.name for n in model.graph.node[3:] if n.op_type == "Conv")
    for named in (convolution, "Gemm" if any(n.op_type == "Gemm" for n in model.graph.node) else "Conv"):
        count, _ = in_two_halves(tool, given, work, ["accuracy=0.5", f"two_halves={named}"])
        assert count >= 1, named


def main():
    tool, networks, work = (pathlib.Path(a) for a in sys.argv[1:4])
    (work / "result").mkdir(parents=True, exist_ok=True)
    check_plan(tool, networks / "resnet50.onnx", work)
    check_refusals(tool, networks / "squeezenet1_1.onnx", work)
    check_computed_bias(tool, work)
    check_plan(tool, networks / "resnet50.onnx", work, target_with(work, "halves", 'operands = "f16"'))
    check_accuracy(tool, networks / "resnet50.onnx", work)
    for name in NETWORKS:
        check_numbers(tool, networks / f"{name}.onnx", work)


main()
