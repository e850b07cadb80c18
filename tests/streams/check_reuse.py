"""Events that only let buffers share bytes, end to end: networks with branches on simulated accelerators and on two streams of this
computer, compiled without such events, with them, and for memory limits between the two; arenas, predicted time, events, and answers.

    check_reuse.py REGIE WORK --networks FOLDER [--only NAME,...]

Fails if an arena is larger with them or a run predicted to be more than 1 % or than one stream slower, if what the report says was saved is
not the difference, if several streams do not meet a limit that they are known to meet, or if an answer differs by a bit.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import onnx

HERE = pathlib.Path(__file__).resolve().parent
TARGETS = HERE.parent.parent / "configs" / "targets"
sys.path.insert(0, str(HERE.parent / "models"))
from inputs import input_options, random_inputs  # noqa: E402

os.environ["REGIE_CACHE"] = "off"
OFF = ("--set", "schedule-on-streams.reuse=off")


def call(*command, fails=False):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    if done.returncode and not fails:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done


class Check:
    def __init__(self, regie, work, network):
        self.regie, self.work, self.network = regie, work, network
        model = onnx.load(str(network), load_external_data=False)
        self.given = input_options(random_inputs(model, 5, lambda name, dims: [d or 1 for d in dims]), work)

    def compile(self, options, model="m"):
        path = self.work / f"{model}.rgm"
        path.unlink(missing_ok=True)
        done = call(self.regie, "compile", self.network, "-o", path, "--json", *options)
        return path, json.loads(done.stdout)

    def outputs(self, model):
        folder = self.work / "out"
        folder.mkdir(exist_ok=True)
        for old in folder.glob("*.npy"):
            old.unlink()
        call(self.regie, "run", model, *self.given, "--output-dir", folder)
        made = {f.name: np.load(f).tobytes() for f in folder.glob("*.npy")}
        assert made, "the run wrote no output"
        return made


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("regie")
    parser.add_argument("work", type=pathlib.Path)
    parser.add_argument("--networks", type=pathlib.Path, required=True)
    parser.add_argument("--only", default="")
    a = parser.parse_args()
    a.work.mkdir(parents=True, exist_ok=True)
    sink = a.work / "sink.toml"
    text = (TARGETS / "ascend910a-sim.toml").read_text()
    changed = text.replace('mode = "issue"', 'mode = "sink"')
    assert changed != text
    sink.write_text(changed)
    places = {"910A, issue": ("--target", "ascend910a-sim"), "910A, sink": ("--target", sink),
              "this computer": ("--set", "streams=2", "--threads", "2")}
    only = set(filter(None, a.only.split(",")))
    networks = sorted(p for p in a.networks.glob("*.onnx") if not only or p.stem in only)
    assert networks, "no networks"
    failures, smaller, limits = [], 0, 0
    print("| network | where | arena without | with | bytes for one stream | events without | with | of them for bytes | us without | with |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for network in networks:
        check = Check(a.regie, a.work, network)
        for name, options in places.items():
            where = f"{network.stem}, {name}"
            bare_model, bare = check.compile((*options, *OFF), "bare")
            model, shared = check.compile(options)
            count, saved = shared.get("reuse_events", 0), shared.get("reuse_saved_bytes", 0)
            one = sum(m.get("one_stream_lower_bound_bytes", 0) for m in shared["memory"]) or shared["arena_bytes"]
            print(f"| {network.stem} | {name} | {bare['arena_bytes']:,} | {shared['arena_bytes']:,} | {one:,} | {bare['events']} | "
                  f"{shared['events']} | {count} | {bare.get('predicted_ns', 0) / 1000:.1f} | {shared.get('predicted_ns', 0) / 1000:.1f} |", flush=True)
            told = sum(" may lie where " in reason for reason in shared["event_reasons"])
            if told != count:
                failures.append(f"{where}: {count} events for bytes, {told} reasons")
            if bare["arena_bytes"] - shared["arena_bytes"] != saved:
                failures.append(f"{where}: {saved} bytes saved by the report, arenas {bare['arena_bytes']} and {shared['arena_bytes']}")
            if shared.get("predicted_ns", 0) > 1.01 * bare.get("predicted_ns", 0):
                failures.append(f"{where}: predicted to be more than 1 % slower")
            if shared.get("predicted_ns", 0) > shared.get("predicted_one_stream_ns", 0):
                failures.append(f"{where}: predicted to be slower than one stream")
            if bare["streams"] != shared["streams"]:
                failures.append(f"{where}: other streams")
            if not count:
                continue
            smaller += 1
            expected = check.outputs(bare_model)
            if check.outputs(model) != expected:
                failures.append(f"{where}: an answer differs from that without events for bytes")
            # What is known to fit must be found to fit, with the streams.
            limit = shared["arena_bytes"]
            model, limited = check.compile((*options, "--memory-limit", limit), "limited")
            limits += 1
            if limited["arena_bytes"] > limit or limited["streams"] != shared["streams"]:
                failures.append(f"{where}: limit {limit}: {limited['streams']} streams, {limited['arena_bytes']} bytes")
            if check.outputs(model) != expected:
                failures.append(f"{where}: an answer differs under a memory limit")
            # Less: with more events, or on one stream; met in any case.
            lower = (one + limit) // 2
            if one < lower:
                model, limited = check.compile((*options, "--memory-limit", lower), "lower")
                if limited["arena_bytes"] > lower:
                    failures.append(f"{where}: limit {lower}: {limited['arena_bytes']} bytes")
                several = limited["streams"] == shared["streams"]
                print(f"|   | limit {lower:,} | | {limited['arena_bytes']:,} | | | {limited['events']} | {limited.get('reuse_events', 0)} | "
                      f"{limited['streams']} streams{'' if several else ' of ' + str(shared['streams'])} | {limited.get('predicted_ns', 0) / 1000:.1f} |", flush=True)
                if check.outputs(model) != expected and several:
                    failures.append(f"{where}: an answer differs under a lower memory limit")
    if not only and (smaller < 3 or limits < 3):
        failures.append(f"events for bytes were added in {smaller} cases only")
    if failures:
        sys.exit("\n".join(failures))


main()
