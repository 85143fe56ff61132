"""Changes to bytes, texts and JSON; each is decided by the random numbers that it is given."""

import json
import re

NUMBERS = [
    "-1", "0", "1", "-0.0", "0.5", "1e308", "-1e308", "1e-320", "1e309", "NaN", "nan", ".nan", ".inf", "-.inf", "Infinity",
    "127", "128", "255", "256", "65535", "65536", "2147483647", "2147483648", "4294967295", "4294967296",
    "9223372036854775807", "9223372036854775808", "18446744073709551615", "18446744073709551616", "1" * 400, "0x7f",
    "1_000", "1e3", "5%", "-5%", "1e300%", "1ns", "-1s", "99999999999h", "18446744073709551615ns", "1e30GiB", "0ms",
]
STRINGS = [
    "", " ", "\x1b[31mred\x1b[0m", "\x1b]0;title\x07", "a\u202eb", "\u2066x", "\u200b", "\ufeff", "a\nb", "a\r\nb", "a\tb",
    "\x00", "\x9b1m", "x" * 300, "y" * 70000, "../escaped", "../../escaped", "/tmp/perfrun-campaign-escaped", ".", "..", "/", "//", "~", "$HOME", "$(touch ../escaped)", "a/b", "-",
    "--help", "<script>alert(1)</script>", "</script><img src=x onerror=alert(1)>", "`<script>alert(1)</script>`",
    "```\n<script>alert(1)</script>", "-->\n<script>alert(1)</script>", "]]><script>alert(1)</script>",
    "' onclick='\" x=\"", "$x$ \\end{tabular} & \\input{x} _ ^ # %", "![x](http://e/x.png)",
    "| a | b |",
    "\\write18{touch ../escaped}", "%s%n", "{{7*7}}", "{% include 'x' %}", "\U0001f469\u200d\U0001f4bb", "\u00fc" * 80,
    "null", "true", "~", "*", "**/*", "[", "a: b", "!!binary x", "&a *a", "latest", "zoo:", "https://", "http://127.0.0.1:1/x",
    "\ud7ff", "\ue000", "\U0010ffff", "con", "CLAP", "a" * 64, "a" * 65,
]
PLAIN = ["0", "1", "2", "3", "7", "100", "0.5", "99.999", "4294967295", "18446744073709551615", "1000000000", "0.0001"]
VALUES = [
    None, True, False, 0, -1, 1, 0.5, -0.0, 1e308, -1e308, 5e-324, 2**31, 2**32, 2**53 + 1, 2**63, 2**64 - 1, 2**64,
    -(2**63), 10**30, [], {}, [[]], [None], "NaN", "1",
]


def damage(rng, data, other=b""):
    """Bytes with one to six changes."""
    data = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 3, 6))):
        at = rng.randrange(len(data) + 1)
        # Headers and footers hold what the rest hangs on.
        if rng.random() < 0.4 and len(data) > 64:
            at = rng.choice((rng.randrange(64), len(data) - 1 - rng.randrange(64)))
        length = rng.choice((1, 1, 2, 4, 8, 64, 1024))
        kind = rng.randrange(8)
        if kind == 0 and data:
            data[at % len(data)] ^= 1 << rng.randrange(8)
        elif kind == 1 and data:
            data[at % len(data)] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
        elif kind == 2:
            data[at:at] = rng.randbytes(length)
        elif kind == 3:
            del data[at:at + length]
        elif kind == 4:
            data[at:at] = data[at:at + length]
        elif kind == 5 and rng.random() < 0.5:
            del data[at:]
        elif kind == 6:
            size = rng.choice((1, 2, 4, 8))
            number = rng.choice((0, 1, 2**(8 * size) - 1, 2**(8 * size - 1), 2**(8 * size - 1) - 1))
            data[at:at + size] = number.to_bytes(size, rng.choice(("little", "big")))
        elif kind == 7 and other:
            start = rng.randrange(len(other))
            data[at:at + length] = other[start:start + length]
    return bytes(data)


def lines(rng, text):
    """A text of which lines are repeated, lost, moved or indented."""
    rows = text.split("\n")
    for _ in range(rng.choice((1, 1, 2, 4))):
        at, to = rng.randrange(len(rows)), rng.randrange(len(rows))
        kind = rng.randrange(7)
        if kind == 0:
            rows.insert(to, rows[at])
        elif kind == 1 and len(rows) > 1:
            del rows[at]
        elif kind == 2:
            rows[at], rows[to] = rows[to], rows[at]
        elif kind == 3:
            rows[at] = " " * rng.choice((1, 2, 3, 40)) + rows[at]
        elif kind == 4:
            rows[at] = rows[at][rng.choice((1, 2, 4)):]
        elif kind == 5:
            rows[at] = "\t" + rows[at]
        else:
            rows[at:at] = rows[min(at, to):max(at, to)][:50]
    return "\n".join(rows)


TOKEN = re.compile(r"-?\d[\w.%]*|[A-Za-z_][\w./*-]*|\"[^\"\n]*\"|[\[\]{}:,#&*]")


