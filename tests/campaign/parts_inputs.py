"""Cases of what people write and bring: specifications, models, data."""

import json
import zipfile

import many
import models as onnx
import mutate
from case import Case, nothing_of_failures
from parts_records import changed_table
from seeds import dataset, npy, npz

SELECTORS = ["model=*", "batch=1", "variant=fp32,device=cpu", "model=|||", "=", ",", "batch=99999999999999999999", "\u202e=\x1b[1m"]


SIZES = ["batch=1", "batch=0", "n=4294967296", "batch=18446744073709551615", "n=7,batch=3"]
FILES = ["m\x1b[31m.onnx", "m\u202e.onnx", "a b\n.onnx", "m", "%s.onnx", "m'\".onnx", "<b>&.onnx"]


def specs(seeds, rng, index):
    """A specification is validated and planned."""
    # Most fixtures are invalid as they are; what is valid gets further.
    called, text = rng.choice(seeds.specs if rng.random() < 0.2 else seeds.valid_specs)
    if rng.random() < 0.6:
        tree, called = mutate.tree(rng, many.some(rng)), "tree"
        changed = json.dumps(tree, indent=1, ensure_ascii=False).encode("utf-8", "surrogatepass")
    else:
        changed = mutate.text(rng, text, rng.choice(seeds.specs)[1])
    files = {"x.yaml": changed, **seeds.around_specs}
    more = []
    if rng.random() < 0.15:
        keys = "runs seed measure.stop.max_time variants.base.threads inputs.batch backend.mock.median models x".split()
        more = ["--set", f"{rng.choice(keys)}={rng.choice(mutate.NUMBERS + mutate.STRINGS).replace(chr(0), '')}"]
    commands = [["validate", "x.yaml", *more]]
    if b"zoo" not in changed:
        shards = ("1/2", "7/9", "4294967295/4294967295")
        extra = [["--json"], [], ["--only", rng.choice(SELECTORS)], ["--shard", rng.choice(shards)]]
        commands.append(["plan", "x.yaml", *more, *rng.choice(extra)])
    return Case(files, commands, called)


def models(seeds, rng, index):
    """A model is inspected, converted, and a specification is made for it."""
    data, note = onnx.model(rng, seeds.models)
    file = "m.onnx" if rng.random() < 0.95 else rng.choice(FILES)
    sizes = ["--inputs", rng.choice(SIZES)] if rng.random() < 0.35 else []
    precision = rng.choice(("fp16", "fp16", "bf16", "int8", "int8", "int4"))
    convert = ["convert", file, "--precision", precision, "-o", "out.onnx"]
    convert += ["--device", rng.choice(("cpu", "cuda")), "--io", rng.choice(("keep", "keep", "convert"))]
    # Static ranges are found by running the model, which ONNX Runtime does.
    convert += ["--quantization", "dynamic"] if precision == "int8" else []
    convert += ["--reduce-range"] if precision == "int8" and rng.random() < 0.2 else []
    blocks = ("16", "256", "3", "4294967295")
    convert += ["--block", rng.choice(blocks)] if precision == "int4" and rng.random() < 0.1 else []
    commands = [["inspect", file, *sizes, *rng.choice(([], ["--json"]))], convert]
    if rng.random() < 0.3:
        commands.append(["init", file, "-o", "-"])
    if rng.random() < 0.2:
        commands += [["init", file, "-o", "i.yaml"], ["plan", "i.yaml"]]
    commands.append(["inspect", "out.onnx"])
    before = [["mkfifo", "fifo"], ["truncate", "-s", "100G", "sparse"]] if b"fifo" in data or b"sparse" in data else []
    return Case({file: data, "weights": bytes(8192)}, commands, note, before=before, check=nothing_of_failures("out.onnx"))


def _numbers(rng):
    """A file of numbers, as `stat` reads it."""
    values = [round(rng.gauss(10, 1), 6) for _ in range(rng.choice((1, 4, 12, 60)))]
    kind = rng.randrange(4)
    if kind == 0:
        text = "\n".join(map(str, values))
    elif kind == 1:
        text = "time\n# comment\n" + "\n".join(map(str, values)) + "\n\n"
    elif kind == 2:
        text = json.dumps(values)
    else:
        text = json.dumps([values[at::4] for at in range(4)])
    if rng.random() < 0.3:
        text = mutate.lines(rng, text) if rng.random() < 0.3 else mutate.tokens(rng, text, rng.random() < 0.5)
    if rng.random() < 0.2:
        one = rng.choice(("0", "-1", "1e308", "-1e308", "1e-320", "5", "1e9", "0.1"))
        text = "\n".join([one] * rng.choice((1, 5, 50))) if rng.random() < 0.5 else text + "\n" + one
    data = text.encode("utf-8", "surrogatepass")
    return mutate.damage(rng, data) if rng.random() < 0.05 else data


