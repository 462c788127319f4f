"""Simulated ARM takes and shows only what Azure's published models have: for every type that the program uses."""

from __future__ import annotations

import pytest

from simulator.azure.schema import Field, schemas
from tests.azure.published_models import MODELS, Published, ours, published

BARE_OBJECT = {"object", "map"}
"""A map of strings and a free object are the same to JSON."""


@pytest.fixture(scope="module", params=sorted(MODELS))
def resource_type(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def pairs(resource_type: str) -> list[tuple[str, Field, Published | None]]:
    known = published(resource_type)
    found = [(path, field, known.get(path)) for path, field in ours(schemas()[resource_type.lower()].body)]
    assert found
    return found


def test_every_simulated_type_has_its_published_model() -> None:
    assert {schema.type for schema in schemas().values()} == set(MODELS)


def test_the_api_version_is_the_published_one(resource_type: str) -> None:
    assert MODELS[resource_type][0] in schemas()[resource_type.lower()].api_versions


def test_no_property_is_invented(resource_type: str) -> None:
    assert [path for path, _, azure in pairs(resource_type) if azure is None] == []


def test_types_agree(resource_type: str) -> None:
    wrong = {
        path: (field.type, azure.type)
        for path, field, azure in pairs(resource_type)
        if azure and field.type != azure.type and {field.type, azure.type} != BARE_OBJECT
    }
    assert wrong == {}


def test_values_of_enumerations_are_azures(resource_type: str) -> None:
    wrong = {
        path: sorted(set(field.enum) - azure.known)
        for path, field, azure in pairs(resource_type)
        if azure and azure.known and field.enum and set(field.enum) - azure.known
    }
    assert wrong == {}


def test_what_azure_alone_sets_cannot_be_set(resource_type: str) -> None:
    wrong = [path for path, field, azure in pairs(resource_type) if azure and azure.read_only and not field.read_only]
    assert wrong == []


def test_what_azure_requires_is_required(resource_type: str) -> None:
    """Of what is simulated at all."""
    wrong = [path for path, field, azure in pairs(resource_type) if azure and azure.required and not field.required]
    assert wrong == []
