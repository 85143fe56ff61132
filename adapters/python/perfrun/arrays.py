"""Arrays in files: the sets of inputs, the outputs, and the items of a dataset, all in NumPy's format of one array.

bfloat16, which NumPy does not have, is uint16 in inputs and float32 in outputs. Strings are NumPy's unicode.
"""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from perfrun.failure import Failure

POOL_LIMIT_BYTES = 64 << 20  # All input sets together; perfrun's own loop has the same limit.
MOST_WRITTEN_BYTES = 64 << 20  # Outputs of more than this are not written for further input sets.
ALIGNMENT = 64  # Bytes of a cache line; PyTorch and ONNX Runtime align their own tensors so.

TYPES = {
    "float32": "<f4",
    "float64": "<f8",
    "float16": "<f2",
    "bfloat16": "<u2",
    "bool": "|b1",
    "int8": "|i1",
    "int16": "<i2",
    "int32": "<i4",
    "int64": "<i8",
    "uint8": "|u1",
    "uint16": "<u2",
    "uint32": "<u4",
    "uint64": "<u8",
}
ELEMENTS = {np.dtype(code): element for element, code in TYPES.items() if element != "bfloat16"}

Arrays = dict[str, np.ndarray]


class Output(NamedTuple):
    """One output. `keys`: of maps, what the entries along the last dimension stand for."""

    name: str
    element: str
    array: np.ndarray
    keys: tuple[str, ...] = ()


def cast(array: np.ndarray, element: str, name: str) -> np.ndarray:
    """The same numbers as another element type, in the order of C: floats for floats, whole numbers for whole numbers.

    Raises `Failure("shape")` for types that cannot stand for each other, and for whole numbers that do not fit.
    """
    kind = array.dtype.kind
    if element == "string":
        if kind in "US":
            return np.array(array.astype(str), order="C")
    elif element == "bfloat16" and kind == "f":
        return _bfloat16_bits(array)
    elif element in TYPES:
        wanted = np.dtype(TYPES[element])
        fits = (kind == "f" and wanted.kind == "f") or (kind in "iu" and wanted.kind in "iu") or kind == wanted.kind
        converted = array.astype(wanted, order="C") if fits else array
        if fits and (kind not in "iu" or np.array_equal(converted, array)):
            return converted
    raise Failure("shape", f"the values of `{name}` are {array.dtype}, not {element}")


def _bfloat16_bits(array: np.ndarray) -> np.ndarray:
    """Floats rounded to the nearest bfloat16, ties to even, as uint16."""
    bits = array.astype("<f4", order="C").view("<u4").astype("<u8")
    rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype("<u2")
    return np.where(np.isnan(array), np.uint16(0x7FC0), rounded).astype("<u2")


def _shaped(array: np.ndarray, tensor: Mapping[str, Any]) -> np.ndarray:
    """An array as a tensor of the model wants it."""
    name, shape = tensor["name"], tensor["shape"]
    if array.size != np.prod(shape, dtype=np.int64):
        text = f"the values of `{name}` have the shape {list(array.shape)}, not {list(shape)}"
        raise Failure("shape", text)
    return _aligned(cast(array, tensor["element"], name)).reshape(shape)


