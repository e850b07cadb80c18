"""Exports the networks of export_models.py once more, with symbolic axes: the batch of each, the size of pictures where the
network takes any, the steps of sequences.

    /usr/bin/python3 export_dynamic.py FOLDER [NAME...]

FOLDER/NAME.onnx for each of AXES (all unless named), with the weights that the network has there. What is there and was made
by these two scripts is kept.
"""
import hashlib
import os
import pathlib
import sys

import export_models

PICTURES = {"input": {0: "N", 2: "H", 3: "W"}}
BATCH = {"input": {0: "N"}}
# vgg16 and vit_b_16 are written for one size of picture: their heads count its places.
AXES = {
    "resnet18": PICTURES,
    "resnet50": PICTURES,
    "mobilenet_v2": PICTURES,
    "mobilenet_v3_large": PICTURES,
    "squeezenet1_1": PICTURES,
    "vgg16": BATCH,
    "densenet121": PICTURES,
    "efficientnet_b0": PICTURES,
    "vit_b_16": BATCH,
    "bert_base": {name: {0: "N", 1: "S"} for name in ("input_ids", "attention_mask", "token_type_ids")},
    "lstm": {"input": {0: "N", 1: "T"}},
    "gru": {"input": {0: "N", 1: "T"}, "h0": {1: "N"}},
}


def export(name, path):
    import torch

    make, opset = export_models.NETWORKS[name]
    torch.manual_seed(int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "little"))
    network, sample, inputs, outputs = make()
    network.eval()
    torch.onnx.export(network, sample, path, opset_version=opset, input_names=inputs, output_names=outputs,
                      training=torch.onnx.TrainingMode.PRESERVE, do_constant_folding=True, dynamic_axes=AXES[name])


def main(folder, names):
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        if name not in AXES:
            sys.exit(f"export_dynamic: no network is called {name}; there are: {' '.join(AXES)}")
    key = hashlib.sha256(b"".join(pathlib.Path(f).read_bytes() for f in (__file__, export_models.__file__))).hexdigest()
    for name in names or AXES:
        path, stamp = folder / f"{name}.onnx", folder / f"{name}.key"
        if path.exists() and stamp.exists() and stamp.read_text() == key:
            continue
        part = path.with_name(path.name + ".part")
        export(name, str(part))
        os.replace(part, path)
        export_models.write(stamp, key.encode())
        print(f"{path}: {path.stat().st_size / 1e6:.1f} MB", flush=True)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__.split("\n\n")[1].strip())
    main(pathlib.Path(sys.argv[1]), sys.argv[2:])
