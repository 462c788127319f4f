from __future__ import annotations

import base64
import datetime
from dataclasses import dataclass
from typing import Any

from azure.storage.blob import ContainerClient

from k8s.objects import Object
from simulator.azure.registries import Registries
from simulator.kube.client import KubeClient
from tests.support.arm import API, assignment_body, cluster_body
from tests.support.manifests import manifest
from tests.support.world import World, eventually

ACR_PULL = "7f951dda-4ed3-4680-a7ca-43fe172d538d"
SCRIPT_IMAGE = "nccl-test"


@dataclass
class AzureCluster:
    world: World
    name: str

    @property
    def group(self) -> str:
        return f"resourceGroups/ai-on-aks-{self.name}"

    @property
    def path(self) -> str:
        return f"{self.group}/providers/Microsoft.ContainerService/managedClusters/ai-on-aks-{self.name}"

    @property
    def kube(self) -> KubeClient:
        return self.world.kube(self.name)

    def create(self, **properties: Any) -> None:
        self.arm("PUT", self.group, {"location": "eastus"})
        self.update(**properties)
        eventually(lambda: self.kube.list("v1", "Node"), "there is a node")
        eventually(lambda: self.kube.find("v1", "ServiceAccount", "default", "default"), "there is a service account")

    def update(self, **properties: Any) -> None:
        pool = {"name": "system", "mode": "System", "count": 1, "vmSize": "Standard_D4ads_v5"}
        self.arm("PUT", self.path, cluster_body(agentPoolProfiles=[pool], **properties))

    def delete(self) -> None:
        self.arm("DELETE", self.group)

    def arm(self, method: str, path: str, body: Object | None = None) -> Object:
        provider = next((part for part in path.split("/") if part.startswith("Microsoft.")), "resourceGroups")
        return self.world.arm(method, f"{path}?api-version={API[provider]}", body)

    # -- registry ------------------------------------------------------------------------------------------------------

    @property
    def registry(self) -> str:
        return f"{self.group}/providers/Microsoft.ContainerRegistry/registries/{self.name}images"

    def image(self, repository: str, tag: str) -> str:
        return f"{self.name}images.azurecr.io/{repository}:{tag}"

    def create_registry(self) -> None:
        self.arm("PUT", self.registry, {"location": "eastus", "sku": {"name": "Basic"}, "properties": {}})

    def push(self, repository: str, tag: str) -> None:
        Registries(self.world.home / "registries").push(f"{self.name}images", repository, tag)

    def attach_registry(self) -> None:
        """Assigns AcrPull to the kubelet identity, like `az aks update --attach-acr`."""
        cluster = self.arm("GET", self.path)
        identity = cluster["properties"]["identityProfile"]["kubeletidentity"]["objectId"]
        path = f"{self.registry}/providers/Microsoft.Authorization/roleAssignments/00000000-0000-0000-0000-000000000001"
        body = assignment_body(ACR_PULL, identity)
        self.world.arm("PUT", f"{path}?api-version={API['Microsoft.Authorization']}", body)

    # -- storage -------------------------------------------------------------------------------------------------------

    @property
    def account(self) -> str:
        return f"{self.group}/providers/Microsoft.Storage/storageAccounts/{self.name}data"

    def create_container(self, name: str) -> None:
        body = {"location": "eastus", "kind": "StorageV2", "sku": {"name": "Standard_LRS"}, "properties": {}}
        self.arm("PUT", self.account, body)
        self.arm("PUT", f"{self.account}/blobServices/default/containers/{name}", {"properties": {}})

    def sas(self, container: str, permissions: str, *, hours: float = 1) -> str:
        """Returns a service SAS, expired if `hours` is negative."""
        expiry = datetime.datetime.now(datetime.UTC) + datetime.timedelta(hours=hours)
        body = {
            "canonicalizedResource": f"/blob/{self.name}data/{container}",
            "signedResource": "c",
            "signedPermission": permissions,
            "signedProtocol": "https",
            "signedExpiry": expiry.isoformat(timespec="seconds"),
        }
        token: str = self.arm("POST", f"{self.account}/listServiceSas", body)["serviceSasToken"]
        return token

    def blobs(self, container: str) -> ContainerClient:
        endpoint = self.arm("GET", self.account)["properties"]["primaryEndpoints"]["blob"]
        bundle = self.world.environment["REQUESTS_CA_BUNDLE"]
        return ContainerClient(
            endpoint.rstrip("/"), container, self.sas(container, "racwdl"), connection_verify=bundle, retry_total=0
        )

    # -- Kubernetes ----------------------------------------------------------------------------------------------------

    def mount_container(self, container: str, sas: str) -> None:
        """A second call for a container changes only the secret."""
        data = {"azurestorageaccountname": f"{self.name}data", "azurestorageaccountsastoken": sas}
        encoded = {name: base64.b64encode(text.encode()).decode() for name, text in data.items()}
        self.apply("v1", "Secret", container, data=encoded)
        mode = {"accessModes": ["ReadWriteMany"], "storageClassName": "none"}
        source = {
            "driver": "blob.csi.azure.com",
            "volumeHandle": container,
            "volumeAttributes": {"containerName": container, "protocol": "fuse2", "AzureStorageAuthType": "SAS"},
            "nodeStageSecretRef": {"name": container, "namespace": "default"},
        }
        reference = {"name": container, "namespace": "default"}
        volume = mode | {"capacity": {"storage": "1Gi"}, "csi": source, "claimRef": reference}
        claim = mode | {"volumeName": container, "resources": {"requests": {"storage": "1Gi"}}}
        self.apply("v1", "PersistentVolume", container, spec=volume)
        self.apply("v1", "PersistentVolumeClaim", container, spec=claim)

    def apply(self, api: str, kind: str, name: str, **content: Any) -> None:
        namespace = "" if kind == "PersistentVolume" else "default"
        self.kube.apply(manifest(api, kind, name, namespace, **content), field_manager="test", force=True)

    def run(self, name: str, script: str, *, claim: str = "", image: str = SCRIPT_IMAGE, **spec: Any) -> None:
        container: Object = {"name": "main", "image": image, "command": ["bash", "-ec", script]}
        if claim:
            container["volumeMounts"] = [{"name": "data", "mountPath": "/data"}]
            spec["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]
        self.apply("v1", "Pod", name, spec={"restartPolicy": "Never", "containers": [container], **spec})

    def phase(self, pod: str) -> str:
        found: str = self.kube.get("v1", "Pod", pod, "default")["status"].get("phase", "")
        return found

    def log(self, pod: str) -> str:
        eventually(lambda: self.phase(pod) in ("Succeeded", "Failed"), f"{pod} ends", 60)
        text = self.kube.text(f"/api/v1/namespaces/default/pods/{pod}/log")
        assert self.phase(pod) == "Succeeded", text
        return text.strip()

    def waiting(self, pod: str) -> Object:
        status = self.kube.get("v1", "Pod", pod, "default").get("status", {})
        states: list[Object] = [entry["state"] for entry in status.get("containerStatuses", [])]
        found: Object = next((state["waiting"] for state in states if "waiting" in state), {})
        return found

    def waits_for(self, pod: str, words: str) -> None:
        eventually(lambda: words in self.waiting(pod).get("message", ""), f"{pod} waits with {words}", 60)

    def warnings(self, pod: str) -> list[str]:
        events = self.kube.list("v1", "Event", "default", fields=f"involvedObject.name={pod}")
        return [event["reason"] for event in events]
