from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from components.storage.shared_files import storage_class
from tests.e2e.azure_cluster import AzureCluster
from tests.support import networks as net
from tests.support.arm import API, GROUP, ZONES_API, assignment_body, cluster_body
from tests.support.manifests import manifest
from tests.support.world import CommandFailed, World, eventually

pytestmark = pytest.mark.simulator
PRIVATE = {"apiServerAccessProfile": {"enablePrivateCluster": True}}
LABEL = "ai-on-aks-private+ai"
FILES_ZONE = net.zone("privatelink.file.core.windows.net")
STORAGE_ACCOUNT_CONTRIBUTOR = "17d1049b-9a84-46fb-8f53-869881c3d3ab"


class PrivateCluster(AzureCluster):
    def put(self, resource: str, body: dict[str, Any]) -> None:
        here = GROUP.removesuffix("resourceGroups/rg") + self.group
        version = ZONES_API if "/Microsoft.Network/privateDnsZones/" in resource else API["Microsoft.Network"]
        path = resource.replace(GROUP, self.group)
        self.world.arm("PUT", f"{path}?api-version={version}", json.loads(json.dumps(body).replace(GROUP, here)))

    def update(self, **properties: Any) -> None:
        subnet = net.NODES.replace(GROUP, GROUP.removesuffix("resourceGroups/rg") + self.group)
        pool = {"name": "system", "mode": "System", "count": 1, "vmSize": "Standard_D4ads_v5", "vnetSubnetID": subnet}
        self.arm("PUT", self.path, cluster_body(agentPoolProfiles=[pool], **PRIVATE, **properties))

    def create_files(self, name: str) -> str:
        properties = {"publicNetworkAccess": "Disabled", "supportsHttpsTrafficOnly": False}
        body = {"location": "eastus", "kind": "FileStorage", "sku": {"name": "Premium_LRS"}, "properties": properties}
        path = f"{self.group}/providers/Microsoft.Storage/storageAccounts/{name}"
        self.arm("PUT", path, body)
        made = storage_class(name, self.group.removeprefix("resourceGroups/"))
        fields = {"provisioner": made["provisioner"], "parameters": made["parameters"]}
        fields["mountOptions"] = made["mount_options"]
        self.kube.create(manifest("storage.k8s.io/v1", "StorageClass", "shared-files", **fields))
        return path

    def hide_account(self) -> None:
        properties = {"publicNetworkAccess": "Disabled"}
        body = {"location": "eastus", "kind": "StorageV2", "sku": {"name": "Standard_LRS"}, "properties": properties}
        self.arm("PUT", self.account, body)

    def give_control_plane(self, role: str, scope: str) -> None:
        given = assignment_body(role, self.arm("GET", self.path)["identity"]["principalId"])
        path = f"{scope}/providers/Microsoft.Authorization/roleAssignments/00000000-0000-0000-0000-000000000002"
        self.world.arm("PUT", f"{path}?api-version={API['Microsoft.Authorization']}", given)


@pytest.fixture(scope="module")
def cluster(world: World) -> Iterator[PrivateCluster]:
    made = PrivateCluster(world, "private")
    made.arm("PUT", made.group, {"location": "eastus"})
    made.put(net.NETWORK, net.network_body())
    made.put(net.NODES, net.subnet_body("10.16.0.0/20"))
    made.put(net.ENDPOINTS, net.subnet_body("10.16.16.0/24"))
    made.create(storageProfile={"blobCSIDriver": {"enabled": True}})
    yield made
    made.delete()


@pytest.fixture(scope="module")
def kubeconfig(cluster: PrivateCluster, tmp_path_factory: pytest.TempPathFactory) -> Path:
    answer = cluster.arm("POST", f"{cluster.path}/listClusterAdminCredential")
    file = tmp_path_factory.mktemp("private") / "kubeconfig"
    file.write_bytes(base64.b64decode(answer["kubeconfigs"][0]["value"]))
    return file


