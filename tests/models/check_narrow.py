"""Runs networks in 16-bit floats with Regie and compares with ONNX Runtime in single precision.

    check_narrow.py REGIE NETWORKS WORK NAME...

The reference is the network in float32 whose weights and inputs were rounded to the narrow type (narrow_models.py): what is
between is computed in single precision by both. The bound is 1e-3 of the greatest value; NaN is no agreement.
"""
import pathlib
import shutil
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper

from check_models import run
from inputs import input_options, random_inputs
from narrow_models import TYPES, fixed_in, narrow


def rounded(model, dtype):
    fixed = fixed_in(model.graph)
    for tensor in model.graph.initializer:
        if tensor.data_type == onnx.TensorProto.FLOAT and tensor.name not in fixed:
            values = numpy_helper.to_array(tensor).astype(dtype).astype(np.float32)
            tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))
    return model


def main(regie, networks, work, names):
    failed = 0
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    for name in names:
        path = networks / f"{name}.onnx"
        inputs = random_inputs(onnx.load(path), 7, lambda _, dims: dims)
        given = input_options(inputs, work)
        for kind, (_, dtype) in TYPES.items():
            reference = rounded(onnx.load(path), dtype)
            fed = {k: v.astype(dtype).astype(np.float32) if v.dtype == np.float32 else v for k, v in inputs.items()}
            session = onnxruntime.InferenceSession(reference.SerializeToString(), providers=["CPUExecutionProvider"])
            outputs = [o.name for o in session.get_outputs()]
            expected = session.run(outputs, fed)
            made, out = work / f"{name}.{kind}.onnx", work / "out"
            onnx.save(narrow(onnx.load(path), kind), made)
            for threads in (1, 2):
                shutil.rmtree(out, ignore_errors=True)
                run([regie, "run", made, *given, "--output-dir", out, "--threads", threads])
                for output, want in zip(outputs, expected, strict=True):
                    got = np.load(out / f"{output}.npy")
                    bound = 1e-3 * np.abs(want).max()
                    good = got.shape == want.shape and got.dtype == want.dtype and bool((np.abs(got - want) <= bound).all())
                    print(f"{name} {kind}, {threads} thread(s): {output} differs by at most "
                          f"{np.abs(got - want).max() / bound if got.shape == want.shape else np.nan:.3g} of the bound")
                    failed += not good
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    if len(sys.argv) < 5:
        sys.exit(__doc__.split("\n\n")[1].strip())
    main(sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3]), sys.argv[4:])
