"""What stories have in common: a command that is run and shown, and the page that is made of it."""

import json
import pathlib
import re
import subprocess
import sys

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "tests/bench"))
import networks  # noqa: E402
import simulator_accuracy  # noqa: E402

BYTES = {"f32": 4, "f16": 2, "i64": 8, "i32": 4, "f64": 8, "i8": 1, "u8": 1, "bool": 1}


class Story:
    def __init__(self, regie, work):
        self.regie, self.work, self.text = regie, pathlib.Path(work), []
        self.work.mkdir(parents=True, exist_ok=True)

    def say(self, text):
        self.text.append(text.strip() + "\n")

    def call(self, *arguments):
        """The output of `regie ARGUMENTS`, run in the story's folder."""
        done = subprocess.run([self.regie, *arguments], cwd=self.work, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"regie {' '.join(arguments)}\n{done.stdout}{done.stderr}")
        return done.stdout

    def show(self, *arguments, only="", leave=None):
        """Runs it and puts it on the page: of its output the lines that match `only`, at most `leave` of them."""
        out = self.call(*arguments)
        lines = [line.rstrip() for line in out.splitlines() if re.search(only, line)]
        cut = lines[:leave] + (["..."] if leave and len(lines) > leave else [])
        if not cut:
            sys.exit(f"regie {' '.join(arguments)}: nothing matches {only}\n{out}")
        self.text.append("```\n$ regie " + " ".join(arguments) + "\n" + "\n".join(cut) + "\n```\n")
        return out

    def profile(self, model, *options):
        """The simulated part of a profile, time alone."""
        out = self.call("profile", model, *options, "--device-set", "npu.numerics=off", "--runs", "1", "--warm-ups", "1", "--json")
        return json.loads(out)["simulated"][0]

    def table(self, head, rows):
        self.text.append(simulator_accuracy.table(head, rows))

    def file(self, name, text):
        (self.work / name).write_text(text)
        return name

    def claim(self, holds, what):
        if not holds:
            sys.exit("the story is no longer true: " + what)

    def graph(self, model, *options):
        """Before engines are chosen: {value: bytes}, [(operator, operands, results)], constants left out."""
        folder = self.work / "dump"
        self.call("compile", model, "-o", "dumped.rgm", "--dump", "dump", *options)
        text = next(folder.glob("*-group.rg")).read_text()
        for path in folder.iterdir():
            path.unlink()
        return read_graph(text)


def size(kind):
    match = re.match(r"(\w+)\[([\d,]*)\]", kind)
    total = BYTES[match[1]]
    for dim in match[2].split(","):
        total *= int(dim) if dim else 1
    return total


def read_graph(text):
    sizes, nodes, constants = {}, [], set()
    for name, const, kind in re.findall(r"(%[\w./]+): (const |weight )?(\w+\[[\d,]*\])", text):
        sizes[name] = size(kind)
        if const:
            constants.add(name)
    for line in text.splitlines():
        match = re.match(r"\s*(%.*?) = ([\w.]+)\((.*?)\)(?: |$)", line)
        if not match or re.search(": (const|weight) ", match[1]):
            continue
        results = re.findall(r"%[\w./]+", match[1])
        operands = [v for v in re.findall(r"%[\w./]+", match[3]) if v not in constants]
        nodes.append((match[2], operands, results))
    return sizes, nodes
