"""Latencies by perfrun beside those of a plain loop over `Run` of ONNX Runtime's C API, four networks on one thread.

Usage: python3 benches/c_api.py [target/release/perfrun]

The loop is called through ctypes with everything prepared, so that between two readings of the clock stands one call, in
fresh processes that take turns with perfrun's. Prints a line a network; exits with 1 where the two are more than 2 % apart,
which means something on a quiet machine alone. Takes about four minutes.
"""

import ctypes
import json
import math
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
PERFRUN = str(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "target/release/perfrun").resolve())
PROCESSES = 6
WANTED = 0.02

# Network of `perfrun zoo`, sizes, inputs of the model: name, shape, element type by the standard's number.
PICTURE = [("input", [1, 3, 224, 224], 1)]
TOKENS = [(name, [1, 128], 7) for name in ("input_ids", "attention_mask", "token_type_ids")]
NETWORKS = {"mobilenet_v2": PICTURE, "resnet18": PICTURE, "efficientnet_b0": PICTURE, "bert_tiny": TOKENS}

# Places in `struct OrtApi` of onnxruntime_c_api.h, which never change.
MESSAGE, CREATE_ENV, CREATE_SESSION, RUN, CREATE_OPTIONS = 2, 3, 7, 9, 10
OPTIMIZATION, INTRA, INTER, CREATE_TENSOR, CPU_MEMORY, RELEASE_VALUE = 23, 24, 25, 49, 69, 96
API_VERSION = 22
ALL_OPTIMIZATIONS = 99
BYTES = {1: 4, 7: 8}


class Api:
    def __init__(self, library):
        class Base(ctypes.Structure):
            _fields_ = [("get", ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_uint32))]

        base = ctypes.CDLL(library).OrtGetApiBase
        base.restype = ctypes.POINTER(Base)
        table = base().contents.get(API_VERSION)
        self.functions = ctypes.cast(table, ctypes.POINTER(ctypes.c_void_p))

    def function(self, place, *arguments, result=ctypes.c_void_p):
        return ctypes.CFUNCTYPE(result, *arguments)(self.functions[place])

    def call(self, place, *arguments):
        """Calls a function that returns a status."""
        status = self.function(place, *[type(argument) for argument in arguments])(*arguments)
        if status:
            message = self.function(MESSAGE, ctypes.c_void_p, result=ctypes.c_char_p)(status)
            raise SystemExit(message.decode())


def loop(library, model, inputs, outputs):
    """Median duration of `Run` in nanoseconds, after a warm-up."""
    api, pointer = Api(library), ctypes.c_void_p
    environment, options, session, memory = pointer(), pointer(), pointer(), pointer()
    api.call(CREATE_ENV, ctypes.c_int(3), ctypes.c_char_p(b"loop"), ctypes.c_void_p(ctypes.addressof(environment)))
    api.call(CREATE_OPTIONS, ctypes.c_void_p(ctypes.addressof(options)))
    api.call(INTRA, options, ctypes.c_int(1))
    api.call(INTER, options, ctypes.c_int(1))
    api.call(OPTIMIZATION, options, ctypes.c_int(ALL_OPTIMIZATIONS))
    path = ctypes.c_char_p(model.encode())
    api.call(CREATE_SESSION, environment, path, options, ctypes.c_void_p(ctypes.addressof(session)))
    api.call(CPU_MEMORY, ctypes.c_int(0), ctypes.c_int(0), ctypes.c_void_p(ctypes.addressof(memory)))
    values, kept = (pointer * len(inputs))(), []
    for index, (_, shape, element) in enumerate(inputs):
        size = math.prod(shape) * BYTES[element]
        data = ctypes.create_string_buffer(size)
        dimensions = (ctypes.c_int64 * len(shape))(*shape)
        kept += [data, dimensions]
        value = ctypes.c_void_p(ctypes.addressof(values) + index * ctypes.sizeof(pointer))
        api.call(CREATE_TENSOR, memory, ctypes.c_void_p(ctypes.addressof(data)), ctypes.c_size_t(size),
                 ctypes.c_void_p(ctypes.addressof(dimensions)), ctypes.c_size_t(len(shape)), ctypes.c_int(element), value)
    names = lambda all_names: (ctypes.c_char_p * len(all_names))(*[name.encode() for name in all_names])
    taken, given = names([name for name, _, _ in inputs]), names(outputs)
    results = (pointer * len(outputs))()
    run = api.function(RUN, pointer, pointer, pointer, pointer, ctypes.c_size_t, pointer, ctypes.c_size_t, pointer)
    arguments = (session, None, ctypes.addressof(taken), ctypes.addressof(values), len(inputs),
                 ctypes.addressof(given), len(outputs), ctypes.addressof(results))
    release = api.function(RELEASE_VALUE, pointer, result=None)

    def once():
        started = time.perf_counter_ns()
        status = run(*arguments)
        ended = time.perf_counter_ns()
        if status:
            raise SystemExit("Run failed")
        for index in range(len(outputs)):
            release(results[index])
            results[index] = None
        return ended - started

    def for_seconds(seconds):
        until, samples = time.perf_counter() + seconds, []
        while time.perf_counter() < until:
            samples.append(once())
        return samples

    for_seconds(1.0)
    print(statistics.median(for_seconds(2.0)))


def measured(folder, network):
    """The median latency by perfrun, in one run of its own."""
    dimensions = "{ batch: 1 }" if NETWORKS[network] is PICTURE else "{ batch: 1, sequence: 128 }"
    (folder / "x.yaml").write_text(
        f"name: x\nmodels: {network}.onnx\ninputs: {dimensions}\nvariants: [{{ name: one, threads: 1 }}]\nruns: 1\n"
        "compare: { aa: 'off' }\nmeasure:\n  warmup: { mode: time, time: 1s }\n  stop: { mode: time, time: 2s }\n")
    subprocess.run([PERFRUN, "x.yaml", "--wait", "0s", "--output", "out"], cwd=folder, check=False,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    cell = json.loads((folder / "out/results.json").read_text())["cells"][0]
    return cell["metrics"]["latency_ns"]["value"]


def main():
    library = subprocess.run([PERFRUN, "runtime", "path"], capture_output=True, text=True, check=True).stdout.strip()
    apart = []
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        for network, inputs in NETWORKS.items():
            model = folder / f"{network}.onnx"
            subprocess.run([PERFRUN, "zoo", "export", network, "--output", str(model)], check=True,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            shown = subprocess.run([PERFRUN, "inspect", "--json", str(model)], capture_output=True, text=True, check=True)
            signature = json.loads(shown.stdout)[0]["model"]["signature"]
            names = [output["name"] for output in signature["outputs"]]
            fed = [(found["name"], shape, element) for found, (_, shape, element) in zip(signature["inputs"], inputs)]
            own, plain = [], []
            for _ in range(PROCESSES):
                own.append(measured(folder, network))
                command = [sys.executable, __file__, "--loop", library, str(model), json.dumps([fed, names])]
                plain.append(float(subprocess.run(command, capture_output=True, text=True, check=True).stdout))
            one, other = statistics.median(own), statistics.median(plain)
            apart.append(abs(one / other - 1))
            print(f"{network:<18}perfrun {one / 1e6:8.3f} ms   loop {other / 1e6:8.3f} ms   {100 * (one / other - 1):+.1f} %")
    return 1 if max(apart) > WANTED else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--loop"]:
        inputs, outputs = json.loads(sys.argv[4])
        loop(sys.argv[2], sys.argv[3], inputs, outputs)
    else:
        sys.exit(main())
