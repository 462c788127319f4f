"""Volumes of azurefile-csi-driver: shares in the StorageClass's account, or in an account of AKS.

Messages: kubernetes-sigs/azurefile-csi-driver 1.35.1, controllerserver.go (CreateVolume), and external-provisioner.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from k8s.objects import Object
from simulator.kube import events
from simulator.kube.client import KubeClient

DRIVER = "file.csi.azure.com"
Refusal = Callable[[str, str, bool], str | None]
"""Takes a group, an account, and whether the share uses NFS. Returns why it cannot be created, or None."""


class NotMadeError(Exception):
    """A share cannot be created. The message is the driver's."""


@dataclass(frozen=True)
class AzureFiles:
    refusal: Refusal
    _reported: set[tuple[str, str]] = field(default_factory=set)

    def source(self, parameters: Mapping[str, str], volume: str, namespace: str) -> Object:
        """Returns the field `csi` of the PersistentVolume. Raises NotMadeError."""
        given = {key.lower(): value for key, value in parameters.items()}  # parameter names are case-insensitive
        account, group, sku = given.get("storageaccount"), given.get("resourcegroup", ""), given.get("skuname", "")
        nfs, private = given.get("protocol") == "nfs", given.get("networkendpointtype", "").lower() == "privateendpoint"
        if nfs and sku.lower().startswith("standard"):
            why = f"nfs protocol only supports premium storage, current account type: {sku}"
            raise NotMadeError(f"rpc error: code = InvalidArgument desc = {why}")
        if account is None and (nfs or private):
            raise NotMadeError("the simulator needs storageAccount in the class for NFS and private endpoints")
        if account is None:
            return {"driver": DRIVER, "volumeHandle": volume, "volumeAttributes": dict(parameters)}
        if refusal := self.refusal(group, account, nfs):
            raise NotMadeError(f"rpc error: code = Internal desc = {refusal}")
        share = volume.replace("pvc", "pvcn", 1) if nfs else volume
        server = {"server": f"{account}.privatelink.file.core.windows.net"} if private else {}
        return {
            "driver": DRIVER,
            "volumeHandle": f"{group}#{account}#{share}###{namespace}",
            "volumeAttributes": {**parameters, **server, "secretnamespace": namespace},
        }

    def record_failure(self, kube: KubeClient, claim: Object, error: NotMadeError) -> None:
        """Records a warning event, once per claim and cause."""
        metadata = claim["metadata"]
        message = f'failed to provision volume with StorageClass "{claim["spec"]["storageClassName"]}": {error}'
        if (metadata["uid"], message) not in self._reported:
            self._reported.add((metadata["uid"], message))
            events.record(kube, claim, "Warning", "ProvisioningFailed", message, {"component": DRIVER})
