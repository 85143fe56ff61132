"""What cases begin with: files of the repository, and what perfrun makes of them."""

import io
import os
import pathlib
import re
import shutil
import signal
import struct
import subprocess
import time
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]

# A little of everything that a record holds, in a few seconds.
SPEC = """name: seed
description: What every table of a record is made from
backend:
  mock: { median: 5ms, run_sd: 1%, noise: 2%, ar1: 0.5, warmup_excess: 20%, warmup_time: 20ms,
    device: { watts: 250, memory: 10% } }
models: [detector]
inputs: { batch: [1, 4] }
variants:
  - base
  - { name: heavier, mock: { scale: 1.05, differ: 1% } }
  - { name: broken, mock: { fail: { kind: crash, at: measure, runs: [1] } } }
devices: [cpu, cuda]
runs: 5
dataset: { file: data.npz, labels: labels }
choose: { best: latency, within: [{ metric: peak_rss, max: 1GiB }] }
goals: [{ name: fast, metric: latency, max: 20ms }]
gate: [{ metric: latency, worse_by: 5% }]
tables: [{ name: wide, rows: [model, variant], columns: [device, input], show: [latency, speedup] }]
measure: { warmup: { mode: samples, count: 5 }, stop: { mode: samples, count: 30 } }
"""


def npy(values, kind, shape):
    """An array in NumPy's format; `kind` is a letter of `struct` and one of NumPy."""
    header = f"{{'descr': '<{kind[1:]}', 'fortran_order': False, 'shape': {shape}, }}"
    header += " " * (63 - (len(header) + 10) % 64) + "\n"
    data = struct.pack(f"<{len(values)}{kind[0]}", *values)
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data


def npz(arrays, method=zipfile.ZIP_DEFLATED):
    """Arrays by name in one file."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, data in arrays.items():
            archive.writestr(zipfile.ZipInfo(name + ".npy"), data, method)
    return out.getvalue()


def dataset(method=zipfile.ZIP_DEFLATED):
    """Scores of ten classes for forty items, with labels."""
    scores = [(item * 7 + index * 13) % 11 / 3 for item in range(40) for index in range(10)]
    labels = npy([item % 10 for item in range(40)], "qi8", "(40,)")
    return npz({"image": npy(scores, "ff4", "(40, 10)"), "labels": labels}, method)


def files_below(folder):
    """The files below a folder with their bytes, by path; logs and reports left out."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and path.suffix in (".json", ".parquet"))
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths if path.name != "results.json"}


