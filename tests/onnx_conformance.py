"""ONNX's own conformance models, one operator each as a rule, through `perfrun convert`.

Usage: python3 tests/onnx_conformance.py target/release/perfrun [--every N] [--precisions fp16,bf16,int8,int4]
                                         [--devices cpu,cuda] [--jobs N] [--json FILE]

Needs onnx, onnxruntime and numpy. The models are those of `onnx.backend.test` with their inputs and outputs, each as it
is and with all inputs but the first as weights: as initializers, as Constant nodes, and as rows of larger tables, since
small weights stay in float32 on the CPU. A model counts where it passes the full check of onnx and gives its own outputs
in a runner, ONNX Runtime on the CPU or the reference of onnx. For each precision and device a conversion is then
  refused    exit code 2 and a message
  right      a file that is valid and computes the same, as far as the precision allows
  invalid    a file that fails the full check, or that no longer loads or runs
  wrong      outputs that the precision does not explain
  unjudged   a file that no runner here can run, for reasons of the runner
  crashed    anything else, and more than 20 s
Exit code 1 where something is invalid, wrong or crashed, or where fewer were converted than LEAST says.
"""

import argparse
import collections.abc
import concurrent.futures
import copy
import itertools
import json
import os
import pathlib
import platform
import re
import subprocess
import sys
import tempfile
import warnings

import numpy
import onnx
import onnx.reference
import onnxruntime
from google.protobuf.message import Message
from onnx import TensorProto, numpy_helper
from onnxruntime.capi.onnxruntime_pybind11_state import NotImplemented as NoKernel

SECONDS = 20
HALF = {"fp16": TensorProto.FLOAT16, "bf16": TensorProto.BFLOAT16}
FORMS = ["as it is", "initializers", "constants", "tables"]
TABLE = 256  # elements from which a weight is worth a cast to perfrun

# The largest |a - b| as a share of the largest |a|, and the least cosine. One rounding of fp16 is 0.05 %, one of bf16
# 0.4 %, and an operator does several. 8 and 4 bits round weights to 0.4 % and 3 % of their largest, activations too for
# 8 bits; a small model has few terms over which that averages out, so what counts is that the direction is kept.
#
# Steps (ArgMax, Round, comparisons) and steep functions (softmax of large numbers) make much of one rounding. So the
# outputs of the original for data that were rounded to the half precision are as right as those for the data as they are.
LIMITS = {"fp16": (1e-2, 0.9999), "bf16": (5e-2, 0.998), "int8": (0.1, 0.98), "int4": (0.4, 0.9)}

# Without VNNI ONNX Runtime multiplies 8-bit numbers on x86 by instructions that saturate. `convert` says so there, and
# names the option that avoids it, which is what is tested then.
CPU = pathlib.Path("/proc/cpuinfo")
SATURATES = platform.machine() == "x86_64" and CPU.exists() and "vnni" not in CPU.read_text()

# What these make is random, and no two runners agree.
RANDOM = {"Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"}

# A little below what was converted of the models of onnx 1.17.0.
LEAST = {"fp16": {"cpu": 370, "cuda": 2000}, "bf16": {"cpu": 350, "cuda": 980}, "int8": {"cpu": 40, "cuda": 40}}
# And of those of `large`, which are in every sample.
LEAST_LARGE = {"fp16": {"cpu": 15, "cuda": 20}, "bf16": {"cpu": 15, "cuda": 20}, "int8": {"cpu": 10, "cuda": 10}}
LEAST_LARGE |= {"int4": {"cpu": 10, "cuda": 10}}


def value_of(path, kind):
    """What a file of the test data holds: an array, a list of them, or nothing."""
    readers = {
        "sequence_type": (onnx.SequenceProto, numpy_helper.to_list),
        "optional_type": (onnx.OptionalProto, numpy_helper.to_optional),
    }
    proto, read = readers.get(kind.WhichOneof("value"), (TensorProto, numpy_helper.to_array))
    return read(proto.FromString(path.read_bytes()))


