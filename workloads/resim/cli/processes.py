"""Runs pulumi to read a stack's outputs, and kubectl to access its cluster."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from workloads.resim.batch import Refused

_UNREACHABLE = re.compile(
    r"Unable to connect to the server|was refused|no such host|i/o timeout|TLS handshake timeout|"
    r"context deadline exceeded|proxyconnect|couldn't get current server API group list"
)
_NO_LOGIN = "getting credentials: exec"
_ROLE = "Azure Kubernetes Service RBAC Writer"
_TIMEOUT = "--request-timeout=30s"


class _Failed(Exception):
    """Raised if a command fails. The message is the command's error output."""


def _run(*command: str, given: str | None = None) -> str:
    try:
        answer = subprocess.run(command, input=given, capture_output=True, text=True, check=False)
    except OSError as error:
        fix = f"install {command[0]}; on the simulator: make shell"
        raise Refused(f"{command[0]} cannot be started: {error.strerror}", f"{command[0]} on PATH", fix) from None
    if answer.returncode:
        raise _Failed(answer.stderr.strip() or answer.stdout.strip())
    return answer.stdout


def outputs(stack: str) -> Mapping[str, Any]:
    """Returns all outputs of a stack with secrets. An empty name means the selected stack. Raises Refused."""
    chosen = ["--stack", stack] if stack else []
    try:
        text = _run("pulumi", "stack", "output", "--json", "--show-secrets", "--non-interactive", *chosen)
    except _Failed as error:
        what = f"the outputs of {f'stack {stack}' if stack else 'the selected stack'} cannot be read: {_last(error)}"
        raise Refused(what, "a stack that `pulumi stack ls` lists", "--stack <name>, or pulumi stack select") from None
    found: Mapping[str, Any] = json.loads(text)
    return found


class Kubectl:
    """Runs kubectl in one namespace of one cluster."""

    def __init__(self, kubeconfig: Path, namespace: str) -> None:
        self.namespace = namespace
        self._begin = ("kubectl", f"--kubeconfig={kubeconfig}", f"--namespace={namespace}", _TIMEOUT)

    def list(self, kind: str, selector: str = "") -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(self._run("get", kind, "--output=json", f"--selector={selector}"))[
            "items"
        ]
        return found

    def find(self, kind: str, name: str) -> dict[str, Any] | None:
        """Returns an object, or None if it does not exist. Raises Refused."""
        text = self._run("get", kind, name, "--output=json", "--ignore-not-found")
        found: dict[str, Any] | None = json.loads(text) if text.strip() else None
        return found

    def create(self, manifest: Mapping[str, Any]) -> None:
        self._run("create", "--filename=-", given=json.dumps(manifest))

    def delete(self, kind: str, selector: str) -> None:
        """Deletes objects; pods get their grace period. Raises Refused."""
        self._run("delete", kind, f"--selector={selector}", "--wait=false", "--cascade=background")

    def _run(self, *arguments: str, given: str | None = None) -> str:
        try:
            return _run(*self._begin, *arguments, given=given)
        except _Failed as error:
            raise _refused(_last(error), str(error), arguments[0], self.namespace) from None


@contextmanager
def kubectl(kubeconfig: str, namespace: str) -> Iterator[Kubectl]:
    """Yields a Kubectl with a temporary kubeconfig that only this user can read."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "kubeconfig"
        with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as text:
            text.write(kubeconfig)
        yield Kubectl(file, namespace)


def _refused(last: str, output: str, verb: str, namespace: str) -> Refused:
    if _NO_LOGIN in output:
        why = next((line for line in output.splitlines() if line.strip() and _NO_LOGIN not in line), last)
        fix = "run the login that the kubeconfig uses (az login, kubelogin); docs/cluster-access.md"
        return Refused(f"the cluster's login returns no token: {why.strip()}", "a working login", fix)
    if _UNREACHABLE.search(output):
        what = f"the cluster's API server cannot be reached: {last}"
        fix = "kubectl cluster-info; a private cluster is only reachable from its network (docs/cluster-access.md)"
        return Refused(what, "a machine that can reach it", fix)
    fix = f"kubectl auth can-i {verb} jobs --namespace {namespace}"
    if "(Forbidden)" in output:
        fix += f"; in Azure, assign the role '{_ROLE}' on the cluster or its namespace"
    return Refused(f"kubectl {verb} failed: {last}", "a request that the API server accepts", fix)


def _last(error: _Failed) -> str:
    return (str(error).splitlines() or ["no output"])[-1]
