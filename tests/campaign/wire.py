"""The wire format of Protocol Buffers, as far as ONNX needs it: fields that can be taken apart, changed and written."""

import dataclasses

# Which fields of which message are messages.
NESTED = {
    "model": {7: "graph", 8: "opset", 14: "entry", 25: "function"},
    "graph": {1: "node", 5: "tensor", 11: "value", 12: "value", 13: "value", 15: "sparse"},
    "node": {5: "attribute"},
    "attribute": {5: "tensor", 6: "graph", 10: "tensor", 11: "graph", 14: "type", 22: "sparse"},
    "tensor": {13: "entry"},
    "sparse": {1: "tensor", 2: "tensor"},
    "value": {2: "type"},
    "type": {1: "tensor_type", 4: "holder", 5: "map", 8: "tensor_type", 9: "holder"},
    "holder": {1: "type"},
    "map": {2: "type"},
    "tensor_type": {2: "shape"},
    "shape": {1: "dim"},
    "function": {7: "node", 9: "opset"},
}


@dataclasses.dataclass
class Field:
    """A number, a type on the wire, and an integer, bytes, or the fields of a message."""

    number: int
    wire: int
    value: object
    kind: str = ""


def varint(number):
    """The bytes of an integer; a negative one takes ten."""
    number &= 2**64 - 1
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def read_varint(data, at):
    """An integer, and where it ends."""
    number = shift = 0
    while True:
        byte = data[at]
        at += 1
        number |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return number, at


def parse(data, kind):
    """The fields of a message of this kind."""
    fields, at = [], 0
    while at < len(data):
        tag, at = read_varint(data, at)
        number, wire = tag >> 3, tag & 7
        if wire == 0:
            value, at = read_varint(data, at)
        elif wire in (1, 5):
            value, at = data[at:at + (8 if wire == 1 else 4)], at + (8 if wire == 1 else 4)
        elif wire == 2:
            length, at = read_varint(data, at)
            value, at = data[at:at + length], at + length
        else:
            raise ValueError(f"type {wire} on the wire")
        inner = NESTED.get(kind, {}).get(number, "") if wire == 2 else ""
        fields.append(Field(number, wire, parse(value, inner) if inner else value, inner))
    return fields


def write(fields):
    """The bytes of a message."""
    out = bytearray()
    for field in fields:
        out += varint(field.number << 3 | field.wire)
        if field.wire == 0:
            out += varint(field.value)
            continue
        value = write(field.value) if isinstance(field.value, list) else field.value
        if field.wire == 2:
            out += varint(len(value))
        out += value
    return bytes(out)


def messages(fields, kind, found=None):
    """Every message with its kind, outermost first."""
    found = [] if found is None else found
    found.append((kind, fields))
    for field in fields:
        if isinstance(field.value, list):
            messages(field.value, field.kind, found)
    return found


def number(field, value):
    """A field with an integer."""
    return Field(field, 0, value)


def text(field, value):
    """A field with a text or bytes."""
    return Field(field, 2, value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value)


def message(field, kind, *fields):
    """A field with a message."""
    return Field(field, 2, list(fields), kind)
