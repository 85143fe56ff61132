"""The screens that people see, as images: to be looked at after a change.

    python3 tests/screens.py target/release/perfrun FOLDER

docs/screens keeps terminal-quiet.png and report-1280-light.png, for the README.

Runs tests/fixtures/specs/screens.yaml on the mock backend, quiet and busy, in a terminal of 80 columns, and takes
pictures of both screens, of report.md as GitHub renders it, and of report.html at three widths, light and dark. Needs
`script` (util-linux), Chromium, and the Python package markdown-it-py. tests/it/screens.rs checks the texts.
"""

import html
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUSY = "disturbed: 30%, disturbance: 60%, run_sd: 6%"
COLOURS = {"31": "#f47067", "32": "#57ab5a"}
TERMINAL = """<meta charset="utf-8"><style>body { margin: 0; background: #1c2128; color: #cdd9e5 }
pre { margin: 12px; font: 14px/1.25 "DejaVu Sans Mono", monospace; height: 24em; line-height: 1.25 }</style><pre>%s</pre>"""
GITHUB = """<meta charset="utf-8"><style>
body { margin: 32px auto; max-width: 850px; font: 16px/1.5 "DejaVu Sans", sans-serif; color: #1f2328 }
table { border-collapse: collapse; margin: 16px 0 } th, td { border: 1px solid #d1d9e0; padding: 6px 13px }
tr:nth-child(2n) { background: #f6f8fa } h1 { border-bottom: 1px solid #d1d9e0; padding-bottom: .3em }
img { max-width: 100%% } code { background: #eff1f3; padding: .2em .4em; border-radius: 6px; font-size: 85%% }
</style>%s"""


def screen(perfrun: pathlib.Path, place: pathlib.Path) -> str:
    """What the terminal shows on standard output, with its colours."""
    typed = f"stty cols 80 rows 24; {perfrun} experiments/precisions.yaml 2>/dev/null"
    run = subprocess.run(
        ["script", "-qec", typed, "/dev/null"], cwd=place, capture_output=True, text=True, check=True,
        env=os.environ | {"PERFRUN_WAIT": "0s"},
    )
    text = html.escape(run.stdout.replace("\r", ""))
    return re.sub("\x1b\\[(3[12])m(.*?)\x1b\\[0m", lambda found: f'<b style="color: {COLOURS[found[1]]}">{found[2]}</b>', text)


def picture(page: pathlib.Path, target: pathlib.Path, width: int, height: int, dark: bool = False) -> None:
    """A screenshot of the upper part of a page."""
    options = ["--force-dark-mode", "--blink-settings=preferredColorScheme=0"] if dark else []
    subprocess.run(
        ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", *options,
         f"--window-size={width},{height}", f"--screenshot={target}", page.as_uri()],
        capture_output=True, check=True,
    )


def main() -> None:
    from markdown_it import MarkdownIt

    perfrun, out = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    out.mkdir(parents=True, exist_ok=True)
    spec = (ROOT / "tests/fixtures/specs/screens.yaml").read_text()
    for name, text in [("quiet", spec), ("busy", spec.replace("run_sd: 0.4%", BUSY))]:
        with tempfile.TemporaryDirectory() as folder:
            place = pathlib.Path(folder)
            (place / ".perfrun").mkdir()
            (place / "experiments").mkdir()
            (place / "experiments/precisions.yaml").write_text(text)
            page = place / "terminal.html"
            page.write_text(TERMINAL % screen(perfrun, place))
            picture(page, out / f"terminal-{name}.png", 720, 450)
            if name == "busy":
                continue
            report = place / "reports/precisions"
            rendered = MarkdownIt("gfm-like", {"linkify": False}).render((report / "report.md").read_text())
            page = report / "github.html"
            page.write_text(GITHUB % rendered)
            picture(page, out / "report-md.png", 1012, 1100)
            for width, height in [(390, 1500), (768, 1500), (1280, 1500)]:
                for dark in [False, True]:
                    shade = "dark" if dark else "light"
                    picture(report / "report.html", out / f"report-{width}-{shade}.png", width, height, dark)


if __name__ == "__main__":
    main()
