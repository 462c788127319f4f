"""Decides which part of a stack with a private network can be deployed from this machine.

A new network has no machines. So the first phase runs outside the network, and creates only Azure resources. It omits
SAS and Kubernetes objects, which need access to the network, and GPU nodes, which cost money. A tag of the resource
group records the phase, not an output, because a failed update does not change outputs. The second phase changes the
tag first. After that, the program refuses to run outside, because it could not reach the objects in the cluster.
"""

from __future__ import annotations

from collections.abc import Iterator

import pulumi
from pulumi_azure_native import resources

from components.access import inside
from components.access.jump_box import login_command
from components.access.kubeconfig import login_of, private_server
from components.azure.roles import subscription_id
from components.preflight.arm import Unread, answers_at, connect
from components.preflight.checks import check_login
from components.preflight.existing import Existing, get_if_exists
from components.preflight.existing_cluster import check_running
from components.preflight.network import network_path
from config.data.output_names import KUBECONFIG
from config.problems.errors import lines
from config.problems.fixes import set_command
from config.reading.loader import outputs_of
from config.schema.models import PlatformStack, Settings
from config.schema.resource_ids import ResourceName

_BY_ADDRESS = (
    "The program treats this machine as inside the private network, because its Azure address is in the network's "
    "range. If the machine is in another network with the same range, the update will fail with `no such host` "
    "(docs/cluster-access.md)."
)
_TAG = "ai-on-aks-phase"
_FIRST, _SECOND = "outside", "inside"


def deploys_inside(settings: Settings, existing: Existing) -> bool:
    """Returns whether to declare the whole stack, not only the resources of the first phase.

    Raises pulumi.RunError, with the ways to access the network, if this machine is outside the network and the stack
    is not in its first phase.
    """
    if not settings.network.private or _is_inside(settings, existing):
        return True
    if settings.network.two_phases and _has_nothing_inside(existing):
        return False
    raise pulumi.RunError("\n".join(_refusal(settings, existing)))


def check_shared_platform(settings: Settings, shared_platform: PlatformStack) -> None:
    """Raises pulumi.RunError, with the fix, if a consumer stack cannot access its shared platform's cluster."""
    outputs = outputs_of(str(shared_platform.stack))
    check_running(outputs, settings.stack)
    kubeconfig = outputs[KUBECONFIG]
    host = private_server(kubeconfig)
    if host and not inside.answers(host):
        raise pulumi.RunError("\n".join(_unreachable(settings, shared_platform)))
    check_login(login_of(kubeconfig), str(shared_platform.stack))


def _unreachable(settings: Settings, shared_platform: PlatformStack) -> Iterator[str]:
    yield f"the cluster of {shared_platform.stack} does not answer: the cluster is stopped, or it is private and this"
    yield "machine is outside the cluster's network. Nothing was changed."
    yield "Continue from a machine in the network (docs/cluster-access.md):"
    yield f"    pulumi up -s {settings.stack}    # on the jump box, or a machine that reaches the network"


def tags(settings: Settings, *, within: bool) -> dict[str, str] | None:
    return {_TAG: _SECOND if within else _FIRST} if settings.network.two_phases else None


def _is_inside(settings: Settings, existing: Existing) -> bool:
    if existing.cluster:
        profile, host = existing.cluster.api_server_access_profile, existing.cluster.private_fqdn
        # A failed creation may leave a private cluster without a DNS name, which no machine can reach.
        return inside.answers(host) if host else not (profile and profile.enable_private_cluster)
    return settings.network.inside or _seems_inside(settings, existing.group)


def _seems_inside(settings: Settings, group: str) -> bool:
    found = inside.is_in(_ranges(settings, group))
    if found:
        pulumi.log.info(_BY_ADDRESS)
    return found


