"""Measures a program for perfrun: speaks the worker protocol and owns the loop.

    python -m perfrun.worker ADAPTER

ADAPTER is the name of a shipped adapter, such as `pytorch`, or the path of a Python file. Either has a class `Adapter`:

    describe() -> (str, dict, list)   name and version; versions of what it uses; devices it may run on
    load(cell)                        load the model of a `Cell`; counts as load time
    inputs(arrays) -> prepared        from NumPy arrays by name to what `call` takes: conversions and copies to a device
    call(prepared) -> result          one inference, finished when it returns; the only thing that is timed
    outputs(result) -> dict           NumPy arrays, numbers or texts by name; may copy

and, where it has something to say:

    build(prepared) -> bool           compile for these inputs, before the first inference; true if it did
    placement(result) -> dict         how many parts of the model run where, such as {"cuda": 120, "cpu": 1}
    fallback() -> dict                how many of them, by kind, run on the CPU in a cell of another device
    device_ns() -> int                nanoseconds on the device's clock of the calls since it was asked last
    metrics() -> dict                 numbers by name, after the samples
    reset()                           forget peaks: the samples begin

An adapter that runs language models has these as well. `cell.decode` is set where a call of one is asked for (`Decode`), and
`call` then feeds the tokens of `inputs` behind what the cache holds, and gives logits by the name `cell.decode.logits`.

    fill(ids)                         a cache that holds these tokens, int64 [batch, context], perhaps none; outside the clock
    rewind()                          the cache holds these again; before every call, outside the clock
    first(prepared) -> ids            begin a greedy loop: feed a prompt and choose the next token of each sequence
    next() -> ids                     feed these and choose the next ones

`NAME.json` next to the file declares the options as a JSON Schema; it may be missing.
"""

from __future__ import annotations

import array
import contextlib
import gc
import itertools
import os
import platform
import sys
import time
import traceback
from collections.abc import Iterator, Mapping
from typing import Any, Callable, Optional

from perfrun.cell import Cell, load_adapter
from perfrun.channel import Channel, become_a_worker
from perfrun.failure import Failure, failure_of
from perfrun.source import add_to_path

try:
    import numpy as np

    from perfrun import arrays
    from perfrun.decode import Loop
except ModuleNotFoundError as error:
    NO_NUMPY: Optional[ModuleNotFoundError] = error  # Reported to the parent in answer to `hello`.
else:
    NO_NUMPY = None

PROTOCOL = 4
SAMPLES_IN_LINE = 1 << 16
CAPABILITIES = ["prepare", "slice", "check", "outputs", "evaluate"]

# --- The loop -------------------------------------------------------------------------------------------------------


def clock_quality() -> dict[str, int]:
    """Median time between two readings and smallest step seen, in nanoseconds. Reported, never subtracted."""
    clock, readings = time.perf_counter_ns, array.array("Q", bytes(8 * 20_001))
    for index in range(len(readings)):
        readings[index] = clock()
    steps = np.diff(np.asarray(readings, dtype=np.uint64)).astype(np.int64)
    moved = steps[steps > 0]
    resolution = int(moved.min()) if len(moved) else 0
    return {"clock_overhead_ns": int(np.median(steps)), "clock_resolution_ns": resolution}


def peak_rss_bytes() -> Optional[int]:
    """Largest resident set; VmHWM, because `ru_maxrss` is inherited from the parent."""
    try:
        with open("/proc/self/status", encoding="ascii", errors="replace") as file:
            return next((int(line.split()[1]) * 1024 for line in file if line.startswith("VmHWM:")), None)
    except OSError:
        return None


