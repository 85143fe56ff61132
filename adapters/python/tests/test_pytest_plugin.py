"""The pytest plugin, in runs of pytest with a program that stands for perfrun; its adapter, in a worker."""

import importlib.util
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import textwrap
import unittest
from typing import Any, Optional

from parent import PACKAGE, WorkerTest
from test_adapters import needs

ADAPTER = str(PACKAGE / "perfrun" / "pytest_adapter.py")

# Notes how it is called, and prints what `answer.json` says: of `plan` and of `run`, a text is a refusal.
PERFRUN = """
    import json, os, pathlib, sys
    here = pathlib.Path(__file__).parent
    verb, spec = sys.argv[1], pathlib.Path(sys.argv[2])
    call = {
        "words": sys.argv[1:], "spec": json.loads(spec.read_text()), "files": sorted(os.listdir(spec.parent)),
        "path": os.environ.get("PYTHONPATH"), "traced": "COV_CORE_SOURCE" in os.environ,
    }
    with open(here / "calls", "a") as file:
        file.write(json.dumps(call) + "\\n")
    answer = json.loads((here / "answer.json").read_text())[verb]
    if isinstance(answer, str):
        sys.exit(answer)
    print("measuring", file=sys.stderr)
    print(json.dumps(answer))
"""
PLAN: dict[str, Any] = {"cells": [{}, {}], "skips": []}
LIBRARY = """
def fast():
    return 1

def slow():
    return 2

class Group:
    @staticmethod
    def one():
        return 3

    def two(self):
        return 4
"""


def results(verdict: str = "equivalent", reason: str = "within_margin", **changes: Any) -> dict[str, Any]:
    row = {"metric": "latency", "ratio": 0.5, "low": 0.456, "high": 0.544, "confidence": 0.99, "margin": 0.02}
    worse = {**row, "metric": "peak_rss", "verdict": "worse", "reason": "beyond_margin"}
    cells = [{"model": "baseline"}, {"model": "new"}]
    comparison = {**row, "verdict": verdict, "reason": reason, **changes}
    return {"format": 3, "cells": cells, "comparisons": [worse, comparison]}


SLOWER = results("worse", "beyond_margin")
FASTER = results("better", "beyond_margin", ratio=2.0, low=1.9, high=2.1)
OPEN = results("undecided", "not_enough_data", ratio=1.0, low=0.97, high=1.04, more_blocks=9)


def unmeasured(**of_new: Any) -> dict[str, Any]:
    return {"format": 3, "cells": [{"model": "baseline"}, {"model": "new", **of_new}]}


@needs("pytest")
class PluginTest(unittest.TestCase):
    """A folder with a module, two files for models, and a program that stands for perfrun."""

    def setUp(self) -> None:
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        (self.folder / "library.py").write_text(LIBRARY)
        for name in ("new.onnx", "old.onnx"):
            (self.folder / name).write_text("")
        self.bin = self.folder / "bin"
        self.bin.mkdir()
        self.program = self.bin / "perfrun"
        self.program.write_text(f"#!{sys.executable}\n" + textwrap.dedent(PERFRUN))
        self.program.chmod(0o755)

    def run_pytest(self, *arguments: str, answer: Optional[Any] = None, plan: Any = PLAN, **environment: str) -> str:
        """What pytest prints; its exit code is `self.code`."""
        (self.bin / "answer.json").write_text(json.dumps({"run": answer or results(), "plan": plan}))
        settings = {
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "PYTHONPATH": str(PACKAGE),
            "PYTHONDONTWRITEBYTECODE": "1",
            "PERFRUN": str(self.program),
            "COLUMNS": "80",
        }
        command = [sys.executable, "-m", "pytest", "-p", "perfrun.pytest_plugin", "--strict-markers", *arguments]
        pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        done = subprocess.run(command, cwd=self.folder, env={**os.environ, **settings, **environment}, **pipes)
        self.code = done.returncode
        return str(done.stdout)

    def write_test(self, body: str, mark: str = "") -> None:
        imports = "import functools, pathlib, pytest, library\nfrom library import fast, slow\n"
        body = textwrap.indent(textwrap.dedent(body), "    ")
        (self.folder / "test_it.py").write_text(f"{imports}\n{mark}\ndef test_speed(perfrun):\n{body}\n")

    def calls(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.bin / "calls").read_text().splitlines()]

    def spec_of(self, call: str, mark: str = "", *arguments: str) -> dict[str, Any]:
        """The specification that `perfrun.compare(...)` leads to."""
        self.write_test(f"perfrun.compare({call})", mark)
        said = self.run_pytest(*arguments)
        self.assertEqual(self.code, 0, said)
        spec: dict[str, Any] = self.calls()[-1]["spec"]
        return spec

    def refused(self, call: str, *words: str, **settings: Any) -> str:
        """The one line with which a test fails."""
        self.write_test(f"perfrun.compare({call})")
        said = self.run_pytest("--tb=short", **settings)
        self.assertEqual(self.code, 1, said)
        for word in words:
            self.assertIn(word, said)
        self.assertNotIn("pytest_plugin.py", said, "the traceback ends at the test")
        return next(line for line in said.splitlines() if line.startswith("E "))