def _ranges(settings: Settings, group: str) -> Iterator[str]:
    of_group = f"/subscriptions/{subscription_id()}/resourceGroups/{group}/providers/Microsoft.Network/virtualNetworks/"
    path = network_path(settings.network.id or f"{of_group}{settings.names.cluster}")
    found = answers_at(connect(settings.location), [path])[path]
    if isinstance(found, Unread):
        if found.absent and settings.network.id:
            raise pulumi.RunError(_no_network(settings.network.id))
        if not found.absent:
            pulumi.log.warn(
                f"the network could not be looked up in Azure: {found.why}. So the program treats this machine as "
                "outside the network."
            )
        return
    network = found.get("properties") or {}
    yield from (network.get("addressSpace") or {}).get("addressPrefixes") or ()
    for peering in (each["properties"] for each in network.get("virtualNetworkPeerings") or ()):
        if peering.get("peeringState") == "Connected":
            yield from (peering.get("remoteAddressSpace") or {}).get("addressPrefixes") or ()


def _no_network(id_: str) -> str:
    return lines(
        f"network.id does not exist in Azure: {id_}",
        "Nothing was changed. Set network.id to the id of an existing network:",
        "    az network vnet list --query [].id --output tsv",
    )


def _has_nothing_inside(existing: Existing) -> bool:
    group = get_if_exists(lambda: resources.get_resource_group(resource_group_name=existing.group))
    return group is None or (group.tags or {}).get(_TAG) == _FIRST


def next_command(settings: Settings, group: str) -> str:
    jump_box = settings.network.jump_box
    if jump_box and jump_box.ssh_public_key:
        return login_command(settings, group, jump_box.ssh_public_key)
    return f"pulumi up -s {settings.stack}"


def after_first_phase(settings: Settings, group: str) -> str:
    return lines(
        "This machine is outside the network that the stack creates. So this update is the first of two phases: it "
        "creates no GPU nodes, no SAS and nothing in the cluster. Continue from a machine in the network "
        "(docs/cluster-access.md):",
        *_from_inside(settings, group),
    )


def _from_inside(settings: Settings, group: str) -> Iterator[str]:
    command, again = next_command(settings, group), f"pulumi up -s {settings.stack}"
    if settings.network.jump_box:
        yield f"    {command}    # needs Azure's CLI with the extensions bastion and ssh"
        yield "    az login --identity    # on the jump box, where you also `pulumi login` to the state of this stack"
        yield f"    {again}"
        return
    yield f"    {again}    # on a machine in the network, or with access to the network and its zones (VPN, peering)"
    if settings.network.address_space:
        key = f'-s {settings.stack} --path network.jumpBox.sshPublicKey "$(cat ~/.ssh/id_ed25519.pub)"'
        yield "Or create a jump box in this phase:"
        yield f"    pulumi config set {key}"


def _refusal(settings: Settings, existing: Existing) -> Iterator[str]:
    stack, cluster, group = settings.stack, existing.cluster_name, existing.group
    if existing.cluster is None and settings.network.id:
        name = ResourceName.of(settings.network.id).name
        yield f"this machine is outside the network {name}: it has no Azure address there or in a peered network."
        yield "So it cannot reach the API server and the storage (network.private)."
        yield "Nothing was changed. Continue from a machine in the network (docs/cluster-access.md):"
        yield f"    pulumi up -s {stack}    # on a machine in {name}, or in a peered network"
        yield "Or, if this machine reaches the network and its DNS zones by VPN or ExpressRoute:"
        yield f"    {set_command(('network', 'inside'), True).text(stack)}"
        return
    if existing.cluster is None:
        yield f"the cluster {cluster} was deleted in Azure, and this machine is outside its network."
    else:
        yield f"cluster {cluster} does not answer: the cluster is stopped, or it is private and this machine is outside"
        yield "the cluster's network."
    yield "Nothing was changed: an update would delete the cluster's objects."
    yield "Continue from a machine in the network (docs/cluster-access.md):"
    if settings.network.jump_box:
        yield from _from_inside(settings, group)
    else:
        yield f"    pulumi up -s {stack}    # on a machine in the network, or with access to it (VPN, peering)"
    if existing.cluster:
        yield "To inspect the cluster from here:"
        yield f"    az aks command invoke --resource-group {group} --name {cluster} --command 'kubectl get pods -A'"
    yield "To destroy the stack from here, with the objects of all consumer stacks:"
    yield f"    PULUMI_K8S_DELETE_UNREACHABLE=true pulumi destroy --refresh -s {stack}"
