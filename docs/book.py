"""The book as a site, by mdBook: pages with search, every page as Markdown beside its HTML, and llms.txt.

    cargo install mdbook --locked
    python3 docs/book.py FOLDER --source https://github.com/OWNER/perfrun/blob/main

Pages are those of SUMMARY.md; links to other files of the repository lead to SOURCE. Ends with 1 where a link of the
site leads nowhere.
"""

import argparse
import html.parser
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.parse

DOCS = pathlib.Path(__file__).resolve().parent
ROOT = DOCS.parent
LINK = re.compile(r"(\]\()([^)\s]+)(\))")
WORDS = re.compile(r"\[([^\]]*)\]\([^)]*\)")
ENTRY = re.compile(r"^(?:- )?\[(?P<title>.+)\]\((?P<page>.+\.md)\)$")


def contents() -> list:
    """The lines of SUMMARY.md: a heading, or a title with its page."""
    lines = [line.strip() for line in (DOCS / "SUMMARY.md").read_text().splitlines()[1:]]
    entries = [(line.lstrip("# "), None) if line.startswith("#") else ENTRY.match(line) for line in lines if line]
    return [entry if isinstance(entry, tuple) else (entry["title"], entry["page"]) for entry in entries]


def with_links(page: str, text: str, kept: set, source: str) -> str:
    """The text of a page, with links to what is not on the site in the repository at `source`."""

    def link(match: re.Match) -> str:
        path, _, anchor = match[2].partition("#")
        target = ((DOCS / page).parent / path).resolve()
        if "://" in match[2] or not path or target in kept:
            return match[0]
        return f"{match[1]}{source}/{target.relative_to(ROOT)}{'#' * bool(anchor)}{anchor}{match[3]}"

    fenced = text.split("```")
    return "```".join(LINK.sub(link, part) if index % 2 == 0 else part for index, part in enumerate(fenced))


def llms(entries: list) -> str:
    """What programs read first (llmstxt.org): the pages as Markdown, each with its first sentence."""
    about = re.search(r'description = "(.*)"', (DOCS / "book.toml").read_text())[1]
    text = f"# perfrun\n\n> {about}\n\n"
    for title, page in entries:
        if page is None:
            text += f"\n## {title}\n\n"
            continue
        said = [line for line in (DOCS / page).read_text().splitlines()[1:] if re.match(r"[A-Za-z`*]", line)]
        sentence = WORDS.sub(lambda link: link[1], said[0])
        text += f"- [{title}]({page}): {sentence}\n"
    return text


class Page(html.parser.HTMLParser):
    """The identifiers of a page, and the addresses that it names."""

    def __init__(self, path: pathlib.Path):
        super().__init__()
        self.names, self.links = set(), []
        self.feed(path.read_text())

    def handle_starttag(self, tag: str, attributes: list) -> None:
        for name, value in attributes:
            if name == "id":
                self.names.add(value)
            elif name in ("href", "src") and value:
                self.links.append(value)


def broken(site: pathlib.Path) -> list:
    """Links of the site's pages to files or headings that are not there."""
    pages = {path: Page(path) for path in site.rglob("*.html")}
    found = []
    for path, page in pages.items():
        # 404.html names everything from the root of the server.
        for link in page.links if path.name not in ("404.html", "toc.html") else []:
            address = urllib.parse.urlsplit(link)
            if address.scheme or address.netloc:
                continue
            target = (path.parent / urllib.parse.unquote(address.path)).resolve() if address.path else path
            name = urllib.parse.unquote(address.fragment)
            is_there = target.exists() and (not name or target not in pages or name in pages[target].names)
            found += [] if is_there else [f"{path.relative_to(site)}: {link}"]
    return found


def main() -> int:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("folder", type=pathlib.Path)
    arguments.add_argument("--source", required=True)
    given = arguments.parse_args()
    entries = contents()
    names = [page for _, page in entries if page]
    pictures = set((DOCS / "screens").glob("*.png"))
    kept = {DOCS / page for page in names} | pictures
    site = given.folder.resolve()
    with tempfile.TemporaryDirectory() as folder:
        book = pathlib.Path(folder)
        for page in ["SUMMARY.md", *names]:
            (book / "src" / page).parent.mkdir(parents=True, exist_ok=True)
            text = with_links(page, (DOCS / page).read_text(), kept, given.source)
            (book / "src" / page).write_text(text)
        shutil.copytree(DOCS / "screens", book / "src" / "screens")
        shutil.copy(DOCS / "book.toml", book)
        subprocess.run(["mdbook", "build", book, "--dest-dir", site], check=True)
        for page in names:
            shutil.copy(book / "src" / page, site / page)
    (site / "llms.txt").write_text(llms(entries))
    found = broken(site)
    print("\n".join(found) or f"{len(names)} pages in {site}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
