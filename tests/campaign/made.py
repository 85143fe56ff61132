"""Small ONNX models that are made up: any operator, with inputs that it could take, and now and then with nonsense."""

import pathlib
import struct

import mutate
import wire
from wire import Field, message, number, text

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXTREMES = [0, 1, 2, 3, 7, 127, 128, 255, 2**16, 2**20, 2**31 - 1, 2**31, 2**32, 2**40, 2**62, 2**63 - 1]
EXTREMES += [-1, -2, -3, -(2**63)]
SMALL = [0, 1, 1, 1, 2, 2, 3, 3, 4, 5, 8, 10, 16, -1, -2]
LOCATIONS = ["weights"] * 9 + ["../weights", "/etc/passwd", "/dev/zero", "/dev/stdin", "model.onnx", ".", ""]
LOCATIONS += ["a/../../weights", "fifo", "fifo", "sparse"]
FLOATS = [0.0, -0.0, 1.0, -1.5, 65504.0, 65520.0, 1e-8, 3e38, float("inf"), float("-inf"), float("nan")]
SHAPES = [[1, 3, 8, 8], [2, 64], [64, 64], [32, 3, 3, 3], [1, 4, 8], [64], [], [1], [128, 64], [2, 8, 4]]
SHAPES += [[64, 32, 1, 1], [32, 1, 3, 3]]
OPSETS = [1, 6, 7, 8, 9, 10, 11, 12, 13, 13, 17, 17, 17, 18, 21, 23, 25]
FLOAT, UINT8, INT8, INT32, INT64, BOOL, FLOAT16, DOUBLE, BFLOAT16 = 1, 2, 3, 6, 7, 9, 10, 11, 16
SIZES = {1: 4, 2: 1, 3: 1, 4: 2, 5: 2, 6: 4, 7: 8, 9: 1, 10: 2, 11: 8, 12: 4, 13: 8, 16: 2}

# Attributes that shapes, costs and conversions look at: integers, lists of them, texts, floats.
INTEGERS = """axis axes allowzero keepdims transA transB ceil_mode count_include_pad group select_last_index to blocksize
hidden_size num_outputs batch_dims exclusive reverse largest sorted k p noop_with_empty_axes num_heads kv_num_heads N K bits
block_size transBatchA detect_positive storage_order start end num_scan_inputs value_int round spatial broadcast""".split()
LISTS = """axes pads kernel_shape strides dilations output_padding output_shape perm shape split starts ends scales repeats
value_ints scan_input_axes""".split()
TEXTS = """auto_pad mode direction equation coordinate_transformation_mode nearest_mode reduction layout value_string
fmod pooled""".split()
REALS = "alpha beta epsilon gamma ratio value value_float low high spatial_scale height_scale width_scale min max".split()
WORDS = ["SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET", "bidirectional", "reverse", "forward", "linear", "nearest", "cubic",
         "ij,jk->ik", "...ij,...jk->...ik", "ii->i", "i->ij", "->", ",,->", "bhwc,hkc->bhwk", "DCR", "CRD", "wrap", "edge",
         "align_corners", "half_pixel", "tf_crop_and_resize", "mean", "sum", "\u202e", "x" * 300]


def operators():
    """Operators with their inputs and outputs, from the table that perfrun is built with."""
    rows = (ROOT / "crates/onnx/src/operators.tsv").read_text().splitlines()[1:]
    columns = [(row.split("\t") + [""] * 4)[:4] for row in rows]
    return [(name, int(since), ins.split(), outs.split()) for name, since, ins, outs in columns]


OPERATORS = operators()
# What the conversions are about comes up more often.
USUAL = """Conv ConvTranspose MatMul Gemm Add Mul Relu Reshape Transpose Concat Slice
Gather BatchNormalization LSTM GRU Softmax Clip Pad Resize Upsample Split Constant ConstantOfShape Shape Cast Squeeze
Unsqueeze Expand Where Einsum MaxPool AveragePool GlobalAveragePool LayerNormalization QuantizeLinear DequantizeLinear
MatMulInteger ConvInteger QLinearConv QLinearMatMul If Loop Scan Range Tile TopK ReduceSum ReduceMean Dropout""".split()
MICROSOFT = "MatMulNBits Attention Gelu FusedMatMul SkipLayerNormalization GatherBlockQuantized DynamicQuantizeLSTM".split()


def external(rng):
    """Where a tensor's data are said to be."""
    pairs = {"location": rng.choice(LOCATIONS), "offset": rng.choice(mutate.NUMBERS), "length": rng.choice(mutate.NUMBERS)}
    return [message(13, "entry", text(1, key), text(2, value)) for key, value in pairs.items()]


