"""The shipped adapters, and the example of README.md. Those whose framework is not installed are skipped."""

import importlib.util
import json
import re
import unittest
from typing import Any

import numpy as np
from parent import PACKAGE, Parent, WorkerTest

ADAPTERS = PACKAGE / "perfrun" / "adapters"

NETWORK = """
    import torch

    class Network(torch.nn.Module):
        def __init__(self, scale):
            super().__init__()
            self.convolution = torch.nn.Conv2d(3, 4, 3)
            self.scale = scale

        def forward(self, x):
            return {"logits": self.scale * self.convolution(x).mean((2, 3)), "rest": (x.sum(),)}

    def network(scale=1.0):
        return Network(scale)

    def no_network():
        return 3
"""


def needs(*modules: str) -> Any:
    lacking = [module for module in modules if importlib.util.find_spec(module) is None]
    return unittest.skipIf(lacking, "{} is not installed".format(", ".join(lacking)))


def images() -> np.ndarray:
    return np.random.default_rng(1).standard_normal((2, 2, 3, 8, 8)).astype(np.float32)


class AdapterTest(WorkerTest):
    def outputs(self, parent: Parent) -> dict[str, np.ndarray]:
        """Outputs of the first input set by name, after a slice and a check that must agree with `ready`."""
        samples, _ = parent.ask("slice", time=10**12, samples=3, iterations=2)
        self.assertEqual(len(samples["columns"]["duration_ns"]), 3)
        self.assertEqual(parent.ask("check")[-1]["output_hash"], parent.ready["output_hash"])
        self.assertEqual(parent.ask("outputs", path=str(self.folder)), [{"type": "done"}])
        listed = json.loads((self.folder / "0.json").read_text())
        found = {entry["name"]: np.load(self.folder / ("0-%d.npy" % at)) for at, entry in enumerate(listed)}
        self.assertEqual(parent.ask("finish"), [{"type": "done"}])
        return found

    def refused(self, adapter: str, cell: dict[str, Any]) -> list[dict[str, Any]]:
        parent = self.parent(adapter)
        self.assertEqual(parent.ask("hello", protocol=4, oldest=4)[-1]["type"], "hello")
        return parent.ask("prepare", cell=cell)


class Declarations(unittest.TestCase):
    def test_every_adapter_declares_what_it_takes(self) -> None:
        names = {path.stem for path in ADAPTERS.glob("*.py")}
        self.assertEqual(names, {path.stem for path in ADAPTERS.glob("*.json")})
        for name in names:
            declared = json.loads((ADAPTERS / (name + ".json")).read_text())
            self.assertEqual(sorted(declared), ["models", "options", "settings"])
            self.assertIs(declared["options"]["additionalProperties"], False)
            for option, rule in declared["options"]["properties"].items():
                self.assertTrue(rule["description"].endswith("."), option)

    def test_the_version_is_perfruns(self) -> None:
        manifest = PACKAGE.parent.parent / "Cargo.toml"
        if not manifest.is_file():
            self.skipTest("not in a checkout")
        packages = re.search(r'__version__ = "(.*)"', (PACKAGE / "perfrun" / "__init__.py").read_text())
        perfruns = re.search(r'^version = "(.*)"', manifest.read_text(), re.MULTILINE)
        assert packages and perfruns
        self.assertEqual(packages.group(1), perfruns.group(1))


class Example(AdapterTest):
    def test_the_adapter_of_the_readme_runs(self) -> None:
        code = re.search(r"```python\n(.*?)```", (PACKAGE / "README.md").read_text(), re.DOTALL)
        assert code
        self.assertLessEqual(len(code.group(1).splitlines()), 30)
        tensor = self.tensor("x", np.ones((2, 4, 8), np.float32))
        parent = self.prepared(self.adapter(code.group(1)), self.cell([tensor], _threads=0))
        self.assertEqual(self.outputs(parent)["y"].shape, (4, 8))


