"""A campaign of changed inputs: whatever perfrun is given, it ends in time, with a word, and leaves nothing behind.

    python3 tests/campaign/run.py PERFRUN [--count N] [--seed S] [--parts specs,models,...] [--jobs 2] [--keep FOLDER]

README.md says what a case is and what must hold.
"""

import argparse
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True

import parts_inputs
import parts_leaves
import parts_paths
import parts_records
import parts_runs
import process
import seeds

PARTS = {
    "limits": parts_runs.limits,
    "paths": parts_paths.paths,
    "specs": parts_inputs.specs,
    "models": parts_inputs.models,
    "datasets": parts_inputs.datasets,
    "records": parts_records.records,
    "results": parts_records.results,
    "archives": parts_records.archives,
    "workers": parts_runs.workers,
    "programs": parts_runs.programs,
    "mocks": parts_runs.mocks,
    "leaves": parts_leaves.leaf,
}
ESCAPED = pathlib.Path("/tmp/perfrun-campaign-escaped")


class Job:
    """The folders of one case at a time, with a fence around the folder that perfrun may write to."""

    def __init__(self, perfrun, folder, seconds):
        self.perfrun, self.folder, self.seconds = str(perfrun), folder, seconds
        self.work = folder / "fence/work"
        for name in ("fence", "home", "tmp", "cache"):
            (folder / name).mkdir(parents=True)
        self.env = environment(folder)

    def run(self, case):
        """What went wrong, with the command; the figures of all its commands; what was said."""
        shutil.rmtree(self.work, ignore_errors=True)
        case.write(self.work)
        for words in case.before:
            subprocess.run(words, cwd=self.work, env=self.env | case.env, capture_output=True, check=False)
        if case.needs and self._perfrun(case, case.needs).code != 0:
            return [], []
        done = []
        for words in case.commands:
            finished = self._perfrun(case, words)
            finished.problems += self._strays()
            done.append(finished)
        problems = [(finished.words[1:], problem) for finished in done for problem in finished.problems]
        if case.check:
            problems += [(done[-1].words[1:], problem) for problem in case.check(self.work, done)]
        return problems, done

    def _perfrun(self, case, words):
        env, limits = self.env | case.env, case.limits
        return process.run([self.perfrun, *words], self.work, env, case.codes, limits, self.seconds, case.mebibytes)

    def _strays(self):
        """What was written outside of the working folder, or left in the temporary one; it is removed."""
        known = {"fence": {"work"}, "home": set(), "tmp": set(), ".": {"fence", "home", "tmp", "cache"}}
        here = {self.folder / name: names for name, names in known.items()}
        strays = [folder / entry for folder, names in here.items() for entry in os.listdir(folder) if entry not in names]
        strays += [ESCAPED] if ESCAPED.exists() else []
        for path in strays:
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        return [f"left {path.relative_to(self.folder) if path != ESCAPED else path}" for path in strays]


