"""Anything in Python: a function `module:function`, called once for each inference.

The function gets the input arrays as keyword arguments, by name. Without `setup`, the `args` of the model are keyword
arguments of each call. With `setup: module:function`, `args` are those of `setup`, which is called once and counts as
load time; what it returns is the first argument of each call.
"""

import platform
from typing import Any

import numpy as np

from perfrun.failure import Failure
from perfrun.source import named, resolve


class Adapter:
    """One function, and what `setup` returned."""

    def describe(self) -> tuple[str, dict[str, str], list[str]]:
        return "python " + platform.python_version(), {}, ["cpu"]

    def load(self, cell: Any) -> None:
        if not cell.source:
            raise Failure("model", "the adapter `callable` needs a function, `python: module:function`")
        if cell.device != "cpu":
            raise Failure("provider", "a Python function does not say where it runs: only cpu is possible")
        run = resolve(cell.source["call"])
        args: dict[str, Any] = cell.source.get("args") or {}
        setup = cell.options.get("setup")
        if setup is None:
            self.call = lambda arrays: run(**arrays, **args)
        else:
            state = resolve(setup)(**args)
            self.call = lambda arrays: run(state, **arrays)

    def inputs(self, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        return arrays

    def outputs(self, result: Any) -> dict[str, Any]:
        return named(result)
