"""perfrun's conversions against those of the Python tools, on the same models and inputs.

Usage: python3 tests/compare_converters.py target/release/perfrun MODEL... [--precisions int8-dynamic,int4] [--time]
                                           [--markdown FILE]

Needs onnx, onnxruntime, numpy, onnx_ir (for 4 bits) and onnxconverter-common (for 16 bits). The other side is
  int8-dynamic  onnxruntime.quantization.quantize_dynamic after quant_pre_process, one scale for each channel
  int8-static   onnxruntime.quantization.quantize_static after quant_pre_process, QDQ, one scale for each channel
  int4          MatMulNBitsQuantizer with perfrun's block size and accuracy level; it knows no Gemm, so it gets MatMul and Add
  fp16          onnxconverter_common.float16.convert_float_to_float16, inputs and outputs kept; perfrun converts for CUDA,
                which is throughout too

For each model and precision: both files pass the checker and load; perfrun's is no more than 2 % larger, and its outputs
are no further from float32 by mean absolute difference. Which of two roundings comes closer is luck for one input, so
"further" is beyond 2 % and beyond two standard errors of the differences between the two files, input by input.
Where the file of the other side does not load or run, its tool is tried in a second way: without embeddings, with
one scale for each weight, or as onnxruntime.transformers.float16, a descendant of the converter.
Exit code 1 if any of that does not hold. With --time, medians of interleaved calls in milliseconds.
With --markdown, the table of docs/reference/converters.md goes to that file, a row for each model and precision.

The networks light_*.onnx of the package onnx have constant weights, which any converter gets right; --fill gives them
seeded random ones, and takes a last Softmax off. For int8-static both sides calibrate with as many random inputs of the
same distribution; those of integers differ, since perfrun draws zeros and ones.
"""

import argparse
import contextlib
import io
import logging
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
import typing
import warnings

import numpy
import onnx
import onnx.version_converter
import onnxruntime
from onnx import numpy_helper

BLOCK_SIZE = 32
ACCURACY_LEVEL = 4
SIZES = {"batch": 1, "batch_size": 1, "N": 1, "sequence": 64, "sequence_length": 64, "past_sequence": 64}

# What onnxruntime.quantization appends to names of its own. It takes a weight of the model for its scale otherwise.
TAKEN_ENDINGS = ("_scale", "_zero_point", "_quantized")


def session(path, threads):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def inputs_of(path, seed, count, threads):
    """Seeded inputs: normal floats, small integers, masks of ones, token types of zeros."""
    generator = numpy.random.default_rng(seed)
    signature = session(path, threads).get_inputs()

    def value(tensor):
        shape = [size if isinstance(size, int) else SIZES.get(size, 1) for size in tensor.shape]
        if "int" not in tensor.type:
            return generator.standard_normal(shape).astype(numpy.float32)
        kind = numpy.int64 if "int64" in tensor.type else numpy.int32
        if "mask" in tensor.name:
            return numpy.ones(shape, kind)
        return generator.integers(0, 1 if "type" in tensor.name else 1000, shape).astype(kind)

    return [{tensor.name: value(tensor) for tensor in signature} for _ in range(count)]


def filled(path, folder):
    """The model with seeded weights where it has constants of one value."""
    model = onnx.load(path)
    generator = numpy.random.default_rng(1)
    shapes = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    readers = {name: (node.op_type, place) for node in model.graph.node for place, name in enumerate(node.input)}
    ends = {node.input[0]: readers.get(node.output[0]) for node in model.graph.node if node.op_type == "Unsqueeze"}
    nodes, weights = [], []
    for node in model.graph.node:
        if node.op_type != "ConstantOfShape":
            nodes.append(node)
            continue
        name, shape = node.output[0], shapes[node.input[0]]
        operator, place = ends.get(name) or readers[name]
        if len(shape) > 1:
            fan = int(numpy.prod(shape[1:]))
            value = generator.standard_normal(shape) * (2 / fan) ** 0.5
        elif (operator, place) in {("BatchNormalization", 1), ("BatchNormalization", 4), ("Mul", 1), ("Mul", 0)}:
            value = generator.uniform(0.7, 1.3, shape)
        else:
            value = generator.standard_normal(shape) * 0.1
        weights.append(numpy_helper.from_array(value.astype(numpy.float32), name))
    if nodes[-1].op_type == "Softmax":  # random logits are large, and its ones and zeros would hide every difference
        last = nodes.pop()
        model.graph.output[0].name = last.input[0]
    read = {name for node in nodes for name in node.input}
    weights += [tensor for tensor in model.graph.initializer if tensor.name in read]
    names = {weight.name for weight in weights}
    inputs = [tensor for tensor in model.graph.input if tensor.name in read and tensor.name not in names]
    for field, values in (("node", nodes), ("initializer", weights), ("input", inputs)):
        model.graph.ClearField(field)
        getattr(model.graph, field).extend(values)
    model.ir_version = 8  # from 4 on weights need not be inputs
    path = folder / f"filled_{path.name}"
    onnx.save(model, path)
    return path


