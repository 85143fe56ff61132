"""Cases that run: workers that do not keep to the protocol, scripts of the mock backend, too little of what is needed."""

import json
import pathlib
import resource
import sys

import mutate
from case import Case, pages
from seeds import dataset

TAMPER = pathlib.Path(__file__).resolve().parent / "tamper.py"
PROGRAM = TAMPER.with_name("program.py")

# What the process between perfrun and its worker does, and how often.
WAYS = ["json"] * 12 + ["bytes"] * 3 + """drop twice swap replay empty garbage number flood stderr line silence exit fail kill
close late stay orphan daemon files files files deaf slow nul deep many_metrics""".split()

SPEC = """name: x
backend: {{ mock: {{ median: 1ms, noise: 2% }} }}
models: [m]
inputs: {{ batch: [4] }}
variants:
  - {{ name: a, wrap: [{python}, -S, -E, -B, {tamper}, plan.json] }}
  - {{ name: b, wrap: [{python}, -S, -E, -B, {tamper}, plan.json], mock: {{ differ: 1% }} }}
runs: {runs}
{dataset}compare: {{ aa: "off" }}
measure:
  warmup: {warmup}
  stop: {stop}
  timeout: 1500ms
{design}"""


def workers(seeds, rng, index):
    """A run in which one worker says or does one thing otherwise."""
    warmups = ["{ mode: samples, count: 3 }", "{ mode: time, time: 10ms }"]
    warmups += ["{ mode: adaptive, min_time: 5ms, max_time: 20ms }"]
    stops = ["{ mode: samples, count: 5, max_time: 1s }", "{ mode: time, time: 10ms }"]
    stops += ["{ mode: precision, min_samples: 5, min_time: 5ms, max_time: 30ms }"]
    design = rng.choice(("", "", "  design: slices\n  slice_time: 5ms\n", "  design: duet\n  slice_time: 5ms\n"))
    spec = SPEC.format(
        python=json.dumps(sys.executable), tamper=json.dumps(str(TAMPER)), design=design, runs=rng.choice((1, 2, 5)),
        dataset=rng.choice(("", "dataset: { file: data.npz, labels: labels }\n")),
        warmup=rng.choice(warmups), stop=rng.choice(stops),
    )
    how = rng.choice(WAYS)
    # What costs a timeout happens once; anything else may happen in every run.
    is_quick = how in ("json", "bytes", "drop", "twice", "empty", "garbage", "number", "exit", "fail", "kill", "files")
    launch = None if is_quick and rng.random() < 0.15 else rng.choice((0, 1, 2, 2, 3, 4, 5))
    plan = {"how": how, "launch": launch, "line": rng.choice((0, 1, 2, 3, 4, 5, 6, 7, 8, 9)), "seed": rng.random()}
    commands = [["run", "x.yaml"], ["list"], ["report", "latest", "--output", "out"]]
    files = {"x.yaml": spec, "plan.json": json.dumps(plan), "data.npz": dataset()}
    return Case(files, commands, f"{how}, line {plan['line']} of launch {launch}", codes=(0, 2, 3, 4), check=pages)


PROGRAMS = """name: x
models: [m.onnx]
inputs: {{ batch: 1 }}
runtimes:
  - {{ name: good, command: [{python}, -S, -E, -B, {program}] }}
  - {{ name: bad, command: [{python}, -S, -E, -B, {tamper}, plan.json, {python}, -S, -E, -B, {program}] }}
variants: [{{ name: a, runtime: good }}, {{ name: b, runtime: bad }}]
runs: {runs}
compare: {{ aa: "off" }}
measure:
  warmup: {{ mode: samples, count: 3 }}
  stop: {{ mode: samples, count: 5, max_time: 100ms }}
  timeout: 1500ms
"""


def programs(seeds, rng, index):
    """A run in which a program instead of ONNX Runtime says or does one thing otherwise."""
    how = rng.choice(WAYS)
    words = {"python": json.dumps(sys.executable), "tamper": json.dumps(str(TAMPER)), "program": json.dumps(str(PROGRAM))}
    plan = {"how": how, "launch": rng.choice((0, 1, 1, 2, 2, 3)), "line": rng.randrange(10), "seed": rng.random()}
    files = {"x.yaml": PROGRAMS.format(runs=rng.choice((1, 2)), **words), "plan.json": json.dumps(plan)}
    files["m.onnx"] = dict(seeds.models)["digits-mlp.onnx"]
    commands = [["run", "x.yaml", "--no-wait"], ["report", "latest", "--output", "out"]]
    note = f"{how}, line {plan['line']} of launch {plan['launch']}"
    return Case(files, commands, note, codes=(0, 2, 3, 4), check=pages)


