"""One case: a node, its operands, and what ONNX Runtime, checked by onnx.reference, says about its results.

Files: cases.json, a list of {op, attrs, operands, results, tolerance, summing}, and cases.bin, the tensors' bytes, each at a
multiple of 64. Expectations never come from Regie.
"""
import functools
import json
import pathlib
import warnings

import ml_dtypes
import numpy as np
import onnx
import onnxruntime as ort
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

ELEMS = {
    "f32": (1, np.float32), "u8": (2, np.uint8), "i8": (3, np.int8), "u16": (4, np.uint16), "i16": (5, np.int16),
    "i32": (6, np.int32), "i64": (7, np.int64), "bool": (9, np.bool_), "f16": (10, np.float16), "f64": (11, np.float64),
    "u32": (12, np.uint32), "u64": (13, np.uint64), "bf16": (16, ml_dtypes.bfloat16),
    "f8e4m3fn": (17, ml_dtypes.float8_e4m3fn), "f8e4m3fnuz": (18, ml_dtypes.float8_e4m3fnuz), "f8e5m2": (19, ml_dtypes.float8_e5m2),
    "f8e5m2fnuz": (20, ml_dtypes.float8_e5m2fnuz), "u4": (21, ml_dtypes.uint4), "i4": (22, ml_dtypes.int4), "f4e2m1": (23, ml_dtypes.float4_e2m1fn),
    "f8e8m0": (24, ml_dtypes.float8_e8m0fnu), "u2": (25, ml_dtypes.uint2), "i2": (26, ml_dtypes.int2),
}
BITS = {np.dtype(ELEMS[n][1]): b for n, b in (("u4", 4), ("i4", 4), ("f4e2m1", 4), ("u2", 2), ("i2", 2))}  # of packed types
NUMBERS = {np.dtype(d): n for n, d in ELEMS.values()}
NARROW = (np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16))
OPSET, NEWEST = 21, 27
SUMMING = {"Conv", "ConvTranspose", "regie.FusedConv", "MatMul", "Gemm", "regie.FusedMatMul", "regie.Attention", "AveragePool",
           "GlobalAveragePool", "BatchNormalization", "regie.FusedBatchNormalization", "LayerNormalization", "RMSNormalization", "InstanceNormalization",
           "GroupNormalization", "MeanVarianceNormalization", "RNN", "GRU", "LSTM", "Resize", "CumSum", "CumProd", "LpPool", "GlobalLpPool", "Col2Im",
           "GridSample", "RoiAlign", "AffineGrid", "Einsum", "Det", "Attention", "RotaryEmbedding", "DFT", "STFT", "ReduceLogSum", "ReduceLogSumExp",
           "HannWindow", "HammingWindow", "BlackmanWindow", "MelWeightMatrix", "LinearAttention", "DeformConv", "ReduceSum", "ReduceMean", "ReduceL1", "ReduceL2", "ReduceSumSquare"}

ort.set_default_logger_severity(4)
warnings.filterwarnings("ignore")


def numpy_type(name):
    return np.dtype(ELEMS[name][1])


@functools.cache
def births():
    """The operator set that each operator came with."""
    born = {}
    for s in onnx.defs.get_all_schemas_with_history():
        if s.domain == "":
            born[s.name] = min(born.get(s.name, s.since_version), s.since_version)
    return born


def opset_of(nodes):
    """OPSET, or the newest where an operator is younger."""
    return NEWEST if any(births()[n.op_type] > OPSET for n in nodes) else OPSET


def model_of(nodes, operands, result_names):
    """A model with the operands x0, x1, ... as inputs and these results, of any type."""
    inputs = [helper.make_tensor_value_info(f"x{i}", NUMBERS[a.dtype], a.shape)
              for i, a in enumerate(operands) if a is not None]
    outputs = [onnx.ValueInfoProto(name=n) for n in result_names]
    graph = helper.make_graph(nodes, "case", inputs, outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset_of(nodes))], ir_version=10)


