"""What a specification names as `module:function`, and the names of what Python functions return."""

import importlib
import sys
from typing import Any, Callable, Dict, Iterable, Mapping

from perfrun.failure import Failure


def add_to_path(folders: Iterable[str]) -> None:
    """Lets modules in these folders be imported, before all others but after none that is imported already."""
    sys.path[:0] = [folder for folder in folders if folder not in sys.path]


def resolve(target: str) -> Callable[..., Any]:
    """The function or class that `module:name` stands for; the name may have dots.

    Raises `Failure("model")` for a name that the module does not have, `Failure("missing")` for a missing module.
    """
    module, colon, name = target.partition(":")
    if not (module and colon and name):
        raise Failure("model", "`%s` is not of the form module:function" % target)
    found: Any = importlib.import_module(module)
    for part in name.split("."):
        if not hasattr(found, part):
            raise Failure("model", "module `%s` has no `%s`" % (module, name))
        found = getattr(found, part)
    if not callable(found):
        raise Failure("model", "`%s` cannot be called: it is a %s" % (target, type(found).__name__))
    return found


def torch_model(source: Mapping[str, Any]) -> Any:
    """The module that a source `{"call": ..., "args": {...}, "weights": path or None}` builds, in evaluation mode.

    Weights are drawn from seed 0, then loaded from the file where there is one.
    """
    import torch

    torch.manual_seed(0)
    model = resolve(source["call"])(**(source.get("args") or {}))
    if not isinstance(model, torch.nn.Module):
        text = "`%s` returned a %s, not a torch.nn.Module" % (source["call"], type(model).__name__)
        raise Failure("model", text)
    if source.get("weights"):
        model.load_state_dict(torch.load(source["weights"], map_location="cpu", weights_only=True))
    return model.eval()


def named(result: Any, name: str = "output") -> Dict[str, Any]:
    """What a Python function returned, by name: `output`; of a list or tuple `output_0`, `output_1`; of a mapping its keys.

    Lists and mappings inside are named in the same way below their own name. `None` is left out.
    """
    if result is None:
        return {}
    if isinstance(result, Mapping):
        parts = [(str(key) if name == "output" else "%s_%s" % (name, key), value) for key, value in result.items()]
    elif isinstance(result, (list, tuple)):
        parts = [("%s_%d" % (name, at), value) for at, value in enumerate(result)]
    else:
        return {name: result}
    return {key: value for part, inner in parts for key, value in named(inner, part).items()}
