"""Takes up a stack where a killed `pulumi up` or `destroy` left it: its lock, half-made resources, pending releases."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterable

import httpx

from k8s.objects import Object
from simulator.command import updates
from simulator.command.pulumi_cli import PulumiFailed, quiet, read
from simulator.host import paths
from simulator.kube.client import KubeClient
from simulator.plugins.kubernetes.options import GOES_ON
from simulator.plugins.kubernetes.recovery import delete_forgotten, release_leftovers

NAMESPACE = "kubernetes:core/v1:Namespace"
LOOKS_ONLY = ("refresh", "import")  # what failed before one of these is still to be taken up
CLUSTER = "azure-native:containerservice:ManagedCluster"


def recover(stack: str, told: Callable[[str], None]) -> None:
    """Does nothing to a stack that is whole.

    Azure's half-made resources need nothing: their creation is taken up again. Looks only at the cluster that this
    stack made. Raises PulumiFailed, also while another pulumi works on the stack.
    """
    _free_lock(stack, told)
    exported = read("stack", "export", stack=stack) or {}
    deployment = exported.get("deployment") or {}
    kubeconfig = _kubeconfig(deployment)
    if kubeconfig:
        with contextlib.suppress(httpx.ConnectError):  # the cluster is stopped, which `pulumi up` reports
            for line in release_leftovers(kubeconfig):
                told(line)
    pending = _pending(deployment, "creating")
    going = _pending(deployment, "deleting")
    if not pending and not going:
        return
    kube = KubeClient.from_kubeconfig(kubeconfig) if kubeconfig else None
    found = {urn: made for urn, resource in pending.items() if (made := _made(resource, kube))}
    _settle(stack, exported, [{**pending[urn], "id": found[urn]} for urn in found], going)
    if pending:
        told(f"was being made: {len(pending)}; of them adopted: {len(found)}, forgotten: {len(pending) - len(found)}")
    if going:
        told(f"was being deleted: {len(going)}; looked which are gone")


def goes_on(stack: str, told: Callable[[str], None]) -> dict[str, str]:
    """Variables of the kubernetes plugin for the next `up` or `destroy`, where the one before failed.

    When a plugin is killed, the engine goes on long enough to forget what that plugin was making, and the object may be
    there; or what it deleted is gone, and the state has it. Raises PulumiFailed.
    """
    history = read("stack", "history", "--json", "--page-size", "10", stack=stack) or []
    last = next((each["result"] for each in history if each["kind"] not in LOOKS_ONLY), "succeeded")
    if last == "succeeded":
        return {}
    told("the last update failed or was interrupted: what it did without recording it is adopted")
    return {GOES_ON: "true"}


def take_away_forgotten(stack: str, others: Iterable[str], told: Callable[[str], None]) -> None:
    """Before a `destroy` after an update that failed: what that one made without recording it. Raises PulumiFailed.

    A destroy that is refused because other stacks run there fails, too: what these have in the stack's namespaces, as
    their own states tell, is no leftover.
    """
    deployment = _deployment(stack)
    kubeconfig = _kubeconfig(deployment)
    if kubeconfig is None:
        return
    namespaces = [name for kind, name in _in_kubernetes(deployment) if kind == NAMESPACE]
    known = {
        _known(kind.rpartition(":")[2].removesuffix("Patch"), name)
        for each in (deployment, *map(_deployment, others))
        for kind, name in _in_kubernetes(each)
    }
    for line in delete_forgotten(kubeconfig, namespaces, known):
        told(line)


def _deployment(stack: str) -> Object:
    return (read("stack", "export", stack=stack) or {}).get("deployment") or {}


def _in_kubernetes(deployment: Object) -> list[tuple[str, str]]:
    """Type and id of what is there."""
    resources = deployment.get("resources") or []
    return [(each["type"], each["id"]) for each in resources if each["type"].startswith("kubernetes:")]


def _known(kind: str, identity: str) -> tuple[str, str]:
    namespace, _, name = identity.rpartition("/")
    return namespace, f"{kind} {name}"


def _settle(stack: str, exported: Object, made: list[Object], going: Iterable[str]) -> None:
    """Takes resources into the state as they were asked for, forgets all pending operations, and reads what is there.

    `pulumi refresh --import-pending-creates` is for that, but 3.246 marks them as being imported and imports nothing.
    None of them depends on another: what a resource depends on is made before it is begun.
    """
    exported["deployment"]["resources"] += made
    exported["deployment"].pop("pending_operations")
    quiet("stack", "import", "--force", stack=stack, stdin=json.dumps(exported))
    urns = [*(resource["urn"] for resource in made), *going]
    targets = [part for urn in urns for part in ("--target", urn)]
    if targets:
        quiet("refresh", "--yes", "--skip-preview", *targets, stack=stack)


def _kubeconfig(deployment: Object) -> str | None:
    """The administrator's kubeconfig of the cluster that this stack made, if it runs."""
    for resource in deployment.get("resources") or []:
        if resource["type"] == CLUSTER and resource.get("id"):
            file = paths.cluster(resource["id"]) / "admin.kubeconfig"
            return file.read_text() if file.exists() else None
    return None


def _pending(deployment: Object, operation: str) -> dict[str, Object]:
    """Resources with which that was under way, by URN."""
    operations = deployment.get("pending_operations") or []
    return {op["resource"]["urn"]: op["resource"] for op in operations if op["type"] == operation}


def _made(resource: Object, kube: KubeClient | None) -> str | None:
    """The id of a resource whose creation was under way, if it is there after all."""
    kind, inputs = resource["type"], resource.get("inputs") or {}
    if kind.startswith("kubernetes:") and kube is not None:
        return _kubernetes_id(kind, inputs, kube)
    return None


def _kubernetes_id(kind: str, inputs: Object, kube: KubeClient) -> str | None:
    if kind.startswith("kubernetes:helm.sh/"):
        secrets = kube.list(
            "v1", "Secret", inputs.get("namespace", "default"), labels=f"owner=helm,name={inputs['name']}"
        )
        return f"{inputs.get('namespace', 'default')}/{inputs['name']}" if secrets else None
    metadata = inputs.get("metadata") or {}
    if "apiVersion" not in inputs or "name" not in metadata:
        return None
    namespace = metadata.get("namespace")
    if kube.find(inputs["apiVersion"], inputs["kind"], metadata["name"], namespace or "default") is None:
        return None
    namespaced = kube.resource(inputs["apiVersion"], inputs["kind"]).namespaced
    return f"{namespace or 'default'}/{metadata['name']}" if namespaced else str(metadata["name"])


def _free_lock(stack: str, told: Callable[[str], None]) -> None:
    """Gives up the file backend's locks of this stack whose process was killed."""
    if working := updates.of_pulumi(stack):
        raise PulumiFailed(f"{working[0]}: let it end, then try again.")
    if updates.locked(stack):
        quiet("cancel", "--yes", stack=stack)
        told("took over the lock of an update that was killed")
