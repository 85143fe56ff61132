"""Cases of one value: every number and text of results and records, one after the other, is made something extreme."""

import json

import many
import mutate
from case import Case, pages

FLOATS = [1.7976931348623157e308, -1e300, 1e100, 1e20, 0.0, -1.0, 5e-324, 1e-100]
INTEGERS = [0, 1, 2**16, 2**31 - 1, 2**32 - 1, 2**53, 2**63 - 1, 2**64 - 1]
PATHS = "/dev/zero /dev/stdin /proc/self/mem fifo folder loop sparse nothing . .. ~ * ** models x.yaml /".split()
TEXTS = ["", "\x1b[31m\u202e", "x" * 3000, "../../escaped", "\u200b\ufeff"]
TEXTS += ["</script><img src=x onerror=alert(1)>", "`<script>alert(1)</script>`\n# h\n|a|"]
# What is no plain file, for paths that lead there.
ODD = [["mkfifo", "fifo"], ["ln", "-s", "loop", "loop"], ["truncate", "-s", "100G", "sparse"]]
OLD = ".perfrun/records/seed/20260101T000000Z-00000000"
NEW = ".perfrun/records/seed/20260101T000000Z-00000001"
FORMATS = "md,html,latex,junit,csv,bmf,github-action-benchmark,json,parquet"


def walk(value, path=""):
    """Every leaf with the keys that lead to it; all of a list count as one."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in pairs:
        below = f"{path}/{key if isinstance(value, dict) else '*'}"
        if isinstance(inner, dict | list):
            yield from walk(inner, below)
        elif inner is not None:
            yield below, value, key


def values_for(old, source):
    """What replaces a value: of its own type, so that it is read."""
    if source == "spec" and isinstance(old, str):
        return TEXTS + PATHS + mutate.NUMBERS
    if source == "spec" and not isinstance(old, bool):
        return mutate.VALUES
    if isinstance(old, bool):
        return [not old]
    if isinstance(old, int):
        # Where a number happens to be whole it may be read as one that is not.
        return INTEGERS + [1.7976931348623157e308, 1e100]
    return FLOATS if isinstance(old, float) else TEXTS


def places(seeds):
    """Every case: where the file comes from, its name, the keys that lead to the value, and which extreme it gets."""
    sources = [("spec", "x.yaml", json.dumps(many.SPEC | {"matrix": {}}).encode())]
    sources += [("results", called, data) for called, data in seeds.results]
    sources += [("killed", name, data) for name, data in _one_of_each(seeds.killed)]
    sources += [("record", name, data) for name, data in seeds.record.items() if name.endswith(".json")]
    seen, found = set(), []
    for source, name, data in sources:
        for path, holder, key in walk(json.loads(data)):
            kind = source if source in ("results", "spec") else name
            for which in range(len(values_for(holder[key], source))) if (kind, path) not in seen else ():
                found.append((source, name, path, which))
            seen.add((kind, path))
    return found


def _one_of_each(files):
    """Of the files of a journal the first of the rehearsal and the first other run."""
    journal = [name for name in sorted(files) if name.startswith("journal/")]
    chosen = [next(name for name in journal if "-pilot-" in name), next(name for name in journal if "-main-" in name)]
    return [(name, files[name]) for name in chosen]


def changed(rng, data, path, which, source):
    """The file with one of the values, or all of them, replaced."""
    value = json.loads(data)
    # A mark of completeness has lost its sums before, and a specification may be for another backend.
    found = [(holder, key) for below, holder, key in walk(value) if below == path]
    if not found:
        return data
    for holder, key in found if rng.random() < 0.5 else [rng.choice(found)]:
        new = values_for(holder[key], source)
        holder[key] = new[which % len(new)]
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")


def leaf(seeds, rng, index):
    """One value of results or of a record is an extreme of its type."""
    source, name, path, which = seeds.leaves[index % len(seeds.leaves)]
    if source == "spec":
        spec = many.SPEC | {"matrix": {}}
        if rng.random() < 0.5 and "backend" not in path:
            # What files of models say is read only by the other backend.
            spec = spec | {"backend": "onnxruntime"}
        files = {"x.yaml": changed(rng, json.dumps(spec).encode(), path, which, source), "folder/a": "", **seeds.around_specs}
        commands = [["validate", "x.yaml"], ["plan", "x.yaml"], ["plan", "x.yaml", "--json"]]
        return Case(files, commands, f"{source} {path} {which}", before=ODD, check=pages)
    if source == "results":
        old = dict(seeds.results)[name]
        new = changed(rng, old, path, which, source)
        sides = [old, new] if rng.random() < 0.5 else [new, old]
        files = {"a/x/results.json": sides[0], "b/x/results.json": sides[1]}
        compared = ["diff", "path:a", "path:b", "--allow", "all", "--all", "--output", "out", "--format", "md,html,json,junit"]
        reported = ["report", "a/x" if sides[0] is new else "b/x", "--format", FORMATS, "--output", "out2"]
        commands = [compared, reported]
    else:
        files = seeds.killed if source == "killed" else {key: data for key, data in seeds.record.items()}
        if "complete.json" in files:
            mark = json.loads(files["complete.json"])
            mark.pop("sha256", None)
            files["complete.json"] = json.dumps(mark).encode()
        files = files | {name: changed(rng, files[name], path, which, source)}
        files = {f"{NEW}/{key}": data for key, data in files.items()}
        files |= {f"{OLD}/{key}": data for key, data in seeds.record.items()}
        compared = ["diff", f"path:{OLD}", f"path:{NEW}", "--allow", "all", "--output", "out2"]
        commands = [["report", NEW, "--output", "out", "--format", FORMATS], compared, ["plan", "--pilot", NEW]]
    return Case(files, commands, f"{source} {name} {path} {which}", codes=(0, 2, 3, 4), check=pages)
