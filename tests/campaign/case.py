"""A case: files, commands, and what is looked at afterwards."""

import dataclasses
import pathlib
import re
import xml.etree.ElementTree

import process


@dataclasses.dataclass
class Case:
    """Files by their path in the working folder, and commands that are given to perfrun one after the other."""

    files: dict
    commands: list
    note: str
    codes: tuple = (0, 2, 3)
    mebibytes: int = process.MEBIBYTES
    limits: dict = dataclasses.field(default_factory=dict)
    env: dict = dataclasses.field(default_factory=dict)
    # Commands of other programs that come first.
    before: list = dataclasses.field(default_factory=list)
    # A command that must succeed, or the case says nothing: where a process cannot even be loaded.
    needs: list = None
    # Problems in the working folder, by what was done.
    check: object = None

    def write(self, folder):
        """Puts the files into a folder, which is a root of its own."""
        pathlib.Path(folder, ".perfrun").mkdir(parents=True, exist_ok=True)
        for name, data in self.files.items():
            path = pathlib.Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data if isinstance(data, bytes) else data.encode("utf-8", "surrogatepass"))


def pages(folder, done):
    """What is wrong with the pages that were written: they show what foreign texts said."""
    problems = []
    for path in sorted(pathlib.Path(folder).rglob("*")):
        if path.suffix not in (".md", ".html", ".tex", ".xml", ".svg") or not path.is_file():
            continue
        text = path.read_text(errors="replace")
        if found := process.TREACHEROUS.search(text):
            problems.append(f"{path.name} holds {found[0]!r}")
        # A span of code shows what stands in it.
        bare = re.sub(r"(?<!`)(`+)(?!`).+?(?<!`)\1(?!`)", "", text, flags=re.DOTALL) if path.suffix == ".md" else text
        if path.suffix != ".tex" and re.search(r"(?<!\\)<script>alert\(1\)|</script><img", bare):
            problems.append(f"{path.name} holds markup of a name")
        if path.suffix == ".tex" and re.search(r"\\(input\{x|write18|end\{tabular\} &)", text):
            problems.append(f"{path.name} holds a command of a name")
        if path.suffix in (".xml", ".svg"):
            try:
                xml.etree.ElementTree.fromstring(text)
            except xml.etree.ElementTree.ParseError as error:
                problems.append(f"{path.name} is no XML: {error}")
    return problems


def nothing_of_failures(name):
    """A check: what could not be written is not there, nor is anything half written."""
    def check(folder, done):
        made = [one for one in done if name in one.words]
        is_there = pathlib.Path(folder, name).exists()
        strays = [path.name for path in pathlib.Path(folder).iterdir() if path.name.startswith((".tmp", "tmp"))]
        problems = [f"{stray} was left" for stray in strays]
        if made and is_there != (made[-1].code == 0):
            problems.append(f"exit code {made[-1].code}, and {name} is {'' if is_there else 'not '}there")
        return problems
    return check