class Callable(AdapterTest):
    FUNCTIONS = """
        import numpy
        made = []

        def setup(size):
            made.append(size)
            return size * numpy.eye(2)

        def apply(state, x):
            assert made == [3]
            return {"y": x @ state, "count": 7, "none": None, "pair": [1.5, (x.sum(), True)]}

        def plain(x, factor):
            return factor * x

        def nothing():
            print("called")

        constant = 3
    """

    def source(self, call: str, **args: Any) -> dict[str, Any]:
        self.adapter(self.FUNCTIONS, "functions.py")
        return {"call": "functions:" + call, "args": args, "weights": None}

    def test_a_function_with_setup(self) -> None:
        cell = self.cell(
            [self.tensor("x", np.ones((1, 2, 2)))],
            _source=self.source("apply", size=3),
            _options={"setup": "functions:setup"},
        )
        found = self.outputs(self.prepared("callable", cell))
        self.assertEqual(list(found), ["y", "count", "pair_0", "pair_1_0", "pair_1_1"])
        np.testing.assert_array_equal(found["y"], 3 * np.ones((2, 2)))

    def test_functions_without_setup(self) -> None:
        cell = self.cell([self.tensor("x", np.ones((1, 2)))], _source=self.source("plain", factor=2))
        np.testing.assert_array_equal(self.outputs(self.prepared("callable", cell))["output"], [2, 2])
        self.assertEqual(self.outputs(self.prepared("callable", self.cell(_source=self.source("nothing")))), {})

    def test_what_cannot_be_called(self) -> None:
        for call, kind, words in (
            ("functions", "model", "module:function"),
            ("functions:no", "model", "has no `no`"),
            ("functions:constant", "model", "int"),
            ("no_module:f", "missing", "no_module is not installed"),
        ):
            source = {**self.source("plain"), "call": call}
            self.failure(self.refused("callable", self.cell(_source=source)), kind, words)
        cell = self.cell(_source=self.source("plain"))
        self.failure(self.refused("callable", cell), "operator", "missing 2 required positional arguments")
        self.failure(self.refused("callable", self.cell(_source=self.source("nothing"), _device="cuda:0")), "provider")


@needs("torch")
class Pytorch(AdapterTest):
    def setUp(self) -> None:
        super().setUp()
        self.adapter(NETWORK, "network.py")

    def network(self, sets: np.ndarray, weights: Any = None, **settings: Any) -> dict[str, Any]:
        source = {"call": "network:network", "args": {"scale": 2.0}, "weights": weights}
        return self.cell([self.tensor("x", sets)], _source=source, **settings)

    def run_with(self, sets: np.ndarray, **options: Any) -> dict[str, np.ndarray]:
        self.last = self.prepared("pytorch", self.network(sets, _options=options))
        return self.outputs(self.last)

    def test_modes_agree(self) -> None:
        eager = self.run_with(images())
        self.assertEqual([(name, array.shape) for name, array in eager.items()], [("logits", (2, 4)), ("rest_0", ())])
        self.assertNotIn("build_ns", self.last.values)
        for options, tolerance in (
            ({"channels_last": True}, 1e-5),
            ({"autocast": "bf16"}, 0.05),
            ({"dtype": "bf16"}, 0.1),
            ({"inter_threads": 2}, 1e-6),
        ):
            with self.subTest(options):
                found = self.run_with(images(), **options)
                np.testing.assert_allclose(found["logits"], eager["logits"], atol=tolerance)

    def test_modes_of_newer_versions(self) -> None:
        import torch

        for mode in ("compile", "export"):
            if hasattr(torch, mode):
                self.assertEqual(self.run_with(images(), mode=mode)["logits"].shape, (2, 4))
                self.assertGreater(self.last.values["build_ns"], 0)
            else:
                words = f"mode {mode} needs torch 2"
                self.failure(
                    self.refused("pytorch", self.network(images(), _options={"mode": mode})), "provider", words
                )

    def test_torchscript_is_built_before_the_first_inference(self) -> None:
        # TorchScript has no mappings whose values differ in type.
        self.adapter(NETWORK.replace('"rest": (x.sum(),)', '"rest": x.sum()'), "network.py")
        eager = self.run_with(images())
        for options, tolerance in (({}, 1e-5), ({"autocast": "bf16"}, 0.05)):
            found = self.run_with(images(), mode="torchscript", **options)
            np.testing.assert_allclose(found["logits"], eager["logits"], atol=tolerance)
            self.assertGreater(self.last.values["build_ns"], self.last.values["first_inference_ns"])

    def test_what_is_refused(self) -> None:
        def fails(kind: str, words: str, sets: Any = None, **settings: Any) -> None:
            sets = images() if sets is None else sets
            self.failure(self.refused("pytorch", self.network(sets, **settings)), kind, words)

        fails("provider", "none of eager", _options={"mode": "fast"})
        fails("provider", "needs `mode: compile`", _options={"compile_mode": "default"})
        fails("provider", "does not find cuda:7", _device="cuda:7")
        fails("provider", "not on tpu", _device="tpu")
        fails("operator", "channels", sets=images()[:, :, :2])
        fails("shape", "can't convert np.ndarray", sets=np.array([["a", "b"]]))
        source = {"call": "network:no_network", "args": {}, "weights": None}
        self.failure(
            self.refused("pytorch", self.cell(_source=source)), "model", "returned a int, not a torch.nn.Module"
        )


