"""The fixture `perfrun`: tests that compare the speed of two models, two commands or two Python functions.

    def test_speed(perfrun):
        perfrun.compare("new.onnx", "old.onnx", margin="2%")

The program perfrun measures, by a specification that is written for each comparison. docs/pytest.md has more.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any, Callable, Optional, Union

import pytest

__tracebackhide__ = True  # Tracebacks end at the test's own line.

RESULTS_FORMAT = 3  # Of results.json; within a format, fields are only added.
VERDICTS = {"better": "faster", "worse": "slower", "equivalent": "equivalent"}
DECIDED = ("beyond_margin", "within_margin")  # Reasons of a verdict that nothing forbids.
REASONS = {
    "size_not_established": "different, but perhaps by less than the margin",
    "too_few_blocks": "fewer than 5 runs",
}
FUNCTION = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")
TRACING = ("COV_CORE_", "COVERAGE_PROCESS_")  # Variables by which coverage would trace what is measured.
PROPERTY = "perfrun"  # Of a test's report, and of its case in JUnit XML: the columns of one comparison.
SEPARATOR = "  "

Measurable = Union[str, "os.PathLike[str]", Sequence[str], Callable[[], Any]]


class PerfrunError(Exception):
    """perfrun was not found, refused to measure, or could not measure one of the two."""


@dataclasses.dataclass(frozen=True)
class Comparison:
    """What perfrun found."""

    verdict: str  # faster, slower, equivalent, undecided
    ratio: float  # The speed-up: time of the baseline over time of the new one.
    low: Optional[float]  # Its interval; `None` with fewer than 5 runs.
    high: Optional[float]
    confidence: float  # That of the interval, such as 0.99.
    margin: float  # Differences within it are of no interest: 0.02 is 2 %.
    reason: str  # Why the verdict is undecided, else empty.
    report: pathlib.Path  # report.html; report.md and results.json are next to it.

    def columns(self) -> list[str]:
        """As in the table at the end of the run."""
        ends = [_shown(end) for end in (self.low, self.high) if end is not None]
        return [_shown(self.ratio) + "x", f"[{', '.join(ends)}]" if ends else "none", self.verdict, self.reason]

    def explained(self) -> str:
        """The numbers, and what to do, of a comparison that fails a test."""
        ratio, interval, _, reason = self.columns()
        within = "no interval" if self.low is None else f"{100 * self.confidence:g} % interval {interval}"
        text = f"speed-up {ratio}, {within}, margin {100 * self.margin:g} %"
        if self.verdict == "slower":
            text += "; if that is intended, raise `margin`"
        if reason:
            text += f"; {reason}: raise `runs`, `budget` or `margin`, or use a quieter machine"
        return f"{text}; see {os.path.relpath(self.report)}"


Found = Union[Comparison, str]  # Or why a side was skipped.


def _shown(ratio: float) -> str:
    return f"{ratio:.2f}" if ratio >= 0.1 else f"{ratio:.2g}"


# --- What is compared -----------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Side:
    """One of the two: `model`, `command` or `function`, what messages call it, and its entry in the specification."""

    kind: str
    label: str
    entry: dict[str, Any]


def side_of(what: Measurable) -> Side:
    """Raises `PerfrunError` for a model that is not there, and for what is no model, command or function."""
    if isinstance(what, os.PathLike):
        path = os.fspath(what)
        return _model(path) if path.endswith(".onnx") else Side("command", path, {"run": [os.path.abspath(path)]})
    if isinstance(what, str):
        if what.endswith(".onnx") and (os.path.isfile(what) or len(what.split()) == 1):
            return _model(what)
        if FUNCTION.fullmatch(what):
            return Side("function", what, {"python": what, "takes": {}})
        return Side("command", what, {"run": what})
    if isinstance(what, (list, tuple)):
        words = [os.fspath(word) for word in what]
        return Side("command", " ".join(words), {"run": words})
    if callable(what):
        return _function(what)
    raise PerfrunError(f"{what!r} is not a model, a command or a function")


def _model(path: str) -> Side:
    if not os.path.isfile(path):
        raise PerfrunError(f"there is no model `{os.path.abspath(path)}`")
    return Side("model", path, {"path": os.path.abspath(path)})


def _function(what: Callable[[], Any]) -> Side:
    module, name = getattr(what, "__module__", None) or "", getattr(what, "__qualname__", None) or ""
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    if found is None or found != what:
        text = "give functions of a module, not lambdas, local functions, methods of objects or partials"
        raise PerfrunError(f"{what!r} cannot be imported by name in a new process: {text}")
    file = getattr(sys.modules[module], "__file__", None)
    args = {"args": {"file": os.path.abspath(file)}} if file else {}
    return Side("function", f"{module}:{name}", {"python": f"{module}:{name}", "takes": {}, **args})


# --- Measuring ------------------------------------------------------------------------------------------------------


def specification(sides: Mapping[str, Side], keys: Mapping[str, Any]) -> dict[str, Any]:
    """`keys`: of the user, and `margin`."""
    spec = {key: value for key, value in keys.items() if key != "margin"}
    margin = {"margin": keys["margin"]} if "margin" in keys else {}
    spec["compare"] = {"baseline": {"model": "baseline"}, **margin}
    kind = sides["new"].kind
    entries = [{"name": name, **sides[name].entry} for name in ("baseline", "new")]
    spec["commands" if kind == "command" else "models"] = entries
    if kind == "command":
        spec["cwd"] = os.getcwd()
    if kind == "function":
        spec["runtimes"] = [{"name": "python", "adapter": "pytest_adapter.py", "python": sys.executable}]
    return spec


def program() -> str:
    """The program perfrun: that of PERFRUN, else the one next to this Python, else the one of PATH."""
    named = os.environ.get("PERFRUN")
    sibling = os.path.join(os.path.dirname(sys.executable), "perfrun")
    found = shutil.which(named) if named else shutil.which(sibling) or shutil.which("perfrun")
    if not found:
        where = f"PERFRUN is `{named}`" if named else f"it is neither next to {sys.executable} nor on PATH"
        raise PerfrunError(f"the program perfrun was not found: {where}")
    return os.path.abspath(found)


def measure(sides: Mapping[str, Side], keys: Mapping[str, Any], folder: pathlib.Path, is_shown: bool) -> Found:
    """A comparison, or why a side was skipped. The folder is made anew; specification, record and report stay in it.

    Raises `PerfrunError` where perfrun refuses the specification, or where a side fails.
    """
    kind = sides["new"].kind
    path, report = folder / "spec.yaml", folder / "report"
    shutil.rmtree(folder, ignore_errors=True)
    (folder / ".perfrun").mkdir(parents=True)  # So that the record stays here.
    path.write_text(json.dumps(specification(sides, keys), indent=2), encoding="utf-8")  # JSON is YAML.
    environment = {key: value for key, value in os.environ.items() if not key.startswith(TRACING)}
    if kind == "function":
        shutil.copy(pathlib.Path(__file__).with_name("pytest_adapter.py"), folder)
        # Functions are imported from where pytest imports them.
        environment["PYTHONPATH"] = os.pathsep.join(os.path.abspath(folder) for folder in sys.path)
    plan = _ask([program(), "plan", str(path), "--json"], environment)
    if len(plan["cells"]) != len(sides):
        raise PerfrunError(f"the keys make {len(plan['cells'])} cells of two: name one input, variant and device")
    if plan["skips"]:
        return _reason(plan["skips"][0])
    results = _ask([program(), "run", str(path), "--json", "--output", str(report)], environment, is_shown)
    if results.get("format") != RESULTS_FORMAT:
        raise PerfrunError(f"perfrun writes results of format {results.get('format')}, not {RESULTS_FORMAT}")
    rows = [row for row in results.get("comparisons") or [] if row["metric"] == "latency"]
    return _comparison(rows[0], report / "report.html") if rows else _reason_of_none(results["cells"], sides)


def _ask(command: Sequence[str], environment: Mapping[str, str], is_shown: bool = False) -> dict[str, Any]:
    """The JSON object that perfrun prints. `is_shown`: what it says meanwhile is shown."""
    with tempfile.TemporaryFile() as printed:
        options: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": printed, "stderr": subprocess.PIPE}
        with subprocess.Popen(command, env=environment, text=True, errors="replace", **options) as process:
            said = []
            try:
                for line in process.stderr or ():
                    said.append(line)
                    if is_shown:
                        sys.stderr.write(line)
            except BaseException:
                process.terminate()
                raise
        printed.seek(0)
        try:
            return dict(json.load(printed))
        except (ValueError, TypeError):
            text = "".join(said).strip() or "it said nothing"
            raise PerfrunError(f"{command[0]} ended with {process.returncode}:\n{text}") from None


def _comparison(row: Mapping[str, Any], report: pathlib.Path) -> Comparison:
    verdict = VERDICTS.get(row["verdict"]) if row["reason"] in DECIDED else None
    reason = "" if verdict else REASONS.get(row["reason"], row["reason"].replace("_", " "))
    more = row.get("more_blocks")
    if reason and more:
        reason += f"; about {more} more run{'s' if more > 1 else ''} would decide"
    interval = row.get("low"), row.get("high"), row["confidence"]
    return Comparison(verdict or "undecided", row["ratio"], *interval, row["margin"], reason, report)


def _reason_of_none(cells: Sequence[Mapping[str, Any]], sides: Mapping[str, Side]) -> str:
    """Why a side was skipped. Raises `PerfrunError` where one failed."""
    for cell in cells:
        for failure in cell.get("failures") or []:
            raise PerfrunError(f"`{sides[cell['model']].label}` failed: {_reason(failure)}")
    for cell in cells:
        if cell.get("skipped"):
            return _reason(cell["skipped"])
    raise PerfrunError("perfrun measured nothing")


def _reason(of: Mapping[str, Any]) -> str:
    text: str = of.get("message") or of["reason"]
    return f"{text} ({of['remedy']})" if of.get("remedy") else text


# --- The fixture ----------------------------------------------------------------------------------------------------


class Perfrun:
    """The value of the fixture `perfrun`."""

    def __init__(self, request: pytest.FixtureRequest):
        self._config, self._item = request.config, request.node
        self._request, self._count = request, 0

    def compare(
        self,
        new: Measurable,
        baseline: Measurable,
        *,
        margin: Union[str, float, None] = None,
        require: Optional[str] = None,
        **keys: Any,
    ) -> Comparison:
        """Measures both, and fails if `new` is slower than `baseline` by more than the margin.

        `require="faster"` fails unless it is faster. `keys` are those of a specification: `runs`, `budget`, `inputs`.
        """
        if require not in (None, "faster"):
            raise PerfrunError(f'`require` is {require!r}, and may only be "faster"')
        sides = {"new": side_of(new), "baseline": side_of(baseline)}
        names = [f"`{side.label}`" for side in sides.values()]
        if sides["new"].kind != sides["baseline"].kind:
            kinds = [f"the {side.kind} {name}" for side, name in zip(sides.values(), names)]
            raise PerfrunError(f"{kinds[0]} cannot be compared with {kinds[1]}")
        keys = self._keys(keys if margin is None else {**keys, "margin": margin})
        found = measure(sides, keys, self._folder(), self._config.getoption("capture", None) == "no")
        is_gate = self._config.getoption("perfrun_gate")
        if isinstance(found, str):
            self._record(["-", "-", "skipped", found])
            if is_gate:
                raise AssertionError(f"not measured: {found}")
            pytest.skip(found)
        self._record(found.columns())
        complaint = None
        if found.verdict == "slower":
            complaint = "is slower than"
        elif require and found.verdict != "faster":
            complaint = "is not faster than" if found.verdict == "equivalent" else "is not known to be faster than"
        elif is_gate and found.verdict == "undecided":
            complaint = "may be slower than"
        if complaint:
            raise AssertionError(f"{names[0]} {complaint} {names[1]}: {found.explained()}")
        return found

    def _keys(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The command line's, else the call's, else those of the closest mark."""
        keys: dict[str, Any] = {"name": _plain(self._item.name)}
        for mark in reversed(list(self._item.iter_markers("perfrun"))):
            if mark.args:
                raise PerfrunError(f'the mark `perfrun` has no name for {mark.args[0]!r}: write perfrun(margin="5%")')
            keys.update(mark.kwargs)
        options = {key: self._config.getoption(f"perfrun_{key}") for key in ("runs", "budget")}
        return {**keys, **given, **{key: value for key, value in options.items() if value is not None}}

    def _folder(self) -> pathlib.Path:
        """Of this comparison: below pytest's cache, the same in every run, else a temporary one."""
        self._count += 1
        digest = hashlib.sha256(self._item.nodeid.encode()).hexdigest()[:8]
        cache = getattr(self._config, "cache", None)
        parent = cache.mkdir("perfrun") if cache else self._request.getfixturevalue("tmp_path")
        return pathlib.Path(parent) / f"{_plain(self._item.name)}-{digest}-{self._count}"

    def _record(self, columns: Sequence[str]) -> None:
        self._item.user_properties.append((PROPERTY, SEPARATOR.join(columns)))