def environment(folder):
    """Nothing of this machine's settings, and no network."""
    nowhere = "http://127.0.0.1:9"
    env = {"PATH": os.environ.get("PATH", os.defpath), "NO_COLOR": "1", "PERFRUN_WAIT": "0s", "LC_ALL": "C.UTF-8"}
    # pip asks rustc for its version, which may make a folder.
    folders = {"HOME": "home", "TMPDIR": "tmp", "PERFRUN_CACHE": "cache", "RUSTUP_HOME": "cache/rustup"}
    env |= {name: str(folder / below) for name, below in folders.items()}
    env |= {name: nowhere for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY")}
    return env | {"PIP_NO_INDEX": "1", "UV_OFFLINE": "1"}


def case_of(part, seed, index, made):
    """The same case for the same numbers."""
    return PARTS[part](made, random.Random(f"{seed}/{part}/{index}"), index)


def work(options, part, indices, made, folder, pipe):
    """Runs cases one after the other and reports each as a line of JSON."""
    process.become_heir()
    job = Job(options.perfrun, folder, options.seconds)
    for index in indices:
        case = case_of(part, options.seed, index, made)
        problems, done = job.run(case)
        if any(problem.startswith("no end") for _, problem in problems):
            # A machine that stands still for a while is nobody's fault.
            problems, done = job.run(case)
        if problems and options.keep:
            keep(options.keep / f"{part}-{index}", case, problems, done)
        line = {"index": index, "note": case.note, "problems": problems}
        for figure in ("seconds", "mebibytes"):
            line[figure] = max([getattr(finished, figure) for finished in done], default=0.0)
        os.write(pipe, json.dumps(line).encode() + b"\n")


def keep(folder, case, problems, done):
    """The files of a case as they were, and what was said about them."""
    shutil.rmtree(folder, ignore_errors=True)
    case.write(folder / "work")
    report = [f"{problem}\n  {' '.join(words)}" for words, problem in problems]
    for finished in done:
        figures = f"exit code {finished.code}, {finished.seconds:.2f} s, {finished.mebibytes:.0f} MiB"
        report.append(f"$ perfrun {' '.join(finished.words[1:])}\n{figures}")
        report.append(finished.out[-20000:] + finished.err[-20000:])
    (folder / "what.txt").write_text("\n\n".join(report), errors="backslashreplace")


def indices_of(part, options, made):
    """The numbers of the cases; of parts that are not endless all of them, or evenly spread ones."""
    fixed = {"limits": parts_runs.LIMITS, "paths": parts_paths.COUNT}
    if part in fixed:
        return range(fixed[part])
    if part == "leaves" and len(made.leaves) > options.count:
        first = random.Random(options.seed).randrange(len(made.leaves))
        return [(first + at * len(made.leaves) // options.count) % len(made.leaves) for at in range(options.count)]
    return range(len(made.leaves) if part == "leaves" else options.count)


def campaign(options, part, made, folder):
    """Runs a part with several jobs; true if nothing went wrong."""
    indices = [options.only] if options.only is not None else indices_of(part, options, made)
    reading, writing = os.pipe()
    jobs = []
    for job in range(min(options.jobs, len(indices))):
        child = os.fork()
        if child == 0:
            os.close(reading)
            try:
                work(options, part, indices[job::options.jobs], made, folder / f"{part}-{job}", writing)
                os._exit(0)
            except BaseException:
                sys.excepthook(*sys.exc_info())
                os._exit(1)
        jobs.append(child)
    os.close(writing)
    failures, cases, slowest, largest = 0, 0, (0.0, 0), (0.0, 0)
    with os.fdopen(reading) as lines:
        for line in map(json.loads, lines):
            cases, failures = cases + 1, failures + bool(line["problems"])
            slowest = max(slowest, (line["seconds"], line["index"]))
            largest = max(largest, (line["mebibytes"], line["index"]))
            for words, problem in line["problems"]:
                what = f"{line['note']}: perfrun {' '.join(words)}: {problem}".encode("unicode_escape").decode()
                again = f"--parts {part} --only {line['index']} --seed {options.seed}"
                print(f"FAILED {part} {line['index']}: {what}; again: run.py {options.perfrun} {again}", flush=True)
    broken = [child for child in jobs if os.waitpid(child, 0)[1]]
    figures = "slowest {:5.1f} s (case {})   largest {:5.0f} MiB (case {})".format(*slowest, *largest)
    print(f"{part:9} {cases:6} cases {failures:5} failures   {figures}", flush=True)
    return not failures and not broken and cases == len(indices)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("perfrun", type=lambda path: pathlib.Path(path).resolve())
    parser.add_argument("--count", type=int, default=200, help="cases of each part")
    parser.add_argument("--seed", default="1")
    parser.add_argument("--parts", type=lambda text: text.split(","), default=list(PARTS), help=", ".join(PARTS))
    parser.add_argument("--only", type=int, help="the case with this number alone")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seconds", type=int, default=20, help="what one command may take; more where the machine is busy")
    parser.add_argument("--keep", type=lambda path: pathlib.Path(path).resolve(), help="for inputs of failures, and seeds")
    options = parser.parse_args()
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"no part {', '.join(unknown)}; there are {', '.join(PARTS)}")
    with tempfile.TemporaryDirectory(prefix="perfrun-campaign-", ignore_cleanup_errors=True) as scratch:
        root = pathlib.Path(scratch)
        for name in ("home", "tmp", "cache"):
            (root / "seeding" / name).mkdir(parents=True)
        made = seeds.Seeds(options.perfrun, (options.keep or root) / "seeds", environment(root / "seeding"))
        made.find_valid_specs()
        made.make_models()
        made.make_records()
        made.leaves = parts_leaves.places(made)
        fine = [campaign(options, part, made, root) for part in options.parts]
    sys.exit(0 if all(fine) else 1)


if __name__ == "__main__":
    main()
