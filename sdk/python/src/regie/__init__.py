"""Compile and run neural networks with Regie.

    import numpy as np, regie

    model = regie.compile("model.onnx", threads=2)
    scores = model.run({"x": np.zeros((1, 1, 8, 8), np.float32)})["scores"]
    model.save("model.rgm")        # and later, without compiling: regie.load("model.rgm")
    print(model.report["arena_bytes"])
    print(model.explain(node="conv1"))             # why it became what it is
    print(model.profile({"x": np.zeros((1, 1, 8, 8), np.float32)}))  # where the time of a run goes
"""

from __future__ import annotations

import json as _json
import os as _os
from collections.abc import Mapping as _Mapping
from typing import Any, Sequence

from . import _core
from ._profile import Profile, TaskTime

__all__ = ["Error", "Model", "Port", "Profile", "TaskTime", "cache_statistics", "compile", "explain", "load", "open_ahead",
           "set_log_level", "__version__"]
__version__: str = _core.version()

Port = _core.Port
_CODES = ("OK", "INVALID_MODEL", "INVALID_INPUT", "UNSUPPORTED", "NOT_FOUND", "IO", "CORRUPT", "OUT_OF_MEMORY", "LIMIT",
          "BAD_PLUGIN", "TIMEOUT", "DEVICE", "INTERNAL")


class Error(RuntimeError):
    """The engine's failure: its words, which name file and node, and `code`, one of the names in `_CODES`."""

    code: str

    def __init__(self, words: str, code: int = 12):
        super().__init__(words)
        self.code = _CODES[code] if 0 <= code < len(_CODES) else str(code)


_core.set_error_type(Error)


class Model:
    """A compiled model. May be run from any number of threads at once."""

    def __init__(self, core: _core.Model):
        self._core = core

    @property
    def inputs(self) -> list[Port]:
        """Name, dtype and shape of each input; a symbolic dimension is its expression as a string. A run may leave out an
        input that is `optional`: the model has a value for it."""
        return self._core.inputs

    @property
    def outputs(self) -> list[Port]:
        return self._core.outputs

    @property
    def report(self) -> dict[str, Any]:
        """What the compile decided: stages, operators, fusions, engines, memory, tasks."""
        return _json.loads(self._core._report)

    @property
    def statistics(self) -> dict[str, Any]:
        """Of all runs: how often kernels were made ready for a new shape, and which plans runs took (docs/shapes.md)."""
        return _json.loads(self._core._statistics())

    def run(self, inputs: dict[str, Any], outputs: Sequence[str] | None = None) -> dict[str, Any]:
        """Runs the model on arrays by input name; gives new arrays by output name (those in `outputs`, or all).

        Arrays that are dense and in row-major order are not copied. Their dtype must be the input's. Other threads run
        meanwhile. Raises KeyError for a missing or unknown name, TypeError for a wrong dtype, Error for what the engine
        refuses (a wrong shape, say).
        """
        return self._core.run(inputs, outputs)

    def explain(self, node: str | None = None, *, rule: str | None = None, plan: str | None = None, all: bool = False,
                json: bool = False) -> Any:
        """Why the model became what it is, as `regie explain` tells it (docs/explain.md): text, or with json=True a dictionary.

        node: the name of a node, an output or a tensor in the framework's model: what became of it, which engine and kernel compute it
            and why, which fusions stopped there and at what.
        rule: the name of a fusion: where it was applied, where it stopped. Without node and rule: an overview.
        plan: "x.0=4", of a model with several plans the one to explain; else that of the greatest sizes.
        all: nothing is left out for brevity.

        A compile keeps the first details of each kind, and the answer says how many it has not; regie.compile(..., explain=True)
        keeps all. Raises Error ("NOT_FOUND") with names that are near.
        """
        asked = [(key, value) for key, value in (("node", node), ("rule", rule), ("plan", plan)) if value is not None]
        asked += [(key, "1") for key, on in (("all", all), ("json", json)) if on]
        text = self._core._explain(asked)
        return _json.loads(text) if json else text

    def profile(self, inputs: dict[str, Any], *, runs: int = 5, warm_ups: int = 3,
                trace: bool | str | _os.PathLike[str] = False) -> Profile:
        """Runs the model on these inputs with every task timed: what each takes, what it was made from and who computes it.

        runs, warm_ups: how many are timed, and how many are made before.
        trace: True keeps a trace in Chrome's event format (Profile.trace, Profile.save_trace); a path also writes it there.

        Of a model with several plans the one of the greatest sizes can be profiled.
        """
        if not 1 <= runs <= 10000 or not 0 <= warm_ups <= 10000:
            raise ValueError(f"runs are from 1 to 10000 and warm_ups from 0 to 10000, not {runs} and {warm_ups}")
        if not isinstance(trace, bool):
            trace = _os.fspath(trace)  # of anything else a TypeError: a number would be taken for an open file
        summary, text = self._core._profile(inputs, runs, warm_ups, trace is not False)
        profile = Profile(_json.loads(summary), text if trace is not False else None)
        if not isinstance(trace, bool):
            profile.save_trace(trace)
        return profile

    def save(self, path: str | _os.PathLike[str]) -> None:
        """Writes the offline model (.rgm)."""
        self._core.save(_os.fspath(path))

    def __repr__(self) -> str:
        return f"regie.Model({self.inputs} -> {self.outputs})"