def kubectl(world: World, kubeconfig: Path, *arguments: str) -> str:
    inside = world.entered(*arguments)
    return world.run(["kubectl", "--kubeconfig", str(kubeconfig), "get", "nodes"], environment=inside).stdout


def test_the_api_servers_name_does_not_resolve_outside_the_network(cluster: PrivateCluster, kubeconfig: Path) -> None:
    assert ".privatelink.eastus.azmk8s.io:443" in kubeconfig.read_text()
    with pytest.raises(CommandFailed, match=r"dial tcp: lookup \S+\.privatelink\.eastus\.azmk8s\.io: no such host"):
        kubectl(cluster.world, kubeconfig)


def test_clients_inside_the_network_reach_the_api_server(cluster: PrivateCluster, kubeconfig: Path) -> None:
    assert " Ready " in kubectl(cluster.world, kubeconfig, "--inside", "ai-on-aks-private")
    inside = cluster.world.entered("--inside", LABEL)
    helm = ["helm", "--kubeconfig", str(kubeconfig), "list", "--all-namespaces"]
    assert "NAMESPACE" in cluster.world.run(helm, environment=inside).stdout


def test_status_reaches_the_private_cluster(cluster: PrivateCluster) -> None:
    output = cluster.world.simulator("status").stdout
    assert f"network {LABEL}: no machines; to enter it: make shell INSIDE={LABEL}" in output
    assert "does not answer" not in output


def test_mounting_private_data_needs_an_endpoint_a_zone_and_a_link(cluster: PrivateCluster) -> None:
    cluster.create_container("tokens")
    with cluster.blobs("tokens") as blobs:
        blobs.upload_blob("shard", b"17 tokens", overwrite=True)
    cluster.hide_account()
    cluster.mount_container("tokens", cluster.sas("tokens", "rl"))
    cluster.run("reader", "cat /data/shard", claim="tokens")
    cluster.waits_for("reader", "BlockBlob::TestPipeline : [AuthorizationFailure]")
    account = cluster.account.replace(cluster.group, GROUP)
    zone = net.zone("privatelink.blob.core.windows.net")
    cluster.put(net.endpoint("blob"), net.endpoint_body(account, "blob"))
    cluster.put(zone, {"location": "global"})
    cluster.put(net.link(zone), net.link_body())
    cluster.waits_for("reader", "lookup privatedata.blob.core.windows.net: no such host")
    cluster.put(f"{net.endpoint('blob')}/privateDnsZoneGroups/default", net.group_body(zone))
    assert cluster.log("reader") == "17 tokens"


def test_nfs_shares_need_a_role_on_their_account_and_an_endpoint(cluster: PrivateCluster) -> None:
    files = cluster.create_files("privatefiles")
    claim = {"accessModes": ["ReadWriteMany"], "storageClassName": "shared-files"}
    cluster.apply("v1", "PersistentVolumeClaim", "team", spec=claim | {"resources": {"requests": {"storage": "100Gi"}}})
    eventually(lambda: "ERROR CODE: AuthorizationFailed" in provisioning_errors(cluster), "the driver has no role")
    cluster.give_control_plane(STORAGE_ACCOUNT_CONTRIBUTOR, files)
    cluster.run("writer", "echo shared >/data/note; cat /data/note", claim="team")
    cluster.waits_for("writer", "mount.nfs: Failed to resolve server privatefiles.privatelink.file.core.windows.net")
    cluster.put(net.endpoint("file"), net.endpoint_body(files.replace(cluster.group, GROUP), "file"))
    cluster.put(FILES_ZONE, {"location": "global"})
    cluster.put(net.link(FILES_ZONE), net.link_body())
    cluster.put(f"{net.endpoint('file')}/privateDnsZoneGroups/default", net.group_body(FILES_ZONE))
    assert cluster.log("writer") == "shared"


def provisioning_errors(cluster: PrivateCluster) -> str:
    events = cluster.kube.list("v1", "Event", "default")
    return "\n".join(event["message"] for event in events if event["reason"] == "ProvisioningFailed")