SCRIPT = """name: x
backend:
  mock: {{ median: {0}, item: {1}, run_sd: {2}, disturbed: {3}, disturbance: {4}, noise: {5}, ar1: {6}, warmup_excess: {7},
    warmup_time: {8}, load: {9},
    device: {{ clocks: [{10}, 1410], watts: {11}, idle_watts: {12}, celsius: {13}, memory: {14}, others_memory: {15},
      others: {16}, package_watts: {17} }} }}
models: [m]
inputs: {{ batch: {18} }}
variants: [a, {{ name: b, mock: {{ scale: {19}, differ: {20}, on_cpu: {21}, on_device: {22} }} }}]
devices: [{23}]
runs: {24}
seed: {25}
compare: {{ margin: {26}, aa: {27} }}
budget: {28}
choose: {{ best: {29}, within: [{{ metric: {30}, max: {31} }}] }}
goals: [{{ name: g, metric: {32}, max: {33} }}]
fidelity: {{ b: {{ cosine: {34}, abs: {35}, rel: {36}, close: {37} }} }}
measure:
  warmup: {{ mode: samples, count: {38} }}
  stop: {{ mode: samples, count: {39}, max_time: {40} }}
  inputs: {41}
  timeout: 1500ms
"""
USUAL = """5ms 0ms 1% 0% 50% 2% 0.5 20% 20ms 20ms 1500 250 50 60 10% 0% 0% 90 1 1.05 1% 0% 90% cpu 5 42 2% auto 10m latency
peak_rss 1GiB latency.p95 20ms 0.99 0.01 5% 99% 3 20 1s 2""".split()
TIMES = ["0ms", "1ns", "2ns", "1us", "1h", "99999h", "18446744073709551615ns", "1.5ns", "0.3ns"]
RATIOS = ["0%", "0", "1", "100%", "99.999999%", "1e-9", "0.000001", "1000000", "99999999999999999999%", "250%", "5%"]
COUNTS = ["0", "1", "2", "3", "7", "1000000", "4294967295", "4294967296", "18446744073709551615"]
METRICS = """latency latency.p99 latency.std throughput peak_rss load fidelity_cosine accuracy_top1 device_energy model_size
items""".split()


def _choices(old):
    """What may replace a value: something of its kind."""
    if old[0].isdigit() and old.endswith(("s", "m")):
        return TIMES
    if old in METRICS:
        return METRICS
    return RATIOS if "%" in old or "." in old else COUNTS


def mocks(seeds, rng, index):
    """The mock backend by a script with numbers that no machine gives, from specification to report."""
    words = list(USUAL)
    for _ in range(rng.choice((1, 2, 3, 6))):
        at = rng.randrange(len(words))
        words[at] = rng.choice(_choices(words[at]))
    words[23] = rng.choice(("cpu", "cpu, cuda", "cuda"))
    words[24] = rng.choice(("1", "2", "5", "6", "{ min: 2, max: 5 }"))
    words[38], words[39] = rng.choice(("0", "1", "3")), rng.choice(("1", "2", "5", "20", "60"))
    formats = "md,html,json,csv,latex,junit,bmf"
    commands = [["run", "x.yaml", *rng.choice(([], [], ["--quick"]))], ["report", "latest", "--output", "out", "--format", formats]]
    return Case({"x.yaml": SCRIPT.format(*words)}, commands, "script", codes=(0, 2, 3, 4), check=pages)


MOCK = """name: x
backend: { mock: { median: 1ms } }
models: [m]
variants: [a, b]
runs: 2
measure: { warmup: { mode: samples, count: 2 }, stop: { mode: samples, count: 5 } }
"""
# The program alone takes 41 MiB, without which nothing starts; perfrun wants 128, and one with debug symbols more.
SCARCE = [(resource.RLIMIT_AS, size << 20) for size in (50, 70, 100, 150, 300, 600)]
SCARCE += [(resource.RLIMIT_FSIZE, size) for size in (0, 1, 100, 1000, 4096, 20000)]
SCARCE += [(resource.RLIMIT_NOFILE, count) for count in (10, 14, 20)]
UNDER = """validate x.yaml
plan x.yaml
plan m.yaml
run x.yaml
inspect m.onnx
convert m.onnx --precision fp16 -o out.onnx
report .perfrun/records/seed/r --output out
export .perfrun/records/seed/r a.tar.zst
stat numbers""".splitlines()
NAMES = {resource.RLIMIT_AS: "address space", resource.RLIMIT_FSIZE: "file size", resource.RLIMIT_NOFILE: "open files"}
LIMITS = len(SCARCE) * len(UNDER)


def limits(seeds, rng, index):
    """One command with too little of one thing: not random."""
    limit, value = SCARCE[index // len(UNDER) % len(SCARCE)]
    files = {"x.yaml": MOCK, "m.yaml": "models: m.onnx\n", "numbers": "1\n2\n3\n4\n5\n" * 1000}
    files["m.onnx"] = dict(seeds.models)["digits-mlp.onnx"]
    files |= {f".perfrun/records/seed/r/{name}": data for name, data in seeds.record.items()}
    words, note = UNDER[index % len(UNDER)].split(), f"{NAMES[limit]} {value}"
    return Case(files, [words], note, codes=(0, 1, 2, 3), limits={limit: value}, needs=["--version"])
