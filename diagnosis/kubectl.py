"""Reads the cluster with kubectl, which supports every login of a kubeconfig, such as kubelogin."""

from __future__ import annotations

import contextlib
import functools
import http.client
import json
import re
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from functools import partial
from http import HTTPStatus
from pathlib import Path

from config.data import data
from diagnosis.cluster import NODE, POD, Kind, Read, ReadFailed
from k8s.objects import Object

_PREFIX = re.compile(r"\[pod/[^\]]+\] ")
"""Prefix of each line of `kubectl logs --prefix` (kubectl, pkg/cmd/logs/logs.go)."""
_TIMEOUT_S = 60
_NO_SUCH_KIND = "the server doesn't have a resource type"
_LOG_LINE = re.compile(r"[EWI]\d{4} \d\d:\d\d:\d\d\.\d+ ")
"""Prefix of kubectl's own log lines (klog). They repeat the error that kubectl prints in its last line."""


@functools.cache
def _hints() -> Mapping[str, str]:
    read = data.parsed(Path(__file__).with_name("hints.yaml").read_text("utf-8"))
    return {each["matches"]: each["hint"].format(**read["texts"]) for each in read["hints"]}


class KubectlFailed(ReadFailed):
    """Raised if kubectl is missing or fails. The message has the command, kubectl's error and a hint."""


class Forbidden(KubectlFailed):
    """Raised if the user may not read this resource."""


def read(kind: Kind, namespace: str) -> list[Object]:
    where = ["--namespace", namespace] if namespace else ["--all-namespaces"]
    command = ["get", kind.resource, *where, "--output", "json"]
    if kind == NODE:
        command.append("--show-managed-fields")  # managed fields name the client that cordoned the node
    try:
        items: list[Object] = json.loads(_output(*command)).get("items") or []
    except KubectlFailed as error:
        if _NO_SUCH_KIND in str(error):
            return []
        raise
    except ValueError:
        raise KubectlFailed(
            f"`kubectl {' '.join(command)}` did not print JSON. Check the kubectl on PATH: type kubectl"
        ) from None
    return items


def read_own(kind: Kind, namespace: str) -> list[Object]:
    """Reads like `read`, for users with rights in one namespace. Returns an empty list for kinds that they may not
    read.

    Raises Forbidden for pods that they may not read, and KubectlFailed.
    """
    try:
        return read(kind, namespace)
    except Forbidden:
        if kind == POD:
            raise
        return []


@contextlib.contextmanager
def reading_often() -> Iterator[Read]:
    """Yields a `diagnosis.cluster.Read` that reads all kinds through one `kubectl proxy`, so kubectl logs in only once.

    The proxy only allows reads, through a socket that other users cannot open. Raises KubectlFailed.
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
        if proxy.stdout and not proxy.stdout.readline():  # the proxy prints a line once it listens
            raise _failed("kubectl proxy", log.read_text())
        yield partial(_get, path)


class _Connection(http.client.HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=_TIMEOUT_S)
        self._path = path

    def connect(self) -> None:
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
    chosen = ("--namespace", namespace, "--selector", selector)
    lines = _output("logs", *chosen, "--tail", "1", "--prefix", "--ignore-errors").splitlines()
    read = [(line, _PREFIX.match(line)) for line in lines if line.strip()]
    return [line[found.end() :] for line, found in read if found], [line for line, found in read if not found]


def _output(*arguments: str) -> str:
    try:
        answer = subprocess.run(["kubectl", *arguments], capture_output=True, text=True, check=False)
    except OSError as error:
        raise KubectlFailed(f"kubectl cannot be started: {error.strerror}") from error
    if answer.returncode:
        raise _failed(f"kubectl {' '.join(arguments)}", answer.stderr)
    return answer.stdout


def _failed(command: str, stderr: str) -> KubectlFailed:
    error = _once(stderr)
    failed = Forbidden if "(Forbidden)" in error else KubectlFailed
    return failed("\n".join(filter(None, [command, error, hint(error)])))


def hint(error: str) -> str:
    """Returns the meaning and fix of kubectl's error; empty if unknown."""
    return next((hint for pattern, hint in _hints().items() if re.search(pattern, error)), "")


def _once(stderr: str) -> str:
    lines = dict.fromkeys(line.strip() for line in stderr.splitlines() if line.strip())
    return "\n".join([line for line in lines if not _LOG_LINE.match(line)] or list(lines)[-1:])
