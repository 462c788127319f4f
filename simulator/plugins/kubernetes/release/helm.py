"""Runs the Helm CLI on the session's cluster, with values from stdin and a private, temporary kubeconfig."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import yaml

from simulator.host import paths
from simulator.plugins.errors import PluginError
from simulator.plugins.kubernetes.release import tether
from simulator.plugins.kubernetes.session import Session

_LOOK_EVERY_SECONDS: Final = 0.2
_GRACE_SECONDS: Final = 20.0  # enough for helm to mark a cancelled release as failed
_PREFIX: Final = "kubeconfig-"
_SETTINGS: Final = {
    "driver": "HELM_DRIVER",
    "pluginsPath": "HELM_PLUGINS",
    "registryConfigPath": "HELM_REGISTRY_CONFIG",
    "repositoryConfigPath": "HELM_REPOSITORY_CONFIG",
    "repositoryCache": "HELM_REPOSITORY_CACHE",
}


class HelmError(PluginError):
    """Helm failed. The text is Helm's error message without prefixes."""


def helm(
    session: Session, arguments: list[str], values: Mapping[str, Any] | None = None, *, cancellable: bool = True
) -> str:
    """Runs helm, with `values` on stdin, and returns its stdout. Raises HelmError.

    If the session is cancelled, sends SIGTERM to helm, unless `cancellable` is False.
    """
    command = [_executable(), *arguments]
    if values is not None:
        command += ["--values", "-"]
    with _kubeconfig(session) as environment:
        cancelled = session.cancelled if cancellable else threading.Event()
        return _run(cancelled, command, json.dumps(values or {}), environment)


def _run(cancelled: threading.Event, command: list[str], stdin: str, environment: Mapping[str, str]) -> str:
    tethered = [sys.executable, "-S", "-E", str(tether.__file__), str(os.getpid()), *command]
    with tempfile.TemporaryFile("w+") as values:  # no other process can open it
        values.write(stdin)
        values.seek(0)
        process = subprocess.Popen(
            tethered,
            stdin=values,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=dict(environment),
            start_new_session=True,  # Ctrl-C does not reach helm; the plugin receives Cancel instead
        )
    stdout, stderr = _await_end(cancelled, process)
    if process.returncode:
        raise HelmError(_reason(stderr) or f"helm ended with exit code {process.returncode}")
    return stdout


def _await_end(cancelled: threading.Event, process: subprocess.Popen[str]) -> tuple[str, str]:
    """Waits for the end. The input is a file, because CPython 3.11 stops writing to a pipe after a timeout."""
    terminated = False
    while True:
        try:
            return process.communicate(timeout=_GRACE_SECONDS if terminated else _LOOK_EVERY_SECONDS)
        except subprocess.TimeoutExpired:
            pass
        if terminated:
            process.kill()
        elif cancelled.is_set():
            process.terminate()
            terminated = True


def _reason(stderr: str) -> str:
    _, marker, text = stderr.rpartition("Error: ")
    text = text.strip() if marker else stderr.strip()
    for prefix in ("INSTALLATION FAILED: ", "UPGRADE FAILED: "):
        text = text.removeprefix(prefix)
    return text


def _executable() -> str:
    try:
        return str(paths.tool("helm"))
    except FileNotFoundError as error:
        raise PluginError(str(error)) from error


@contextmanager
def _kubeconfig(session: Session) -> Iterator[dict[str, str]]:
    folder = paths.home() / "tmp"
    folder.mkdir(parents=True, exist_ok=True)
    _remove_orphans(folder)
    given = session.options.helm
    settings = {variable: given[name] for name, variable in _SETTINGS.items() if given.get(name)}
    with tempfile.NamedTemporaryFile("w", prefix=f"{_PREFIX}{os.getpid()}-", dir=folder) as file:
        yaml.safe_dump(session.config, file)
        file.flush()
        yield {**os.environ, **settings, "KUBECONFIG": file.name, "KUBECACHEDIR": str(paths.kube_cache())}


def _remove_orphans(folder: Path) -> None:
    """Deletes the kubeconfigs of killed plugins."""
    for path in folder.glob(f"{_PREFIX}*-*"):
        try:
            os.kill(int(path.name.split("-")[1]), 0)
        except ProcessLookupError:
            path.unlink(missing_ok=True)
        except PermissionError:
            continue  # the process id now belongs to another user
