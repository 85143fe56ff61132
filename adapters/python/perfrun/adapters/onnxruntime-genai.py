"""Calls of a language model through onnxruntime-genai: the folder with `genai_config.json` that the model file lies in.

What its user pays is in the clock: a prompt into an empty cache, alone or before a greedy loop, makes a `Generator`, with
its cache, and appends the tokens. Behind a context one `Generator` is kept, and rewound before every call, outside the
clock; the call appends tokens, which computes logits and leaves the choice of a token out. A loop chooses by
`generate_next_token`, with all its searches and checks, and takes every token out.
"""

import contextlib
import importlib.metadata
import json
import os
from typing import Any

import numpy as np
import onnxruntime_genai as genai

from perfrun.failure import Failure

CONFIGURATION = "genai_config.json"


class Adapter:
    """One model, and the generator of the call under way."""

    def describe(self) -> tuple[str, dict[str, str], list[str]]:
        about = {}
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):  # With GPUs it is another package.
            about["onnxruntime"] = importlib.metadata.version("onnxruntime")
        return "onnxruntime-genai " + genai.__version__, about, ["cpu"]

    def load(self, cell: Any) -> None:
        self.decode = cell.decode
        if not self.decode:
            raise Failure("model", "onnxruntime-genai runs calls of `decode` alone")
        folder, file = os.path.split(cell.model or "")
        if not os.path.isfile(os.path.join(folder, CONFIGURATION)):
            raise Failure("model", f"there is no {CONFIGURATION} beside {file}", "give a folder that has one, unconverted")
        if self.decode.cache not in ("grown", "shared"):
            raise Failure("model", f"onnxruntime-genai has no cache of the kind `{self.decode.cache}`")
        session = {"intra_op_num_threads": cell.threads, "inter_op_num_threads": 1}
        config = genai.Config(folder)
        config.overlay(
            json.dumps(
                {
                    "model": {"decoder": {"filename": file, "session_options": session}},
                    "search": {"past_present_share_buffer": self.decode.cache == "shared"},
                }
            )
        )
        self.model = genai.Model(config)

    def _generator(self) -> Any:
        """As long as the cache that perfrun's own loop has, and without an end before all tokens are there."""
        settings = genai.GeneratorParams(self.model)
        decode = self.decode
        least = decode.tokens + decode.generated
        settings.set_search_options(
            do_sample=False, batch_size=decode.batch, min_length=least, max_length=max(decode.positions, least)
        )
        return genai.Generator(self.model, settings)

    def inputs(self, arrays: dict[str, np.ndarray]) -> np.ndarray:
        return arrays[self.decode.ids].reshape(self.decode.batch, -1).astype(np.int32)

    def fill(self, ids: np.ndarray) -> None:
        self.generator: Any = None
        if self.decode.context:
            if self.decode.batch > 1:
                raise Failure(
                    "shape",
                    "onnxruntime-genai appends tokens behind a cache for one sequence only",
                    "`matrix: { exclude: ... }` leaves these cells of it out",
                )
            self.generator = self._generator()
            self.generator.append_tokens(ids.astype(np.int32))

    def rewind(self) -> None:
        if self.decode.context:
            self.generator.rewind_to(self.decode.context)
        else:
            self.generator = None

    def call(self, ids: np.ndarray) -> Any:
        if not self.decode.context:
            self.generator = self._generator()
        self.generator.append_tokens(ids)
        return self.generator

    def first(self, ids: np.ndarray) -> np.ndarray:
        self.call(ids)
        return self.next()

    def next(self) -> np.ndarray:
        self.generator.generate_next_token()
        return self.generator.get_next_tokens()

    def outputs(self, generator: Any) -> dict[str, np.ndarray]:
        return {self.decode.logits: generator.get_output(self.decode.logits)}
