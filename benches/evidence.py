"""The evidence for perfrun's verdicts: how often they are wrong about identical code, and how often they find a known
slowdown, on a quiet machine and next to another process that is busy, in blocks and one side after the other.

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
RULES = {
    "perfrun": "perfrun",
    "pooled_mann_whitney": "Mann-Whitney, all iterations",
    "pooled_overlap": "95 % intervals do not overlap",
    "pooled_change": "mean changed by 1 %",
    "run_median_mann_whitney": "Mann-Whitney, medians of runs",
}
LAST = "run_median_mann_whitney"
ORDERS = {"blocks": "In blocks", "sequential": "One side after the other"}


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


def percent(count: dict | None) -> str:
    """What was called different, in percent."""
    return f"{math.floor(count['different'] * 100 / count['of'] + 0.5)}" if count and count.get("of") else "-"


def uncertainty(comparisons: list[int]) -> str:
    fewest = max(1, min(comparisons))
    low, high = wilson(fewest // 2, fewest)
    most = wilson(0, fewest)[1]
    return (
        f"By Wilson's 95 % intervals, a share of {fewest} comparisons is uncertain by up to {(high - low) * 50:.0f} points"
        f" either way, and 0 by {most * 100:.1f}."
    )


def read(folder: pathlib.Path) -> list[dict]:
    """Every calibration, quiet before disturbed."""
    found = []
    for path in folder.glob("*/*/calibration.json"):
        parts = re.fullmatch(r"(\d+)-(quiet|disturbed)-(blocks|sequential)", path.parent.name)
        if parts:
            threads, state, design = parts.groups()
            order = (path.parent.parent.name, int(threads), state == "disturbed", design)
            place = f"[{path.parent.parent.name}]({path.relative_to(folder).parent.as_posix()}/calibration.md)"
            found.append((order, {"names": [place, threads, state, design], **json.loads(path.read_text())}))
    return [row for _, row in sorted(found, key=lambda pair: pair[0])]


def rows(found: list[dict], cells) -> list[str]:
    return [f"| {' | '.join([*row['names'], *cells({effect['effect']: effect for effect in row['effects']})])} |" for row in found]


def heading(effect: float) -> str:
    return f"{round(effect * 100, 2):g} % slower" if effect else "identical"


def worst(found: list[dict], design: str, effects: list[float]) -> list[str]:
    """The most alarms and the fewest slower copies of all calibrations, rule by rule."""
    of_design = [row for row in found if row["names"][3] == design]
    if not of_design:
        return []

    def cell(rule: str, effect: float) -> str:
        counts = [each[rule] for row in of_design for each in row["effects"] if each["effect"] == effect and each.get(rule)]
        if not counts:
            return "-"
        ordered = sorted(counts, key=lambda count: count["different"] / count["of"])
        one = ordered[0] if effect else ordered[-1]
        return f"{one['different']} of {one['of']}"

    identical = [each["perfrun"] for row in of_design for each in row["effects"] if each["effect"] == 0.0]
    different, of = sum(count["different"] for count in identical), sum(count["of"] for count in identical)
    low, high = (f"{bound * 100:.1f}" for bound in wilson(different, of))
    who = "perfrun" if design == "blocks" else "perfrun's rule"
    return [
        f"| {ORDERS[design].lower()} | {' | '.join(map(heading, effects))} |",
        "|---|" + "--:|" * len(effects),
        *(f"| {words} | {' | '.join(cell(rule, effect) for effect in effects)} |" for rule, words in RULES.items()),
        "",
        f"{ORDERS[design]}, {who} called {different} of {of} identical pairs different (95 % interval {low} to {high} %).",
        "",
    ]


def table(folder: pathlib.Path) -> None:
    found = read(folder)
    if not found:
        sys.exit(f"there is no calibration below {folder}")
    effects = sorted({effect["effect"] for row in found for effect in row["effects"]})
    slower = [effect for effect in effects if effect]
    margins = sorted({f"{round(row['margin'] * 100, 2):g} %" for row in found})
    runs = sorted({row["runs"] for row in found})
    comparisons = sorted({effect["comparisons"] for row in found for effect in row["effects"]})
    names = "| calibration | threads | machine | order |"
    lines = [
        "# Is identical code called different, and is a known slowdown found?",
        "",
        "`python3 benches/evidence.py target/release/perfrun` measures this and writes this page; [how and why](../../docs/reference/other-tools.md#calibration-perfrun-and-four-rules-of-other-tools).",
        f"Each share is of {' or '.join(map(str, comparisons))} comparisons, with {' or '.join(map(str, runs))} processes a side;"
        " all rules see the same samples.",
        f"perfrun's margin is {' or '.join(margins)}, that of the change of the mean 1 %; the other rules have none.",
        "perfrun refuses to compare what was measured one side after the other; its row there says what its rule makes of such runs.",
        uncertainty(comparisons),
        "Disturbed is beside `benches/disturb.py`, which keeps one core busy for a quarter of the time, in bursts of half a second on average.",
        "",
        f"## The worst of {len(found)} calibrations, rule by rule",
        "",
        *worst(found, "blocks", effects),
        *worst(found, "sequential", effects),
        "## Identical code, called different, in percent",
        "",
        f"{names} {' | '.join(RULES.values())} |",
        "|---|--:|---|---|" + "--:|" * len(RULES),
        *rows(found, lambda by: [percent(by.get(0.0, {}).get(rule)) for rule in RULES]),
    ]
    if slower:
        lines += [
            "",
            "## Slower code, found, in percent",
            "",
            "By perfrun, and in parentheses by Mann-Whitney on medians of runs, the one other rule that takes a process for an observation.",
            "",
            f"{names} {' | '.join(map(heading, slower))} |",
            "|---|--:|---|---|" + "--:|" * len(slower),
            *rows(found, lambda by: [f"{percent(by.get(e, {}).get('perfrun'))} ({percent(by.get(e, {}).get(LAST))})" for e in slower]),
        ]
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
