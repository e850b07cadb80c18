"""Where somebody speaks: Silero VAD over a sentence that espeak-ng says, window by window with state, against ONNX Runtime.

    check_speech.py REGIE FOLDER WORK

FOLDER/silero_vad.onnx is what speech_network.py makes. It chooses between 16 and 8 kHz by an input, and has If nodes that ask for
shapes. Each window is its own run; state and the end of the window before are handed on. Compiled for the shapes of 16 kHz and of 8 kHz, and with
symbolic shapes that serve both, optimised and not, run online and from the .rgm.
"""
import pathlib
import subprocess
import sys
import wave

import numpy as np
import onnxruntime

from check_models import run
from inputs import input_options

TEXT = "The stage is set. Nobody speaks now. One, two, three, four, five, six, and the play begins."


def speech(work, rate):
    """Mono, -1 to 1, at `rate`; a second of silence before and after."""
    path = work / "speech.wav"
    subprocess.run(["espeak-ng", "-v", "en", "-s", "150", "-w", path, TEXT], check=True)
    with wave.open(str(path)) as file:
        given = file.getframerate()
        samples = np.frombuffer(file.readframes(file.getnframes()), np.int16).astype(np.float32) / 32768
    at = np.arange(int(len(samples) * rate / given)) * given / rate
    quiet = np.zeros(rate, np.float32)
    return np.concatenate([quiet, np.interp(at, np.arange(len(samples)), samples).astype(np.float32), quiet])


def windows(samples, rate):
    """What the network is given: the end of the window before, and the window."""
    size, context = (512, 64) if rate == 16000 else (256, 32)
    padded = np.concatenate([np.zeros(context, np.float32), samples])
    return [padded[i:i + context + size][None] for i in range(0, len(padded) - context - size + 1, size)]


def chain(step, parts, rate):
    """Probabilities, window by window."""
    state = np.zeros((2, 1, 128), np.float32)
    out = []
    for part in parts:
        probability, state = step({"input": part, "state": state, "sr": np.array(rate, np.int64)})
        out.append(float(np.asarray(probability).reshape(-1)[0]))
    return np.array(out, np.float32), state


class Regie:
    """One model, run by the command line."""

    def __init__(self, regie, model, work, arguments):
        self.regie, self.model, self.work, self.arguments = regie, model, work, arguments

    def __call__(self, values):
        given = input_options(values, self.work)
        run([self.regie, "run", self.model, "--output-dir", self.work / "out", *self.arguments, *given])
        return [np.load(self.work / "out" / f"{name}.npy") for name in ("output", "stateN")]


def differs(what, got, want):
    worst = np.abs(got - want).max()
    bound = 1e-4 * np.abs(want).max() + 1e-5
    print(f"{what}: {len(np.ravel(want))} values, differ by {worst:.2g} at most, {bound:.2g} allowed")
    return not worst <= bound


def main(regie, folder, work):
    folder, work = pathlib.Path(folder), pathlib.Path(work)
    work.mkdir(parents=True, exist_ok=True)
    model = folder / "silero_vad.onnx"
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    wrong = 0
    for rate in (16000, 8000):
        parts = windows(speech(work, rate), rate)
        wanted, last = chain(lambda values: session.run(["output", "stateN"], values), parts, rate)
        if not (wanted[0] < 0.2 and wanted.max() > 0.8):
            sys.exit(f"check_speech: nobody speaks, or the silence does: {wanted}")
        shapes = ["--shape", f"input=1,{parts[0].shape[1]}", "--shape", "state=2,1,128"]
        for name, arguments in (("fixed", shapes), ("fixed, not optimised", [*shapes, "--no-optimise"]), ("symbolic", [])):
            file = work / f"vad_{rate}_{name.replace(', ', '_').replace(' ', '_')}.rgm"
            run([regie, "compile", model, "-o", file, *arguments])
            forms = [("from the model file", Regie(regie, file, work, []), parts)]
            if name != "symbolic":  # compiled anew for each window, so for a part of them
                forms.append(("online", Regie(regie, model, work, arguments), parts[:40]))
            for form, step, some in forms:
                got, state = chain(step, some, rate)
                wrong += differs(f"{rate} Hz, {name}, {form}", got, wanted[:len(some)])
                if len(some) == len(parts):
                    wrong += differs(f"{rate} Hz, {name}, {form}, last state", state, last)
        spoken = (wanted > 0.5).mean()
        print(f"{rate} Hz: {len(parts)} windows, somebody speaks in {100 * spoken:.0f} % of them")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
