"""Exports of a results.json to MLflow and W&B: the rules with fake clients, then the real clients."""

import collections
import contextlib
import copy
import glob
import importlib.util
import io
import json
import logging
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import types
import unittest
from typing import Any, Optional
from unittest import mock

PACKAGE = pathlib.Path(__file__).resolve().parent.parent
REPORTS = PACKAGE.parent.parent / "reports"
sys.path.insert(0, str(PACKAGE))

from perfrun import track  # noqa: E402


def cell(variant: str, status: str = "measured", **more: Any) -> dict[str, Any]:
    metrics = {
        "latency_ns": {"value": 2000, "low": 1900, "high": 2100, "n": 12},
        "latency_p99_ns": {"value": 3000, "n": 12, "supported": False},
        "model_size_bytes": {"value": 77, "n": 1},
    }
    names = {"model": "net", "input": "b1", "variant": variant, "device": "cpu", "runtime": "-"}
    found = {"id": f"id-{variant}", **names, "status": status, "threads": 2, "batch": 1, "iterations": 1}
    return {**found, "sha256": f"sha-{variant}", **({"metrics": metrics} if status == "measured" else {}), **more}


def row(variant: str, metric: str = "latency", reason: str = "beyond_margin", **more: Any) -> dict[str, Any]:
    names = {"cell": f"id-{variant}", "baseline": "id-fp32", "metric": metric}
    return {**names, "ratio": 1.5, "low": 1.4, "high": 1.6, "verdict": "better", "reason": reason, **more}


def results() -> dict[str, Any]:
    """One cell of every kind."""
    context = {"commit": "79e77fe5", "dirty": ["a.onnx"], "perfrun": "0.1.0", "smt": False, "peaks": [{"size": 1}]}
    files = [{"model": "net", "variant": "int8", "sha256": "sha-int8", "origin": {"recipe": {"to": "int8_static"}}}]
    few = {"latency_ns": {"value": 5, "low": 4, "high": 6, "n": 3}}
    failure = {"kind": "killed", "message": "signal 6", "runs": 2}
    return {
        "format": 3,
        "experiment": "nets",
        "description": "Is int8 faster?",
        "record": "20261126T051537Z-b85056e3",
        "measured": {"complete": True, "sessions": ["2026-11-26T05:15:37Z"], "commands": ["perfrun nets.yaml"]},
        "provenance": {
            "machine": "amd-epyc-2c",
            "subject": {"files": files},
            "frame": {"cpu": "AMD EPYC"},
            "context": context,
        },
        "rules": {"baseline": "fp32"},
        "cells": [
            cell("fp32"),
            cell("int8", codes={"W_PRESSURE": {"severity": "warn"}}),
            cell("nan", codes={"W_OUTPUT_NONFINITE": {"severity": "invalid"}}),
            cell("differs", fidelity={"misses": ["cosine 0.9"]}),
            cell("few", "partial", metrics=few, failures=[failure]),
            cell("broken", "failed", failures=[failure], metrics={"latency_ns": {"value": 1, "n": 1}}),
            cell("cuda", "skipped", skipped={"code": "device", "reason": "no driver"}),
            cell("late", "not_run"),
            cell("load", metrics={"own.tokens[/s].higher": {"value": 7, "n": 5}}, load={"queries": {"clients": 4}}),
        ],
        "comparisons": [
            row("int8"),
            row("nan", reason="not_finite"),
            row("differs"),
            row("few", reason="many_failures", low=None, high=None, verdict="undecided"),
            row("int8", "latency.p99", "not_enough_data", verdict="undecided"),
            row("int8", "peak_rss", "control_failed", verdict="undecided"),
            row("load", "peak_rss", "within_margin", verdict="equivalent"),
            row("gone"),
        ],
        "controls": [{"cell": "id-fp32", "outcome": "passed"}],
        "detectable_effect": {"grade": "B", "here": 0.03},
    }


class Failed(Exception):
    """What a client raises."""