class Specifications(PluginTest):
    def test_models(self) -> None:
        spec = self.spec_of("'new.onnx', pathlib.Path('old.onnx'), margin='3%', inputs={'batch': 1}")
        paths = [str((self.folder / name).resolve()) for name in ("old.onnx", "new.onnx")]
        names = [{"name": "baseline", "path": paths[0]}, {"name": "new", "path": paths[1]}]
        self.assertEqual(spec["models"], names)
        self.assertEqual(spec["compare"], {"baseline": {"model": "baseline"}, "margin": "3%"})
        self.assertEqual((spec["name"], spec["inputs"], spec.get("runs")), ("test_speed", {"batch": 1}, None))
        plan, run = self.calls()
        self.assertEqual((plan["words"][0], plan["words"][2:]), ("plan", ["--json"]))
        self.assertEqual((run["words"][0], run["words"][2:4]), ("run", ["--json", "--output"]))
        self.assertIn(os.path.join(".pytest_cache", "d", "perfrun", "test_speed-"), run["words"][1])
        self.assertIn(".perfrun", run["files"], "the record stays in this folder")

    def test_commands(self) -> None:
        spec = self.spec_of("['sort', '-n', 'a b'], 'sort -r a', env={}")
        self.assertEqual(spec["commands"][1], {"name": "new", "run": ["sort", "-n", "a b"]})
        self.assertEqual(spec["commands"][0], {"name": "baseline", "run": "sort -r a"})
        self.assertEqual(spec["cwd"], str(self.folder.resolve()))
        self.assertEqual(spec["compare"], {"baseline": {"model": "baseline"}})
        spec = self.spec_of("pathlib.Path('bin/x'), 'python infer.py model.onnx'")
        self.assertEqual(spec["commands"][1]["run"], [str(self.folder.resolve() / "bin" / "x")])
        self.assertEqual(spec["commands"][0]["run"], "python infer.py model.onnx")

    def test_functions(self) -> None:
        spec = self.spec_of("fast, 'library:slow'")
        args = {"file": str((self.folder / "library.py").resolve())}
        new = {"name": "new", "python": "library:fast", "takes": {}, "args": args}
        self.assertEqual(spec["models"], [{"name": "baseline", "python": "library:slow", "takes": {}}, new])
        (runtime,) = spec["runtimes"]
        self.assertEqual((runtime["adapter"], runtime["python"]), ("pytest_adapter.py", sys.executable))
        run = self.calls()[-1]
        self.assertIn("pytest_adapter.py", run["files"])
        self.assertIn(str(self.folder.resolve()), run["path"].split(os.pathsep))
        self.assertEqual(self.spec_of("library.Group.one, fast")["models"][1]["python"], "library:Group.one")

    def test_the_command_line_wins_over_the_call_and_that_over_the_mark(self) -> None:
        mark = "@pytest.mark.perfrun(margin='5%', runs=10, budget='1m', seed=7)"
        spec = self.spec_of("fast, slow", mark)
        self.assertEqual((spec["compare"]["margin"], spec["runs"], spec["budget"]), ("5%", 10, "1m"))
        spec = self.spec_of("fast, slow, margin=0.04, runs=12", mark, "--perfrun-budget", "30s")
        self.assertEqual((spec["compare"]["margin"], spec["runs"], spec["budget"]), (0.04, 12, "30s"))
        self.assertEqual(self.spec_of("fast, slow, runs=12", mark, "--perfrun-runs", "6")["runs"], 6)

    def test_coverage_does_not_trace_what_is_measured(self) -> None:
        self.write_test("perfrun.compare(fast, slow)")
        self.run_pytest(COV_CORE_SOURCE="x")
        self.assertEqual([call["traced"] for call in self.calls()], [False, False])

    def test_without_pytests_cache(self) -> None:
        self.spec_of("fast, slow", "", "-p", "no:cacheprovider")
        self.assertFalse((self.folder / ".pytest_cache").exists())


