"""Emulates the node plugin of the blob CSI driver (blob.csi.azure.com), which mounts PersistentVolumes.

Errors are those of github.com/kubernetes-sigs/blob-csi-driver at 0744a60 (pkg/blob: GetAuthEnv, NodeStageVolume) and of
blobfuse2 at its start (see blobfuse.py). Sentences in brackets are from the simulator.
"""

from __future__ import annotations

import base64
import binascii
import datetime
import string
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from urllib.parse import parse_qs

from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential
from azure.core.exceptions import AzureError, HttpResponseError
from azure.core.pipeline.transport import RequestsTransport
from azure.storage.blob import ContainerClient

from k8s.objects import Object
from simulator.kubelet.cloud import Cloud
from simulator.kubelet.csi import blobfuse
from simulator.kubelet.csi.blobfuse import BlobfuseError
from simulator.kubelet.csi.contents import copies_of, one_at_a_time
from simulator.kubelet.csi.identity import PodIdentity
from simulator.kubelet.csi.mount import BlobMount, reason
from simulator.world.azure_services import BlobService

NODE_PLUGIN_IMAGE = "blob-csi"
"""The last part of the repository of the node plugin's image."""
_HELP = "\nPlease refer to http://aka.ms/blobmounterror for possible causes and solutions for mount errors."
_API_VERSION = "2021-12-02"  # every Azurite supports it
_TIMEOUT_S = 10


class StageError(Exception):
    """An error of the driver's NodeStageVolume, without the gRPC code."""


@dataclass(frozen=True)
class Credentials:
    """The credentials in a secret (missing keys are empty), or the pod's identity."""

    account: str
    key: str
    sas: str
    identity: PodIdentity | None = None


def credentials(
    secret: Mapping[str, str], attributes: Mapping[str, str], identity: PodIdentity | None = None
) -> Credentials:
    """Reads credentials like GetAuthEnv: the case of keys is ignored, values are stripped. An identity has priority."""
    if identity:
        return Credentials(attributes.get("storageaccount", ""), "", "", identity)
    data = {key.lower(): value.strip() for key, value in secret.items()}
    account = data.get("azurestorageaccountname") or data.get("accountname") or attributes.get("storageaccount", "")
    key = data.get("azurestorageaccountkey") or data.get("accountkey") or ""
    return Credentials(account, key, data.get("azurestorageaccountsastoken", ""))


def stage(
    volume: Object,
    secret: Mapping[str, str],
    cloud: Cloud,
    folder: Path,
    *,
    read_only: bool,
    report: Callable[[str], None],
    identity: PodIdentity | None = None,
) -> BlobMount:
    """Mounts a PersistentVolume in `folder`, with the credentials in `secret` or with `identity`. Raises StageError."""
    csi = volume["spec"]["csi"]
    attributes = {key.lower(): value for key, value in (csi.get("volumeAttributes") or {}).items()}
    found = credentials(secret, attributes, identity)
    container = attributes.get("containername") or _container_of(csi.get("volumeHandle", ""))
    if not container:
        shown = " ".join(f"{key}:{value}" for key, value in sorted(attributes.items()))
        raise StageError(
            f"could not find containerName from attributes(map[{shown}]) or volumeID({csi.get('volumeHandle')})"
        )
    if attributes.get("protocol", "fuse2") not in ("", "fuse", "fuse2"):
        raise StageError(f"[the simulator supports only blobfuse2, not protocol {attributes['protocol']}]")
    try:
        options = blobfuse.parse(volume["spec"].get("mountOptions") or [])
        mode = _auth_mode(attributes.get("azurestorageauthtype", ""), found)
        if mode == "key":
            _check_key(found.key)
        service = _service(found, container, cloud)
        client, changes = _client(found, mode, container, service), partial(service.changes, container)
        hierarchical = options.on("use-adls")
        writes = may_write(found.sas if mode == "sas" else "", hierarchical_namespace=hierarchical)
        return BlobMount(
            client,
            folder,
            read_only=read_only or options.read_only or not writes,
            report=report,
            remembers_s=options.remembers_s,
            lock=one_at_a_time(client.url) if hierarchical else None,
            changes=changes,
            copies=None if identity else copies_of(client.url, found.sas or found.key),
        )
    except BlobfuseError as error:
        raise _failed(str(error)) from error
    except AzureError as error:
        why = f"failed to authenticate azstorage credentials with error [{_pipeline_error(error)}]"
        raise _failed(f"failed to initialize new pipeline [{why}]", _hint(error, found)) from error


