from __future__ import annotations

import pytest

from tests.support.arm import Arm
from tests.support.blob_account import CREDENTIAL, IDENTITY
from tests.support.networks import make

TRUST = {"issuer": "https://issuer/", "subject": "system:serviceaccount:ai:blobs", "audiences": ["api://x"]}


@pytest.fixture
def identity(group: Arm) -> Arm:
    make(group, IDENTITY, {"location": "eastus"})
    make(group, CREDENTIAL, {"properties": TRUST})
    return group


def test_an_update_keeps_the_ids_of_an_identity(identity: Arm) -> None:
    ids = identity.get(IDENTITY)["properties"]
    assert len({ids["clientId"], ids["principalId"], ids["tenantId"]}) == 3
    assert identity.put(IDENTITY, {"location": "eastus", "tags": {"a": "b"}}).status_code == 200
    assert identity.get(IDENTITY)["properties"] == ids


def test_deletes_a_credential_with_its_identity(identity: Arm) -> None:
    assert identity.get(CREDENTIAL)["properties"] == TRUST
    assert identity.put(CREDENTIAL, {"properties": TRUST | {"audiences": ["api://y"]}}).status_code == 200
    identity.call("DELETE", IDENTITY)
    assert identity.call("GET", CREDENTIAL).status_code == 404
