"""Checks for creating file shares and mounting them with NFS.

Error texts are Resource Manager's, except the text for an account without NFS, which is a guess. Causes of mount.nfs's
errors: Azure's page "Troubleshoot NFS Azure file shares" (a client outside the endpoint's network; secure transfer).
"""

from __future__ import annotations

from simulator.azure import inside, names
from simulator.azure.arm_world import World
from simulator.azure.ids import ResourceId
from simulator.azure.inside import Unreached
from simulator.azure.store import Record
from simulator.azure.types.managed_cluster import rules as clusters
from simulator.azure.types.role_assignment.allowed import allows
from simulator.azure.types.storage_account import rules as accounts
from simulator.azure.types.user_assigned_identity import rules as identities

_NFS = 2049
_ACTIONS = tuple(f"{accounts.TYPE}/fileServices/shares/{verb}" for verb in ("read", "write"))
"""The actions that azurefile-csi-driver needs, in the order of its requests (azurefile.go, getFileShareQuota)."""


def refusal(world: World, cluster: Record, group: str, account: str, *, nfs: bool) -> str | None:
    place = group or cluster.properties["nodeResourceGroup"]
    found = accounts.named(world, account)
    if found is None or (found.id.group or "").lower() != place.lower():
        what = f"The Resource '{accounts.TYPE}/{account}' under resource group '{place}' was not found."
        return f"RESPONSE 404: 404 Not Found ERROR CODE: ResourceNotFound: {what}"
    mine = identities.principals(world, cluster.body.get("identity", {})) or [clusters.identities(cluster)[0]]
    for lacks in (each for each in _ACTIONS if not allows(world, mine, each, found.id.text)):
        action = f"does not have authorization to perform action '{lacks}' over scope '{found.id.text}'"
        what = f"The client '{mine[0]}' with object id '{mine[0]}' {action} or the scope is invalid."
        return f"RESPONSE 403: 403 Forbidden ERROR CODE: AuthorizationFailed: {what}"
    if nfs and accounts.has_blobs(found):
        return "RESPONSE 400: 400 Bad Request ERROR CODE: FeatureNotSupportedForAccount: Nfs is not supported here."
    return None


def mount_refusal(world: World, server: str, export: str, network: ResourceId | None) -> str | None:
    if names.resolve(world, server, network) is None:
        return f"mount.nfs: Failed to resolve server {server}: Name or service not known"
    try:
        reached = inside.reach(world, server, _NFS, network)
    except Unreached:
        return "mount.nfs: Connection timed out"
    account = world.store.get(reached.service) if reached.service else None
    secure = account is None or account.properties["supportsHttpsTrafficOnly"]
    if secure or not reached.private:
        return f"mount.nfs: access denied by server while mounting {server}:{export}"
    return None
