"""Calls of a language model: an adapter whose next token is the sum of all before, and metrics from a fixed trace."""

import importlib.util
import os
import sys
import unittest
from typing import Any

import numpy as np
from parent import PACKAGE, Parent, WorkerTest

sys.path.insert(0, str(PACKAGE))
from perfrun.decode import metrics  # noqa: E402

VOCABULARY = 11
SUMS = """
    import numpy
    from perfrun.failure import Failure

    class Adapter:
        def describe(self):
            return "sums 1.0", {}, ["cpu"]

        def load(self, cell):
            self.decode = cell.decode

        def inputs(self, arrays):
            return arrays[self.decode.ids]

        def fill(self, ids):
            self.held, self.rewound = [row for row in ids.tolist()], 0

        def rewind(self):
            self.cache = [list(row) for row in self.held]
            self.rewound += 1

        def call(self, ids):
            if any(len(row) != self.decode.context for row in self.cache):
                raise Failure("internal", "the cache was not rewound")
            return self.feed(ids)

        def feed(self, ids):
            logits = numpy.zeros((*ids.shape, 11), numpy.float32)
            for row, tokens in enumerate(ids.tolist()):
                for at, token in enumerate(tokens):
                    self.cache[row].append(token)
                    logits[row, at, sum(self.cache[row]) % 11] = 1
            return logits

        def first(self, ids):
            self.last = self.feed(ids)[:, -1].argmax(-1)
            return self.last.tolist()

        def next(self):
            return self.first(self.last[:, None])

        def outputs(self, logits):
            return {self.decode.logits: logits}

        def metrics(self):
            return {"rewound": self.rewound}
"""


def loop_of(prompt: np.ndarray, count: int) -> np.ndarray:
    """The tokens that follow, `[batch, count]`."""
    cache, tokens = prompt.tolist(), []
    for _ in range(count):
        tokens.append([sum(row) % VOCABULARY for row in cache])
        cache = [[*row, token] for row, token in zip(cache, tokens[-1])]
    return np.array(tokens).T


class Decoding(WorkerTest):
    """Requests for calls of a language model."""

    def request(self, tokens: int, context: int, generated: int = 0, batch: int = 2) -> tuple[dict[str, Any], dict[str, Any]]:
        """A cell, and the tokens that it is fed."""
        held = np.random.default_rng(1).integers(0, VOCABULARY, (batch, context))
        np.save(self.folder / "held.npy", held)
        call = {"batch": batch, "tokens": tokens, "context": context, "encoder": 128}
        inputs = [{"name": "input_ids", "role": "ids"}, {"name": "past.0.key", "role": "past"}]
        decode = {
            "call": {**call, "generated": generated} if generated else call,
            "decoder": {"inputs": inputs, "logits": "scores"},
            "cache": "grown",
            "positions": context,
            "state": "/nowhere",
            "seeds": [1, 2],
            "vocabulary": VOCABULARY,
            "held": str(self.folder / "held.npy"),
        }
        ids = np.random.default_rng(2).integers(0, VOCABULARY, (3, batch, tokens))
        return self.cell([self.tensor("input_ids", ids)], decode=decode), {"held": held, "ids": ids}

    def written(self, parent: Parent, name: str) -> np.ndarray:
        """The output of the first input set."""
        folder = self.folder / "out"
        folder.mkdir(exist_ok=True)
        parent.ask("outputs", path=str(folder))
        self.assertIn(f'"name": "{name}"', (folder / "0.json").read_text())
        return np.load(folder / "0-0.npy")


