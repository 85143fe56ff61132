"""The line to the parent: one JSON object a line, on a descriptor of its own, for as long as the parent lives."""

from __future__ import annotations

import ctypes
import json
import os
import queue
import signal
import stat
import threading
from collections.abc import Mapping
from typing import Any

from perfrun.failure import Failure

LONGEST_LINE = 16 << 20


class Channel:
    """One JSON object a line, both ways, over the socket PERFRUN_FD, else over standard input and output."""

    def __init__(self) -> None:
        number = os.environ.pop("PERFRUN_FD", "")
        if number.isdigit() and _is_socket(int(number)):
            self._in = self._out = int(number)
        else:
            self._in, self._out = os.dup(0), os.dup(1)
            os.dup2(2, 1)  # Libraries print.
            with open(os.devnull, "rb") as nothing:
                os.dup2(nothing.fileno(), 0)
        for descriptor in (self._in, self._out):
            os.set_inheritable(descriptor, False)
            os.set_blocking(descriptor, True)
        self.commands: queue.Queue[bytes] = queue.Queue()
        self.is_finished = False  # From then on the parent may close its side.
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        """Blocks in a thread other than the main one, which costs nothing, and ends the process as soon as the parent is gone."""
        pending = b""
        while True:
            try:
                received = os.read(self._in, 1 << 16)
            except OSError:
                received = b""
            if not received:
                if self.is_finished:
                    return
                os._exit(1)
            *lines, pending = (pending + received).split(b"\n")
            if len(pending) > LONGEST_LINE:
                lines, pending = lines + [pending], b""
            for line in lines:
                self.commands.put(line)

    def send(self, message: Mapping[str, Any]) -> None:
        """Writes one message. Ends the process where the parent is gone."""
        rest = memoryview(json.dumps(message, separators=(",", ":"), allow_nan=False).encode() + b"\n")
        try:
            while rest:
                rest = rest[os.write(self._out, rest) :]
        except OSError:
            os._exit(1)

    def receive(self) -> dict[str, Any]:
        """Waits for the next command. Raises `Failure("protocol")` for a line that is none."""
        line = self.commands.get()
        if len(line) > LONGEST_LINE:
            raise Failure("protocol", "the parent wrote a line of more than %d MiB" % (LONGEST_LINE >> 20))
        try:
            command = json.loads(line)
            self.is_finished = command["type"] == "finish"
            return {**command, "type": str(command["type"])}
        except (ValueError, KeyError, TypeError) as error:
            start = line[:120].decode("utf-8", "replace")
            raise Failure("protocol", f"the worker does not understand `{start}`: {error!r}") from error


def _is_socket(descriptor: int) -> bool:
    try:
        return stat.S_ISSOCK(os.fstat(descriptor).st_mode)
    except OSError:
        return False


def become_a_worker() -> None:
    """Ends with the parent, dies first where memory runs out, and leaves interrupts to the parent."""
    try:
        with open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
            file.write("1000")
    except OSError:
        pass
    try:
        ctypes.CDLL(None).prctl(1, int(signal.SIGKILL), 0, 0, 0)  # PR_SET_PDEATHSIG
    except (OSError, AttributeError):
        pass
    signal.signal(signal.SIGINT, signal.SIG_IGN)
