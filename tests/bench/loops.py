"""What an iteration costs: long loops of tiny bodies through `regie bench`, beside ONNX Runtime.

    build/venv/bin/python tests/bench/loops.py REGIE [--trips 100000]

Prints microseconds an iteration (median of the runs) for bodies of 1, 4 and 16 operators, and for a carried value that grows.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
import onnx.parser
import onnxruntime as ort

ort.set_default_logger_severity(4)


def body(operators, chain):
    """Products do not fuse, so that each is a task; sums are one."""
    op = "MatMul" if chain else "Add"
    lines, last = [], "a"
    for i in range(operators):
        lines.append(f"v{i} = {op}({last}, w)")
        last = f"v{i}"
    return "\n".join(lines[:-1] + [lines[-1].replace(f"v{operators - 1} =", "r =")])


def model(trips, operators, chain):
    text = f"""<ir_version: 8, opset_import: ["" : 17]>
    g (float[4,4] x, float[4,4] w) => (float[4,4] y) {{
        n = Constant<value = int64 {{{trips}}}>()
        y = Loop(n, "", x) <body = b (int64 i, bool c, float[4,4] a) => (bool co, float[4,4] r) {{
            co = Identity(c)
            {body(operators, chain)}
        }}>
    }}"""
    return onnx.parser.parse_model(text)


def growing(trips):
    text = f"""<ir_version: 8, opset_import: ["" : 17]>
    g (float[1,64] x) => (float[k,64] y) {{
        n = Constant<value = int64 {{{trips}}}>()
        y = Loop(n, "", x) <body = b (int64 i, bool c, float[p,64] a) => (bool co, float[q,64] r) {{
            co = Identity(c)
            r = Concat<axis=0>(a, x)
        }}>
    }}"""
    return onnx.parser.parse_model(text)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("regie")
    parser.add_argument("--trips", type=int, default=100000)
    given = parser.parse_args()
    cases = [(f"{n} {'products' if chain else 'sums'}", model(given.trips, n, chain), given.trips)
             for n, chain in ((1, False), (4, False), (1, True), (4, True), (16, True))]
    cases.append(("grows by a row of 64, 1000 iterations", growing(1000), 1000))
    random = np.random.default_rng(1)
    with tempfile.TemporaryDirectory() as folder:
        for name, made, trips in cases:
            path = pathlib.Path(folder) / "loop.onnx"
            path.write_bytes(made.SerializeToString())
            values = {i.name: (random.uniform(-.3, .3, [d.dim_value for d in i.type.tensor_type.shape.dim])).astype(np.float32)
                      for i in made.graph.input}
            inputs = []
            for key, array in values.items():
                np.save(path.with_name(f"{key}.npy"), array)
                inputs += ["--input", f"{key}={path.with_name(key + '.npy')}"]
            done = subprocess.run([given.regie, "bench", path, "--json", "--duration", "1", "--iterations", "3", *inputs],
                                  capture_output=True, text=True)
            if done.returncode:
                sys.exit(done.stderr)
            mine = json.loads(done.stdout)["latency_ms"]["median"]
            session = ort.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
            taken = []
            for _ in range(3):
                begin = time.perf_counter()
                session.run(None, values)
                taken.append(time.perf_counter() - begin)
            print(f"{name:40} {1000 * mine / trips:8.3f} us an iteration, ONNX Runtime {1e6 * np.median(taken) / trips:8.3f}",
                  flush=True)


if __name__ == "__main__":
    main()
