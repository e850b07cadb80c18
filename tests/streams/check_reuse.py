"""Events that only let buffers share bytes, end to end: networks with branches on simulated accelerators and on two streams of this
computer, compiled without such events, with them, and for memory limits between the two; arenas, predicted time, events, and answers.

    check_reuse.py REGIE WORK --networks FOLDER [--only NAME,...]

Fails if an arena is larger with them or a run predicted to be more than 1 % or than one stream slower, if what the report says was saved is
not the difference, if several streams do not meet a limit that they are known to meet, or if an answer differs by a bit.
"""
import argparse
import os
import pathlib
import sys

from stream_runs import compiled, inputs_of, networks_of, outputs, target_file

os.environ["REGIE_CACHE"] = "off"
OFF = ("--set", "schedule-on-streams.reuse=off")


class Check:
    def __init__(self, regie, work, network):
        self.regie, self.work, self.network = regie, work, network
        self.given = inputs_of(network, work)

    def compile(self, options, model="m"):
        path = self.work / f"{model}.rgm"
        return path, compiled(self.regie, self.network, path, *options)

    def outputs(self, model):
        return outputs(self.regie, model, self.given, self.work / "out")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("regie")
    parser.add_argument("work", type=pathlib.Path)
    parser.add_argument("--networks", type=pathlib.Path, required=True)
    parser.add_argument("--only", default="")
    a = parser.parse_args()
    a.work.mkdir(parents=True, exist_ok=True)
    sink = target_file(a.work, "ascend910a-sim", mode="sink")
    places = {"910A, issue": ("--target", "ascend910a-sim"), "910A, sink": ("--target", sink),
              "this computer": ("--set", "streams=2", "--threads", "2")}
    networks = networks_of(a.networks, a.only)
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
    if not a.only and (smaller < 3 or limits < 3):
        failures.append(f"events for bytes were added in {smaller} cases only")
    if failures:
        sys.exit("\n".join(failures))


main()
