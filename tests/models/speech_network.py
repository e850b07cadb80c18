"""Takes Silero VAD out of the pinned wheel of `silero-vad`.

    speech_network.py FOLDER

FOLDER/silero_vad.onnx is the file; pip downloads the wheel that speech/requirements.txt pins, its digest is checked, and nothing
of it is installed or run.
"""
import os
import pathlib
import sys
import zipfile

from wheels import pinned_wheel

WHEEL = pathlib.Path(__file__).resolve().parent / "speech" / "requirements.txt"
MEMBER = "silero_vad/data/silero_vad.onnx"


def main(folder):
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "silero_vad.onnx"
    bytes_ = zipfile.ZipFile(pinned_wheel(WHEEL, folder)).read(MEMBER)
    if not path.exists() or path.read_bytes() != bytes_:
        made = path.with_suffix(".tmp")
        made.write_bytes(bytes_)
        os.replace(made, path)


if __name__ == "__main__":
    main(*sys.argv[1:])
