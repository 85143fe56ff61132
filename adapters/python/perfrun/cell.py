"""What a worker loads: an adapter with its declaration, and the cell that perfrun asks for."""

import importlib.util
import json
import os
import sys
from collections.abc import Mapping
from typing import Any, Optional

from perfrun.failure import Failure
from perfrun.source import add_to_path


def load_adapter(name: str) -> tuple[Any, dict[str, Any]]:
    """An adapter and what it declares. `name`: of a shipped one, or the path of a Python file."""
    path = os.path.abspath(name)
    if os.sep not in name and not name.endswith(".py"):
        path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "adapters", name + ".py")
    if not os.path.isfile(path):
        raise Failure("provider", f"there is no adapter `{name}`: {path} does not exist")
    stem = os.path.splitext(path)[0]
    add_to_path([os.path.dirname(path)] if path == os.path.abspath(name) else [])
    declared: dict[str, Any] = {}
    if os.path.isfile(stem + ".json"):
        with open(stem + ".json", encoding="utf-8") as file:
            declared = json.load(file)
    spec = importlib.util.spec_from_file_location("perfrun_adapter_" + os.path.basename(stem), path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    if not hasattr(module, "Adapter"):
        raise Failure("internal", f"{path} has no class `Adapter`", "write one: adapters/python/README.md has 15 lines")
    return module.Adapter(), declared


class Decode:
    """One call of a language model: tokens behind a cache, or where `generated` is not 0, a greedy loop behind a prompt."""

    def __init__(self, request: Mapping[str, Any]):
        call, decoder = request["call"], request["decoder"]
        self.batch: int = call["batch"]  # Sequences, each with tokens of its own.
        self.tokens: int = call["tokens"]  # Of each that are fed at once.
        self.context: int = call["context"]  # Positions of each that the cache holds before.
        self.generated: int = call.get("generated") or 0  # Tokens of each that a loop emits.
        self.end = self.context + self.tokens + max(0, self.generated - 1)  # Positions that the cache holds at last.
        self.cache: str = request["cache"]  # grown, shared, copied, static
        self.positions: int = max(request["positions"], self.end)  # Of a cache that is allocated once.
        self.held: str = request["held"]  # A file with the tokens of the context, [batch, context].
        self.logits: str = decoder["logits"]  # What the output is called.
        roles = {role: name for name, role in ((one["name"], one["role"]) for one in decoder["inputs"])}
        if "encoder_states" in roles or "cross" in roles:
            raise Failure("model", "adapters run no decoder behind an encoder")
        self.ids: str = roles["ids"]  # What the input of tokens is called.


class Cell:
    """What an adapter loads: a request of the protocol, with every option that its schema gives a default."""

    def __init__(self, request: Mapping[str, Any], schema: Optional[Mapping[str, Any]]):
        backend = request["backend"]
        self.name: str = request.get("cell", "")
        self.model: Optional[str] = backend.get("model")  # Path of an ONNX file.
        self.source: Optional[dict[str, Any]] = backend.get("source")  # call, args, weights
        self.device: str = backend.get("device") or "cpu"  # cpu, cuda:0
        self.threads: int = backend.get("threads") or 0  # 0: as the framework likes.
        self.options: dict[str, Any] = checked_options(backend.get("options") or {}, schema)
        self.settings: dict[str, Any] = backend.get("settings") or {}
        self.path: list[str] = backend.get("path") or []
        self.tensors: list[dict[str, Any]] = request.get("tensors") or []  # name, element, shape, file
        self.outputs: Optional[dict[str, list[int]]] = request.get("outputs")  # Shapes by name, where they are known.
        self.decode = Decode(request["decode"]) if request.get("decode") else None

    @property
    def device_type(self) -> str:
        """`cpu` or `cuda`."""
        return self.device.split(":")[0]


def checked_options(given: Mapping[str, Any], schema: Optional[Mapping[str, Any]]) -> dict[str, Any]:
    """Options with their defaults. Knows of JSON Schema what adapters need: properties, type, enum, minimum, default.

    Raises `Failure("provider")` for an option that the adapter does not have and for a value of another kind.
    """
    if schema is None:
        return dict(given)
    kinds: dict[str, Any] = {
        "string": str,
        "integer": int,
        "number": (int, float),
        "boolean": bool,
        "object": dict,
        "array": list,
    }
    known = schema.get("properties", {})
    for name, value in given.items():
        if name not in known:
            raise Failure("provider", "there is no option `{}`: there are {}".format(name, ", ".join(known) or "none"))
        rule, shown = known[name], json.dumps(value)
        kind = kinds.get(rule.get("type", ""), object)
        if not isinstance(value, kind) or (isinstance(value, bool) and kind not in (bool, object)):
            raise Failure("provider", "option `{}`: {} is no {}".format(name, shown, rule["type"]))
        if value not in rule.get("enum", [value]):
            allowed = ", ".join(map(str, rule["enum"]))
            raise Failure("provider", f"option `{name}`: {shown} is none of {allowed}")
        if isinstance(value, (int, float)) and value < rule.get("minimum", value):
            raise Failure("provider", "option `{}`: {} is below {}".format(name, shown, rule["minimum"]))
    return {**{name: rule["default"] for name, rule in known.items() if "default" in rule}, **given}
