"""ONNX Runtime through its Python API: a cross-check of perfrun's own loop, and any version from 1.10 on.

Inputs and outputs are bound beforehand, as in perfrun's own loop. `io_binding: false` copies NumPy arrays in each call,
as `session.run` is often used.
"""

from collections import Counter
from typing import Any

import numpy as np
import onnxruntime as ort

from perfrun.failure import Failure

PROVIDERS = {
    "cpu": "CPUExecutionProvider",
    "cuda": "CUDAExecutionProvider",
    "tensorrt": "TensorrtExecutionProvider",
    "openvino": "OpenVINOExecutionProvider",
    "rocm": "ROCMExecutionProvider",
    "migraphx": "MIGraphXExecutionProvider",
}
LEVELS = {
    "disabled": ort.GraphOptimizationLevel.ORT_DISABLE_ALL,
    "basic": ort.GraphOptimizationLevel.ORT_ENABLE_BASIC,
    "extended": ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED,
    "all": ort.GraphOptimizationLevel.ORT_ENABLE_ALL,
}
RECORD_NODES = "session.record_ep_graph_assignment_info"  # From 1.24 on; older versions ignore it.
BFLOAT16 = 16  # In ONNX's TensorProto.DataType.


class Adapter:
    """One session, with a binding for each input set."""

    dynamic_outputs = False

    def describe(self) -> tuple[str, dict[str, str], list[str]]:
        offered = ort.get_available_providers()
        devices = [device for device, provider in PROVIDERS.items() if provider in offered]
        devices = [device + ":0" if device in ("cuda", "tensorrt", "rocm") else device for device in devices]
        return "onnxruntime " + ort.__version__, {"onnxruntime": ort.__version__}, devices

    def load(self, cell: Any) -> None:
        if not cell.model:
            raise Failure("model", "ONNX Runtime needs an ONNX file")
        self.device, _, number = cell.device.partition(":")
        self.number = int(number) if number.isdigit() else 0
        self.provider = PROVIDERS.get(self.device, "")
        if self.provider not in ort.get_available_providers():
            raise Failure("provider", f"ONNX Runtime {ort.__version__} here has no provider for {cell.device}")
        self.session = ort.InferenceSession(cell.model, self._options(cell), providers=self._providers(cell))
        if self.session.get_providers()[0] != self.provider:
            text = f"ONNX Runtime did not take {self.provider}: the session has {self.session.get_providers()}"
            raise Failure("provider", text)
        self.elements = {tensor["name"]: tensor["element"] for tensor in cell.tensors}
        self.names = [output.name for output in self.session.get_outputs()]
        self.shapes = cell.outputs
        tensors = all(value.type.startswith("tensor(") for value in self.session.get_outputs())
        self.binds = cell.options["io_binding"] and tensors
        self.call = self._run_bound if self.binds else self._run
        self.dynamic_outputs = not (self.binds and self.shapes)

    def _options(self, cell: Any) -> ort.SessionOptions:
        options = ort.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = cell.threads, 1
        options.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
        options.graph_optimization_level = LEVELS[cell.settings.get("graph_optimization") or "all"]
        options.add_session_config_entry(RECORD_NODES, "1")
        for key, value in (cell.settings.get("session") or {}).items():
            options.add_session_config_entry(key, str(value))
        return options

    def _providers(self, cell: Any) -> list[Any]:
        settings = {key: str(value) for key, value in (cell.settings.get("provider") or {}).items()}
        if self.device in ("cuda", "tensorrt", "rocm"):
            settings.setdefault("device_id", str(self.number))
        return [(self.provider, settings)] + ([] if self.device == "cpu" else [PROVIDERS["cpu"]])

    def inputs(self, arrays: dict[str, np.ndarray]) -> Any:
        """A binding, and what it is bound to: in old versions it keeps neither values nor their arrays alive."""
        if not self.binds:
            return arrays
        binding = self.session.io_binding()
        values = {name: self._value(array, self.elements[name]) for name, array in arrays.items()}
        for name, value in values.items():
            binding.bind_ortvalue_input(name, value)
        return binding, values, [self._bind_output(binding, output) for output in self.session.get_outputs()]

    def _value(self, array: np.ndarray, element: str) -> Any:
        device = (self.device, self.number) if self.device == "cuda" else ("cpu", 0)
        if element == "bfloat16":
            return ort.OrtValue.ortvalue_from_numpy_with_onnx_type(array, BFLOAT16)
        return ort.OrtValue.ortvalue_from_numpy(array.astype(object) if element == "string" else array, *device)

    def _bind_output(self, binding: Any, output: Any) -> Any:
        """Memory of its own where the shape is known; otherwise the session allocates in every call."""
        device = (self.device, self.number) if self.device == "cuda" else ("cpu", 0)
        element = TYPES.get(output.type)
        shape = (self.shapes or {}).get(output.name)
        if shape is None or element is None:
            return binding.bind_output(output.name, *device)
        value = ort.OrtValue.ortvalue_from_shape_and_type(shape, element, *device)
        binding.bind_ortvalue_output(output.name, value)
        return value

    def _run_bound(self, prepared: Any) -> Any:
        self.session.run_with_iobinding(prepared[0])
        return prepared[0]

    def _run(self, feed: dict[str, np.ndarray]) -> Any:
        return self.session.run(None, feed)

    def outputs(self, result: Any) -> dict[str, Any]:
        values = result.copy_outputs_to_cpu() if self.binds else result
        return dict(zip(self.names, values))

    def _assigned(self) -> list[tuple[str, str]]:
        """Provider and operator of each node, where this version reports them."""
        assignment = getattr(self.session, "get_provider_graph_assignment_info", None)
        return [(part.ep_name, node.op_type) for part in (assignment() if assignment else []) for node in part.get_nodes()]

    def placement(self, _result: Any) -> dict[str, int]:
        """Nodes by provider; where this version does not report them, the provider that the session has."""
        return dict(Counter(provider for provider, _ in self._assigned())) or {self.provider: 1}

    def fallback(self) -> dict[str, int]:
        on_cpu = (operator for provider, operator in self._assigned() if provider == PROVIDERS["cpu"])
        return dict(Counter(on_cpu)) if self.device != "cpu" else {}


TYPES = {
    "tensor(float)": np.float32,
    "tensor(double)": np.float64,
    "tensor(float16)": np.float16,
    "tensor(bool)": np.bool_,
    "tensor(int8)": np.int8,
    "tensor(int16)": np.int16,
    "tensor(int32)": np.int32,
    "tensor(int64)": np.int64,
    "tensor(uint8)": np.uint8,
    "tensor(uint16)": np.uint16,
    "tensor(uint32)": np.uint32,
    "tensor(uint64)": np.uint64,
}
