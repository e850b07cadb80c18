#!/usr/bin/env python3
"""Element-wise kernels against ONNX Runtime and against the memory's speed, interleaved in one process.

    build/venv/bin/python tests/bench/pointwise.py BUILD_FOLDER [--seconds 0.5] [--threads 1,2]

A chain of six operators (x * s + y, sigmoid, * z, relu, - x) on tensors of 64 KiB, 1 MiB and 64 MiB, as one regie.Pointwise and
operator by operator; then single operators on 1 MiB. ONNX Runtime has all its optimisations, the same threads, spinning off,
and outputs bound to memory that is there already. Prints a table in Markdown: microseconds (the median), GB/s of the bytes that
a fused kernel must move.
"""
import argparse
import ctypes
import os
import pathlib
import sys
import tempfile
import time

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper

from compare_worker import Option, Tensor

ort.set_default_logger_severity(4)


class Regie:
    def __init__(self, build):
        lib = pathlib.Path(build) / "lib"
        ctypes.CDLL(str(lib / "libregie-runtime.so.0"), ctypes.RTLD_GLOBAL)
        self.api = ctypes.CDLL(str(lib / "libregie-compiler.so.0"))
        self.runtime = ctypes.CDLL(str(lib / "libregie-runtime.so.0"))
        self.runtime.regie_last_error.restype = ctypes.c_char_p

    def need(self, code):
        if code:
            raise RuntimeError(self.runtime.regie_last_error().decode())

    def session(self, path, threads, optimise):
        options = [(b"threads", str(threads).encode()), (b"optimise", b"1" if optimise else b"0")]
        made = (Option * len(options))(*options)
        model, session, context = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
        self.need(self.api.regie_compile_file(str(path).encode(), made, ctypes.c_size_t(len(options)), ctypes.byref(model)))
        own = (Option * 1)((b"threads", str(threads).encode()))
        self.need(self.runtime.regie_session_create(model, own, ctypes.c_size_t(1), ctypes.byref(session)))
        self.need(self.runtime.regie_context_acquire(session, ctypes.byref(context)))
        return context

    def runner(self, path, arrays, shape, threads, optimise=True):
        context = self.session(path, threads, optimise)
        dims = (ctypes.c_int64 * len(shape))(*shape)
        result = np.zeros(shape, np.float32)

        def tensor(a):
            return Tensor(1, 0, len(shape), dims, None, a.ctypes.data, a.nbytes)
        inputs, outputs = (Tensor * len(arrays))(*[tensor(a) for a in arrays]), (Tensor * 1)(tensor(result))
        run, need = self.runtime.regie_run, self.need
        counts = ctypes.c_size_t(len(arrays)), ctypes.c_size_t(1)

        def once():
            need(run(context, inputs, counts[0], outputs, counts[1]))
        once.keep = (arrays, dims, inputs, outputs)
        return once, result


def ort_runner(path, arrays, names, shape, threads):
    options = ort.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
    session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    binding, result = session.io_binding(), np.zeros(shape, np.float32)
    values = [ort.OrtValue.ortvalue_from_numpy(a) for a in arrays]
    for name, value in zip(names, values):
        binding.bind_ortvalue_input(name, value)
    out = ort.OrtValue.ortvalue_from_numpy(result)
    binding.bind_ortvalue_output("out", out)
    return (lambda: session.run_with_iobinding(binding)), out


def save(folder, name, nodes, inputs, shape):
    made = [helper.make_tensor_value_info(n, TensorProto.FLOAT, shape) for n in inputs]
    out = [helper.make_tensor_value_info("out", TensorProto.FLOAT, shape)]
    scale = helper.make_tensor("s", TensorProto.FLOAT, [], [0.75])
    graph = helper.make_graph(nodes, name, made, out, [scale] if any("s" in n.input for n in nodes) else [])
    path = pathlib.Path(folder) / f"{name}.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def interleaved(runners, seconds):
    """Median seconds of each; one after the other in every round."""
    for r in runners:
        r()
        r()
    times, end = [[] for _ in runners], time.perf_counter() + seconds * len(runners)
    while time.perf_counter() < end or len(times[0]) < 10:
        for r, t in zip(runners, times):
            begin = time.perf_counter()
            r()
            t.append(time.perf_counter() - begin)
    return [float(np.median(t)) for t in times]


def chain(folder, name, shape):
    nodes = [helper.make_node("Mul", ["x", "s"], ["a"]), helper.make_node("Add", ["a", "y"], ["b"]),
             helper.make_node("Sigmoid", ["b"], ["c"]), helper.make_node("Mul", ["c", "z"], ["d"]),
             helper.make_node("Relu", ["d"], ["e"]), helper.make_node("Sub", ["e", "x"], ["out"])]
    return save(folder, name, nodes, ["x", "y", "z"], shape)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("build")
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--threads", default="1,2")
    options = parser.parse_args()
    os.environ.setdefault("REGIE_LOG", "error")
    regie, random = Regie(options.build), np.random.default_rng(1)
    print(f"onnxruntime {ort.__version__}, all optimisations, the same threads")
    with tempfile.TemporaryDirectory() as folder:
        for threads in (int(t) for t in options.threads.split(",")):
            print(f"\n| {threads} thread(s) | one Pointwise us | by operator us | ONNX Runtime us | ratio | GB/s | copy GB/s |")
            print("|---|---|---|---|---|---|---|")
            for label, shape in (("chain, 64 KiB", (16, 1024)), ("chain, 1 MiB", (256, 1024)),
                                 ("chain, 64 MiB", (16384, 1024))):
                arrays = [random.standard_normal(shape, dtype=np.float32) for _ in range(3)]
                path = chain(folder, label.split()[1], shape)
                fused, got = regie.runner(path, arrays, shape, threads)
                single, _ = regie.runner(path, arrays, shape, threads, False)
                peer, want = ort_runner(path, arrays, ["x", "y", "z"], shape, threads)
                to = np.empty_like(arrays[0])
                a, b, c, d = interleaved([fused, single, peer, lambda: np.copyto(to, arrays[0])], options.seconds)
                assert np.allclose(got, want.numpy(), rtol=1e-5, atol=1e-5), "the results differ"
                size = arrays[0].nbytes
                print(f"| {label} | {a*1e6:.1f} | {b*1e6:.1f} | {c*1e6:.1f} | {a/c:.2f} | {4*size/a/1e9:.1f} | {2*size/d/1e9:.1f} |")
            shape = (256, 1024)
            x = random.standard_normal(shape, dtype=np.float32)
            for op in ("Sigmoid", "Tanh", "Erf", "Exp", "Relu", "Sqrt", "Elu", "HardSwish"):
                data = np.abs(x) if op == "Sqrt" else x
                path = save(folder, op, [helper.make_node(op, ["x"], ["out"])], ["x"], shape)
                mine, got = regie.runner(path, [data], shape, threads)
                peer, want = ort_runner(path, [data], ["x"], shape, threads)
                a, c = interleaved([mine, peer], options.seconds)
                assert np.allclose(got, want.numpy(), rtol=1e-5, atol=1e-6), f"the results of {op} differ"
                print(f"| {op}, 1 MiB | {a*1e6:.1f} | | {c*1e6:.1f} | {a/c:.2f} | {2*x.nbytes/a/1e9:.1f} | |")
    return 0


sys.exit(main())
