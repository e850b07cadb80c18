"""One engine in a process of its own: `compare_worker.py ort MODEL.onnx INPUTS.npz THREADS`, or `regie MODEL.rgm ...`.

Prints a line of JSON when the first inference is done: what loading and it took, when it was there by the system's clock, and the
process's peak memory. Then, for each line "N" on standard input, runs N times and prints the milliseconds of each. Both engines are
driven in the same way from the same Python, so that the process's own share of memory is the same.

The order is that of a program: the engine is imported, the inputs are read, and then the time of a start begins. ONNX Runtime's
library holds all its kernels and is mapped and relocated by the import. Of Regie the import maps the runtime; its kernels and oneDNN
are libraries of their own, which a program has opened on a thread by regie_open_ahead (regie.open_ahead()) after its imports. What is
not ready when the model is loaded is waited for within the time of the start. REGIE_OPEN_AHEAD=off leaves that call out.
"""
import ctypes
import json
import os
import sys
import time

# numpy's own threads, which nothing here asks for, wait for work by spinning: for the first tenth of a second of the process they
# would take a processor away from the engine that is measured, whichever it is.
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np  # noqa: E402


def peak_bytes():
    with open("/proc/self/status") as status:
        for line in status:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    raise RuntimeError("no VmHWM")


class Ort:
    def __init__(self, path, threads):
        import onnxruntime as ort

        self.ort = ort
        options = ort.SessionOptions()
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
        self.options, self.path = options, path

    def load(self, arrays):
        self.inputs = arrays
        self.session = self.ort.InferenceSession(self.path, self.options, providers=["CPUExecutionProvider"])

    def run(self):
        return self.session.run(None, self.inputs)

    def settings(self):
        """As the session has them, not as they were asked for."""
        o = self.session.get_session_options()
        return {
            "version": self.ort.__version__,
            "optimisation": str(o.graph_optimization_level).split(".")[-1],
            "intra_op_threads": o.intra_op_num_threads,
            "inter_op_threads": o.inter_op_num_threads,
            "execution": str(o.execution_mode).split(".")[-1],
            "providers": self.session.get_providers(),
        }


class Tensor(ctypes.Structure):
    _fields_ = [
        ("elem", ctypes.c_uint16),
        ("reserved", ctypes.c_uint16),
        ("rank", ctypes.c_int32),
        ("dims", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.c_void_p),
        ("data", ctypes.c_void_p),
        ("bytes", ctypes.c_uint64),
    ]


class Port(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("elem", ctypes.c_uint16),
        ("rank", ctypes.c_int32),
        ("dims", ctypes.c_void_p),
        ("dims_text", ctypes.c_char_p),
        ("reference_dims", ctypes.c_void_p),
    ]


class Option(ctypes.Structure):
    _fields_ = [("key", ctypes.c_char_p), ("value", ctypes.c_char_p)]


ELEMS = {1: np.float32, 2: np.uint8, 3: np.int8, 6: np.int32, 7: np.int64, 9: np.bool_, 10: np.float16, 11: np.float64}


class Regie:
    def __init__(self, path, threads):
        self.lib = ctypes.CDLL(os.path.join(os.environ["REGIE_BUILD"], "lib", "libregie-runtime.so"))
        self.lib.regie_last_error.restype = ctypes.c_char_p
        self.lib.regie_model_input.restype = Port
        self.lib.regie_model_input_count.restype = ctypes.c_size_t
        self.lib.regie_model_output_count.restype = ctypes.c_size_t
        for name in ("regie_model_input", "regie_model_input_count", "regie_model_output_count"):
            getattr(self.lib, name).argtypes = [ctypes.c_void_p] + [ctypes.c_size_t] * (name == "regie_model_input")
        self.path, self.threads = path, threads
        if os.environ.get("REGIE_OPEN_AHEAD") != "off":
            self.lib.regie_open_ahead(b"host_cpu", None)

    def check(self, code):
        if code:
            raise RuntimeError(self.lib.regie_last_error().decode())

    def load(self, arrays):
        model, session, context = (ctypes.c_void_p() for _ in range(3))
        self.check(self.lib.regie_model_load(self.path.encode(), ctypes.byref(model)))
        options = (Option * 1)(Option(b"threads", str(self.threads).encode()))
        self.check(self.lib.regie_session_create(model, options, ctypes.c_size_t(1), ctypes.byref(session)))
        self.check(self.lib.regie_context_acquire(session, ctypes.byref(context)))
        self.context, self.model = context, model
        self.bind(arrays)
        self.outputs = (Tensor * self.lib.regie_model_output_count(model))()

    def bind(self, arrays):
        """What the runs from now on read."""
        self.arrays, model = dict(arrays), self.model
        count = self.lib.regie_model_input_count(model)
        self.inputs = (Tensor * count)()
        for i in range(count):
            port = self.lib.regie_model_input(model, i)
            array = np.asarray(self.arrays[port.name.decode()], order="C")  # a scalar stays one
            dims = (ctypes.c_int64 * max(1, array.ndim))(*array.shape)
            self.arrays[port.name.decode()] = array
            self.inputs[i] = Tensor(port.elem, 0, array.ndim, dims, None, array.ctypes.data, array.nbytes)

    def run(self):
        for o in self.outputs:
            o.data = None
            o.bytes = 0
        self.check(
            self.lib.regie_run(
                self.context, self.inputs, ctypes.c_size_t(len(self.inputs)), self.outputs, ctypes.c_size_t(len(self.outputs))
            )
        )
        out = []
        for o in self.outputs:
            shape = [o.dims[i] for i in range(o.rank)]
            bytes_ = ctypes.string_at(o.data, o.bytes) if o.bytes else b""
            out.append(np.frombuffer(bytes_, ELEMS[o.elem]).reshape(shape))
        return out

    def settings(self):
        return {"threads": self.threads}


def main():
    engine, path, inputs, threads = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
    made = (Ort if engine == "ort" else Regie)(path, threads)
    with np.load(inputs) as file:
        arrays = {name: file[name] for name in file.files}
    base = peak_bytes()
    start = time.perf_counter()
    made.load(arrays)
    loaded = time.perf_counter()
    first = made.run()
    done, answered = time.perf_counter(), time.monotonic()
    np.savez(sys.argv[5], *first)
    print(
        json.dumps(
            {
                "load_ms": (loaded - start) * 1000,
                "first_ms": (done - loaded) * 1000,
                "answered": answered,
                "peak_bytes": peak_bytes(),
                "base_bytes": base,
                "settings": made.settings(),
            }
        ),
        flush=True,
    )
    for line in sys.stdin:
        times = []
        for _ in range(int(line)):
            begin = time.perf_counter()
            made.run()
            times.append((time.perf_counter() - begin) * 1000)
        print(json.dumps(times), flush=True)


if __name__ == "__main__":
    main()
