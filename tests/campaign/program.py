"""A program that speaks the worker protocol over standard input and output, and computes nothing."""

import json
import sys
import time

BEGAN = time.perf_counter_ns()


def answers(command):
    """What is said to a command."""
    kind = command["type"]
    if kind == "hello":
        able = ["prepare", "slice", "check", "outputs"]
        yield {"type": "hello", "protocol": 4, "worker": "campaign 1", "capabilities": able, "about": {"python": "3"}}
    elif kind == "prepare":
        yield {"type": "metrics", "values": {"load_ns": 1000, "first_inference_ns": 1000}}
        yield {"type": "ready", "placement": {"nodes": {"cpu": 1}}, "output_shapes": {"y": [1]}, "output_hash": "0"}
    elif kind == "slice":
        columns = {"start_ns": [], "duration_ns": [], "input": []}
        for _ in range(min(command["samples"], 3)):
            columns["start_ns"].append(time.perf_counter_ns() - BEGAN)
            time.sleep(0.001)
            columns["duration_ns"].append(time.perf_counter_ns() - BEGAN - columns["start_ns"][-1])
            columns["input"].append(0)
        time.sleep(0 if command["samples"] <= 3 else command["time"] / 1e9)
        yield {"type": "samples", "phase": "measure", "columns": columns}
        yield {"type": "done"}
    elif kind == "check":
        yield {"type": "metrics", "values": {"cpu_time_ns": 1000, "peak_rss_bytes": 1000000}}
        yield {"type": "done", "output_hash": "0"}
    else:
        yield {"type": "done"}


for line in sys.stdin:
    for answer in answers(json.loads(line)):
        print(json.dumps(answer), flush=True)