class Loaded:
    """A cell that is loaded: its adapter, its input sets, and what the samples so far amount to."""

    def __init__(self, adapter: Any, request: Mapping[str, Any], cell: Cell):
        self.adapter, self.cell = adapter, cell
        self.slowdown: float = request.get("slowdown") or 0.0
        self.step = "load"  # What an exception means.
        self.next_input = 0
        self.inferences = self.span_ns = self.cpu_ns = 0
        self.wanted_sets: int = request.get("input_sets") or 1
        self.evict_bytes: int = request.get("evict_bytes") or 0
        self.evicted: Optional[np.ndarray] = None  # Larger than the caches; `None` where they stay warm.
        self.peak_rss: Optional[int] = None  # Of the model alone, before that was made.
        self.rewind: Optional[Callable[[], None]] = None  # Of a cache, before every call.
        self.loop: Optional[Loop] = None  # Where tokens are generated.

    def _optional(self, name: str, *given: Any) -> Any:
        method = getattr(self.adapter, name, None)
        return method(*given) if method else None

    def prepare(self, version: str, about: Mapping[str, str], send: Callable[[Mapping[str, Any]], None]) -> None:
        """Loads the model, makes the inputs, runs once; answers with metrics and `ready`."""
        clock, values = time.perf_counter_ns, dict(clock_quality())
        began = clock()
        self.adapter.load(self.cell)
        values["load_ns"] = clock() - began
        self.step = "inputs"
        self.call = self.adapter.call
        self._fill()
        feeds = arrays.input_sets(self.cell.tensors, self.wanted_sets)
        pool_bytes = arrays.byte_size(feeds)
        self.sets = [self.adapter.inputs(feed) for feed in feeds]
        self.step = "call"
        began = clock()
        if self._optional("build", self.sets[0]):
            values["build_ns"] = clock() - began
        if self.rewind:
            self.rewind()
        self.origin = clock()
        result = self.call(self.sets[0])
        values["first_inference_ns"] = clock() - self.origin
        placed = self._placed(result)
        outputs = self._read(result)
        bad = arrays.non_finite(outputs)
        shapes = None
        if self.cell.outputs is None:
            shapes, more = self._survey()
            bad += [name for name in more if name not in bad]
        build = "; ".join("{} {}".format(*item) for item in about.items())
        placement = {
            "runtime_version": version.split(" ", 1)[-1],
            "build": build,
            "nodes": placed,
            "fallback": self._optional("fallback") or {},
            "input_pool_bytes": pool_bytes,
            "dynamic_outputs": bool(getattr(self.adapter, "dynamic_outputs", False)),
        }
        self._optional("reset")
        gc.collect()
        gc.freeze()  # So that collecting before a slice looks at what is new only.
        gc.disable()
        self.peak_rss = peak_rss_bytes()
        if self.evict_bytes:
            self.evicted = np.ones(self.evict_bytes // 8 + 1, dtype=np.uint64)
        send({"type": "metrics", "values": values})
        send(
            {
                "type": "ready",
                "placement": placement,
                "output_shapes": shapes,
                "output_hash": arrays.hash_of(outputs),
                "non_finite": bad,
            }
        )

    def _fill(self) -> None:
        """Makes the cache that a call of a language model finds."""
        decode = self.cell.decode
        if not decode:
            return
        if not hasattr(self.adapter, "fill"):
            raise Failure("operator", "the adapter runs no calls of a language model: it has no method `fill`")
        self.adapter.fill(arrays.opened(decode.held))
        self.rewind = self.adapter.rewind
        if decode.generated:
            self.loop = Loop(self.adapter, decode)
            self.call = self.loop.call

    def _placed(self, result: Any) -> dict[str, int]:
        """Where the model ran. A cell of another device fails if it ran on the CPU, or if nothing says where it ran."""
        device = self.cell.device_type
        placed = self._optional("placement", result) or ({"cpu": 1} if device == "cpu" else {})
        if device != "cpu" and not any(not name.lower().startswith("cpu") for name in placed):
            where = "ran on the CPU" if placed else "does not say where it ran"
            raise Failure("provider", f"a cell of {self.cell.device} {where}")
        return placed

    def _survey(self) -> tuple[Optional[dict[str, list[int]]], list[str]]:
        """Shapes of the outputs if they are the same for every input set, and names of those that are not finite."""
        shapes, bad = [], []
        for prepared in self.sets:
            outputs = self._run(prepared)
            bad += arrays.non_finite(outputs)
            shapes.append({output.name: list(output.array.shape) for output in outputs})
        return (shapes[0] if all(shape == shapes[0] for shape in shapes) else None), list(dict.fromkeys(bad))

    def _read(self, result: Any) -> list[arrays.Output]:
        self.step = "outputs"
        outputs = arrays.normalised((self.loop or self.adapter).outputs(result))
        self.step = "call"
        return outputs

    def _run(self, prepared: Any) -> list[arrays.Output]:
        if self.rewind:
            self.rewind()
        return self._read(self.call(prepared))

    def _time(self, prepared: Any, iterations: int) -> tuple[int, int]:
        """When so many calls began, and when they would have ended without the rewinding between them."""
        call, clock, rewind = self.call, time.perf_counter_ns, self.rewind
        if not rewind:
            times = itertools.repeat(None, iterations)
            began = clock()
            for _ in times:
                call(prepared)
            return began, clock()
        first, took = 0, 0
        for _ in range(iterations):
            rewind()
            began = clock()
            call(prepared)
            took += clock() - began
            first = first or began
        return first, first + took

    def slice(self, spend_ns: int, most: int, iterations: int, warms: bool) -> Iterator[dict[str, Any]]:
        """Takes samples until `spend_ns` passed or `most` are taken, at least one; gives them in parts."""
        gc.collect()
        clock, sets, origin, slowdown = time.perf_counter_ns, self.sets, self.origin, self.slowdown
        device_ns: Optional[Callable[[], int]] = getattr(self.adapter, "device_ns", None)
        starts, durations, inputs, on_device = (array.array("Q") for _ in range(4))
        cold, index = self.evicted, self.next_input
        if cold is None:
            self._time(sets[index], iterations)
        if self.loop:
            self.loop.begin()
        if device_ns:
            device_ns()
        cpu_before, stop = time.process_time_ns(), clock() + spend_ns
        while True:
            if cold is not None:
                cold += 1
            began, ended = self._time(sets[index], iterations)
            if slowdown > 0.0:
                longer = int((ended - began) * slowdown)
                until = clock() + longer
                while clock() < until:
                    pass
                ended += longer
            starts.append(began - origin)
            durations.append(ended - began)
            inputs.append(index)
            if device_ns:
                on_device.append(device_ns())
            index = (index + 1) % len(sets)
            if ended >= stop or len(starts) >= most:
                break
        self.cpu_ns += time.process_time_ns() - cpu_before
        self.span_ns += starts[-1] + durations[-1] - starts[0]
        self.inferences += len(starts) * iterations
        self.next_input = index
        if self.loop:
            self.loop.settle(counts=not warms)
        columns = {"start_ns": starts, "duration_ns": durations, "input": inputs, "device_ns": on_device}
        for first in range(0, len(starts), SAMPLES_IN_LINE):
            part = slice(first, first + SAMPLES_IN_LINE)
            yield {name: column[part].tolist() for name, column in columns.items() if column}

    def used(self) -> dict[str, float]:
        """What the samples so far used. Where caches are emptied, that is what used the processor."""
        values: dict[str, float] = {"clock_overhead_ns": clock_quality()["clock_overhead_ns"]}
        is_cold = self.evicted is not None
        peak = self.peak_rss if is_cold else peak_rss_bytes()
        if peak is not None:
            values["peak_rss_bytes"] = peak
        if self.inferences and not is_cold:
            values["cpu_time_ns"] = self.cpu_ns / self.inferences
            values["cpu_utilisation_ratio"] = self.cpu_ns / max(1, self.span_ns)
        if self.loop:
            values.update(self.loop.metrics())
        metrics = self._optional("metrics") or {}
        if not isinstance(metrics, dict):
            raise Failure("protocol", f"the adapter's metrics are {metrics!r}, and not a dict of numbers by name")
        for name, value in metrics.items():
            is_number = isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
            if not is_number or not np.isfinite(value):
                raise Failure("protocol", f"the adapter reports {value!r} as its metric `{name}`, which is no number")
            values[name] = float(value)
        return values

    def check(self) -> dict[str, Any]:
        """Outputs of the first input set, computed again."""
        outputs = self._run(self.sets[0])
        return {"output_hash": arrays.hash_of(outputs), "non_finite": arrays.non_finite(outputs)}

    def write_outputs(self, folder: str) -> None:
        """Outputs of each input set, as many sets as `MOST_WRITTEN_BYTES` hold, at least one."""
        files, written = arrays.OutputFiles(folder), 0
        for prepared in self.sets:
            outputs = self._run(prepared)
            written += sum(output.array.nbytes for output in outputs)
            if files.sets and written > arrays.MOST_WRITTEN_BYTES:
                break
            files.write(outputs)

    def evaluate(self, data: Mapping[str, Any], items_in_file: int, folder: str) -> None:
        """Outputs for every item of a dataset."""
        stack = arrays.Stack(arrays.OutputFiles(folder), items_in_file, arrays.batch_of(self.cell.tensors))
        for feed, items in arrays.batches(data, self.cell.tensors):
            stack.add(self._run(self.adapter.inputs(feed)), items)
        stack.flush()


# --- The conversation -----------------------------------------------------------------------------------------------


class Worker:
    """Obeys commands, one after the other."""

    def __init__(self, channel: Channel, adapter_name: str):
        self.send, self.adapter_name = channel.send, adapter_name
        self.loaded: Optional[Loaded] = None

    def obey(self, command: Mapping[str, Any]) -> None:
        """Does what a command says and writes its answers."""
        handler = getattr(self, "on_" + command["type"], None)
        if handler is None:
            raise Failure("protocol", "the worker does not understand the command `{}`".format(command["type"]))
        handler(command)

    def on_hello(self, command: Mapping[str, Any]) -> None:
        newest = command["protocol"]
        oldest = command.get("oldest", newest)
        if not oldest <= PROTOCOL <= newest:
            text = "the worker speaks protocol %d, perfrun %d to %d" % (PROTOCOL, oldest, newest)
            raise Failure("protocol", text)
        if NO_NUMPY:
            raise NO_NUMPY
        self.adapter, declared = load_adapter(self.adapter_name)
        self.schema = declared.get("options")
        self.version, about, devices = self.adapter.describe()
        self.about = {"python": platform.python_version(), "numpy": np.__version__, **about}
        hello = {"type": "hello", "protocol": PROTOCOL, "worker": self.version, "capabilities": CAPABILITIES}
        if self.schema is not None:
            hello["options"] = self.schema
        if hasattr(self.adapter, "fill"):
            hello["decodes"] = True
        self.send({**hello, "devices": devices, "about": self.about})

    def on_prepare(self, command: Mapping[str, Any]) -> None:
        request = command["cell"]
        if not hasattr(self, "adapter"):
            raise Failure("protocol", "`prepare` came before `hello`")
        self.send({"type": "phase", "name": "load"})
        cell = Cell(request, self.schema)
        add_to_path(cell.path)
        for thread in os.listdir("/proc/self/task") if request.get("cpus") else []:
            os.sched_setaffinity(int(thread), request["cpus"])  # NumPy has started threads already.
        self.loaded = Loaded(self.adapter, request, cell)
        self.loaded.prepare(self.version, self.about, self.send)

    def _cell(self) -> Loaded:
        if self.loaded is None:
            raise Failure("protocol", "no cell was prepared")
        return self.loaded

    def on_slice(self, command: Mapping[str, Any]) -> None:
        warms = command.get("warms") or False
        for columns in self._cell().slice(command["time"], command["samples"], command["iterations"], warms):
            self.send({"type": "samples", "phase": "measure", "columns": columns})
        self.send({"type": "done"})

    def on_check(self, _command: Mapping[str, Any]) -> None:
        self.send({"type": "metrics", "values": self._cell().used()})
        self.send({"type": "done", **self._cell().check()})

    def on_outputs(self, command: Mapping[str, Any]) -> None:
        self._cell().write_outputs(command["path"])
        self.send({"type": "done"})

    def on_evaluate(self, command: Mapping[str, Any]) -> None:
        self._cell().evaluate(command["data"], command["items_in_file"], command["path"])
        self.send({"type": "done"})

    def on_finish(self, _command: Mapping[str, Any]) -> None:
        self.send({"type": "done"})
        _leave()

    def fail(self, error: BaseException) -> None:
        """Answers an exception and ends."""
        traceback.print_exception(type(error), error, error.__traceback__)
        step = self.loaded.step if self.loaded else "hello"
        self.send({"type": "failed", "failure": failure_of(error, step).fields()})
        _leave()


def _leave() -> None:
    """Without the destructors of libraries, some of which hang or crash."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            pass
    os._exit(0)


def main() -> None:
    """Speaks the protocol until `finish`, a failure, or the end of the parent."""
    if len(sys.argv) != 2:
        sys.exit("usage: python -m perfrun.worker ADAPTER")
    become_a_worker()
    channel = Channel()
    with contextlib.suppress(OSError):
        if sys.path[0] in ("", os.getcwd()):
            del sys.path[0]  # `-m` puts the working folder before everything, whatever lies there.
    worker = Worker(channel, sys.argv[1])
    while True:
        try:
            worker.obey(channel.receive())
        except BaseException as error:  # Including SystemExit of a library.
            worker.fail(error)


if __name__ == "__main__":
    main()