def cases():
    """Name, model, inputs and outputs, from the files of the package; newer ones make those of the nodes instead."""
    folder = pathlib.Path(onnx.__file__).parent / "backend/test/data"
    for path in sorted(folder.glob("*/*/model.onnx")):
        model, data = onnx.load(path), path.parent / "test_data_set_0"
        inputs = [value_of(data / f"input_{index}.pb", of.type) for index, of in enumerate(fed(model))]
        outputs = [value_of(data / f"output_{index}.pb", of.type) for index, of in enumerate(model.graph.output)]
        yield path.parent.name, model, inputs, outputs
    if not (folder / "node").exists():
        from onnx.backend.test.case.node import collect_testcases

        numpy.random.seed(0)
        array = lambda value: numpy_helper.to_array(value) if isinstance(value, TensorProto) else value
        for case in sorted(collect_testcases(None), key=lambda case: case.name):
            inputs, outputs = case.data_sets[0]
            yield case.name, case.model, [*map(array, inputs)], [*map(array, outputs)]


def large():
    """As `cases`: products with matrices of 2^14 elements, which is worth 4 bits."""
    numbers = numpy.random.default_rng(0)
    draw = lambda *shape: numbers.standard_normal(shape, dtype=numpy.float32)
    shapes = [((4, 256), (256, 64)), ((1, 100), (100, 200)), ((2, 3, 128), (128, 144))]
    made = [("MatMul", {}, [draw(*x), draw(*w)]) for x, w in shapes]
    made += [("Gemm", {}, [draw(4, 64), draw(64, 256)]), ("Gemm", {"transB": 1}, [draw(4, 192), draw(96, 192), draw(96)])]
    for number, (operator, attributes, inputs) in enumerate(made):
        names = ["x", "w", "c"][: len(inputs)]
        node = onnx.helper.make_node(operator, names, ["y"], **attributes)
        outputs = [(inputs[0] @ (inputs[1].T if attributes else inputs[1]) + sum(inputs[2:])).astype(numpy.float32)]
        tensors = [
            onnx.helper.make_tensor_value_info(name, TensorProto.FLOAT, value.shape)
            for name, value in zip([*names, "y"], inputs + outputs, strict=True)
        ]
        graph = onnx.helper.make_graph([node], "large", tensors[:-1], tensors[-1:])
        opset = onnx.helper.make_opsetid("", 17)
        yield f"large_{operator}_{number}", onnx.helper.make_model(graph, opset_imports=[opset], ir_version=8), inputs, outputs


def fed(model):
    """The inputs without those that stand for weights, as all did before version 4 of the format."""
    weights = {tensor.name for tensor in model.graph.initializer}
    return [of for of in model.graph.input if of.name not in weights]


