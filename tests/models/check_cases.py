"""Runs the acceptance cases of tests/models/cases in every way that a model can be run, and judges what case.toml asks for.

    check_cases.py REGIE WORK [CASE...] [--cases FOLDER] [--not-yet FILE] [--ways session,command] [--jobs N]

Ways: optimised and not; `session` (the Python package: all runs of a case in ONE session, twice over) and `command` (`regie run`,
a process a run); from the model file and from the offline model, in a process of its own; with a cold cache, a warm one and none.
What is measured (peak memory, time, stack) is measured in that process. Exits 1 with one line a failure. Cases in FILE (`case: reason`) must fail; one that passes is
an error too, so that the list stays exact.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import resource
import shutil
import subprocess
import sys
import time
import tomllib

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
KINDS = {  # error_kind -> codes that the engine may give; the command line says no code
    "invalid-model": {"INVALID_MODEL"}, "invalid-input": {"INVALID_INPUT"}, "unsupported": {"UNSUPPORTED"},
    "unsupported-operator": {"UNSUPPORTED"}, "path-escape": {"INVALID_MODEL"}, "data-truncated": {"INVALID_MODEL", "CORRUPT"},
}
CLEAR = {"INVALID_MODEL", "INVALID_INPUT", "UNSUPPORTED", "CORRUPT", "LIMIT", "NOT_FOUND"}  # where no kind is asked for
SECONDS = 300  # nothing here may take longer


class Wrong(Exception):
    pass


class Case:
    def __init__(self, folder):
        self.folder = folder
        self.name = folder.name
        with open(folder / "case.toml", "rb") as file:
            told = tomllib.load(file)
        self.expect = told["expect"]
        self.bounds = self.expect.get("bounds", {})
        self.model = folder / told["model"]["file"]
        self.runs = told["run"]

    def limit(self):
        """Of the process that calls it."""
        if "stack_kb" in self.bounds:
            resource.setrlimit(resource.RLIMIT_STACK, (self.bounds["stack_kb"] * 1024,) * 2)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    def outcome(self, run):
        return run["outcome"] if self.expect["outcome"] == "per-run" else self.expect["outcome"]

    def arrays(self, run, which):
        return {name: np.load(self.folder / file) for name, file in run[which].items()}

    def check_error(self, code, message, run=None):
        """An error is an answer only if it is clear: of the right kind, and it names what is at fault."""
        told = {**self.expect, **(run or {})}
        allowed = KINDS[told["error_kind"]] if "error_kind" in told else CLEAR
        if code and code not in allowed:
            raise Wrong(f"the error is of kind {code}, not {' or '.join(sorted(allowed))}: {message}")
        for name in told.get("message_names", []):
            if not re.search(r"(?<![A-Za-z0-9_])" + re.escape(name) + r"(?![A-Za-z0-9_])", message):
                raise Wrong(f"the error does not mention '{name}': {message}")

    def check_failure(self, code, message, runs):
        """The model could not be compiled, loaded or run at all, which `runs` would have needed."""
        for run in runs:
            outcome = self.outcome(run)
            if outcome == "values":
                raise Wrong(f"values were expected, but: {message}")
            if outcome != "no-crash":
                self.check_error(code, message, run)
        if code in ("INTERNAL", "BAD_PLUGIN"):
            raise Wrong(f"the engine itself is at fault: {message}")

    def check_values(self, run, got):
        outcome = self.outcome(run)
        if outcome == "error":
            raise Wrong("an error was expected, but the run gave values")
        if outcome == "no-crash":
            return
        want = self.arrays(run, "outputs")
        if set(want) - set(got):
            raise Wrong(f"outputs {sorted(set(want) - set(got))} are missing")
        for name, value in want.items():
            compare(name, np.asarray(got[name]), value, self.expect)


def compare(name, got, want, expect):
    if got.dtype != want.dtype:
        raise Wrong(f"{name} is {got.dtype}, not {want.dtype}")
    if got.shape != want.shape:
        raise Wrong(f"{name} has the shape {list(got.shape)}, not {list(want.shape)}")
    rtol, atol = expect.get("rtol", 0.0), expect.get("atol", 0.0)
    if want.dtype.kind in "fc" and (rtol or atol):
        same = np.isclose(got.astype(np.float64), want.astype(np.float64), rtol=rtol, atol=atol, equal_nan=expect.get("nan_equal", True))
    elif want.dtype.kind in "fc":
        same = (got == want) | (np.isnan(got) & np.isnan(want) & expect.get("nan_equal", True))
    else:
        same = got == want
    if not np.all(same):
        at = tuple(int(i) for i in np.argwhere(~np.atleast_1d(same))[0])
        raise Wrong(f"{name}: {int(np.size(same) - np.count_nonzero(same))} of {np.size(same)} elements are wrong; "
                    f"at {list(at)} {np.atleast_1d(got)[at]!r}, not {np.atleast_1d(want)[at]!r}")


# ---- One session, in a process of its own ----------------------------------------------------------------------------------


def session(case, task):
    """Body of the process: compile or load, then every run in one session. Gives a dictionary."""
    import regie

    started = time.monotonic()
    try:
        if task.get("load"):
            model = regie.load(task["load"])
        else:
            model = regie.compile(case.model, optimise=task["optimise"], **task.get("options", {}))
        if task.get("save"):
            model.save(task["save"])
    except regie.Error as error:
        case.check_failure(error.code, str(error), case.runs)
        return {"answer": "error"}
    if "cache" in task and model.report["cache"]["outcome"] != task["cache"]:
        raise Wrong(f"the cache was to be a {task['cache']}, but was {model.report['cache']}")
    told = {"answer": "values", "seconds": time.monotonic() - started,
            "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}
    if task.get("save"):
        return told
    for turn in range(2):  # the second time nothing may be left of the first
        for number, run in enumerate(case.runs):
            inputs = case.arrays(run, "inputs")
            kept = {name: value.copy() for name, value in inputs.items()}
            try:
                got = model.run(inputs)
            except (regie.Error, KeyError, TypeError) as error:
                try:
                    case.check_failure(getattr(error, "code", "INVALID_INPUT"), str(error), [run])
                except Wrong as wrong:
                    raise Wrong(f"run {number}, turn {turn}: {wrong}")
                continue
            try:
                case.check_values(run, got)
                for name, value in inputs.items():
                    if value.tobytes() != kept[name].tobytes():
                        raise Wrong(f"the run changed the caller's input {name}")
                check_apart(inputs, got)
            except Wrong as wrong:
                raise Wrong(f"run {number}, turn {turn}: {wrong}")
    return told


def check_apart(inputs, outputs):
    """Every output is its own buffer: writing into one changes no other and no input."""
    arrays = [(f"input {n}", v) for n, v in inputs.items()] + [(f"output {n}", v) for n, v in outputs.items()]
    for i, (name, array) in enumerate(arrays):
        for other_name, other in arrays[:i]:
            if np.may_share_memory(array, other):
                raise Wrong(f"{name} and {other_name} share memory")
    for name, array in outputs.items():
        if not array.flags.writeable:
            raise Wrong(f"output {name} cannot be written to")
        array.fill("?" if array.dtype.kind == "O" else 0x5A)


def in_child(case, task, cache=None):
    """session() in a process with the case's limits; Wrong if it fails, crashes or takes too long. `cache`: a folder."""
    command = [sys.executable, __file__, "--child", str(case.folder), json.dumps(task)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, preexec_fn=case.limit, env=environment(cache))
    except subprocess.TimeoutExpired:
        raise Wrong(f"not done after {SECONDS} s")
    if done.returncode:
        raise Wrong(f"the process ended with {done.returncode}: {done.stderr.strip()[-600:]}")
    told = json.loads(done.stdout.splitlines()[-1])
    if "wrong" in told:
        raise Wrong(told["wrong"])
    return told


