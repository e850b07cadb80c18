"""Exports the networks that tests and benchmarks use, with fixed seeds, from Debian's torch and torchvision.

    /usr/bin/python3 export_models.py FOLDER [NAME...]

FOLDER/NAME.onnx for each of NETWORKS (all unless named), and FOLDER/ocr_{detector,classifier,recogniser}.onnx out of the
pinned wheel of `rapidocr-onnxruntime` (ocr/requirements.txt; pip downloads it, checks its digest, and nothing of it is
installed or run). No trained weights are fetched: weights are random, scaled as at the start of a training, and the running
statistics of BatchNormalization are measured on random pictures, so that activations keep the size that they have in use.

Graphs are written as the exporter decomposes them, BatchNormalization left in place. What is there and was made by this
script is kept: FOLDER/NAME.key holds a digest of script, wheel and versions.
"""

import hashlib
import os
import pathlib
import subprocess
import sys
import zipfile

from wheels import pinned_wheel

HERE = pathlib.Path(__file__).resolve().parent
WHEEL = HERE / "ocr" / "requirements.txt"
OCR = {
    "ocr_detector": "ch_PP-OCRv4_det_infer.onnx",
    "ocr_recogniser": "ch_PP-OCRv4_rec_infer.onnx",
    "ocr_classifier": "ch_ppocr_mobile_v2.0_cls_infer.onnx",
}


def torchvision_network(name, opset, **options):
    """A classifier of 224 x 224 pictures."""

    def make():
        import torch
        import torchvision

        network = getattr(torchvision.models, name)(weights=None, **options)
        # What starts at zero would hide the rest: the head and the class token of vision transformers, shifts, scales.
        for parameter in network.parameters():
            if parameter.dim() == 1:
                parameter.data += 0.1 * torch.randn_like(parameter)
            elif not parameter.any():
                torch.nn.init.normal_(parameter, std=0.02)
        # Filters without a mean of their own: inputs are positive behind activations, and channels whose mean is far greater
        # than their deviation would lose in BatchNormalization the digits that a comparison needs.
        for module in network.modules():
            if isinstance(module, torch.nn.Conv2d):
                module.weight.data -= module.weight.data.mean(dim=(1, 2, 3), keepdim=True)
            # Each block adds a correction, as in a trained network. With branches as strong as the sum, rounding grows from
            # block to block until ONNX Runtime with and without its optimisations is further apart than the bound.
            if isinstance(module, torchvision.models.resnet.Bottleneck):
                module.bn3.weight.data *= 0.3
        measure_statistics(network)
        return network, (torch.randn(1, 3, 224, 224),), ["input"], ["output"]

    return make, opset


def measure_statistics(network):
    """Sets the running mean and variance of every BatchNormalization over noise of two kinds and smooth pictures."""
    import torch

    norms = [m for m in network.modules() if isinstance(m, torch.nn.modules.batchnorm._BatchNorm)]
    if not norms:
        return
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None  # the plain mean over all batches
    network.eval()
    for norm in norms:
        norm.train()
    smooth = torch.nn.functional.interpolate(torch.randn(4, 3, 28, 28), size=(224, 224), mode="bilinear")
    pictures = torch.cat([torch.randn(4, 3, 224, 224), torch.rand(4, 3, 224, 224), smooth + 0.3 * torch.randn_like(smooth)])
    with torch.no_grad():
        network(pictures)


def bert_base():
    """The encoder of BERT-base: 12 layers, width 768, 12 heads, attention written out, erf GELU."""
    import math

    import torch
    from torch import nn

    class Layer(nn.Module):
        def __init__(self, width, heads, inner):
            super().__init__()
            self.heads, self.size = heads, width // heads
            self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
            self.attention_output, self.attention_norm = nn.Linear(width, width), nn.LayerNorm(width, eps=1e-12)
            self.intermediate, self.output = nn.Linear(width, inner), nn.Linear(inner, width)
            self.output_norm = nn.LayerNorm(width, eps=1e-12)

        def split(self, x):
            return x.view(x.shape[0], x.shape[1], self.heads, self.size).permute(0, 2, 1, 3)

        def forward(self, x, mask):
            query, key, value = self.split(self.query(x)), self.split(self.key(x)), self.split(self.value(x))
            scores = torch.matmul(query, key.transpose(-1, -2)) / math.sqrt(self.size) + mask
            context = torch.matmul(torch.softmax(scores, dim=-1), value).permute(0, 2, 1, 3)
            context = context.reshape(x.shape[0], x.shape[1], self.heads * self.size)
            x = self.attention_norm(self.attention_output(context) + x)
            return self.output_norm(self.output(nn.functional.gelu(self.intermediate(x))) + x)

    class Encoder(nn.Module):
        def __init__(self, words=30522, positions=512, width=768, heads=12, inner=3072, layers=12):
            super().__init__()
            self.words, self.positions = nn.Embedding(words, width), nn.Embedding(positions, width)
            self.segments, self.norm = nn.Embedding(2, width), nn.LayerNorm(width, eps=1e-12)
            self.layers = nn.ModuleList(Layer(width, heads, inner) for _ in range(layers))
            self.pooler = nn.Linear(width, width)

        def forward(self, input_ids, attention_mask, token_type_ids):
            positions = torch.arange(input_ids.shape[1]).unsqueeze(0)
            x = self.norm(self.words(input_ids) + self.segments(token_type_ids) + self.positions(positions))
            mask = (1.0 - attention_mask[:, None, None, :].float()) * -10000.0
            for layer in self.layers:
                x = layer(x, mask)
            return x, torch.tanh(self.pooler(x[:, 0]))

    network = Encoder()
    for module in network.modules():
        if isinstance(module, nn.Linear):
            nn.init.normal_(module.weight, std=0.04)
            nn.init.normal_(module.bias, std=0.02)
        elif isinstance(module, nn.LayerNorm):
            nn.init.normal_(module.weight, mean=1.0, std=0.1)
            nn.init.normal_(module.bias, std=0.1)
        elif isinstance(module, nn.Embedding):
            nn.init.normal_(module.weight, std=0.05)
    ids = torch.randint(0, 30522, (1, 128))
    mask = (torch.arange(128) < 112).long().unsqueeze(0)
    segments = (torch.arange(128) >= 60).long().unsqueeze(0)
    inputs = ["input_ids", "attention_mask", "token_type_ids"]
    return network, (ids, mask, segments), inputs, ["last_hidden_state", "pooler_output"]


