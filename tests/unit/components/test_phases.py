from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any
from unittest import mock

import pulumi
import pytest
import yaml

from components.access import phases
from components.preflight.checks import check_all, check_login
from components.preflight.existing import Existing
from components.preflight.existing_cluster import check_running
from config.schema.models import PlatformStack
from config.schema.names import StackName
from config.schema.network import NetworkSettings
from tests.support.case_files import case_table
from tests.support.lookups import HUB as HUB_HERE
from tests.support.lookups import Answer, answer
from tests.support.mocked_azure import SUBSCRIPTION, Azure
from tests.support.mocks import deploy
from tests.support.settings import settings_with

HUB = HUB_HERE.replace(SUBSCRIPTION, "00000000-0000-0000-0000-00000000000f")
PLATFORM = {"resourceGroup": "ai-on-aks-dev", "clusterName": "ai-on-aks-dev"}
NEW = Existing({}, "ai-on-aks-test", "ai-on-aks-test", None, {}, None)


def peering(state: str, range_: str) -> dict[str, Any]:
    return {"properties": {"peeringState": state, "remoteAddressSpace": {"addressPrefixes": [range_]}}}


def network(range_: str, *peerings: dict[str, Any]) -> Answer:
    return answer({"properties": {"addressSpace": {"addressPrefixes": [range_]}, "virtualNetworkPeerings": peerings}})


PEERINGS = (peering("Connected", "10.9.0.0/16"), peering("Disconnected", "10.8.0.0/16"))
OWN = {"addressSpace": "10.0.0.0/16"}
OURS = "resourceGroups/ai-on-aks-test/providers/Microsoft.Network/virtualNetworks/ai-on-aks-test?"


