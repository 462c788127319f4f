"""Mounts volumes with a pod's token (mountWithWorkloadIdentityToken of the blob CSI driver since 1.27.0).

The kubelet regularly passes a service account token to the driver (tokenRequests of its CSIDriver). blobfuse2 exchanges
it for a token of the managed identity (kubernetes-sigs/blob-csi-driver at 0744a60, pkg/blob: NodePublishVolume,
GetAuthEnv; azure-storage-fuse at 74098e3, component/azstorage/azauthspn.go).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import httpx
from azure.core.credentials import AccessToken
from azure.core.exceptions import ClientAuthenticationError

from config.data.blobfuse import AUDIENCE
from k8s.objects import Object
from simulator.kube.client import ApiError, KubeClient
from simulator.kubelet.cloud import Cloud

_SINCE = [1, 27, 0]
"""The first version that mounts with the pod's token."""
_WITH_TOKEN, _CLIENT = "mountwithworkloadidentitytoken", "clientid"


def is_asked(volume: Object) -> bool:
    """Returns whether each pod mounts the volume for itself, with its own token (useWorkloadIdentity)."""
    attributes = _attributes(volume)
    return bool(attributes.get(_CLIENT)) or attributes.get(_WITH_TOKEN) == "true"


def why_not(volume: Object, tag: str, driver: Object) -> str | None:
    attributes = _attributes(volume)
    if _is_old(tag) or attributes.get(_WITH_TOKEN, "").lower() != "true":
        account = attributes.get("storageaccount", "")
        return (
            f"[the driver, {tag}, would have the identity fetch the key of account {account}, and not mount by the "
            "pod's token: that takes 1.27.0 and mountWithWorkloadIdentityToken. The simulator fetches no keys]"
        )
    if not attributes.get(_CLIENT):
        return "mountWithWorkloadIdentityToken is true but clientID is not specified"
    requested: Iterable[Mapping[str, str]] = driver.get("spec", {}).get("tokenRequests") or []
    if AUDIENCE not in [request.get("audience") for request in requested]:
        return f"service account token is empty [its CSIDriver has no tokenRequests for {AUDIENCE}]"
    return None


def _is_old(tag: str) -> bool:
    """Returns False for a tag without a version, such as `latest`."""
    numbers = [int(number) for number in re.findall(r"\d+", tag)[: len(_SINCE)]]
    return len(numbers) == len(_SINCE) and numbers < _SINCE


@dataclass(frozen=True)
class PodIdentity:
    """The credential of blobfuse2. Implements the SDK's TokenCredential."""

    cloud: Cloud
    client_id: str
    token: Callable[[], str]

    def get_token(self, *_scopes: str, **_options: Any) -> AccessToken:
        """Returns a storage token. Raises ClientAuthenticationError with Entra's or the API server's message."""
        try:
            return AccessToken(*self.cloud.storage_token(self.client_id, self.token()))
        except (PermissionError, ApiError, httpx.HTTPError) as error:
            message = f"WorkloadIdentityCredential authentication failed. {error}"
            raise ClientAuthenticationError(message=message) from error


def of_pod(volume: Object, pod: Object, kube: KubeClient, cloud: Cloud) -> PodIdentity:
    return PodIdentity(cloud, _attributes(volume)[_CLIENT], lambda: _service_account_token(kube, pod))


def _service_account_token(kube: KubeClient, pod: Object) -> str:
    name, namespace, uid = (pod["metadata"][key] for key in ("name", "namespace", "uid"))
    bound = {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid}
    spec = {"audiences": [AUDIENCE], "expirationSeconds": 3600, "boundObjectRef": bound}
    account = pod["spec"].get("serviceAccountName", "default")
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
    answer = kube.raw("POST", f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token", json=request)
    return str(answer["status"]["token"])


def _attributes(volume: Object) -> dict[str, str]:
    given = volume["spec"].get("csi", {}).get("volumeAttributes") or {}
    return {key.lower(): value for key, value in given.items()}
