"""Compile and run neural networks with Regie.

    import numpy as np, regie

    model = regie.compile("model.onnx", threads=2)
    scores = model.run({"x": np.zeros((1, 1, 8, 8), np.float32)})["scores"]
    model.save("model.rgm")        # and later, without compiling: regie.load("model.rgm")
    print(model.report["arena_bytes"])
"""

from __future__ import annotations

import json as _json
import os as _os
from collections.abc import Mapping as _Mapping
from typing import Any, Sequence

from . import _core

__all__ = ["Error", "Model", "Port", "cache_statistics", "compile", "load", "open_ahead", "set_log_level", "__version__"]
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
        memory_limit ("64MiB": most bytes that the arenas may take; cheap values are computed again where that needs it).

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
