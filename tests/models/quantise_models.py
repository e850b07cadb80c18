"""Quantises exported networks with ONNX Runtime's own tool, calibrated on a few random inputs.

    quantise_models.py NETWORKS FOLDER NAME...

FOLDER/NAME.onnx each, where NAME is <network>.<way> and NETWORKS/<network>.onnx what it is made from. Ways:

  qdq          quantize_static with its default options (QDQ, activations and weights s8, one scale a tensor)
  qdq_channel  the same with a scale a channel of the weights, and activations u8
  qdq_u8       activations and weights u8
  qoperator    quantize_static with QLinear operators, activations u8
  dynamic      quantize_dynamic with its default options
  raw          as qdq, but of the network as it was exported, its BatchNormalization left in place

All but `raw` and `dynamic` are first prepared by the tool's own pre-processing, as its manual asks for.
What is there and was made by this script from the same network is kept: FOLDER/NAME.key holds a digest.
"""
import hashlib
import os
import pathlib
import sys
import tempfile

import onnx
import onnx.version_converter
import onnxruntime
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_dynamic, quantize_static
from onnxruntime.quantization.shape_inference import quant_pre_process

from inputs import random_inputs

STATIC = {
    "qdq": {},
    "qdq_channel": {"per_channel": True, "activation_type": QuantType.QUInt8},
    "qdq_u8": {"activation_type": QuantType.QUInt8, "weight_type": QuantType.QUInt8},
    "qoperator": {"quant_format": QuantFormat.QOperator, "activation_type": QuantType.QUInt8},
    "raw": {},
}


class RandomReader(CalibrationDataReader):
    def __init__(self, path, count=4):
        model = onnx.load(path, load_external_data=False)
        self.left = iter([random_inputs(model, 100 + i, lambda _, dims: dims) for i in range(count)])

    def get_next(self):
        return next(self.left, None)


def quantise(source, way, target):
    if way == "dynamic":
        quantize_dynamic(source, target)
        return
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        prepared = source
        if way != "raw":
            prepared = pathlib.Path(folder) / "prepared.onnx"
            if STATIC[way].get("per_channel") and onnx.load(source, load_external_data=False).opset_import[0].version < 13:
                # Only from 13 on is there a scale a channel.
                newer = pathlib.Path(folder) / "newer.onnx"
                onnx.save(onnx.version_converter.convert_version(onnx.load(source), 13), newer)
                source = newer
            quant_pre_process(str(source), str(prepared), skip_symbolic_shape=True)
        quantize_static(prepared, target, RandomReader(prepared), **STATIC[way])


def main(networks, folder, names):
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        network, _, way = name.rpartition(".")
        if way != "dynamic" and way not in STATIC:
            sys.exit(f"quantise_models: {name}: there is no way '{way}'; there are: {' '.join(STATIC)} dynamic")
        source, path, stamp = networks / f"{network}.onnx", folder / f"{name}.onnx", folder / f"{name}.key"
        parts = [pathlib.Path(__file__).read_bytes(), source.read_bytes(), onnxruntime.__version__.encode()]
        key = hashlib.sha256(b"".join(parts)).hexdigest()
        if path.exists() and stamp.exists() and stamp.read_text() == key:
            continue
        part = path.with_name(path.name + ".part")
        quantise(source, way, part)
        os.replace(part, path)
        stamp.write_text(key)
        print(f"{path}: {path.stat().st_size / 1e6:.1f} MB", flush=True)


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__.split("\n\n")[1].strip())
    main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3:])
