"""A Python function without arguments, whatever it returns: what the pytest plugin measures.

The plugin copies this file next to the specification that it writes, because the folder of an adapter comes first on the
worker's search path. What the function returns is dropped: it need not be arrays.
"""

import importlib
import importlib.util
import inspect
import platform
import sys
from typing import Any, Optional

from perfrun.failure import Failure
from perfrun.source import resolve


class Adapter:
    """One function. The model's `args` may name the `file` of its module."""

    def describe(self) -> tuple[str, dict[str, str], list[str]]:
        return "python " + platform.python_version(), {}, ["cpu"]

    def load(self, cell: Any) -> None:
        self.name: str = cell.source["call"]
        import_module(self.name.partition(":")[0], (cell.source.get("args") or {}).get("file"))
        function = resolve(self.name)
        self.call = lambda _: function()

    def inputs(self, arrays: Any) -> None:
        return None

    def outputs(self, result: Any) -> dict[str, Any]:
        """None. Refuses what has not been computed yet."""
        if inspect.isawaitable(result) or inspect.isgenerator(result) or inspect.isasyncgen(result):
            text = f"`{self.name}` returns a {type(result).__name__}, which has not run: measure what runs it"
            raise Failure("output", text)
        return {}


def import_module(name: str, file: Optional[str]) -> None:
    """By its name, else from its file: pytest's import mode `importlib` finds test files off the search path."""
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        if not file or not f"{name}.".startswith(f"{error.name}."):
            raise
        spec = importlib.util.spec_from_file_location(name, file)
        assert spec and spec.loader
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
