"""What half precision loses, and what perfrun keeps in float32 for it: the table in docs/reference/converters.md, executed.

    python tests/precision_kinds.py PERFRUN

Each kind is a small model, evaluated by onnx.reference in float32, wholly in float16, and as `perfrun convert --precision fp16
--device cuda` leaves it. The figures of the table are relative errors of the last two (root mean square); a kind without a row,
a row without a kind and a figure that is not the table's fail. Needs numpy and onnx.
"""

import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

PAGE = pathlib.Path(__file__).parent.parent / "docs/reference/converters.md"
rng = np.random.default_rng(1)


class Model:
    """A graph whose floats are all of one type."""

    def __init__(self, element):
        self.element, self.dtype = element, helper.tensor_dtype_to_np_dtype(element)
        self.nodes, self.weights, self.inputs, self.feeds = [], [], [], {}

    def weight(self, values):
        name = f"w{len(self.weights)}"
        with np.errstate(over="ignore"):
            values = np.asarray(values)
            values = values if values.dtype.kind == "i" else values.astype(self.dtype)
        self.weights.append(numpy_helper.from_array(values, name))
        return name

    def data(self, values, rows):
        """An input; the first product makes data of a network of it."""
        name = f"x{len(self.inputs)}"
        self.inputs.append(helper.make_tensor_value_info(name, self.element, list(values.shape)))
        self.feeds[name] = values.astype(self.dtype)
        return self.node("MatMul", name, self.weight(np.eye(values.shape[-1]) * rows))

    def node(self, operator, *inputs, **attributes):
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, inputs, [name], **attributes))
        return name

    def proto(self):
        last = self.nodes[-1].output[0]
        if self.element == TensorProto.FLOAT:
            output = helper.make_tensor_value_info(last, TensorProto.FLOAT, None)
        else:
            output = helper.make_tensor_value_info(last, TensorProto.FLOAT16, None)
        graph = helper.make_graph(self.nodes, "g", self.inputs, [output], self.weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def angles(m):
    positions = m.node("Cast", m.weight(np.arange(4096, dtype=np.int64).reshape(-1, 1)), to=m.element)
    frequencies = m.weight(10000.0 ** (-np.arange(32) / 32).reshape(1, -1))
    return m.node("Mul", m.node("Cos", m.node("MatMul", positions, frequencies)), m.data(np.ones((4096, 32)), 1))


def squares(m):
    x = m.data(rng.normal(size=(8, 256)) * 400, 1)
    mean = m.node("ReduceMean", m.node("Mul", x, x), axes=[-1])
    return m.node("Div", x, m.node("Sqrt", m.node("Add", mean, m.weight([1e-6]))))


def exponents(m):
    x = m.data(rng.uniform(8, 13, size=(8, 64)), 1)
    return m.node("Log", m.node("ReduceSum", m.node("Exp", x), m.weight(np.array([-1]))))


def sums(m):
    x = m.data(rng.uniform(0, 1, size=(4, 4096)), 1)
    return m.node("CumSum", x, m.weight(np.array(1)))


def differences(m):
    points = rng.normal(size=(16, 32)) + 8
    a = m.data(points, 1)
    others = points + rng.normal(size=points.shape) * 0.02
    squared = m.node("ReduceSumSquare", a, axes=[-1])
    product = m.node("Mul", m.node("MatMul", a, m.weight(others.T)), m.weight([2.0]))
    both = m.node("Add", squared, m.weight((others**2).sum(-1).reshape(1, -1)))
    return m.node("Sub", both, product)


def thresholds(m):
    x = m.data(rng.choice([0.0, 3e-9, 0.5, 2.0], size=(8, 64)), 1)
    above = m.node("Greater", x, m.weight([1e-9]))
    return m.node("Where", above, m.weight([1.0]), m.weight([0.0]))


def small(m):
    x = m.data(rng.normal(size=(8, 64)), 1)
    return m.node("Mul", m.node("MatMul", x, m.weight(rng.normal(size=(64, 64)) * 1e-8)), m.weight([1e8]))


def large(m):
    x = m.data(rng.normal(size=(8, 64)), 1)
    scaled = m.node("Relu", m.node("Mul", x, m.weight([1e6])))
    return m.node("Mul", scaled, m.weight([1e-6]))


KINDS = {
    "angles of positions": angles,
    "squares": squares,
    "exponents": exponents,
    "cumulative sums": sums,
    "differences of large numbers": differences,
    "thresholds near zero": thresholds,
    "small weights": small,
    "large weights": large,
}


def error(found, wanted):
    found, wanted = found.astype(np.float64), wanted.astype(np.float64)
    if not np.isfinite(found).all():
        return np.inf
    return float(np.sqrt(((found - wanted) ** 2).mean() / (wanted**2).mean()))


def shown(value):
    return "not finite" if np.isinf(value) else f"{float(f'{100 * value:.2g}'):g} %"


def figures(kind, perfrun, folder):
    global rng
    models = {}
    for element in [TensorProto.FLOAT, TensorProto.FLOAT16]:
        rng = np.random.default_rng(1)
        model = Model(element)
        kind(model)
        models[element] = model
    full, half = models[TensorProto.FLOAT], models[TensorProto.FLOAT16]
    source, target = folder / "model.onnx", folder / "half.onnx"
    onnx.save(full.proto(), source)
    target.unlink(missing_ok=True)
    arguments = [perfrun, "convert", str(source), "--precision", "fp16", "--device", "cuda", "-o", str(target)]
    subprocess.run(arguments, check=True, capture_output=True)
    with np.errstate(all="ignore"):
        wanted = ReferenceEvaluator(full.proto()).run(None, full.feeds)[0]
        throughout = ReferenceEvaluator(half.proto()).run(None, half.feeds)[0]
        kept = ReferenceEvaluator(onnx.load(target)).run(None, full.feeds)[0]
    return error(throughout, wanted), error(kept, wanted)


def main():
    page = PAGE.read_text()
    rows = dict(re.findall(r"^\| ((?:%s)) \|(.*)\|$" % "|".join(KINDS), page, re.M))
    problems = [f"{name} has no row in {PAGE.name}" for name in KINDS if name not in rows]
    with tempfile.TemporaryDirectory() as folder:
        for name, kind in KINDS.items():
            throughout, kept = figures(kind, sys.argv[1], pathlib.Path(folder))
            line = f"{name}: {shown(throughout)} in fp16 throughout, {shown(kept)} as converted"
            print(line)
            if not kept < 0.005 < throughout:
                problems.append(f"{line}; it should be below 0.5 %, and above throughout")
            cells = [cell.strip() for cell in rows.get(name, "").split("|")]
            if cells[-2:] != [shown(throughout), shown(kept)]:
                problems.append(f"{name}: the page has {cells[-2:]}")
    sys.exit("\n".join(problems) or None)


main()
