"""Cases of what other people hand over: records, results, archives."""

import io
import json
import pathlib
import struct
import tarfile

import mutate
import wire
from case import Case, pages
from seeds import dataset

RECORD = "r/20260101T000000Z-00000000"
OF_RESULTS = ("latex", "junit", "csv", "bmf", "github-action-benchmark", "parquet", "json")


def _without_sums(files):
    """As an editor leaves it who takes the sums out, so that the parsers see what follows."""
    mark = json.loads(files["complete.json"])
    mark.pop("sha256", None)
    return files | {"complete.json": json.dumps(mark).encode()}


def _changed_files(seeds, rng, files):
    """A record of which one or two files are changed."""
    if "complete.json" in files and rng.random() < 0.75:
        files = _without_sums(files)
    notes = []
    for _ in range(rng.choice((1, 1, 1, 2))):
        # Most of what a record says stands in these.
        telling = [one for one in sorted(files) if one.startswith(("passes", "journal"))]
        name = rng.choice((rng.choice(sorted(files)), "manifest.json", rng.choice(telling)))
        data, kind = files[name], rng.random()
        if kind < 0.04:
            files = {one: data for one, data in files.items() if one != name}
        elif kind < 0.08:
            files = files | {name: files[rng.choice(sorted(files))]}
        elif name.endswith(".json"):
            files = files | {name: mutate.json_bytes(rng, data)}
        else:
            files = files | {name: changed_table(rng, data, files.get("runs.parquet", b""))}
        notes.append(name)
        if name not in files:
            break
    return files, ", ".join(notes)


def changed_table(rng, data, other=b""):
    """A table that is damaged: anywhere, where its numbers are, or in its description, whose length is made right again."""
    kind = rng.random()
    if kind < 0.3:
        return mutate.damage(rng, data, other)
    length = struct.unpack("<I", data[-8:-4])[0]
    body, described = data[4:-length - 8], data[-length - 8:-8]
    if kind < 0.6:
        body = mutate.damage(rng, body)
    elif kind < 0.75:
        described = mutate.damage(rng, described)
    else:
        # Counts and sizes are integers of one to ten bytes.
        at = rng.randrange(len(described))
        number = rng.choice((0, 1, 2, 127, 2**15, 2**31 - 1, 2**31, 2**32 - 1, 2**40, 2**63, 2**64 - 1))
        described = described[:at] + wire.varint(number) + described[at + rng.choice((1, 1, 1, 2, 3)):]
    return data[:4] + body + described + struct.pack("<I", len(described)) + data[-4:]


def records(seeds, rng, index):
    """A record of which a file is changed is reported, packed, listed, planned by, resumed, compared."""
    kind = rng.random()
    files = seeds.record if kind < 0.7 else seeds.killed
    changed, note = _changed_files(seeds, rng, files)
    here, whole = (f".perfrun/records/seed/20260101T000000Z-0000000{number}" for number in (1, 0))
    placed = {f"{here}/{name}": data for name, data in changed.items()}
    placed |= {f"{whole}/{name}": data for name, data in seeds.record.items()}
    formats = rng.choice(("md,html,json", f"md,html,{','.join(OF_RESULTS)}"))
    commands = [["report", here, "--output", "out", "--format", formats]]
    more = [["export", here, "a.tar.zst"], ["list"], ["list", "--json"], ["plan", "--pilot", here], ["clean", "--yes"]]
    more += [["diff", f"path:{here}", f"path:{whole}"], ["diff", f"path:{whole}", f"path:{here}", "--json"]]
    more += [["merge", here, whole], ["merge", f"one={here}", f"two={whole}", "--output", "out3"]]
    more += [["report", "seed", "--output", "out2"]]
    commands += rng.sample(more, 2)
    # What is resumed runs to its end, which takes a while.
    if files is seeds.killed and rng.random() < 0.1 and b'"runs": 500' not in changed.get("manifest.json", b""):
        commands.append(["run", "--resume", here])
    return Case(placed, commands, note, codes=(0, 2, 3, 4), check=pages)


GIT = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
for who in ("AUTHOR", "COMMITTER"):
    GIT |= {f"GIT_{who}_NAME": "a", f"GIT_{who}_EMAIL": "a@b.c", f"GIT_{who}_DATE": "2026-01-01T00:00:00Z"}


def _committed(a, b):
    """Two commits with a report each, as a site and a history look at them."""
    commit = [["git", "add", "-A"], ["git", "commit", "-qm", "c"]]
    before = [["git", "init", "-q"], *commit, ["cp", "b/x/results.json", "reports/x/results.json"], *commit]
    commands = [["site", "out"], ["history", "x"], ["history", "x", "--json", "--output", "out2"], ["diff", "HEAD~1", "--all"]]
    files = {"reports/x/results.json": a, "b/x/results.json": b}
    return Case(files, commands, "committed", codes=(0, 2, 3, 4), before=before, env=GIT, check=pages)


