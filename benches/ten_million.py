"""How long a record of ten million samples takes to be summarised, and in how much memory.

    python3 benches/ten_million.py target/release/perfrun

Writes a specification for the mock backend (10 cells, 10 runs, 100 000 samples each), measures it, and renders
results.json alone from the stored record: reading Parquet, statistics of every cell and run, verdicts. Wanted: under
0.5 s beyond the start of the process, in less than 360 MiB, on two cores.
"""

import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

SPEC = """\
backend: { mock: { median: 1ms, run_sd: 1%, noise: 5%, ar1: 0.5 } }
models: [m1, m2, m3, m4, m5]
variants: [fp32, other]
runs: 10
compare: { aa: off }
measure: { warmup: { mode: samples, count: 10 }, stop: { mode: samples, count: 100000, max_time: 10m } }
"""


def timed(command: list[str], folder: pathlib.Path) -> tuple[float, float]:
    """Wall seconds and the largest resident set in MiB."""
    started = time.monotonic()
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit(f"{command} failed")
    return time.monotonic() - started, usage.ru_maxrss / 1024


def main() -> None:
    perfrun = str(pathlib.Path(sys.argv[1]).resolve())
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / ".perfrun").mkdir()
        (folder / "big.yaml").write_text(SPEC)
        timed([perfrun, "big.yaml", "--format", "json"], folder)
        record = next((folder / ".perfrun/records/big").iterdir())
        start = statistics.median(timed([perfrun, "--version"], folder)[0] for _ in range(5))
        command = [perfrun, "report", str(record), "--output", "out", "--format", "json"]
        tries = [timed(command, folder) for _ in range(5)]
        times = [seconds - start for seconds, _ in tries]
        print(f"10,000,000 samples: {min(times):.2f} to {max(times):.2f} s beyond the start, median {statistics.median(times):.2f} s")
        print(f"largest resident set: {max(memory for _, memory in tries):.0f} MiB")


main()
