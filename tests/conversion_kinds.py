"""Kinds of models that go wrong in public reports of converters, in every precision of `perfrun convert`.

    python tests/conversion_kinds.py PERFRUN [KIND...]

Each kind is a small model, converted in eight ways. A conversion that is written must pass the full check of onnx, have the
inputs and outputs of the model, load in ONNX Runtime on the CPU, and be close to float32, where every value that the file has
in fp16 or bf16 is rounded to it. tests/precision_kinds.py has the kinds whose loss the page gives in figures. Exit code 1 where
something is not so. Needs numpy, onnx and onnxruntime.
"""

import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

import onnx_conformance as conformance

HALVES = {"fp16": TensorProto.FLOAT16, "bf16": TensorProto.BFLOAT16}
CONVERSIONS = {
    "fp16": ["fp16"],
    "fp16, cuda": ["fp16", "--device", "cuda"],
    "fp16, cuda, io": ["fp16", "--device", "cuda", "--io", "convert"],
    "bf16": ["bf16"],
    "bf16, cuda": ["bf16", "--device", "cuda"],
    "int8, dynamic": ["int8", "--quantization", "dynamic"],
    "int4": ["int4"],
    "int4, 128": ["int4", "--block", "128"],
}
# Root mean square differences as shares of float32's. A rounding of fp16 is 0.03 %, one of bf16 0.2 %. Of whole numbers only
# what has nothing to do with the outputs is printed: how much 8 and 4 bits lose is up to the outliers of a kind.
MOST = {"fp16": 0.01, "bf16": 0.05, "int8": 1.0, "int4": 1.0}
SIDE = 128
rng = np.random.default_rng(1)


