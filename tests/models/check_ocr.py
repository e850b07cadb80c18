"""Reads the printed text of ocr/picture.pgm with the three PP-OCR networks, one after the other, through `regie`.

    check_ocr.py REGIE FOLDER WORK

detector -> boxes -> crop -> direction classifier (turns a line that is upside down) -> recogniser -> CTC decoding. Each
network is compiled once, with its symbolic sizes, and runs from its .rgm at the size of the picture or line. The text must be
what make_picture.py printed; each result of Regie is compared with ONNX Runtime's on the same input.
"""
import ast
import pathlib
import subprocess
import sys

import numpy as np
import onnx
import onnxruntime

HERE = pathlib.Path(__file__).resolve().parent / "ocr"


def printed_lines():
    """LINES of make_picture.py, which itself needs packages that are not here."""
    tree = ast.parse((HERE / "make_picture.py").read_text())
    return next(ast.literal_eval(n.value) for n in tree.body if isinstance(n, ast.Assign) and n.targets[0].id == "LINES")


def read_pgm(path):
    data = path.read_bytes()
    magic, width, height, most = data.split(maxsplit=4)[:4]
    assert magic == b"P5" and most == b"255"
    return np.frombuffer(data[-int(width) * int(height):], np.uint8).reshape(int(height), int(width)).astype(np.float32)


def resized(image, height, width):
    """Bilinear, centres of pixels aligned."""
    def places(size, wanted):
        at = np.clip((np.arange(wanted) + 0.5) * size / wanted - 0.5, 0, size - 1)
        low = np.floor(at).astype(int)
        return low, np.minimum(low + 1, size - 1), (at - low).astype(np.float32)
    y0, y1, fy = places(image.shape[0], height)
    x0, x1, fx = places(image.shape[1], width)
    rows = image[y0] * (1 - fy)[:, None] + image[y1] * fy[:, None]
    return rows[:, x0] * (1 - fx) + rows[:, x1] * fx


def as_input(image, mean, deviation):
    planes = [(image / 255 - m) / d for m, d in zip(mean, deviation)]
    return np.stack(planes)[None].astype(np.float32)


class Network:
    def __init__(self, regie, folder, work, name):
        self.regie, self.work, self.name = regie, work, name
        path = folder / f"{name}.onnx"
        self.model = work / f"{name}.rgm"
        subprocess.run([regie, "compile", path, "-o", self.model], check=True, capture_output=True, text=True)
        self.session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        self.input, self.output = self.session.get_inputs()[0].name, self.session.get_outputs()[0].name

    def __call__(self, x):
        np.save(self.work / "x.npy", x)
        subprocess.run([self.regie, "run", self.model, "--input", f"{self.input}={self.work}/x.npy", "--output-dir", self.work / "out"],
                       check=True, capture_output=True, text=True)
        got = np.load(self.work / "out" / f"{self.output.replace('/', '_')}.npy")
        want = self.session.run([self.output], {self.input: x})[0]
        assert got.shape == want.shape, f"{self.name}: {got.shape}, must be {want.shape}"
        error = np.abs(got - want).max() / (1e-4 * np.abs(want).max() + 1e-5)
        print(f"{self.name} on {list(x.shape)}: {error:.3g} of the bound")
        assert error <= 1, f"{self.name} differs"
        return got


def boxes(probability, threshold=0.3, least=30):
    """Bounding boxes of connected areas above the threshold, from top to bottom."""
    above = probability > threshold
    seen = np.zeros_like(above)
    found = []
    for y, x in zip(*np.nonzero(above)):
        if seen[y, x]:
            continue
        stack, area = [(y, x)], []
        seen[y, x] = True
        while stack:
            at = stack.pop()
            area.append(at)
            for dy, dx in ((0, 1), (1, 0), (0, -1), (-1, 0)):
                near = at[0] + dy, at[1] + dx
                if 0 <= near[0] < above.shape[0] and 0 <= near[1] < above.shape[1] and above[near] and not seen[near]:
                    seen[near] = True
                    stack.append(near)
        if len(area) >= least:
            ys, xs = zip(*area)
            found.append((min(ys), max(ys) + 1, min(xs), max(xs) + 1))
    return sorted(found)


def decoded(scores, alphabet):
    """The greatest score of each step; repeats and the blank (0) fall out."""
    text, last = "", 0
    for index in scores.argmax(axis=-1):
        if index != last and index != 0:
            text += alphabet[index - 1]
        last = index
    return text


def alphabet_of(folder):
    properties = {p.key: p.value for p in onnx.load(folder / "ocr_recogniser.onnx").metadata_props}
    return properties["character"].splitlines() + [" "]


def read_picture(detector, classifier, recogniser, alphabet):
    """The texts of the lines, from top to bottom, and which of them were turned. The networks are functions of an array."""
    picture = read_pgm(HERE / "picture.pgm")
    height, width = (-(-s // 32) * 32 for s in picture.shape)
    probability = detector(as_input(resized(picture, height, width), (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)))[0, 0]
    texts, turns = [], []
    half = (0.5, 0.5, 0.5)
    for top, bottom, left, right in boxes(probability):
        # The detector's areas are shrunk: they grow again by what their size and outline say.
        grow = 1.6 * (bottom - top) * (right - left) / (2 * (bottom - top + right - left))
        y = [int(np.clip(v, 0, height)) * picture.shape[0] // height for v in (top - grow, bottom + grow + 1)]
        x = [int(np.clip(v, 0, width)) * picture.shape[1] // width for v in (left - grow, right + grow + 1)]
        line = picture[y[0]:y[1], x[0]:x[1]]
        wide = min(192, -(-48 * line.shape[1] // line.shape[0]))
        padded = np.full((48, 192), 127.5, np.float32)
        padded[:, :wide] = resized(line, 48, wide)
        direction = classifier(as_input(padded, half, half))[0]
        turns.append(bool(direction[1] > 0.9))
        if turns[-1]:
            line = line[::-1, ::-1]
        wide = -(-48 * line.shape[1] // line.shape[0])
        texts.append(decoded(recogniser(as_input(resized(line, 48, wide), half, half))[0], alphabet))
    return texts, turns


def main():
    regie, folder, work = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
    work.mkdir(parents=True, exist_ok=True)
    networks = [Network(regie, folder, work, f"ocr_{n}") for n in ("detector", "classifier", "recogniser")]
    texts, turns = read_picture(*networks, alphabet_of(folder))
    print(f"read {texts}, turned {turns}")
    assert texts == printed_lines(), f"the picture says {printed_lines()}"
    assert turns == [False, True], "the second line is upside down"


if __name__ == "__main__":
    main()
