"""The evidence for perfrun's verdicts: how often they are wrong about identical code, and how often they find a known
slowdown, on a quiet machine and beside a neighbour, in blocks and one arm after the other.

    python3 benches/evidence.py target/release/perfrun      # eight calibrations, then the table
    python3 benches/evidence.py --table-only                # the table alone

Each configuration has a folder below reports/calibration/, DAY-MACHINE/THREADS-quiet|disturbed-DESIGN, and is skipped if
it has its calibration.json already: what was interrupted goes on where it stopped (on a later day with --name). The
table, reports/calibration/README.md, is made of every calibration that lies there.
"""

import argparse
import datetime
import itertools
import json
import math
import pathlib
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDER = ROOT / "reports/calibration"
EFFECTS = ("3%", "5%", "10%")
NEIGHBOUR = ("--share", "0.25", "--busy", "0.5", "--seed", "42")
RULES = ("perfrun", "pooled_mann_whitney", "pooled_overlap", "pooled_change", "run_median_mann_whitney")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("perfrun", nargs="?", default=str(ROOT / "target/release/perfrun"), help="the program")
    parser.add_argument("--experiment", default=str(ROOT / "experiments/calibration.yaml"), help="with a variant `cpu`")
    parser.add_argument("--comparisons", type=int, default=40, help="of each kind and configuration (default: 40)")
    parser.add_argument("--name", help="of the folder below reports/calibration/ (default: day and machine)")
    parser.add_argument("--only", default="", help="configurations whose names match this expression: `^1-`, `quiet`")
    parser.add_argument("--wait", default="5m", help="how long a quiet one waits for a quiet machine (default: 5m)")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="passed on to perfrun")
    parser.add_argument("--table-only", action="store_true", help="measure nothing")
    parser.add_argument("--folder", type=pathlib.Path, default=FOLDER, help="in place of reports/calibration/")
    return parser.parse_args()


def machine(perfrun: str) -> str:
    """Day, processor and cores."""
    told = subprocess.run([perfrun, "doctor", "--json"], stdout=subprocess.PIPE, check=True, text=True).stdout
    host = json.loads(told)["host"]
    words = re.findall(r"[A-Za-z0-9]+", host.get("cpu") or "unknown")
    telling = [word.lower() for word in words if word not in ("R", "TM", "CPU", "Processor")]
    return "-".join([datetime.date.today().isoformat(), *telling[:4], f"{host['allowed_cores']}c"])


def own_calibration(experiment: str) -> pathlib.Path:
    """What perfrun takes for the machine's own calibration, and writes at the end of each; disturbed ones are none."""
    folders = pathlib.Path(experiment).resolve().parents
    marked = (folder for folder in folders if (folder / ".perfrun").is_dir() or (folder / ".git").exists())
    return next(marked, pathlib.Path.cwd()) / ".perfrun/calibration.json"


def measure(given: argparse.Namespace, folder: pathlib.Path, threads: int, state: str, design: str) -> None:
    command = [given.perfrun, "calibrate", given.experiment, "--comparisons", str(given.comparisons)]
    command += itertools.chain.from_iterable(("--effect", effect) for effect in EFFECTS)
    command += ["--design", design, "--set", f"variants.cpu.threads={threads}", "--output", str(folder)]
    command += itertools.chain.from_iterable(("--set", pair) for pair in given.set)
    command += ["--wait", given.wait] if state == "quiet" else []
    own = own_calibration(given.experiment)
    before = own.read_bytes() if own.exists() else None
    neighbour = None
    started = time.monotonic()
    try:
        if state == "disturbed":
            program = pathlib.Path(__file__).with_name("disturb.py")
            neighbour = subprocess.Popen([sys.executable, str(program), *NEIGHBOUR])
        code = subprocess.run(command, stdout=subprocess.DEVNULL).returncode
    finally:
        if neighbour:
            neighbour.terminate()
            neighbour.wait()
            if before is None:
                own.unlink(missing_ok=True)
            else:
                own.write_bytes(before)
    # Where single runs failed, there is a calibration all the same.
    if not (folder / "calibration.json").exists():
        sys.exit(f"{folder.name}: perfrun ended with {code}")
    print(f"{folder.name}: {(time.monotonic() - started) / 60:.1f} min, perfrun ended with {code}", flush=True)


def wilson(hits: int, of: int) -> tuple[float, float]:
    """The 95 % interval of a share."""
    z, share = 1.959964, hits / of
    middle, half = share + z * z / (2 * of), z * math.sqrt(share * (1 - share) / of + z * z / (4 * of * of))
    return max(0.0, (middle - half) / (1 + z * z / of)), min(1.0, (middle + half) / (1 + z * z / of))


