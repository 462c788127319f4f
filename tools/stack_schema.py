"""Generates a JSON schema of stack files, in Pulumi's format, from the models. Editors use it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, models_json_schema
from pydantic_core import core_schema

from config.schema.base import AS_TEXT, EMPTY_IS_UNSET
from config.schema.inventory import Inventory
from tools.meanings import meanings

Schema = dict[str, Any]
PROJECT = "ai-on-aks"
SECRET: Schema = {"$ref": "#/$defs/Secret"}
_SECRET: Schema = {
    "description": "A secret, as `pulumi config set --secret` writes it.",
    "type": "object",
    "properties": {"secure": {"type": "string"}},
    "required": ["secure"],
    "additionalProperties": False,
}
_UNSET: Schema = {"const": ""}
_JSON_TEXT: Schema = {"type": "string", "pattern": r"^\s*(\{|$)"}
"""Pulumi also accepts JSON text for a map, and an empty string for an unset map."""
_AS_TEXT: Mapping[str, Schema] = {
    "integer": {"type": "string", "pattern": "^[0-9]+$"},
    "number": {"type": "string", "pattern": r"^[0-9]+(\.[0-9]+)?$"},
    "boolean": {"enum": ["true", "false"]},
}
"""Schemas of scalars that are stored as text, as `pulumi config set` does."""
_OF_PULUMI = ("encryptionsalt", "encryptedkey", "secretsprovider")


def first_paragraph(text: str) -> str:
    return " ".join(text.partition("\n\n")[0].split())


class _AsWritten(GenerateJsonSchema):
    """The schema of user input before validators convert the input to text or None, with the meaning of each key."""

    def model_schema(self, schema: core_schema.ModelSchema) -> Schema:
        found: Schema = super().model_schema(schema)
        model: type[BaseModel] = schema["cls"]
        for name, text in meanings(model).items():
            found["properties"][model.model_fields[name].alias]["description"] = text
        return found

    def function_before_schema(self, schema: core_schema.BeforeValidatorFunctionSchema) -> Schema:
        inner: Schema = super().function_before_schema(schema)
        function = schema["function"]["function"]
        if function is EMPTY_IS_UNSET.func:
            return {"anyOf": [*inner.get("anyOf", [inner]), _UNSET]}
        return {**inner, "type": ["string", "number"]} if function is AS_TEXT.func else inner


def stored(schema: Schema) -> Schema:
    about = {"description": first_paragraph(schema["description"])} if "description" in schema else {}
    if isinstance(schema.get("default"), str | int | float):
        about["default"] = schema["default"]
    choices = _choices(schema)
    return about | (choices[0] if len(choices) == 1 else {"anyOf": choices})


def _choices(schema: Schema) -> list[Schema]:
    if "anyOf" in schema:
        each = [choice for option in schema["anyOf"] for choice in _choices(option)]
        return [choice for index, choice in enumerate(each) if choice not in each[:index]]
    if schema.get("writeOnly"):
        return [SECRET]
    bare = {
        key: value
        for key, value in schema.items()
        if key not in ("title", "description", "default", "allowed", "text_is", "protects")
    }
    if "allowed" in schema and "pattern" in schema:
        bare["patternErrorMessage"] = schema["allowed"]  # a keyword of the YAML language server
    kind = bare.get("type")
    if kind == "object":
        return [_map(bare)]
    if kind == "array":
        return [{**bare, "items": stored(bare["items"])}]
    if kind in (None, "null"):
        return [bare]
    return [bare, *([_AS_TEXT[kind]] if isinstance(kind, str) and kind in _AS_TEXT else []), SECRET]


def _map(schema: Schema) -> Schema:
    below: Schema = {
        key: {name: stored(value) for name, value in schema[key].items()}
        for key in ("properties", "patternProperties")
        if key in schema
    }
    rest = schema.get("additionalProperties", "patternProperties" not in schema)
    bare = {key: value for key, value in schema.items() if key != "propertyNames"}
    return {**bare, **below, "additionalProperties": stored(rest) if isinstance(rest, dict) else rest}


def at_the_top(schema: Schema) -> Schema:
    """Returns the schema of a key of the project. A key may be empty. A map may also be JSON text or a secret."""
    about = {key: value for key, value in schema.items() if key in ("description", "default")}
    bare = {key: value for key, value in schema.items() if key not in about}
    choices = bare.get("anyOf", [bare])
    is_map = all("$ref" in each or each.get("type") == "object" for each in choices)
    more = [_JSON_TEXT, SECRET] if is_map else [_UNSET]
    return about | {"anyOf": [*choices, *(each for each in more if each not in choices)]}


def stack_schema(inventory: Inventory) -> str:
    options = {name: each.options for name, each in inventory.workloads.items()}
    models: list[type[BaseModel]] = [inventory.stack_file, *options.values()]
    refs, found = models_json_schema(
        [(model, "validation") for model in models], by_alias=True, schema_generator=_AsWritten
    )
    defs = {name: stored(each) for name, each in found["$defs"].items()}
    ref_of = {model: ref["$ref"] for (model, _), ref in refs.items()}
    own = defs.pop(ref_of[inventory.stack_file].rpartition("/")[2])["properties"]
    of_options = {name: defs[ref_of[model].rpartition("/")[2]]["properties"] for name, model in options.items()}
    own["workloads"] = {"description": own["workloads"]["description"], "anyOf": _names(list(options))}
    own["workloadOptions"] |= {
        "properties": {name: {"$ref": ref_of[model]} for name, model in options.items()},
        "additionalProperties": False,
    }
    for key in inventory.workload_keys:
        sets = [of_options[name][each.keys[key]] for name, each in inventory.workloads.items() if key in each.keys]
        choices = [choice for each in sets for choice in each.get("anyOf", [each])]
        unique = [choice for at, choice in enumerate(choices) if choice not in choices[:at]]
        own[key] = {"description": own[key]["description"], "anyOf": unique}
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"Stack file of {PROJECT}",
        "description": "Generated by `python -m tools.reference` from the models of the settings.",
        "type": "object",
        "properties": {
            "config": {
                "type": ["object", "null"],
                "properties": {f"{PROJECT}:{key}": at_the_top(each) for key, each in own.items()},
                "patternProperties": {"^(azure-native|kubernetes|pulumi):": True},
                "additionalProperties": False,
            },
            **{key: {"type": "string"} for key in _OF_PULUMI},
            "environment": True,
        },
        "additionalProperties": False,
        "$defs": {"Secret": _SECRET, **defs},
    }
    return json.dumps(schema, indent=1, ensure_ascii=False) + "\n"


def _names(known: list[str]) -> list[Schema]:
    one = rf"\s*({'|'.join(known)})\s*"
    return [
        {"type": "string", "pattern": rf"^({one}(,{one})*|\s*\[.*)$"},
        {"type": "array", "items": {"enum": known}},
        SECRET,
    ]