def environment(cache):
    return {**os.environ, **({"REGIE_CACHE": "on", "REGIE_CACHE_DIR": str(cache)} if cache else {"REGIE_CACHE": "off"})}


def check_bounds(case, told, offline):
    if told["answer"] != "values":
        return
    if told["seconds"] > case.bounds.get("compile_seconds", SECONDS):
        raise Wrong(f"the compile took {told['seconds']:.1f} s, more than {case.bounds['compile_seconds']}")
    if told["peak_mb"] > case.bounds.get("compile_peak_mb", float("inf")):
        raise Wrong(f"the compile needed {told['peak_mb']:.0f} MB, more than {case.bounds['compile_peak_mb']}")
    if offline and offline.stat().st_size > case.bounds.get("offline_model_mb", float("inf")) * 1e6:
        raise Wrong(f"the offline model has {offline.stat().st_size} bytes, more than {case.bounds['offline_model_mb']} MB")


def by_session(case, work, optimise):
    offline = work / "session.rgm"
    for cache in ("miss", "hit"):
        check_bounds(case, in_child(case, {"optimise": optimise, "cache": cache}, work / "cache"), None)
    told = in_child(case, {"optimise": optimise, "save": str(offline)})
    if told["answer"] == "values":
        check_bounds(case, told, offline)
        in_child(case, {"load": str(offline)})
    elif offline.exists():
        raise Wrong("the compile failed, but left an offline model")


# ---- The command line, a process a run --------------------------------------------------------------------------------------