class Seeds:
    """Seeds for the parts that are wanted; what perfrun makes lies in a folder and is found there again."""

    def __init__(self, perfrun, folder, env):
        self.perfrun, self.folder, self.env = str(perfrun), pathlib.Path(folder), env
        self.folder.mkdir(parents=True, exist_ok=True)
        paths = [*ROOT.glob("experiments/*.yaml"), *ROOT.glob("tests/fixtures/specs/**/*.yaml"), *ROOT.glob("docs/**/*.yaml")]
        self.specs = [(path.name, path.read_text()) for path in sorted(paths)] + [("seed.yaml", SPEC)]
        # Examples in the documents, each in its fence.
        for path in sorted([ROOT / "README.md", *ROOT.glob("docs/**/*.md")]):
            blocks = re.findall(r"^```yaml\n(.*?)^```", path.read_text(), re.DOTALL | re.MULTILINE)
            self.specs += [(f"{path.name}-{index}", block) for index, block in enumerate(blocks)]
        paths = [*ROOT.glob("experiments/models/*.onnx"), *ROOT.glob("tests/fixtures/models/*.onnx")]
        self.models = [(path.name, path.read_bytes()) for path in sorted(paths)]
        paths = [*ROOT.glob("reports/*/results.json")]
        self.results = [(f"{path.parent.name}/{path.name}", path.read_bytes()) for path in sorted(paths)]
        self.digits = (ROOT / "experiments/data/digits-test.npz").read_bytes()
        self.runtime = runtime_library()

    def _perfrun(self, *words, folder=None):
        return subprocess.run([self.perfrun, *words], cwd=folder or self.folder, env=self.env, capture_output=True, check=False)

    def find_valid_specs(self):
        """Those that are valid where the cases of `specs` stand."""
        root = self.folder / "specs"
        self.around_specs = {"data.npz": dataset(), "data/digits-test.npz": self.digits, "data/test.npz": self.digits}
        small = dict(self.models)["one_node.onnx"]
        self.around_specs |= {f"models/{name}.onnx": small for name in ("one_node", "small/mlp", "small/mlp-int8")}
        self.around_specs |= {f"models/{name}": dict(self.models)[name] for name in ("digits-cnn.onnx", "digits-mlp.onnx")}
        for name, data in self.around_specs.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_bytes(data)
        self.valid_specs = []
        for name, text in self.specs:
            (root / "x.yaml").write_text(text)
            # Networks of the zoo are made whole before they are planned, which is slow and has nothing to do with the text.
            if "zoo" not in text and self._perfrun("validate", "x.yaml", folder=root).returncode == 0:
                self.valid_specs.append((name, text))

    def make_models(self):
        """Conversions, which hold what the stored models do not."""
        for precision in ("fp16", "int8"):
            path = self.folder / f"digits-cnn-{precision}.onnx"
            if not path.exists():
                model = ROOT / "experiments/models/digits-cnn.onnx"
                self._perfrun("convert", str(model), "--precision", precision, "--quantization", "dynamic", "-o", str(path))
            if path.exists():
                self.models.append((path.name, path.read_bytes()))

    def make_records(self):
        """A finished record with its archive and its results, and one that was killed on the way."""
        root = self.folder / "record"
        if not (root / "seed.tar.zst").exists():
            self._set_up(root, SPEC)
            made = self._perfrun("seed.yaml", folder=root)
            packed = self._perfrun("export", "seed", "seed.tar.zst", folder=root)
            if packed.returncode:
                raise SystemExit(f"no seed record:\n{made.stderr.decode()}{packed.stderr.decode()}")
        [record] = (root / ".perfrun/records/seed").iterdir()
        self.record, self.archive = files_below(record), (root / "seed.tar.zst").read_bytes()
        self.results.append(("seed/results.json", (root / "reports/seed/results.json").read_bytes()))
        root = self.folder / "killed"
        if not root.exists():
            self._set_up(root, SPEC.replace("runs: 5", "runs: 500"))
            self._kill_after(8, root)
        [record] = (root / ".perfrun/records/seed").iterdir()
        self.killed = files_below(record)

    def _set_up(self, root, spec):
        shutil.rmtree(root, ignore_errors=True)
        (root / ".perfrun").mkdir(parents=True)
        (root / "seed.yaml").write_text(spec)
        (root / "data.npz").write_bytes(dataset())

    def _kill_after(self, runs, root):
        nothing = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        process = subprocess.Popen(
            [self.perfrun, "seed.yaml"], cwd=root, env=self.env, start_new_session=True, **nothing
        )
        until = time.monotonic() + 60
        while len(list(root.glob(".perfrun/records/seed/*/journal/*-main-*.json"))) < runs and time.monotonic() < until:
            time.sleep(0.02)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def runtime_library():
    """ONNX Runtime's library: ORT_DYLIB_PATH, or that of an installed Python package."""
    if named := os.environ.get("ORT_DYLIB_PATH"):
        return named
    asked = "import importlib.util as u; print(u.find_spec('onnxruntime').submodule_search_locations[0])"
    found = subprocess.run(["python3", "-c", asked], capture_output=True, text=True, check=False)
    libraries = sorted(pathlib.Path(found.stdout.strip() or "/nowhere", "capi").glob("libonnxruntime.so*"))
    return str(libraries[0]) if libraries else None