class FakeMlflow(types.ModuleType):
    """Stores what is logged; raises `fails` at the third cell."""

    Entry = collections.namedtuple("Entry", "key value timestamp step", defaults=(None, None))

    def __init__(self) -> None:
        super().__init__("mlflow")
        self.__file__ = "mlflow.py"
        self.exceptions = types.SimpleNamespace(MlflowException=Failed)
        self.entities = types.SimpleNamespace(Metric=self.Entry, Param=self.Entry)
        self.experiments: dict[str, Any] = {}
        self.runs: list[Any] = []
        self.fails: Optional[BaseException] = None
        self.uri: Optional[str] = None

    def get_tracking_uri(self) -> str:
        return "https://user:secret@tracking.example"

    def MlflowClient(self, tracking_uri: str) -> "FakeMlflow":
        self.uri = tracking_uri
        return self

    def get_experiment_by_name(self, name: str) -> Any:
        return self.experiments.get(name)

    def create_experiment(self, name: str, artifact_location: Optional[str]) -> str:
        self.experiments[name] = types.SimpleNamespace(experiment_id=name, lifecycle_stage="active")
        return name

    def search_runs(self, experiments: list, filter_string: str, max_results: int) -> list:
        def value(run: Any, name: str) -> Any:
            return run.info.status if name == "attributes.status" else run.data.tags.get(name[6:-1])

        terms = [term.split(" = ") for term in filter_string.split(" and ")]
        of = [run for run in self.runs if run.experiment in experiments]
        return [run for run in of if all(value(run, name) == word.strip("'") for name, word in terms)][:max_results]

    def create_run(self, experiment: str, start_time: int, tags: dict, run_name: str) -> Any:
        info = types.SimpleNamespace(run_id=f"r{len(self.runs)}", status="RUNNING", start=start_time, name=run_name)
        data = types.SimpleNamespace(tags=tags, metrics={}, params={}, files=[])
        self.runs.append(types.SimpleNamespace(experiment=experiment, info=info, data=data))
        return self.runs[-1]

    def log_batch(self, run: str, metrics: list, params: list) -> None:
        if self.fails and len(self.runs) % 4 == 0:
            raise self.fails
        data = self.runs[int(run[1:])].data
        data.metrics.update({entry.key: entry.value for entry in metrics})
        data.params.update({entry.key: entry.value for entry in params})

    def log_artifact(self, run: str, path: str) -> None:
        self.runs[int(run[1:])].data.files.append(os.path.basename(path))

    def update_run(self, run: str, status: str) -> None:
        self.runs[int(run[1:])].info.status = status


class FakeWandb(types.ModuleType):
    """Stores what is logged; raises at `log` if `fails` is set."""

    def __init__(self) -> None:
        super().__init__("wandb")
        self.__file__ = "wandb.py"
        self.Error = Failed
        self.fails = False
        self.started: dict[str, Any] = {}
        self.logged: dict[str, Any] = {}
        self.summary: dict[str, Any] = {}
        self.files: list[str] = []
        self.code: Optional[int] = None

    def init(self, **settings: Any) -> "FakeWandb":
        self.started = settings
        self.id, self.project, self.url = settings["id"], settings["project"], "https://wandb.example/run"
        self.dir = "/x y/wandb/offline-run-1/files"
        return self

    def Table(self, columns: list, data: list) -> Any:
        return [dict(zip(columns, values)) for values in data]

    def Html(self, file: Any, inject: bool) -> str:
        return file.read()

    def Artifact(self, name: str, type: str) -> Any:
        return types.SimpleNamespace(add_file=lambda path: self.files.append(os.path.basename(path)))

    def log(self, logged: dict) -> None:
        if self.fails:
            raise Failed("no such project")
        self.logged = logged

    def log_artifact(self, artifact: Any) -> None:
        pass

    def finish(self, exit_code: int) -> None:
        self.code = exit_code


class TrackTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "report.html").write_text("<p>µ</p>", encoding="utf-8")
        (self.folder / "report.md").write_text("report")
        (self.folder / "speedup.svg").write_text("<svg/>")
        (self.folder / "notes.txt").write_text("not the report's")
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("MLFLOW", "WANDB"))}
        patched = mock.patch.dict(os.environ, clean, clear=True)
        patched.start()
        self.addCleanup(patched.stop)
        self.addCleanup(logging.disable, logging.NOTSET)

    def write(self, found: Any) -> str:
        path = self.folder / "results.json"
        path.write_text(found if isinstance(found, str) else json.dumps(found))
        return str(path)

    def main(self, client: str, *more: str, module: Any = None, found: Any = None) -> tuple[int, list[str], list[str]]:
        """Exit code and lines of an export with a client that is given."""
        path = self.write(results() if found is None else found)
        out, err = io.StringIO(), io.StringIO()
        with mock.patch.dict(sys.modules, {client: module} if module else {}):
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                code = track.main([client, path, *more])
        return code, out.getvalue().splitlines(), err.getvalue().splitlines()


class Reading(TrackTest):
    def cells(self, found: Any = None) -> dict[str, track.Cell]:
        return {read.axes["variant"]: read for read in track.read(self.write(found or results())).cells}

    def test_numbers_are_those_that_reports_show(self) -> None:
        cells = self.cells()
        latency = {"latency_ns": 2000, "latency_ns.low": 1900, "latency_ns.high": 2100, "model_size_bytes": 77}
        speedup = {"speedup": 1.5, "speedup.low": 1.4, "speedup.high": 1.6}
        self.assertEqual(cells["fp32"].metrics, latency)
        rest = {
            f"ratio.{name}{end}": speedup["speedup" + end]
            for name in ("latency.p99", "peak_rss")
            for end in ("", ".low", ".high")
        }
        self.assertEqual(cells["int8"].metrics, {**latency, **speedup, **rest})
        self.assertEqual(cells["differs"].metrics, {**latency, **speedup})
        self.assertEqual(cells["few"].metrics, {"latency_ns": 5, "speedup": 1.5})
        for variant in ("nan", "broken", "cuda", "late"):
            self.assertEqual(cells[variant].metrics, {}, variant)
        self.assertEqual(cells["int8"].facts["left_out"], "latency_p99_ns")
        self.assertEqual(cells["nan"].facts["left_out"], "latency_ns latency_p99_ns model_size_bytes")

    def test_verdicts_stand_beside_why_they_do_not_hold(self) -> None:
        cells = self.cells()
        facts = cells["int8"].facts
        self.assertEqual(
            (facts["verdict"], facts["compared_by"], facts["baseline"]), ("better", "latency", "net/b1/fp32/cpu")
        )
        self.assertEqual((facts["verdict.latency.p99"], facts["verdict.peak_rss"]), ("undecided", "undecided"))
        withheld = {name: value for name, value in facts.items() if name.startswith("withheld")}
        self.assertEqual(withheld, {"withheld.peak_rss": "control_failed"})
        self.assertEqual(cells["differs"].facts["withheld"], "outputs_differ")
        self.assertEqual(cells["few"].facts["withheld"], "many_failures")
        self.assertEqual(cells["nan"].facts["withheld"], "not_finite")
        self.assertNotIn("verdict", cells["fp32"].facts)
        self.assertNotIn("verdict", cells["load"].facts)
        self.assertEqual(cells["load"].facts["verdict.peak_rss"], "equivalent")

    def test_reasons_and_axes(self) -> None:
        cells = self.cells()
        self.assertEqual(cells["cuda"].facts["reason"], "no driver")
        self.assertEqual(cells["broken"].facts["reason"], "killed: signal 6")
        names = {"model": "net", "input": "b1", "variant": "int8", "device": "cpu", "precision": "int8_static"}
        known = {key: value for key, value in cells["int8"].axes.items() if value is not None}
        self.assertEqual(known, {**names, "threads": 2, "batch": 1, "iterations": 1})
        self.assertIsNone(cells["fp32"].axes["precision"])
        self.assertEqual(cells["load"].axes["load"], {"clients": 4})

    def test_names_that_mlflow_takes(self) -> None:
        self.assertEqual(list(self.cells()["load"].metrics)[0], "own.tokens_per_s.higher")
        metrics: dict[str, float] = {}
        for name in ("own.first[ms].lower", "own.Größe[%]"):
            track._put(metrics, name, 1)
        self.assertEqual(list(metrics), ["own.first_ms.lower", "own.Gr__e__"])

    def test_facts_of_the_record(self) -> None:
        record = track.read(self.write(results()))
        self.assertEqual((record.started, record.metrics), (1795670137000, {"detectable_effect": 0.03}))
        expected = {
            "machine": "amd-epyc-2c",
            "commit": "79e77fe5",
            "dirty": "a.onnx",
            "grade": "B",
            "controls": "passed",
            "complete": "true",
        }
        self.assertEqual({**record.facts, **expected}, record.facts)
        self.assertNotIn("quick", record.facts)

    def test_what_is_not_to_be_read(self) -> None:
        def changed(change: Any) -> dict[str, Any]:
            found = copy.deepcopy(results())
            change(found)
            return found

        cases = [
            ("[1", "is not JSON"),
            ("[" * 100_000, "is not JSON"),
            ('{"format": 3, "x": NaN}', "is not JSON: NaN is not a number"),
            ("[]", "is not a results.json"),
            ('{"format": true}', "is not a results.json"),
            ('{"format": 1}', "is not a results.json"),
            ('{"format": 4}', "has format 4; formats up to 3 are known here"),
            ('{"format": 3}', "is damaged: KeyError: 'experiment'"),
            (changed(lambda found: found.update(experiment="a' or '1'='1")), "is not a name"),
            (changed(lambda found: found.update(record=7)), "is damaged"),
            (changed(lambda found: found.update(cells={"a": 1})), "is damaged"),
            (changed(lambda found: found["measured"].update(sessions=[])), "is damaged"),
            (changed(lambda found: found["cells"][0].pop("metrics")), "is damaged: KeyError: 'metrics'"),
            (changed(lambda found: found["cells"][0]["metrics"]["latency_ns"].update(value="x")), "is damaged"),
        ]
        for found, words in cases:
            code, out, err = self.main("mlflow", module=FakeMlflow(), found=found)
            self.assertEqual((code, out, len(err)), (2, [], 2), words)
            self.assertIn(words, err[0])
            self.assertTrue(err[1].startswith("help: "), err)

    def test_missing_files(self) -> None:
        code, _, err = self.main("mlflow", "--report", str(self.folder / "none"), module=FakeMlflow())
        self.assertEqual((code, err[1]), (2, "help: name the folder of the report"))
        with self.assertRaisesRegex(track.Problem, "No such file"):
            track.read(str(self.folder / "none.json"))

    def test_the_reports_of_this_repository(self) -> None:
        paths = sorted(REPORTS.glob("*/results.json"))
        if not paths:
            self.skipTest("not in a checkout")
        for path in paths:
            found, record = json.loads(path.read_text()), track.read(str(path))
            self.assertEqual(len(record.cells), len(found["cells"]))
            for read, stored in zip(record.cells, found["cells"]):
                shown = {
                    name: of for name, of in (stored.get("metrics") or {}).items() if of.get("supported") is not False
                }
                self.assertEqual(
                    {name: read.metrics.get(name) for name in shown}, {name: of["value"] for name, of in shown.items()}
                )


