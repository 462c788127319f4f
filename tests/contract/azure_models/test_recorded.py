"""`recorded.yaml` has facts that azure-native's own tests recorded."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from simulator.plugins.azure_native import convert
from simulator.plugins.azure_native.resources import DEFINITIONS
from tests.support.arm import SUBSCRIPTION, FakeBackend, start
from tests.support.leaves import leaves
from tests.support.published_models import unpublished

RECORDED: dict[str, Any] = yaml.safe_load(Path(__file__).with_name("recorded.yaml").read_text("utf-8"))
RESOURCES: dict[str, dict[str, Any]] = RECORDED["resources"]
KINDS = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}
Answers = Mapping[str, dict[str, Any]]


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Answers:
    arm, found = start(tmp_path_factory.mktemp("recorded") / "azure", FakeBackend()), {}
    with contextlib.ExitStack() as ends:
        ends.callback(arm.stop)
        for token, recorded in RESOURCES.items():
            definition, version = DEFINITIONS[token], {"api-version": DEFINITIONS[token].api_version}
            path = convert.path(definition, recorded["inputs"], SUBSCRIPTION.subscription_id)
            answer = arm.call("PUT", path, convert.body(definition, recorded["inputs"], {}), **version)
            assert answer.is_success, answer.text
            arm.done()
            found[token] = arm.call("GET", path, **version).json()
    return found


@pytest.fixture(params=RESOURCES)
def token(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def shown(answers: Answers, token: str) -> dict[str, Any]:
    return dict(leaves(convert.outputs(DEFINITIONS[token], answers[token]), ""))


def test_defaults_are_as_recorded(token: str, shown: dict[str, Any]) -> None:
    defaults = RESOURCES[token]["defaults"]
    assert {path: shown.get(path) for path in defaults} == defaults


def test_other_properties_have_the_same_type(token: str, shown: dict[str, Any]) -> None:
    kinds = {path: kind for kind, paths in RESOURCES[token]["shown"].items() for path in paths}
    assert {path: KINDS.get(type(shown.get(path))) for path in kinds} == kinds


def test_ids_types_and_times_have_azures_spelling(token: str, shown: dict[str, Any]) -> None:
    spelled = RESOURCES[token]["spelled"]
    assert {
        path: shown.get(path) for path, text in spelled.items() if not re.fullmatch(text, shown.get(path, ""))
    } == {}


def test_no_other_properties_are_shown(token: str, shown: dict[str, Any]) -> None:
    recorded = RESOURCES[token]
    known = {
        *recorded["defaults"],
        *recorded["spelled"],
        *(path for paths in recorded["shown"].values() for path in paths),
    }
    assert set(shown) - known == set()


def test_our_api_version_has_all_properties(token: str, answers: Answers) -> None:
    assert unpublished(DEFINITIONS[token].schema.type, answers[token]) == []
