"""OpenVINO through its own API, on an ONNX file. Inputs are set before the clock starts, outputs are read after it."""

from typing import Any

import numpy as np
import openvino as ov

from perfrun.failure import Failure


class Adapter:
    """One compiled model, with an inference request for each input set."""

    def describe(self) -> tuple[str, dict[str, str], list[str]]:
        self.core = ov.Core()
        version, devices = ov.__version__.split("-")[0], self.core.available_devices
        return "openvino " + version, {"openvino": ov.__version__}, [device.lower() for device in devices]

    def load(self, cell: Any) -> None:
        if not cell.model:
            raise Failure("model", "OpenVINO needs an ONNX file")
        device = cell.device.upper()
        if device.split(".")[0] not in {name.split(".")[0] for name in self.core.available_devices}:
            raise Failure("provider", f"OpenVINO finds {self.core.available_devices} here, not {device}")
        model = self.core.read_model(cell.model)
        self.names = [output.get_any_name() for output in model.outputs]
        self.elements = {tensor["name"]: tensor["element"] for tensor in cell.tensors}
        model.reshape({tensor["name"]: tensor["shape"] for tensor in cell.tensors})
        self.compiled = self.core.compile_model(model, device, self._config(cell, device))

    def _config(self, cell: Any, device: str) -> dict[str, Any]:
        config: dict[str, Any] = {"PERFORMANCE_HINT": "LATENCY", "NUM_STREAMS": 1}
        if cell.threads and device == "CPU":
            config["INFERENCE_NUM_THREADS"] = cell.threads
        if cell.options["precision_hint"] != "auto":
            config["INFERENCE_PRECISION_HINT"] = cell.options["precision_hint"]
        return {**config, **cell.options["config"]}

    def inputs(self, arrays: dict[str, np.ndarray]) -> Any:
        request = self.compiled.create_infer_request()
        for name, array in arrays.items():
            request.set_tensor(name, self._tensor(array, self.elements[name]))
        return request

    def _tensor(self, array: np.ndarray, element: str) -> Any:
        if element == "bfloat16":
            return ov.Tensor(array, array.shape, ov.Type.bf16)
        tensor = ov.Tensor(ov.Type.string, ov.Shape(array.shape)) if element == "string" else ov.Tensor(array)
        if element == "string":
            tensor.str_data = array
        return tensor

    def call(self, request: Any) -> Any:
        request.infer()
        return request

    def outputs(self, request: Any) -> dict[str, np.ndarray]:
        tensors = [request.get_output_tensor(index) for index in range(len(self.names))]
        return {name: self._array(tensor) for name, tensor in zip(self.names, tensors)}

    def _array(self, tensor: Any) -> np.ndarray:
        if tensor.element_type == ov.Type.string:
            return np.array(tensor.str_data)
        if tensor.element_type == ov.Type.bf16:
            return (tensor.data.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
        return np.array(tensor.data)

    def placement(self, _request: Any) -> dict[str, int]:
        """Operators of the compiled model by the device that runs them."""
        devices = self.compiled.get_property("EXECUTION_DEVICES")
        names = [str(device).split(".")[0].lower() for device in ([devices] if isinstance(devices, str) else devices)]
        kinds = [op.get_rt_info()["layerType"] for op in self.compiled.get_runtime_model().get_ops()]
        kinds = [getattr(kind, "value", kind) for kind in kinds]
        return {name: sum(kind not in ("Const", "Input", "Output") for kind in kinds) for name in names}
