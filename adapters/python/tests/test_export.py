"""A model from Python becomes an ONNX file with weights that the adapters share."""

import importlib.util
import json
import os
import subprocess
import sys
import unittest
from typing import Any

import numpy as np
from parent import PACKAGE
from test_adapters import NETWORK, AdapterTest, needs

TENSOR = {"name": "x", "shape": ["batch", 3, "side", 8], "element": "float32"}


class ExportTest(AdapterTest):
    paths = [str(PACKAGE)]

    def export(self, **changes: Any) -> "subprocess.CompletedProcess[str]":
        self.adapter(NETWORK, "network.py")
        request: dict[str, Any] = {
            "call": "network:network",
            "args": {"scale": 2.0},
            "path": [str(self.folder)],
            "tensors": [TENSOR],
            "sizes": {"batch": 2, "side": 8},
            "folder": str(self.folder),
        }
        path = self.folder / "request.json"
        path.write_text(json.dumps({**request, **changes}))
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(self.paths), "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, "-m", "perfrun.export", str(path)]
        return subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def fails(self, words: str, **changes: Any) -> None:
        done = self.export(**changes)
        self.assertEqual((done.returncode, done.stdout), (1, ""), done.stderr)
        self.assertIn(words, done.stderr.splitlines()[-1])


@needs("torch")
class Export(ExportTest):
    def setUp(self) -> None:
        super().setUp()
        import torch

        if int(torch.__version__.split(".")[0]) > 1 and importlib.util.find_spec("onnx") is None:
            self.skipTest("onnx is not installed, which this torch's exporter needs")

    def test_the_weights_are_those_of_the_model(self) -> None:
        done = self.export()
        self.assertEqual(done.returncode, 0, done.stderr)
        (line,) = done.stdout.splitlines()
        answer = json.loads(line)
        self.assertEqual((answer["model"], answer["weights"]), ("model.onnx", "weights.pt"))
        self.assertIn("torch", answer["about"])
        self.assertGreater((self.folder / "model.onnx").stat().st_size, 400)
        import torch

        state = torch.load(str(self.folder / "weights.pt"))
        changed = {name: value + 1 for name, value in state.items()}
        torch.save(changed, str(self.folder / "changed.pt"))
        results = []
        for weights in (None, "weights.pt", "changed.pt"):
            source = {
                "call": "network:network",
                "args": {"scale": 2.0},
                "weights": weights and str(self.folder / weights),
            }
            tensor = self.tensor("x", np.ones((1, 2, 3, 8, 8), np.float32))
            results.append(self.outputs(self.prepared("pytorch", self.cell([tensor], _source=source)))["logits"])
        np.testing.assert_array_equal(results[0], results[1])
        self.assertGreater(abs(results[0] - results[2]).min(), 1)

    @needs("onnx")
    def test_names_and_free_dimensions(self) -> None:
        import onnx

        self.assertEqual(self.export().returncode, 0)
        graph = onnx.load(str(self.folder / "model.onnx")).graph

        def shape(value: Any) -> list:
            return [length.dim_param or length.dim_value for length in value.type.tensor_type.shape.dim]

        self.assertEqual([(value.name, shape(value)) for value in graph.input], [("x", ["batch", 3, "side", 8])])
        self.assertEqual(
            [(value.name, shape(value)) for value in graph.output], [("logits", ["batch", 4]), ("rest_0", [])]
        )

    @needs("onnx")
    def test_attention_is_exported_by_the_exporter_that_is_named(self) -> None:
        lines = ["import torch", "def encoder():", "    layer = torch.nn.TransformerEncoderLayer(8, 2, 8, batch_first=True)"]
        self.adapter("\n".join([*lines, "    return torch.nn.TransformerEncoder(layer, 1).eval()"]), "attention.py")
        tensor = {"name": "x", "shape": ["batch", 4, 8], "element": "float32"}
        done = self.export(call="attention:encoder", args={}, tensors=[tensor], sizes={"batch": 2})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(json.loads(done.stdout)["about"]["exporter"], ("dynamo", "torchscript"))

    def test_both_exporters_say_why_they_cannot(self) -> None:
        import inspect

        import torch

        parameters = inspect.signature(torch.onnx.export).parameters
        if "dynamo" not in parameters or "dynamic_axes" not in parameters:
            self.skipTest("this torch has one exporter")
        lines = ["import torch", "class Odd(torch.nn.Module):", "    def forward(self, x):"]
        self.adapter("\n".join([*lines, "        return torch.linalg.eigvals(x).real", "def odd():", "    return Odd()"]), "odd.py")
        tensor = {"name": "x", "shape": ["batch", 4, 4], "element": "float32"}
        asked = {"call": "odd:odd", "args": {}, "tensors": [tensor], "sizes": {"batch": 2}}
        self.fails(f"neither exporter of torch {torch.__version__} can: ", **asked)
        self.fails("dynamo: ", **asked)
        self.fails("torchscript: ", **asked)

    def test_a_trace_that_may_not_hold_is_told(self) -> None:
        lines = ["import torch", "class Branch(torch.nn.Module):", "    def forward(self, x):"]
        self.adapter("\n".join([*lines, "        return x * 2 if x.mean() > 0 else -x", "def branch():", "    return Branch()"]), "branch.py")
        tensor = {"name": "x", "shape": ["batch", 4], "element": "float32"}
        done = self.export(call="branch:branch", args={}, tensors=[tensor], sizes={"batch": 2})
        self.assertEqual(done.returncode, 0, done.stderr)
        about = json.loads(done.stdout)["about"]
        self.assertEqual(about["exporter"], "torchscript")
        self.assertIn("Python boolean", about["traced"])

    def test_what_cannot_be_exported(self) -> None:
        self.adapter("def leaves():\n    raise SystemExit(3)\n", "leaving.py")
        self.fails("the function ended the process: sys.exit(3)", call="leaving:leaves", args={})
        self.fails("returned a int, not a torch.nn.Module", call="network:no_network", args={})
        self.fails(f"no_module is not installed for {sys.executable}", call="no_module:network")
        self.fails("-m pip install no_module", call="no_module:network")
        self.fails("has no `absent`", call="network:absent")
        self.fails("there is no size for dimension `side` of `x`", sizes={"batch": 2})
        self.fails("unexpected keyword argument", args={"depth": 3})
        self.fails("absent", folder=str(self.folder / "absent"))


class WithoutTorch(ExportTest):
    def test_torch_is_named_with_its_pip_line(self) -> None:
        (self.folder / "torch.py").write_text("raise ModuleNotFoundError('none', name='torch')")
        self.paths = [str(self.folder), str(PACKAGE)]
        self.fails(f"torch is not installed for {sys.executable}: {sys.executable} -m pip install torch")


if __name__ == "__main__":
    unittest.main()
