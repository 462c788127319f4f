from __future__ import annotations

import itertools

import pytest

from simulator.azure.schema import Field, schemas
from tests.contract.azure_models.published_names import request as published_request
from tests.support.published_models import Published, ours, published

NEWER = {"Microsoft.Network/privateEndpoints": {"properties.ipVersionType"}}
"""Azure CLI 2.91.0 sends properties of later API versions: this one with 2026-01-01
(network/private_endpoint/_create.py).
"""
BARE_OBJECT = {"object", "map"}
"""Maps of strings and free objects have the same form."""


@pytest.fixture(scope="module", params=sorted(schema.type for schema in schemas().values()))
def resource_type(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def pairs(resource_type: str) -> list[tuple[str, Field, Published | None]]:
    known = published(resource_type)
    found = [(path, field, known.get(path)) for path, field in ours(schemas()[resource_type.lower()].body)]
    assert found
    return found


def test_the_api_version_is_the_published_one(resource_type: str) -> None:
    schema = schemas()[resource_type.lower()]
    expected = schema.published.api_version or schema.api_versions[-1]
    assert published_request(resource_type).api_version == expected


def test_no_property_is_invented(resource_type: str) -> None:
    unknown = {path for path, _, azure in pairs(resource_type) if azure is None}
    assert unknown == NEWER.get(resource_type, set())


def test_types_agree(resource_type: str) -> None:
    wrong = {
        path: (field.type, azure.type)
        for path, field, azure in pairs(resource_type)
        if azure and field.type != azure.type and {field.type, azure.type} != BARE_OBJECT
    }
    assert wrong == {}


def test_enumerations_have_only_azures_values(resource_type: str) -> None:
    wrong = {
        path: sorted(set(field.enum) - azure.known)
        for path, field, azure in pairs(resource_type)
        if azure and azure.known and field.enum and set(field.enum) - azure.known
    }
    assert wrong == {}


def test_azures_read_only_properties_are_read_only(resource_type: str) -> None:
    wrong = [path for path, field, azure in pairs(resource_type) if azure and azure.read_only and not field.read_only]
    assert wrong == []


def test_azures_required_properties_are_required(resource_type: str) -> None:
    wrong = [path for path, field, azure in pairs(resource_type) if azure and azure.required and not field.required]
    assert wrong == []


ADDRESSES = ("networkProfile.podCidr", "networkProfile.serviceCidr", "networkProfile.dnsServiceIP")
"""`simulator/azure/types/managed_cluster/networks.py` parses these and rejects more than their patterns."""


def test_clients_check_properties_with_published_bounds(resource_type: str) -> None:
    for path, field, azure in pairs(resource_type):
        if azure and not field.read_only and not path.endswith(ADDRESSES):
            assert field.checked == bool(azure.bounds), path


def test_bounds_agree(resource_type: str) -> None:
    for path, field, azure in pairs(resource_type):
        for name, bound in (azure.bounds if azure else {}).items():
            if name in ("minimum", "maximum"):
                assert getattr(field, name) == bound, (path, name)
            elif not path.endswith(ADDRESSES):
                assert (name, bound) == ("pattern", f"^{field.pattern}$"), path


ALPHABET = "a1Z-_.($ é"


def names(longest: int) -> list[str]:
    short = ["".join(parts) for length in range(4) for parts in itertools.product(ALPHABET, repeat=length)]
    return [*short, *(letter * length for letter in "a1" for length in range(4, longest + 2))]


def test_names_are_valid_as_in_azure(resource_type: str) -> None:
    """Tries all short strings of some characters, and long strings."""
    rules, schema = published_request(resource_type).name, schemas()[resource_type.lower()]
    tried = names(rules.max_length or 0)
    taken = {name for name in tried if not schema.name_problems(name)}
    azures = {name for name in tried if rules.take(name)}
    assert taken <= azures if schema.published.stricter else taken == azures
    assert taken or resource_type == "Microsoft.Authorization/roleAssignments"
