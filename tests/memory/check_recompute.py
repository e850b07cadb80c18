"""Values computed again by default: on randomly wired networks the plan gets smaller for a share of the predicted time that the
setting allows, no answer differs by a bit, the report says what is computed again; a memory limit goes further, or is refused with
the best that was found; ordinary networks are left as they are.

    check_recompute.py REGIE WORK"""
import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import onnx

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "bench"))
import order  # noqa: E402

regie, work = sys.argv[1], pathlib.Path(sys.argv[2])
work.mkdir(parents=True, exist_ok=True)
os.environ["REGIE_CACHE"] = "off"


def call(*arguments):
    return subprocess.run([regie, *map(str, arguments)], capture_output=True, text=True)


def compiled(model, name, *options):
    done = call("compile", model, "-o", work / f"{name}.rgm", "--json", *options)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    run = call("run", work / f"{name}.rgm", "--random", 3, "--output-dir", work / name)
    assert run.returncode == 0, run.stderr
    notes = [n for n in report["notes"] if n.get("kind") == "recomputed"]
    return sum(m["arena_bytes"] for m in report["memory"]), report["predicted_ns"], notes, np.load(work / name / "y.npy")


lower = 0
for seed, wiring in ((0, "ws"), (104, "uniform"), (23, "uniform")):
    model = work / f"{seed}.onnx"
    onnx.save(order.network(seed, 32, wiring, "separable"), model)
    plain, time, notes, expected = compiled(model, "plain", "--set", "schedule-for-memory.recompute=0")
    assert not notes, notes
    arena, longer, notes, result = compiled(model, "default")
    assert result.tobytes() == expected.tobytes(), seed
    assert arena <= plain and (arena < plain) == bool(notes), (seed, arena, plain, notes)
    assert longer <= time * 1.0251, (seed, time, longer)
    lower += arena < plain
    for note in notes:
        assert "is computed again before" in note["text"] and f"{arena} instead of" in note["text"], note
    tight, longer, notes, result = compiled(model, "share", "--set", "schedule-for-memory.recompute=0.1")
    assert result.tobytes() == expected.tobytes() and tight <= arena and longer <= time * 1.1001, (seed, tight, arena)
    limit = tight - 1024
    done = call("compile", model, "-o", work / "limited.rgm", "--json", "--memory-limit", limit)
    if done.returncode == 0:
        limited, _, notes, result = compiled(model, "limited", "--memory-limit", limit)
        assert limited <= limit and notes and result.tobytes() == expected.tobytes(), (seed, limited, limit)
    else:
        assert done.returncode == 2 and "the best plan that was found takes" in done.stderr, done.stderr
    print(seed, plain, arena, tight, limit, done.returncode, flush=True)
assert lower >= 1, "nothing was found in any of them"

for wrong in ("-1", "much", "nan", ""):
    done = call("compile", work / "0.onnx", "-o", work / "wrong.rgm", "--set", f"schedule-for-memory.recompute={wrong}")
    assert done.returncode == 2 and "recompute" in done.stderr, (wrong, done.stderr)
