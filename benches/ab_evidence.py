#!/usr/bin/env python3
"""How often is one command called different from itself, and how often is 5 % found: perfrun ab beside hyperfine.

    python3 benches/ab_evidence.py target/release/perfrun [--pairs 200] [--planted 20] [--disturbed] [--budget 10m]

The program is a loop of about 50 ms in awk; the planted copy does 5 % more rounds. hyperfine runs with its defaults and
without a shell (`-N`), and its exported times are judged in the two ways that are in use: the intervals mean +- sd do not
overlap, and Welch's test with p < .05 (its own scripts/welch_ttest.py). perfrun goes on until its verdict is decided, at most for the budget. Without hyperfine on the path, the same is done on
times taken here, one command after the other, as long as hyperfine would. --disturbed keeps a core busy for a quarter of
the time (disturb.py). Prints one line for each rule: called different or found, of how many, and the median of the seconds.
"""

import argparse
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SECONDS = 3.0  # hyperfine's least time for a command, and below it its least number of runs
RUNS = 10


def command(rounds: int) -> list[str]:
    return ["awk", f"BEGIN {{ for (i = 0; i < {rounds}; i++) x += i }}"]


def took(words: list[str]) -> float:
    began = time.perf_counter()
    subprocess.run(words, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


def rounds_of_50_ms() -> int:
    tried = 200_000
    return round(tried * 0.05 / min(took(command(tried)) for _ in range(10)))


def typed(words: list[str]) -> str:
    return " ".join(f"'{word}'" if " " in word else word for word in words)


def perfrun(binary: str, budget: str, pair: list[list[str]]) -> dict[str, bool]:
    """The verdict in another folder, whose records go with it."""
    words = [typed(pair[0]), "--name", "a", typed(pair[1]), "--name", "b", "--json", "--budget", budget]
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(Path(folder, ".perfrun"))
        environment = os.environ | {"PERFRUN_WAIT": "0s"}
        done = subprocess.run([binary, "ab", *words], cwd=folder, env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"perfrun ended with {done.returncode}\n{done.stderr}")
    rows = [row for row in json.loads(done.stdout)["comparisons"] if row["metric"] == "latency"]
    return {"perfrun ab": rows[0].get("verdict") in ("better", "worse")}


def times(pair: list[list[str]]) -> list[list[float]]:
    if not shutil.which("hyperfine"):
        taken = []
        for words in pair:
            own, began = [], time.perf_counter()
            while len(own) < RUNS or time.perf_counter() - began < SECONDS:
                own.append(took(words))
            taken.append(own)
        return taken
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        words = ["hyperfine", "-N", "--style", "none", "--export-json", file.name, *map(typed, pair)]
        subprocess.run(words, check=True, capture_output=True)
        return [result["times"] for result in json.load(open(file.name))["results"]]


def usual(pair: list[list[str]]) -> dict[str, bool]:
    a, b = times(pair)
    means, deviations = [statistics.mean(x) for x in (a, b)], [statistics.stdev(x) for x in (a, b)]
    errors = [statistics.variance(x) / len(x) for x in (a, b)]
    t = abs(means[0] - means[1]) / math.sqrt(sum(errors))
    df = sum(errors) ** 2 / sum(error**2 / (len(x) - 1) for error, x in zip(errors, (a, b)))
    z = statistics.NormalDist().inv_cdf(0.975)
    # Cornish and Fisher: the quantile of Student's t to three digits from df = 8 on.
    limit = z + (z**3 + z) / (4 * df) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * df**2)
    return {
        "mean +- sd do not overlap": abs(means[0] - means[1]) > sum(deviations),
        "Welch's test, p < .05": t > limit,
    }


def series(name: str, count: int, pair: list[list[str]], binary: str, budget: str) -> None:
    found: dict[str, list[tuple[bool, float]]] = {}
    for index in range(count):
        # In turns, so that both meet the same machine.
        for rule in (lambda: perfrun(binary, budget, pair), lambda: usual(pair)):
            began = time.monotonic()
            for word, is_different in rule().items():
                found.setdefault(word, []).append((is_different, time.monotonic() - began))
        counts = ", ".join(f"{word} {sum(yes for yes, _ in said)}" for word, said in found.items())
        print(f"\r{name}: {index + 1} of {count}: {counts}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    for word, said in found.items():
        seconds = statistics.median(took for _, took in said)
        longest = max(took for _, took in said)
        print(f"{name}: {word}: {sum(yes for yes, _ in said)} of {len(said)} ({seconds:.0f} s, at most {longest:.0f} s)", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("perfrun", help="the release build")
    parser.add_argument("--pairs", type=int, default=200, help="A/A pairs (default: 200)")
    parser.add_argument("--planted", type=int, default=20, help="pairs with 5 %% planted (default: 20)")
    parser.add_argument("--budget", default="10m", help="of perfrun for one pair (default: 10m)")
    parser.add_argument("--disturbed", action="store_true", help="beside disturb.py")
    given = parser.parse_args()
    binary, rounds = str(Path(given.perfrun).resolve()), rounds_of_50_ms()
    disturb = Path(__file__).with_name("disturb.py")
    neighbour = subprocess.Popen([sys.executable, str(disturb)], stdout=subprocess.DEVNULL) if given.disturbed else None
    machine = "disturbed" if given.disturbed else "quiet"
    load = os.getloadavg()[0]
    print(f"{rounds} rounds; load {load:.1f} on {os.cpu_count()} processors; hyperfine: {shutil.which('hyperfine') or 'its rules on own times'}")
    try:
        same, slower = command(rounds), command(round(rounds * 1.05))
        if given.pairs:
            series(f"A/A, {machine}", given.pairs, [same, same], binary, given.budget)
        if given.planted:
            series(f"+5 %, {machine}", given.planted, [same, slower], binary, given.budget)
    finally:
        if neighbour:
            neighbour.terminate()


if __name__ == "__main__":
    main()