class Verdicts(PluginTest):
    def test_slower_fails_with_one_line(self) -> None:
        line = self.refused("fast, slow", answer=SLOWER)
        says = "E   AssertionError: `library:fast` is slower than `library:slow`: speed-up 0.50x, "
        self.assertIn(says + "99 % interval [0.46, 0.54], margin 2 %; if that is intended, raise `margin`; see .", line)
        self.assertTrue(line.endswith("report/report.html"), line)

    def test_a_result_can_be_asserted(self) -> None:
        self.write_test(
            """
            found = perfrun.compare(fast, slow, require="faster")
            assert (found.verdict, found.ratio, found.low, found.high) == ("faster", 2.0, 1.9, 2.1)
            assert (found.margin, found.confidence, found.reason) == (0.02, 0.99, "")
            assert found.report.name == "report.html" and found.report.parent.parent.is_dir()
            """
        )
        said = self.run_pytest(answer=FASTER)
        self.assertEqual(self.code, 0, said)

    def test_what_is_required_to_be_faster(self) -> None:
        self.assertIn("`library:fast` is not faster than", self.refused("fast, slow, require='faster'"))
        line = self.refused("fast, slow, require='faster'", answer=OPEN)
        self.assertIn("is not known to be faster than", line)
        self.assertIn("is slower than", self.refused("fast, slow, require='faster'", answer=SLOWER))

    def test_undecided_is_told_and_fails_behind_the_gate(self) -> None:
        self.write_test("perfrun.compare(fast, slow)")
        said = self.run_pytest("-q", answer=OPEN)
        self.assertEqual(self.code, 0, said)
        lines = said.splitlines()
        at = lines.index("speed-up  interval      verdict    test")
        self.assertEqual(lines[at + 1], "   1.00x  [0.97, 1.04]  undecided  test_it.py::test_speed")
        self.assertEqual(lines[at + 2], "          not enough data; about 9 more runs would decide")
        said = self.run_pytest("--perfrun-gate", answer=OPEN)
        self.assertEqual(self.code, 1, said)
        self.assertIn("`library:fast` may be slower than `library:slow`: speed-up 1.00x", said)
        self.assertIn("would decide: raise `runs`, `budget` or `margin`", said)

    def test_a_verdict_that_is_withheld_is_undecided(self) -> None:
        self.write_test("assert perfrun.compare(fast, slow).verdict == 'undecided'")
        said = self.run_pytest(answer=results("worse", "control_failed"))
        self.assertEqual(self.code, 0, said)
        self.assertIn("          control failed\n", said)
        said = self.run_pytest(answer=results("undecided", "too_few_blocks", low=None, high=None))
        self.assertIn("   0.50x  none      undecided  test_it.py::test_speed\n          fewer than 5 runs", said)

    def test_what_is_skipped_skips_and_fails_behind_the_gate(self) -> None:
        self.write_test("perfrun.compare('new.onnx', 'old.onnx')")
        skip = {"reason": "cuda:0: no driver", "remedy": "run doctor"}
        plan = {**PLAN, "skips": [skip]}
        for case in ({"plan": plan}, {"answer": unmeasured(skipped=skip)}):
            said = self.run_pytest("-rs", **case)
            self.assertEqual(self.code, 0, said)
            self.assertIn("1 skipped", said)
            self.assertIn("cuda:0: no driver (run doctor)", said)
            self.assertIn("       -  -         skipped  test_it.py::test_speed", said)
            self.run_pytest("--perfrun-gate", **case)
            self.assertEqual(self.code, 1)


