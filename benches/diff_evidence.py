#!/usr/bin/env python3
"""Does `perfrun diff --gate` fall on identical code, and does it find slower code?

Usage: benches/diff_evidence.py PERFRUN FOLDER [ROWS]

FOLDER has results.json and calibration.json of a calibration (`perfrun calibrate experiments/calibration.yaml
--comparisons 40 --effect 5% --effect 10% --effect 20%`, then `perfrun report RECORD --format json`): a variant, its A/A copy
and slower copies in rounds of interleaved blocks; reports/calibration-apart is one. A side of a diff is one variant in one round.
Apart: the two sides are of different rounds, minutes from each other, as two commits are. Together: of the same round, as --remeasure
measures them; its verdicts are those that the calibration itself gives. Prints one line for each known slowdown: how many
rows were called slower, how many gates of ROWS rows fell.
"""

import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path


def main() -> None:
    perfrun, folder = sys.argv[1], Path(sys.argv[2])
    rows = int(sys.argv[3]) if len(sys.argv) > 3 else 8
    results = json.loads((folder / "results.json").read_text())
    calibration = json.loads((folder / "calibration.json").read_text())
    cells = {cell["variant"]: cell for cell in results["cells"]}
    base = cells["cpu"]
    rounds = calibration["noise"][0]["comparisons"]
    blocks = len(base["runs"]["block"]) // rounds
    print(f"{rounds} rounds of {blocks} blocks; gates of {rows} rows")
    for grade in ["A", "B", "C", "D"]:
        for name, cell in cells.items():
            if name != "cpu":
                slower, fell, gates = apart(perfrun, results, base, cell, rounds, blocks, rows, grade)
                print(f"apart, taken for grade {grade}: {name}: {slower} of {gates * rows} rows slower, {fell} of {gates} gates fell")


def apart(perfrun, results, base, other, rounds, blocks, rows, grade):
    draw = random.Random(1)
    slower = fell = 0
    gates = rounds * 5 // rows
    for _ in range(gates):
        pairs = [draw.sample(range(rounds), 2) for _ in range(rows)]
        sides = [
            side(results, [(base, pair[0]) for pair in pairs], blocks, "a", grade),
            side(results, [(other, pair[1]) for pair in pairs], blocks, "b", grade),
        ]
        with tempfile.TemporaryDirectory() as folder:
            files = []
            for name, content in zip("ab", sides):
                file = Path(folder) / f"{name}.json"
                file.write_text(json.dumps(content))
                files.append(str(file))
            done = subprocess.run([perfrun, "diff", *files, "--gate", "--json"], capture_output=True, text=True)
            assert done.returncode in (0, 4), done.stderr
            fell += done.returncode == 4
            found = [row for row in json.loads(done.stdout)["experiments"][0]["rows"] if row["metric"] == "latency"]
            assert len(found) == rows
            slower += sum(row["verdict"] == "worse" for row in found)
    return slower, fell, gates


def side(results, variants, blocks, definition, grade):
    """One side: a cell for each variant of a round, with settings of its own, so that it is judged."""
    one = json.loads(json.dumps(results))
    one["cells"] = []
    for index, (cell, round_) in enumerate(variants):
        cell = json.loads(json.dumps(cell))
        cell |= {"id": f"{index:016x}", "variant": f"row-{index}", "definition": definition, "codes": {}}
        window = slice(round_ * blocks, (round_ + 1) * blocks)
        cell["runs"] = {name: values[window] for name, values in cell["runs"].items()}
        values = sorted(cell["runs"]["latency_ns"])
        cell["metrics"]["latency_ns"]["value"] = values[len(values) // 2]
        one["cells"].append(cell)
    one |= {"comparisons": [], "controls": [], "detectable_effect": {"grade": grade, "noisy_runs": 0}}
    return one


if __name__ == "__main__":
    main()