def feeds_of(operands):
    return {f"x{i}": a for i, a in enumerate(operands) if a is not None}


def packed(array):
    """Elements below a byte, low bits of each byte first."""
    bits = BITS[array.dtype]
    each = 8 // bits
    values = array.reshape(-1).view(np.uint8) & ((1 << bits) - 1)
    values = np.concatenate([values, np.zeros(-len(values) % each, np.uint8)]).reshape(-1, each)
    return np.bitwise_or.reduce(values << (bits * np.arange(each, dtype=np.uint8)), axis=1).astype(np.uint8).tobytes()


def by_onnxruntime(model, operands, names):
    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(names, feeds_of(operands))


def by_reference(model, operands, names):
    return [np.asarray(r) for r in ReferenceEvaluator(model).run(names, feeds_of(operands))]


def agree(a, b, tolerance):
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if np.issubdtype(a.dtype, np.floating) or a.dtype in NARROW:
        a, b = a.astype(np.float64), b.astype(np.float64)
        if not a.size:
            return True
        finite = np.abs(a[np.isfinite(a)])
        scale = max(1.0, finite.max()) if finite.size else 1.0
        return np.allclose(a, b, rtol=tolerance, atol=tolerance * scale, equal_nan=True)
    return np.array_equal(a, b)


class Writer:
    def __init__(self, folder, schemas):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.schemas = schemas
        self.cases = []
        self.blob = bytearray()
        self.sources = {}

    def add(self, op, operands, results=1, omitted=(), reference=True, runtime=True, tolerance=1e-5, nodes=None,
            **attrs):
        """One case of operator `op`. `nodes`: what it means in ONNX's operators (default: the node itself).

        reference=False where onnx.reference deviates from the specification, runtime=False where ONNX Runtime does:
        the caller says why.
        """
        operands = [None if a is None else np.ascontiguousarray(a).reshape(np.shape(a)) for a in operands]
        given = {k: v for k, v in attrs.items() if v is not None}
        narrow = {a.dtype for a in operands if a is not None and a.dtype in NARROW}
        names = [f"y{i}" for i in range(results) if i not in omitted]
        widened, wide_given = operands, given
        if narrow:
            # 16-bit floats: the meaning is that of f32, rounded. Few kernels of ONNX Runtime have them.
            widened = [a.astype(np.float32) if a is not None and a.dtype in NARROW else a for a in operands]
            tolerance = 2e-2 if numpy_type("bf16") in narrow else 3e-3
        if nodes is None:
            last = max((i for i, a in enumerate(operands) if a is not None), default=-1)
            inputs = ["" if a is None else f"x{i}" for i, a in enumerate(operands[: last + 1])]
            onnx_attrs = {k: numpy_helper.from_array(v) if isinstance(v, np.ndarray) else v
                          for k, v in wide_given.items()}
            made = [helper.make_node(op, inputs, [f"y{i}" if i not in omitted else "" for i in range(results)],
                                     **onnx_attrs)]
        else:
            made = nodes
        model = model_of(made, widened, names)
        expected = None
        if runtime:
            try:
                expected = by_onnxruntime(model, widened, names)
            except Exception as error:
                if not any(word in str(error) for word in ("NOT_IMPLEMENTED", "Type Error", "not a registered", "under development")):
                    raise RuntimeError(f"{op} {given} {[None if a is None else (a.dtype, a.shape) for a in operands]}: {error}")
                if not reference:
                    expected = self.through_f32(made, widened, names)
        source = "onnxruntime"
        if reference:
            other = by_reference(model, widened, names)
            if expected is None:
                expected, source = other, "onnx.reference"
            elif not all(agree(a, b, 10 * tolerance) for a, b in zip(expected, other)):
                raise RuntimeError(f"ONNX Runtime and onnx.reference differ: {op} {given} "
                                   f"{[None if a is None else (str(a.dtype), a.shape) for a in operands]}\n"
                                   f"{expected}\n{other}\n{widened}")
            else:
                source = "both"
        if expected is None:
            raise RuntimeError(f"{op} {given}: no source of expectations")
        if narrow and op != "Cast":
            narrow_type = next(iter(narrow))
            expected = [e.astype(narrow_type) if e.dtype == np.float32 else e for e in expected]
        full = iter(expected)
        self.write(op, operands, given, [None if i in omitted else next(full) for i in range(results)], tolerance, source)

    def through_f32(self, nodes, operands, names):
        """What ONNX Runtime lacks for f64 it may have for f32; the meaning is the same, the tolerance that of f32."""
        if not any(a is not None and a.dtype == np.float64 for a in operands):
            return None
        single = [a.astype(np.float32) if a is not None and a.dtype == np.float64 else a for a in operands]
        results = by_onnxruntime(model_of(nodes, single, names), single, names)
        return [r.astype(np.float64) if r.dtype == np.float32 else r for r in results]

    def known(self, op, operands, results, tolerance=0.0, **attrs):
        """A case whose expectation is computed by numpy."""
        self.write(op, operands, attrs, results, tolerance, "numpy")

    def write(self, op, operands, given, results, tolerance, source):
        attrs = dict(self.schemas[op].defaults)
        attrs.update(given)
        self.cases.append({
            "op": op,
            "attrs": [self.attribute(k, attrs[k]) for k in sorted(attrs)],
            "operands": [self.tensor(a) for a in operands],
            "results": [self.tensor(a) for a in results],
            "tolerance": tolerance,
            # Sums lose digits to cancellation: their error is one of the sum's terms, not of the sum.
            "summing": self.schemas[op].name in SUMMING,
        })
        self.sources.setdefault(op, {}).setdefault(source, 0)
        self.sources[op][source] += 1

    def attribute(self, name, value):
        if isinstance(value, np.ndarray):
            return {"name": name, "kind": "tensor", "value": self.tensor(value)}
        if isinstance(value, bool) or isinstance(value, (int, np.integer)):
            return {"name": name, "kind": "int", "value": int(value)}
        if isinstance(value, list) and value and all(isinstance(x, float) for x in value):
            return {"name": name, "kind": "floats", "value": [float(np.float32(x)) for x in value]}
        if isinstance(value, float):
            return {"name": name, "kind": "float", "value": float(np.float32(value))}
        if isinstance(value, str):
            return {"name": name, "kind": "string", "value": value}
        if all(isinstance(v, (int, np.integer)) for v in value):
            return {"name": name, "kind": "ints", "value": [int(v) for v in value]}
        if all(isinstance(v, str) for v in value):
            return {"name": name, "kind": "strings", "value": list(value)}
        raise TypeError(f"attribute {name}: {value!r}")

    def tensor(self, array):
        if array is None:
            return None
        array = np.asarray(array)
        self.blob.extend(b"\0" * (-len(self.blob) % 64))
        offset = len(self.blob)
        self.blob.extend(packed(array) if array.dtype in BITS else array.tobytes())
        return {"elem": int(NUMBERS[array.dtype]), "dims": list(array.shape), "offset": offset}

    def finish(self):
        strings = {"StringConcat", "StringNormalizer", "StringSplit"}  # whose bytes are addresses: tests/python/test_strings.py
        missing = sorted(set(self.schemas) - {c["op"] for c in self.cases} - {"If", "Loop", "regie.Pointwise", "regie.Reformat"} - strings)
        if missing:
            raise RuntimeError(f"no cases for {missing}")
        (self.folder / "cases.bin").write_bytes(self.blob)
        (self.folder / "cases.json").write_text("[\n" + ",\n".join(json.dumps(c) for c in self.cases) + "\n]\n")
        return self.sources