def results(seeds, rng, index):
    """Results that are changed are compared with what they were, and rendered."""
    called, data = rng.choice(seeds.results + seeds.results[-1:] * 3)
    a, b = data, mutate.json_bytes(rng, data)
    if rng.random() < 0.15:
        return _committed(a, b)
    if rng.random() < 0.5:
        a, b = b, a
    if rng.random() < 0.1:
        a = b
    files = {"a/x/results.json": a, "b/x/results.json": b}
    words = ["diff", "path:a/x/results.json", "path:b/x/results.json", "--allow", "all"]
    ways = ["", "--json", "--all", "--format md", "--format html", "--format junit", "--unchanged", "--gate"]
    words += rng.choice([*ways, "--output out", "--output out --format md,html,json,junit"]).split()
    formats = ",".join(rng.sample(("md", "html", *OF_RESULTS), 3))
    commands = [words, ["report", rng.choice(("a/x", "b/x/results.json")), "--format", formats, "--output", "out"]]
    if rng.random() < 0.2:
        commands.append(["diff", "path:a", "path:b", "--all", *rng.choice(([], ["--bisect"]))])
    if rng.random() < 0.3 and called.startswith("seed"):
        # Without trust nothing is run that a stranger chose.
        files["data.npz"] = dataset()
        commands.append(["reproduce", "b/x/results.json", *rng.choice(([], ["--json"]))])
    codes = (0, 1, 2, 3, 4, 125, 129) if any("--bisect" in words for words in commands) else (0, 2, 3, 4)
    return Case(files, commands, called, codes=codes, check=pages)


def zstd(data):
    """A frame of Zstandard whose blocks hold what they stand for."""
    out = bytearray(struct.pack("<IBB", 0xFD2FB528, 0, 0x58))
    blocks = [data[at:at + (1 << 17)] for at in range(0, len(data), 1 << 17)] or [b""]
    for index, block in enumerate(blocks):
        same = len(block) == 1 << 17 and block.count(block[:1]) == len(block)
        head = (index == len(blocks) - 1) | (2 if same else 0) | len(block) << 3
        out += struct.pack("<I", head)[:3] + (block[:1] if same else block)
    return bytes(out)


def _entry(rng, archive, name, data):
    """A file of an archive; now and then one that it must not be."""
    entry = tarfile.TarInfo(name)
    entry.size = len(data)
    if rng.random() < 0.012:
        # Links, folders, pipes, devices, sparse files, and headers of what follows.
        kind = rng.choice((b"1", b"2", b"3", b"4", b"5", b"6", b"7", b"S", b"V", b"x", b"L", b"g"))
        entry.type, entry.linkname = kind, rng.choice(("../../escaped", "/tmp/perfrun-campaign-escaped", "manifest.json", ""))
        entry.size = entry.size if kind == b"7" else 0
    if rng.random() < 0.05:
        entry.mode = rng.choice((0, 0o4777, 0o7777))
    if rng.random() < 0.03:
        key = rng.choice(("path", "size", "linkpath", "GNU.sparse.size", "GNU.sparse.name"))
        entry.pax_headers = {key: rng.choice(mutate.STRINGS + mutate.NUMBERS)}
    archive.addfile(entry, io.BytesIO(data))


def _name(rng, name):
    """The name of an entry; now and then one that leads elsewhere."""
    if rng.random() < 0.99:
        return name
    head, _, tail = name.rpartition("/")
    ways = [f"{head}/../../../../escaped", f"../{name}", f"/{name}", "/tmp/perfrun-campaign-escaped"]
    ways += [f"{head}/./{tail}", f"{head}//{tail}", f"{head}/{tail}/{tail}", f"{head}/.git/hooks/post-commit"]
    ways += [f"{head}/{rng.choice(mutate.STRINGS)}".replace("\0", ""), name.replace("record", "files"), "seed.yaml"]
    ways += [name.upper(), name + "\\x"]
    return rng.choice(ways)


def _only_known(folder, done):
    """What was imported lies in the store, and with `--files` where the specification says."""
    known = {".perfrun", "a.tar.zst", "seed.yaml", "data.npz", "out", "diff.md"}
    strays = [path.name for path in pathlib.Path(folder).iterdir() if path.name not in known]
    left = [str(path.name) for path in pathlib.Path(folder, ".perfrun/records").glob(".import*")]
    return [f"{name!r} was written" for name in strays] + [f"{name} was left" for name in left] + pages(folder, done)


def archives(seeds, rng, index):
    """An archive is unpacked into the store; what is there then is reported."""
    kind = rng.random()
    if kind < 0.15:
        data, note = mutate.damage(rng, seeds.archive), "damaged"
    else:
        files, note = _changed_files(seeds, rng, seeds.record) if rng.random() < 0.6 else (seeds.record, "names")
        top = rng.choice(("20260101T000000Z-00000000",) * 9 + ("..", "", ".", "a/b", "\u202e", "x" * 200))
        content = {f"{top}/record/{name}": data for name, data in files.items()}
        spec = json.loads(seeds.record["manifest.json"])["spec"]["text"]
        content |= {f"{top}/files/seed.yaml": spec.encode(), f"{top}/report.html": b"<p>"}
        out = io.BytesIO()
        form = rng.choice((tarfile.GNU_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT, tarfile.USTAR_FORMAT))
        archive = tarfile.open(fileobj=out, mode="w", format=form)
        try:
            for name, data in content.items():
                _entry(rng, archive, _name(rng, name), data)
            if rng.random() < 0.1:
                _entry(rng, archive, rng.choice(sorted(content)), bytes(rng.choice((0, 1 << 20, 1 << 27))))
        except (ValueError, UnicodeError, OverflowError, struct.error):
            pass
        archive.close()
        data = out.getvalue()
        if rng.random() < 0.15:
            # In the headers, which stand at every 512th byte.
            at = 512 * rng.randrange(len(data) // 512)
            data = data[:at] + mutate.damage(rng, data[at:at + 512])[:512].ljust(512, b"\0") + data[at + 512:]
        data = zstd(data)
    commands = [["import", "a.tar.zst", *rng.choice(([], ["--files"]))], ["list"], ["report", "latest", "--output", "out"]]
    return Case({"a.tar.zst": data}, commands, note, check=_only_known)
