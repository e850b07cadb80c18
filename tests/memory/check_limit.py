"""--memory-limit: a value that is cheap and lies idle over the peak is computed again, with the same bits, and the report says so;
what cannot be met is refused with who holds the peak, and nothing is written.

    check_limit.py REGIE WORK"""
import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

regie, work = sys.argv[1], pathlib.Path(sys.argv[2])
work.mkdir(parents=True, exist_ok=True)
os.environ["REGIE_CACHE"] = "off"


def call(*arguments):
    return subprocess.run([regie, *map(str, arguments)], capture_output=True, text=True)


def network():
    """A mask of the input is read at the beginning and at the end; in between a convolution makes much wider values."""
    random = np.random.RandomState(1)
    wide, narrow = (random.standard_normal(s).astype(np.float32) / 8 for s in ((96, 16, 1, 1), (16, 96, 1, 1)))
    node = helper.make_node
    nodes = [node("Sigmoid", ["x"], ["mask"], name="mask"),
             node("GlobalAveragePool", ["mask"], ["mean"], name="mean"),
             node("Mul", ["x", "mean"], ["scaled"], name="scale"),
             node("Conv", ["scaled", "wide"], ["w"], name="widen"),
             node("MaxPool", ["w"], ["p"], name="pool", kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
             node("Conv", ["p", "narrow"], ["n"], name="narrow"),
             node("Softmax", ["n"], ["s"], name="softmax", axis=1),
             node("Mul", ["s", "mask"], ["y"], name="masked")]
    shape = [1, 16, 32, 32]
    graph = helper.make_graph(nodes, "limited", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
                              [numpy_helper.from_array(wide, "wide"), numpy_helper.from_array(narrow, "narrow")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    return model


def compiled(name, *options):
    done = call("compile", work / "m.onnx", "-o", work / f"{name}.rgm", "--json", *options)
    if done.returncode:
        sys.exit(f"{name}: exit code {done.returncode}\n{done.stderr}")
    report = json.loads(done.stdout)
    run = call("run", work / f"{name}.rgm", "--random", 3, "--output-dir", work / name)
    assert run.returncode == 0, run.stderr
    return sum(m["arena_bytes"] for m in report["memory"]), report, np.load(work / name / "y.npy")


onnx.save(network(), str(work / "m.onnx"))
free, _, expected = compiled("free")
kept = 16 * 32 * 32 * 4
# The mask alone lies idle over the peak.
arena, report, result = compiled("limited", "--memory-limit", free - kept // 2)
assert arena <= free - kept // 2, (arena, free)
assert result.tobytes() == expected.tobytes(), "computing it again changes the result"
notes = [n for n in report["notes"] if n.get("kind") == "recomputed"]
assert len(notes) == 1 and "mask" in json.dumps(notes) and f"{arena} instead of {free} bytes" in json.dumps(notes), notes
print(json.dumps(notes[0]))

generous, report, result = compiled("generous", "--memory-limit", f"{free // 1024 + 1}KiB")
assert generous == free and result.tobytes() == expected.tobytes()
assert not [n for n in report["notes"] if n.get("kind") == "recomputed"]

(work / "refused.rgm").unlink(missing_ok=True)
done = call("compile", work / "m.onnx", "-o", work / "refused.rgm", "--memory-limit", "64K")
assert done.returncode == 2, done
assert not (work / "refused.rgm").exists()
for words in ("65536 bytes", "the best plan that was found takes", "holds", "'w': 393216 bytes"):
    assert words in done.stderr, (words, done.stderr)
print(done.stderr.strip())

# Units: 1024s, and 1000s with KB; any case. The plan meets a limit in each as it does in bytes.
for text, limit in ((f"{arena / 1024:.9f}kib", arena), (f"{arena / 1000:.9f}KB", arena), (f"{arena / 1e6:.9f}mb", arena),
                    (f"{arena / 1024:.9f}k", arena), (f"{arena / 2 ** 30:.18f}g", arena)):
    # The fraction is rounded down to bytes: one more where it is a little short.
    done = call("compile", work / "m.onnx", "-o", work / "units.rgm", "--json", "--memory-limit", text)
    assert done.returncode in (0, 2), done
    if done.returncode:
        assert f"is {limit - 1} bytes" in done.stderr, (text, done.stderr)
    else:
        assert json.loads(done.stdout)["arena_bytes"] <= limit
for wrong in ("64X", "0", "-1", "", "many", "64MiBs", "1,5g"):
    done = call("compile", work / "m.onnx", "-o", work / "wrong.rgm", f"--memory-limit={wrong}")
    assert done.returncode == 2 and "memory-limit" in done.stderr and not (work / "wrong.rgm").exists(), (wrong, done)