class Errors(PluginTest):
    def test_what_perfrun_says_is_shown(self) -> None:
        self.refused("fast, slow", "perfrun ended with 1:", "unknown key `run`", plan="unknown key `run`")
        self.refused("fast, slow", "perfrun ended with 1:", "the disk is full", answer="the disk is full")
        self.refused("fast, slow", "results of format 4, not 3", answer={**results(), "format": 4})

    def test_a_side_that_fails(self) -> None:
        failures = [{"message": "ValueError: wrong", "remedy": "see the log"}]
        says = "PerfrunError: `library:fast` failed: ValueError: wrong (see the log)"
        self.refused("fast, slow", says, answer=unmeasured(failures=failures))
        self.refused("fast, slow", "perfrun measured nothing", answer=unmeasured())

    def test_what_cannot_be_compared(self) -> None:
        self.refused("'none.onnx', 'old.onnx'", f"there is no model `{self.folder.resolve()}/none.onnx`")
        self.refused("'sort a', fast", "the command `sort a` cannot be compared with the function `library:fast`")
        self.refused("3, fast", "3 is not a model, a command or a function")
        self.refused("fast, slow, require='slower'", """`require` is 'slower', and may only be "faster\"""")
        self.refused("fast, slow", "the keys make 4 cells of two", plan={**PLAN, "cells": [{}] * 4})
        for what in ("lambda: 1", "functools.partial(fast)", "library.Group().two", "functools.lru_cache(fast)"):
            self.refused(f"{what}, fast", "cannot be imported by name in a new process: give functions of a module")
        self.assertEqual([call["words"][0] for call in self.calls()], ["plan"], "nothing was measured")

    def test_the_mark_takes_names(self) -> None:
        self.write_test("perfrun.compare(fast, slow)", "@pytest.mark.perfrun('5%')")
        said = self.run_pytest()
        self.assertIn("""the mark `perfrun` has no name for '5%': write perfrun(margin="5%")""", said)

    def test_a_program_that_is_not_there(self) -> None:
        self.refused("fast, slow", "not found: PERFRUN is `/no/perfrun`", PERFRUN="/no/perfrun")
        sibling = pathlib.Path(sys.executable).with_name("perfrun")
        if not sibling.exists():
            self.refused("fast, slow", f"neither next to {sys.executable} nor on PATH", PERFRUN="", PATH="/no")
        (self.folder / "test_it.py").write_text("def test_other(): pass\n")
        self.run_pytest(PERFRUN="/no/perfrun")
        self.assertEqual(self.code, 0)

    def test_the_program_of_the_path(self) -> None:
        if pathlib.Path(sys.executable).with_name("perfrun").exists():
            self.skipTest("there is a perfrun next to this Python")
        self.write_test("perfrun.compare(fast, slow)")
        said = self.run_pytest(PERFRUN="", PATH=str(self.bin))
        self.assertEqual(self.code, 0, said)