def searched_ranges(wanted: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    looked: list[str] = []

    def is_in(found: Any) -> bool:
        looked.extend(found)
        return True

    monkeypatch.setattr("components.access.inside.is_in", is_in)
    settings = settings_with(network=NetworkSettings.model_validate({"private": True, **wanted}))
    deploy(lambda: phases.deploys_inside(settings, NEW))
    return looked


@pytest.mark.parametrize(
    ("wanted", "at", "there", "ranges"),
    [
        ({"id": HUB}, HUB, network("10.1.0.0/16", *PEERINGS), ["10.1.0.0/16", "10.9.0.0/16"]),
        ({"id": HUB}, HUB, network("10.1.0.0/16"), ["10.1.0.0/16"]),
        (OWN, OURS, network("10.0.0.0/16"), ["10.0.0.0/16"]),
        (OWN, OURS, answer({"error": {"code": "ResourceGroupNotFound"}}, 404), []),
    ],
    ids=[
        "with peered networks, of another subscription",
        "alone",
        "existing, without its cluster",
        "not created yet",
    ],
)
def test_searches_the_ranges_of_the_network_and_of_connected_peerings(
    wanted: dict[str, Any],
    at: str,
    there: Answer,
    ranges: list[str],
    azure: dict[str, Answer],
    warnings: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    azure[at] = there
    assert searched_ranges(wanted, monkeypatch) == ranges
    assert not warnings


def test_warns_of_a_network_that_cannot_be_read(
    azure: dict[str, Answer], warnings: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    azure[HUB] = answer({"error": {"code": "AuthorizationFailed"}}, 403)
    assert searched_ranges({"id": HUB}, monkeypatch) == []
    assert "the network could not be looked up in Azure: 403 AuthorizationFailed" in warnings[0]


def test_rejects_a_network_that_does_not_exist(azure: dict[str, Answer], monkeypatch: pytest.MonkeyPatch) -> None:
    azure[HUB] = answer({"error": {"code": "ResourceNotFound"}}, 404)
    with pytest.raises(pulumi.RunError, match=f"network.id does not exist in Azure: {HUB}") as why:
        searched_ranges({"id": HUB}, monkeypatch)
    assert "az network vnet list" in str(why.value)


def test_a_public_stack_needs_no_lookup(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("answers", "is_in"):
        monkeypatch.setattr(f"components.access.inside.{name}", lambda _where: pytest.fail("asked"))
    azure = Azure(cluster=True)
    deploy(lambda: phases.deploys_inside(settings_with(), NEW), azure)
    assert azure.calls == []


def test_a_cluster_that_is_still_public_is_reachable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("components.access.inside.answers", lambda _host: pytest.fail("asked"))
    settings = settings_with(network=NetworkSettings(private=True, address_space="10.0.0.0/16"))
    cluster = mock.Mock(private_fqdn=None, api_server_access_profile=None)
    assert phases.deploys_inside(settings, Existing({}, "group", "cluster", cluster, {}, None))


def test_a_private_cluster_without_a_name_is_not_reachable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("components.access.inside.answers", lambda _host: pytest.fail("asked"))
    monkeypatch.setattr(phases, "_has_nothing_inside", lambda _existing: True)
    settings = settings_with(network=NetworkSettings(private=True, address_space="10.0.0.0/16"))
    cluster = mock.Mock(private_fqdn=None, api_server_access_profile=mock.Mock(enable_private_cluster=True))
    assert not phases.deploys_inside(settings, Existing({}, "group", "cluster", cluster, {}, None))


@pytest.mark.parametrize("user", [{"exec": {"args": ["get-token", "--login", "msi"]}}, {"client-key-data": "key"}])
def test_a_consumer_stack_needs_the_programs_of_the_platforms_login(
    user: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = yaml.safe_dump({"clusters": [], "users": [{"name": "user", "user": user}]})
    monkeypatch.setattr(phases, "outputs_of", lambda _stack: {**PLATFORM, "kubeconfig": text})
    monkeypatch.setattr("components.preflight.checks.which", lambda _name: None)
    shared_platform = PlatformStack(StackName("organization", "ai-on-aks", "dev"), mock.Mock())
    with pytest.raises(pulumi.RunError, match="cluster.login msi needs") if "exec" in user else nullcontext():
        phases.check_shared_platform(settings_with(), shared_platform)


@pytest.mark.parametrize("azure", [Azure(), Azure(cluster=True, profiles={"powerState": {"code": "Running"}})])
def test_accepts_a_platform_that_runs_or_cannot_be_looked_up(azure: Azure) -> None:
    deploy(lambda: check_running(PLATFORM, "hello"), azure)


def test_rejects_a_stopped_platform_with_the_command_that_starts_it() -> None:
    azure = Azure(cluster=True, profiles={"powerState": {"code": "Stopped"}})
    with pytest.raises(pulumi.RunError, match="cluster ai-on-aks-dev is stopped") as why:
        deploy(lambda: check_running(PLATFORM, "hello"), azure)
    assert "then `pulumi up -s hello` again" in str(why.value)
    assert str(why.value).endswith("    az aks start --resource-group ai-on-aks-dev --name ai-on-aks-dev")


@case_table(__file__, "logins")
def test_a_login_needs_its_programs_on_path(
    login: str | None, there: list[str], missing: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in there:
        (tmp_path / name).touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    if not missing:
        check_login(login, "prod")
        return
    with pytest.raises(pulumi.RunError) as refused:
        check_login(login, "prod")
    first, *others = str(refused.value).splitlines()
    assert first.startswith(f"PATH has no {' and no '.join(missing)}, which cluster.login")
    assert [name for name in ("kubelogin", "az") if any(line.startswith(f"    {name}: ") for line in others)] == missing
    assert others[-1].endswith("pulumi config set -s prod --path cluster.localAccounts true && pulumi up -s prod")


def test_reports_the_errors_of_all_checks_together() -> None:
    def refuse(why: str) -> None:
        raise pulumi.RunError(why)

    with pytest.raises(pulumi.RunError, match="no quota\n\nno rights"):
        check_all([lambda: refuse("no quota"), lambda: None, lambda: refuse("no rights")])
    check_all([lambda: None])
