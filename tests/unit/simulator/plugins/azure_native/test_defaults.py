"""Defaults that the SDK sends, by the SDK itself."""

from __future__ import annotations

import inspect

import pytest

from simulator.plugins import sdk
from simulator.plugins.azure_native.resources import DEFINITIONS, Definition


@pytest.mark.parametrize("definition", DEFINITIONS.values(), ids=lambda definition: definition.sdk.token)
def test_defaults_are_those_of_the_sdk(definition: Definition) -> None:
    made = sdk.resource(definition.sdk.token)
    assert made is not None
    taken = sdk.arguments(made)
    parameters = list(inspect.signature(taken).parameters.values())
    required = {each.name for each in parameters if each.default is inspect.Parameter.empty}
    filled = taken(**dict.fromkeys(required, "x"))
    names = {own: name for own, name in sdk.python_names(taken).items() if name not in required}
    defaults = {own: getattr(filled, name) for own, name in names.items() if getattr(filled, name) is not None}
    assert {own: value for own, value in defaults.items() if own in definition.inputs} == definition.sdk.defaults
