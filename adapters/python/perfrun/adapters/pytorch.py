"""PyTorch, on the CPU and on CUDA devices: eager, TorchScript, torch.compile and torch.export.

A model comes from a Python function, or from an ONNX file through onnx2torch. On CUDA a call ends with a synchronise.
Calls of a language model are those of one of transformers with its `DynamicCache`, which each call makes longer by a copy.
"""

import contextlib
import functools
import inspect
from typing import Any

import numpy as np
import torch

from perfrun.failure import Failure, missing
from perfrun.source import named, torch_model

TYPES = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}
RELEASE = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])
# TorchScript specialises in its second call; the first ones of torch.compile may record CUDA graphs.
CALLS = {"torchscript": 2, "compile": 3, "export": 1}
NEEDED = {"compile": (2, 0), "export": (2, 1)}  # The first versions that have these modes.


class Adapter:
    """One model, with one input set for each prepared tuple of tensors."""

    def describe(self) -> tuple[str, dict[str, str], list[str]]:
        about = {"torch": torch.__version__}
        with contextlib.suppress(Exception):  # It may be missing, or made for another torch.
            import torchvision

            about["torchvision"] = torchvision.__version__
        if torch.version.cuda:
            about.update(cuda=torch.version.cuda, cudnn=str(torch.backends.cudnn.version()))
        devices = ["cuda:%d" % index for index in range(torch.cuda.device_count())]
        return "pytorch " + torch.__version__, about, ["cpu"] + devices

    def load(self, cell: Any) -> None:
        options = cell.options
        self.mode, self.compile_mode = options["mode"], options.get("compile_mode")
        self.is_cuda = cell.device_type == "cuda"
        self.events: list[Any] = []  # Pairs, of which so many were used since they were read last.
        self.used = 0
        self._check(cell, options.get("autocast"))
        self.device = torch.device(cell.device)
        if self.is_cuda:
            torch.cuda.set_device(self.device)  # Events are recorded on the current device.
        if cell.threads:
            torch.set_num_threads(cell.threads)
        if "inter_threads" in options:
            torch.set_num_interop_threads(options["inter_threads"])
        torch.set_grad_enabled(False)  # Not inference_mode, which torch.compile does not like (pytorch#114119).
        self.elements = {tensor["name"]: tensor["element"] for tensor in cell.tensors}
        self.decode = cell.decode
        self.names: list[str] = [self.decode.ids] if self.decode else list(self.elements)
        self.output_names: list[str] = []  # Of an ONNX file.
        if self.decode and not cell.source:
            raise Failure("model", "PyTorch runs calls of `decode` of models that Python makes", "add `python` to the model")
        model = torch_model(cell.source, cell.path) if cell.source else self._from_onnx(cell.model)
        self.dtype = TYPES[options["dtype"]]
        self.memory_format = torch.channels_last if options["channels_last"] else torch.contiguous_format
        self.model = model.to(self.device, self.dtype).to(memory_format=self.memory_format)
        self.autocast = options.get("autocast")
        self.forward = self._with_autocast(self._of_tokens() if self.decode else self.model)
        self.run = self._behind_cache if self.decode else self.forward
        self.call = self._timed if self.is_cuda else self._call
        if self.is_cuda:
            self.device_ns = self._device_ns

    def _check(self, cell: Any, autocast: Any) -> None:
        if cell.device_type not in ("cpu", "cuda"):
            raise Failure("provider", f"the adapter runs on cpu and cuda, not on {cell.device}")
        number = int(cell.device.partition(":")[2] or 0)
        if self.is_cuda and number >= torch.cuda.device_count():
            raise Failure("provider", f"torch {torch.__version__} does not find {cell.device} here")
        if self.compile_mode and self.mode != "compile":
            raise Failure("provider", f"option `compile_mode` needs `mode: compile`; the mode is {self.mode}")
        if cell.decode and self.mode not in ("eager", "compile"):
            raise Failure("provider", f"calls of `decode` run in the modes eager and compile, not in {self.mode}")
        if RELEASE < NEEDED.get(self.mode, (0, 0)):
            needed = "%d.%d" % NEEDED[self.mode]
            raise Failure("provider", f"mode {self.mode} needs torch {needed}; this is {torch.__version__}")
        if autocast == "fp16" and not self.is_cuda and RELEASE < (2, 3):
            text = f"autocast to fp16 on the CPU needs torch 2.3; this is {torch.__version__}, which has bf16"
            raise Failure("provider", text)

    def _from_onnx(self, path: str) -> torch.nn.Module:
        try:
            import onnx
            import onnx2torch
        except ModuleNotFoundError as error:
            raise missing(error.name or "onnx2torch") from error
        model = onnx.load(path)
        constants = {constant.name for constant in model.graph.initializer}
        self.names = [value.name for value in model.graph.input if value.name not in constants]
        self.output_names = [value.name for value in model.graph.output]
        try:
            _fold(model)
            return onnx2torch.convert(model).eval()
        except Exception as error:
            raise Failure(
                "operator", f"onnx2torch cannot convert the model: {type(error).__name__}: {error}"
            ) from error

    def _with_autocast(self, run: Any, **settings: Any) -> Any:
        if not self.autocast:
            return run

        def within(*inputs: torch.Tensor) -> Any:
            with torch.autocast(self.device.type, dtype=TYPES[self.autocast], **settings):
                return run(*inputs)

        return within

    def _of_tokens(self) -> Any:
        """The model as a function of tokens and a cache, which gives logits."""
        taken = inspect.signature(self.model.forward).parameters
        name = next((name for name in ("cache", "past_key_values") if name in taken), None)
        if name is None:
            raise Failure("model", f"{type(self.model).__name__} takes no cache: `decode` needs a language model of transformers")

        def forward(ids: torch.Tensor, cache: Any) -> torch.Tensor:
            return self.model(input_ids=ids, use_cache=True, **{name: cache}).logits

        return forward

    def _behind_cache(self, ids: torch.Tensor) -> torch.Tensor:
        if not self.decode.context:
            self.cache = self._empty_cache()
        return self.forward(ids, self.cache)

    def _empty_cache(self) -> Any:
        from transformers import DynamicCache

        return DynamicCache(config=self.model.config)

    def fill(self, ids: np.ndarray) -> None:
        self.cache = self._empty_cache()
        if self.decode.context:
            self.forward(torch.from_numpy(np.array(ids)).to(self.device), self.cache)

    def rewind(self) -> None:
        if not self.decode.context:
            self.cache = None
        elif self.cache.get_seq_length() > self.decode.context:
            self.cache.crop(self.decode.context - self.cache.get_seq_length())

    def first(self, prepared: tuple[torch.Tensor, ...]) -> list[int]:
        self.cache = self._empty_cache()
        return self._choose(*prepared)

    def next(self) -> list[int]:
        return self._choose(self.chosen[:, None])

    def _choose(self, ids: torch.Tensor) -> list[int]:
        """Ids that are here, so that nothing is under way any more."""
        self.chosen = self.forward(ids, self.cache)[:, -1].argmax(-1)
        return self.chosen.tolist()

    def inputs(self, arrays: dict[str, np.ndarray]) -> tuple[torch.Tensor, ...]:
        return tuple(self._tensor(arrays[name], self.elements[name]) for name in self.names)

    def _tensor(self, array: np.ndarray, element: str) -> torch.Tensor:
        if element == "bfloat16":
            tensor = torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
        else:
            tensor = torch.from_numpy(array)
        if tensor.is_floating_point():
            tensor = tensor.to(self.dtype)
        tensor = tensor.to(self.device)
        return tensor.contiguous(memory_format=self.memory_format) if tensor.dim() == 4 else tensor

    def build(self, prepared: tuple[torch.Tensor, ...]) -> bool:
        """Compiles for these inputs, and calls until nothing is compiled any more."""
        if self.mode == "eager":
            return False
        if self.mode == "torchscript":
            # Casts become part of the trace: it must not find cast weights in a cache. Outputs may be mappings.
            trace = functools.partial(torch.jit.trace, self.model, prepared, check_trace=False, strict=False)
            traced = self._with_autocast(trace, cache_enabled=False)()
            self.run = torch.jit.optimize_for_inference(torch.jit.freeze(traced))
        elif self.mode == "compile":
            compiled = torch.compile(self._of_tokens() if self.decode else self.model, mode=self.compile_mode or "default")
            self.forward = self._with_autocast(compiled)
            self.run = self._behind_cache if self.decode else self.forward
        else:
            exported = torch.export.export(self.model, prepared)
            self.run = self._with_autocast(exported.module())
        for _ in range(CALLS[self.mode]):
            if self.decode:
                self.rewind()
            if self.decode and self.decode.generated:
                self.first(prepared)
                for _ in range(self.decode.generated - 1):
                    self.next()
            else:
                self.call(prepared)
        return True

    def _call(self, prepared: tuple[torch.Tensor, ...]) -> Any:
        return self.run(*prepared)

    def _timed(self, prepared: tuple[torch.Tensor, ...]) -> Any:
        if self.used == len(self.events):
            self.events.append([torch.cuda.Event(enable_timing=True) for _ in range(2)])
        begin, end = self.events[self.used]
        self.used += 1
        begin.record()
        result = self.run(*prepared)
        end.record()
        torch.cuda.synchronize(self.device)
        return result

    def _device_ns(self) -> int:
        events, self.used = self.events[: self.used], 0
        return int(1e6 * sum(begin.elapsed_time(end) for begin, end in events))

    def outputs(self, result: Any) -> dict[str, np.ndarray]:
        if self.decode:
            return {self.decode.logits: self._array(result)}
        found = {name: self._array(value) for name, value in named(result).items()}
        if self.output_names and len(self.output_names) == len(found):
            return dict(zip(self.output_names, found.values()))
        return found

    def _array(self, value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        value = value.detach().cpu().contiguous()
        return (value.float() if value.dtype == torch.bfloat16 else value).numpy()

    def placement(self, result: Any) -> dict[str, int]:
        """Device types of the parameters, and of the outputs, which say where the model ran."""
        devices = [value.device.type for value in named(result).values() if isinstance(value, torch.Tensor)]
        is_loop = self.decode and self.decode.generated  # Its ids are numbers.
        if self.is_cuda and not is_loop and "cuda" not in devices:
            raise Failure("provider", f"the outputs are not on {self.device}")
        devices += [parameter.device.type for parameter in self.model.parameters()]
        return {device: devices.count(device) for device in devices}

    def reset(self) -> None:
        if self.is_cuda:
            torch.cuda.reset_peak_memory_stats(self.device)

    def metrics(self) -> dict[str, float]:
        """Peaks of PyTorch's own allocator; nothing on the CPU, where it keeps none."""
        if not self.is_cuda:
            return {}
        peaks = torch.cuda.max_memory_allocated(self.device), torch.cuda.max_memory_reserved(self.device)
        return {"peak_allocated_bytes": peaks[0], "peak_reserved_bytes": peaks[1]}


def _fold(model: Any) -> None:
    """Computes weights that nodes make of weights, which onnx2torch cannot read: PyTorch's exporter shares some so."""
    from onnx import numpy_helper
    from onnx.reference import ReferenceEvaluator

    graph = model.graph
    weights = {weight.name: weight for weight in graph.initializer}
    results = {value.name for value in graph.output}
    for node in [node for node in graph.node if node.op_type in ("Identity", "ConstantOfShape")]:
        name = node.output[0]
        if node.input[0] in weights and name not in results:
            given = {node.input[0]: numpy_helper.to_array(weights[node.input[0]])}
            weights[name] = numpy_helper.from_array(ReferenceEvaluator(node).run(None, given)[0], name)
            graph.initializer.append(weights[name])
            graph.node.remove(node)
            model.ir_version = max(model.ir_version, 4)  # Before, every weight had to be an input, too.