class Maker:
    """Makes parts of one model."""

    def __init__(self, rng):
        self.rng = rng
        # Most models are nearly right, or nothing would look at more than their first fault.
        self.odds = rng.choice((0.0, 0.01, 0.01, 0.05, 0.2))
        self.opset = self.integer() if self.odd() else rng.choice(OPSETS)
        known = [row for row in OPERATORS if row[1] <= self.opset] or OPERATORS
        self.operators, self.usual = known, [row for row in known if row[0] in USUAL] or known

    def odd(self):
        """Whether this is where something is wrong."""
        return self.rng.random() < self.odds

    def integer(self):
        return self.rng.choice(EXTREMES if self.odd() else SMALL)

    def name(self, usual="m"):
        return self.rng.choice(mutate.STRINGS) if self.odd() else usual

    def dims(self):
        """A shape; those of weights come up often."""
        if self.rng.random() < 0.8:
            return self.rng.choice(SHAPES)
        return [self.integer() for _ in range(self.rng.randrange(6))]

    def tensor(self, called, element=FLOAT, field=5):
        """An initializer; its data are mostly as long as its shape says."""
        rng = self.rng
        element = rng.randrange(30) if self.odd() else element
        shape = self.dims() if element != INT64 or self.odd() else rng.choice(([rng.randrange(1, 5)], [], [1]))
        parts = [number(1, size) for size in shape] + [number(2, element), text(8, called)]
        count = 1
        for size in shape:
            count *= size
        count = count if 0 <= count <= 70000 else 3
        count = max(0, count + rng.choice((-1, 1, 7))) if self.odd() else count
        if self.odd():
            parts.append(number(14, 1))
            parts += [entry for entry in external(rng) if rng.random() < 0.8]
        elif element == FLOAT:
            some = [rng.choice(FLOATS) if self.odd() else rng.gauss(0, 1) for _ in range(64)]
            some = struct.pack("<64f", *some)
            parts.append(text(rng.choice((4, 9)), (some * (count // 64 + 1))[:4 * count]))
        elif element == INT64:
            values = [self.integer() for _ in range(count)]
            raw = text(9, b"".join(struct.pack("<q", value) for value in values))
            parts.append(raw if rng.random() < 0.7 else text(7, b"".join(wire.varint(value) for value in values)))
        else:
            parts.append(text(9, rng.randbytes(SIZES.get(element, 1) * count)))
        return message(field, "tensor", *parts)

    def attribute(self, depth=0):
        """An attribute with a name that some operator looks at, mostly of the type that it should have."""
        rng, kind = self.rng, self.rng.randrange(10)
        if kind < 3:
            return message(5, "attribute", text(1, rng.choice(INTEGERS)), number(3, self.integer()), number(20, 2))
        if kind < 6:
            values = [number(8, self.integer()) for _ in range(rng.choice((1, 2, 2, 3, 4, 4, 8, 0)))]
            return message(5, "attribute", text(1, rng.choice(LISTS)), *values, number(20, 7))
        if kind == 6:
            return message(5, "attribute", text(1, rng.choice(TEXTS)), text(4, rng.choice(WORDS)), number(20, 3))
        if kind == 7:
            value = Field(2, 5, struct.pack("<f", rng.choice(FLOATS)))
            return message(5, "attribute", text(1, rng.choice(REALS)), value, number(20, 1))
        if kind == 8 or not depth:
            return message(5, "attribute", text(1, "value"), self.tensor("", rng.choice((FLOAT, INT64))), number(20, 4))
        return self.branch(rng.choice(("then_branch", "else_branch", "body")), depth)

    def branch(self, called, depth):
        inner = message(6, "graph", *self.graph(depth - 1, self.rng.randrange(1, 3)))
        return message(5, "attribute", text(1, called), inner, number(20, 5))

    def input(self, kind, before):
        """A name of something of the type that an input has."""
        rng = self.rng
        if self.odd():
            return rng.choice(("", "t0", "t1", "t9", self.name("x")))
        if kind.startswith(("=7", "=6", "tensor(int64)")):
            return rng.choice(("i", "j"))
        if kind.startswith("=9"):
            return "c"
        return rng.choice(before[-3:]) if before and rng.random() < 0.7 else rng.choice("xywwb")

    def node(self, depth, index, functions=()):
        """A node with as many inputs as its operator takes, as a rule."""
        rng = self.rng
        operator, _, ins, outs = rng.choice(self.usual if rng.random() < 0.7 else self.operators)
        domain, gives = "", max(1, len(outs))
        if rng.random() < 0.03:
            operator, domain, ins = rng.choice(MICROSOFT), "com.microsoft", ["T"] * rng.randrange(1, 6)
        elif functions and rng.random() < 0.4:
            operator, domain, ins = rng.choice(functions), "local", ["T"] * rng.randrange(1, 3)
        kinds = []
        for kind in ins:
            times = {"*": rng.randrange(1, 4), "~": rng.randrange(1, 4), "?": rng.randrange(2)}
            kinds += [kind] * times.get(kind[-1], 1)
        kinds = kinds[:rng.randrange(len(kinds) + 1)] if self.odd() else kinds
        before = [f"t{known}" for known in range(index)]
        parts = [text(1, self.input(kind, before)) for kind in kinds]
        parts += [text(2, f"t{index}" if out == 0 else f"u{index}_{out}") for out in range(gives)]
        parts += [text(3, self.name(f"n{index}")), text(4, operator)] + ([text(7, domain)] if domain else [])
        branches = {"If": ("then_branch", "else_branch"), "Loop": ("body",), "Scan": ("body",)}.get(operator, ())
        parts += [self.branch(branch, depth) for branch in branches if depth]
        parts += [self.attribute(depth) for _ in range(rng.choice((0, 0, 1, 1, 2, 3)))]
        return message(1, "node", *parts)

    def value(self, field, called, element=FLOAT):
        """What is known of an input or output."""
        rng, sizes = self.rng, []
        for size in self.dims():
            size = text(2, self.name(rng.choice(("batch", "n")))) if rng.random() < 0.2 else number(1, size)
            sizes.append(message(1, "dim", *([] if self.odd() else [size])))
        element = number(1, rng.randrange(30) if self.odd() else element)
        shape = [] if rng.random() < 0.05 or self.odd() else [message(2, "shape", *sizes)]
        inner = message(1, "tensor_type", element, *shape)
        if self.odd():
            inner = message(rng.choice((4, 9)), "holder", message(1, "type", inner))
        return message(field, "value", text(1, called), message(2, "type", inner))

    def graph(self, depth, nodes, functions=()):
        """The fields of a graph."""
        rng = self.rng
        parts = [self.node(depth, index, functions) for index in range(nodes)]
        if rng.random() < 0.7:
            # Something that every conversion converts.
            parts[0] = message(1, "node", text(1, rng.choice("xy")), text(1, "large"), text(2, "t0"), text(4, "MatMul"))
        if self.odd():
            rng.shuffle(parts)
        parts.append(text(2, self.name("g")))
        stored = [("w", FLOAT), ("b", FLOAT), ("i", INT64), ("j", INT64), ("c", BOOL)]
        parts += [self.tensor(called, element) for called, element in stored if not self.odd()]
        shape = [number(1, 64), number(1, 128)]
        parts.append(message(5, "tensor", *shape, number(2, FLOAT), text(8, "large"), text(9, rng.randbytes(64) * 512)))
        elements = (FLOAT, FLOAT, FLOAT, FLOAT16, INT64)
        parts += [self.value(11, called, rng.choice(elements)) for called in "xy" if not self.odd()]
        parts += [self.value(13, f"t{index}") for index in range(nodes) if rng.random() < 0.1]
        return parts + [self.value(12, f"t{nodes - 1}")] + ([self.value(12, self.name("x"))] if self.odd() else [])

    def function(self, called, functions):
        inner = [Field(7, 2, self.node(1, index, functions).value, "node") for index in range(2)]
        names = [text(4, name) for name in "xywbijc"] + [text(5, "t1"), text(6, "axis")]
        imports = [("", self.opset), ("local", 1)]
        imports = [message(9, "opset", text(1, domain), number(2, version)) for domain, version in imports]
        return message(25, "function", text(1, called), *names, *inner, text(10, "local"), *imports)

    def model(self):
        rng = self.rng
        functions = [f"f{index}" for index in range(3)] if rng.random() < 0.15 else []
        parts = [number(1, self.integer() if self.odd() else rng.choice((3, 7, 8, 9, 10))), text(2, self.name("made"))]
        parts.append(message(7, "graph", *self.graph(2, rng.choice((1, 1, 2, 3, 5, 8)), functions)))
        imports = [("", self.opset), ("com.microsoft", 1), ("local", 1)]
        parts += [message(8, "opset", text(1, domain), number(2, version)) for domain, version in imports]
        # Each calls those before it, so that most do not call themselves.
        for at, called in enumerate(functions):
            parts.append(self.function(called, functions if self.odd() else functions[:at]))
        return wire.write(parts)


def nested(rng):
    """Branches within branches, or functions that call each other in a line or in a ring."""
    depth = rng.choice((10, 100, 1000, 5000))
    inner = b""
    if rng.random() < 0.6:
        for _ in range(depth):
            branch = message(5, "attribute", text(1, "then_branch"), Field(6, 2, inner), number(20, 5))
            inner = wire.write([message(1, "node", text(1, "c"), text(2, "t"), text(4, "If"), branch)])
        return wire.write([number(1, 8), Field(7, 2, inner), message(8, "opset", number(2, 17))])
    ring, twice = rng.random() < 0.5, rng.random() < 0.5
    call = lambda to: message(7, "node", text(1, "x"), text(2, "x"), text(4, f"f{to}"), text(7, "l"))
    functions = []
    for index in range(depth):
        to = (index + 1) % depth if ring else index + 1
        calls = [call(to)] * (2 if twice else 1) if to < depth else []
        own = message(9, "opset", text(1, "l"), number(2, 1))
        ends = [text(1, f"f{index}"), text(4, "x"), text(5, "x"), text(10, "l")]
        functions.append(message(25, "function", *ends, *calls, own))
    maker = Maker(rng)
    top = [message(1, "node", text(1, "x"), text(2, "y"), text(4, "f0"), text(7, "l"))]
    top += [maker.value(11, "x"), maker.value(12, "y")]
    imports = [message(8, "opset", number(2, 17)), message(8, "opset", text(1, "l"), number(2, 1))]
    return wire.write([number(1, 8), message(7, "graph", *top), *imports, *functions])
