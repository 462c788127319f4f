from __future__ import annotations

import subprocess
import sys

import pytest
from google.protobuf import struct_pb2

from simulator.plugins.marshal import (
    SIGNATURE,
    UNKNOWN,
    MarshalError,
    Properties,
    Secret,
    decode,
    encode,
    has_secret,
    has_unknown,
    keep_secrets,
    reveal,
)

UNKNOWN_STRING = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"


def _struct(**values: object) -> struct_pb2.Struct:
    struct = struct_pb2.Struct()
    struct.update(values)
    return struct


def test_encoding_and_decoding_keep_values() -> None:
    values: Properties = {
        "text": "x",
        "whole": 3,
        "part": 2.5,
        "yes": True,
        "nothing": None,
        "list": [1, {"a": [UNKNOWN]}],
        "secret": Secret({"key": ["v"]}),
        "unknown": UNKNOWN,
    }
    assert decode(encode(values)) == values
    assert isinstance(decode(encode(values))["whole"], int)


def test_encodes_secrets_and_unknowns_for_the_engine() -> None:
    fields = encode({"secret": Secret("s"), "unknown": UNKNOWN}).fields
    assert fields["unknown"].string_value == UNKNOWN_STRING
    secret = fields["secret"].struct_value.fields
    assert secret[SIGNATURE].string_value == "1b47061264138c4ac30d75fd1eb44270"
    assert secret["value"].string_value == "s"


def test_decodes_output_values() -> None:
    output = "d0e6a833031e9bbcd3f4e8bde6ca49a4"
    known = {SIGNATURE: output, "value": 1, "dependencies": ["urn"]}
    assert decode(_struct(a=known)) == {"a": 1}
    assert decode(_struct(a=known | {"secret": True})) == {"a": Secret(1)}
    assert decode(_struct(a={SIGNATURE: output})) == {"a": UNKNOWN}


def test_decodes_resource_references_as_ids() -> None:
    reference = {SIGNATURE: "5cf8f73096256a8f31e491e813e4eb8e", "urn": "urn:pulumi:x", "id": "the-id"}
    assert decode(_struct(a=reference)) == {"a": "the-id"}


def test_rejects_assets() -> None:
    asset = {SIGNATURE: "c44067f5952c0a294b673a41bacd8c17", "text": "x"}
    with pytest.raises(MarshalError, match=r"^a\.b\[0\]: assets are not supported here$"):
        decode(_struct(a={"b": [asset]}))


def test_rejects_values_that_json_cannot_represent() -> None:
    with pytest.raises(MarshalError, match=r"^a\[1\]: a set cannot be sent to the engine$"):
        encode({"a": [1, set()]})


def test_the_repr_hides_secrets() -> None:
    assert "hunter2" not in repr({"password": Secret("hunter2")})


def test_finds_nested_secrets_and_unknowns() -> None:
    values = {"a": [Secret({"b": UNKNOWN})], "c": 1}
    assert has_unknown(values)
    assert has_secret(values)
    assert not has_unknown({"c": [1]})
    assert not has_secret({"c": [1]})
    assert reveal(values) == {"a": [{"b": UNKNOWN}], "c": 1}


@pytest.mark.parametrize(
    ("outputs", "inputs", "kept"),
    [
        ({"a": 1, "b": 2}, {"a": Secret(1)}, {"a": Secret(1), "b": 2}),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": Secret(0)}}, {"a": {"b": Secret(1), "c": 2}}),
        ({"a": [1, 2]}, {"a": [Secret(1), 2]}, {"a": [Secret(1), 2]}),
        ({"a": [1, 2, 3]}, {"a": [Secret(1), 2]}, {"a": Secret([1, 2, 3])}),
        ({"a": Secret(1)}, {"a": Secret(1)}, {"a": Secret(1)}),
    ],
)
def test_keeps_the_secrets_of_inputs_in_outputs(outputs: Properties, inputs: Properties, kept: Properties) -> None:
    assert keep_secrets(outputs, inputs) == kept


DEEP = """
from simulator.plugins.protocol import provider_pb2
request = provider_pb2.CreateRequest()
properties = request.properties
for _ in range({levels}):
    properties = properties.fields["properties"].struct_value
assert provider_pb2.CreateRequest.FromString(request.SerializeToString()) == request
"""


def test_accepts_deeply_nested_objects() -> None:
    """Runs in a separate process, because this one may import the SDK."""
    done = subprocess.run([sys.executable, "-c", DEEP.format(levels=200)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
