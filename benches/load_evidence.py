#!/usr/bin/env python3
"""How often is one service called different from itself under a load, how often is 5 % found, and how often does the
interval hold the true largest rate: perfrun with scripted services.

    python3 benches/load_evidence.py target/release/perfrun [--aa 200] [--slower 50] [--known 100]

Every experiment is perfrun's whole way from YAML to results.json. Twelve blocks; runs differ by .3 % (standard deviation).
Prints one line for each series.
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
    text = f"""models: [m]
seed: {seed}
runs: {runs}
compare: {{ aa: off }}
variants: [{variants}]
measure: {{ load: {{ rate: largest, bound: {{ p99: {bound} }} }} }}
backend: {{ mock: {{ median: 5ms, {service} }} }}
"""
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("perfrun", help="the release build")
    parser.add_argument("--aa", type=int, default=200, help="comparisons of equal services (default: 200)")
    parser.add_argument("--slower", type=int, default=50, help="comparisons with one 5 %% slower (default: 50)")
    parser.add_argument("--known", type=int, default=100, help="queues of a known answer (default: 100)")
    given = parser.parse_args()
    binary = str(Path(given.perfrun).resolve())
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