def tokens(rng, text, quoted=True):
    """A text of which numbers, words or signs are something else; what replaces them is mostly of their kind."""
    for _ in range(rng.choice((1, 1, 2, 3))):
        found = list(TOKEN.finditer(text))
        if not found:
            break
        token = rng.choice(found)
        old, kind = token[0], rng.random()
        is_number = old[0].isdigit() or old[0] == "-"
        if kind < 0.4 and is_number:
            digits = re.match(r"-?[\d.]*", old)[0]
            new = rng.choice(PLAIN) + old[len(digits):]
        elif kind < 0.6 and is_number:
            new = rng.choice(NUMBERS)
        elif kind < 0.5:
            new = rng.choice([other[0] for other in found if other[0][0].isalpha() == old[0].isalpha()])
        elif kind < 0.75:
            new = rng.choice(STRINGS)
            # As YAML and JSON write what could not stand there bare.
            new = json.dumps(new) if quoted and rng.random() < 0.7 else new
        elif kind < 0.9:
            new = rng.choice(found)[0]
        else:
            new = rng.choice(("", old * 2, f"[{old}]", f"[{old}, {old}]", f"{{ {old}: {old} }}", "[" * 200, "{a: " * 200))
        text = text[:token.start()] + new + text[token.end():]
    return text


def joined(rng, text, other):
    """The beginning of one text and the end of another."""
    first, second = text.split("\n"), other.split("\n")
    return "\n".join(first[:rng.randrange(len(first) + 1)] + second[rng.randrange(len(second)):])


def text(rng, first, other):
    """A text changed in one of these ways, as bytes."""
    kind = rng.randrange(10)
    if kind < 2:
        return damage(rng, first.encode(), other.encode())
    if kind < 4:
        return lines(rng, first).encode()
    if kind < 5:
        return joined(rng, first, other).encode()
    if kind < 6:
        return tokens(rng, lines(rng, joined(rng, first, other))).encode()
    return tokens(rng, first).encode()


def places(value, found=None):
    """Every container with the keys of what it holds, depth first."""
    found = [] if found is None else found
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in list(pairs):
        found.append((value, key))
        places(inner, found)
    return found


def alike(rng, old, elsewhere):
    """A value that is read where the old one was, as a rule."""
    if isinstance(old, bool):
        return not old
    if isinstance(old, int):
        return rng.choice((0, 1, old + 1, max(0, old - 1), old * 2, 7, 255, 2**31, 2**32 - 1, 2**53, 2**63, 2**64 - 1, -1))
    if isinstance(old, float):
        near = (-old, old * 1e9, old / 1e9, old * (1 + 1e-15))
        return rng.choice((0.0, -0.0, 1.0, 0.5, 5e-324, 1e100, 1e300, -1e300, 1.7976931348623157e308, *near))
    if isinstance(old, str) and (quantity := re.fullmatch(r"([\d.]+)(\D+)", old)) and rng.random() < 0.8:
        return rng.choice(PLAIN) + rng.choice((quantity[2], quantity[2], "s", "%", ""))
    if isinstance(old, str):
        others = [holder[key] for holder, key in elsewhere if isinstance(holder[key], str)]
        return rng.choice((rng.choice(STRINGS), rng.choice(others), old + rng.choice(STRINGS), old[:-1]))
    if isinstance(old, list) and old:
        many = old * 50 if len(old) < 50 else old[:3]
        return rng.choice((old * 2, old[:1], old[::-1], old + [old[0]], old[1:], [], old[:-1], many))
    if isinstance(old, dict) and old:
        keys = sorted(old)
        first = old[keys[0]]
        fewer, same = {key: old[key] for key in keys[1:]}, {key: first for key in keys}
        return rng.choice((fewer, same, old | {rng.choice(STRINGS): first}, {}))
    return rng.choice(VALUES)


def tree(rng, value, times=None):
    """JSON of which some values are lost, replaced, doubled or exchanged; `value` itself is changed."""
    root = [value]
    for _ in range(times or rng.choice((1, 1, 1, 2, 4))):
        everywhere = places(root)
        # Every kind of key is as likely, however many samples there are.
        key_of = lambda place: place[1] if isinstance(place[1], str) else "[]"
        key = rng.choice(sorted({key_of(place) for place in everywhere}))
        holder, key = rng.choice([place for place in everywhere if key_of(place) == key])
        kind = rng.random()
        if kind < 0.65:
            holder[key] = alike(rng, holder[key], everywhere)
        elif kind < 0.75 and holder is not root:
            del holder[key]
        elif kind < 0.85:
            holder[key] = rng.choice(VALUES + STRINGS)
        elif kind < 0.95:
            # From where the same key has another value, if there is one.
            same = [place for place in everywhere if place[1] == key] if rng.random() < 0.7 else everywhere
            other, elsewhere = rng.choice(same)
            holder[key] = json.loads(json.dumps(other[elsewhere]))
        elif isinstance(holder, dict):
            holder[rng.choice(STRINGS)] = holder.pop(key)
        else:
            holder[key] = [holder[key]]
    return root[0]


def json_bytes(rng, data, times=None):
    """A JSON file changed as a tree; a sixth of them as bytes or as text."""
    kind = rng.randrange(12)
    if kind == 0:
        return damage(rng, data)
    if kind == 1:
        return tokens(rng, data.decode(errors="replace")).encode("utf-8", "surrogatepass")
    try:
        value = json.loads(data)
    except ValueError:
        return damage(rng, data)
    return json.dumps(tree(rng, value, times), ensure_ascii=rng.random() < 0.5).encode("utf-8", "surrogatepass")
