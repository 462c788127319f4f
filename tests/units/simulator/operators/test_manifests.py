"""What setting up makes of operators' Go modules is what the program makes of them elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

import operators
from config.facts.versions import Kustomization, versions
from simulator import operators as rooms

PINS = versions().manifests


@pytest.mark.parametrize("pin", PINS.values(), ids=PINS)
def test_it_is_of_the_pinned_module(pin: Kustomization) -> None:
    room = Path(rooms.__file__).parent / pin.name.replace("-", "_")
    manager, made = yaml.safe_load((room / "tools.yaml").read_text())
    assert f"{pin.module} {pin.version} {pin.sum}" in (room / "go.sum").read_text().splitlines()
    assert f"v{manager['version']}" == f"v{made['version']}" == pin.version
    found = made["manifests"]
    assert (found["package"], found["folder"]) == (pin.module, pin.folder)
    assert (found["namespace"], found.get("images", [])) == (pin.namespace, list(pin.images))


@pytest.mark.parametrize("pin", PINS.values(), ids=PINS)
def test_it_goes_into_the_operators_namespace(pin: Kustomization) -> None:
    assert operators.find()[pin.name].namespace == pin.namespace
