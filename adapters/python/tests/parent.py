"""The parent's side of the worker protocol, as small as the tests need it."""

import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import textwrap
import unittest
from collections.abc import Sequence
from typing import Any, Optional

import numpy as np

PACKAGE = pathlib.Path(__file__).resolve().parent.parent
ENDS = ("hello", "ready", "done", "failed")


class Parent:
    """A worker process and the line to it: a socket of its own, or standard input and output."""

    def __init__(self, adapter: str, python: str = sys.executable, on_socket: bool = True, **environment: str):
        ours, theirs = socket.socketpair()
        env = {**os.environ, "PYTHONPATH": str(PACKAGE), "PYTHONDONTWRITEBYTECODE": "1", **environment}
        command = [python, "-m", "perfrun.worker", adapter]
        self.log = tempfile.TemporaryFile()
        out = {"stdout": self.log, "stderr": self.log, "cwd": tempfile.gettempdir()}
        if on_socket:
            env["PERFRUN_FD"] = str(theirs.fileno())
            pipe: Any = subprocess.DEVNULL
            self.process = subprocess.Popen(command, env=env, pass_fds=[theirs.fileno()], stdin=pipe, **out)
        else:
            out["stdout"] = theirs
            self.process = subprocess.Popen(command, env=env, stdin=theirs, **out)
        theirs.close()
        self.line = ours
        self.file = ours.makefile("rwb")

    def write(self, text: bytes) -> None:
        self.file.write(text)
        self.file.flush()

    def ask(self, kind: str, **fields: Any) -> list[dict[str, Any]]:
        """Answers up to the one that ends the command; none where the worker is gone."""
        self.write(json.dumps({"type": kind, **fields}).encode() + b"\n")
        return self.answers()

    def answers(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        while not found or found[-1]["type"] not in ENDS:
            line = self.file.readline()
            if not line:
                break
            found.append(json.loads(line))
        return found

    def printed(self) -> str:
        """What the worker wrote to standard output and error so far."""
        self.log.seek(0)
        return self.log.read().decode("utf-8", "replace")

    def close(self) -> None:
        self.file.close()
        self.line.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()


class WorkerTest(unittest.TestCase):
    """A folder for files, and workers that end with the test."""

    def setUp(self) -> None:
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)

    def parent(self, adapter: str, **settings: Any) -> Parent:
        parent = Parent(adapter, **settings)
        self.addCleanup(parent.close)
        return parent

    def adapter(self, text: str, name: str = "adapter.py") -> str:
        """An adapter of a test's own; describes itself unless the text does."""
        path = self.folder / name
        path.write_text(textwrap.dedent(text))
        return str(path)

    def tensor(self, name: str, sets: np.ndarray, element: Optional[str] = None) -> dict[str, Any]:
        """One entry of `sets` for each input set."""
        path = self.folder / (name + ".npy")
        np.save(path, sets)
        return {
            "name": name,
            "element": element or ("string" if sets.dtype.kind == "U" else str(sets.dtype)),
            "shape": list(sets.shape[1:]),
            "file": str(path),
            "values": "random",
            "seeds": [],
        }

    def cell(self, tensors: Sequence[dict[str, Any]] = (), **settings: Any) -> dict[str, Any]:
        """The fields of a cell request; those of its backend are given with a leading underscore."""
        backend: dict[str, Any] = {
            "kind": "program",
            "model": None,
            "source": None,
            "device": "cpu",
            "threads": 1,
            "options": {},
            "settings": {"graph_optimization": "all", "session": {}, "provider": {}},
            "path": [str(self.folder)],
        }
        backend.update({key[1:]: value for key, value in settings.items() if key[0] == "_"})
        cell = {
            "cell": "model / b1 / baseline / cpu",
            "backend": backend,
            "tensors": list(tensors),
            "input_sets": 8,
            "outputs": None,
            "slowdown": 0.0,
        }
        return {**cell, **{key: value for key, value in settings.items() if key[0] != "_"}}

    def prepared(self, adapter: str, cell: dict[str, Any], **settings: Any) -> Parent:
        """A worker that has a cell; `ready` and the metrics are its attributes."""
        parent = self.parent(adapter, **settings)
        self.assertEqual(parent.ask("hello", protocol=4, oldest=4)[-1]["type"], "hello", parent.printed())
        answers = parent.ask("prepare", cell=cell)
        self.assertEqual([answer["type"] for answer in answers], ["phase", "metrics", "ready"], answers)
        parent.ready, parent.values = answers[-1], answers[1]["values"]  # type: ignore[attr-defined]
        return parent

    def failure(self, answers: list[dict[str, Any]], kind: str, *words: str) -> dict[str, Any]:
        """The failure that a command ended with."""
        self.assertTrue(answers, "the worker is gone")
        self.assertEqual(answers[-1]["type"], "failed", answers)
        failure: dict[str, Any] = answers[-1]["failure"]
        self.assertEqual(failure["kind"], kind, failure)
        for word in words:
            self.assertIn(word, failure["message"])
        return failure
