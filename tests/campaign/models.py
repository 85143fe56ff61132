"""ONNX models that are changed in their structure, as bytes, or made up."""

import made
import mutate
import wire
from wire import number, text


def changed(rng, data):
    """A model of which one to four fields are lost, doubled, exchanged or something else."""
    fields, maker = wire.parse(data, "model"), made.Maker(rng)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        every = wire.messages(fields, "model")
        kind = rng.choice(sorted({kind for kind, inner in every if inner}))
        inner = rng.choice([inner for of, inner in every if of == kind and inner])
        leaves = [field.value for _, inside in every for field in inside if field.wire == 2 and not field.kind]
        texts = [value for value in leaves if isinstance(value, bytes) and len(value) < 80]
        field = rng.choice(inner)
        how = rng.randrange(12)
        if how == 0:
            inner.remove(field)
        elif how == 1:
            inner.extend([field] * rng.choice((1, 2, 50)))
        elif how == 2:
            other = rng.choice(inner)
            field.value, other.value, field.kind, other.kind = other.value, field.value, other.kind, field.kind
            field.wire, other.wire = other.wire, field.wire
        elif how == 3:
            field.number = rng.randrange(1, 27)
        elif how == 4 and kind == "tensor":
            inner[:] = [part for part in inner if part.number != 9]
            inner += [number(14, 1), *made.external(rng)[:rng.randrange(4)]]
        elif how == 5 and kind == "tensor":
            inner.insert(0, number(1, rng.choice(made.EXTREMES)))
        elif how == 6 and kind == "node":
            inner.append(maker.attribute(1))
        elif how == 7 and kind == "node":
            operator = rng.choice(made.OPERATORS)[0]
            inner[:] = [text(4, operator) if part.number == 4 else part for part in inner]
        elif how == 8 and kind == "graph":
            known = maker.value(rng.choice((11, 12, 13)), maker.name("x"))
            inner.append(rng.choice((maker.tensor(maker.name("w")), known, maker.node(1, 1))))
        elif field.wire == 0:
            field.value = rng.choice(made.EXTREMES + made.SMALL)
        elif isinstance(field.value, bytes) and field.wire == 2 and texts:
            hostile = rng.choice(mutate.STRINGS).encode("utf-8", "surrogatepass")
            others = (rng.choice(texts), hostile, field.value[:-1], field.value * 2, rng.randbytes(8), b"\xff")
            field.value = rng.choice(others)
        elif isinstance(field.value, bytes):
            field.value = rng.randbytes(len(field.value))
    return wire.write(fields)


def model(rng, seeds):
    """A model and how it came about."""
    kind = rng.random()
    if kind < 0.5:
        return made.Maker(rng).model(), "made up"
    if kind < 0.51:
        return made.nested(rng), "nested"
    called, data = rng.choice(seeds)
    if kind < 0.85:
        return changed(rng, data), f"{called} changed"
    return mutate.damage(rng, data, rng.choice(seeds)[1]), f"{called} damaged"