def rename(graph, old, new):
    """Another name for an initialiser."""
    for node in graph.node:
        node.input[:] = [new if name == old else name for name in node.input]
    for tensor in [*graph.initializer, *graph.input]:
        if tensor.name == old:
            tensor.name = new


def without_gemm(model):
    """The same with MatMul and Add instead of each Gemm of a weight and a bias."""
    weights = {tensor.name: tensor for tensor in model.graph.initializer}
    nodes = []
    for node in model.graph.node:
        attributes = {attribute.name: onnx.helper.get_attribute_value(attribute) for attribute in node.attribute}
        is_plain = node.op_type == "Gemm" and len(node.input) == 3 and node.input[1] in weights
        if not is_plain or attributes.pop("transA", 0) or set(attributes.values()) - {0, 1, 1.0}:
            nodes.append(node)
            continue
        source, weight, bias = node.input
        if attributes.get("transB", 0):
            transposed = numpy_helper.to_array(weights[weight]).T.copy()
            weight += "_transposed"
            if weight not in weights:
                weights[weight] = numpy_helper.from_array(transposed, weight)
        product = node.output[0] + "_product"
        nodes.append(onnx.helper.make_node("MatMul", [source, weight], [product], node.name + "_product"))
        nodes.append(onnx.helper.make_node("Add", [product, bias], [node.output[0]], node.name))
    read = {name for node in nodes for name in node.input}
    for field, values in (("node", nodes), ("initializer", [weights[name] for name in weights if name in read])):
        model.graph.ClearField(field)
        getattr(model.graph, field).extend(values)
    return model


class Samples:
    """What quantize_static reads its calibration data from."""

    def __init__(self, samples):
        self.samples = iter(samples)

    def get_next(self):
        return next(self.samples, None)


def prepared(model, output):
    """The model as the documentation of onnxruntime.quantization wants it: operator set 13, constants folded."""
    from onnxruntime.quantization.shape_inference import quant_pre_process

    loaded = onnx.load(model)
    if loaded.opset_import[0].version < 13:
        loaded = onnx.version_converter.convert_version(loaded, 13)
    for tensor in loaded.graph.initializer:
        if tensor.name.endswith(TAKEN_ENDINGS):
            rename(loaded.graph, tensor.name, tensor.name + "_of_model")
    model = output.with_suffix(".raised.onnx")
    onnx.save(loaded, model)
    path = output.with_suffix(".prepared.onnx")
    quant_pre_process(str(model), str(path), skip_symbolic_shape=True)
    return str(path)


def dynamic(model, output, _, operators=("MatMul", "Gemm", "Gather", "LSTM")):
    """Without Conv, which gets slower."""
    from onnxruntime.quantization import quantize_dynamic

    quantize_dynamic(prepared(model, output), output, per_channel=True, op_types_to_quantize=list(operators))


def dynamic_without_tables(model, output, _):
    """For tables that are the weight of the last product too, with which the tool does not get along."""
    dynamic(model, output, _, operators=("MatMul", "Gemm", "LSTM"))


def static(model, output, samples, per_channel=True):
    from onnxruntime.quantization import QuantFormat, QuantType, quantize_static

    quantize_static(
        prepared(model, output),
        str(output),
        Samples(samples),
        quant_format=QuantFormat.QDQ,
        per_channel=per_channel,
        activation_type=QuantType.QUInt8,
        weight_type=QuantType.QInt8,
    )


