"""Writes operators.tsv: every operator of the ONNX standard, in every version, with the types it takes and gives.

Run it where the Python package `onnx` (1.23 or later) is installed, with perfrun's root as the current folder:

    python3 crates/onnx/src/operators.py > crates/onnx/src/operators.tsv

A line is one version of one operator, its columns separated by tabs:

    name, the opset it is valid from, inputs, outputs, type variables; or name, opset, `deprecated`

A parameter is the name of a type variable, `=` and an element type's code, or `-` (a sequence, a map, an optional).
After it `?` marks an optional one, `*` one that repeats, `~` one that repeats with a type of its own each time.
A type variable is its name, `=`, and its tensor element types as a hexadecimal number, bit n for code n. One that
allows one element type and nothing else is written as that type.
"""

import re

import onnx
from onnx.defs import OpSchema


def codes(types):
    """Codes of the element types of plain tensors among them, and whether there are other types."""
    tensors = [re.fullmatch(r"tensor\((\w+)\)", text) for text in types]
    names = {"float": "FLOAT", "double": "DOUBLE"}
    found = [match[1] for match in tensors if match]
    return {onnx.TensorProto.DataType.Value(names.get(n, n.upper())) for n in found}, None in tensors


def parameter(formal, variables):
    text = formal.type_str
    if text in variables:
        allowed, has_others = codes(variables[text])
        if len(allowed) == 1 and not has_others:
            text = f"={min(allowed)}"
    else:
        allowed, _ = codes([text])
        text = f"={min(allowed)}" if allowed else "-"
    if formal.option == OpSchema.FormalParameterOption.Optional:
        return text + "?"
    if formal.option == OpSchema.FormalParameterOption.Variadic:
        return text + ("*" if formal.is_homogeneous else "~")
    return text


def line(schema):
    if schema.deprecated:
        return f"{schema.name}\t{schema.since_version}\tdeprecated"
    variables = {constraint.type_param_str: constraint.allowed_type_strs for constraint in schema.type_constraints}
    inputs = [parameter(formal, variables) for formal in schema.inputs]
    outputs = [parameter(formal, variables) for formal in schema.outputs]
    named = sorted({text.rstrip("?*~") for text in inputs + outputs} & set(variables))
    masks = [f"{name}={sum(1 << code for code in codes(variables[name])[0]):x}" for name in named]
    columns = [schema.name, str(schema.since_version), " ".join(inputs), " ".join(outputs), " ".join(masks)]
    return "\t".join(columns).rstrip()


def main():
    schemas = [schema for schema in onnx.defs.get_all_schemas_with_history() if schema.domain == ""]
    print(f"# ONNX {onnx.__version__}, opset {onnx.defs.onnx_opset_version()}; written by operators.py")
    for schema in sorted(schemas, key=lambda schema: (schema.name, schema.since_version)):
        print(line(schema))


main()
