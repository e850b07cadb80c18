"""Small networks of other kinds than export_models.py has, with fixed seeds, from Debian's torch.

    /usr/bin/python3 export_families.py FOLDER

FOLDER/NAME.onnx each, with symbolic batch and sequence or picture size where the kind is used so. They exist to be compared with
ONNX Runtime (check_models.py), so they are a few layers each, but of the forms that exporters write.
"""
import hashlib
import math
import os
import pathlib
import sys

import torch
from torch import nn
from torch.nn import functional as F


class UNet(nn.Module):
    """Two levels down and up, transposed convolutions, skips by Concat."""

    def __init__(self):
        super().__init__()
        def block(i, o):
            return nn.Sequential(nn.Conv2d(i, o, 3, padding=1), nn.BatchNorm2d(o), nn.ReLU(), nn.Conv2d(o, o, 3, padding=1), nn.ReLU())
        self.down, self.middle, self.bottom = block(3, 8), block(8, 16), block(16, 32)
        self.up1, self.up2 = nn.ConvTranspose2d(32, 16, 2, 2), nn.ConvTranspose2d(16, 8, 3, 2, 1, 1)
        self.join1, self.join2, self.head = block(32, 16), block(16, 8), nn.Conv2d(8, 2, 1)

    def forward(self, x):
        a = self.down(x)
        b = self.middle(F.max_pool2d(a, 2))
        c = self.bottom(F.max_pool2d(b, 2))
        b = self.join1(torch.cat([self.up1(c), b], 1))
        return self.head(self.join2(torch.cat([self.up2(b), a], 1))).softmax(1)


class Upsampler(nn.Module):
    """A decoder by interpolation in every mode, with instance and group norms (style transfer, diffusion)."""

    def __init__(self):
        super().__init__()
        self.convs = nn.ModuleList(nn.Conv2d(8 if i else 3, 8, 3, padding=1, padding_mode="zeros") for i in range(4))
        self.instance, self.group = nn.InstanceNorm2d(8, affine=True), nn.GroupNorm(4, 8)
        self.plain, self.slope = nn.InstanceNorm2d(8), nn.PReLU(8)

    def forward(self, x):
        x = F.silu(self.instance(self.convs[0](F.pad(x, (1, 1, 1, 1), mode="reflect"))))
        x = F.interpolate(x, scale_factor=2, mode="nearest")
        x = self.slope(self.group(self.convs[1](x)))
        x = F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False)
        x = F.leaky_relu(self.plain(self.convs[2](x)), 0.2)
        x = F.interpolate(x, scale_factor=0.5, mode="bicubic", align_corners=True)
        return torch.tanh(F.pixel_shuffle(self.convs[3](x), 2))