def form_of(model, form, inputs):
    """The model in one of its forms, and what is left to feed to it."""
    new, feeds, nodes = copy.deepcopy(model), {}, []
    for place, (of, value) in enumerate(zip(fed(model), inputs, strict=True)):
        # numpy has no bfloat16 and no 4 bits; onnx 1.17 puts structures with names there instead.
        if form == "as it is" or place == 0 or not isinstance(value, numpy.ndarray) or value.dtype.names:
            feeds[of.name] = value
            continue
        new.graph.input.remove(of)
        if form == "constants":
            tensor = numpy_helper.from_array(value, of.name)
            nodes.append(onnx.helper.make_node("Constant", [], [of.name], value=tensor))
        elif form == "tables" and value.dtype == numpy.float32 and value.size:
            row, table = of.name + "_row", of.name + "_table"
            rows = numpy.stack([value] + [numpy.zeros_like(value)] * -(-TABLE // value.size))
            new.graph.initializer.append(numpy_helper.from_array(rows, table))
            new.graph.initializer.append(numpy_helper.from_array(numpy.array(0), row))
            nodes.append(onnx.helper.make_node("Gather", [table, row], [of.name]))
        else:
            new.graph.initializer.append(numpy_helper.from_array(value, of.name))
    nodes += new.graph.node
    del new.graph.node[:]
    new.graph.node.extend(nodes)
    if form != "as it is":
        new.ir_version = max(new.ir_version, 4)  # from 4 on weights need not be inputs
    return new, feeds


def parts(message):
    """Whatever a model holds, itself first."""
    yield message
    for _, value in message.ListFields():
        for each in value if isinstance(value, collections.abc.Sequence) else [value]:
            if isinstance(each, Message):
                yield from parts(each)


def nodes_of(model):
    return [part for part in parts(model) if isinstance(part, onnx.NodeProto)]


def is_random(model):
    in_training = lambda node: node.op_type == "Dropout" and len(node.input) > 2
    return any(node.op_type in RANDOM or in_training(node) for node in nodes_of(model))


def rounded(value, precision):
    """A value as the precision stores it."""
    if not isinstance(value, numpy.ndarray) or value.dtype != numpy.float32:
        return value
    if precision == "fp16":
        return value.astype(numpy.float16).astype(numpy.float32)
    bits = value.view(numpy.uint32).astype(numpy.uint64)
    bits = ((bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000).astype(numpy.uint32)
    return numpy.where(numpy.isfinite(value), bits.view(numpy.float32), value)


def widened(model, half):
    """The same with float32 instead of a half precision, for runners without its arithmetic."""
    new = copy.deepcopy(model)
    for part in list(parts(new)):
        if isinstance(part, TensorProto) and part.data_type == half:
            if half == TensorProto.BFLOAT16:  # which onnx 1.17 does not read from raw data
                values = (numpy.frombuffer(part.raw_data, "<u2").astype(numpy.uint32) << 16).view(numpy.float32)
            else:
                values = numpy_helper.to_array(part).astype(numpy.float32)
            part.CopyFrom(numpy_helper.from_array(values.reshape(part.dims), part.name))
        elif isinstance(part, onnx.TypeProto.Tensor) and part.elem_type == half:
            part.elem_type = TensorProto.FLOAT
        elif isinstance(part, onnx.AttributeProto) and part.name in ("to", "dtype", "output_dtype") and part.i == half:
            part.i = TensorProto.FLOAT
    return new


def load(runner, model):
    if runner == "reference":
        return onnx.reference.ReferenceEvaluator(model)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def run(runner, model, feeds):
    # ONNX Runtime writes the running mean of BatchNormalization into what it is fed.
    return load(runner, model).run(None, copy.deepcopy(feeds))


def difference(wanted, found, furthest, least_cosine):
    """What is wrong with an output, or nothing."""
    if isinstance(wanted, (list, tuple)):
        if not isinstance(found, (list, tuple)) or len(found) != len(wanted):
            return "another number of elements"
        return next(filter(None, (difference(*pair, furthest, least_cosine) for pair in zip(wanted, found))), "")
    if wanted is None or found is None:
        return "" if wanted is found else "an optional value is there on one side only"
    wanted, found = numpy.asarray(wanted), numpy.asarray(found)
    if wanted.shape != found.shape or wanted.dtype.kind != found.dtype.kind:
        return f"{found.dtype}{list(found.shape)}, not {wanted.dtype}{list(wanted.shape)}"
    if wanted.dtype.kind not in "fc":
        equal = wanted == found
        if wanted.dtype in (numpy.int8, numpy.uint8):  # a float before the last rounding may differ too
            equal = numpy.abs(wanted.astype(int) - found) <= 1
        return "" if numpy.all(equal) else f"{numpy.mean(equal):.0%} of the elements are equal"
    wanted, found = wanted.astype(numpy.complex128), found.astype(numpy.complex128)
    is_finite = numpy.isfinite(wanted)
    same = numpy.array_equal(is_finite, numpy.isfinite(found))
    if not same or not numpy.array_equal(wanted[~is_finite], found[~is_finite], equal_nan=True):
        return "other infinities or NaN"
    wanted, found = wanted[is_finite], found[is_finite]
    largest, gap = numpy.abs(wanted).max(initial=0), numpy.abs(wanted - found).max(initial=0)
    if gap > furthest * largest:
        return f"differs by {gap / largest if largest else gap:.2g} of the largest element"
    norm = numpy.linalg.norm(wanted) * numpy.linalg.norm(found)
    cosine = abs(numpy.vdot(wanted, found)) / norm if norm else 1.0
    return f"cosine {cosine:.4f}" if cosine < least_cosine else ""


def convert(perfrun, original, feeds, precision, device, folder):
    """The converted model; without one a verdict, and why."""
    source, output, data = (folder / name for name in ("model.onnx", "converted.onnx", "data.npz"))
    source.write_bytes(original.SerializeToString())
    output.unlink(missing_ok=True)
    attempts = [[perfrun, "convert", str(source), "--precision", precision, "--device", device, "-o", str(output)]]
    if precision == "int8":
        # Calibrated on what it is tested with, where that has items along its first dimension.
        arrays = {name: value for name, value in feeds.items() if isinstance(value, numpy.ndarray)}
        numpy.savez(data, **{name: value for name, value in arrays.items() if value.dtype.kind in "bfiu"})
        attempts[0] += ["--reduce-range"] if SATURATES else []
        attempts.insert(0, [*attempts[0], "--data", str(data)])
    for command in attempts:
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
        except subprocess.TimeoutExpired:
            return None, "crashed", f"more than {SECONDS} s"
        message = " ".join(done.stderr.replace("│", "").replace(str(source), "MODEL").split())
        if done.returncode != 2 or ", data " not in message:
            break
    if done.returncode == 0 and output.exists():
        return onnx.load(output), "", ""
    if done.returncode == 2 and message:
        return None, "refused", message
    return None, "crashed", f"exit code {done.returncode}: {message[-300:]}"


def judge(converted, original, feeds, references, precision, device):
    """What a converted model is, and why. `references` has for each runner the outputs that are right."""
    half = HALF.get(precision)
    try:
        onnx.checker.check_model(converted, full_check=True)
        if "onnxruntime" in references:
            # It checks types first, and then looks for kernels, some of which it lacks for half precisions.
            loaded = load("onnxruntime", converted)
            if device == "cpu":
                loaded.run(None, copy.deepcopy(feeds))
    except Exception as problem:
        # Without a kernel it writes out the operator's function; that of Attention (1.31) has wrong types in bfloat16.
        named = re.search(r"Optype \((\w+)\)", str(problem))
        is_written_out = named and named[1] not in {node.op_type for node in nodes_of(converted)}
        if device == "cpu" or not (isinstance(problem, NoKernel) or is_written_out):
            return "invalid", in_a_line(problem)
    # numpy has no arithmetic in bfloat16. For a GPU the reference comes first, since it computes in half precision, and
    # ONNX Runtime's CPU provider in float32 behind casts of its own.
    ways = [(runner, converted) for runner in references if runner == "onnxruntime" or precision != "bf16"]
    ways = ways if device == "cpu" else ways[::-1]
    can_widen = half and widened(original, half) == original
    ways += [(runner, widened(converted, half)) for runner in references if can_widen]
    why = "it has that precision of its own, which no runner here computes in"
    ran = False
    for runner, model in ways:
        # What was widened says something only where nothing else ran.
        if ran and model is not converted:
            break
        try:
            outputs = run(runner, model, feeds)
        except Exception as problem:
            why = in_a_line(problem)
            continue
        ran = True
        found = [difference(right, outputs, *LIMITS[precision]) for right in references[runner]]
        if all(found):
            return "wrong", f"{runner if model is converted else f'{runner}, widened'}: {found[0]}"
    if ran:
        return "right", ""
    of_runtime = any(node.domain == "com.microsoft" for node in nodes_of(converted))
    return "unjudged" if of_runtime or half and not can_widen else "invalid", why


def in_a_line(problem):
    return f"{type(problem).__name__}: {' '.join(str(problem).split())}"[:300]


def examine(perfrun, name, model, form, inputs, outputs, precisions, devices):
    """A row for each precision and device."""
    original, feeds = form_of(model, form, inputs)
    references, problems = {}, []
    for runner in ("onnxruntime", "reference"):
        try:
            onnx.checker.check_model(original, full_check=True)
            exact = run(runner, original, feeds)
            problems.append(difference(outputs, exact, 1e-3, 0.9999))
        except Exception as problem:
            problems.append(in_a_line(problem))
        if not problems[-1]:
            references[runner] = [exact]
    row = {"model": name, "form": form, "precision": "", "device": "", "verdict": "not counted", "reason": ""}
    if not references:
        return [{**row, "reason": " | ".join(problems)}]
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for precision in precisions:
            right = {runner: list(of) for runner, of in references.items()}
            if precision in HALF:
                other, other_feeds = form_of(model, form, [rounded(value, precision) for value in inputs])
                for runner in right:
                    try:
                        right[runner].append(run(runner, other, other_feeds))
                    except Exception:  # a number that may not be rounded, such as a size
                        pass
            for device in devices:
                converted, verdict, reason = convert(perfrun, original, feeds, precision, device, pathlib.Path(folder))
                if converted:
                    verdict, reason = judge(converted, original, feeds, right, precision, device)
                rows.append({**row, "precision": precision, "device": device, "verdict": verdict, "reason": reason})
    return rows


def report(rows, precisions, devices, every):
    """Prints the table and what is wrong, and gives whether all is well."""
    verdicts = ["refused", "right", "invalid", "wrong", "unjudged", "crashed"]
    count = collections.Counter((row["precision"], row["device"], row["verdict"]) for row in rows)
    models = len({(row["model"], row["form"]) for row in rows})
    print(f"{models} models, of which {count['', '', 'not counted']} do not count")
    print(f"{'':15}{'converted':>10}" + "".join(f"{verdict:>10}" for verdict in verdicts))
    good = True
    for precision, device in [(precision, device) for precision in precisions for device in devices]:
        counts = [count[precision, device, verdict] for verdict in verdicts]
        converted = sum(counts[1:-1])
        print(f"{precision:8}{device:7}{converted:10}" + "".join(f"{number:10}" for number in counts))
        least = LEAST.get(precision, {}).get(device, 0) / every
        least -= 5 * least**0.5 if every > 1 else 0  # a sample has more of them or fewer, in threes and fours
        least = max(least, 0) + LEAST_LARGE.get(precision, {}).get(device, 0)
        if converted < least:
            print(f"{precision} {device}: at least {least:.0f} should be converted")
            good = False
    for row in rows:
        if row["verdict"] in ("invalid", "wrong", "crashed"):
            print("{verdict}: {model}, {form}, {precision} {device}: {reason}".format(**row))
            good = False
    return good


def quiet():
    """Infinities and NaN are what some models are about."""
    warnings.filterwarnings("ignore")
    numpy.seterr(all="ignore")
    onnxruntime.set_default_logger_severity(4)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("perfrun", type=pathlib.Path, help="the program")
    parser.add_argument("--every", type=int, default=1, help="take one model out of so many")
    parser.add_argument("--precisions", default="fp16,bf16,int8,int4")
    parser.add_argument("--devices", default="cpu,cuda")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--json", type=pathlib.Path, help="write every result to this file")
    arguments = parser.parse_args()
    precisions, devices = arguments.precisions.split(","), arguments.devices.split(",")
    quiet()
    library = next(pathlib.Path(onnxruntime.__file__).parent.glob("capi/libonnxruntime.so.*"))
    rows, seen, pending = [], set(), []
    with tempfile.TemporaryDirectory() as cache:
        os.environ.update(PERFRUN_CACHE=cache, ORT_DYLIB_PATH=str(library))
        with concurrent.futures.ProcessPoolExecutor(arguments.jobs, initializer=quiet) as pool:
            for name, model, inputs, outputs in [*large(), *itertools.islice(cases(), 0, None, arguments.every)]:
                for form in [] if is_random(model) else FORMS:
                    content = form_of(model, form, inputs)[0].SerializeToString()
                    if content not in seen:
                        seen.add(content)
                        task = (str(arguments.perfrun.resolve()), name, model, form, inputs, outputs)
                        pending.append(pool.submit(examine, *task, precisions, devices))
            for task in pending:
                rows += task.result()
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1))
    sys.exit(0 if report(rows, precisions, devices, arguments.every) else 1)


if __name__ == "__main__":
    main()