def _aligned(array: np.ndarray) -> np.ndarray:
    """The same in the order of C from a multiple of `ALIGNMENT` on; texts as they are.

    Frameworks read NumPy's memory where it lies, which is any multiple of 16, another one in each process.
    """
    if array.dtype.kind not in "biuf":
        return np.ascontiguousarray(array)
    room = np.empty(array.nbytes + ALIGNMENT, np.uint8)
    start = -room.ctypes.data % ALIGNMENT
    aligned = room[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    aligned[...] = array
    return aligned


def opened(path: str) -> np.ndarray:
    """The array of a file, of which only what is used is read."""
    try:
        try:
            return np.load(path, mmap_mode="r", allow_pickle=False)
        except ValueError:  # An array without elements cannot be mapped.
            return np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise Failure("internal", f"cannot read {path}: {error}") from error


def input_sets(tensors: Sequence[Mapping[str, Any]], wanted: int) -> list[Arrays]:
    """Arrays by name for each input set, as many as wanted within `POOL_LIMIT_BYTES`, at least one.

    Items of the files along their first dimension are used in turn.
    """
    files = [opened(tensor["file"]) for tensor in tensors]

    def input_set(index: int) -> Arrays:
        items = ((tensor, file[index % len(file)]) for tensor, file in zip(tensors, files))
        return {tensor["name"]: _shaped(item, tensor) for tensor, item in items}

    first = input_set(0)
    fitting = POOL_LIMIT_BYTES // max(1, byte_size([first]))
    return [first] + [input_set(index) for index in range(1, min(max(wanted, 1), fitting))]


def byte_size(sets: Sequence[Arrays]) -> int:
    """Bytes of all arrays."""
    return sum(array.nbytes for arrays in sets for array in arrays.values())


def normalised(outputs: Mapping[str, Any]) -> list[Output]:
    """Outputs as they are hashed and written, in the order of their names in the mapping.

    Takes arrays, numbers, texts and lists of them. A list of maps becomes an array with keys; a list of arrays that
    differ in shape becomes one output for each, `name[0]`, `name[1]` and so on. `None` is left out.
    Raises `Failure("output")` for elements that perfrun does not read.
    """
    found: list[Output] = []
    for name, value in outputs.items():
        if isinstance(value, Mapping):
            value = [value]
        if isinstance(value, (list, tuple)) and value and all(isinstance(part, Mapping) for part in value):
            found.append(_of_maps(name, value))
        elif isinstance(value, (list, tuple)) and len({np.shape(part) for part in value}) > 1:
            found.extend(_output("%s[%d]" % (name, at), part) for at, part in enumerate(value))
        elif value is not None:
            found.append(_output(name, value))
    return found


def _of_maps(name: str, maps: Sequence[Mapping[Any, Any]]) -> Output:
    keys = sorted(maps[0])
    if any(sorted(values) != keys for values in maps):
        raise Failure("output", f"the maps of output `{name}` differ in their keys")
    output = _output(name, [[values[key] for key in keys] for values in maps])
    return output._replace(keys=tuple(str(key) for key in keys))


def _output(name: str, value: Any) -> Output:
    array = np.asarray(value)
    if array.dtype.kind in "OSU" and all(isinstance(text, (str, bytes)) for text in array.flat):
        return Output(name, "string", array.astype(str))
    # Byte orders and the two long integers of C are one type here.
    code = np.dtype(array.dtype.newbyteorder("<").str) if array.dtype.kind in "biuf" else array.dtype
    if code not in ELEMENTS:
        text = f"output `{name}` has elements of type {array.dtype}, which perfrun does not read"
        raise Failure("output", text)
    return Output(name, ELEMENTS[code], np.asarray(array, dtype=code, order="C"))


def non_finite(outputs: Sequence[Output]) -> list[str]:
    """Names of the outputs that hold NaN or infinity."""
    return [o.name for o in outputs if o.array.dtype.kind == "f" and not np.isfinite(o.array).all()]


def hash_of(outputs: Sequence[Output]) -> str:
    """16 hex digits of names, shapes and elements."""
    digest = hashlib.blake2b(digest_size=8)
    for output in outputs:
        head = [output.name, output.element, list(output.array.shape), list(output.keys)]
        digest.update(json.dumps(head).encode() + b"\0" + _stored(output).tobytes())
    return digest.hexdigest()


def _stored(output: Output) -> np.ndarray:
    """What stands in the file: of texts their UTF-8, each with a zero byte behind it."""
    if output.element != "string":
        return output.array
    texts = b"".join(str(text).encode() + b"\0" for text in output.array.flat)
    return np.frombuffer(texts, dtype=np.uint8)


class OutputFiles:
    """A folder, which exists, that outputs are written to, set after set: `<set>-<index>.npy`, then `<set>.json`."""

    def __init__(self, folder: str):
        self.folder, self.sets = folder, 0

    def write(self, outputs: Sequence[Output]) -> None:
        """Writes the next set. Raises `Failure("output")` where that is not possible."""
        try:
            self._write(outputs)
        except OSError as error:
            raise Failure("output", f"cannot write {self.folder}: {error}") from error
        self.sets += 1

    def _write(self, outputs: Sequence[Output]) -> None:
        listed = []
        for index, output in enumerate(outputs):
            with open(os.path.join(self.folder, "%d-%d.npy" % (self.sets, index)), "wb") as file:
                np.lib.format.write_array(file, _stored(output), version=(1, 0), allow_pickle=False)
            entry = {"name": output.name, "element": output.element, "shape": list(output.array.shape)}
            listed.append({**entry, "keys": list(output.keys)} if output.keys else entry)
        with open(os.path.join(self.folder, "%d.json" % self.sets), "w", encoding="utf-8") as file:
            json.dump(listed, file)


def batches(data: Mapping[str, Any], tensors: Sequence[Mapping[str, Any]]) -> Iterator[tuple[Arrays, int]]:
    """The items of a dataset as inputs with their number of items.

    A batch has as many items as the first dimension of the first tensor; the last one is filled up with its last item.
    """
    paths = {feed["tensor"]: feed["path"] for feed in data["feeds"]}
    for tensor in tensors:
        if tensor["name"] not in paths:
            raise Failure("shape", "the dataset has nothing for input `{}`".format(tensor["name"]))
    files = [opened(paths[tensor["name"]]) for tensor in tensors]
    batch = batch_of(tensors)
    for start in range(0, data["items"], batch):
        items = min(batch, data["items"] - start)
        arrays = {}
        for tensor, file in zip(tensors, files):
            part = file[start : start + items]
            if len(part) != items:
                raise Failure("internal", "%s has fewer items than %d" % (paths[tensor["name"]], data["items"]))
            padded = np.concatenate([part] + [part[-1:]] * (batch - items)) if items < batch else part
            arrays[tensor["name"]] = _shaped(padded, tensor)
        yield arrays, items


def batch_of(tensors: Sequence[Mapping[str, Any]]) -> int:
    """Items of one call: the first dimension of the first tensor."""
    shape = tensors[0]["shape"] if tensors else []
    return max(1, shape[0]) if shape else 1


class Stack:
    """Outputs of batches on their way into files of `items_in_file` items."""

    def __init__(self, files: OutputFiles, items_in_file: int, batch: int):
        self.files, self.items_in_file, self.batch = files, items_in_file, batch
        self.pending: list[list[Output]] = []
        self.items = 0

    def add(self, outputs: list[Output], items: int) -> None:
        """Takes the outputs of a batch, without what filled it up.

        Outputs that do not have an entry for each item are written by themselves.
        """
        if not all(output.array.shape[:1] == (self.batch,) for output in outputs):
            self.flush()
            return self.files.write(outputs)
        kept = [output._replace(array=output.array[:items]) for output in outputs]
        if self.pending and not _fit_below(self.pending[-1], kept):
            self.flush()
        self.pending.append(kept)
        self.items += items
        if self.items >= self.items_in_file:
            self.flush()

    def flush(self) -> None:
        """Writes what is pending."""
        stacks = list(zip(*self.pending))
        self.pending, self.items = [], 0
        if stacks:
            self.files.write([s[0]._replace(array=np.concatenate([o.array for o in s])) for s in stacks])


def _fit_below(above: Sequence[Output], below: Sequence[Output]) -> bool:
    def kind(output: Output) -> tuple[Any, ...]:
        return output.name, output.element, output.array.shape[1:], output.keys

    return [kind(output) for output in above] == [kind(output) for output in below]
