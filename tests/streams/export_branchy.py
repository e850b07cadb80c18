"""Small networks with branches that do not need each other, with fixed seeds, from Debian's torch.

    /usr/bin/python3 export_branchy.py FOLDER

FOLDER/NAME.onnx each, as the exporter writes them. They exist for check_streams.py: what may run side by side, and what may not.
Weights are random; nothing is trained.
"""
import hashlib
import os
import pathlib
import sys

import torch
from torch import nn
from torch.nn import functional as F


def conv(i, o, size, stride=1):
    return nn.Sequential(nn.Conv2d(i, o, size, stride, size // 2, bias=False), nn.BatchNorm2d(o), nn.ReLU())


class Inception(nn.Module):
    """The block of GoogLeNet: four branches of one tensor, joined."""

    def __init__(self, i, a, b0, b1, c0, c1, d):
        super().__init__()
        self.branch1 = conv(i, a, 1)
        self.branch2 = nn.Sequential(conv(i, b0, 1), conv(b0, b1, 3))
        self.branch3 = nn.Sequential(conv(i, c0, 1), conv(c0, c1, 3))
        self.branch4 = nn.Sequential(nn.MaxPool2d(3, 1, 1), conv(i, d, 1))

    def forward(self, x):
        return torch.cat([self.branch1(x), self.branch2(x), self.branch3(x), self.branch4(x)], 1)


class GoogLeNet(nn.Module):
    """Its blocks 3a to 4c, with their sizes."""

    def __init__(self):
        super().__init__()
        self.blocks = nn.Sequential(
            conv(192, 192, 1), Inception(192, 64, 96, 128, 16, 32, 32), Inception(256, 128, 128, 192, 32, 96, 64),
            nn.MaxPool2d(3, 2, 1), Inception(480, 192, 96, 208, 16, 48, 64), Inception(512, 160, 112, 224, 24, 64, 64),
            Inception(512, 128, 128, 256, 24, 64, 64))

    def forward(self, x):
        return self.blocks(x).mean((2, 3))


class Dense(nn.Module):
    """Layers that each read all before them (DenseNet, without its own order of normalisation)."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Sequential(conv(32 + 16 * k, 64, 1), conv(64, 16, 3)) for k in range(6))

    def forward(self, x):
        parts = [x]
        for layer in self.layers:
            parts.append(layer(torch.cat(parts, 1)))
        return torch.cat(parts, 1).mean((2, 3))


class Heads(nn.Module):
    """Attention written head by head, two layers of it."""

    def __init__(self, width=256, heads=8, layers=2):
        super().__init__()
        size = width // heads
        self.layers = nn.ModuleList()
        for _ in range(layers):
            parts = nn.ModuleList(nn.ModuleList(nn.Linear(width, size) for _ in range(3)) for _ in range(heads))
            self.layers.append(nn.ModuleDict({"heads": parts, "join": nn.Linear(width, width), "norm": nn.LayerNorm(width)}))

    def forward(self, x):
        for layer in self.layers:
            made = []
            for q, k, v in layer["heads"]:
                scores = q(x) @ k(x).transpose(1, 2) * 0.18
                made.append(torch.cumsum(scores.softmax(-1), -1) @ v(x))
            x = layer["norm"](x + layer["join"](torch.cat(made, -1)))
        return x


class TwoTowers(nn.Module):
    """A picture and a text, compared (as CLIP does); words are looked up and picked from."""

    def __init__(self):
        super().__init__()
        self.picture = nn.Sequential(conv(3, 32, 3, 2), *(layer for k in range(5) for layer in (conv(32 << min(k, 2), 32 << min(k + 1, 2), 3, 2 if k < 2 else 1),)))
        self.head = nn.Linear(128, 128)
        self.words = nn.Embedding(1000, 128)
        self.text = nn.Linear(128, 128)

    def forward(self, picture, ids):
        a = self.head(self.picture(picture).mean((2, 3)))
        w = self.words(ids)
        best = torch.topk(w, 16, dim=1)[0]
        sums = torch.cumsum(w, 1)[:, -1]
        b = self.text(best.mean(1) + sums)
        return (F.normalize(a, dim=1) * F.normalize(b, dim=1)).sum(1)


class Detector(nn.Module):
    """A small pyramid: boxes and scores at three scales, each decoded and cut to its best."""

    def __init__(self):
        super().__init__()
        self.stem = conv(3, 32, 3, 2)
        self.stages = nn.ModuleList([conv(32, 64, 3, 2), conv(64, 128, 3, 2), conv(128, 128, 3, 2)])
        self.scores = nn.ModuleList(nn.Conv2d(c, 16, 1) for c in (64, 128, 128))
        self.boxes = nn.ModuleList(nn.Conv2d(c, 4, 1) for c in (64, 128, 128))

    def forward(self, x):
        x = self.stem(x)
        out = []
        for stage, scores, boxes in zip(self.stages, self.scores, self.boxes):
            x = stage(x)
            s = scores(x).flatten(2).sigmoid().amax(1)
            b = boxes(x).flatten(2)
            best, where = torch.topk(s, 32, dim=1)
            out.append(torch.cat([b.gather(2, where.unsqueeze(1).expand(-1, 4, -1)), best.unsqueeze(1)], 1))
        return torch.cat(out, 2)


NETWORKS = {
    "googlenet": (GoogLeNet, lambda: (torch.randn(1, 192, 28, 28),), ["x"]),
    "dense": (Dense, lambda: (torch.randn(1, 32, 28, 28),), ["x"]),
    "heads": (Heads, lambda: (torch.randn(1, 64, 256),), ["x"]),
    "two_towers": (TwoTowers, lambda: (torch.randn(1, 3, 128, 128), torch.randint(0, 1000, (1, 64))), ["picture", "ids"]),
    "detector": (Detector, lambda: (torch.randn(1, 3, 128, 128),), ["x"]),
}


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    key = hashlib.sha256(pathlib.Path(__file__).read_bytes() + torch.__version__.encode()).hexdigest()
    for name, (make, inputs, names) in NETWORKS.items():
        stamp, file = folder / (name + ".key"), folder / (name + ".onnx")
        if file.exists() and stamp.exists() and stamp.read_text() == key:
            continue
        torch.manual_seed(7)
        network = make().eval()
        temporary = folder / (name + ".new")
        torch.onnx.export(network, inputs(), str(temporary), input_names=names, output_names=["y"], opset_version=13)
        os.replace(temporary, file)
        stamp.write_text(key)
        print(name, file.stat().st_size)


main()
