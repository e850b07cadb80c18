"""What the checks of streams do alike: compile a network, run it with the inputs that its file asks for, read what it made."""
import json
import pathlib
import subprocess
import sys

import numpy as np
import onnx

HERE = pathlib.Path(__file__).resolve().parent
TARGETS = HERE.parent.parent / "configs" / "targets"
sys.path.insert(0, str(HERE.parent / "models"))
from inputs import input_options, random_inputs  # noqa: E402


def call(*command):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


def target_file(work, name, **parameters):
    """A target of ours with other values of parameters that it has once: mode="sink"."""
    path = work / f"{'-'.join([name, *parameters.values()])}.toml"
    lines = (TARGETS / f"{name}.toml").read_text().splitlines()
    for key, value in parameters.items():
        at = [i for i, line in enumerate(lines) if line.split("=")[0].strip() == key]
        assert len(at) == 1, (name, key, at)
        lines[at[0]] = f'{key} = "{value}"'
    path.write_text("\n".join(lines) + "\n")
    return path


def inputs_of(network, work):
    """Options of `regie run`."""
    model = onnx.load(str(network), load_external_data=False)
    return input_options(random_inputs(model, 5, lambda name, dims: [d or 1 for d in dims]), work)


def compiled(regie, network, model, *options):
    """The report."""
    model.unlink(missing_ok=True)
    return json.loads(call(regie, "compile", network, "-o", model, "--json", *options))


def outputs(regie, model, given, folder):
    """What a run makes, as bytes by file."""
    folder.mkdir(exist_ok=True)
    for old in folder.glob("*.npy"):
        old.unlink()
    call(regie, "run", model, *given, "--output-dir", folder)
    made = {f.name: np.load(f).tobytes() for f in folder.glob("*.npy")}
    assert made, "the run wrote no output"
    return made


def networks_of(folder, only):
    names = set(filter(None, only.split(",")))
    networks = sorted(p for p in folder.glob("*.onnx") if not names or p.stem in names)
    assert networks, "no networks"
    return networks
