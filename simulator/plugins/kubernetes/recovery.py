"""Cleans up after a killed plugin: pending releases, and objects that the engine did not record.

The official plugin leaves both to the user. A pending release blocks later upgrades (pulumi/pulumi-kubernetes#2054), so
`make up` first uninstalls a release whose install did not finish, or deletes the record of an unfinished upgrade. The
next `pulumi up` repeats the operation.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Collection, Iterable
from pathlib import Path

from simulator.kube.client import KubeClient, ignore_missing
from simulator.plugins.kubernetes import managed_fields
from simulator.plugins.kubernetes.kubeconfig import KubeconfigError, load, servers
from simulator.plugins.kubernetes.release import options, records
from simulator.plugins.kubernetes.release.helm import helm
from simulator.plugins.kubernetes.session import Session, connected


def release_leftovers(kubeconfig: str) -> list[str]:
    """Cleans up pending releases (`kubeconfig` is text or a path). Returns a message for each release.

    Skips a release if its helm process still runs on this machine. Raises ApiError or httpx.HTTPError.
    """
    session = connected(load(kubeconfig))
    with session.kube as kube:
        pending = [record for record in records.everywhere(kube) if record.pending]
        return [_free(session, kube, record) for record in pending if not _helm_runs(record, kube)]


def delete_forgotten(kubeconfig: str, namespaces: Iterable[str], known: Collection[tuple[str, str]]) -> list[str]:
    """Deletes objects in these namespaces that Pulumi created and the state lacks. Returns a message for each object.

    `known` are the state's objects, such as (`ai`, `Job olmo`). A remaining Job would keep its claims, and a claim
    would keep its volume, so a `destroy` would never end. Raises ApiError or httpx.HTTPError.
    """
    with connected(load(kubeconfig)).kube as kube:
        lost = [
            (version, kind, live["metadata"]["name"], namespace)
            for version, kind in kube.namespaced_kinds()
            for namespace in namespaces
            for live in kube.list(version, kind, namespace)
            if managed_fields.is_pulumis(live) and (namespace, f"{kind} {live['metadata']['name']}") not in known
        ]
        for obj in lost:
            ignore_missing(functools.partial(kube.delete, *obj))
    return [f"deleted {kind} {namespace}/{name}: a killed update had created it" for _, kind, name, namespace in lost]


def _free(session: Session, kube: KubeClient, record: records.Record) -> str:
    name = f"{record.namespace}/{record.name}"
    if record.status == "pending-install":
        release = {"name": record.name, "namespace": record.namespace}
        helm(session, options.uninstall_arguments(release, may_be_gone=True))
        return f"uninstalled release {name}: its installation was killed"
    ignore_missing(lambda: kube.delete("v1", "Secret", record.secret, record.namespace))
    return f"deleted revision {record.revision} of release {name}: its upgrade was killed"


def _helm_runs(record: records.Record, cluster: KubeClient) -> bool:
    """Returns whether helm works on the release; False without /proc."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            arguments, environment = (_strings(process / name) for name in ("cmdline", "environ"))
        except OSError:
            continue  # it ended, or belongs to another user
        if _works_on(arguments, record) and _speaks_to(arguments, environment, cluster):
            return True
    return False


def _strings(file: Path) -> list[str]:
    return file.read_bytes().decode(errors="replace").split("\0")


def _works_on(arguments: list[str], record: records.Record) -> bool:
    program = Path(arguments[0]).name
    operation = arguments[1:3] in (["install", record.name], ["upgrade", record.name])
    return program == "helm" and operation and record.namespace in arguments


def _speaks_to(arguments: list[str], environment: list[str], cluster: KubeClient) -> bool:
    """Returns whether helm uses this cluster: others can have this release. True for an unreadable kubeconfig."""
    variables = dict(each.partition("=")[::2] for each in environment)
    files = variables.get("KUBECONFIG") or str(Path(variables.get("HOME", "/"), ".kube", "config"))
    if "--kubeconfig" in arguments[:-1]:
        files = arguments[arguments.index("--kubeconfig") + 1]
    try:
        return any(cluster.server in servers(load(file)) for file in files.split(os.pathsep) if file)
    except KubeconfigError:
        return True
