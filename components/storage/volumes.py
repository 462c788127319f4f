"""Blob containers as volumes: a PersistentVolume, a claim and, with SAS, a Secret for each namespace that mounts them.

Volume attributes and Secret keys are those of the blob CSI driver (kubernetes-sigs/blob-csi-driver,
docs/driver-parameters.md). A new SAS needs a volume with a new name (`generation`): otherwise a node keeps its mount.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import NamedTuple

import pulumi
from pulumi_kubernetes.core import v1 as core

from components._base import Component
from components.azure.identity import WorkloadIdentity
from components.context import BlobVolume
from components.storage.container_access import ContainerAccess, Sas
from config.data.blobfuse import DRIVER, mount_options

STORAGE_CLASS = "ai-on-aks-blob"
"""A class that does not exist. The name prevents provisioning by a default class, and binds claims to volumes."""


class ContainerVolume(Component):
    volume: BlobVolume

    def __init__(
        self,
        name: str,
        access: ContainerAccess,
        *,
        namespace: str,
        space: core.Namespace | core.NamespacePatch | None,
        space_goes: bool = True,
        hooks: pulumi.ResourceHookBinding | None,
        prefix: str = "",
        identity: WorkloadIdentity | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Creates the objects. `identity` opens the container if it has no SAS.

        `space` is the namespace if the stack creates it, or None. `space_goes` is whether the namespace is deleted with
        the stack. `hooks` are for the volume.

        The volume does not depend on the namespace. If a killed update did not record a claim, only the deletion of the
        namespace deletes it, and Kubernetes deletes the volume after the claim. So the namespace must not wait for the
        volume.

        The namespace must not wait for the claim either. If users' pods (batches) mount the claim, storage object in
        use protection keeps it until they end, and only the deletion of the namespace ends them.
        """
        super().__init__(name, opts)
        self._names = volume_names(access, namespace, prefix)
        self._after = [space] if space else []
        sas = access.sas
        secrets = [self._secret(f"secret-{name}", self._names.secret, _driver_keys(access, sas))] if sas else []
        volume = core.PersistentVolume(
            f"volume-{name}",
            metadata={"name": self._names.volume},
            spec=volume_spec(access, self._names, identity.client_id if identity else None),
            opts=self.child(hooks=hooks),
        )
        claim = core.PersistentVolumeClaim(
            f"claim-{name}",
            metadata={"name": self._names.claim, "namespace": namespace},
            spec=claim_spec(access, volume.metadata["name"]),
            opts=self.child(depends_on=[*self._after, *secrets], deleted_with=space if space_goes else None),
        )
        # A namespace of another stack gets no Secret for uploads: its members read Secrets, and no job there uploads.
        own = sas.upload if sas and space else None
        upload = None
        if own is not None:
            upload = self._secret(f"upload-{name}", self._names.upload, {"url": access.url, "sas": own})
        digest = {f"sas.ai-on-aks/{access.container}": pulumi.Output.unsecret(sas.mount.apply(_digest))} if sas else {}
        self.volume = BlobVolume(
            claim=claim.metadata["name"],
            read_only=access.settings.read_only,
            annotations=digest,
            service_account=identity.account if identity else None,
            upload_secret=upload.metadata["name"] if upload else None,
        )
        self.register_outputs({})

    def _secret(self, name: str, object_name: str, data: Mapping[str, pulumi.Input[str]]) -> core.Secret:
        return core.Secret(
            name,
            metadata={"name": object_name, "namespace": self._names.namespace},
            string_data=data,
            opts=self.child(depends_on=self._after),
        )


class VolumeNames(NamedTuple):
    """Names of the objects that mount a container into a namespace. A new SAS needs objects with new names."""

    namespace: str
    claim: str
    secret: str
    upload: str
    volume: str
    """The PersistentVolume, unique in the cluster."""


def volume_names(access: ContainerAccess, namespace: str, prefix: str) -> VolumeNames:
    stem, generation = f"{prefix}{access.container}", access.generation
    claim = f"{stem}-{generation}"
    return VolumeNames(
        namespace, claim, f"{stem}-sas-{generation}", f"{stem}-upload-{generation}", f"{namespace}-{claim}"
    )


def volume_spec(
    access: ContainerAccess, names: VolumeNames, client_id: pulumi.Input[str] | None = None
) -> core.PersistentVolumeSpecArgs:
    """Returns the PersistentVolume's spec. Only the Secret, or the identity `client_id`, opens the container.

    With an identity, the driver mounts the container for each pod with the pod's token (nodeserver.go,
    NodePublishVolume). Without mountWithWorkloadIdentityToken, it would use the identity to get the account's key
    (blob.go, GetAuthEnv).
    """
    opened_by: dict[str, pulumi.Input[str]] = (
        {"AzureStorageAuthType": "SAS"}
        if client_id is None
        else {"clientID": client_id, "mountWithWorkloadIdentityToken": "true"}
    )
    attributes = {
        "protocol": "fuse2",
        "storageAccount": access.account,
        "containerName": access.container,
        **opened_by,
    }
    secret = core.SecretReferenceArgs(name=names.secret, namespace=names.namespace) if client_id is None else None
    return core.PersistentVolumeSpecArgs(
        capacity={"storage": f"{access.settings.size_gib}Gi"},
        access_modes=_access_modes(access),
        persistent_volume_reclaim_policy="Retain",  # deleting the volume must not delete the container
        storage_class_name=STORAGE_CLASS,
        claim_ref=core.ObjectReferenceArgs(namespace=names.namespace, name=names.claim),
        mount_options=mount_options(
            access.settings.profile, names.volume, hierarchical_namespace=access.hierarchical_namespace
        ),
        csi=core.CSIPersistentVolumeSourceArgs(
            driver=DRIVER,
            volume_handle=f"{access.account}_{names.volume}",
            volume_attributes=attributes,
            node_stage_secret_ref=secret,
        ),
    )


def claim_spec(access: ContainerAccess, volume: pulumi.Input[str]) -> core.PersistentVolumeClaimSpecArgs:
    return core.PersistentVolumeClaimSpecArgs(
        access_modes=_access_modes(access),
        storage_class_name=STORAGE_CLASS,
        volume_name=volume,
        resources=core.VolumeResourceRequirementsArgs(requests={"storage": f"{access.settings.size_gib}Gi"}),
    )


def _driver_keys(access: ContainerAccess, sas: Sas) -> dict[str, pulumi.Input[str]]:
    return {"azurestorageaccountname": access.account, "azurestorageaccountsastoken": sas.mount}


def _access_modes(access: ContainerAccess) -> list[str]:
    """Returns modes for many nodes. The driver adds `-o ro` to mounts with ReadOnlyMany."""
    return ["ReadOnlyMany" if access.settings.read_only else "ReadWriteMany"]


def _digest(sas: str) -> str:
    """Returns a hash of a SAS. The SAS cannot be guessed from it, because the signature has 256 bits."""
    return hashlib.sha256(sas.encode()).hexdigest()[:12]