class Selection(PluginTest):
    def setUp(self) -> None:
        super().setUp()
        self.write_test("perfrun.compare(fast, slow)\nperfrun.compare(slow, fast)")
        with open(self.folder / "test_it.py", "a") as file:
            file.write("\n@pytest.fixture\ndef speed(perfrun):\n    return perfrun\n\n")
            file.write("def test_below(speed):\n    pass\n\ndef test_other():\n    pass\n")

    def test_tests_with_the_fixture_have_the_mark(self) -> None:
        said = self.run_pytest("-m", "not perfrun")
        self.assertIn("1 passed, 2 deselected", said)
        self.assertNotIn("speed-up", said)
        self.assertIn("2 passed, 1 deselected", self.run_pytest("-m", "perfrun"))
        self.assertIn("@pytest.mark.perfrun(margin, runs, ...)", self.run_pytest("--markers"))

    def test_they_can_be_skipped(self) -> None:
        self.assertIn("1 passed, 2 skipped", self.run_pytest("--perfrun-skip", PERFRUN="/no/perfrun"))

    def test_every_comparison_has_a_row_and_a_folder(self) -> None:
        said = self.run_pytest("--junit-xml", "junit.xml")
        self.assertEqual(said.count("   0.50x  [0.46, 0.54]  equivalent  test_it.py::test_speed"), 2, said)
        folders = {pathlib.Path(call["words"][1]).parent.name[-2:] for call in self.calls()}
        self.assertEqual(folders, {"-1", "-2"})
        junit = (self.folder / "junit.xml").read_text()
        self.assertEqual(junit.count('name="perfrun" value="0.50x  [0.46, 0.54]  equivalent'), 2, junit)

    def test_progress_is_shown_where_output_is(self) -> None:
        self.assertIn("measuring", self.run_pytest("-s"))
        self.assertNotIn("measuring", self.run_pytest())

    @needs("xdist")
    def test_processes_of_xdist_send_their_rows(self) -> None:
        said = self.run_pytest("-p", "xdist.plugin", "-n", "2")
        self.assertEqual(self.code, 0, said)
        self.assertEqual(said.count("   0.50x  [0.46, 0.54]  equivalent  test_it.py::test_speed"), 2, said)


@needs("numpy")
class Adapter(WorkerTest):
    def test_what_a_function_returns_is_dropped(self) -> None:
        (self.folder / "odd.py").write_text("class Odd: pass\ndef odd():\n    return {Odd(): float('nan')}\n")
        worker = self.prepared(ADAPTER, self.cell(_source={"call": "odd:odd"}))
        self.assertEqual((worker.ready["non_finite"], worker.ready["output_shapes"]), ([], {}))
        samples, _ = worker.ask("slice", time=10**12, samples=3, iterations=2)
        self.assertEqual(len(samples["columns"]["duration_ns"]), 3)
        self.assertEqual(worker.ask("check")[-1]["output_hash"], worker.ready["output_hash"])

    def test_a_module_off_the_path_is_imported_from_its_file(self) -> None:
        outside = self.folder / "elsewhere"
        outside.mkdir()
        (outside / "off.py").write_text("def one():\n    return 1\n")
        source = {"call": "tests.off:one", "args": {"file": str(outside / "off.py")}}
        self.prepared(ADAPTER, self.cell(_source=source))
        self.refused({"call": "tests.off:one"}, "missing", "tests is not installed")
        (outside / "off.py").write_text("import nowhere\n")
        self.refused(source, "missing", "nowhere is not installed")

    def test_what_has_not_run_is_refused(self) -> None:
        text = "async def later():\n    pass\ndef parts():\n    yield 1\ndef needs(n):\n    pass\n"
        (self.folder / "lazy.py").write_text(text)
        self.refused({"call": "lazy:later"}, "output", "`lazy:later` returns a coroutine, which has not run")
        self.refused({"call": "lazy:parts"}, "output", "returns a generator")
        self.refused({"call": "lazy:needs"}, "operator", "missing 1 required positional argument: 'n'")

    def refused(self, source: dict[str, Any], kind: str, *words: str) -> None:
        parent = self.parent(ADAPTER)
        parent.ask("hello", protocol=4, oldest=4)
        self.failure(parent.ask("prepare", cell=self.cell(_source=source)), kind, *words)


if importlib.util.find_spec("pytest") is None:
    print("skipped: the pytest plugin was not tested, because pytest is not installed", file=sys.stderr)