def regie_command(case, command, cache=None):
    """Runs it within the case's limits; gives (whether it failed, standard error, peak MB, seconds)."""
    started = time.monotonic()
    process = subprocess.Popen([str(c) for c in command], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                               preexec_fn=case.limit, env=environment(cache))
    stderr = process.stderr.read()  # ends when the process does
    _, status, used = os.wait4(process.pid, 0)
    code = process.returncode = os.waitstatus_to_exitcode(status)
    seconds = time.monotonic() - started
    if code not in (0, 2):
        raise Wrong(f"{command[1]} ended with {code}, not 2: {stderr.strip()[-600:]}")
    return code == 2, stderr.strip(), used.ru_maxrss / 1024, seconds


def run_by_command(case, regie, model, options, work, cache=None):
    for number, run in enumerate(case.runs):
        out = work / f"out{number}"
        shutil.rmtree(out, ignore_errors=True)
        inputs = [a for name, file in run["inputs"].items() for a in ("--input", f"{name}={case.folder / file}")]
        failed, stderr, _, _ = regie_command(case, [regie, "run", model, *options, *inputs, "--output-dir", out], cache)
        try:
            if failed:
                if out.exists() and list(out.iterdir()):
                    raise Wrong("the run failed, but left outputs")
                case.check_failure(None, stderr, [run])
            else:
                files = {re.sub(r"[/\\:\x00-\x1f]", "_", n): n for n in run["outputs"]}
                case.check_values(run, {n: np.load(out / f"{f}.npy") for f, n in files.items() if (out / f"{f}.npy").exists()})
        except Wrong as wrong:
            raise Wrong(f"run {number}: {wrong}")


def by_command(case, work, optimise, regie):
    options = [] if optimise else ["--no-optimise"]
    offline = work / "command.rgm"
    for _ in ("cold", "warm"):
        run_by_command(case, regie, case.model, options, work, work / "cache")
    failed, stderr, peak, seconds = regie_command(case, [regie, "compile", case.model, "-o", offline, *options])
    if failed:
        if offline.exists():
            raise Wrong("the compile failed, but left an offline model")
        return case.check_failure(None, stderr, case.runs)
    check_bounds(case, {"answer": "values", "seconds": seconds, "peak_mb": peak}, offline)
    run_by_command(case, regie, offline, [], work)


# ---- All of it --------------------------------------------------------------------------------------------------------------


def judge(case, work, regie, ways):
    """Failures of one case, as texts."""
    failures = []
    for way in ways:
        for optimise in (True, False):
            folder = work / case.name / f"{way}-{'optimised' if optimise else 'plain'}"
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            try:
                if way == "session":
                    by_session(case, folder, optimise)
                else:
                    by_command(case, folder, optimise, regie)
            except Wrong as wrong:
                failures.append(f"{way}, {'optimised' if optimise else 'not optimised'}: {wrong}")
    return failures


def child(folder, task):
    try:
        told = session(Case(pathlib.Path(folder)), json.loads(task))
    except Wrong as wrong:
        told = {"wrong": str(wrong)}
    print(json.dumps(told))


def main():
    if sys.argv[1:2] == ["--child"]:
        return child(*sys.argv[2:4])
    parser = argparse.ArgumentParser()
    parser.add_argument("regie")
    parser.add_argument("work", type=pathlib.Path)
    parser.add_argument("case", nargs="*")
    parser.add_argument("--cases", type=pathlib.Path, default=HERE / "cases")
    parser.add_argument("--not-yet", type=pathlib.Path)
    parser.add_argument("--ways", default="session,command")
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    folders = sorted(f.parent for f in given.cases.glob("*/case.toml") if not given.case or any(f.parent.name.startswith(c) for c in given.case))
    if not folders:
        sys.exit(f"no case in {given.cases}")
    lines = given.not_yet.read_text().splitlines() if given.not_yet else []
    not_yet = dict(line.split(": ", 1) for line in lines if line and not line.startswith("#"))
    wrong = [f"{name}: is in the list of those not passed yet, but there is no such case"
             for name in not_yet if not (given.cases / name / "case.toml").exists()]
    with concurrent.futures.ThreadPoolExecutor(given.jobs) as pool:
        results = list(pool.map(lambda f: judge(Case(f), given.work, given.regie, given.ways.split(",")), folders))
    passed = 0
    for folder, failures in zip(folders, results):
        if folder.name in not_yet:
            print(f"not yet  {folder.name}: {not_yet[folder.name]}")
            if not failures:
                wrong.append(f"{folder.name}: passes; take it off the list of those not passed yet")
        else:
            passed += not failures
            wrong += [f"{folder.name}: {f}" for f in failures]
    for line in wrong:
        print(f"FAILED   {line}")
    print(f"{passed} of {len(folders)} cases passed, {len([f for f in folders if f.name in not_yet])} not yet")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
