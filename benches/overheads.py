"""What perfrun itself costs: start-up, planning, the parent while a child measures, and a run's own time.

Usage: python3 benches/overheads.py [target/release/perfrun]

Prints one line a figure, with what is wanted. Ratios are within this one invocation; absolute times are of this machine.
"""

import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
PERFRUN = str(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "target/release/perfrun").resolve())
TICK = os.sysconf("SC_CLK_TCK")


def milliseconds(command, times=30):
    """Median wall time of a whole process."""
    taken = []
    for _ in range(times):
        started = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        taken.append((time.perf_counter() - started) * 1e3)
    return statistics.median(taken)


def start_up():
    nothing = milliseconds(["/bin/true"])
    for words in (["--version"], ["validate", str(ROOT / "experiments/quickstart.yaml")]):
        taken = milliseconds([PERFRUN, *words])
        print(f"{' '.join(words[:1]):<22}{taken:7.1f} ms   (an empty process: {nothing:.1f} ms; wanted: below 20 ms)")


def planning(folder):
    names = lambda letter: ", ".join(f"{letter}{number}" for number in range(1000))
    spec = folder / "million.yaml"
    spec.write_text(f"backend: mock\nmodels: [{names('m')}]\nvariants: [{names('v')}]\n")
    for words, label, wanted in ([], "plan, a million cells", "1 s"), (["--json"], "the same, --json", "2 s"):
        started = time.perf_counter()
        process = subprocess.Popen([PERFRUN, "plan", str(spec), *words], stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        taken = time.perf_counter() - started
        assert status == 0
        print(f"{label:<22}{taken:7.2f} s    {usage.ru_maxrss / 1024:.0f} MiB (wanted: below {wanted}, 500 MB)")


def processor_seconds(pid):
    """Of the process alone, not of its children."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def parent_while_measuring(folder):
    spec = folder / "long.yaml"
    model = ROOT / "experiments/models/digits-mlp.onnx"
    spec.write_text(
        f"models: {model}\ninputs: {{ batch: 1 }}\nvariants: [{{ name: one, threads: 1 }}]\nruns: 1\n"
        "measure: { warmup: { mode: time, time: 100ms }, stop: { mode: time, time: 8s, max_samples: 10000000 } }\n"
    )
    process = subprocess.Popen([PERFRUN, str(spec), "--no-wait"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    for line in process.stderr:
        if line.startswith("time"):
            break
    time.sleep(1)
    before, started = processor_seconds(process.pid), time.perf_counter()
    time.sleep(6)
    used, span = processor_seconds(process.pid) - before, time.perf_counter() - started
    process.communicate()
    print(f"{'parent, measuring':<22}{used / span * 100:7.2f} %    of one core over {span:.0f} s (wanted: below 1 %)")


def one_run(folder):
    """Wall time of the blocks less what load, warm-up and sampling take, over the runs."""
    runs, warm, sample = 20, 0.2, 0.2
    spec = folder / "runs.yaml"
    model = ROOT / "experiments/models/digits-mlp.onnx"
    spec.write_text(
        f"models: {model}\ninputs: {{ batch: 1 }}\nvariants: [{{ name: one, threads: 1 }}]\nruns: {runs}\n"
        f"measure: {{ warmup: {{ mode: time, time: {warm}s }}, stop: {{ mode: time, time: {sample}s }} }}\n"
    )
    process = subprocess.Popen([PERFRUN, str(spec), "--no-wait"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    seen = []
    for line in process.stderr:
        # A block has a run of every member of every group, A/A copies included.
        if done := re.match(r"running .* (\d+) runs? done", line):
            seen.append((time.perf_counter(), int(done[1])))
    process.wait()
    import json

    results = json.loads((folder / "reports/runs/results.json").read_text())
    metrics = results["cells"][0]["metrics"]
    load = (metrics["load_ns"]["value"] + metrics["first_inference_ns"]["value"]) / 1e9
    each = statistics.median((later - earlier) / (after - before) for (earlier, before), (later, after) in zip(seen, seen[1:]))
    print(f"{'a run, besides':<22}{(each - load - warm - sample) * 1e3:7.1f} ms   (wanted: below 60 ms)")


with tempfile.TemporaryDirectory() as name:
    place = pathlib.Path(name)
    (place / ".perfrun").mkdir()
    start_up()
    planning(place)
    parent_while_measuring(place)
    one_run(place)
