"""Reads a cluster through kubectl, so that whatever its kubeconfig needs for a login (kubelogin, say) is there."""

from __future__ import annotations

import contextlib
import http.client
import json
import re
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from functools import partial
from http import HTTPStatus
from pathlib import Path

from diagnosis.cluster import NODE, POD, Kind, Read, ReadFailed
from k8s.objects import Object

_PREFIX = re.compile(r"\[pod/[^\]]+\] ")
"""Of a line that is of a log (kubectl, pkg/cmd/logs/logs.go)."""
_TIMEOUT_S = 60
_NO_SUCH_KIND = "the server doesn't have a resource type"
_LOG_LINE = re.compile(r"[EWI]\d{4} \d\d:\d\d:\d\d\.\d+ ")
"""Begins a line of kubectl's own log (klog), which says beforehand what its last line says again."""

_CLUSTER = '--resource-group "$(pulumi stack output resourceGroup)" --name "$(pulumi stack output clusterName)"'
_POWER = f"""Is it stopped, or deleted?
  az aks show {_CLUSTER} --query powerState.code
  az aks start {_CLUSTER}    # if it is Stopped"""
_NEW_CREDENTIALS = f"  az aks get-credentials {_CLUSTER} --overwrite-existing"

_FORBIDDEN = (
    "Of the platform whoever may read its nodes and pods can ask. Members of a team ask of what is theirs: "
    "python -m diagnosis -n <namespace> <workload>"
)

_HINTS = (
    (r"\(Forbidden\)", _FORBIDDEN),
    (
        r"lookup \S+\.privatelink\.\S+.*: no such host",
        "The cluster is private, and this machine is outside its network. Go inside (docs/way-in.md), or look from "
        "here by `az aks command invoke`.",
    ),
    (r"lookup .*(no such host|server misbehaving)", f"This machine finds no such cluster. {_POWER}"),
    (
        r"localhost:8080|no configuration has been provided|current-context|context .* (does not exist|was not found)",
        "No kubeconfig is in use. On the simulator: make shell. On Azure:\n" + _NEW_CREDENTIALS,
    ),
    (
        r"(127\.0\.0\.1|localhost):\d+.*(refused|reset)",
        "No cluster answers on this machine. On the simulator: make start. For a tunnel to a cluster: open it again. "
        f"If either runs: {_POWER}",
    ),
    (
        r"x509: |certificate (has expired|signed by)",
        "The kubeconfig is of another cluster, or from before its certificates changed. Get a new one:\n"
        + _NEW_CREDENTIALS,
    ),
    (
        r"executable kubelogin not found|kubelogin.*(not found|no such file)",
        "kubelogin is not installed: az aks install-cli",
    ),
    (
        r"AADSTS\d+|az login|interaction_required|getting credentials: exec|refresh token|\(?Unauthorized\)?"
        r"|asked for the client to provide credentials|must be logged in",
        "The login has expired, or is not for this cluster: az login, then try again. If that does not help:\n"
        + _NEW_CREDENTIALS,
    ),
    (
        r"connection refused|i/o timeout|deadline exceeded|Client\.Timeout|TLS handshake timeout|no route to host"
        r"|network is unreachable|connection reset|was refused|Unable to connect to the server",
        "The API server does not answer: it may admit other addresses only (cluster.authorizedIpRanges), or be in a "
        f"network that is not reached from here (docs/way-in.md). {_POWER}",
    ),
    (
        r"ServiceUnavailable|currently unable to handle the request|etcdserver|TooManyRequests|InternalError",
        "The API server has an internal error, which often passes: try again in a minute.",
    ),
)
"""What kubectl's last words mean, the surest first."""


class KubectlFailed(ReadFailed):
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
    except ValueError:
        raise KubectlFailed(f"`kubectl {' '.join(command)}` printed no JSON: is kubectl a script here?") from None
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


@contextlib.contextmanager
def reading_often() -> Iterator[Read]:
    """Yields a `diagnosis.cluster.Read` that starts no kubectl for each kind: one `kubectl proxy` logs in for them all.

    It allows reading only, through a socket that no other user can open. Raises KubectlFailed.
    """
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        path, log = Path(folder) / "api", Path(folder) / "log"
        command = ["kubectl", "proxy", "--unix-socket", str(path), "--reject-methods", "^(POST|PUT|PATCH|DELETE)$"]
        errors = stack.enter_context(log.open("w"))
        try:
            proxy = stack.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True))
        except OSError as error:
            raise KubectlFailed(f"kubectl cannot be started: {error.strerror}") from error
        stack.callback(proxy.terminate)
        if proxy.stdout and not proxy.stdout.readline():  # it prints a line once it serves
            raise _failed("kubectl proxy", log.read_text())
        yield partial(_get, path)


class _Connection(http.client.HTTPConnection):
    """HTTP through a socket in the file system."""

    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=_TIMEOUT_S)
        self._path = path

    def connect(self) -> None:
        """Opens the socket."""
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))


def _get(socket_path: Path, kind: Kind, namespace: str) -> list[Object]:
    root = "/apis" if "/" in kind.api_version else "/api"
    scope = f"/namespaces/{namespace}" if namespace else ""
    url = f"{root}/{kind.api_version}{scope}/{kind.plural}"
    try:
        with contextlib.closing(_Connection(socket_path)) as connection:
            connection.request("GET", url)
            answer = connection.getresponse()
            text = answer.read().decode()
    except (OSError, http.client.HTTPException) as error:
        raise KubectlFailed(f"kubectl proxy does not answer: {error}") from error
    if answer.status == HTTPStatus.NOT_FOUND:
        return []
    if answer.status != HTTPStatus.OK:
        with contextlib.suppress(ValueError):
            text = json.loads(text)["message"]
        raise _failed(f"GET {url}", f"({answer.reason}) {text}")
    items: list[Object] = json.loads(text)["items"]
    return [{"apiVersion": kind.api_version, "kind": kind.name, **item} for item in items]


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
        raise _failed(f"kubectl {' '.join(arguments)}", answer.stderr)
    return answer.stdout


def _failed(asked: str, stderr: str) -> KubectlFailed:
    said = _once(stderr)
    hint = next((hint for pattern, hint in _HINTS if re.search(pattern, said)), "")
    failed = Forbidden if hint == _FORBIDDEN else KubectlFailed
    return failed("\n".join(filter(None, [asked, said, hint])))


def _once(stderr: str) -> str:
    """Each line once, and kubectl's log only where there is nothing else."""
    lines = dict.fromkeys(line.strip() for line in stderr.splitlines() if line.strip())
    return "\n".join([line for line in lines if not _LOG_LINE.match(line)] or list(lines)[-1:])
