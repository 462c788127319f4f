"""Takes up a stack where a killed `pulumi up` or `destroy` left it: its lock, half-made resources, unfinished releases."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from simulator import paths
from simulator.kube.client import KubeClient
from simulator.plugins.kubernetes.recovery import release_leftovers
from simulator.pulumi_cli import quiet, read

Object = dict[str, Any]


def recover(stack: str, kubeconfig: str | None, told: Callable[[str], None]) -> None:
    """Does nothing to a stack that is whole. Azure's half-made resources need nothing: their creation is taken up again."""
    if _locked(stack) and not _pulumi_runs():
        quiet("cancel", "--yes", stack=stack)
        told("took over the lock of an update that was killed")
    if kubeconfig:
        for line in release_leftovers(kubeconfig):
            told(line)
    pending = _pending(stack)
    if not pending:
        return
    kube = KubeClient.from_kubeconfig(kubeconfig) if kubeconfig else None
    found = {urn: made for urn, resource in pending.items() if (made := _made(resource, kube))}
    imports = [
        argument for urn, made in sorted(found.items()) for argument in ("--import-pending-creates", f"{urn},{made}")
    ]
    if found:
        quiet("refresh", "--yes", "--skip-preview", *imports, *_targets(found), stack=stack)
        told(f"adopted {len(found)} resources that a killed update had made but not recorded")
    if _pending(stack):
        quiet("refresh", "--yes", "--skip-preview", "--clear-pending-creates", *_targets(pending), stack=stack)
        told(f"forgot {len(pending) - len(found)} resources that a killed update had begun but not made")


def _targets(resources: dict[str, Any]) -> list[str]:
    return [argument for urn in sorted(resources) for argument in ("--target", urn)]


def _pending(stack: str) -> dict[str, Object]:
    """Resources whose creation was under way, by URN."""
    deployment = (read("stack", "export", stack=stack) or {}).get("deployment") or {}
    operations = deployment.get("pending_operations") or []
    return {op["resource"]["urn"]: op["resource"] for op in operations if op["type"] == "creating"}


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


def _locked(stack: str) -> bool:
    """The file backend's lock files of this stack."""
    return any((paths.home() / "state" / ".pulumi" / "locks").rglob(f"{stack}/*.json"))


def _pulumi_runs() -> bool:
    """Whether a pulumi process of this checkout is at work."""
    home = str(paths.home().resolve()).encode()
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if (entry / "comm").read_text().strip() == "pulumi" and home in (entry / "environ").read_bytes():
                return True
        except OSError:  # ended meanwhile, or another user's
            continue
    return False
