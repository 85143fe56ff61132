"""Exports a model that a Python function builds to ONNX, with its weights in a file next to it.

    python -m perfrun.export REQUEST.json

The request:

    {"call": "torchvision.models:densenet121", "args": {"num_classes": 10}, "path": ["/folder/of/spec"],
     "tensors": [{"name": "x", "shape": ["batch", 3, 32, 32], "element": "float32"}],
     "sizes": {"batch": 2}, "folder": "/where/to/write"}

Writes `model.onnx` and `weights.pt` into the folder, which exists, and prints one line of JSON. Dimensions with a name
stay free. Outputs are named as `perfrun.source.named` names them. A failure is reported on the last line of standard error.
"""

import contextlib
import inspect
import json
import os
import platform
import re
import sys
import textwrap
import traceback
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from perfrun.failure import TRACEBACK, Failure, failure_of, missing
from perfrun.source import add_to_path, named, torch_model

NEWEST_OPSET = 17

# What that exporter writes; it converts to another one afterwards, if it can.
DYNAMO_OPSET = 18

Tensors = Sequence[Mapping[str, Any]]


def export(request: Mapping[str, Any]) -> dict[str, Any]:
    """Writes both files; returns what is printed."""
    import torch

    add_to_path(request.get("path") or [])
    model = torch_model({"call": request["call"], "args": request.get("args")}, request.get("path") or [])
    tensors, sizes, folder = request["tensors"], request.get("sizes") or {}, request["folder"]
    with torch.no_grad():
        outputs = _output_shapes(model, tensors, sizes)
        exporter, settings, doubts = _write(model, tensors, sizes, outputs, os.path.join(folder, "model.onnx"))
    torch.save(model.state_dict(), os.path.join(folder, "weights.pt"))
    about = {"python": platform.python_version(), "torch": torch.__version__, "exporter": exporter, "opset": str(settings["opset_version"]), **doubts}
    for name in ("torchvision", "onnx", "onnxscript"):
        if name in sys.modules:
            about[name] = getattr(sys.modules[name], "__version__", "unknown")
    sources = _sources(request["call"], request.get("path") or [])
    return {"model": "model.onnx", "weights": "weights.pt", "about": about, "sources": sources}


def _sources(call: str, path: Sequence[str]) -> list[str]:
    """Files whose change may change the model: the function's, all that was imported from the user's folders, and torch's version."""
    import torch

    files = {torch.version.__file__, getattr(sys.modules.get(call.split(":")[0]), "__file__", None)}
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if file and "-packages" not in file and any(os.path.abspath(file).startswith(os.path.join(os.path.abspath(folder), "")) for folder in path):
            files.add(file)
    return sorted(os.path.abspath(file) for file in files if file and os.path.isfile(file))


def _write(model: Any, tensors: Tensors, sizes: Mapping[str, int], outputs: Mapping[str, list[Any]], path: str) -> tuple[str, dict[str, Any], dict[str, str]]:
    """Exports with the first of this torch's exporters that can, its default before the other.

    Returns which that was, its settings, and what may be wrong with the file: why the default could not, and the first warning
    that a trace does not hold for other inputs.
    """
    import torch

    failures = []
    for exporter in _exporters():
        try:
            settings = _settings(exporter, tensors, outputs)
            # Attention has a fast path in inference that TorchScript's exporter does not know; it is not taken where gradients are asked for.
            with _missing_modules_named(), torch.set_grad_enabled(exporter == "torchscript"), warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                torch.onnx.export(model, _examples(tensors, sizes), path, **settings)
            doubts = {"refused": "%s: %s" % (name, _short(failure)) for name, failure in failures}
            traced = [warning for warning in caught if issubclass(warning.category, torch.jit.TracerWarning)]
            doubts.update({"traced": textwrap.shorten(str(traced[0].message), 200, placeholder=" ...")} if traced else {})
            return exporter, settings, doubts
        except Exception as error:
            traceback.print_exc()
            # The newer exporter wraps what went wrong in advice for its developers.
            is_wrapped = type(error).__module__.startswith("torch.onnx") and isinstance(error.__cause__, Exception)
            failures.append((exporter, failure_of(error.__cause__ if is_wrapped else error, "load")))
    if len(failures) == 1:
        raise failures[0][1]
    problems = "; ".join("%s: %s" % (exporter, _short(failure)) for exporter, failure in failures)
    remedies = [failure.remedy for _, failure in failures if failure.remedy]
    raise Failure(failures[0][1].kind, "neither exporter of torch %s can: %s" % (torch.__version__, problems), remedies[0] if remedies else None)


def _short(failure: Failure) -> str:
    return textwrap.shorten(failure.message, 200, placeholder=" ...")


def _exporters() -> list[str]:
    """Those of this torch: `dynamo` is the default since 2.9, and TorchScript's needs no onnxscript."""
    import torch

    parameters = inspect.signature(torch.onnx.export).parameters
    if "dynamic_axes" not in parameters:
        return ["dynamo"]
    if "dynamo" not in parameters:
        return ["torchscript"]
    return ["dynamo", "torchscript"] if parameters["dynamo"].default else ["torchscript", "dynamo"]


