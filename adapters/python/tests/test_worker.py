"""The worker with adapters of a few lines: protocol, loop, files, and what goes wrong."""

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import time
import unittest

import numpy as np
from parent import PACKAGE, Parent, WorkerTest

DOUBLE = """
    import numpy

    class Adapter:
        def describe(self):
            return "numpy " + numpy.__version__, {}, ["cpu"]

        def load(self, cell):
            self.cell = cell

        def inputs(self, arrays):
            return arrays["x"]

        def call(self, x):
            return 2 * x

        def outputs(self, result):
            return {"y": result}
"""


def with_method(text: str, method: str) -> str:
    """The adapter `DOUBLE` with a method of another body; `text` is `name(arguments)`."""
    return DOUBLE + f"\n        def {text}:\n            {method}\n"


def ones(items: int = 3) -> np.ndarray:
    return np.arange(items * 4, dtype=np.float32).reshape(items, 2, 2)


class Conversation(WorkerTest):
    def test_a_whole_run(self) -> None:
        for on_socket in (True, False):
            parent = self.prepared(self.adapter(DOUBLE), self.cell([self.tensor("x", ones())]), on_socket=on_socket)
            ready = parent.ready
            self.assertEqual(ready["output_shapes"], {"y": [2, 2]})
            self.assertEqual(ready["non_finite"], [])
            self.assertEqual(ready["placement"]["nodes"], {"cpu": 1})
            self.assertEqual(ready["placement"]["input_pool_bytes"], 8 * 16)
            self.assertEqual(ready["placement"]["runtime_version"], np.__version__)
            self.assertTrue(
                0 < parent.values["first_inference_ns"] and 0 <= parent.values["clock_overhead_ns"] < 10_000
            )
            starts, inputs = [], []
            for _ in range(3):
                samples, done = parent.ask("slice", time=10**12, samples=7, iterations=2)
                self.assertEqual(done, {"type": "done"})
                columns = samples["columns"]
                self.assertEqual(sorted(columns), ["duration_ns", "input", "start_ns"])
                self.assertTrue(all(duration > 0 for duration in columns["duration_ns"]))
                starts += columns["start_ns"]
                inputs += columns["input"]
            self.assertEqual(starts, sorted(starts))
            self.assertEqual(inputs, [index % 8 for index in range(21)])
            metrics, done = parent.ask("check")
            self.assertEqual(done["output_hash"], ready["output_hash"])
            self.assertEqual(done["non_finite"], [])
            self.assertGreater(metrics["values"]["peak_rss_bytes"], 1 << 20)
            self.assertGreater(metrics["values"]["cpu_time_ns"], 0)
            # Of some microseconds, in which threads of libraries may be at work too.
            self.assertGreater(metrics["values"]["cpu_utilisation_ratio"], 0)
            self.assertEqual(parent.ask("finish"), [{"type": "done"}])
            self.assertEqual(parent.process.wait(10), 0)

    def test_hello_says_who_speaks(self) -> None:
        hello = self.parent(self.adapter(DOUBLE)).ask("hello", protocol=7, oldest=3, colour="green")[0]
        self.assertEqual(hello["protocol"], 4)
        self.assertEqual(hello["worker"], "numpy " + np.__version__)
        self.assertEqual(hello["about"]["numpy"], np.__version__)
        self.assertEqual(hello["capabilities"], ["prepare", "slice", "check", "outputs", "evaluate"])
        for oldest, newest in ((5, 6), (2, 3)):
            answers = self.parent(self.adapter(DOUBLE)).ask("hello", protocol=newest, oldest=oldest)
            self.failure(answers, "protocol", "the worker speaks protocol 4")

    def test_time_ends_a_slice_after_one_sample_at_least(self) -> None:
        adapter = self.adapter(with_method("call(self, x)", "import time; time.sleep(0.01); return x"))
        parent = self.prepared(adapter, self.cell([self.tensor("x", ones())]))
        self.assertEqual(len(parent.ask("slice", time=0, samples=5, iterations=1)[0]["columns"]["input"]), 1)
        taken = len(parent.ask("slice", time=45_000_000, samples=99, iterations=1)[0]["columns"]["input"])
        self.assertTrue(1 <= taken <= 5, taken)
        durations = parent.ask("slice", time=10**12, samples=2, iterations=3)[0]["columns"]["duration_ns"]
        self.assertGreater(min(durations), 30e6)

    def test_many_samples_come_in_several_lines(self) -> None:
        adapter = self.adapter(with_method("call(self, x)", "return x"))
        parent = self.prepared(adapter, self.cell([self.tensor("x", ones())]))
        answers = parent.ask("slice", time=10**12, samples=70_000, iterations=1)
        self.assertEqual([len(part["columns"]["input"]) for part in answers[:-1]], [65_536, 4_464])

    def test_a_planted_slowdown_is_inside_the_clock(self) -> None:
        adapter = self.adapter(with_method("call(self, x)", "import time; time.sleep(0.01); return x"))
        parent = self.prepared(adapter, self.cell([self.tensor("x", ones())], slowdown=0.5))
        durations = parent.ask("slice", time=10**12, samples=9, iterations=1)[0]["columns"]["duration_ns"]
        self.assertTrue(15e6 <= min(durations) < 20e6, durations)

    def test_a_device_has_a_clock_of_its_own(self) -> None:
        text = """
            import numpy
            class Adapter:
                calls = 0
                def describe(self): return "fake 1", {}, ["cuda:0"]
                def load(self, cell): pass
                def inputs(self, arrays): return None
                def call(self, prepared): self.calls += 1
                def outputs(self, result): return {}
                def device_ns(self): calls, self.calls = self.calls, 0; return 1000 * calls
                def placement(self, result): return {"cuda": 3}
                def metrics(self): return {"peak_allocated_bytes": 5}
        """
        parent = self.prepared(self.adapter(text), self.cell(_device="cuda:0"))
        self.assertEqual(parent.ready["placement"]["nodes"], {"cuda": 3})
        columns = parent.ask("slice", time=10**12, samples=3, iterations=4)[0]["columns"]
        self.assertEqual(columns["device_ns"], [4000] * 3)
        self.assertEqual(parent.ask("check")[0]["values"]["peak_allocated_bytes"], 5)

    def test_cold_caches_and_processors(self) -> None:
        cell = self.cell([self.tensor("x", ones())], evict_bytes=1 << 20, cpus=[min(os.sched_getaffinity(0))])
        parent = self.prepared(self.adapter(DOUBLE), cell)
        self.assertEqual(os.sched_getaffinity(parent.process.pid), set(cell["cpus"]))
        parent.ask("slice", time=10**12, samples=3, iterations=1)
        values = parent.ask("check")[0]["values"]
        self.assertNotIn("cpu_time_ns", values)
        self.assertIn("peak_rss_bytes", values)