def _plain(name: str) -> str:
    """At most 64 letters, digits, `.`, `_` and `-`."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name)[:64].strip("-._") or "test"


# --- Hooks of pytest ------------------------------------------------------------------------------------------------


@pytest.fixture
def perfrun(request: pytest.FixtureRequest) -> Perfrun:
    """`perfrun.compare(new, baseline)` compares the speed of two models, commands or functions."""
    if request.config.getoption("perfrun_skip"):
        pytest.skip("--perfrun-skip")
    return Perfrun(request)


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("perfrun", "comparisons of speed by perfrun")
    group.addoption("--perfrun-skip", action="store_true", help="skip tests that use the fixture `perfrun`")
    group.addoption("--perfrun-gate", action="store_true", help="fail tests that are undecided or not measured")
    group.addoption("--perfrun-runs", type=int, metavar="N", help="runs of each side (default: 8 to 32, as needed)")
    group.addoption("--perfrun-budget", metavar="TIME", help="time limit of each comparison, such as 30s")


def pytest_configure(config: pytest.Config) -> None:
    text = "perfrun(margin, runs, ...): defaults of `perfrun.compare`; every test with the fixture `perfrun` has it"
    config.addinivalue_line("markers", text)


def pytest_itemcollected(item: pytest.Item) -> None:
    if "perfrun" in getattr(item, "fixturenames", ()):
        item.add_marker("perfrun")
        if item.config.getoption("perfrun_skip"):  # Before other fixtures are set up.
            item.add_marker(pytest.mark.skip(reason="--perfrun-skip"))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    comparisons_by_test: dict[str, list[list[str]]] = {}
    for report in (report for reports in terminalreporter.stats.values() for report in reports):
        values = [value for name, value in getattr(report, "user_properties", ()) if name == PROPERTY]
        if values:
            comparisons_by_test[report.nodeid] = [value.split(SEPARATOR, 3) for value in values]
    if not comparisons_by_test:
        return
    rows = [(*columns, test) for test, comparisons in comparisons_by_test.items() for columns in comparisons]
    table = [("speed-up", "interval", "verdict", "", "test"), *rows]
    widths = [max(len(row[at]) for row in table) for at in range(3)]
    terminalreporter.section("perfrun")
    for ratio, interval, verdict, reason, test in table:
        cells = [ratio.rjust(widths[0]), interval.ljust(widths[1]), verdict.ljust(widths[2]), test]
        terminalreporter.write_line(SEPARATOR.join(cells))
        if reason:
            terminalreporter.write_line(" " * widths[0] + SEPARATOR + reason)