def _options(target: str, pipeline: str | None, shapes: str | _Mapping[str, Sequence[int]] | None, threads: int,
             optimise: bool, settings: _Mapping[str, Any] | None, options: dict[str, Any]) -> list[tuple[str, str]]:
    made = [("target", target), ("threads", str(threads)), ("optimise", str(int(optimise)))]
    if pipeline is not None:
        made.append(("pipeline", _os.fspath(pipeline)))
    if isinstance(shapes, str):
        made.append(("shapes", shapes))
        shapes = None
    made += _dimensions("shape", shapes)
    if settings is not None and not isinstance(settings, _Mapping):
        raise TypeError(f'settings are a mapping such as {{"streams": 2}}, not {type(settings).__name__}')
    for key, value in (settings or {}).items():
        made.append(("set", f"{key}={value}"))
    for key, value in options.items():
        if key in ("shape", "typical") and not isinstance(value, str):
            made += _dimensions(key, value)
        else:
            made.append((key.replace("_", "-"), str(int(value)) if isinstance(value, bool) else str(value)))
    return made


def _dimensions(option: str, inputs: _Mapping[str, Sequence[Any]] | None) -> list[tuple[str, str]]:
    return [(option, f"{name}={','.join('?' if d is None else str(d) for d in dims)}") for name, dims in (inputs or {}).items()]


def _of_session(threads: int, shape_log: str | _os.PathLike[str] | None, devices: _Mapping[str, Any] | None,
                timeout_ms: int | None) -> list[tuple[str, str]]:
    made = [("threads", str(threads))] if threads else []
    if shape_log is not None:
        made.append(("shape-log", _os.fspath(shape_log)))
    if timeout_ms is not None:
        made.append(("timeout-ms", str(timeout_ms)))
    for key, value in (devices or {}).items():
        made.append(("device-set", f"{key}={value}"))
    return made


