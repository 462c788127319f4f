"""Limits of tags, the same for all resource types but for the length of a storage account's names."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.arm import CLUSTER, GROUP, Arm, cluster_body, pool_body, pool_path
from tests.support.blob_account import ACCOUNT, account_body

REGISTRY = f"{GROUP}/providers/Microsoft.ContainerRegistry/registries/images1"
TAGGED: dict[str, dict[str, Any]] = {
    GROUP: {"location": "eastus"},
    CLUSTER: cluster_body(),
    REGISTRY: {"location": "eastus", "sku": {"name": "Basic"}},
    ACCOUNT: account_body(),
}
FULL = {f"tag{number}": "x" * 256 for number in range(49)}


@pytest.mark.parametrize("path", TAGGED)
@pytest.mark.parametrize(
    ("tags", "code", "part"),
    [
        (FULL | {"a": "", "b": ""}, "InvalidTagCount", "has 51 tags. The maximum number of tags on a resource is 50."),
        ({"a/b": "", "c": "", "d%": ""}, "InvalidTagNameCharacters", "The tag names 'a/b, d%' have reserved"),
        ({"a\tb": ""}, "InvalidTagNameCharacters", "'<,>,%,&,\\,?,/' or control characters."),
        ({"n" * 513: ""}, "InvalidTagName", "Following tag name 'nnn"),
        ({"a": "v" * 257}, "InvalidTagValueLength", "Maximum allowed length for tag value - '256' characters."),
        ({"a": 1}, "InvalidParameter", "'tags.a' must be of type string"),
        ({"a": None}, "InvalidParameter", "'tags.a' must be of type string, not null"),
    ],
)
def test_tags_refused(cluster: Arm, path: str, tags: dict[str, Any], code: str, part: str) -> None:
    status, found, message = cluster.refusal(cluster.put(path, TAGGED[path] | {"tags": tags}))
    assert (status, found) == (400, code)
    assert part in message


@pytest.mark.parametrize("character", list("<>%&\\?/"))
def test_reserved_characters(cluster: Arm, character: str) -> None:
    answer = cluster.put(GROUP, {"location": "eastus", "tags": {f"a{character}b": ""}})
    assert cluster.refusal(answer)[1] == "InvalidTagNameCharacters"


@pytest.mark.parametrize(("path", "most"), [(GROUP, 512), (REGISTRY, 512), (ACCOUNT, 128)])
def test_tags_up_to_the_limits(cluster: Arm, path: str, most: int) -> None:
    tags = FULL | {"n" * most: "any of <>%&\\?/ in a value"}
    assert cluster.put(path, TAGGED[path] | {"tags": tags}).status_code in (200, 201, 202)
    assert cluster.get(path)["tags"] == tags
    cluster.done()
    longer = cluster.refusal(cluster.put(path, TAGGED[path] | {"tags": {"n" * (most + 1): ""}}))
    assert longer[:2] == (400, "InvalidTagName")
    assert f"Maximum allowed length for tag name - '{most}' characters." in longer[2]


def test_tags_of_a_patch_and_of_pools(cluster: Arm) -> None:
    bad = {"a?": ""}
    pool = {"name": "system", "mode": "System", "count": 2, "vmSize": "Standard_D4ads_v5", "tags": bad}
    for answer in (
        cluster.call("PATCH", CLUSTER, {"tags": bad}),
        cluster.put(pool_path(), pool_body(tags=bad)),
        cluster.put(CLUSTER, cluster_body(agentPoolProfiles=[pool])),
    ):
        assert cluster.refusal(answer)[:2] == (400, "InvalidTagNameCharacters")
    assert not cluster.get(CLUSTER).get("tags")
