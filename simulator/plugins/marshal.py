"""Converts Pulumi property values, with secrets and unknowns, between protobuf structs and plain Python.

Signatures are those of Pulumi's wire protocol (pulumi/sdk, `resource.PropertyValue` marshalling). An output value
(`accept_outputs`) becomes its value, a Secret or UNKNOWN. Dependencies of outputs are dropped, because the engine
tracks them if a provider returns plain values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from google.protobuf import json_format, struct_pb2

SIGNATURE: Final = "4dabf18193072939515e22adb298388d"
_SECRET: Final = "1b47061264138c4ac30d75fd1eb44270"  # noqa: S105 - marks a secret in the protocol, but is not a secret
_OUTPUT: Final = "d0e6a833031e9bbcd3f4e8bde6ca49a4"
_RESOURCE: Final = "5cf8f73096256a8f31e491e813e4eb8e"
_REFUSED: Final = {"c44067f5952c0a294b673a41bacd8c17": "assets", "0def7320c3a5731c473e5ecbe6d01bc7": "archives"}
_UNKNOWN: Final = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
_UNKNOWNS: Final = {
    _UNKNOWN,
    "1c4a061d-8072-4f0a-a4cb-0ff528b18fe7",  # boolean
    "3eeb2bf0-c639-47a8-9e75-3b44932eb421",  # number
    "6a19a0b0-7e62-4c92-b797-7f8e31da9cc2",  # array
    "030794c1-ac77-496b-92df-f27374a8bd58",  # asset
    "e48ece36-62e2-4504-bad9-02848725956a",  # archive
    "dd056dcd-154b-4c76-9bd3-c8f88648b5ff",  # object
}

Properties = dict[str, Any]


class MarshalError(ValueError):
    """A value that these plugins do not support. The message names the property."""


class Unknown:
    """A value that becomes known in a later step of the deployment. Use UNKNOWN, which never equals plain data."""

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN: Final = Unknown()


@dataclass(frozen=True)
class Secret:
    """A value that the engine encrypts in its state and masks in output. The repr masks it too."""

    value: Any

    def __repr__(self) -> str:
        return "Secret(...)"


def decode(struct: struct_pb2.Struct) -> Properties:
    """Returns plain dicts, lists, strings, ints (for whole numbers), floats, and `Secret` or `UNKNOWN` if marked.

    Raises MarshalError for assets and archives.
    """
    return {name: _decode(value, name) for name, value in json_format.MessageToDict(struct).items()}


def encode(properties: Mapping[str, Any]) -> struct_pb2.Struct:
    """Reverses `decode`. Raises MarshalError for a value that JSON cannot represent."""
    struct = struct_pb2.Struct()
    struct.update({name: _encode(value, name) for name, value in properties.items()})
    return struct


def without_nulls(value: Any) -> Any:
    """Returns the value without null properties, at every depth. Nulls in lists stay."""
    if isinstance(value, Mapping):
        return {name: without_nulls(item) for name, item in value.items() if item is not None}
    return [without_nulls(item) for item in value] if isinstance(value, list) else value


def reveal(value: Any) -> Any:
    """Returns the value with `Secret`s replaced by their content. Send this to an API, never to the engine."""
    return _map(value, lambda leaf: reveal(leaf.value) if isinstance(leaf, Secret) else leaf)


def has_unknown(value: Any) -> bool:
    if isinstance(value, Secret):
        return has_unknown(value.value)
    if isinstance(value, Mapping):
        return any(has_unknown(item) for item in value.values())
    if isinstance(value, list):
        return any(has_unknown(item) for item in value)
    return value is UNKNOWN


def has_secret(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(has_secret(item) for item in value.values())
    if isinstance(value, list):
        return any(has_secret(item) for item in value)
    return isinstance(value, Secret)


def keep_secrets(outputs: Any, inputs: Any) -> Any:
    if isinstance(inputs, Secret):
        return outputs if isinstance(outputs, Secret) else Secret(outputs)
    if isinstance(inputs, Mapping) and isinstance(outputs, Mapping):
        return {name: keep_secrets(item, inputs.get(name)) for name, item in outputs.items()}
    if isinstance(inputs, list) and isinstance(outputs, list):
        if len(inputs) == len(outputs):
            return [keep_secrets(item, given) for item, given in zip(outputs, inputs, strict=True)]
        return Secret(outputs) if has_secret(inputs) else outputs  # items cannot be matched
    return outputs


def _map(value: Any, leaf: Callable[[Any], Any]) -> Any:
    if isinstance(value, Mapping):
        return {name: _map(item, leaf) for name, item in value.items()}
    if isinstance(value, list):
        return [_map(item, leaf) for item in value]
    return leaf(value)


def _decode(value: Any, path: str) -> Any:
    if isinstance(value, dict):
        return _decode_object(value, path)
    if isinstance(value, list):
        return [_decode(item, f"{path}[{index}]") for index, item in enumerate(value)]
    if isinstance(value, str) and value in _UNKNOWNS:
        return UNKNOWN
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def _decode_object(value: Properties, path: str) -> Any:
    signature = value.get(SIGNATURE)
    if signature is None:
        return {name: _decode(item, f"{path}.{name}") for name, item in value.items()}
    if signature == _SECRET:
        return _secret(_decode(value.get("value"), path))
    if signature == _OUTPUT:
        known = _decode(value["value"], path) if "value" in value else UNKNOWN
        return _secret(known) if value.get("secret") else known
    if signature == _RESOURCE:
        return _decode(value.get("id") or value["urn"], path)
    raise MarshalError(f"{path}: {_REFUSED.get(str(signature), 'values of this kind')} are not supported here")


def _secret(value: Any) -> Secret:
    return value if isinstance(value, Secret) else Secret(value)


def _encode(value: Any, path: str) -> Any:
    if isinstance(value, Secret):
        return {SIGNATURE: _SECRET, "value": _encode(value.value, path)}
    if value is UNKNOWN:
        return _UNKNOWN
    if isinstance(value, Mapping):
        return {str(name): _encode(item, f"{path}.{name}") for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_encode(item, f"{path}[{index}]") for index, item in enumerate(value)]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise MarshalError(f"{path}: a {type(value).__name__} cannot be sent to the engine")
