from __future__ import annotations

from collections.abc import Iterator

from config.problems.errors import Problem
from config.problems.fixes import Path, by_hand, either_by_hand, remove_command, say, set_command
from config.schema.jump_box import PUBLIC_KEY, is_public_key
from config.schema.models import StackFile
from config.schema.network import NetworkSettings

_LOGINS = ("azurecli", "msi")
"""The login methods of kubelogin that a managed identity can use without a file or secret (kubelogin's page on login
modes). `azurecli` needs `az login --identity` first.
"""


def access_problems(stack: StackFile) -> Iterator[Problem]:
    yield from _inside(stack.network)
    if stack.network.jump_box:
        yield from _needless(stack.network)
        yield from _key(stack.network)
        yield from _outbound(stack.network)
        yield from _login(stack)
        yield from _identity(stack)


def _needless(network: NetworkSettings) -> Iterator[Problem]:
    path: Path = ("network", "jumpBox")
    allowed, lacking = "no value, or network.private with network.addressSpace", ("network", "private")
    if network.id:
        what = "needs a network that the stack creates, but network.id names an existing network"
        yield Problem(path, what, allowed, remove_command(path), shows_value=False)
    elif not network.private:
        what = "is only for a private network, but network.private is false"
        fix = either_by_hand(path, "set network.private to true")
        yield Problem(path, what, allowed, fix, shows_value=False, lacking=lacking)


def _key(network: NetworkSettings) -> Iterator[Problem]:
    """Yields a problem with the SSH key, without its text, which may be a private key."""
    given = network.jump_box and network.jump_box.ssh_public_key
    if network.jump_box is None or (given and is_public_key(given)):
        return
    path = ("network", "jumpBox", "sshPublicKey")
    how = say("set it to the line in ~/.ssh/id_ed25519.pub, your public key (`ssh-keygen -t ed25519` creates the file)")
    what = "is not a public key that Azure accepts" if given else "is not set, so no user could log in"
    yield Problem(path, what, PUBLIC_KEY, how, shows_value=False)


def _outbound(network: NetworkSettings) -> Iterator[Problem]:
    """Yields a problem if the jump box has no outbound access: AKS's load balancer is only for nodes."""
    if network.address_space and not network.nat_gateway:
        path = ("network", "outbound")
        what = f"is {network.outbound}, which gives the jump box no access to the internet"
        yield Problem(path, what, "natGateway, or no network.jumpBox", by_hand(path))


def _login(stack: StackFile) -> Iterator[Problem]:
    cluster = stack.cluster
    if not cluster.local_accounts and cluster.login not in _LOGINS:
        path = ("cluster", "login")
        what = f"is {cluster.login}, but the jump box has only a managed identity: no token file and no secret"
        yield Problem(path, what, f"{' or '.join(_LOGINS)}, or no network.jumpBox", set_command(path, "msi"))


def _identity(stack: StackFile) -> Iterator[Problem]:
    """Yields a problem with a custom identity. It is in another group, where the jump box has no rights (403)."""
    if not stack.cluster.identity:
        return
    users = any(pool.capacity_reservation_group for pool in stack.pools.values())
    path: Path = ("network", "jumpBox")
    what = "has rights only in the stack's resource group, but cluster.identity is in another group"
    how = remove_command(path) if users else remove_command(("cluster", "identity"))
    yield Problem(path, what, "no cluster.identity, or no network.jumpBox", how, shows_value=False)


def _inside(network: NetworkSettings) -> Iterator[Problem]:
    if network.inside and not (network.private and network.id):
        path = ("network", "inside")
        what = "is true, but the network does not exist before the stack creates it"
        if not network.address_space:
            what = "is true, but the stack does not use an existing private network"
        allowed = "no value, or network.private with network.id"
        yield Problem(path, what, allowed, remove_command(path), lacking=("network",))
