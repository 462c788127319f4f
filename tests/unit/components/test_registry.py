from __future__ import annotations

from typing import Any

import pulumi

from components.azure.cluster import Cluster
from components.azure.registry import Registry
from config.schema.names import Names
from config.schema.registry import MAX_REGISTRY_NAME, RegistrySettings
from tests.support.mocked_azure import SUBSCRIPTION
from tests.support.mocks import Recorder, deploy
from tests.support.settings import settings_with

GROUP = "group"


def declared(**settings: Any) -> tuple[Recorder, Registry]:
    made: list[Registry] = []

    def declare() -> None:
        stack = settings_with(
            registry=RegistrySettings(**settings),
        )
        group = pulumi.Output.from_input(GROUP)
        made.append(Registry("registry", stack, group))
        made[0].attach(Cluster("cluster", stack, group))

    return deploy(declare), made[0]


def test_creates_a_renamed_registry_before_it_deletes_the_old_one() -> None:
    recorder, _ = declared()
    for kind in ("containerregistry:Registry", ":RoleAssignment"):
        request = recorder.one(kind).request
        assert request.deleteBeforeReplaceDefined
        assert not request.deleteBeforeReplace


def test_the_host_is_in_lower_case() -> None:
    recorder, registry = declared(name="MyImages1")
    assert recorder.one("containerregistry:Registry").inputs["registryName"] == "MyImages1"
    assert registry.login_server == "myimages1.azurecr.io"


def test_derives_a_stable_unique_name() -> None:
    names = Names("ai-on-aks", "dev_2")
    name = RegistrySettings().full_name(names, SUBSCRIPTION)
    assert name == RegistrySettings().full_name(names, SUBSCRIPTION)
    assert name.startswith("aionaksdev2")
    assert len(name) == len("aionaksdev2") + 6
    assert name != RegistrySettings().full_name(names, "another subscription")


def test_shortens_long_names_and_keeps_them_unique() -> None:
    first, second = (RegistrySettings().full_name(Names("p" * 60, stack), SUBSCRIPTION) for stack in ("a", "b"))
    assert len(first) == len(second) == MAX_REGISTRY_NAME
    assert first != second
