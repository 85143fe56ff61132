"""Cases of paths that lead to no plain file: not random."""

from case import Case

SPARSE = ("sparse", "sparse.json", "sparse.onnx", "sparse.npy")
PIPES = ("fifo", "fifo.yaml", "fifo.onnx", "fifo.json")
BEFORE = [["mkfifo", *PIPES], ["truncate", "-s", "100G", *SPARSE]] + [
    ["ln", "-s", to, name]
    for to, name in (("loop", "loop"), ("/dev/zero", "zero.json"), ("/dev/zero", "zero.onnx"), ("nothing", "dangling"))
]
PATHS = [*SPARSE, *PIPES, "x" * 300, "a/" * 2500, ""] + """/dev/zero /dev/null /dev/stdin /proc/self/mem /proc/self/maps zero.json
zero.onnx folder loop dangling nothing empty . / x.yaml/y path: record: git:""".split()
VERBS = """validate PATH
plan PATH
plan --pilot PATH
plan x.yaml --set models=PATH --set backend=onnxruntime
plan x.yaml --set dataset.file=PATH
run PATH --no-wait
run --resume PATH
inspect PATH
convert PATH --precision fp16 -o out.onnx
convert m.onnx --precision fp16 -o NEW
convert m.onnx --precision int8 --quantization static --data PATH -o out.onnx
init PATH -o -
init m.onnx -o NEW
stat PATH
report PATH --output out
report PATH --format latex --output out
report seed --output NEW
report seed --template PATH --output out
diff PATH seed
diff path:PATH path:PATH
import PATH
export PATH a.tar.zst
export seed NEW
merge PATH seed
reproduce PATH
runtime path --runtime PATH
zoo export PATH
explain PATH
history PATH
completions PATH""".splitlines()
COUNT = len(PATHS) * len(VERBS)
SPEC = """backend: mock
models: [m]
runs: 1
measure: { warmup: { mode: samples, count: 1 }, stop: { mode: samples, count: 5 } }
"""


def paths(seeds, rng, index):
    """One verb with one path."""
    path, verb = PATHS[index // len(VERBS) % len(PATHS)], VERBS[index % len(VERBS)].split()
    files = {"x.yaml": SPEC, "empty": "", "folder/a": "a", "m.onnx": dict(seeds.models)["digits-mlp.onnx"]}
    files |= {f".perfrun/records/seed/20260101T000000Z-00000000/{name}": data for name, data in seeds.record.items()}
    # What is written may be a pipe of the case's own, but no device of this machine, which a perfrun that replaces what
    # it writes would take with it where root runs it.
    written = "fifo" if path.startswith("/") else path
    words = [word.replace("PATH", path).replace("NEW", written) for word in verb]
    return Case(files, [words], path[:20], codes=(0, 2, 3, 4), before=BEFORE)
