"""Greedy loops of a language model: their calls of an adapter, and metrics from when their tokens came.

Names, units and definitions are those of perfrun's own loops (docs/language-models.md).
"""

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from perfrun.cell import Decode
from perfrun.failure import Failure


SUPPORTED = 368  # With fewer gaps the 99th percentile may lie above the largest.


class Loop:
    """The loop of one cell. `call` is what a sample times."""

    def __init__(self, adapter: Any, decode: Decode):
        self.first, self.next, self.decode = adapter.first, adapter.next, decode
        self.under_way: list[list[int]] = []  # Of each loop since the last slice: nanoseconds from its beginning to each token.
        self.counted: list[list[int]] = []

    def call(self, prepared: Any) -> list[Any]:
        """Ids of every sequence, token after token; each is here when its time is read."""
        clock, following, ends = time.perf_counter_ns, range(self.decode.generated - 1), []
        began = clock()
        ids = [self.first(prepared)]
        ends.append(clock() - began)
        for _ in following:
            ids.append(self.next())
            ends.append(clock() - began)
        self.under_way.append(ends)
        return ids

    def begin(self) -> None:
        """Forgets loops that are in no sample."""
        self.under_way = []

    def settle(self, counts: bool) -> None:
        """Counts the loops since `begin`, or forgets them. Called between slices, so that it is in no sample's time."""
        if counts:
            self.counted += self.under_way
        self.under_way = []

    def outputs(self, ids: Sequence[Any]) -> dict[str, np.ndarray]:
        """The ids that were emitted, `[batch, tokens]`."""
        batch = self.decode.batch
        if any(len(of_token) != batch for of_token in ids):
            lengths = sorted({len(of_token) for of_token in ids})
            raise Failure("output", f"the adapter gave {lengths} ids for a token of {batch} sequences")
        return {"tokens": np.asarray(ids, dtype=np.int64).reshape(-1, batch).T}

    def metrics(self) -> dict[str, float]:
        return metrics(self.counted)


def metrics(loops: Sequence[Sequence[int]]) -> dict[str, float]:
    """From the nanoseconds at which each token of each loop came."""
    if not loops:
        return {}
    first, last = (np.array([ends[at] for ends in loops], dtype=np.float64) for at in (0, -1))
    tokens = len(loops[-1])
    found = {"ttft_ns": np.median(first), "output_tokens_per_s": tokens * 1e9 / max(1.0, np.median(last))}
    if tokens > 1:
        gaps = np.concatenate([np.diff(ends) for ends in loops])
        for name, share in (("itl_ns", 0.5), ("itl_p99_ns", 0.99), ("itl_largest_ns", 1.0)):
            if share != 0.99 or len(gaps) >= SUPPORTED:
                found[name] = np.quantile(gaps, share)
        by_token = np.median([np.diff(ends) for ends in loops], axis=0)
        found["itl_slowest_ns"], found["itl_slowest_token"] = by_token.max(), by_token.argmax() + 2
        found["tpot_ns"] = np.median((last - first) / (tokens - 1))
    return {name: float(value) for name, value in found.items()}
