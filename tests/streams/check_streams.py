"""Several streams against one, on simulated accelerators: predicted and simulated time, events, arenas, and the answers.

    check_streams.py REGIE WORK --networks FOLDER [--targets NAME,...] [--only NAME,...] [--no-answers]

For each network, target and mode (issue: task by task; sink: all at once): compiled for one stream, for several with the fewest events,
and with an event for each need. Fails if several are slower than one, if the networks that have something to overlap do not take
0.9 of the time in sink mode (geometric mean), if an event for each need are fewer, or if an answer differs by a bit. A network of which
nothing is on the device has a line that says so.
"""
import argparse
import json
import math
import pathlib
import sys

from stream_runs import call, compiled, inputs_of, networks_of, outputs, target_file

# What has branches that different engines compute, or that are small beside what a task costs.
OVERLAP = {"googlenet", "heads", "two_towers", "detector"}


class Check:
    def __init__(self, regie, work):
        self.regie, self.work = regie, work

    def compile(self, network, target, *settings):
        model = self.work / f"{network.stem}.rgm"
        return model, compiled(self.regie, network, model, "--target", target, *[w for s in settings for w in ("--set", s)])

    def simulated_us(self, model):
        profile = json.loads(call(self.regie, "profile", model, "--runs", 1, "--warm-ups", 1, "--json"))
        devices = profile.get("simulated", [])
        return devices[0]["run_us"] if devices else None

    def outputs(self, network, target, given, *settings):
        model, _ = self.compile(network, target, *settings)
        return outputs(self.regie, model, given, self.work / "out")


def geometric(values):
    return math.exp(sum(map(math.log, values)) / len(values)) if values else 1.0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("regie")
    parser.add_argument("work", type=pathlib.Path)
    parser.add_argument("--networks", type=pathlib.Path, required=True)
    parser.add_argument("--targets", default="ascend910a-sim,ascend310-sim")
    parser.add_argument("--only", default="")
    parser.add_argument("--no-answers", action="store_true")
    a = parser.parse_args()
    a.work.mkdir(parents=True, exist_ok=True)
    check, failures, ratios = Check(a.regie, a.work), [], {}
    networks = networks_of(a.networks, a.only)
    print("| network | target, mode | one stream us | several us | ratio | streams | events | every | every us | arena one | arena several |")
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    for network in networks:
        for name in a.targets.split(","):
            for mode in ("issue", "sink"):
                target = target_file(a.work, name, mode=mode, numerics="off")
                model, one = check.compile(network, target, "streams=1")
                one_us = check.simulated_us(model)
                if one_us is None:
                    print(f"| {network.stem} | {name}, {mode} | nothing of it is on the device |", flush=True)
                    continue
                model, several = check.compile(network, target)
                us = check.simulated_us(model)
                model, every = check.compile(network, target, "events=every")
                every_us = check.simulated_us(model)
                ratio = us / one_us
                where = f"{network.stem} on {name}, {mode}"
                print(f"| {network.stem} | {name}, {mode} | {one_us:.1f} | {us:.1f} | {ratio:.3f} | {several['streams']} | "
                      f"{several['events']} | {every['events']} | {every_us:.1f} | {one['arena_bytes']} | {several['arena_bytes']} |",
                      flush=True)
                if ratio > 1.0:
                    failures.append(f"{where}: slower with several streams, {us:.1f} against {one_us:.1f} us")
                fewest = several["events"] - several.get("reuse_events", 0)  # nobody needs those for bytes
                if every["events"] < fewest:
                    failures.append(f"{where}: {every['events']} events for every need, {fewest} are the fewest")
                if several["predicted_ns"] > several["predicted_one_stream_ns"]:
                    failures.append(f"{where}: predicted to be slower than one stream, and taken")
                if mode == "sink" and network.stem in OVERLAP:
                    ratios.setdefault(name, []).append(ratio)
        if a.no_answers:
            continue
        given = inputs_of(network, a.work)
        target = target_file(a.work, a.targets.split(",")[0], mode="sink", numerics="on")
        expected = check.outputs(network, target, given, "streams=1")
        for settings in ((), ("events=every",)):
            got = check.outputs(network, target, given, *settings)
            assert got.keys() == expected.keys(), (got.keys(), expected.keys())
            for key, value in got.items():
                if value != expected[key]:
                    failures.append(f"{network.stem}, {settings}: output {key} differs from that of one stream")
    if not ratios and OVERLAP & {n.stem for n in networks}:
        failures.append("of the networks that have something to overlap none is on a device")
    for name, values in ratios.items():
        mean = geometric(values)
        print(f"{name}, sink: {mean:.3f} of one stream's time (geometric mean of {len(values)})")
        if mean > 0.9:
            failures.append(f"{name}: {mean:.3f} of one stream's time where there is something to overlap")
    if failures:
        sys.exit("\n".join(failures))


main()
