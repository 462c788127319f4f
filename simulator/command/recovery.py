"""Repairs what a killed `pulumi up` or `destroy` leaves: a lock, and pending resources and Helm releases."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Iterable

import httpx

from k8s.objects import Object
from simulator.command import updates
from simulator.command.pulumi_cli import PulumiFailed, quiet, read
from simulator.host import paths
from simulator.kube.client import KubeClient
from simulator.plugins.kubernetes.options import GOES_ON
from simulator.plugins.kubernetes.recovery import delete_forgotten, release_leftovers
from simulator.tools.progress import Progress

NAMESPACE = "kubernetes:core/v1:Namespace"
LOOKS_ONLY = ("refresh", "import")  # these do not repair an earlier failure
CLUSTER = "azure-native:containerservice:ManagedCluster"


def recover(stack: str, report: Callable[[str], None]) -> None:
    """Repairs the state of an interrupted stack, but not of other stacks.

    Pending resources of Azure need no repair, because the next update continues them. Reads only the stack's own
    cluster. Raises PulumiFailed if pulumi fails, or already works on the stack.
    """
    _free_lock(stack, report)
    exported = read("stack", "export", stack=stack) or {}
    deployment = exported.get("deployment") or {}
    kubeconfig = _kubeconfig(deployment)
    if kubeconfig:
        with contextlib.suppress(httpx.ConnectError):  # the cluster is stopped, as `pulumi up` will report
            for line in release_leftovers(kubeconfig):
                report(line)
    pending = _pending(deployment, "creating")
    going = _pending(deployment, "deleting")
    if not pending and not going:
        return
    kube = KubeClient.from_kubeconfig(kubeconfig) if kubeconfig else None
    found = {urn: made for urn, resource in pending.items() if (made := _made(resource, kube))}
    _settle(stack, exported, [{**pending[urn], "id": found[urn]} for urn in found], going)
    if pending:
        report(f"interrupted creations: {len(pending)}; adopted: {len(found)}, dropped: {len(pending) - len(found)}")
    if going:
        report(f"interrupted deletions: {len(going)}; refreshed")


def continuation(stack: str, report: Callable[[str], None]) -> dict[str, str]:
    """Returns variables that make the kubernetes plugin continue a failed update.

    The result is empty after a successful update. If the plugin was killed, the state may lack an object that it
    created, or have an object that it deleted. Raises PulumiFailed.
    """
    history = read("stack", "history", "--json", "--page-size", "10", stack=stack) or []
    last = next((each["result"] for each in history if each["kind"] not in LOOKS_ONLY), "succeeded")
    if last == "succeeded":
        return {}
    report("the last update failed or was interrupted: this update adopts the unrecorded changes")
    return {GOES_ON: "true"}


def delete_unrecorded(stack: str, others: Iterable[str], report: Callable[[str], None]) -> None:
    """Before a `destroy`, deletes objects that a failed update created but did not record. Raises PulumiFailed.

    Keeps objects in the states of `others`, because these stacks may run in the same cluster.
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
        report(line)


def _deployment(stack: str) -> Object:
    return (read("stack", "export", stack=stack) or {}).get("deployment") or {}


def _in_kubernetes(deployment: Object) -> list[tuple[str, str]]:
    resources = deployment.get("resources") or []
    return [(each["type"], each["id"]) for each in resources if each["type"].startswith("kubernetes:")]


def _known(kind: str, identity: str) -> tuple[str, str]:
    namespace, _, name = identity.rpartition("/")
    return namespace, f"{kind} {name}"


def _settle(stack: str, exported: Object, made: list[Object], going: Iterable[str]) -> None:
    """Imports `made` into the state, drops pending operations, and refreshes `made` and `going`.

    `pulumi refresh --import-pending-creates` should do this, but imports nothing in 3.246.
    """
    exported["deployment"]["resources"] += made
    exported["deployment"].pop("pending_operations")
    quiet("stack", "import", "--force", stack=stack, stdin=json.dumps(exported))
    urns = [*(resource["urn"] for resource in made), *going]
    targets = [part for urn in urns for part in ("--target", urn)]
    began = time.time()
    if targets:
        with Progress().showing(lambda: (f"refreshing {len(urns)} interrupted resources", began)):
            quiet("refresh", "--yes", "--skip-preview", *targets, stack=stack)


def _kubeconfig(deployment: Object) -> str | None:
    """Returns the kubeconfig of this stack's own cluster, or None."""
    for resource in deployment.get("resources") or []:
        if resource["type"] == CLUSTER and resource.get("id"):
            file = paths.cluster(resource["id"]) / "admin.kubeconfig"
            return file.read_text() if file.exists() else None
    return None


def _pending(deployment: Object, operation: str) -> dict[str, Object]:
    operations = deployment.get("pending_operations") or []
    return {op["resource"]["urn"]: op["resource"] for op in operations if op["type"] == operation}


def _made(resource: Object, kube: KubeClient | None) -> str | None:
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


def _free_lock(stack: str, report: Callable[[str], None]) -> None:
    """Releases the lock that a killed process left. Raises PulumiFailed if the process still runs."""
    if working := updates.of_pulumi(stack):
        raise PulumiFailed(f"{working[0]}.\n  fix: wait until the update ends, then run the same command again")
    if updates.locked(stack):
        quiet("cancel", "--yes", stack=stack)
        report("released the lock of a killed update")
