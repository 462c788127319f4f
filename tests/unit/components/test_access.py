from __future__ import annotations

from typing import Any

import pulumi
import pytest
import yaml
from pulumi_azure_native import containerservice

from components.access import kubeconfig, kubernetes_access
from components.access.kubernetes_access import KubernetesAccess
from components.azure.cluster import Cluster
from components.azure.roles import CLUSTER_USER
from config.schema.cluster import ClusterSettings
from config.schema.teams import TeamSettings
from tests.support import mocked_azure
from tests.support.case_files import case_table
from tests.support.mocked_azure import LOGIN_OPTIONS, SERVER_APP
from tests.support.mocks import Recorder, deploy
from tests.support.settings import settings_with

GROUP = "11111111-1111-1111-1111-111111111111"


def access(cluster: ClusterSettings, **given: Any) -> tuple[Recorder, list[str]]:
    found: list[str] = []

    def declare() -> None:
        settings = settings_with(cluster=cluster, **given)
        made = Cluster("cluster", settings, pulumi.Output.from_input("group"))
        KubernetesAccess("access", made, cluster).kubeconfig.apply(found.append)

    return deploy(declare), found


def exec_kubeconfig(*args: str) -> str:
    user = {"exec": {"command": "kubelogin", "args": list(args)}}
    return yaml.safe_dump({"clusters": [], "users": [{"name": "u", "user": user}]})


def login_of(text: str) -> list[str]:
    args: list[str] = yaml.safe_load(text)["users"][0]["user"]["exec"]["args"]
    return args


@case_table(__file__, "servers")
def test_finds_the_server_of_a_private_cluster(server: str, found: str | None) -> None:
    text = yaml.safe_dump({"clusters": [{"name": "c", "cluster": {"server": server}}], "users": []})
    assert kubeconfig.private_server(text) == found


def test_local_accounts_use_the_admin_certificate_without_a_role() -> None:
    recorder, (found,) = access(ClusterSettings(local_accounts=True))
    assert yaml.safe_load(found)["users"][0]["name"] == "admin"
    assert recorder.names(":RoleAssignment") == []


@case_table(__file__, "deployers")
def test_the_role_of_the_deployer_names_its_id_and_type(
    given: dict[str, str], client: str, who: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(mocked_azure.SIGNED_IN, "clientId", client)
    role = access(ClusterSettings.model_validate(given))[0].one(":RoleAssignment").inputs
    assert (role["principalId"], role["principalType"]) == (who, kind)


@pytest.mark.parametrize("missing", [[], ["kubelogin"]])
def test_a_preview_that_enables_local_accounts_uses_the_current_login(
    monkeypatch: pytest.MonkeyPatch, missing: list[str]
) -> None:
    monkeypatch.setattr(containerservice, "list_managed_cluster_admin_credentials", refuse)
    monkeypatch.setattr(pulumi.runtime, "is_dry_run", lambda: True)
    monkeypatch.setattr(kubernetes_access, "missing_programs", lambda _: missing)
    _, found = access(ClusterSettings(local_accounts=True))
    assert [login_of(text)[-1] for text in found] == ([] if missing else ["azurecli"])


def test_an_update_that_enables_local_accounts_needs_the_certificate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(containerservice, "list_managed_cluster_admin_credentials", refuse)
    with pytest.raises(pulumi.RunError, match="static credential"):
        access(ClusterSettings(local_accounts=True))


def refuse(**_: object) -> object:
    raise RuntimeError("Getting static credential is not allowed because this cluster ...")


@pytest.mark.parametrize("entra", [True, False])
def test_groups_of_admins_get_a_kubeconfig_with_entra_only(entra: bool) -> None:
    recorder, _ = access(ClusterSettings(entra=entra, local_accounts=True, admin_group_object_ids=(GROUP,)))
    roles = [name for name in recorder.names(":RoleAssignment") if name.startswith("kubeconfig-")]
    assert roles == ([f"kubeconfig-{GROUP}"] if entra else [])
    profile = {"managed": True, "enableAzureRBAC": True, "adminGroupObjectIDs": [GROUP]}
    assert recorder.one(":ManagedCluster").inputs.get("aadProfile") == (profile if entra else None)


def test_each_group_of_admins_and_teams_gets_a_kubeconfig_once() -> None:
    other = "2a2b2c2d-0000-0000-0000-000000000000"
    teams = {"blue": TeamSettings(gpus=8, groups=(other, GROUP)), "red": TeamSettings(gpus=8, groups=(other.upper(),))}
    recorder, _ = access(ClusterSettings(local_accounts=True, admin_group_object_ids=(GROUP,)), teams=teams)
    roles = [recorder.one(":RoleAssignment", name).inputs for name in recorder.names(":RoleAssignment")]
    assert sorted(role["principalId"].lower() for role in roles) == [GROUP, other]
    assert all(role["roleDefinitionId"].endswith(CLUSTER_USER) for role in roles)


@pytest.mark.parametrize("method", ["azurecli", "workloadidentity", "msi", "spn"])
def test_sets_the_options_that_kubelogins_converter_sets(method: Any) -> None:
    _, (found,) = access(ClusterSettings(login=method))
    options = LOGIN_OPTIONS if method == "spn" else ["--server-id", SERVER_APP]
    assert login_of(found) == ["get-token", *options, "--login", method]


def test_adds_and_reads_a_login_method() -> None:
    text = kubeconfig.with_login(exec_kubeconfig("get-token"), "msi")
    assert login_of(text) == ["get-token", "--login", "msi"]
    assert kubeconfig.login_of(text) == "msi"
    assert kubeconfig.login_of(yaml.safe_dump({"users": [{"name": "admin", "user": {}}]})) is None


def test_keeps_users_without_kubelogin() -> None:
    text = yaml.safe_dump({"users": [{"name": "u", "user": {"token": "t"}}]})
    assert yaml.safe_load(kubeconfig.with_login(text, "msi")) == yaml.safe_load(text)


def test_impersonation_keeps_the_login() -> None:
    text = exec_kubeconfig("get-token")
    found = yaml.safe_load(kubeconfig.as_user(text, "alice@example.com"))
    (user,) = found["users"]
    assert user["user"].pop("as") == "alice@example.com"
    assert found == yaml.safe_load(text)