class Mlflow(TrackTest):
    def test_a_run_for_the_record_and_one_for_each_cell(self) -> None:
        mlflow = FakeMlflow()
        code, out, err = self.main("mlflow", module=mlflow)
        self.assertEqual((code, err), (0, []))
        self.assertEqual(out, ["MLflow: experiment nets, run r0 and 9 runs below it", "at https://tracking.example"])
        parent, cells = mlflow.runs[0], mlflow.runs[1:]
        self.assertEqual((parent.info.name, parent.info.status), ("20261126T051537Z-b85056e3", "FINISHED"))
        self.assertEqual(parent.data.files, ["results.json", "report.html", "report.md", "speedup.svg"])
        self.assertEqual(
            parent.data.params, {"cpu": "AMD EPYC", "commit": "79e77fe5", "perfrun": "0.1.0", "smt": "false"}
        )
        self.assertEqual(parent.data.tags["mlflow.note.content"], "Is int8 faster?")
        self.assertEqual({run.data.tags["mlflow.parentRunId"] for run in cells}, {"r0"})
        self.assertEqual({run.info.start for run in mlflow.runs}, {1795670137000})
        statuses = {run.data.params["variant"]: run.info.status for run in cells}
        unfinished = {name: status for name, status in statuses.items() if status != "FINISHED"}
        self.assertEqual(unfinished, {"broken": "FAILED", "cuda": "KILLED", "late": "KILLED"})
        int8 = cells[1].data
        self.assertEqual((int8.metrics["speedup"], int8.params["threads"]), (1.5, "2"))
        shared = {
            "record": "20261126T051537Z-b85056e3",
            "machine": "amd-epyc-2c",
            "commit": "79e77fe5",
            "dirty": "a.onnx",
        }
        tags = {
            **shared,
            "kind": "cell",
            "cell": "id-int8",
            "status": "measured",
            "verdict": "better",
            "codes": "W_PRESSURE",
        }
        self.assertEqual({name: int8.tags.get("perfrun." + name) for name in tags}, tags)
        self.assertEqual(int8.tags["mlflow.source.git.commit"], "79e77fe5")
        self.assertEqual(cells[8].data.params["load"], '{"clients": 4}')

    def test_the_same_record_twice(self) -> None:
        mlflow = FakeMlflow()
        self.main("mlflow", module=mlflow)
        code, out, _ = self.main("mlflow", module=mlflow)
        there = "MLflow: 20261126T051537Z-b85056e3 is there already"
        self.assertEqual((code, out), (0, [there + ": run r0", "Nothing was logged. --again logs it once more."]))
        _, out, _ = self.main("mlflow", module=mlflow, found={**results(), "description": "Another"})
        self.assertEqual(out[0], there + ", from another results.json: run r0")
        self.assertEqual(len(mlflow.runs), 10)
        self.main("mlflow", "--again", module=mlflow)
        self.main("mlflow", "--project", "other", module=mlflow)
        self.assertEqual((len(mlflow.runs), mlflow.runs[20].experiment), (30, "other"))

    def test_an_export_that_failed_does_not_count(self) -> None:
        mlflow = FakeMlflow()
        mlflow.fails = Failed("no\nspace")
        code, out, err = self.main("mlflow", module=mlflow)
        help = "help: check MLFLOW_TRACKING_URI, or name a --folder"
        self.assertEqual((code, out, err), (2, [], ["MLflow: no space", help]))
        statuses = ["FAILED", "FINISHED", "FINISHED", "FAILED"]
        self.assertEqual([run.info.status for run in mlflow.runs], statuses)
        mlflow.fails = KeyboardInterrupt()
        self.assertEqual(self.main("mlflow", module=mlflow), (130, [], []))
        self.assertEqual([run.info.status for run in mlflow.runs], statuses * 2)
        mlflow.fails = None
        self.assertEqual(self.main("mlflow", module=mlflow)[0], 0)
        self.assertEqual((len(mlflow.runs), mlflow.runs[8].info.status), (18, "FINISHED"))

    def test_a_deleted_experiment(self) -> None:
        mlflow = FakeMlflow()
        mlflow.create_experiment("nets", None)
        mlflow.experiments["nets"].lifecycle_stage = "deleted"
        code, _, err = self.main("mlflow", module=mlflow)
        self.assertEqual((code, err[0]), (2, "MLflow's experiment nets is deleted"))

    def test_a_folder(self) -> None:
        mlflow = FakeMlflow()
        _, out, _ = self.main("mlflow", "--folder", str(self.folder / "a b"), module=mlflow)
        self.assertEqual(mlflow.uri, f"sqlite:///{self.folder}/a b/mlflow.db")
        self.assertEqual(out[1], f"Show them: mlflow ui --backend-store-uri '{mlflow.uri}'")


