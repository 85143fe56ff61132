"""Logs a `results.json` to MLflow or to Weights & Biases, through their own clients.

    python -m perfrun.track mlflow RESULTS_JSON [--report FOLDER] [--project NAME] [--folder DIR] [--again]
    python -m perfrun.track wandb RESULTS_JSON [--report FOLDER] [--project NAME] [--folder DIR]

MLflow gets a run for the record and below it one for each cell, W&B one run with a table of the cells.
Metrics have their names of results.json; `.low` and `.high` are the ends of an interval.
As in reports, numbers of invalid cells, percentiles that the samples do not support, and intervals over fewer than
five runs are left out.
Prints where the runs are. Exits with 2 after a user error: its message and a line `help: ...` are on standard error.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import hashlib
import importlib
import json
import logging
import os
import re
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, NoReturn, Optional

FORMATS = (2, 3)
AXES = ("model", "input", "variant", "device", "runtime")
# Reports show no interval over fewer runs.
LEAST_RUNS = 5
# Reasons with which a verdict stands, and those with which the ratio itself means nothing.
JUDGED = ("beyond_margin", "within_margin", "size_not_established", "not_enough_data")
MEANINGLESS = ("not_finite", "not_resolved", "batches_differ", "untimed")
# Of a tag or parameter; MLflow 2.10 takes 5000 characters in a tag.
LONGEST_TEXT = 4000
FROM_RECORD = "make it again with `perfrun report RECORD`"


class Problem(Exception):
    """A user error: what is wrong, and what to do about it."""

    def __init__(self, message: str, remedy: str):
        super().__init__(message)
        self.message, self.remedy = message, remedy


# --- What is logged -------------------------------------------------------------------------------------------------


class Cell(NamedTuple):
    path: str  # digits-cnn/b1/int8/cpu
    status: str
    axes: dict[str, Any]
    facts: dict[str, str]  # Id, reasons, codes, verdicts.
    metrics: dict[str, float]


class Record(NamedTuple):
    experiment: str
    name: str
    started: int  # Milliseconds since 1970.
    facts: dict[str, str]
    metrics: dict[str, float]
    results: dict[str, Any]  # The file.
    cells: list[Cell]


def read(path: str) -> Record:
    """Raises `Problem` for a file that is missing, damaged, or of an unknown format."""
    try:
        with open(path, "rb") as file:
            text = file.read()
        results = json.loads(text.decode("utf-8"), parse_constant=_no_number)
    except OSError as error:
        raise Problem(f"{path}: {error.strerror}", "name the results.json of a report") from None
    except (ValueError, RecursionError) as error:
        raise Problem(f"{path} is not JSON: {_line(error)}", FROM_RECORD) from None
    found = results.get("format") if isinstance(results, dict) else None
    if type(found) is not int or found < FORMATS[0]:
        raise Problem(f"{path} is not a results.json of perfrun", "name the results.json of a report")
    if found > FORMATS[-1]:
        raise Problem(f"{path} has format {found}; formats up to {FORMATS[-1]} are known here", "update perfrun")
    try:
        return _record(results, hashlib.sha256(text).hexdigest())
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise Problem(f"{path} is damaged: {type(error).__name__}: {_line(error)}", FROM_RECORD) from None


def _record(results: dict[str, Any], sha256: str) -> Record:
    for name in (results["experiment"], results["record"]):
        if not re.fullmatch(r"[\w.:@-]+", name):
            raise ValueError(f"{name!r} is not a name")
    measured, context = results["measured"], results["provenance"]["context"]
    noise = results.get("detectable_effect") or results.get("sight") or {}  # The latter in format 2.
    facts = {
        "record": results["record"],
        "results_sha256": sha256,
        "machine": results["provenance"]["machine"],
        "commit": context.get("commit"),
        "dirty": " ".join(context.get("dirty") or []),
        "measured": measured["sessions"][0],
        "complete": measured["complete"],
        "quick": measured.get("quick"),
        "restrictions": " ".join(measured.get("restrictions") or []),
        "codes": " ".join(sorted(results.get("codes") or {})),
        "grade": noise.get("grade"),
        "controls": " ".join(sorted({control["outcome"] for control in results["controls"]})),
    }
    metrics: dict[str, float] = {}
    _put(metrics, "detectable_effect", noise.get("here"))
    rows: dict[str, list[Any]] = {}
    for row in results["comparisons"]:
        rows.setdefault(row["cell"], []).append(row)
    paths = {cell["id"]: _path(cell) for cell in results["cells"]}
    precisions = {}
    for file in results["provenance"]["subject"].get("files") or []:
        recipe = (file.get("origin") or {}).get("recipe") or {}
        precisions[file["model"], file["variant"], file.get("sha256")] = recipe.get("to")
    cells = []
    for cell in results["cells"]:
        precision = precisions.get((cell["model"], cell["variant"], cell.get("sha256")))
        cells.append(_cell(cell, precision, rows.get(cell["id"], []), paths))
    started = datetime.datetime.fromisoformat(measured["sessions"][0].replace("Z", "+00:00")).timestamp()
    return Record(results["experiment"], results["record"], int(started * 1000), _texts(facts), metrics, results, cells)


def _cell(cell: Mapping[str, Any], precision: Optional[str], rows: Sequence[Any], paths: Mapping[str, str]) -> Cell:
    codes, load = cell.get("codes") or {}, cell.get("load") or {}
    axes = {axis: cell[axis] for axis in AXES if cell.get(axis, "-") != "-"}
    axes.update({"precision": precision, "callers": load.get("callers"), "load": load.get("queries")})
    axes.update({key: cell.get(key) for key in ("threads", "batch", "iterations")})
    reasons = [cell["skipped"]["reason"]] if cell.get("skipped") else []
    reasons += [f"{failure['kind']}: {failure['message']}" for failure in cell.get("failures") or []]
    facts = {
        "cell": cell["id"],
        "status": cell["status"],
        "reason": "; ".join(reasons),
        "codes": " ".join(sorted(codes)),
        "sha256": cell.get("sha256"),
    }
    metrics: dict[str, float] = {}
    if cell["status"] in ("measured", "partial"):
        is_invalid = any(seen["severity"] == "invalid" for seen in codes.values())
        left_out = []
        for name, found in cell["metrics"].items():
            if is_invalid or found.get("supported") is False:
                left_out.append(name)
            else:
                _put(metrics, name, found["value"], found if found["n"] >= LEAST_RUNS else {})
        facts["left_out"] = " ".join(left_out)
        outputs_differ = bool((cell.get("fidelity") or {}).get("misses"))
        # The row by which the cell is compared comes first, then those of percentiles and of memory.
        for at, row in enumerate(rows):
            metric = "" if at == 0 and row["metric"] != "peak_rss" else "." + row["metric"]
            if not metric:
                facts.update(baseline=paths.get(row["baseline"]), compared_by=row["metric"])
            facts["verdict" + metric] = row["verdict"]
            if outputs_differ or row["reason"] not in JUDGED:
                facts["withheld" + metric] = "outputs_differ" if outputs_differ else row["reason"]
            if row["reason"] not in MEANINGLESS:
                _put(metrics, "ratio" + metric if metric else "speedup", row["ratio"], row)
    return Cell(paths[cell["id"]], cell["status"], axes, _texts(facts), metrics)


def _put(metrics: dict[str, float], name: str, value: Any, ends: Mapping[str, Any] = {}) -> None:
    """Adds a number and its interval under names that MLflow takes: `own.first[ms].lower` as `own.first_ms.lower`."""
    name = re.sub(r"\[(.*?)\]", r"_\1", name.replace("[/", "[per_"))
    name = re.sub(r"[^\w.-]", "_", name, flags=re.ASCII)
    low, high = ends.get("low"), ends.get("high")
    found = {"": value, **({} if low is None or high is None else {".low": low, ".high": high})}
    metrics.update({name + end: float(number) for end, number in found.items() if number is not None})


def _path(cell: Mapping[str, Any]) -> str:
    return "/".join(cell[axis] for axis in AXES if cell.get(axis, "-") != "-")


def _texts(values: Mapping[str, Any]) -> dict[str, str]:
    """What is known of these values."""
    texts = {name: value if isinstance(value, str) else json.dumps(value) for name, value in values.items()}
    return {name: text[:LONGEST_TEXT] for name, text in texts.items() if text not in ("", "null")}


def _no_number(word: str) -> NoReturn:
    raise ValueError(f"{word} is not a number")


# --- MLflow ---------------------------------------------------------------------------------------------------------

STATUSES = {"measured": "FINISHED", "partial": "FINISHED", "failed": "FAILED", "skipped": "KILLED", "not_run": "KILLED"}


def to_mlflow(record: Record, files: Sequence[str], options: argparse.Namespace) -> None:
    """One experiment; in it a run for the record, and below that a run for each cell."""
    logging.disable(logging.INFO)  # A new database logs its migrations.
    mlflow = _client("mlflow")
    with _errors_reported("MLflow", mlflow.exceptions.MlflowException, "check MLFLOW_TRACKING_URI, or name a --folder"):
        uri, artifacts = mlflow.get_tracking_uri(), None
        if options.folder:
            os.makedirs(options.folder, exist_ok=True)
            folder = os.path.abspath(options.folder)
            uri, artifacts = f"sqlite:///{folder}/mlflow.db", f"{folder}/artifacts"
        client = mlflow.MlflowClient(tracking_uri=uri)
        name = options.project or record.experiment
        experiment = client.get_experiment_by_name(name)
        if experiment and experiment.lifecycle_stage != "active":
            raise Problem(f"MLflow's experiment {name} is deleted", "restore it, or name another with --project")
        if experiment and not options.again and _is_there(client, experiment.experiment_id, record):
            return
        experiment_id = experiment.experiment_id if experiment else client.create_experiment(name, artifacts)
        run = _log_runs(mlflow, client, experiment_id, record, files)
        _say(f"MLflow: experiment {name}, run {run} and {len(record.cells)} runs below it")
        _say(f"Show them: mlflow ui --backend-store-uri {shlex.quote(uri)}" if options.folder else f"at {uri}")


def _is_there(client: Any, experiment: str, record: Record) -> bool:
    """Whether the record was exported before; prints where. What an interrupted export left does not count."""
    wanted = f"tags.`perfrun.record` = '{record.name}' and tags.`perfrun.kind` = 'record'"
    found = client.search_runs([experiment], f"{wanted} and attributes.status = 'FINISHED'", max_results=1)
    for run in found:
        is_same = run.data.tags.get("perfrun.results_sha256") == record.facts["results_sha256"]
        suffix = "" if is_same else ", from another results.json"
        _say(f"MLflow: {record.name} is there already{suffix}: run {run.info.run_id}")
        _say("Nothing was logged. --again logs it once more.")
    return bool(found)


def _log_runs(mlflow: Any, client: Any, experiment: str, record: Record, files: Sequence[str]) -> str:
    """The id of the record's run, which is finished once everything is logged."""

    def start(name: str, facts: Mapping[str, str], tags: Mapping[str, Optional[str]]) -> str:
        source = {"mlflow.source.name": "perfrun", "mlflow.source.git.commit": record.facts.get("commit")}
        all_tags = _texts({**source, **tags, **{f"perfrun.{key}": value for key, value in facts.items()}})
        return client.create_run(experiment, start_time=record.started, tags=all_tags, run_name=name).info.run_id

    def log(run: str, metrics: Mapping[str, float], parameters: Mapping[str, Any]) -> None:
        metric, parameter = mlflow.entities.Metric, mlflow.entities.Param
        entries = [metric(key, value, record.started, 0) for key, value in metrics.items()]
        client.log_batch(run, entries, [parameter(key, value) for key, value in _texts(parameters).items()])

    # Not `set_terminated`, which would store the time of the export as the end of the run.
    description = {"mlflow.note.content": record.results.get("description")}
    parent = start(record.name, {"kind": "record", **record.facts}, description)
    unfinished, status = [parent], "FAILED"
    try:
        machine = {**record.results["provenance"]["frame"], **record.results["provenance"]["context"]}
        plain = {key: value for key, value in machine.items() if not isinstance(value, (list, dict))}
        log(parent, record.metrics, plain)
        shared = {key: value for key, value in record.facts.items() if key in ("record", "machine", "commit", "dirty")}
        for cell in record.cells:
            run = start(cell.path, {"kind": "cell", **shared, **cell.facts}, {"mlflow.parentRunId": parent})
            unfinished.append(run)
            log(run, cell.metrics, cell.axes)
            client.update_run(unfinished.pop(), status=STATUSES.get(cell.status, "KILLED"))
        for file in files:
            client.log_artifact(parent, file)
        status = "FINISHED"
    finally:
        for run in unfinished:
            client.update_run(run, status=status)
    return parent