@needs("onnx")
class OnnxFiles(AdapterTest):
    """One small model for each adapter that reads ONNX files."""

    def model(self) -> str:
        import onnx
        from onnx import TensorProto, helper

        x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 3])
        y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 2])
        weights = helper.make_tensor("w", TensorProto.FLOAT, [3, 2], [1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
        nodes = [helper.make_node("Identity", ["w"], ["v"]), helper.make_node("MatMul", ["x", "v"], ["y"])]
        model = helper.make_model(
            helper.make_graph(nodes, "g", [x], [y], [weights]),
            opset_imports=[helper.make_opsetid("", 13)],
            ir_version=8,
        )
        onnx.save(model, str(self.folder / "model.onnx"))
        return str(self.folder / "model.onnx")

    def check(self, adapter: str, **settings: Any) -> Parent:
        sets = np.arange(12, dtype=np.float32).reshape(2, 2, 3)
        parent = self.prepared(adapter, self.cell([self.tensor("x", sets)], _model=self.model(), **settings))
        found = self.outputs(parent)
        np.testing.assert_allclose(found["y"], sets[0] @ np.array([[1, 2], [3, 4], [5, 6]], np.float32))
        return parent

    @needs("onnxruntime")
    def test_onnxruntime(self) -> None:
        parent = self.check("onnxruntime")
        self.assertEqual(list(parent.ready["placement"]["nodes"]), ["CPUExecutionProvider"])
        self.assertTrue(parent.ready["placement"]["dynamic_outputs"])
        self.assertFalse(self.check("onnxruntime", outputs={"y": [2, 2]}).ready["placement"]["dynamic_outputs"])
        self.check("onnxruntime", _options={"io_binding": False})
        settings = {
            "graph_optimization": "disabled",
            "session": {"session.intra_op.allow_spinning": "0"},
            "provider": {},
        }
        self.check("onnxruntime", _settings=settings)
        cell = self.cell([self.tensor("x", np.ones((1, 2, 3), np.float32))], _model=self.model(), _device="migraphx")
        self.failure(self.refused("onnxruntime", cell), "provider", "no provider for migraphx")
        cell = self.cell([self.tensor("x", np.ones((1, 2, 4), np.float32))], _model=self.model())
        self.failure(self.refused("onnxruntime", cell), "shape", "Got invalid dimensions")
        self.failure(self.refused("onnxruntime", self.cell(_model=str(self.folder / "no.onnx"))), "model")

    @needs("openvino")
    def test_openvino(self) -> None:
        parent = self.check("openvino", _options={"precision_hint": "auto", "config": {"ENABLE_CPU_PINNING": False}})
        self.assertEqual(list(parent.ready["placement"]["nodes"]), ["cpu"])
        self.check("openvino")
        cell = self.cell([self.tensor("x", np.ones((1, 2, 3), np.float32))], _model=self.model(), _device="gpu")
        self.failure(self.refused("openvino", cell), "provider", "not GPU")

    @needs("torch", "onnx2torch")
    def test_pytorch(self) -> None:
        self.check("pytorch")
        self.check("pytorch", _options={"mode": "torchscript"})


if __name__ == "__main__":
    unittest.main()