def compile(model: Any, *, target: str = "host_cpu", pipeline: str | None = None,
            shapes: str | _Mapping[str, Sequence[int]] | None = None, threads: int = 1, optimise: bool = True,
            settings: _Mapping[str, Any] | None = None, name: str = "model.onnx",
            shape_log: str | _os.PathLike[str] | None = None, devices: _Mapping[str, Any] | None = None,
            timeout_ms: int | None = None, **options: Any) -> Model:
    """Compiles a model for a target.

    model: a path, the bytes of a model file, or an onnx.ModelProto.
    shapes: {"x": (16, 1, 8, 8)} fixes the dimensions of an input; "buckets:x.0=1|4|16" makes a plan for each of these sizes,
        which requests are padded up to; "max:x.0=16" and "dynamic" (the default) are the other ways.
    threads: width of the kernels, at compile time and in runs.
    settings: {"pass.option": value}, as `regie compile --set`.
    name: what messages call a model that has no path; external data is looked for beside it.
    shape_log, devices, timeout_ms: of the runs, as for `load`.
    options: others of the embedding API: padding, overflow (with buckets), dump, verify, plugin_path, cache ("off", "read", "on"),
        cache_dir, cache_size, fold_defaults (inputs that the model has a value for are constants),
        typical ({"x": (16, None, 224, 224)}: sizes that open axes usually have, which the plan is made for; others run too),
        memory_limit ("64MiB": most bytes that the arenas may take; cheap values are computed again where that needs it),
        explain (Model.explain has every detail, not only the first ones; what is compiled so never comes from the cache).

    With the cache on (cache="on", a cache_dir, or the variables REGIE_CACHE and REGIE_CACHE_DIR) what was compiled before, from
    the same in every respect, is not compiled again: model.report["cache"] says where it came from, or why it was not known.
    """
    made = _options(target, pipeline, shapes, threads, optimise, settings, options)
    runs = _of_session(threads, shape_log, devices, timeout_ms)
    if isinstance(model, (str, _os.PathLike)):
        return Model(_core.compile_file(_os.fspath(model), made, runs))
    if hasattr(model, "SerializeToString"):
        model = model.SerializeToString()
    if not isinstance(model, (bytes, bytearray, memoryview)):
        raise TypeError(f"a model is a path, bytes or a ModelProto, not {type(model).__name__}")
    return Model(_core.compile_bytes(bytes(model), name, made, runs))


def load(path: str | _os.PathLike[str], *, threads: int = 0, shape_log: str | _os.PathLike[str] | None = None,
         devices: _Mapping[str, Any] | None = None, timeout_ms: int | None = None) -> Model:
    """Loads an offline model.

    threads: 0 is the width that it was compiled for.
    shape_log: a file that gets a line of JSON with the shapes of each run, for `regie shapes advise`.
    devices: {"npu.mode": "sink"}, parameters of devices for these runs, as `--device-set`.
    timeout_ms: longest wait for a device before a run fails.
    """
    return Model(_core.load(_os.fspath(path), _of_session(threads, shape_log, devices, timeout_ms)))


def explain(model: Any, node: str | None = None, *, rule: str | None = None, plan: str | None = None, all: bool = False,
            json: bool = False, **options: Any) -> Any:
    """Why a model becomes what it does: Model.explain of a compile that is made to see, with every detail.

    model, options: as for `compile`. Of an offline model (.rgm) without options its own compile is explained, by what the file has kept.
    """
    if not options and isinstance(model, (str, _os.PathLike)):
        with open(model, "rb") as file:
            offline = file.read(8) == b"REGIERGM"
        if offline:
            return load(model).explain(node, rule=rule, plan=plan, all=all, json=json)
    options.setdefault("explain", True)
    return compile(model, **options).explain(node, rule=rule, plan=plan, all=all, json=json)


def open_ahead(device: str = "host_cpu", *, plugin_path: str = "") -> None:
    """Begins to open the libraries that models for `device` need, on a thread, and returns.

    For a program that will load a model and has something else to do first: read its inputs, say. `load` and the first run then find
    them open, some milliseconds sooner. Nothing depends on it; what cannot be opened is said by `load` or `run`. Variables of the
    environment (OMP_WAIT_POLICY, REGIE_PLUGIN_PATH) are to be set before, as libraries read them when they are opened.
    """
    _core.open_ahead(device, plugin_path)


def cache_statistics() -> dict[str, int]:
    """How often this process compiled since it began, and how often it need not: compiles, process_hits, folder_hits, ..."""
    return _json.loads(_core.cache_statistics())


def set_log_level(level: str) -> None:
    """Least level that is written to standard error: "debug", "info", "warning" or "error"."""
    levels = ("debug", "info", "warning", "error")
    if level not in levels:
        raise ValueError(f"a log level is one of {', '.join(levels)}, not '{level}'")
    _core.set_log_level(levels.index(level))
