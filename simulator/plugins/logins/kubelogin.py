"""Simulated kubelogin: `get-token` with the logins that the program knows, and the real one's options and refusals.

Source: Azure/kubelogin (pkg/internal/token/options.go, provider.go, msicredential.go, clientsecretcredential.go,
workloadidentitycredential.go; pkg/internal/env/variables.go). Variables come before options there, in that order.
`azurecli` runs `az`, as there.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from simulator.plugins.logins import entra
from simulator.plugins.logins.entra import LoginFailed

_API = "client.authentication.k8s.io/v1beta1"
_VARIABLES = {
    "login": ("AAD_LOGIN_METHOD",),
    "client_id": ("AAD_SERVICE_PRINCIPAL_CLIENT_ID", "AZURE_CLIENT_ID"),
    "client_secret": ("AAD_SERVICE_PRINCIPAL_CLIENT_SECRET", "AZURE_CLIENT_SECRET"),
    "tenant_id": ("AZURE_TENANT_ID",),
    "federated_token_file": ("AZURE_FEDERATED_TOKEN_FILE",),
}
"""By option, of which the last that is set counts."""
_ASSERTION = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise LoginFailed(message)


def main(arguments: Sequence[str]) -> int:
    """Prints an ExecCredential; else says why there is none, and returns 1."""
    try:
        asked = _asked(arguments)
        token, ends = _LOGINS[asked.login](asked)
    except LoginFailed as error:
        sys.stderr.write(f"Error: {error}\n")
        return 1
    expiry = datetime.datetime.fromtimestamp(int(ends), datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    version = json.loads(os.environ.get("KUBERNETES_EXEC_INFO") or "{}").get("apiVersion") or _API
    status = {"expirationTimestamp": expiry, "token": token}
    sys.stdout.write(json.dumps({"kind": "ExecCredential", "apiVersion": version, "spec": {}, "status": status}) + "\n")
    return 0


def _asked(arguments: Sequence[str]) -> argparse.Namespace:
    """Options, and what the environment has in their place."""
    parser = _Parser(prog="kubelogin", add_help=False)
    parser.add_argument("command", choices=["get-token"])
    parser.add_argument("-l", "--login", default="devicecode")
    parser.add_argument("-e", "--environment")
    parser.add_argument("-t", "--tenant-id", default="")
    for option in ("server-id", "client-id", "client-secret", "federated-token-file"):
        parser.add_argument(f"--{option}", default="")
    asked = parser.parse_args(arguments)
    for option, names in _VARIABLES.items():
        for name in names:
            setattr(asked, option, os.environ.get(name, getattr(asked, option)))
    if asked.login not in _LOGINS:
        raise LoginFailed(f"the simulator's kubelogin knows no login '{asked.login}', only {', '.join(_LOGINS)}")
    if not asked.server_id:
        raise LoginFailed("server-id is required")
    return asked


def _azurecli(asked: argparse.Namespace) -> tuple[str, float]:
    command = ["az", "account", "get-access-token", "-o", "json", "--resource", asked.server_id]
    tenant = ["--tenant", asked.tenant_id] if asked.tenant_id else []
    try:
        done = subprocess.run([*command, *tenant], capture_output=True, text=True)
    except FileNotFoundError:
        raise LoginFailed("failed to get token: AzureCLICredential: Azure CLI not found on path") from None
    if done.returncode:
        raise LoginFailed(f"failed to get token: AzureCLICredential: {done.stderr.strip()}")
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer["accessToken"], answer["expires_on"]


def _msi(asked: argparse.Namespace) -> tuple[str, float]:
    return _told(lambda: entra.by_identity(asked.server_id, asked.client_id), "ManagedIdentityCredential")


def _spn(asked: argparse.Namespace) -> tuple[str, float]:
    _require(asked, "client ID", "tenant ID", "client secret")
    form = {"grant_type": "client_credentials", "client_id": asked.client_id, "client_secret": asked.client_secret}
    return _told(lambda: entra.by_form(asked.server_id, asked.tenant_id, form), "ClientSecretCredential")


def _workloadidentity(asked: argparse.Namespace) -> tuple[str, float]:
    _require(asked, "client ID", "tenant ID", "federated token file")
    try:
        assertion = Path(asked.federated_token_file).read_text()
    except OSError as error:
        raise LoginFailed(f"failed to get token: WorkloadIdentityCredential: {error}") from None
    form = {
        "grant_type": "client_credentials",
        "client_id": asked.client_id,
        "client_assertion_type": _ASSERTION,
        "client_assertion": assertion,
    }
    return _told(lambda: entra.by_form(asked.server_id, asked.tenant_id, form), "WorkloadIdentityCredential")


def _require(asked: argparse.Namespace, *names: str) -> None:
    for name in names:
        if not getattr(asked, name.lower().replace(" ", "_")):
            raise LoginFailed(f"failed to create azidentity credential: {name} cannot be empty")


def _told(ask: Callable[[], tuple[str, float]], credential: str) -> tuple[str, float]:
    try:
        return ask()
    except LoginFailed as error:
        raise LoginFailed(f"failed to get token: {credential} authentication failed. {error}") from None


_LOGINS = {"azurecli": _azurecli, "workloadidentity": _workloadidentity, "spn": _spn, "msi": _msi}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
