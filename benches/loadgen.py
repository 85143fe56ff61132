#!/usr/bin/env python3
"""perfrun's load beside MLPerf LoadGen, on one model with the same session options.

    python3 -m pip install mlcommons-loadgen==6.0.17 onnxruntime==1.31.1 numpy
    python3 benches/loadgen.py target/release/perfrun MODEL [--batch 64] [--bound 10] [--runs 10]

SingleStream's 90th percentile, Offline's inferences a second, and Server: the rate at which LoadGen's own p99 is the bound,
from runs at five rates around perfrun's, three seeds each, interpolated on logarithms. Both use one session with one
thread. LoadGen's calls go through Python, a queue and a thread, which take some tens of microseconds.
"""

import argparse
import json
import math
import os
import queue
import re
import statistics
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import mlperf_loadgen as lg
import numpy as np
import onnxruntime as ort

SECONDS = 10


def perfrun(given: argparse.Namespace, load: str) -> dict:
    text = f"""models: {Path(given.model).resolve()}
inputs: {{ batch: {given.batch} }}
variants: [{{ name: one, sessions: 1, threads: 1 }}]
runs: {given.runs}
compare: {{ aa: off }}
measure: {{ load: {load} }}
"""
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(Path(folder, ".perfrun"))
        Path(folder, "x.yaml").write_text(text)
        done = subprocess.run(
            [str(Path(given.perfrun).resolve()), "x.yaml"], cwd=folder, env=os.environ | {"PERFRUN_WAIT": "0s"},
            capture_output=True, text=True,
        )
        if done.returncode != 0:
            sys.exit(f"perfrun ended with {done.returncode}\n{done.stdout}\n{done.stderr}")
        return json.loads(Path(folder, "reports/x/results.json").read_text())["cells"][0]["metrics"]


class Service:
    """The model behind LoadGen: one session, called by one thread."""

    def __init__(self, given: argparse.Namespace) -> None:
        options = ort.SessionOptions()
        options.intra_op_num_threads = 1
        self.session = ort.InferenceSession(given.model, options, providers=["CPUExecutionProvider"])
        random = np.random.default_rng(1)
        shape = lambda tensor: [size if isinstance(size, int) else given.batch for size in tensor.shape]
        self.feeds = [
            {tensor.name: random.standard_normal(shape(tensor)).astype(np.float32) for tensor in self.session.get_inputs()}
            for _ in range(8)
        ]
        for _ in range(50):
            self.session.run(None, self.feeds[0])
        self.waiting: queue.SimpleQueue = queue.SimpleQueue()
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self) -> None:
        while True:
            sample = self.waiting.get()
            self.session.run(None, self.feeds[sample.index % len(self.feeds)])
            lg.QuerySamplesComplete([lg.QuerySampleResponse(sample.id, 0, 0)])

    def issue(self, samples: list) -> None:
        for sample in samples:
            self.waiting.put(sample)

    def test(self, change) -> dict[str, float]:
        """The numbers of LoadGen's summary."""
        settings = lg.TestSettings()
        settings.mode = lg.TestMode.PerformanceOnly
        settings.min_duration_ms = SECONDS * 1000
        change(settings)
        with tempfile.TemporaryDirectory() as folder:
            log, output = lg.LogSettings(), lg.LogOutputSettings()
            output.outdir = folder
            output.copy_summary_to_stdout = False
            log.log_output = output
            log.enable_trace = False
            sut = lg.ConstructSUT(self.issue, lambda: None)
            qsl = lg.ConstructQSL(1024, 1024, lambda _: None, lambda _: None)
            lg.StartTestWithLogSettings(sut, qsl, settings, log)
            lg.DestroyQSL(qsl)
            lg.DestroySUT(sut)
            text = Path(folder, "mlperf_log_summary.txt").read_text()
        lines = re.findall(r"^\s*([\w. %()/*-]+?)\s*:\s*([\d.]+)\s*$", text, re.MULTILINE)
        return {name.strip().lower(): float(value) for name, value in lines}


def said(metric: dict, scale: float) -> str:
    return f"{metric['value'] * scale:.4g} [{metric['low'] * scale:.4g}, {metric['high'] * scale:.4g}]"


def several(values: list[float]) -> str:
    return f"{statistics.mean(values):.4g} (from {min(values):.4g} to {max(values):.4g})"


def server_rate(service: Service, around: float, bound_ns: float) -> float:
    """The rate at which the mean logarithm of p99 passes the bound."""
    points = []
    for factor in (0.88, 0.94, 1.0, 1.06, 1.12):
        logs = []
        for seed in range(3):
            def change(settings, seed=seed, factor=factor):
                settings.scenario = lg.TestScenario.Server
                settings.server_target_qps = around * factor
                settings.server_target_latency_ns = int(bound_ns)
                settings.min_query_count = 4000
                settings.schedule_rng_seed = 1000 + seed
            found = service.test(change)
            logs.append(math.log(next(value for name, value in found.items() if name.startswith("99.00 percentile"))))
        points.append((math.log(around * factor), statistics.mean(logs)))
        print(f"  LoadGen at {around * factor:.4g}/s: p99 {math.exp(points[-1][1]) / 1e6:.4g} ms", flush=True)
    fit = np.polyfit([rate for rate, _ in points], [latency for _, latency in points], 1)
    return math.exp((math.log(bound_ns) - fit[1]) / fit[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("perfrun", help="the release build")
    parser.add_argument("model", help="an ONNX file with one input of float32")
    parser.add_argument("--batch", type=int, default=1, help="its free dimension (default: 1)")
    parser.add_argument("--bound", type=float, required=True, help="of p99, in milliseconds")
    parser.add_argument("--runs", type=int, default=10, help="processes of perfrun (default: 10)")
    given = parser.parse_args()

    service = Service(given)
    own = perfrun(given, "single_stream")
    alone = []
    for _ in range(5):
        found = service.test(lambda settings: setattr(settings, "scenario", lg.TestScenario.SingleStream))
        alone.append(next(value for name, value in found.items() if "early stopping 90" in name) / 1e6)
    print(f"SingleStream p90, ms: perfrun {said(own['early_stopping_ns'], 1e-6)}; LoadGen {several(alone)}", flush=True)

    own = perfrun(given, "offline")
    per_s = {key: own["items_per_s"][key] / given.batch for key in ("value", "low", "high")}

    def offline(settings):
        settings.scenario = lg.TestScenario.Offline
        settings.offline_expected_qps = per_s["value"]
        settings.min_query_count = 1

    rates = [service.test(offline)["samples per second"] for _ in range(5)]
    print(f"Offline, inferences/s: perfrun {said(per_s, 1.0)}; LoadGen {several(rates)}", flush=True)

    own = perfrun(given, f"{{ rate: largest, bound: {{ p99: {given.bound}ms }} }}")
    rate = own["largest_rate_per_s"]
    theirs = server_rate(service, rate["value"], given.bound * 1e6)
    print(f"Server, queries/s with p99 <= {given.bound:g} ms: perfrun {said(rate, 1.0)}; LoadGen {theirs:.4g}")


if __name__ == "__main__":
    main()