class Wandb(TrackTest):
    def test_a_run_with_a_table(self) -> None:
        wandb = FakeWandb()
        code, out, err = self.main("wandb", module=wandb)
        self.assertEqual((code, err, wandb.code), (0, [], 0))
        upload = "Upload it: wandb sync '/x y/wandb/offline-run-1'"
        self.assertEqual(out, ["W&B: project nets, run 20261126T051537Z-b85056e3, 9 cells", upload])
        started = {key: wandb.started[key] for key in ("project", "id", "mode", "dir")}
        self.assertEqual(
            started, {"project": "nets", "id": "20261126T051537Z-b85056e3", "mode": "offline", "dir": None}
        )
        self.assertEqual(wandb.started["config"]["provenance"], results()["provenance"])
        self.assertEqual(wandb.started["config"]["commit"], "79e77fe5")
        self.assertEqual(wandb.logged["report"], "<p>µ</p>")
        self.assertEqual(wandb.files, ["results.json", "report.html", "report.md", "speedup.svg"])
        self.assertEqual((os.environ["WANDB_HOST"], os.environ["WANDB__DISABLE_META"]), ("amd-epyc-2c", "true"))
        rows = {row["variant"]: row for row in wandb.logged["cells"]}
        self.assertEqual(
            (rows["int8"]["speedup.low"], rows["int8"]["threads"], rows["int8"]["verdict"]), (1.4, 2, "better")
        )
        self.assertEqual((rows["cuda"]["latency_ns"], rows["cuda"]["reason"]), (None, "no driver"))
        self.assertEqual(rows["load"]["load"], '{"clients": 4}')
        self.assertEqual(len({tuple(row) for row in wandb.logged["cells"]}), 1)
        self.assertEqual(wandb.summary["latency_ns/net/b1/fp32/cpu"], 2000)
        self.assertEqual(wandb.summary["speedup.high/net/b1/int8/cpu"], 1.6)
        self.assertEqual([name for name in wandb.summary if "cuda" in name or "nan" in name], [])

    def test_modes(self) -> None:
        for mode in ("disabled", "nonsense"):
            os.environ["WANDB_MODE"] = mode
            code, _, err = self.main("wandb", module=FakeWandb())
            self.assertEqual((code, err[0]), (2, f"WANDB_MODE is {mode}"))
        os.environ["WANDB_MODE"] = "online"
        _, out, _ = self.main("wandb", "--project", "other", module=FakeWandb())
        self.assertEqual((out[0].split(",")[0], out[1]), ("W&B: project other", "at https://wandb.example/run"))

    def test_an_error_of_the_client(self) -> None:
        wandb = FakeWandb()
        wandb.fails = True
        code, _, err = self.main("wandb", "--folder", str(self.folder / "w"), module=wandb)
        self.assertEqual((code, err[0], wandb.code), (2, "W&B: no such project", 1))