class Calls(Decoding):
    def test_every_call_finds_the_same_cache(self) -> None:
        cell, fed = self.request(tokens=3, context=5)
        parent = self.prepared(self.adapter(SUMS), cell)
        for iterations in (1, 4):
            columns = parent.ask("slice", time=10**12, samples=6, iterations=iterations)[0]["columns"]
            ends = np.array(columns["start_ns"]) + columns["duration_ns"]
            self.assertTrue((ends[:-1] <= columns["start_ns"][1:]).all())
        # The first inference, one for each of eight sets, and before the samples of each slice untimed ones.
        self.assertEqual(parent.ask("check")[0]["values"]["rewound"], 1 + 8 + 7 + 28)
        sums = fed["held"].sum(1, keepdims=True) + fed["ids"][0].cumsum(1)
        np.testing.assert_array_equal(self.written(parent, "scores").argmax(-1), sums % VOCABULARY)

    def test_a_loop_emits_tokens_and_only_counted_ones_are_in_its_metrics(self) -> None:
        slow = SUMS.replace("def next(self):", "def next(self):\n            import time; time.sleep(self.pause)") + (
            "\n        pause = 0.02\n        def device_ns(self): self.pause = 0.001; return 1\n"
        )
        cell, fed = self.request(tokens=4, context=0, generated=5)
        parent = self.prepared(self.adapter(slow), cell)
        # `device_ns` is asked before the samples of a slice: the first slice is as fast as the second, the untimed loop is not.
        parent.ask("slice", time=10**12, samples=3, iterations=1, warms=True)
        self.assertNotIn("ttft_ns", parent.ask("check")[0]["values"])
        parent.ask("slice", time=10**12, samples=3, iterations=1)
        values = parent.ask("check")[0]["values"]
        self.assertTrue(1e6 < values["itl_ns"] <= values["itl_largest_ns"] < 20e6, values)
        self.assertGreater(values["tpot_ns"], values["ttft_ns"])
        self.assertGreater(values["output_tokens_per_s"], 0)
        np.testing.assert_array_equal(self.written(parent, "tokens"), loop_of(fed["ids"][0], 5))

    def test_who_decodes_says_so(self) -> None:
        self.assertTrue(self.parent(self.adapter(SUMS)).ask("hello", protocol=4, oldest=4)[0]["decodes"])
        plain = SUMS[: SUMS.index("def fill")] + "def call(self, x):\n            return x\n"
        self.assertNotIn("decodes", self.parent(self.adapter(plain)).ask("hello", protocol=4, oldest=4)[0])


GENAI = """
    import json, numpy, os
    __version__ = "0.1"

    class Config:
        def __init__(self, folder):
            self.file, self.search = os.path.join(folder, "model.onnx"), {}

        def overlay(self, text):
            told = json.loads(text)
            self.search.update(told["search"])
            assert told["model"]["decoder"]["session_options"]["intra_op_num_threads"] == 1

    class Model:
        def __init__(self, config):
            self.config = config

    class GeneratorParams:
        def __init__(self, model):
            self.told = {}

        def set_search_options(self, **told):
            self.told = told

    class Generator:
        made = 0

        def __init__(self, model, settings):
            Generator.made += 1
            assert settings.told["do_sample"] is False
            self.most, self.shared = settings.told["max_length"], model.config.search["past_present_share_buffer"]
            self.rows = [[] for _ in range(settings.told["batch_size"])]

        def append_tokens(self, ids):
            assert ids.dtype == numpy.int32 and ids.shape[0] == len(self.rows)
            self.logits = numpy.zeros((*ids.shape, 11), numpy.float32)
            for row, tokens in enumerate(ids.tolist()):
                for at, token in enumerate(tokens):
                    self.rows[row].append(token)
                    assert len(self.rows[row]) <= self.most
                    self.logits[row, at, sum(self.rows[row]) % 11] = 1
            self.chosen = self.logits[:, -1].argmax(-1).astype(numpy.int32)
            self.is_fed = True

        def generate_next_token(self):
            if not self.is_fed:
                self.append_tokens(self.chosen[:, None])
            self.is_fed = False

        def get_next_tokens(self):
            return self.chosen

        def rewind_to(self, length):
            self.rows = [row[:length] for row in self.rows]

        def get_output(self, name):
            assert name == "scores"
            return self.logits
"""


class Genai(Decoding):
    """The adapter with a double of its package."""

    def genai(self, tokens: int, context: int, **settings: Any) -> tuple[Parent, dict[str, Any]]:
        self.adapter(GENAI, "onnxruntime_genai.py")
        (self.folder / "genai_config.json").write_text("{}")
        cell, fed = self.request(tokens, context, **settings)
        cell["backend"]["model"] = str(self.folder / "model.onnx")
        path = os.pathsep.join([str(PACKAGE), str(self.folder)])
        return self.prepared("onnxruntime-genai", cell, PYTHONPATH=path), fed

    def test_a_step_appends_tokens_behind_the_context(self) -> None:
        parent, fed = self.genai(tokens=2, context=4, batch=1)
        parent.ask("slice", time=10**12, samples=3, iterations=2)
        sums = fed["held"].sum(1, keepdims=True) + fed["ids"][0].cumsum(1)
        np.testing.assert_array_equal(self.written(parent, "scores").argmax(-1), sums % VOCABULARY)

    def test_a_loop_makes_its_generator(self) -> None:
        parent, fed = self.genai(tokens=4, context=0, generated=5)
        parent.ask("slice", time=10**12, samples=3, iterations=1)
        self.assertIn("tpot_ns", parent.ask("check")[0]["values"])
        np.testing.assert_array_equal(self.written(parent, "tokens"), loop_of(fed["ids"][0], 5))


