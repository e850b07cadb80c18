"""What `Model.profile` gives: timed runs, task by task."""

from __future__ import annotations

import dataclasses as _dataclasses
import os as _os
from collections.abc import Iterator as _Iterator
from typing import Any


@_dataclasses.dataclass(frozen=True)
class TaskTime:
    """What one task of a run takes, and what it is.

    sources: the framework's operators that it was made from, "conv1 (Conv)", as the model file names them.
    engine: of the target that computes it; None for copies and control flow, as `kernel`.
    reference: whether the kernel is a reference kernel, which is slow.
    calls: in all runs together; in a loop's body one an iteration.
    ms_a_run, least_ms_a_call: milliseconds of `clock`: "real", or "simulated" for devices that only exist as simulations, whose
        times are not to be added to real ones. Those of control flow hold the times of the tasks inside.
    """

    node: str
    operator: str
    kind: str
    sources: tuple[str, ...]
    engine: str | None
    kernel: str | None
    reference: bool
    device: str
    stream: int
    calls: int
    ms_a_run: float
    least_ms_a_call: float
    clock: str


class Profile:
    """Timed runs of a model: iterates over its tasks in the order in which they are issued; prints as a table.

    tasks: a TaskTime for each task that ran.
    run_ms: {"min", "median", "mean", "max"}: from the call of a run to its end, timing included.
    summary: all of it as `regie profile --json` gives it (docs/profile.md).
    trace: a trace in Chrome's event format, which ui.perfetto.dev and chrome://tracing load; None if none was asked for.
    """

    def __init__(self, summary: dict[str, Any], trace: str | None):
        self.summary = summary
        self.trace = trace
        self.run_ms: dict[str, float] = summary["run_ms"]
        self.tasks = [
            TaskTime(node=t["node"], operator=t["operator"], kind=t["kind"], sources=tuple(t["from"]), engine=t["engine"] or None,
                     kernel=t["kernel"] or None, reference=t["reference"], device=t["device"], stream=t["stream"],
                     calls=t["calls"], ms_a_run=t["ms_a_run"], least_ms_a_call=t["least_ms_a_call"], clock=t["clock"])
            for t in summary["tasks"]]

    def __iter__(self) -> _Iterator[TaskTime]:
        return iter(self.tasks)

    def __len__(self) -> int:
        return len(self.tasks)

    def save_trace(self, path: str | _os.PathLike[str]) -> None:
        if self.trace is None:
            raise ValueError("no trace was kept; ask for one: model.profile(inputs, trace=True), or trace=PATH to write it")
        with open(path, "w", encoding="utf-8") as to:
            to.write(self.trace)

    def __str__(self) -> str:
        lines = [f"{self.summary['runs']} runs, {self.run_ms['median']:.4f} ms each (median), {len(self)} tasks"]
        for t in sorted(self.tasks, key=lambda t: -t.ms_a_run):
            made_by = ", ".join(filter(None, (t.engine, t.kernel or t.kind, "reference kernel" if t.reference else None)))
            clock = "" if t.clock == "real" else f" {t.clock}"
            lines.append(f"{t.ms_a_run:12.4f} ms{clock}  {' + '.join(t.sources) or t.node}: {made_by}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"regie.Profile({len(self)} tasks, {self.run_ms['median']:.4f} ms a run)"
