"""The Azure services that simulated clusters use: image pulls, blob and file storage, and Entra."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial

from simulator.azure import domains, federation, file_shares, guard, inside, trust
from simulator.azure.arm_world import World
from simulator.azure.ids import ResourceId, parse_id
from simulator.azure.inside import HTTPS, Unreached
from simulator.azure.login import DISCOVERY
from simulator.azure.registries import DOMAIN
from simulator.azure.tokens import AKS, STORAGE, Tokens
from simulator.azure.types.container_registry import rules as container_registries
from simulator.azure.types.managed_cluster import rules as clusters
from simulator.azure.types.role_assignment import allowed as roles
from simulator.azure.types.storage_account import rules as accounts
from simulator.world.azure_services import BlobService, Entra

_IMAGE = re.compile(r"(?P<registry>[a-zA-Z0-9]+)\.azurecr\.io/(?P<repository>[^:@]+)(:(?P<tag>[^@]+))?(@.+)?")
_LATEST = "latest"
_PULL = f"{container_registries.TYPE}/pull/read"
_BLOBS = f".{domains.BLOBS}"
_DNS = "168.63.129.16:53"
"""Azure's DNS server in each virtual network."""


class DataPlane:
    """Answers clusters' requests from the subscription's current state. Thread-safe."""

    def __init__(self, world: World, tokens: Tokens, gateway: int = 0, cluster_id: str = "") -> None:
        """`gateway` is the proxy's port. `cluster_id` is empty for clients outside all networks."""
        self._world, self._tokens, self._gateway, self._cluster = world, tokens, gateway, cluster_id

    def at(self, cluster_id: str) -> DataPlane:
        return DataPlane(self._world, self._tokens, self._gateway, cluster_id)

    def may_pull(self, cluster_id: str, image: str) -> str | None:
        """Returns containerd's error if a cluster's nodes cannot pull an image, else None.

        `image` is a pod's image reference. Nodes can pull every image from registries other than Azure's.
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
        return BlobService(self._world.blobs.endpoint, self._world.blobs.ca_file)

    def blob_service(self, account: str) -> BlobService:
        """Returns an account's blob service. Raises Unreached if the account is missing or not reachable."""
        if accounts.named(self._world, account) is None:
            raise Unreached(f"dial tcp: lookup {account}{_BLOBS} on {_DNS}: no such host")
        blobs, network = self._world.blobs, self._network(self._cluster)
        changes = partial(blobs.changes.since, account)
        if inside.reach(self._world, f"{account}{_BLOBS}", HTTPS, network).private:
            return BlobService(f"https://{account}{_BLOBS}", blobs.ca_file, self.proxy, changes)
        return BlobService(f"{blobs.endpoint}/{account}", blobs.ca_file, changes=changes)

    @property
    def proxy(self) -> str:
        """The proxy's URL for the nodes' custom network. Without one, the URL for clients outside all networks."""
        network = self._network(self._cluster)
        return domains.proxy(self._gateway, inside.label(network) if network else "")

    def issuer(self, cluster_id: str) -> str:
        """Returns the issuer of a cluster's service account tokens, or an empty string if the issuer is disabled."""
        cluster = self._world.store.get(parse_id(cluster_id))
        return clusters.issuer(self._world, cluster) if cluster else ""

    def entra(self, cluster_id: str) -> Entra | None:
        """Returns an API server's Entra settings, or None if users do not log in with Entra."""
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

    def names(self, cluster_id: str) -> Sequence[str]:
        """Returns the host names of a private API server. The first name is in kubeconfigs."""
        cluster = self._world.store.get(parse_id(cluster_id))
        return clusters.server_names(cluster) if cluster else ()

    def storage_token(self, client_id: str, assertion: str) -> tuple[str, int]:
        """Exchanges a service account's token for a storage token of a managed identity.

        Returns the storage token and its expiry time. Raises LoginError (a PermissionError).
        """
        return federation.exchange(self._world, self._tokens, client_id, assertion, STORAGE)

    def share_refusal(self, cluster_id: str, group: str, account: str, *, nfs: bool) -> str | None:
        """Returns why a cluster cannot create a share, or None. An empty `group` means the node group."""
        cluster = self._world.store.get(parse_id(cluster_id))
        return file_shares.refusal(self._world, cluster, group, account, nfs=nfs) if cluster else None

    def nfs_refusal(self, server: str, export: str) -> str | None:
        return file_shares.mount_refusal(self._world, server, export, self._network(self._cluster))

    def _network(self, cluster_id: str) -> ResourceId | None:
        return inside.network_of(self._world, parse_id(cluster_id)) if cluster_id else None

    def _refusal(self, cluster_id: str, registry: str, repository: str, tag: str) -> str | None:
        host = f"{registry}{DOMAIN}"
        prefix = f'failed to do request: Head "https://{host}/v2/{repository}/manifests/{tag}": '
        record = container_registries.named(self._world, registry)
        if record is None:
            return f"{prefix}dial tcp: lookup {host}: no such host"
        try:
            reached = inside.reach(self._world, host, HTTPS, self._network(cluster_id))
        except Unreached as error:
            return f"{prefix}{error}"
        cluster = self._world.store.get(parse_id(cluster_id))
        kubelet = clusters.kubelet_identity(cluster) if cluster else ""
        barred = not reached.private and not container_registries.is_public(record)
        if barred or not roles.allows(self._world, (kubelet,), _PULL, record.id.text):
            status = "403 Forbidden" if barred else "401 Unauthorized"  # source: AKS's page on image pull errors
            return (
                "failed to authorize: failed to fetch anonymous token: unexpected status from GET request to "
                f"https://{host}/oauth2/token?scope=repository%3A{repository.replace('/', '%2F')}%3Apull"
                f"&service={host}: {status}"
            )
        if not self._world.registries.has_image(registry, repository, tag):
            return f"{host}/{repository}:{tag}: not found"
        return None
