"""The screens that people see, as images: to be looked at after a change.

    python3 tests/screens.py target/release/perfrun FOLDER
    python3 tests/screens.py target/debug/perfrun docs/screens --quickstart

The first runs tests/fixtures/specs/screens.yaml on the mock backend, quiet and busy, in a terminal of 80 columns, and
takes pictures of both screens and of report.md as GitHub renders it; those of report.html are tests/pages/pages.mjs's.
The second runs experiments/quickstart.yaml in this checkout, for a minute or two, replaces the committed report, and makes
the two pictures of README from it: terminal.png, with its text in terminal.txt, and report.png. Needs `script`
(util-linux), Chromium, and the Python packages markdown-it-py, pillow and pyte. tests/it/screens.rs checks the texts.
"""

import argparse
import html
import os
import pathlib
import subprocess
import tempfile

import pyte
from markdown_it import MarkdownIt
from PIL import Image

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUSY = "disturbed: 30%, disturbance: 60%, run_sd: 6%"
COLOURS = {"red": "#f47067", "green": "#57ab5a", "brown": "#c69026", "cyan": "#39c5cf", "blue": "#539bf5"}
LINE, COLUMN, EDGE = 18, 8.43, 14
TERMINAL = f"""<meta charset="utf-8"><style>body {{ margin: 0; background: #1c2128; color: #cdd9e5 }}
pre {{ margin: {EDGE}px; font: 14px/{LINE}px "DejaVu Sans Mono", monospace }}</style><pre>%s</pre>"""
GITHUB = """<meta charset="utf-8"><style>
body { margin: 32px auto; max-width: 850px; font: 16px/1.5 "DejaVu Sans", sans-serif; color: #1f2328 }
table { border-collapse: collapse; margin: 16px 0 } th, td { border: 1px solid #d1d9e0; padding: 6px 13px }
tr:nth-child(2n) { background: #f6f8fa } h1 { border-bottom: 1px solid #d1d9e0; padding-bottom: .3em }
img { max-width: 100%% } code { background: #eff1f3; padding: .2em .4em; border-radius: 6px; font-size: 85%% }
</style>%s"""


def screen(root: pathlib.Path, typed: str, columns: int, rows: int, wait: str) -> pyte.Screen:
    """What a terminal of this size shows when a command has ended."""
    run = subprocess.run(
        ["script", "-qec", f"stty cols {columns} rows {rows}; {typed}", "/dev/null"], cwd=root, capture_output=True,
        check=True, env={name: value for name, value in os.environ.items() if name != "NO_COLOR"} | {"PERFRUN_WAIT": wait},
    )
    shown = pyte.Screen(columns, rows)
    pyte.ByteStream(shown).feed(run.stdout)
    return shown


def line(characters: dict, columns: int) -> str:
    """A line of a screen as HTML, with its colours."""
    text = ""
    for column in range(columns):
        character = characters[column]
        data = html.escape(character.data)
        style = f"color: {COLOURS[character.fg]};" if character.fg in COLOURS else ""
        style += "font-weight: bold" if character.bold else ""
        text += f'<span style="{style}">{data}</span>' if style else data
    return text.rstrip()


def terminal(shown: pyte.Screen, typed: str, target: pathlib.Path) -> None:
    """A picture of a screen below the command, without the empty lines at its end."""
    lines = [f"$ {html.escape(typed)}"] + [line(shown.buffer[row], shown.columns) for row in range(shown.lines)]
    while not lines[-1]:
        lines.pop()
    with tempfile.TemporaryDirectory() as folder:
        page = pathlib.Path(folder) / "terminal.html"
        page.write_text(TERMINAL % "\n".join(lines))
        width, height = round(shown.columns * COLUMN) + 2 * EDGE, len(lines) * LINE + 2 * EDGE
        picture(page, target, width, height)


def picture(page: pathlib.Path, target: pathlib.Path, width: int, height: int) -> None:
    """A screenshot of the upper part of a page, with two pixels a point and at most 64 colours, to keep it below 200 kB."""
    subprocess.run(
        ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--force-device-scale-factor=2",
         f"--window-size={width},{height}", f"--screenshot={target}", page.as_uri()],
        capture_output=True, check=True,
    )
    colours = Image.open(target).convert("RGB")
    few = colours.quantize(64, method=Image.Quantize.MAXCOVERAGE, kmeans=4, dither=Image.Dither.NONE)
    few.save(target, optimize=True)


def quickstart(perfrun: pathlib.Path, out: pathlib.Path) -> None:
    """The pictures of README, and the report that they are of."""
    shown = screen(ROOT, f"{perfrun} experiments/quickstart.yaml --replace", 100, 60, "10m")
    terminal(shown, "perfrun experiments/quickstart.yaml", out / "terminal.png")
    text = "\n".join(line.rstrip() for line in shown.display).rstrip() + "\n"
    (out / "terminal.txt").write_text(text)
    picture(ROOT / "reports/quickstart/report.html", out / "report.png", 1280, 1250)
    print(text)


def screens(perfrun: pathlib.Path, out: pathlib.Path) -> None:
    """Pictures of a mock run, quiet and busy."""
    spec = (ROOT / "tests/fixtures/specs/screens.yaml").read_text()
    for name, text in [("quiet", spec), ("busy", spec.replace("run_sd: 0.4%", BUSY))]:
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / ".perfrun").mkdir()
            (root / "experiments").mkdir()
            (root / "experiments/precisions.yaml").write_text(text)
            shown = screen(root, f"{perfrun} experiments/precisions.yaml 2>/dev/null", 80, 24, "0s")
            terminal(shown, "perfrun experiments/precisions.yaml", out / f"terminal-{name}.png")
            if name == "busy":
                continue
            report = root / "reports/precisions"
            rendered = MarkdownIt("gfm-like", {"linkify": False}).render((report / "report.md").read_text())
            page = report / "github.html"
            page.write_text(GITHUB % rendered)
            picture(page, out / "report-md.png", 1012, 1100)


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("perfrun", type=pathlib.Path)
    arguments.add_argument("out", type=pathlib.Path)
    arguments.add_argument("--quickstart", action="store_true")
    given = arguments.parse_args()
    out = given.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    (quickstart if given.quickstart else screens)(given.perfrun.resolve(), out)


if __name__ == "__main__":
    main()