class Clients(TrackTest):
    """In processes of their own, with the folder first on the path."""

    def start(self, client: str, *more: str) -> "subprocess.CompletedProcess[str]":
        paths = os.pathsep.join([str(self.folder / "first"), str(PACKAGE)])
        env = {**os.environ, "PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1", "HOME": str(self.folder)}
        command = [sys.executable, "-m", "perfrun.track", client, self.write(results()), *more]
        return subprocess.run(
            command, env=env, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def test_a_client_that_is_missing_or_broken(self) -> None:
        (self.folder / "first").mkdir()
        causes = {
            "raise ModuleNotFoundError('gone', name='{}')": "{} is not installed in " + sys.executable,
            "import not_there": "{} cannot be imported in " + sys.executable + ": ModuleNotFoundError: No module named",
            "raise TypeError('no such descriptor')": "{} cannot be imported in "
            + sys.executable
            + ": TypeError: no such",
        }
        for client in ("mlflow", "wandb"):
            for cause, words in causes.items():
                (self.folder / "first" / f"{client}.py").write_text(cause.format(client))
                done = self.start(client)
                message, help = done.stderr.splitlines()
                self.assertEqual((done.returncode, done.stdout), (2, ""))
                self.assertTrue(message.startswith(words.format(client)), message)
                self.assertEqual(help, f"help: {sys.executable} -m pip install {client}")

    def test_a_folder_is_no_client(self) -> None:
        folder = types.ModuleType("wandb")
        code, _, err = self.main("wandb", module=folder)
        self.assertEqual((code, err[0]), (2, f"wandb is not installed in {sys.executable}"))

    def need(self, client: str) -> None:
        if importlib.util.find_spec(client) is None:
            print(f"skipped: {client} is not installed: exports to it are not read back", file=sys.stderr)
            self.skipTest(f"{client} is not installed")

    def test_mlflow_reads_back_what_was_logged(self) -> None:
        self.need("mlflow")
        for _ in range(2):
            done = self.start("mlflow", "--folder", "store")
            self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("is there already", done.stdout)
        script = (
            "import json, logging, mlflow; logging.disable(); client = mlflow.MlflowClient('sqlite:///store/mlflow.db')\n"
            "runs = client.search_runs([client.get_experiment_by_name('nets').experiment_id])\n"
            "names = [file.path for run in runs for file in client.list_artifacts(run.info.run_id)]\n"
            "rows = [[run.info.status, run.info.end_time, run.data.metrics, run.data.tags] for run in runs]\n"
            "print(json.dumps([rows, sorted(names)]))"
        )
        run = subprocess.run(
            [sys.executable, "-c", script], cwd=self.folder, stdout=subprocess.PIPE, text=True, check=True
        )
        rows, names = json.loads(run.stdout.splitlines()[-1])
        self.assertEqual(names, ["report.html", "report.md", "results.json", "speedup.svg"])
        stored = {tags.get("perfrun.cell"): (status, end, metrics) for status, end, metrics, tags in rows}
        self.assertEqual(len(rows), 10)
        self.assertEqual(stored.pop(None), ("FINISHED", None, {"detectable_effect": 0.03}))
        read = track.read(self.write(results())).cells
        expected = {cell.facts["cell"]: (track.STATUSES[cell.status], None, cell.metrics) for cell in read}
        self.assertEqual(stored, expected)

    def test_wandb_keeps_what_was_logged(self) -> None:
        self.need("wandb")
        done = self.start("wandb", "--folder", "store")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        (run,) = glob.glob(str(self.folder / "store/wandb/offline-run-*"))
        self.assertTrue(done.stdout.endswith(f"wandb sync {os.path.relpath(run, self.folder)}\n"), done.stdout)
        (path,) = glob.glob(run + "/files/media/table/*.json")
        table = json.loads(pathlib.Path(path).read_text())
        read = track.read(self.write(results()))
        columns, rows = track._table(read.cells)
        self.assertEqual((table["columns"], table["data"]), (columns, rows))
        (path,) = glob.glob(run + "/files/media/html/*.html")
        self.assertEqual(pathlib.Path(path).read_text(encoding="utf-8"), "<p>µ</p>")
        (path,) = glob.glob(run + "/*.wandb")
        summary, host, names = self.records(path)
        self.assertEqual({**summary, **track._summary(read)}, summary)
        self.assertEqual((host, names), ("amd-epyc-2c", ["report.html", "report.md", "results.json", "speedup.svg"]))

    def records(self, path: str) -> tuple[dict[str, Any], str, list[str]]:
        """Summary, host and files of the artifact in W&B's log: a header of 7 bytes, then LevelDB's log format."""
        from wandb.proto import wandb_internal_pb2

        data, at, part = pathlib.Path(path).read_bytes(), 7, b""
        summary, host, names = {}, "", []
        while at + 7 <= len(data):
            left = 32768 - at % 32768
            if left < 7:
                at += left
                continue
            _, length, kind = struct.unpack("<IHB", data[at : at + 7])
            part = (part if kind in (3, 4) else b"") + data[at + 7 : at + 7 + length]
            at += 7 + length
            if kind in (1, 4):
                record = wandb_internal_pb2.Record()
                record.ParseFromString(part)
                host = record.run.host or host
                summary.update({item.key: json.loads(item.value_json) for item in record.summary.update})
                if record.artifact.type == "report":
                    names = sorted(entry.path for entry in record.artifact.manifest.contents)
        return summary, host, names


if __name__ == "__main__":
    unittest.main()