def blocks(model, output, _):
    from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer

    quantizer = MatMulNBitsQuantizer(without_gemm(onnx.load(model)), block_size=BLOCK_SIZE, accuracy_level=ACCURACY_LEVEL)
    quantizer.process()
    onnx.save(quantizer.model.model, output)


def half(model, output, _):
    from onnxconverter_common import float16

    onnx.save(float16.convert_float_to_float16(onnx.load(model), keep_io_types=True), output)


def half_of_runtime(model, output, _):
    from onnxruntime.transformers import float16

    onnx.save(float16.convert_float_to_float16(onnx.load(model), keep_io_types=True), output)


def static_of_tensors(model, output, samples):
    """For tables, which the tool quantises along another axis than it reads them."""
    static(model, output, samples, per_channel=False)


# What is tried in turn, until a file passes the checker, loads and runs.
TOOLS = {
    "int8-dynamic": {"": dynamic, "without Gather": dynamic_without_tables},
    "int8-static": {"": static, "one scale a weight": static_of_tensors},
    "int4": {"": blocks},
    "fp16": {"": half, "onnxruntime.transformers.float16": half_of_runtime},
}


OPTIONS = {
    "int8-dynamic": ["--precision", "int8", "--quantization", "dynamic"],
    "int8-static": ["--precision", "int8", "--quantization", "static"],
    "int4": ["--precision", "int4"],
    "fp16": ["--precision", "fp16", "--device", "cuda"],
}


def convert_with_perfrun(arguments, precision, model, output):
    command = [arguments.perfrun, "convert", str(model), "-o", str(output), *OPTIONS[precision]]
    if precision == "int8-static":
        signature = session(model, arguments.threads).get_inputs()
        open_sizes = {size for tensor in signature for size in tensor.shape if not isinstance(size, int)}
        sizes = ",".join(f"{size}={SIZES.get(size, 1)}" for size in sorted(open_sizes))
        command += ["--items", str(arguments.samples), *(["--inputs", sizes] if sizes else [])]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0 or not output.exists():
        raise RuntimeError(" ".join((done.stderr or done.stdout).split())[:160])


def size_of(path):
    data = path.with_name(path.name + ".data")
    return path.stat().st_size + (data.stat().st_size if data.exists() else 0)


def distance(references, outputs):
    """Over all inputs and float outputs."""
    pairs = [
        (expected.ravel().astype(numpy.float64), found.ravel().astype(numpy.float64))
        for references_of, outputs_of in zip(references, outputs)
        for expected, found in zip(references_of, outputs_of)
        if numpy.issubdtype(expected.dtype, numpy.floating)
    ]
    expected, found = (numpy.concatenate(side) for side in zip(*pairs))
    norm = numpy.linalg.norm(expected) * numpy.linalg.norm(found)
    cosine = float(expected @ found / norm) if norm else float(numpy.array_equal(expected, found))
    gap = numpy.abs(expected - found)
    each = gap.reshape(len(references), -1).mean(axis=1)
    return Distance(cosine, float(gap.max()), each)


class Distance(typing.NamedTuple):
    """How far outputs are from those of float32."""

    cosine: float
    largest: float
    each: numpy.ndarray
    """Mean absolute difference for each input."""

    @property
    def mean(self):
        return float(self.each.mean())

    def is_beyond(self, other):
        """Whether it is larger than luck explains: the same inputs went through both files."""
        gap = self.each - other.each
        error = gap.std(ddof=1) / len(gap) ** 0.5 if len(gap) > 1 else 0.0
        return gap.mean() > max(0.02 * other.mean + 1e-7, 2 * error)


def medians(sessions, feed, calls=15):
    """Milliseconds of each session, called in turn so that they share what the machine does meanwhile."""
    times = [[] for _ in sessions]
    for call in range(calls + 2):
        for index, each in enumerate(sessions):
            start = time.perf_counter()
            each.run(None, feed)
            if call > 1:
                times[index].append((time.perf_counter() - start) * 1e3)
    return [statistics.median(of) for of in times]


