"""Reads a cluster through kubectl, so that whatever its kubeconfig needs for a login (kubelogin, say) is there."""

from __future__ import annotations

import json
import re
import subprocess

from diagnosis.cluster import NODE, POD, Kind, Object

_PREFIX = re.compile(r"\[pod/[^\]]+\] ")
"""Of a line that is of a log (kubectl, pkg/cmd/logs/logs.go)."""
_PRIVATE = re.compile(r"lookup \S+\.privatelink\.\S+.*: no such host")
_NO_SUCH_KIND = "the server doesn't have a resource type"


_OUTSIDE = (
    "The cluster is private, and this machine is outside its network. Go inside (docs/way-in.md), or look from here by "
    "`az aks command invoke`."
)


_FORBIDDEN = (
    "Of the platform whoever may read its nodes and pods can ask. Members of a team ask of what is theirs: "
    "python -m diagnosis -n <namespace> <workload>"
)


class KubectlFailed(Exception):
    """kubectl is not there, or refused; the message is its own."""


class Forbidden(KubectlFailed):
    """The user may not read that."""


def read(kind: Kind, namespace: str) -> list[Object]:
    """A `diagnosis.cluster.Read`. Raises KubectlFailed."""
    where = ["--namespace", namespace] if namespace else ["--all-namespaces"]
    command = ["get", kind.resource, *where, "--output", "json"]
    if kind == NODE:
        command.append("--show-managed-fields")  # which tell who has cordoned it
    try:
        items: list[Object] = json.loads(_said(*command)).get("items") or []
    except KubectlFailed as error:
        if _NO_SUCH_KIND in str(error):
            return []
        raise
    return items


def read_own(kind: Kind, namespace: str) -> list[Object]:
    """The same for members of a team, who see some kinds alone: of others there are none, but pods there must be.

    Raises KubectlFailed.
    """
    try:
        return read(kind, namespace)
    except Forbidden:
        if kind == POD:
            raise
        return []


def last_lines(namespace: str, selector: str) -> tuple[list[str], list[str]]:
    """The last line of the log of each pod with these labels, and why others have none. Raises KubectlFailed."""
    chosen = ("--namespace", namespace, "--selector", selector)
    lines = _said("logs", *chosen, "--tail", "1", "--prefix", "--ignore-errors").splitlines()
    read = [(line, _PREFIX.match(line)) for line in lines if line.strip()]
    return [line[found.end() :] for line, found in read if found], [line for line, found in read if not found]


def _said(*arguments: str) -> str:
    """What it prints. Raises KubectlFailed."""
    try:
        answer = subprocess.run(["kubectl", *arguments], capture_output=True, text=True, check=False)
    except OSError as error:
        raise KubectlFailed(f"kubectl cannot be started: {error.strerror}") from error
    if answer.returncode:
        said = answer.stderr.strip()
        told = f"kubectl {' '.join(arguments)}\n{said}"
        if "(Forbidden)" in said:
            raise Forbidden(f"{told}\n{_FORBIDDEN}")
        raise KubectlFailed(f"{told}\n{_OUTSIDE}" if _PRIVATE.search(said) else told)
    return answer.stdout