@unittest.skipIf(importlib.util.find_spec("transformers") is None, "transformers is not installed")
class Pytorch(Decoding):
    """A model of transformers, against the same without a cache."""

    def setUp(self) -> None:
        super().setUp()
        import torch
        import transformers

        torch.manual_seed(0)
        sizes = {"hidden_size": 16, "intermediate_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2}
        config = transformers.LlamaConfig(vocab_size=VOCABULARY, max_position_embeddings=64, initializer_range=0.5, **sizes)
        self.model = transformers.LlamaForCausalLM(config).eval()
        self.model.save_pretrained(self.folder / "stored")

    def scores(self, ids: np.ndarray) -> np.ndarray:
        import torch

        with torch.no_grad():
            return self.model(torch.from_numpy(ids), use_cache=False).logits.numpy()

    def stored(self, cell: dict[str, Any], **options: Any) -> dict[str, Any]:
        args = {"pretrained_model_name_or_path": "stored"}
        source = {"call": "transformers:AutoModelForCausalLM", "args": args, "weights": None}
        cell["backend"].update(source=source, options=options)
        return cell

    def test_a_step_is_the_end_of_the_whole(self) -> None:
        for context in (0, 5):
            cell, fed = self.request(tokens=3, context=context)
            parent = self.prepared("pytorch", self.stored(cell))
            parent.ask("slice", time=10**12, samples=3, iterations=2)
            whole = self.scores(np.concatenate([fed["held"], fed["ids"][0]], 1))
            found = self.written(parent, "scores")
            np.testing.assert_allclose(found, whole[:, context:], atol=1e-5)

    def test_loops_emit_what_the_whole_scores_highest(self) -> None:
        cell, fed = self.request(tokens=4, context=0, generated=5)
        ids = fed["ids"][0]
        for _ in range(5):
            ids = np.concatenate([ids, self.scores(ids)[:, -1].argmax(-1)[:, None]], 1)
        for mode in ("eager", "compile"):
            with self.subTest(mode):
                parent = self.prepared("pytorch", self.stored(cell, mode=mode))
                np.testing.assert_array_equal(self.written(parent, "tokens"), ids[:, 4:])
                self.assertEqual("build_ns" in parent.values, mode == "compile")

    def test_what_is_refused(self) -> None:
        def fails(kind: str, words: str, cell: dict[str, Any]) -> None:
            parent = self.parent("pytorch")
            parent.ask("hello", protocol=4, oldest=4)
            self.failure(parent.ask("prepare", cell=cell), kind, words)

        cell, _ = self.request(tokens=1, context=2)
        fails("provider", "not in torchscript", self.stored(cell, mode="torchscript"))
        fails("model", "of models that Python makes", self.request(tokens=1, context=2)[0])
        cell["backend"].update(source={"call": "torch.nn:Identity", "args": {}, "weights": None}, options={})
        fails("model", "Identity takes no cache", cell)


class Metrics(unittest.TestCase):
    def test_they_are_those_of_perfrun_itself(self) -> None:
        """The trace of `metrics_follow_from_when_tokens_came` in greedy.rs."""
        found = metrics([[100, 110, 120, 160], [200, 210, 220, 260]])
        self.assertEqual((found["ttft_ns"], found["tpot_ns"], found["itl_ns"]), (150, 20, 10))
        self.assertEqual((found["itl_largest_ns"], found["output_tokens_per_s"]), (40, 4e9 / 210))
        self.assertEqual(sorted(metrics([[5]])), ["output_tokens_per_s", "ttft_ns"])
        self.assertEqual(metrics([]), {})


if __name__ == "__main__":
    unittest.main()