def recurrent(kind, **options):
    """A network of recurrent layers over 100 steps of 128 values, its last states given out, initial states taken in."""

    def make():
        import torch
        from torch import nn

        class Recurrent(nn.Module):
            def __init__(self):
                super().__init__()
                self.cells = getattr(nn, kind)(128, 256, batch_first=True, **options)

            def forward(self, *x):
                y, state = self.cells(x[0], *x[1:])
                return (y, *state) if isinstance(state, tuple) else (y, state)

        network = Recurrent()
        sample = (torch.randn(1, 100, 128),)
        inputs, outputs = ["input"], ["output", "h"]
        if kind == "LSTM":
            outputs.append("c")
        else:
            sample += (0.3 * torch.randn(network.cells.num_layers, 1, 256),)
            inputs.append("h0")
        return network, sample, inputs, outputs

    return make


NETWORKS = {
    "resnet18": torchvision_network("resnet18", 11),
    "resnet50": torchvision_network("resnet50", 13),
    "mobilenet_v2": torchvision_network("mobilenet_v2", 12),
    "mobilenet_v3_large": torchvision_network("mobilenet_v3_large", 13),
    "squeezenet1_1": torchvision_network("squeezenet1_1", 11),
    "vgg16": torchvision_network("vgg16", 13),
    "densenet121": torchvision_network("densenet121", 13),
    "efficientnet_b0": torchvision_network("efficientnet_b0", 14),
    "vit_b_16": torchvision_network("vit_b_16", 14),
    "bert_base": (bert_base, 14),
    "lstm": (recurrent("LSTM", num_layers=2, bidirectional=True), 14),
    "gru": (recurrent("GRU"), 13),
}


def export(name, path):
    import torch

    make, opset = NETWORKS[name]
    torch.manual_seed(int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "little"))
    network, sample, inputs, outputs = make()
    # PRESERVE leaves BatchNormalization beside its Conv, EVAL would multiply it in.
    network.eval()
    torch.onnx.export(network, sample, path, opset_version=opset, input_names=inputs, output_names=outputs,
                      training=torch.onnx.TrainingMode.PRESERVE, do_constant_folding=True)


def unpack_ocr(folder):
    """The three models out of the wheel."""
    archive = zipfile.ZipFile(pinned_wheel(WHEEL, folder))
    for name, member in OCR.items():
        write(folder / f"{name}.onnx", archive.read(f"rapidocr_onnxruntime/models/{member}"))


def write(path, data):
    part = path.with_name(path.name + ".part")
    part.write_bytes(data)
    os.replace(part, path)


def main(folder, names):
    folder.mkdir(parents=True, exist_ok=True)
    known = [*NETWORKS, *OCR]
    for name in names:
        if name not in known:
            sys.exit(f"export_models: no network is called {name}; there are: {' '.join(known)}")
    names = names or known
    parts = [pathlib.Path(__file__).read_bytes(), WHEEL.read_bytes()]
    for package in ("python3-torch", "python3-torchvision"):
        parts.append(subprocess.run(["dpkg-query", "-W", "-f", "${Package} ${Version}\n", package], check=True,
                                    capture_output=True).stdout)
    key = hashlib.sha256(b"".join(parts)).hexdigest()

    def present(name):
        stamp = folder / f"{name}.key"
        return (folder / f"{name}.onnx").exists() and stamp.exists() and stamp.read_text() == key

    missing = [name for name in names if not present(name)]
    if any(name in OCR for name in missing):
        unpack_ocr(folder)
    for name in missing:
        path = folder / f"{name}.onnx"
        if name in NETWORKS:
            part = path.with_name(path.name + ".part")
            export(name, str(part))
            os.replace(part, path)
        write(folder / f"{name}.key", key.encode())
        print(f"{path}: {path.stat().st_size / 1e6:.1f} MB", flush=True)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__.split("\n\n")[1].strip())
    main(pathlib.Path(sys.argv[1]), sys.argv[2:])
