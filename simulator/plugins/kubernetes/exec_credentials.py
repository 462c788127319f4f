"""Runs a kubeconfig's command for credentials (kubelogin) once, when the provider is configured.

Protocol: client.authentication.k8s.io/v1. The command prints an ExecCredential with a token or certificate. The command
has no time limit, as in client-go (plugin/pkg/client/auth/exec/exec.go, refreshCredsLocked). kubelogin itself gives up
after 60 s.
"""

from __future__ import annotations

import base64
import copy
import json
import os
import subprocess
from typing import Any, Final

from simulator.plugins.kubernetes.kubeconfig import Config, KubeconfigError

_API_VERSION: Final = "client.authentication.k8s.io/v1"


def resolve(config: Config) -> Config:
    """Returns the kubeconfig with printed credentials in place of a command.

    Raises KubeconfigError if the command is missing or fails.
    """
    context = next(item for item in config["contexts"] if item["name"] == config["current-context"])
    resolved = copy.deepcopy(config)
    entry = next((item for item in resolved.get("users") or [] if item["name"] == context["context"].get("user")), None)
    command = (entry or {}).get("user", {}).get("exec")
    if entry is None or command is None:
        return config
    status = _run(command)
    entry["user"] = {name: value for name, value in entry["user"].items() if name != "exec"} | _user(status)
    return resolved


def _run(command: dict[str, Any]) -> dict[str, Any]:
    name, arguments = str(command["command"]), [str(item) for item in command.get("args") or []]
    info = {
        "apiVersion": command.get("apiVersion", _API_VERSION),
        "kind": "ExecCredential",
        "spec": {"interactive": False},
    }
    environment = os.environ | {item["name"]: item["value"] for item in command.get("env") or []}
    environment["KUBERNETES_EXEC_INFO"] = json.dumps(info)
    try:
        done = subprocess.run([name, *arguments], env=environment, stdin=subprocess.DEVNULL, capture_output=True)
    except FileNotFoundError:
        hint = str(command.get("installHint") or f"install {name}, or set cluster.localAccounts").strip()
        raise KubeconfigError(
            f'credentials of the kubeconfig come from "{name}", which is not on PATH: {hint}'
        ) from None
    if done.returncode:
        raise KubeconfigError(
            f'credentials of the kubeconfig come from "{name}", which failed: {done.stderr.decode().strip()}'
        )
    try:
        status: dict[str, Any] = json.loads(done.stdout)["status"]
    except (ValueError, KeyError, TypeError):
        raise KubeconfigError(
            f'credentials of the kubeconfig come from "{name}", which printed no ExecCredential'
        ) from None
    return status


def _user(status: dict[str, Any]) -> dict[str, str]:
    user = {"token": status["token"]} if status.get("token") else {}
    for given, field in (("clientCertificateData", "client-certificate-data"), ("clientKeyData", "client-key-data")):
        if status.get(given):
            user[field] = base64.b64encode(status[given].encode()).decode()
    return user
