"""Nine real architectures, end to end, and their outputs against ONNX Runtime's Python API.

Usage: python3 tests/light_networks.py target/release/perfrun FOLDER

FOLDER holds `light_*.onnx` of the Python package `onnx` (onnx/backend/test/data/light). Needs `onnxruntime` and `numpy`.
For each network: `perfrun init`, a short run of that specification, batch 2 refused with its remedy, and the outputs of a
worker for a random input of perfrun's own generator equal to the Python API's within 1e-5.
"""

import json
import math
import pathlib
import subprocess
import sys
import tempfile

import numpy
import onnxruntime

PERFRUN = str(pathlib.Path(sys.argv[1]).resolve())
MODELS = sorted(pathlib.Path(sys.argv[2]).resolve().glob("light_*.onnx"))
MASK = 2**64 - 1
SHORT = ["--runs", "1", "--set", "measure.stop.max_time=400ms", "--set", "measure.warmup.max_time=400ms"]


def generator(seed):
    """xoshiro256++ seeded by SplitMix64, as numbers in [0, 1)."""
    state = []
    for _ in range(4):
        seed = (seed + 0x9E3779B97F4A7C15) & MASK
        z = seed
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        state.append(z ^ (z >> 31))
    rotate = lambda x, k: ((x << k) | (x >> (64 - k))) & MASK
    while True:
        a, b, c, d = state
        yield ((rotate((a + d) & MASK, 23) + a) & MASK) >> 11
        t = (b << 17) & MASK
        c ^= a
        d ^= b
        b ^= c
        a ^= d
        state = [a, b, c ^ t, rotate(d, 45)]


def normals(seed, count):
    """Box-Muller on two numbers each, rounded to float32."""
    units = (number * 2.0**-53 for number in generator(seed))
    values = []
    for _ in range(count):
        radius = math.sqrt(-2.0 * math.log1p(-next(units)))
        values.append(radius * math.cos(2.0 * math.pi * next(units)))
    return numpy.array(values, numpy.float64).astype(numpy.float32)


def worker_outputs(model, name, shape, library, folder):
    tensor = {"name": name, "element": "float32", "shape": shape, "values": "random", "seeds": [7]}
    backend = {
        "kind": "onnxruntime", "library": library, "model": str(model), "provider": "cpu",
        "intra_threads": 2, "inter_threads": 1, "graph_optimization": "all", "session": {},
    }
    cell = {"cell": model.stem, "backend": backend, "tensors": [tensor], "input_sets": 1, "outputs": None}
    commands = [
        {"type": "hello", "protocol": 1},
        {"type": "prepare", "cell": cell},
        {"type": "outputs", "path": str(folder)},
        {"type": "finish"},
    ]
    text = "".join(json.dumps(command) + "\n" for command in commands)
    done = subprocess.run([PERFRUN, "worker"], input=text, capture_output=True, text=True, check=True)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert all(answer["type"] != "failed" for answer in answers), answers
    return [numpy.load(folder / f"{index}.npy") for index in range(len(json.loads((folder / "names.json").read_text())))]


def perfrun(folder, *words):
    return subprocess.run([PERFRUN, *words], cwd=folder, capture_output=True, text=True)


assert len(MODELS) == 9, MODELS
for model in MODELS:
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / ".perfrun").mkdir()
        done = perfrun(folder, "init", str(model))
        assert done.returncode == 0, done.stderr
        spec = f"experiments/{model.stem}.yaml"
        done = perfrun(folder, spec, *SHORT)
        assert done.returncode == 0, done.stdout + done.stderr
        refused = perfrun(folder, spec, *SHORT, "--set", "inputs.batch=2")
        assert refused.returncode == 3 and "ask for batch 1" in refused.stdout + refused.stderr, refused.stderr
        library = perfrun(folder, "runtime", "path").stdout.strip()
        session = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
        wanted = session.get_inputs()[0]
        expected = session.run(None, {wanted.name: normals(7, math.prod(wanted.shape)).reshape(wanted.shape)})
        found = worker_outputs(model, wanted.name, wanted.shape, library, folder)
        worst = max(float(numpy.abs(a - b).max()) for a, b in zip(found, expected, strict=True))
        assert worst <= 1e-5, (model.stem, worst)
        print(f"{model.stem:<22} runs; batch 2 skipped with its remedy; largest difference of outputs {worst:.1e}")
