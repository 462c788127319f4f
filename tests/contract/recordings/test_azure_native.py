from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from google.protobuf import json_format
from pulumi.runtime.proto import provider_pb2

from simulator.plugins.azure_native.provider import AzureNativeProvider
from simulator.plugins.azure_native.resources import API_VERSION, DEFINITIONS
from simulator.plugins.marshal import decode, encode

NO_CONTEXT: Any = None
RECORDED: dict[str, Any] = yaml.safe_load(Path(__file__).with_name("azure_native.yaml").read_text("utf-8"))


@pytest.fixture
def plugin() -> AzureNativeProvider:
    """No check reads a location, so the plugin needs no Azure."""
    made = AzureNativeProvider()
    made.Configure(provider_pb2.ConfigureRequest(variables={"azure-native:config:location": "westus2"}), NO_CONTEXT)
    return made


@pytest.mark.parametrize("recorded", RECORDED["checks"], ids=lambda recorded: f"{recorded['run']} {recorded['name']}")
def test_check_adds_what_the_official_plugin_added(plugin: AzureNativeProvider, recorded: dict[str, Any]) -> None:
    urn = f"urn:pulumi:test::upgrade::{recorded['type']}::{recorded['name']}"
    request = provider_pb2.CheckRequest(urn=urn, news=encode(recorded["news"]), randomSeed=b"of the engine")
    answer = plugin.Check(request, NO_CONTEXT)
    assert list(answer.failures) == []
    checked = decode(answer.inputs)
    assert checked.pop(API_VERSION) == DEFINITIONS[recorded["type"]].api_version
    expected = recorded["news"] | recorded["added"]
    assert {name: value for name, value in checked.items() if name in recorded["news"]} == recorded["news"]
    assert checked.keys() == expected.keys()
    for name, value in recorded["added"].items():
        pattern = re.escape(str(value)).replace(re.escape("{8 hex}"), "[0-9a-f]{8}")
        assert re.fullmatch(pattern, str(checked[name])), name


def test_configure_supports_the_features_of_the_official_plugin(plugin: AzureNativeProvider) -> None:
    answer = plugin.Configure(provider_pb2.ConfigureRequest(), NO_CONTEXT)
    assert json_format.MessageToDict(answer) == RECORDED["configure"]["answer"]