class Model:
    """A graph in the making."""

    def __init__(self):
        self.nodes, self.weights, self.inputs, self.feeds = [], [], [], {}

    def weight(self, values):
        name, values = f"w{len(self.weights)}", np.asarray(values)
        values = values.astype(np.float32) if values.dtype == np.float64 else values
        self.weights.append(numpy_helper.from_array(values, name))
        return name

    def given(self, values):
        name, values = f"x{len(self.inputs)}", np.asarray(values)
        values = values.astype(np.float32) if values.dtype == np.float64 else values
        element = helper.np_dtype_to_tensor_dtype(values.dtype)
        self.inputs.append(helper.make_tensor_value_info(name, element, ["items", *values.shape[1:]]))
        self.feeds[name] = values
        return name

    def node(self, operator, *inputs, **attributes):
        """Numbers and arrays among the inputs become weights."""
        names = [item if isinstance(item, str) else self.weight(item) for item in inputs]
        made = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, names, [made], **attributes))
        return made

    def data(self, scale=1.0):
        """What a layer gives: of a row of zeros zeros."""
        values = rng.normal(size=(8, SIDE)) * scale
        values[2] = 0
        return self.node("MatMul", self.given(values), np.eye(SIDE))

    def proto(self, last):
        graph = helper.make_graph(self.nodes, "g", self.inputs, [onnx.ValueInfoProto(name=last)], self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        element = onnx.shape_inference.infer_shapes(model).graph.output[0].type.tensor_type.elem_type
        rank = np.ndim(conformance.run("onnxruntime", model, self.feeds)[0])
        output = helper.make_tensor_value_info(last, element, [f"d{axis}" for axis in range(rank)])
        model.graph.output[0].CopyFrom(output)
        return model


KINDS = {}


def kind(make):
    KINDS[make.__name__.replace("_", " ")] = make


def root_mean_square(m, square, mean=True):
    x = m.data(400)
    squared = square(x)
    squared = m.node("ReduceMean", squared, axes=[-1]) if mean else squared
    norm = m.node("Sqrt", m.node("Add", squared, [1e-6]))
    return m.node("Div", x, norm)


@kind
def square_by_identity(m):
    return root_mean_square(m, lambda x: m.node("Mul", m.node("Identity", x), x))


@kind
def square_of_two_differences(m):
    return root_mean_square(m, lambda x: m.node("Mul", m.node("Sub", x, 0.5), m.node("Sub", x, 0.5)))


@kind
def square_by_einsum(m):
    sums = lambda x: m.node("Einsum", x, x, equation="bi,bi->b")
    return root_mean_square(m, lambda x: m.node("Unsqueeze", m.node("Mul", sums(x), 1 / SIDE), np.array([1])), mean=False)


@kind
def variance_by_means(m):
    x = m.node("MatMul", m.given(rng.normal(size=(8, SIDE)) + 10), np.eye(SIDE))
    mean, of_squares = m.node("ReduceMean", x, axes=[-1]), m.node("ReduceMean", m.node("Mul", x, x), axes=[-1])
    return m.node("Sqrt", m.node("Sub", of_squares, m.node("Mul", mean, mean)))


@kind
def division_by_a_sum_that_may_be_zero(m):
    x = m.node("Relu", m.data())
    return m.node("Div", x, m.node("Add", m.node("ReduceSum", x, np.array([-1])), 1e-8))


@kind
def division_by_a_norm_that_may_be_zero(m):
    x = m.data()
    norm = m.node("Sqrt", m.node("ReduceSum", m.node("Mul", x, x), np.array([-1])))
    return m.node("Div", x, m.node("Max", norm, 1e-8))


@kind
def logarithm_of_a_softmax(m):
    return m.node("Log", m.node("Softmax", m.node("Mul", m.data(), 5.0)))


@kind
def logarithm_of_a_softmax_and_epsilon(m):
    return m.node("Log", m.node("Add", m.node("Softmax", m.node("Mul", m.data(), 5.0)), 1e-10))


@kind
def logarithm_of_odds(m):
    p = m.node("Sigmoid", m.node("Mul", m.data(), 6.0))
    odds = m.node("Div", m.node("Clip", p, 1e-5), m.node("Clip", m.node("Sub", 1.0, p), 1e-5))
    return m.node("Log", odds)


@kind
def mean_of_a_long_sequence_by_its_sum(m):
    x = m.node("MatMul", m.given(rng.normal(size=(2, 8192, 8)) + 12), np.eye(8))
    kept = m.node("Cast", m.given(np.ones((2, 8192, 1), np.int64)), to=TensorProto.FLOAT)
    axis = np.array([1])
    return m.node("Div", m.node("ReduceSum", m.node("Mul", x, kept), axis), m.node("ReduceSum", kept, axis))


@kind
def index_by_division(m):
    place = m.node("Cast", m.given(np.arange(4096)), to=TensorProto.FLOAT)
    index = m.node("Cast", m.node("Floor", m.node("Div", place, 3.0)), to=TensorProto.INT64)
    return m.node("Gather", rng.normal(size=(1400, 16)), index)


@kind
def size_by_multiplication(m):
    x = m.given(rng.normal(size=(3001, 4)))
    rows = m.node("Cast", m.node("Slice", m.node("Shape", x), np.array([0]), np.array([1])), to=TensorProto.FLOAT)
    rows = m.node("Cast", m.node("Ceil", m.node("Mul", rows, 1.0)), to=TensorProto.INT64)
    return m.node("Expand", [1.0], rows)


@kind
def comparison_of_ids(m):
    ids = m.node("Cast", m.given(np.arange(4090, 4098).reshape(-1, 1)), to=TensorProto.FLOAT)
    return m.node("Where", m.node("Equal", ids, 4097.0), m.data(), 0.0)


@kind
def angles_in_a_branch(m):
    place = m.node("Cast", m.given(np.arange(4096).reshape(-1, 1)), to=TensorProto.FLOAT)
    angle = m.node("Mul", place, 10000.0 ** (-np.arange(32) / 32))
    branches = {}
    for name, operator in [("then", "Cos"), ("else", "Sin")]:
        output = helper.make_tensor_value_info(name, TensorProto.FLOAT, None)
        node = helper.make_node(operator, [angle], [name])
        branches[f"{name}_branch"] = helper.make_graph([node], name, [], [output])
    long = m.node("Greater", m.node("Size", place), np.array(2048))
    waves = m.node("If", long, **branches)
    return m.node("Mul", waves, m.node("MatMul", m.given(np.ones((4096, 32))), np.eye(32)))


@kind
def places_in_a_picture(m):
    picture = m.given(rng.normal(size=(1, 1, 512, 512)))
    grid = m.node("Tanh", m.node("Mul", m.given(rng.uniform(-1, 1, size=(1, 8, 8, 2))), 2.0))
    return m.node("GridSample", m.node("Relu", picture), grid)


@kind
def empty_weights(m):
    return m.node("Add", m.node("MatMul", m.given(np.zeros((4, 0))), np.zeros((0, SIDE))), rng.normal(size=SIDE))


def rounded_where_half(graph, half, outer=None):
    """Casts to the half precision and back behind what makes it, so that float32 kernels compute what it would."""
    of = lambda infos: {info.name: info.type.tensor_type.elem_type for info in infos}
    types = (outer or {}) | of(graph.input) | of(graph.output) | of(graph.value_info)
    nodes = []
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                rounded_where_half(attribute.g, half, types)
        nodes.append(node)
        for place, name in enumerate(node.output):
            if types.get(name) == half:
                node.output[place] = f"{name}_exact"
                nodes.append(helper.make_node("Cast", [f"{name}_exact"], [f"{name}_stored"], to=half))
                nodes.append(helper.make_node("Cast", [f"{name}_stored"], [name], to=TensorProto.FLOAT))
    del graph.node[:], graph.value_info[:]
    graph.node.extend(nodes)


def outputs_in_half(converted, feeds, half):
    """Of the file in float32 arithmetic, every value of the half precision rounded to it."""
    model = onnx.shape_inference.infer_shapes(converted)
    rounded_where_half(model.graph, half)
    model = conformance.widened(model, half)
    for node in conformance.nodes_of(model):
        if node.op_type == "Cast" and node.input[0].endswith("_exact"):
            node.attribute[0].i = half
    options = onnxruntime.SessionOptions()  # without its rules, which take casts out
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(model.SerializeToString(), options).run(None, feeds)


def difference(wanted, found):
    if wanted.shape != found.shape:
        return np.inf
    is_finite = np.isfinite(wanted)
    wanted, found = wanted[is_finite].astype(np.float64), found[is_finite].astype(np.float64)
    gap = np.sqrt(((wanted - found) ** 2).mean() / max((wanted**2).mean(), 1e-300))
    return gap if np.isfinite(gap) else np.inf


def signature(infos, precision, is_converted):
    """Names, types and shapes, with the types that `--io convert` gives."""
    element = lambda info: info.type.tensor_type.elem_type
    to = {TensorProto.FLOAT: HALVES[precision]} if is_converted else {}
    return [(info.name, to.get(element(info), element(info)), info.type.tensor_type.shape) for info in infos]


def examine(perfrun, model, feeds, arguments, folder):
    """What is wrong with a conversion, or nothing; and whether there is one."""
    source, target, precision = folder / "model.onnx", folder / "converted.onnx", arguments[0]
    onnx.save(model, source)
    target.unlink(missing_ok=True)
    command = [perfrun, "convert", str(source), "--precision", *arguments, "-o", str(target)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        return ("" if done.returncode == 2 and done.stderr else f"exit code {done.returncode}"), False
    converted, is_io = onnx.load(target), "--io" in arguments
    onnx.checker.check_model(converted, full_check=precision in HALVES)
    for before, after in [(model.graph.input, converted.graph.input), (model.graph.output, converted.graph.output)]:
        if signature(before, precision, is_io) != signature(after, precision, False):
            return "other inputs or outputs", True
    if is_io:
        feeds = {name: conformance.rounded(value, precision) for name, value in feeds.items()}
    wanted = conformance.run("onnxruntime", model, feeds)[0]
    if precision in HALVES:
        found = outputs_in_half(converted, feeds, HALVES[precision])[0]
    else:
        found = conformance.run("onnxruntime", converted, feeds)[0]
    gap = difference(wanted, found)
    return ("" if gap <= MOST[precision] else f"differs by {gap:.2%}"), True


def main():
    conformance.quiet()
    perfrun, chosen = sys.argv[1], sys.argv[2:] or list(KINDS)
    problems, written = [], 0
    with tempfile.TemporaryDirectory() as folder:
        os.environ["PERFRUN_CACHE"] = folder
        for name in chosen:
            model = Model()
            proto = model.proto(KINDS[name](model))
            for conversion, arguments in CONVERSIONS.items():
                problem, is_written = examine(perfrun, proto, model.feeds, arguments, pathlib.Path(folder))
                written += is_written
                problems += [f"{name}, {conversion}: {problem}"] if problem else []
    print(f"{len(chosen)} kinds, {written} of {len(chosen) * len(CONVERSIONS)} conversions written")
    sys.exit("\n".join(problems) or None)


main()