def _stat(rng):
    words = ["a", "b"][:rng.choice((1, 2, 2))]
    of_two = ["--paired", "--higher-is-better", "--interleaved", "--session-spread 0", "--session-spread 100%"]
    options = of_two if len(words) == 2 else []
    options += ["--json", "--margin 0", "--margin 99%", "--confidence 0.999999", "--confidence 0.000001", "--unit \x1b[1m"]
    options += ["--unit " + "x" * 500]
    more = [word for option in rng.sample(options, rng.randrange(4)) for word in option.split()]
    return Case({"a": _numbers(rng), "b": _numbers(rng)}, [["stat", *words, *more]], "numbers")


def _array(rng):
    """An array with a header that may not be what follows it."""
    if rng.random() < 0.4:
        kind = rng.choice(("ff4", "qi8", "di8", "di4", "Bu1", "df8"))
        shape = rng.choice(("(40, 10)", "(40, 10)", "(40,)", "(400,)", "(1, 400)", "(0, 10)"))
        return npy([rng.choice((0, 1, 3, 9, 100)) for _ in range(400)], kind, shape)
    sizes = ["0", "1", "40", "10", "4294967296", "9223372036854775807", "18446744073709551615", "-1", "1.5", "40L", "x", ""]
    odd = [f"({rng.choice(sizes)}, {rng.choice(sizes)})", f"({', '.join(rng.choices(sizes, k=rng.randrange(40)))})"]
    shape = rng.choice(["(40, 10)", "(40,)", *odd])
    kind = rng.choice(("ff4", "qi8", "qi8", "bb1", "Bu1", "bS8", "bO", "BU3", "eV2", "ef2", "di4", "dc8", "dm8[ns]"))
    data = npy([rng.randrange(1) for _ in range(400)], kind, shape)
    if rng.random() < 0.3:
        data = data.replace(b"False", rng.choice((b"True ", b"1    ", b"None ")))
    if rng.random() < 0.2:
        data = data.replace(b"'<", rng.choice((b"'>", b"'|", b"'=", b"[('", b"'\x00")))
    return mutate.damage(rng, data) if rng.random() < 0.3 else data


def _data_file(seeds, rng):
    """A dataset with the ending of its name."""
    kind = rng.randrange(8)
    if kind < 2:
        return mutate.damage(rng, dataset(rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)))), "npz"
    if kind < 4:
        names = ["image", "labels"] + rng.sample(["../escaped", "\u202e", "", "x" * 300, "y"], rng.randrange(2))
        return npz({name: _array(rng) for name in names}), "npz"
    if kind < 6:
        return _array(rng), "npy"
    name = rng.choice(("samples", "samples", "metrics", "cells", "series", "runs"))
    data = seeds.record.get(f"{name}.parquet", seeds.record["samples.parquet"])
    return (changed_table(rng, data) if rng.random() < 0.8 else data), "parquet"


SMALL = """name: x
backend: { mock: { median: 1ms } }
models: [m]
inputs: { batch: [4] }
variants: [a, { name: b, mock: { differ: 1% } }]
runs: 1
compare: { aa: "off" }
measure: { warmup: { mode: samples, count: 2 }, stop: { mode: samples, count: 5 } }
"""


def datasets(seeds, rng, index):
    """Numbers for `stat`; data that are fitted to a model, run through the mock backend, or calibrated with."""
    if rng.random() < 0.4:
        return _stat(rng)
    data, ending = _data_file(seeds, rng)
    file = f"data.{ending}"
    kind = rng.random()
    if kind < 0.1 and seeds.runtime:
        data = mutate.damage(rng, seeds.digits) if ending == "npz" else data
        words = ["convert", "m.onnx", "--precision", "int8", "--quantization", "static", "--data", file, "-o", "out.onnx"]
        words += ["--items", "8", "--calibration", rng.choice(("min_max", "percentile", "entropy"))]
        files = {"m.onnx": dict(seeds.models)["digits-mlp.onnx"], file: data}
        env, check = {"ORT_DYLIB_PATH": seeds.runtime}, nothing_of_failures("out.onnx")
        return Case(files, [words], "calibration", env=env, check=check)
    named = {"npz": ["labels"], "npy": ["", "other.npy"], "parquet": ["", "phase", "run"]}
    labels = rng.choice(named[ending])
    told = f"dataset: {{ file: {file}{', labels: ' if labels else ''}{labels} }}\n"
    files = {file: data, "other.npy": _array(rng), "x.yaml": SMALL + told}
    if kind < 0.4:
        spec = f"models: m.onnx\ninputs: {{ batch: 1 }}\n{told}"
        files |= {"m.onnx": dict(seeds.models)["digits-mlp.onnx"], "x.yaml": spec}
        files[file] = mutate.damage(rng, seeds.digits) if ending == "npz" and rng.random() < 0.7 else data
        return Case(files, [["validate", "x.yaml"], ["plan", "x.yaml"]], f"{ending} for a model")
    return Case(files, [["plan", "x.yaml"], ["run", "x.yaml"]], f"{ending} for a run")
