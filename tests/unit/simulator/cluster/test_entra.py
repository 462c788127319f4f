from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key

from simulator.azure.data_plane import DataPlane
from simulator.azure.guard import NO_ACCESS
from simulator.azure.subscription import Principal
from simulator.azure.tokens import AKS, STORAGE, Tokens
from simulator.cluster.controlplane import ControlPlane
from simulator.kube.client import ApiError, KubeClient
from tests.support import arm
from tests.support.arm import CLUSTER, GROUP, SUBSCRIPTION, Arm
from tests.support.waiting import eventually

CLUSTER_ADMIN = "b1ff04bb-8a4e-4dc4-8eb5-8693973ce19b"
GRACE, AUTOMATION = (SUBSCRIPTION.directory[name] for name in ("grace", "automation"))
MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "map", "namespace": "default"}}


@dataclass
class Aks:
    arm: Arm
    plane: ControlPlane
    cloud: DataPlane

    def client(self, principal: Principal, audience: str = AKS, tokens: Tokens | None = None) -> KubeClient:
        token, _ = (tokens or self.arm.server.tokens).issue(audience, principal)
        return KubeClient(self.plane.server, self.plane.tls, token)

    def refusal(self, principal: Principal, verb: str = "list") -> str:
        with self.client(principal) as kube:
            try:
                kube.create(MAP, dry_run=True) if verb == "create" else kube.list("v1", "ConfigMap", "default")
            except ApiError as error:
                return str(error)
        return ""

    def code(self, client: KubeClient) -> int:
        with client as kube:
            try:
                kube.list("v1", "ConfigMap", "default")
            except ApiError as error:
                return error.code
        return 200


@pytest.fixture(scope="module")
def aks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Aks]:
    home = tmp_path_factory.mktemp("simulator")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SIMULATOR_HOME", str(home))
        azure = arm.start(home / "azure", arm.FakeBackend())
        assert azure.put(GROUP, {"location": "eastus"}).status_code == 201
        profile = {"managed": True, "enableAzureRBAC": True}
        assert azure.put(CLUSTER, arm.cluster_body(aadProfile=profile)).status_code == 201
        azure.done()
        cloud = DataPlane(azure.server.world, azure.server.tokens)
        plane = ControlPlane("entra", login=cloud.entra(CLUSTER))
        plane.start()
        made = Aks(azure, plane, cloud)
        eventually(lambda: made.code(made.client(GRACE)) == 403, "the API server knows the issuer's keys", 30)
        yield made
        plane.stop()
        azure.stop()


def test_rejects_tokens_of_other_audiences_and_issuers(aks: Aks) -> None:
    forger = Tokens("x", generate_private_key(65537, 2048), SUBSCRIPTION, aks.arm.server.endpoint)
    assert aks.code(aks.client(GRACE, STORAGE)) == aks.code(aks.client(GRACE, tokens=forger)) == 401


def test_an_azure_role_grants_access_while_it_exists(aks: Aks) -> None:
    refused = (
        f'configmaps is forbidden: User "{AUTOMATION.object_id}" cannot list resource "configmaps" in API group "" in '
        f'the namespace "default": {NO_ACCESS}'
    )
    assert refused in aks.refusal(AUTOMATION)
    path = aks.arm.assign(CLUSTER_ADMIN, CLUSTER, AUTOMATION.object_id)
    assert aks.refusal(AUTOMATION) == aks.refusal(AUTOMATION, "create") == ""
    assert aks.arm.call("DELETE", path).status_code == 200
    assert refused in aks.refusal(AUTOMATION)


@pytest.mark.long
def test_a_cluster_without_azure_rbac_uses_its_own_roles_only(aks: Aks) -> None:
    body = arm.cluster_body(aadProfile={"managed": True, "enableAzureRBAC": False})
    assert aks.arm.put(CLUSTER, body).status_code == 200
    aks.arm.done()
    aks.plane.set_access("", aks.cloud.entra(CLUSTER))
    refusal = eventually(lambda: "forbidden" in (text := aks.refusal(GRACE)) and text, "the keys are known")
    assert NO_ACCESS not in refusal
    aks.plane.set_access("", None)
    assert aks.code(aks.client(GRACE)) == 401
