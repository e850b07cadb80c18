"""Regie as a backend of ONNX's own test runner (onnx.backend.test.BackendTest).

    import onnx.backend.test, regie.onnx_backend
    tests = onnx.backend.test.BackendTest(regie.onnx_backend, __name__)
    globals().update(tests.enable_report().test_cases)
"""

from __future__ import annotations

from typing import Any

import onnx
from onnx.backend.base import Backend, BackendRep

import regie


class RegieRep(BackendRep):
    def __init__(self, model: regie.Model):
        self.model = model

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """inputs: arrays in the order of the model's inputs, or by name."""
        if not isinstance(inputs, dict):
            names = [p.name for p in self.model.inputs]
            required = [p.name for p in self.model.inputs if not p.optional]
            if len(inputs) == len(required):
                names = required
            if len(inputs) != len(names):
                raise ValueError(f"the model has {len(names)} inputs, {len(inputs)} are given")
            inputs = dict(zip(names, inputs))
        results = self.model.run(inputs)
        return tuple(results[p.name] for p in self.model.outputs)


class RegieBackend(Backend):
    @classmethod
    def is_compatible(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> bool:
        return cls.supports_device(device)

    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> RegieRep:
        if not cls.supports_device(device):
            raise ValueError(f"Regie's ONNX backend runs on CPU, not on {device}")
        return RegieRep(regie.compile(model, **kwargs))

    @classmethod
    def run_model(cls, model: onnx.ModelProto, inputs: Any, device: str = "CPU", **kwargs: Any) -> tuple[Any, ...]:
        return cls.prepare(model, device, **kwargs).run(inputs)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        return device.split(":")[0] == "CPU"


prepare = RegieBackend.prepare
run_model = RegieBackend.run_model
run_node = RegieBackend.run_node
supports_device = RegieBackend.supports_device
is_compatible = RegieBackend.is_compatible
