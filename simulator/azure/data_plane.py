"""What a cluster sees of the subscription's data: whether it may pull an image, and where an account's blobs are."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from simulator.azure import federation, guard, trust
from simulator.azure.ids import parse_id
from simulator.azure.login import DISCOVERY
from simulator.azure.registries import DOMAIN
from simulator.azure.tokens import AKS, STORAGE, Tokens
from simulator.azure.types.container_registry import rules as container_registries
from simulator.azure.types.managed_cluster import rules as clusters
from simulator.azure.types.role_assignment import rules as roles
from simulator.azure.types.storage_account import rules as accounts
from simulator.azure.world import World

_IMAGE = re.compile(r"(?P<registry>[a-zA-Z0-9]+)\.azurecr\.io/(?P<repository>[^:@]+)(:(?P<tag>[^@]+))?(@.+)?")
_LATEST = "latest"


@dataclass(frozen=True)
class BlobService:
    """Where the blobs of an account, or of all, are served."""

    url: str
    """`https://127.0.0.1:<port>/<account>`, for all without the account; no slash at the end."""
    ca_file: Path
    """The authority that signed its certificate (PEM)."""


@dataclass(frozen=True)
class Entra:
    """By what the API server of a cluster knows people, and may ask what they may do."""

    issuer: str
    discovery: str
    audience: str
    ca: str
    guard: str
    token: str


class DataPlane:
    """Answers from the subscription as it is now; may be asked from any thread."""

    def __init__(self, world: World, tokens: Tokens) -> None:
        self._world, self._tokens = world, tokens

    def may_pull(self, cluster_id: str, image: str) -> str | None:
        """Why the nodes of a cluster cannot pull an image, as containerd says it; None where they can.

        `image` is a reference as in a pod. Of registries outside the simulated Azure every image can be pulled.
        """
        named = _IMAGE.fullmatch(image)
        if named is None:
            return None
        registry, repository, tag = named["registry"].lower(), named["repository"], named["tag"] or _LATEST
        reason = self._refusal(cluster_id, registry, repository, tag)
        if reason is None:
            return None
        return f'failed to pull and unpack image "{image}": failed to resolve reference "{image}": {reason}'

    @property
    def blobs(self) -> BlobService:
        """That of all accounts."""
        return BlobService(self._world.blobs.endpoint, self._world.blobs.ca_file)

    def blob_service(self, account: str) -> BlobService | None:
        """By the account's name; None where there is no such account (a name that does not resolve, on real Azure)."""
        if accounts.named(self._world, account) is None:
            return None
        blobs = self._world.blobs
        return BlobService(f"{blobs.endpoint}/{account}", blobs.ca_file)

    def issuer(self, cluster_id: str) -> str:
        """Of the tokens of a cluster's service accounts; empty where none is on."""
        cluster = self._world.store.get(parse_id(cluster_id))
        return clusters.issuer(self._world, cluster) if cluster else ""

    def entra(self, cluster_id: str) -> Entra | None:
        """What the API server of a cluster has of Entra; None where people do not log in by it."""
        cluster, tokens = self._world.store.get(parse_id(cluster_id)), self._tokens
        profile = cluster.properties.get("aadProfile") or {} if cluster else {}
        if cluster is None or not profile.get("managed"):
            return None
        return Entra(
            issuer=tokens.issuer,
            discovery=f"{tokens.arm}/{self._world.subscription.tenant_id}{DISCOVERY}",
            audience=AKS,
            ca=trust.authority().pem,
            guard=f"{tokens.arm}{cluster.id.text}{guard.PATH}" if profile.get("enableAzureRBAC") else "",
            token=tokens.secret,
        )

    def storage_token(self, client_id: str, assertion: str) -> tuple[str, int]:
        """A managed identity's token for blobs, for a service account's; when it ends.

        Raises LoginError, a PermissionError.
        """
        return federation.exchange(self._world, self._tokens, client_id, assertion, STORAGE)

    def _refusal(self, cluster_id: str, registry: str, repository: str, tag: str) -> str | None:
        host = f"{registry}{DOMAIN}"
        record = container_registries.named(self._world, registry)
        if record is None:
            return (
                f'failed to do request: Head "https://{host}/v2/{repository}/manifests/{tag}": '
                f"dial tcp: lookup {host}: no such host"
            )
        cluster = self._world.store.get(parse_id(cluster_id))
        kubelet = clusters.kubelet_identity(cluster) if cluster else ""
        if not roles.allows(self._world, kubelet, "pull", record.id):
            return (
                "failed to authorize: failed to fetch anonymous token: unexpected status from GET request to "
                f"https://{host}/oauth2/token?scope=repository%3A{repository.replace('/', '%2F')}%3Apull"
                f"&service={host}: 401 Unauthorized"
            )
        if not self._world.registries.has_image(registry, repository, tag):
            return f"{host}/{repository}:{tag}: not found"
        return None