def compare(arguments, precision, model, folder):
    """Prints lines, and gives the row of the table."""
    samples = inputs_of(model, 3, arguments.samples, arguments.threads)
    tests = inputs_of(model, 77, arguments.inputs, arguments.threads)
    sides, nothing, how = {}, False, ""
    attempts = [("perfrun", "", None), *(("python", way, tool) for way, tool in TOOLS[precision].items())]
    for side, way, tool in attempts:
        if side in sides:
            continue
        output = folder / f"{side}.onnx"
        output.unlink(missing_ok=True)
        try:
            if side == "perfrun":
                convert_with_perfrun(arguments, precision, model, output)
            else:
                with contextlib.redirect_stdout(io.StringIO()):
                    tool(model, output, samples)
            onnx.checker.check_model(str(output), full_check=side == "perfrun")
            converted = session(output, arguments.threads)
            converted.run(None, tests[0])
            sides[side] = (output, converted)
            how = way
        except Exception as problem:  # a tool that fails is a finding, not the end
            print(f"{model.stem:28} {precision:13} {side:8} fails: {str(problem).strip().splitlines()[-1][:110]}")
            nothing = nothing or "nothing in the model can be converted" in str(problem)
    if "perfrun" not in sides:
        verdict = "nothing to convert" if nothing else "**fails**"
        return Row(model.stem, precision, {}, {}, "", verdict, is_good=nothing)
    original = session(model, arguments.threads)
    references = [original.run(None, feed) for feed in tests]
    found = {side: distance(references, [of.run(None, feed) for feed in tests]) for side, (_, of) in sides.items()}
    sizes = {side: size_of(path) for side, (path, _) in sides.items()}
    times = {}
    if arguments.time:
        taken = medians([original, *(of for _, of in sides.values())], tests[0])
        times = dict(zip(["float32", *sides], taken))
    for side, of in found.items():
        took = f" {times[side]:9.2f} ms of {times['float32']:.2f}" if times else ""
        numbers = f"{sizes[side]:11} {of.cosine:10.6f} {of.largest:10.4g} {of.mean:10.4g}"
        print(f"{model.stem:28} {precision:13} {side:8} {numbers}{took}")
    complaints = []
    if "python" in sides and sizes["perfrun"] > 1.02 * sizes["python"]:
        complaints.append("larger")
    if "python" in sides and found["perfrun"].is_beyond(found["python"]):
        complaints.append("further from float32")
    if complaints:
        print(f"{model.stem:28} {precision:13} worse: {', '.join(complaints)}")
    verdict = f"**{', '.join(complaints)}**" if complaints else "yes"
    return Row(model.stem, precision, sizes, found, how, verdict, is_good=not complaints)


class Row(typing.NamedTuple):
    """One model in one precision, on both sides."""

    model: str
    precision: str
    sizes: dict
    found: dict
    how: str
    """The options that the other tool needed."""
    verdict: str
    is_good: bool

    def markdown(self):
        def both(texts):
            return " | ".join(texts.get(side, "fails") for side in ("perfrun", "python"))

        sizes = both({side: f"{size / 1e6:.3f}" for side, size in self.sizes.items()})
        means = both({side: f"{of.mean:.2e}" for side, of in self.found.items()})
        if not self.sizes:
            sizes = means = "- | -"
        how = f" ({self.how})" if self.how else ""
        return f"| {self.model} | {self.precision}{how} | {sizes} | {means} | {self.verdict} |\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("perfrun", help="the program")
    parser.add_argument("models", nargs="+", type=pathlib.Path)
    parser.add_argument("--precisions", default="int8-dynamic,int8-static,int4,fp16")
    parser.add_argument("--samples", type=int, default=8, help="inputs to calibrate with")
    parser.add_argument("--inputs", type=int, default=32, help="inputs to compare on")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--fill", action="store_true", help="seeded weights for models of constants")
    parser.add_argument("--time", action="store_true", help="measure latency too")
    parser.add_argument("--markdown", type=pathlib.Path, help="append the rows to this file")
    arguments = parser.parse_args()
    logging.disable(logging.CRITICAL)
    warnings.filterwarnings("ignore")
    onnxruntime.set_default_logger_severity(3)
    print(f"{'model':28} {'precision':13} {'side':8} {'bytes':>11} {'cosine':>10} {'largest':>10} {'mean':>10}")
    good = True
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for path in arguments.models:
            model = filled(path, folder) if arguments.fill else path
            for precision in arguments.precisions.split(","):
                row = compare(arguments, precision, model, folder)
                good &= row.is_good
                if arguments.markdown:
                    with arguments.markdown.open("a") as table:
                        table.write(row.markdown())
                sys.stdout.flush()
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