# --- Weights & Biases -----------------------------------------------------------------------------------------------

# No output, and no facts about this process, which is not what was measured; in the names of old and new versions.
SETTINGS = {"WANDB_SILENT": "true", "WANDB_CONSOLE": "off"}
SETTINGS.update({f"WANDB_DISABLE_{what}": "true" for what in ("GIT", "CODE")})
SETTINGS.update({f"WANDB_{x}_DISABLE_{what}": "true" for x in ("", "X") for what in ("STATS", "META", "MACHINE_INFO")})
SETTINGS.update({f"WANDB_{x}_SAVE_REQUIREMENTS": "false" for x in ("", "X")})


def to_wandb(record: Record, files: Sequence[str], options: argparse.Namespace) -> None:
    """One run with a table of the cells. Its id is the record's name, so that W&B replaces an earlier export."""
    mode = os.environ.get("WANDB_MODE") or "offline"
    if mode not in ("offline", "online"):
        raise Problem(f"WANDB_MODE is {mode}", "set it to offline or online, or unset it")
    defaults = {**SETTINGS, "WANDB_HOST": record.facts.get("machine", "")}
    if options.folder:
        # W&B copies the report there and uploads the copies.
        defaults["WANDB_DATA_DIR"] = os.path.abspath(options.folder)
    for key, value in defaults.items():
        os.environ.setdefault(key, value)
    wandb = _client("wandb")
    with _errors_reported("W&B", wandb.Error, "check WANDB_MODE, `wandb login` and --folder"):
        if options.folder:
            os.makedirs(options.folder, exist_ok=True)
        run = wandb.init(
            project=options.project or record.experiment,
            id=re.sub(r"[^\w-]", "-", record.name, flags=re.ASCII)[:64],
            name=record.name,
            notes=record.results.get("description"),
            job_type="benchmark",
            dir=options.folder,
            mode=mode,
            config={**record.facts, **{key: record.results[key] for key in ("provenance", "rules")}},
        )
        code = 1
        try:
            columns, rows = _table(record.cells)
            logged = {"cells": wandb.Table(columns=columns, data=rows)}
            artifact = wandb.Artifact(f"{run.id}-report", type="report")
            for path in files:
                artifact.add_file(path)
                if path.endswith(".html"):
                    with open(path, encoding="utf-8") as file:
                        logged["report"] = wandb.Html(file, inject=False)
            run.log(logged)
            run.log_artifact(artifact)
            run.summary.update(_summary(record))
            code = 0
        finally:
            run.finish(exit_code=code)
        _say(f"W&B: project {run.project}, run {run.id}, {len(record.cells)} cells")
        _say(f"at {run.url}" if mode == "online" else f"Upload it: wandb sync {shlex.quote(os.path.dirname(run.dir))}")


