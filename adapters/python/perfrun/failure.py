"""Why a step failed: a kind that can be counted and a message that can be acted on."""

import os
import sys
import sysconfig
import traceback
from typing import Optional

KINDS = frozenset("model shape operator provider out_of_memory output missing protocol internal".split())


class Failure(Exception):
    """A failure whose kind is known. Adapters raise it; every other exception is classified by `failure_of`.

    `kind` is one of `KINDS`; `remedy` is what to do about it, such as a command.
    """

    def __init__(self, kind: str, message: str, remedy: Optional[str] = None):
        super().__init__(message)
        assert kind in KINDS, kind
        self.kind, self.message, self.remedy = kind, message, remedy

    def fields(self) -> dict[str, str]:
        """As the protocol has it."""
        fields = {"kind": self.kind, "message": self.message}
        if self.remedy:
            fields["remedy"] = self.remedy
        return fields


def missing(module: str, package: Optional[str] = None) -> Failure:
    """A Python module is not installed; `package` is what pip calls it."""
    top = module.split(".")[0]
    remedy = f"{sys.executable} -m pip install {package or top}"
    return Failure("missing", f"{top} is not installed for {sys.executable}", remedy)


# By phrases of PyTorch, ONNX Runtime, OpenVINO and the C++ library, in lower case; the first that occurs decides.
PHRASES = (
    ("out of memory", "out_of_memory"),
    ("can't allocate memory", "out_of_memory"),
    ("not enough memory", "out_of_memory"),
    ("failed to allocate memory", "out_of_memory"),
    ("bad_alloc", "out_of_memory"),
    ("invalid dimensions for input", "shape"),
    ("invalid rank for input", "shape"),
    ("unexpected input data type", "shape"),
    ("cannot be multiplied", "shape"),
    ("size mismatch", "shape"),
    ("sizes of tensors must match", "shape"),
    ("must match the size of tensor", "shape"),
    ("shape mismatch", "shape"),
    ("could not be broadcast", "shape"),
    ("mismatch in its core dimension", "shape"),
    ("not_implemented", "operator"),
    ("could not find an implementation", "operator"),
    ("not implemented for", "operator"),
    ("invalid model", "model"),
    ("protobuf parsing failed", "model"),
    ("no cuda gpus are available", "provider"),
    ("found no nvidia driver", "provider"),
    ("no working c++ compiler", "provider"),
)

# What an exception of unknown meaning is, by the step in which it was raised.
OF_STEP = {"load": "model", "inputs": "shape", "call": "operator", "outputs": "output"}


TRACEBACK = "the whole traceback is in the record's folder, below `logs`"


def failure_of(error: BaseException, step: str) -> Failure:
    """The failure that an exception stands for. `step` is `load`, `inputs`, `call`, `outputs`, or anything else."""
    if isinstance(error, Failure):
        return error
    if isinstance(error, ModuleNotFoundError) and error.name:
        return missing(error.name)
    name = type(error).__name__
    text = " ".join(str(error).split())[:2000]
    message = "{}{}{}".format(name, ": " + text if text else "", _place(error))
    kind = _kind(error, name, text.lower(), step)
    return Failure(kind, message, TRACEBACK if kind in ("model", "operator", "internal") else None)


def _kind(error: BaseException, name: str, text: str, step: str) -> str:
    if isinstance(error, MemoryError) or name == "OutOfMemoryError":
        return "out_of_memory"
    for phrase, kind in PHRASES:
        if phrase in text:
            return kind
    if isinstance(error, ImportError):
        return "provider"
    return OF_STEP.get(step, "internal")


def _place(error: BaseException) -> str:
    """The last line of the user's own code that was under way, else the last line of all."""
    frames = traceback.extract_tb(error.__traceback__)
    user_frames = [frame for frame in frames if not _is_of_a_library(frame.filename)]
    if not (user_frames or frames):
        return ""
    frame = (user_frames or frames)[-1]
    return f" ({os.path.basename(frame.filename)}:{frame.lineno}: {frame.line or frame.name})"


def _is_of_a_library(path: str) -> bool:
    folders = [sysconfig.get_path("stdlib"), os.path.dirname(os.path.abspath(__file__))]
    return path.startswith("<") or "-packages" in path or any(path.startswith(folder + os.sep) for folder in folders)