class Files(WorkerTest):
    def outputs(self, parent: Parent, kind: str = "outputs", **fields: object) -> list:
        folder = self.folder / ("out%d" % len(list(self.folder.iterdir())))
        folder.mkdir()
        answers = parent.ask(kind, path=str(folder), **fields)
        self.assertEqual(answers, [{"type": "done"}])
        sets = []
        while (folder / ("%d.json" % len(sets))).is_file():
            listed = json.loads((folder / ("%d.json" % len(sets))).read_text())
            sets.append([(entry, np.load(folder / ("%d-%d.npy" % (len(sets), at)))) for at, entry in enumerate(listed)])
        return sets

    def test_outputs_of_every_input_set(self) -> None:
        parent = self.prepared(self.adapter(DOUBLE), self.cell([self.tensor("x", ones())], input_sets=3))
        sets = self.outputs(parent)
        self.assertEqual([one[0][0] for one in sets], [{"name": "y", "element": "float32", "shape": [2, 2]}] * 3)
        np.testing.assert_array_equal(np.stack([one[0][1] for one in sets]), 2 * ones())

    def test_outputs_of_every_kind(self) -> None:
        result = """
                return {
                    "text": ["a", "longer \\u00e9"], "count": 3, "none": None, "flag": True,
                    "map": [{2: 0.25, 10: 0.75}], "parts": [numpy.zeros(2), numpy.ones(3)], "big": numpy.ones(2, ">f4"),
                }
        """
        parent = self.prepared(
            self.adapter(with_method("outputs(self, x)", result.strip())), self.cell([self.tensor("x", ones())])
        )
        found = {entry["name"]: (entry, array) for entry, array in self.outputs(parent)[0]}
        self.assertEqual(list(found), ["text", "count", "flag", "map", "parts[0]", "parts[1]", "big"])
        entry, stored = found["text"]
        self.assertEqual((entry["element"], entry["shape"]), ("string", [2]))
        self.assertEqual(stored.tobytes(), "a\0longer é\0".encode())
        self.assertEqual(found["count"][0], {"name": "count", "element": "int64", "shape": []})
        self.assertEqual(found["map"][0]["keys"], ["2", "10"])
        self.assertEqual(found["big"][1].dtype, np.dtype("<f4"))
        self.assertEqual(found["flag"][0]["element"], "bool")

    def test_large_outputs_are_written_for_fewer_sets(self) -> None:
        adapter = self.adapter(with_method("outputs(self, x)", "return {'y': numpy.zeros(5 << 20, 'f8')}"))
        parent = self.prepared(adapter, self.cell([self.tensor("x", ones())]))
        self.assertEqual(len(self.outputs(parent)), 1)

    def test_types_of_inputs(self) -> None:
        adapter = self.adapter("""
            class Adapter:
                def describe(self): return "echo 1", {}, ["cpu"]
                def load(self, cell): pass
                def inputs(self, arrays): return arrays
                def call(self, arrays): return arrays
                def outputs(self, result): return result
        """)
        tensors = [
            self.tensor("half", np.ones((1, 2), np.float16)),
            self.tensor("bits", np.ones((1, 2), np.uint16), "bfloat16"),
            self.tensor("text", np.array([["a", "bc"]]), "string"),
            self.tensor("narrow", np.ones((2, 1), np.int64), "int32"),
            self.tensor("scalar", np.ones(2, np.float64), "float32"),
            self.tensor("none", np.ones((1, 0, 3), np.float32)),
        ]
        parent = self.prepared(adapter, self.cell(tensors))
        found = {entry["name"]: entry for entry, _ in self.outputs(parent)[0]}
        kinds = {name: (entry["element"], entry["shape"]) for name, entry in found.items()}
        self.assertEqual(
            kinds,
            {
                "half": ("float16", [2]),
                "bits": ("uint16", [2]),
                "text": ("string", [2]),
                "narrow": ("int32", [1]),
                "scalar": ("float32", []),
                "none": ("float32", [0, 3]),
            },
        )

    def test_inputs_that_do_not_fit(self) -> None:
        wrong = {**self.tensor("x", ones()), "shape": [3, 3]}
        for tensor, words in ((wrong, "not [3, 3]"), ({**wrong, "shape": [2, 2], "element": "int8"}, "not int8")):
            parent = self.parent(self.adapter(DOUBLE))
            parent.ask("hello", protocol=4, oldest=4)
            self.failure(parent.ask("prepare", cell=self.cell([tensor])), "shape", "`x`", words)

    def test_the_pool_of_inputs_is_limited(self) -> None:
        tensor = self.tensor("x", np.ones((1, 5 << 20), np.float32))
        parent = self.prepared(self.adapter(DOUBLE), self.cell([tensor]))
        self.assertEqual(parent.ready["placement"]["input_pool_bytes"], 3 * 4 * (5 << 20))

    def test_a_dataset_goes_through_in_batches(self) -> None:
        parent = self.prepared(self.adapter(DOUBLE), self.cell([self.tensor("x", np.ones((1, 4, 3), np.float32))]))
        items = np.arange(33, dtype=np.float64).reshape(11, 3)
        np.save(self.folder / "items.npy", items)
        data = {"feeds": [{"tensor": "x", "path": str(self.folder / "items.npy")}], "items": 10}
        for items_in_file, shapes in ((1000, [[10, 3]]), (8, [[8, 3], [2, 3]]), (1, [[4, 3], [4, 3], [2, 3]])):
            sets = self.outputs(parent, "evaluate", data=data, items_in_file=items_in_file)
            self.assertEqual([one[0][0]["shape"] for one in sets], shapes)
            np.testing.assert_array_equal(np.concatenate([one[0][1] for one in sets]), 2 * items[:10].astype("f4"))
        self.failure(
            parent.ask("evaluate", data={**data, "items": 12}, items_in_file=1, path=str(self.folder)), "internal"
        )

    def test_outputs_without_an_entry_for_each_item_stand_alone(self) -> None:
        adapter = self.adapter(with_method("outputs(self, x)", "return {'sum': x.sum(), 'y': x}"))
        parent = self.prepared(adapter, self.cell([self.tensor("x", np.ones((1, 2, 3), np.float32))]))
        np.save(self.folder / "items.npy", np.ones((3, 3), np.float32))
        data = {"feeds": [{"tensor": "x", "path": str(self.folder / "items.npy")}], "items": 3}
        sets = self.outputs(parent, "evaluate", data=data, items_in_file=100)
        self.assertEqual([[entry["shape"] for entry, _ in one] for one in sets], [[[], [2, 3]]] * 2)