def _table(cells: Sequence[Cell]) -> tuple[list[str], list[list[Any]]]:
    """Columns and rows: axes, facts, then metrics; `None` where a cell has no such value."""
    axes = [{"path": cell.path, **cell.axes, "load": _texts(cell.axes).get("load")} for cell in cells]
    parts = (axes, [cell.facts for cell in cells], [cell.metrics for cell in cells])
    columns = list(dict.fromkeys(key for part in parts for values in part for key in values))
    rows = ({key: value for values in row for key, value in values.items()} for row in zip(*parts))
    return columns, [[row.get(column) for column in columns] for row in rows]


def _summary(record: Record) -> dict[str, float]:
    """Latency and speed-up of each cell: `speedup/digits-cnn/b1/int8/cpu`."""
    shown = [name + end for name in ("latency_ns", "speedup") for end in ("", ".low", ".high")]
    cells = {f"{key}/{cell.path}": cell.metrics.get(key) for cell in record.cells for key in shown}
    return {**record.metrics, **{key: value for key, value in cells.items() if value is not None}}


# --- The command ----------------------------------------------------------------------------------------------------


def _client(name: str) -> Any:
    """The package of a client."""
    problem = f"{name} is not installed in {sys.executable}"
    try:
        module = importlib.import_module(name)
        # A folder of this name, such as the one that W&B writes, can be imported too.
        if getattr(module, "__file__", None):
            return module
    except Exception as error:  # Incompatible packages raise any type.
        if getattr(error, "name", None) != name:
            problem = f"{name} cannot be imported in {sys.executable}: {type(error).__name__}: {_line(error)}"
    raise Problem(problem, f"{sys.executable} -m pip install {name}")


