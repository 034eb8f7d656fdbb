# SPDX-License-Identifier: GPL-2.0-only
"""Judges an object by userspace/msstune/schema.json, with the keywords that file
uses.  No distribution of KERNELS must have a validator installed."""
import json
from pathlib import Path

SCHEMA = json.loads((Path(__file__).resolve().parents[3]
                     / "userspace/msstune/schema.json").read_text())
KEYWORDS = {"$ref", "$schema", "$comment", "$defs", "title", "description", "oneOf",
            "anyOf", "type", "const", "enum", "required", "properties", "items",
            "prefixItems", "minItems", "maxItems", "minimum", "maximum"}
TYPES = {"object": dict, "array": list, "string": str, "boolean": bool,
         "null": type(None), "number": (int, float), "integer": int}


def wrong(value, schema=SCHEMA, where="$"):
    """What does not fit, as lines; [] if all fits."""
    assert set(schema) <= KEYWORDS, set(schema) - KEYWORDS
    if "$ref" in schema:
        return wrong(value, SCHEMA["$defs"][schema["$ref"].rpartition("/")[2]], where)
    for word, fits in (("oneOf", lambda n: n == 1), ("anyOf", lambda n: n > 0)):
        if word in schema:
            found = [wrong(value, one, where) for one in schema[word]]
            return [] if fits(sum(not f for f in found)) else min(found, key=len) \
                or [f"{where}: several fit"]
    if "const" in schema and value != schema["const"]:
        return [f"{where}: {value!r} is not {schema['const']!r}"] * 99
    if "enum" in schema and value not in schema["enum"]:
        return [f"{where}: {value!r} is none of {schema['enum']}"]
    kind = schema.get("type")
    if kind and (not isinstance(value, TYPES[kind])
                 or isinstance(value, bool) and kind != "boolean"):
        return [f"{where}: {value!r} is no {kind}"]
    lines = []
    if kind == "object":
        lines += [f"{where}: no {key}" for key in schema.get("required", ())
                  if key not in value]
        for key, part in schema.get("properties", {}).items():
            if key in value:
                lines += wrong(value[key], part, f"{where}.{key}")
    elif kind == "array":
        if not schema.get("minItems", 0) <= len(value) \
                <= schema.get("maxItems", len(value)):
            lines.append(f"{where}: {len(value)} items")
        parts = schema.get("prefixItems") or [schema.get("items", {})] * len(value)
        for at, (one, part) in enumerate(zip(value, parts)):
            lines += wrong(one, part, f"{where}[{at}]")
    elif kind in ("number", "integer"):
        if not schema.get("minimum", value) <= value <= schema.get("maximum", value):
            lines.append(f"{where}: {value} is out of range")
    return lines
