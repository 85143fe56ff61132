#!/usr/bin/env python3
"""How often is one service called different from itself under a load, how often is 5 % found, and how often does the
interval hold the true largest rate: perfrun with scripted services.

    python3 benches/load_evidence.py target/release/perfrun [--aa 200] [--slower 50] [--known 100]
    python3 benches/load_evidence.py target/release/perfrun --model MODEL [--batch 64] [--bound 10] [--repeat 10]

Every experiment is perfrun's whole way from YAML to results.json. Twelve blocks; runs differ by .3 % (standard deviation).
Prints one line for each series. With a model: its largest rate is looked for, then served so often, by eight processes each
time; the late share at it must have 1 % in its interval.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

# M/D/1 by a simulation of four million queries, M/M/1 by 1 / mean - ln(100) / bound; queries a second.
KNOWN = [("M/D/1", "noise: 0%", "20ms", 92.5), ("M/M/1", "exponential: true", "100ms", 153.95)]


def results(binary: str, seed: int, service: str, bound: str, variants: str, runs: int) -> dict:
    return measured(binary, f"""models: [m]
seed: {seed}
runs: {runs}
compare: {{ aa: off }}
variants: [{variants}]
measure: {{ load: {{ rate: largest, bound: {{ p99: {bound} }} }} }}
backend: {{ mock: {{ median: 5ms, {service} }} }}
""")


def measured(binary: str, text: str) -> dict:
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(Path(folder, ".perfrun"))
        Path(folder, "x.yaml").write_text(text)
        environment = os.environ | {"PERFRUN_WAIT": "0s"}
        done = subprocess.run([binary, "x.yaml"], cwd=folder, env=environment, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"perfrun ended with {done.returncode}\n{done.stderr}")
        return json.loads(Path(folder, "reports/x/results.json").read_text())


def verdicts(binary: str, count: int, service: str, bound: str, second: str) -> int:
    """Of so many comparisons, how many are verdicts of a difference."""
    different = 0
    for seed in range(count):
        found = results(binary, seed, f"run_sd: 0.3%, {service}", bound, f"one, {second}", 12)
        rows = [row for row in found["comparisons"] if row["metric"] == "largest_rate"]
        different += rows[0]["verdict"] in ("better", "worse")
        print(f"\r{seed + 1} of {count}: {different}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return different


def real(binary: str, given: argparse.Namespace) -> None:
    """The late share that real arrivals at the reported rate have."""
    def at(rate: str, seed: int) -> dict:
        return measured(binary, f"""models: {Path(given.model).resolve()}
seed: {seed}
runs: 8
inputs: {{ batch: {given.batch} }}
compare: {{ aa: off }}
variants: [{{ name: one, sessions: 1, threads: 1 }}]
measure: {{ load: {{ rate: {rate}, bound: {{ p99: {given.bound}ms }} }}, stop: {{ mode: samples, count: 4000, max_time: 10m }} }}
""")["cells"][0]["metrics"]

    found = at("largest", 0)["largest_rate_per_s"]
    print(f"largest rate {found['value']:.1f}/s [{found['low']:.1f}, {found['high']:.1f}]", flush=True)
    held = 0
    for seed in range(1, given.repeat + 1):
        late = at(f"{found['value']:.3f}/s", seed)["late_ratio"]
        held += late["low"] <= 0.01 <= late["high"]
        print(f"  late {late['value']:.4f} [{late['low']:.4f}, {late['high']:.4f}]", flush=True)
    print(f"the late share at that rate has 1 % in its interval in {held} of {given.repeat}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("perfrun", help="the release build")
    parser.add_argument("--aa", type=int, default=200, help="comparisons of equal services (default: 200)")
    parser.add_argument("--slower", type=int, default=50, help="comparisons with one 5 %% slower (default: 50)")
    parser.add_argument("--known", type=int, default=100, help="queues of a known answer (default: 100)")
    parser.add_argument("--model", help="serve this ONNX file instead")
    parser.add_argument("--batch", type=int, default=1, help="its free dimension (default: 1)")
    parser.add_argument("--bound", type=float, default=10, help="of p99, in milliseconds (default: 10)")
    parser.add_argument("--repeat", type=int, default=10, help="how often its rate is served (default: 10)")
    given = parser.parse_args()
    binary = str(Path(given.perfrun).resolve())
    if given.model:
        return real(binary, given)
    for name, service, bound, rate in KNOWN:
        held, logs = 0, 0.0
        for seed in range(given.known):
            cell = results(binary, seed, f"run_sd: 0%, {service}", bound, "one", 10)["cells"][0]
            found = cell["metrics"]["largest_rate_per_s"]
            held += found["low"] <= rate <= found["high"]
            logs += found["value"] / rate / given.known
            print(f"\r{seed + 1} of {given.known}: {held}", end="", file=sys.stderr, flush=True)
        print(file=sys.stderr)
        if given.known:
            print(f"{name}: the interval holds {rate}/s in {held} of {given.known}; mean of the estimates over it {logs:.4f}", flush=True)
        if given.aa:
            count = given.aa // 2
            print(f"{name}: A/A called different: {verdicts(binary, count, service, bound, 'same')} of {count}", flush=True)
        if given.slower:
            found = verdicts(binary, given.slower, service, bound, "{ name: slower, mock: { scale: 1.05 } }")
            print(f"{name}: 5 % slower found: {found} of {given.slower}", flush=True)


if __name__ == "__main__":
    main()
