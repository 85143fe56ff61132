"""What a specification names as `module:function`, and the names of what Python functions return."""

import importlib
import os
import sys
import sysconfig
from collections.abc import Iterable, Mapping
from typing import Any, Callable

from perfrun.failure import Failure


def add_to_path(folders: Iterable[str]) -> None:
    """Lets modules in these folders be imported, before installed packages and after the standard library."""
    library = {sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")}
    library |= {os.path.join(folder, "lib-dynload") for folder in library}
    after = max((index for index, folder in enumerate(sys.path) if folder in library), default=-1) + 1
    sys.path[after:after] = [folder for folder in folders if folder not in sys.path]


def resolve(target: str) -> Callable[..., Any]:
    """The function or class that `module:name` stands for; the name may have dots.

    Raises `Failure("model")` for a name that the module does not have, `Failure("missing")` for a missing module.
    """
    module, colon, name = target.partition(":")
    if not (module and colon and name):
        raise Failure("model", f"`{target}` is not of the form module:function")
    found: Any = importlib.import_module(module)
    for part in name.split("."):
        if not hasattr(found, part):
            raise Failure("model", f"module `{module}` has no `{name}`")
        found = getattr(found, part)
    if not callable(found):
        raise Failure("model", f"`{target}` cannot be called: it is a {type(found).__name__}")
    return found


def torch_model(source: Mapping[str, Any], folders: Iterable[str] = ()) -> Any:
    """The module that a source `{"call": ..., "args": {...}, "weights": path or None}` builds, in evaluation mode.

    Weights are drawn from seed 0, then loaded from the file where there is one. A class of transformers is read by its
    `from_pretrained`, from a folder within one of `folders` if there is such a one.
    """
    import torch

    torch.manual_seed(0)
    called, args = resolve(source["call"]), dict(source.get("args") or {})
    if hasattr(called, "from_pretrained"):
        called = called.from_pretrained
    stored = args.get("pretrained_model_name_or_path")
    if isinstance(stored, str):
        below = [os.path.join(folder, stored) for folder in folders]
        args["pretrained_model_name_or_path"] = next((path for path in below if os.path.isdir(path)), stored)
    model = called(**args)
    if not isinstance(model, torch.nn.Module):
        text = "`{}` returned a {}, not a torch.nn.Module".format(source["call"], type(model).__name__)
        raise Failure("model", text)
    if source.get("weights"):
        model.load_state_dict(torch.load(source["weights"], map_location="cpu", weights_only=True))
    return model.eval()


def named(result: Any, name: str = "output") -> dict[str, Any]:
    """What a Python function returned, by name.

    A single value is `output`; those of a list or tuple are `output_0`, `output_1`; those of a mapping have its keys.
    Lists and mappings inside add to the name in the same way: `past_0_1`. `None` is left out.
    """
    if result is None:
        return {}
    if isinstance(result, Mapping):
        parts = [(str(key) if name == "output" else f"{name}_{key}", value) for key, value in result.items()]
    elif isinstance(result, (list, tuple)):
        parts = [("%s_%d" % (name, at), value) for at, value in enumerate(result)]
    else:
        return {name: result}
    return {key: value for part, inner in parts for key, value in named(inner, part).items()}