class Decoder(nn.Module):
    """A decoder-only transformer: rotary embedding, RMS norm, SwiGLU, grouped heads, keys and values passed in and out."""

    def __init__(self, width=32, heads=4, groups=2, words=97, layers=2):
        super().__init__()
        self.heads, self.groups, self.size = heads, groups, width // heads
        self.words = nn.Embedding(words, width)
        self.layers = nn.ModuleList()
        for _ in range(layers):
            layer = nn.ModuleDict({"q": nn.Linear(width, width, bias=False), "k": nn.Linear(width, groups * self.size, bias=False),
                                   "v": nn.Linear(width, groups * self.size, bias=False), "o": nn.Linear(width, width, bias=False),
                                   "gate": nn.Linear(width, 48, bias=False), "up": nn.Linear(width, 48, bias=False), "down": nn.Linear(48, width, bias=False)})
            layer.first, layer.second = nn.Parameter(torch.rand(width) + 0.5), nn.Parameter(torch.rand(width) + 0.5)
            self.layers.append(layer)
        self.last = nn.Parameter(torch.rand(width) + 0.5)
        self.register_buffer("rates", 1.0 / 10000 ** (torch.arange(0, self.size, 2).float() / self.size))

    @staticmethod
    def norm(x, weight):
        return weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))

    @staticmethod
    def rotated(x, cos, sin):
        half = x.shape[-1] // 2
        return x * cos + torch.cat((-x[..., half:], x[..., :half]), -1) * sin

    def forward(self, ids, past):
        batch, steps = ids.shape[0], ids.shape[1]
        before = past.shape[4]
        positions = torch.arange(before, before + steps)
        angles = torch.outer(positions.float(), self.rates)
        cos, sin = torch.cat((angles, angles), -1).cos(), torch.cat((angles, angles), -1).sin()
        allowed = positions[:, None] >= torch.arange(before + steps)[None]
        mask = torch.zeros(steps, before + steps).masked_fill(~allowed, -1e9)
        x, present = self.words(ids), []
        for number, layer in enumerate(self.layers):
            y = self.norm(x, layer.first)
            q = layer["q"](y).view(batch, steps, self.heads, self.size).transpose(1, 2)
            k = layer["k"](y).view(batch, steps, self.groups, self.size).transpose(1, 2)
            v = layer["v"](y).view(batch, steps, self.groups, self.size).transpose(1, 2)
            k = torch.cat((past[number, 0], self.rotated(k, cos, sin)), 2)
            v = torch.cat((past[number, 1], v), 2)
            present.append(torch.stack((k, v)))
            k, v = (z[:, :, None].expand(-1, -1, self.heads // self.groups, -1, -1).reshape(batch, self.heads, -1, self.size) for z in (k, v))
            scores = torch.matmul(self.rotated(q, cos, sin), k.transpose(2, 3)) / math.sqrt(self.size) + mask
            y = torch.matmul(scores.softmax(-1), v).transpose(1, 2).reshape(batch, steps, -1)
            x = x + layer["o"](y)
            y = self.norm(x, layer.second)
            x = x + layer["down"](F.silu(layer["gate"](y)) * layer["up"](y))
        return F.linear(self.norm(x, self.last), self.words.weight), torch.stack(present)


class Mixer(nn.Module):
    """MLP-Mixer."""

    def __init__(self, width=24, places=16):
        super().__init__()
        self.patches = nn.Conv2d(3, width, 8, 8)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(5))
        self.tokens = nn.ModuleList(nn.Sequential(nn.Linear(places, 32), nn.GELU(), nn.Linear(32, places)) for _ in range(2))
        self.channels = nn.ModuleList(nn.Sequential(nn.Linear(width, 48), nn.GELU(), nn.Linear(48, width)) for _ in range(2))
        self.head = nn.Linear(width, 10)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        for i in range(2):
            x = x + self.tokens[i](self.norms[2 * i](x).transpose(1, 2)).transpose(1, 2)
            x = x + self.channels[i](self.norms[2 * i + 1](x))
        return self.head(self.norms[4](x).mean(1))


class Audio(nn.Module):
    """Strided 1-D convolutions, gated and dilated residual blocks, a recurrent layer with its states in and out."""

    def __init__(self):
        super().__init__()
        self.front = nn.Conv1d(1, 16, 10, 5)
        self.gates = nn.ModuleList(nn.Conv1d(16, 32, 3, padding=2 ** i, dilation=2 ** i) for i in range(3))
        self.depth = nn.Conv1d(16, 16, 5, padding=2, groups=16)
        self.norm, self.cells = nn.GroupNorm(1, 16), nn.LSTM(16, 12)
        self.head, self.back = nn.Linear(12, 5), nn.ConvTranspose1d(16, 1, 10, 5)

    def forward(self, wave, h, c):
        x = F.gelu(self.norm(self.front(wave)))
        for gate in self.gates:
            a, b = gate(x).chunk(2, 1)
            x = x + torch.tanh(a) * torch.sigmoid(b)
        x = F.hardswish(self.depth(x))
        y, (h, c) = self.cells(x.permute(2, 0, 1), (h, c))
        return self.head(y).log_softmax(-1), self.back(F.avg_pool1d(x, 3, 1, 1)), h, c


class Detector(nn.Module):
    """A detection head on grids: anchors by Range and Expand, boxes, the best of all by TopK, gathered."""

    def __init__(self, classes=4):
        super().__init__()
        self.body = nn.ModuleList([nn.Conv2d(3, 16, 3, 4, 1), nn.Conv2d(16, 16, 3, 2, 1)])
        self.heads = nn.ModuleList(nn.Conv2d(16, 5 + classes, 1) for _ in range(2))

    def forward(self, x):
        found = []
        for number, (layer, head) in enumerate(zip(self.body, self.heads)):
            x = F.silu(layer(x))
            y = head(x)
            rows, columns = y.shape[2], y.shape[3]
            kind = torch.float32 if number else torch.int64  # both are written
            grid_y, grid_x = torch.meshgrid(torch.arange(rows, dtype=kind), torch.arange(columns, dtype=kind), indexing="ij")
            grid = torch.stack((grid_x, grid_y), 2).reshape(1, -1, 2).float()
            y = y.flatten(2).permute(0, 2, 1)
            centre = (y[..., :2].sigmoid() * 2 - 0.5 + grid) * 4 * 2 ** number
            size = (y[..., 2:4].sigmoid() * 2) ** 2 * (8 * (number + 1))
            found.append(torch.cat((centre - size / 2, centre + size / 2, y[..., 4:5].sigmoid() * y[..., 5:].sigmoid()), -1))
        found = torch.cat(found, 1)
        best, label = found[..., 4:].max(-1)
        score, place = best.topk(10, 1)
        boxes = found[..., :4].gather(1, place[..., None].expand(-1, -1, 4)).clamp(min=0)
        return boxes, score, label.gather(1, place)


class Sampler(nn.Module):
    """A spatial transformer: a grid from the picture itself, sampled bilinearly; einsum; scatter; cumulative sums."""

    def __init__(self):
        super().__init__()
        self.look, self.theta = nn.Conv2d(3, 4, 7, 4), nn.Linear(4, 6)
        self.register_buffer("weight", torch.randn(3, 5))

    def forward(self, x):
        theta = self.theta(self.look(x).amax((2, 3))).view(-1, 2, 3) * 0.3
        steps = torch.linspace(-1, 1, 12)
        grid_y, grid_x = torch.meshgrid(steps, steps, indexing="ij")
        places = torch.stack((grid_x, grid_y, torch.ones_like(grid_x)), -1).reshape(1, -1, 3)
        grid = torch.matmul(places, theta.transpose(1, 2)).view(-1, 12, 12, 2)
        y = torch.einsum("bchw,cd->bdhw", F.grid_sample(x, grid, align_corners=True, padding_mode="border"), self.weight)
        order = y.mean((2, 3)).argsort(1, descending=True)
        z = y.new_zeros(y.shape[0], 5).scatter(1, order, y.amax((2, 3)))
        return y.cumsum(-1), z, torch.where(z > 0, z, z.exp() - 1), order


class Words(nn.Module):
    """An encoder with dynamic sizes, its attention written out, layer norms left to the exporter; tapped between its layers."""

    def __init__(self, width=32, heads=4):
        super().__init__()
        self.words, self.places = nn.Embedding(60, width), nn.Embedding(40, width)
        self.layers = nn.ModuleList(nn.TransformerEncoderLayer(width, heads, 64, dropout=0.0, batch_first=True, activation=a, norm_first=n)
                                    for a, n in (("gelu", False), ("relu", True)))

    def forward(self, ids, mask):
        x = self.words(ids) + self.places(torch.arange(ids.shape[1]))[None]
        taps = []
        for layer in self.layers:
            with torch.enable_grad():  # the fused path of inference has no export
                x = layer(x, src_key_padding_mask=mask)
            taps.append(x)
        return (*taps, x[:, 0])


FAMILIES = {
    "unet": (UNet, 11, lambda: (torch.randn(1, 3, 32, 48),), ["x"], ["y"], {"x": {0: "N", 2: "H", 3: "W"}}),
    "upsampler": (Upsampler, 13, lambda: (torch.randn(2, 3, 9, 12),), ["x"], ["y"], {}),
    "upsampler_16": (Upsampler, 16, lambda: (torch.randn(1, 3, 8, 8),), ["x"], ["y"], {}),
    "decoder": (Decoder, 14, lambda: (torch.randint(0, 97, (2, 3)), torch.randn(2, 2, 2, 2, 5, 8)), ["ids", "past"], ["logits", "present"],
                {"ids": {0: "N", 1: "S"}, "past": {2: "N", 4: "P"}}),
    "decoder_fixed": (Decoder, 17, lambda: (torch.randint(0, 97, (1, 6)), torch.randn(2, 2, 1, 2, 4, 8)), ["ids", "past"], ["logits", "present"], {}),
    "mixer": (Mixer, 17, lambda: (torch.randn(2, 3, 32, 32),), ["x"], ["y"], {"x": {0: "N"}}),
    "mixer_12": (Mixer, 12, lambda: (torch.randn(1, 3, 32, 32),), ["x"], ["y"], {}),
    "audio": (Audio, 14, lambda: (torch.randn(1, 1, 400), torch.zeros(1, 1, 12), torch.zeros(1, 1, 12)), ["wave", "h", "c"], ["y", "wave_out", "h_out", "c_out"],
              {"wave": {2: "L"}}),
    "detector": (Detector, 12, lambda: (torch.randn(1, 3, 64, 64),), ["x"], ["boxes", "scores", "labels"], {"x": {0: "N", 2: "H", 3: "W"}}),
    "detector_fixed": (Detector, 13, lambda: (torch.randn(1, 3, 64, 96),), ["x"], ["boxes", "scores", "labels"], {}),
    "sampler": (Sampler, 16, lambda: (torch.randn(2, 3, 24, 24),), ["x"], ["sums", "scattered", "elu", "order"], {}),
    "words": (Words, 14, lambda: (torch.randint(0, 60, (2, 7)), torch.zeros(2, 7, dtype=torch.bool)), ["ids", "mask"], ["first", "second", "cls"],
              {"ids": {0: "N", 1: "S"}, "mask": {0: "N", 1: "S"}}),
}


def main(folder, names):
    folder.mkdir(parents=True, exist_ok=True)
    for name in names or FAMILIES:
        make, opset, sample, inputs, outputs, dynamic = FAMILIES[name]
        torch.manual_seed(int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "little"))
        network = make().eval()
        path = folder / f"{name}.onnx"
        part = str(path) + ".part"
        torch.onnx.export(network, sample(), part, opset_version=opset, input_names=inputs, output_names=outputs, dynamic_axes=dynamic,
                          training=torch.onnx.TrainingMode.PRESERVE, do_constant_folding=True)
        os.replace(part, path)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__.split("\n\n")[1].strip())
    main(pathlib.Path(sys.argv[1]), sys.argv[2:])