def percent(share: float) -> str:
    return f"{share * 100:.0f}"


def shares(effect: dict) -> str:
    """What each rule called different, in percent; perfrun first."""
    counts = [effect.get(rule) or {} for rule in RULES]
    shown = [percent(count["different"] / count["of"]) if count.get("of") else "-" for count in counts]
    return " / ".join([f"**{shown[0]}**", *shown[1:]])


def uncertainty(comparisons: list[int]) -> str:
    fewest = max(1, min(comparisons))
    low, high = wilson(fewest // 2, fewest)
    most = wilson(0, fewest)[1]
    return (
        f"By Wilson's 95 % intervals, a share of {fewest} comparisons is uncertain by up to {(high - low) * 50:.0f} points"
        f" either way, and 0 by {most * 100:.1f}."
    )


def table(folder: pathlib.Path) -> None:
    found = []
    for path in folder.glob("*/*/calibration.json"):
        parts = re.fullmatch(r"(\d+)-(quiet|disturbed)-(blocks|sequential)", path.parent.name)
        if parts:
            found.append((path.parent.parent.name, *parts.groups(), json.loads(path.read_text())))
    # Quiet before disturbed.
    found.sort(key=lambda row: (row[0], int(row[1]), row[2] == "disturbed", row[3]))
    effects = sorted({effect["effect"] for row in found for effect in row[4]["effects"]})
    heading = [f"{round(effect * 100, 2):g} % slower" if effect else "identical" for effect in effects]
    lines = [
        "# Is identical code called different, and is a known slowdown found?",
        "",
        "Made by `python3 benches/evidence.py`, which repeats it; the method is that of [the experiment](../../docs/measurement.md).",
        "Each cell has the share of comparisons that were called different, in percent, by **perfrun** / Mann-Whitney on all"
        " iterations / no overlap of their 95 % intervals / change of their mean beyond 1 % / Mann-Whitney on medians of runs.",
    ]
    if found:
        margins = sorted({f"{round(row[4]['margin'] * 100, 2):g} %" for row in found})
        runs = sorted({row[4]["runs"] for row in found})
        lines += [
            f"perfrun's margin is {' or '.join(margins)}, that of the change 1 %; the other rules have none."
            f" A side of a comparison has {' or '.join(map(str, runs))} processes, and all rules see the same samples.",
            uncertainty([row[4]["effects"][0]["comparisons"] for row in found]),
            "Disturbed is beside `benches/disturb.py`, which keeps one core busy for a quarter of the time, in bursts of half a second on average.",
            "",
            f"| machine | threads | state | order | comparisons | {' | '.join(heading)} |",
            f"|---|--:|---|---|--:|{'---|' * len(effects)}",
        ]
    sums: dict[str, list[int]] = {}
    for name, threads, state, design, calibration in found:
        by_effect = {effect["effect"]: effect for effect in calibration["effects"]}
        identical = by_effect.get(0.0, {})
        cells = [shares(by_effect[effect]) if effect in by_effect else "-" for effect in effects]
        lines.append(f"| {name} | {threads} | {state} | {design} | {identical.get('comparisons', '-')} | {' | '.join(cells)} |")
        if count := identical.get("perfrun"):
            total = sums.setdefault(design, [0, 0])
            total[0] += count["different"]
            total[1] += count["of"]
    lines.append("")
    words = {"blocks": "In blocks", "sequential": "One arm after the other"}
    for design, (different, of) in sorted(sums.items()):
        if of:
            low, high = (f"{bound * 100:.1f}" for bound in wilson(different, of))
            lines.append(f"{words[design]}, perfrun called {different} of {of} identical pairs different (95 % interval {low} to {high} %).")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "README.md").write_text("\n".join(lines).rstrip() + "\n")
    print(f"wrote {folder / 'README.md'}, {len(found)} calibrations")


def main() -> None:
    given = arguments()
    if not given.table_only:
        given.perfrun = str(pathlib.Path(given.perfrun).resolve())
        if not pathlib.Path(given.perfrun).exists():
            sys.exit(f"there is no {given.perfrun}: `cargo build --release` makes it")
        below = given.folder / (given.name or machine(given.perfrun))
        for threads, state, design in itertools.product((1, 2), ("quiet", "disturbed"), ("blocks", "sequential")):
            folder = below / f"{threads}-{state}-{design}"
            if not re.search(given.only, folder.name):
                continue
            if (folder / "calibration.json").exists():
                print(f"{folder.name}: is there already", flush=True)
                continue
            measure(given, folder, threads, state, design)
    table(given.folder)


if __name__ == "__main__":
    main()