def may_write(sas: str, *, hierarchical_namespace: bool = False) -> bool:
    """Returns whether a mount can write. An empty SAS (an account key) can write. Any other SAS needs permission `w`.

    In a hierarchical namespace, a SAS also needs `p`, because blobfuse2 sets the permissions of each new file. Without
    `p`, blobfuse2 fails with EACCES (component/azstorage/datalake.go, CreateFile).
    """
    permissions = parse_qs(sas.removeprefix("?")).get("sp")
    return permissions is None or set("wp" if hierarchical_namespace else "w") <= set(permissions[0])


def _auth_mode(requested: str, found: Credentials) -> str:
    mode = requested.lower() or ("key" if found.key else "sas" if found.sas else "spn" if found.identity else "msi")
    if not found.account:
        raise _config("account name not provided")
    if mode == "key" and not found.key:
        raise _config("storage key not provided")
    if mode == "sas" and not found.sas:
        raise _config("SAS key not provided")
    if mode != "spn" if found.identity else mode not in ("key", "sas"):
        why = f"no managed identity can open storage account {found.account}"
        raise BlobfuseError(
            f"failed to initialize new pipeline [{why}] [the secret has neither azurestorageaccountsastoken nor "
            "azurestorageaccountkey; the simulator mounts with these only]"
        )
    return mode


def _service(found: Credentials, container: str, cloud: Cloud) -> BlobService:
    try:
        return cloud.blob_service(found.account)
    except OSError as error:
        why = f'Get "https://{found.account}.blob.core.windows.net/{container}": {error}'
        raise BlobfuseError(
            f"failed to initialize new pipeline [failed to authenticate azstorage credentials with error [{why}]]"
        ) from error


def _client(found: Credentials, mode: str, container: str, service: BlobService) -> ContainerClient:
    credential: AzureNamedKeyCredential | AzureSasCredential | PodIdentity = found.identity or (
        AzureNamedKeyCredential(found.account, found.key)
        if mode == "key"
        else AzureSasCredential(found.sas.removeprefix("?"))
    )
    return ContainerClient(
        account_url=service.url,
        container_name=container,
        credential=credential,
        api_version=_API_VERSION,
        transport=RequestsTransport(connection_verify=str(service.ca_file), use_env_settings=False),
        proxies={"https": service.proxy} if service.proxy else {},
        retry_total=0,
        connection_timeout=_TIMEOUT_S,
        read_timeout=_TIMEOUT_S,
    )


def _check_key(key: str) -> None:
    try:
        base64.b64decode(key, validate=True)
    except binascii.Error:
        alphabet = string.ascii_letters + string.digits + "+/"
        at = next((index for index, char in enumerate(key) if char not in alphabet), len(key))
        why = f"failed to initialize new pipeline [decode account key: illegal base64 data at input byte {at}]"
        if "sig=" in key:
            why += " [azurestorageaccountkey holds a SAS; the driver reads that from azurestorageaccountsastoken]"
        raise BlobfuseError(why) from None


def _pipeline_error(error: AzureError) -> str:
    answered = isinstance(error, HttpResponseError)
    return f"BlockBlob::TestPipeline : [{reason(error)}]" if answered else reason(error)


def _hint(error: AzureError, found: Credentials) -> str:
    fields = {name: values[0] for name, values in parse_qs(found.sas.removeprefix("?")).items()}
    if not isinstance(error, HttpResponseError) or not fields:
        return ""
    now = datetime.datetime.now(datetime.UTC)
    if (expiry := fields.get("se")) and _time(expiry) < now:
        return f" [the SAS expired at {expiry}]"
    if (start := fields.get("st")) and _time(start) > now:
        return f" [the SAS is not valid before {start}]"
    if "l" not in fields.get("sp", "l"):
        return f" [the SAS has permissions {fields['sp']}; blobfuse2 lists the container as it mounts, which needs l]"
    return ""


def _time(text: str) -> datetime.datetime:
    moment = datetime.datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=datetime.UTC)


def _container_of(handle: str) -> str:
    """Returns the container in a handle `group#account#container#...`, or an empty string."""
    parts = handle.split("#")
    return parts[2] if len(parts) > 2 else ""


def _config(why: str) -> BlobfuseError:
    return BlobfuseError(f"failed to initialize new pipeline [config error in azstorage [{why}]]")


def _failed(output: str, hint: str = "") -> StageError:
    cause = f"rpc error: code = Unknown desc = exit status 1 Error: {output}{hint}"
    return StageError(f"Mount failed with error: {cause}, output: {_HELP}")