class Trouble(WorkerTest):
    def fails(self, method: str, body: str, kind: str, *words: str) -> None:
        parent = self.parent(self.adapter(with_method(method, body)))
        answers = parent.ask("hello", protocol=4, oldest=4)
        if answers[-1]["type"] == "hello":
            answers = parent.ask("prepare", cell=self.cell([self.tensor("x", ones())]))
        self.failure(answers, kind, *words)
        self.assertEqual(parent.process.wait(10), 0)

    def test_exceptions_are_told_with_the_line(self) -> None:
        self.fails("load(self, cell)", "1 / 0", "model", "ZeroDivisionError: division by zero", "1 / 0")
        self.fails("call(self, x)", "raise ValueError('no')", "operator", "ValueError: no (adapter.py:")
        self.fails("call(self, x)", "return x @ numpy.ones(3)", "shape", "size")
        self.fails("call(self, x)", "numpy.ones(1 << 50)", "out_of_memory")
        self.fails("call(self, x)", "raise MemoryError", "out_of_memory")
        self.fails("load(self, cell)", "raise SystemExit(3)", "model", "SystemExit: 3")
        self.fails("load(self, cell)", "open('absent.onnx')", "model", "absent.onnx")
        self.fails("outputs(self, x)", "return {'y': 1j}", "output", "complex128")
        self.fails("outputs(self, x)", "return {'y': [object()]}", "output", "object")
        self.fails("describe(self)", "raise OSError('broken')", "internal", "broken")
        self.fails("describe(self)", "raise ImportError('libcudart.so.12')", "provider", "libcudart")

    def test_a_missing_module_has_its_pip_line(self) -> None:
        parent = self.parent(self.adapter("import no_such_module_here.part\n" + DOUBLE.replace("\n    ", "\n")))
        failure = self.failure(parent.ask("hello", protocol=4, oldest=4), "missing", sys.executable)
        self.assertEqual(failure["remedy"], sys.executable + " -m pip install no_such_module_here")

    def test_numpy_may_be_missing(self) -> None:
        (self.folder / "numpy.py").write_text("raise ModuleNotFoundError('none', name='numpy')")
        paths = os.pathsep.join([str(self.folder), str(PACKAGE)])
        failure = self.failure(self.parent("callable", PYTHONPATH=paths).ask("hello", protocol=4, oldest=4), "missing")
        self.assertTrue(failure["remedy"].endswith("-m pip install numpy"), failure)

    def test_adapters_that_are_none(self) -> None:
        for name, kind in (("no_such", "provider"), (self.adapter("x = 1", "empty.py"), "internal")):
            self.failure(self.parent(name).ask("hello", protocol=4, oldest=4), kind)

    def test_values_that_are_not_finite_are_named(self) -> None:
        adapter = self.adapter(with_method("call(self, x)", "return x * numpy.nan"))
        parent = self.prepared(adapter, self.cell([self.tensor("x", ones())]))
        self.assertEqual(parent.ready["non_finite"], ["y"])
        self.assertEqual(parent.ask("check")[-1]["non_finite"], ["y"])

    def test_shapes_that_differ_between_sets_are_not_given(self) -> None:
        adapter = self.adapter(with_method("call(self, x)", "return x[: int(x[0, 0] > 0)]"))
        self.assertIsNone(self.prepared(adapter, self.cell([self.tensor("x", ones())])).ready["output_shapes"])
        cell = self.cell([self.tensor("x", ones())], outputs={})
        self.assertIsNone(self.prepared(adapter, cell).ready["output_shapes"])

    def test_a_silent_cpu_is_told(self) -> None:
        for placement, words in (("return {'cpu': 1}", "ran on the CPU"), ("return {}", "does not say where it ran")):
            parent = self.parent(self.adapter(with_method("placement(self, x)", placement)))
            parent.ask("hello", protocol=4, oldest=4)
            answers = parent.ask("prepare", cell=self.cell([self.tensor("x", ones())], _device="cuda:0"))
            self.failure(answers, "provider", "a cell of cuda:0 " + words)

    def test_printing_does_not_break_the_line(self) -> None:
        text = "print('library', x); import os; os.write(1, b'raw'); return input() if 0 else x"
        for on_socket in (True, False):
            adapter = self.adapter(with_method("call(self, x)", text))
            parent = self.prepared(adapter, self.cell([self.tensor("x", ones())]), on_socket=on_socket)
            self.assertEqual(parent.ask("finish"), [{"type": "done"}])
            parent.process.wait(10)
            self.assertIn("raw", parent.printed())
            self.assertIn("library", parent.printed())

    def test_options_are_checked_and_have_defaults(self) -> None:
        adapter = self.adapter(with_method("metrics(self)", "return {'k': self.cell.options['k']}"))
        (self.folder / "adapter.json").write_text(
            json.dumps(
                {
                    "options": {
                        "properties": {
                            "k": {"type": "integer", "default": 7, "minimum": 1},
                            "mode": {"type": "string", "enum": ["a", "b"]},
                        }
                    }
                }
            )
        )
        parent = self.prepared(adapter, self.cell([self.tensor("x", ones())]))
        self.assertEqual(parent.ask("check")[0]["values"]["k"], 7)
        for options, words in (
            ({"k": 0}, "below 1"),
            ({"k": True}, "no integer"),
            ({"mode": "c"}, "none of a, b"),
            ({"z": 1}, "no option `z`: there are k, mode"),
            ({"k": 1.5}, "no integer"),
        ):
            parent = self.parent(adapter)
            parent.ask("hello", protocol=4, oldest=4)
            self.failure(parent.ask("prepare", cell=self.cell(_options=options)), "provider", words)

    def test_metrics_that_are_no_numbers(self) -> None:
        parent = self.prepared(
            self.adapter(with_method("metrics(self)", "return {'k': numpy.nan}")), self.cell([self.tensor("x", ones())])
        )
        self.failure(parent.ask("check"), "protocol", "nan as its metric `k`")

    def test_lines_that_are_no_commands(self) -> None:
        lines = (
            b"\xff\n",
            b"[1]\n",
            b"{}\n",
            b'{"type":"dance"}\n',
            b'{"type":"slice","time":1,"samples":1,"iterations":1}\n',
            b'{"type":"prepare","cell":{}}\n',
            b"x" * (17 << 20),
        )
        for line in lines:
            parent = self.parent(self.adapter(DOUBLE))
            with contextlib.suppress(BrokenPipeError):  # It does not wait for the end of a line that is too long.
                parent.write(line)
            self.failure(parent.answers(), "protocol")
            self.assertEqual(parent.process.wait(10), 0)

    def test_the_worker_ends_with_its_parent(self) -> None:
        busy = self.adapter(with_method("call(self, x)", "import time; time.sleep(60)"))
        for on_socket in (True, False):
            parent = self.parent(busy, on_socket=on_socket)
            parent.ask("hello", protocol=4, oldest=4)
            parent.write(
                json.dumps({"type": "prepare", "cell": self.cell([self.tensor("x", ones())])}).encode() + b"\n"
            )
            self.assertEqual(json.loads(parent.file.readline())["type"], "phase")
            parent.file.close()
            parent.line.close()
            self.assertEqual(parent.process.wait(5), 1)

    def test_the_worker_ends_with_a_parent_that_is_killed(self) -> None:
        script = f"""
            import os, sys, time
            sys.path.insert(0, {os.path.dirname(os.path.abspath(__file__))!r})
            from parent import Parent
            parent = Parent({self.adapter(DOUBLE)!r})
            parent.ask("hello", protocol=4, oldest=4)
            print(parent.process.pid, flush=True)
            time.sleep(60)
        """
        path = self.adapter(script, "middle.py")
        middle = subprocess.Popen([sys.executable, path], stdout=subprocess.PIPE)
        assert middle.stdout
        worker = int(middle.stdout.readline())
        middle.kill()
        middle.wait()
        middle.stdout.close()
        deadline = time.monotonic() + 5
        while is_running(worker) and time.monotonic() < deadline:
            time.sleep(0.02)
        self.assertFalse(is_running(worker))

    def test_an_interrupt_is_for_the_parent(self) -> None:
        parent = self.prepared(self.adapter(DOUBLE), self.cell([self.tensor("x", ones())]))
        parent.process.send_signal(signal.SIGINT)
        self.assertEqual(parent.ask("finish"), [{"type": "done"}])


def is_running(process: int) -> bool:
    try:
        state = pathlib.Path("/proc/%d/stat" % process).read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state != "Z"


if __name__ == "__main__":
    unittest.main()
