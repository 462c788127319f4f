"""Reads a cluster through kubectl, so that whatever its kubeconfig needs for a login (kubelogin, say) is there."""

from __future__ import annotations

import json
import subprocess

from diagnosis.cluster import NODE, Kind, Object

_NO_SUCH_KIND = "the server doesn't have a resource type"


class KubectlFailed(Exception):
    """kubectl is not there, or refused; the message is its own."""


def read(kind: Kind, namespace: str) -> list[Object]:
    """A `diagnosis.cluster.Read`. Raises KubectlFailed."""
    where = ["--namespace", namespace] if namespace else ["--all-namespaces"]
    command = ["kubectl", "get", kind.resource, *where, "--output", "json"]
    if kind == NODE:
        command.append("--show-managed-fields")  # which tell who has cordoned it
    try:
        answer = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise KubectlFailed(f"kubectl cannot be started: {error.strerror}") from error
    if answer.returncode and _NO_SUCH_KIND in answer.stderr:
        return []
    if answer.returncode:
        raise KubectlFailed(f"{' '.join(command)}\n{answer.stderr.strip()}")
    items: list[Object] = json.loads(answer.stdout)["items"]
    return items