@contextlib.contextmanager
def _errors_reported(what: str, errors: Any, remedy: str) -> Iterator[None]:
    """Errors of a client come from the user's settings: an address, a login, a folder."""
    try:
        yield
    except (errors, OSError) as error:
        raise Problem(f"{what}: {_line(error)}", remedy) from None


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())[:800]


def _say(text: str, error: bool = False) -> None:
    """Prints a line, without passwords in addresses and what would steer a terminal."""
    text = re.sub(r"://[^/@\s]*@", "://", text)
    print("".join(letter if letter.isprintable() else "?" for letter in text), file=sys.stderr if error else sys.stdout)


def _files(results: str, folder: Optional[str]) -> list[str]:
    """The results, and the report with its figures."""
    folder = os.path.dirname(os.path.abspath(results)) if folder is None else folder
    if not os.path.isdir(folder):
        raise Problem(f"{folder} is not a folder", "name the folder of the report")
    found = [name for name in sorted(os.listdir(folder)) if re.fullmatch(r"report\.(html|md)|.*\.svg", name)]
    return [results, *(os.path.join(folder, name) for name in found)]


def _options(arguments: Optional[Sequence[str]]) -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m perfrun.track", description="Log a results.json to MLflow or to W&B.")
    clients = parser.add_subparsers(dest="client", required=True, metavar="mlflow|wandb")
    for name in ("mlflow", "wandb"):
        client = clients.add_parser(name)
        client.add_argument("results", metavar="RESULTS_JSON")
        client.add_argument("--report", metavar="FOLDER", help="folder of report.html; default: that of the results")
        client.add_argument("--project", metavar="NAME", help="default: the name of the experiment")
        client.add_argument("--folder", metavar="DIR", help="where runs are stored; default: as the client is set up")
    clients.choices["mlflow"].add_argument("--again", action="store_true", help="log it even if it is there already")
    return parser.parse_args(arguments)


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """The exit code."""
    try:
        options = _options(arguments)
        log = {"mlflow": to_mlflow, "wandb": to_wandb}[options.client]
        log(read(options.results), _files(options.results, options.report), options)
    except Problem as problem:
        _say(problem.message, error=True)
        _say(f"help: {problem.remedy}", error=True)
        return 2
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