def _settings(exporter: str, tensors: Tensors, outputs: Mapping[str, list[Any]]) -> dict[str, Any]:
    """Arguments of an exporter."""
    import torch

    names: dict[str, Any] = {"input_names": [tensor["name"] for tensor in tensors], "output_names": list(outputs)}
    parameters = inspect.signature(torch.onnx.export).parameters
    chosen = {"dynamo": exporter == "dynamo"} if "dynamo" in parameters else {}
    free = {tensor["name"]: _names_of(tensor["shape"]) for tensor in tensors}
    if exporter == "dynamo":
        dimensions = {name: torch.export.Dim(name) for axes in free.values() for name in axes.values()}
        shapes = tuple({axis: dimensions[name] for axis, name in axes.items()} or None for axes in free.values())
        return {**names, **chosen, "dynamic_shapes": shapes, "opset_version": DYNAMO_OPSET}
    named_axes = {**free, **{name: _names_of(shape) for name, shape in outputs.items()}}
    dynamic_axes = {name: axes for name, axes in named_axes.items() if axes}
    return {**names, **chosen, "dynamic_axes": dynamic_axes, "opset_version": min(NEWEST_OPSET, _newest_opset())}


def _newest_opset() -> int:
    """Of TorchScript's exporter."""
    import torch.onnx

    constants = getattr(torch.onnx, "_constants", None)
    names = ("ONNX_TORCHSCRIPT_EXPORTER_MAX_OPSET", "ONNX_MAX_OPSET")
    return next((getattr(constants, name) for name in names if hasattr(constants, name)), NEWEST_OPSET)


def _names_of(shape: Sequence[Any]) -> dict[int, str]:
    return {axis: length for axis, length in enumerate(shape) if isinstance(length, str)}


def _examples(tensors: Tensors, sizes: Mapping[str, int]) -> tuple[Any, ...]:
    return tuple(_example(tensor, sizes) for tensor in tensors)


def _example(tensor: Mapping[str, Any], sizes: Mapping[str, int]) -> Any:
    """Random floats, or zeros of other types, in the shape that the sizes give."""
    import torch

    lacking = [name for name in _names_of(tensor["shape"]).values() if name not in sizes]
    if lacking:
        raise Failure("shape", "there is no size for dimension `{}` of `{}`".format(lacking[0], tensor["name"]))
    shape = [sizes.get(length, length) for length in tensor["shape"]]
    element = getattr(torch, tensor["element"], None)
    if not isinstance(element, torch.dtype):
        raise Failure("shape", "torch has no type {}, which `{}` has".format(tensor["element"], tensor["name"]))
    return torch.randn(shape).to(element) if element.is_floating_point else torch.zeros(shape, dtype=element)


def _output_shapes(model: Any, tensors: Tensors, sizes: Mapping[str, int]) -> dict[str, list[Any]]:
    """Shapes of the outputs by name. Lengths that change with a named dimension are names.

    They are found by running the model again with one more of each dimension.
    """
    shapes = _run(model, tensors, sizes)
    named_shapes: dict[str, list[Any]] = {name: list(shape) for name, shape in shapes.items()}
    used = {name for tensor in tensors for name in _names_of(tensor["shape"]).values()}
    for dimension in sorted(used):
        with contextlib.suppress(Exception):  # Some sizes are not possible; the length then stays as it is.
            larger = _run(model, tensors, {**sizes, dimension: sizes[dimension] + 1})
            for name, shape in shapes.items():
                for axis, (length, other) in enumerate(zip(shape, larger[name])):
                    if length != other:
                        is_same = (length, other) == (sizes[dimension], sizes[dimension] + 1)
                        named_shapes[name][axis] = dimension if is_same else "%s_%d" % (name, axis)
    return named_shapes


def _run(model: Any, tensors: Tensors, sizes: Mapping[str, int]) -> dict[str, list[int]]:
    outputs = named(model(*_examples(tensors, sizes)))
    for name, value in outputs.items():
        if not hasattr(value, "shape"):
            raise Failure("output", "output `%s` of the model is a %s, not a tensor" % (name, type(value).__name__))
    return {name: list(value.shape) for name, value in outputs.items()}


@contextlib.contextmanager
def _missing_modules_named() -> Any:
    """The exporter wraps the error of a missing module in other errors."""
    try:
        yield
    except Exception as error:
        lacks = re.search(r"[Mm]odule '?(\w+)'? is not installed|No module named '(\w+)", str(error))
        if not lacks:
            raise
        raise missing(lacks.group(1) or lacks.group(2)) from error


def main() -> None:
    """Prints one line, or exits with 1."""
    if len(sys.argv) != 2:
        sys.exit("usage: python -m perfrun.export REQUEST.json")
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as answer:
        os.dup2(2, 1)  # Exporters print.
        try:
            with open(sys.argv[1], encoding="utf-8") as file:
                request = json.load(file)
            answer.write(json.dumps(export(request)) + "\n")
        except SystemExit as ended:
            sys.stdout.flush()
            sys.exit("the function ended the process: sys.exit(%r)" % (ended.code,))
        except Exception as error:
            traceback.print_exc()
            failure = failure_of(error, "load")
            sys.stdout.flush()
            # There is no record yet, and so no log in it.
            remedy = failure.remedy if failure.remedy != TRACEBACK else None
            sys.exit(": ".join(filter(None, [failure.message, remedy])))


if __name__ == "__main__":
    main()
