"""A small `az`, not the Azure CLI: the commands that kubelogin calls, and `az aks show`, `start` and `stop`.

The Azure CLI takes 700 MB. Before a login, `az` acts as the deployer. It stores a login in AZURE_CONFIG_DIR, as the
Azure CLI does. Options and messages follow azure-cli (profile/__init__.py, core/_profile.py) and its page "Sign in with
the Azure CLI".
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from simulator.azure import subscription
from simulator.host import files
from simulator.plugins.logins import entra
from simulator.plugins.logins.entra import LoginFailed

_ARM = "SIMULATOR_ARM_ENDPOINT"
_LOGIN = "simulated-login.json"
_VERSION = "api-version=2025-09-01"
_HELP = """This is not the Azure CLI, but the part of it that kubelogin and messages of the simulator need:
login (--identity, --service-principal, or --username and --password), logout, account get-access-token,
aks show, aks start, aks stop. The real one works too: docs/simulator.md#the-real-azure-cli
"""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise LoginFailed(f"{message}\n{_HELP}")


def main(arguments: Sequence[str]) -> int:
    """Runs a command and prints its result as JSON. On failure, prints the error and returns 1."""
    try:
        match list(arguments):
            case ["account", "get-access-token", *options]:
                _show(_access_token(options))
            case ["aks", "start" | "stop" | "show" as action, *options]:
                _cluster(action, options)
            case ["login", *options]:
                _log_in(options)
            case ["logout"]:
                _file().unlink(missing_ok=True)
            case [] | ["-h" | "--help"]:
                sys.stdout.write(_HELP)
            case others:
                _Parser().error(f"'{' '.join(others)}' is not a command of this az.")
    except LoginFailed as error:
        sys.stderr.write(f"ERROR: {error}\n")
        return 1
    return 0


def _log_in(options: Sequence[str]) -> None:
    parser = _Parser(prog="az login")
    for kind in ("--identity", "--service-principal"):
        parser.add_argument(kind, action="store_true")
    for option in ("--client-id", "-u/--username", "-p/--password", "-t/--tenant"):
        parser.add_argument(*option.split("/"), default="")
    arguments = parser.parse_args(options)
    if arguments.identity:
        login = {"identity": arguments.client_id}
    elif not arguments.username or not arguments.password:
        raise LoginFailed("a login with a browser is not possible: set --identity, or --username and --password")
    elif arguments.service_principal:
        if not arguments.tenant:
            raise LoginFailed("usage error: --service-principal --username NAME --password SECRET --tenant TENANT")
        secret = {"client_id": arguments.username, "client_secret": arguments.password}
        login = {"grant_type": "client_credentials", **secret, "tenant": arguments.tenant}
    else:
        login = {"grant_type": "password", "username": arguments.username, "password": arguments.password}
    _token(login, os.environ.get(_ARM, ""))  # a wrong login fails now, not at first use
    _file().parent.mkdir(parents=True, exist_ok=True)
    files.replace(_file(), json.dumps(login))


def _access_token(options: Sequence[str]) -> dict[str, Any]:
    parser = _Parser(prog="az account get-access-token")
    parser.add_argument("-o", "--output", choices=["json"])
    parser.add_argument("--resource", default=os.environ.get(_ARM, ""))
    parser.add_argument("--scope", default="")
    for option in ("-t/--tenant", "-s/--subscription"):
        parser.add_argument(*option.split("/"), default="")
    arguments = parser.parse_args(options)
    login = _logged_in()
    if "identity" in login and arguments.tenant:
        raise LoginFailed("Tenant shouldn't be specified for managed identity account")
    known, server = subscription.load(), arguments.scope.removesuffix("/.default") or arguments.resource
    token, ends = _token(login | ({"tenant": arguments.tenant} if arguments.tenant else {}), server)
    return {
        "accessToken": token,
        "expiresOn": datetime.datetime.fromtimestamp(ends).strftime("%Y-%m-%d %H:%M:%S.%f"),
        "expires_on": int(ends),
        "subscription": known.subscription_id,
        "tenant": known.tenant_id,
        "tokenType": "Bearer",
    }


def _cluster(action: str, options: Sequence[str]) -> None:
    """Runs `az aks <action>`. `--query` (JMESPath) supports only names separated by dots."""
    parser = _Parser(prog=f"az aks {action}")
    if action == "show":
        parser.add_argument("--query", default="")
        parser.add_argument("-o", "--output", choices=["json"])
    for option in ("-g/--resource-group", "-n/--name"):
        parser.add_argument(*option.split("/"), required=True)
    arguments = parser.parse_args(options)
    group = f"/subscriptions/{subscription.load().subscription_id}/resourceGroups/{arguments.resource_group}"
    cluster = f"{group}/providers/Microsoft.ContainerService/managedClusters/{arguments.name}"
    arm = os.environ.get(_ARM, "")
    token = _token(_logged_in(), arm)[0]
    if action != "show":
        entra.post(f"{arm}{cluster}/{action}?{_VERSION}", token)
        return
    found = entra.get(f"{arm}{cluster}?{_VERSION}", token)
    shown: Any = found | found.pop("properties")  # like the Azure CLI's SDK, show properties at the top level
    for name in filter(None, arguments.query.split(".")):
        shown = shown.get(name) if isinstance(shown, dict) else None
    if shown is not None:
        _show(shown)


def _logged_in() -> dict[str, str]:
    found: dict[str, str] = json.loads(_file().read_text()) if _file().exists() else {"identity": ""}
    return found


def _token(login: dict[str, str], server: str) -> tuple[str, float]:
    if "identity" in login:
        return entra.by_identity(server, login["identity"])
    form = {name: value for name, value in login.items() if name != "tenant"}
    return entra.by_form(server, login.get("tenant") or subscription.load().tenant_id, form)


def _show(answer: object) -> None:
    sys.stdout.write(json.dumps(answer, indent=2) + "\n")


def _file() -> Path:
    return Path(os.environ.get("AZURE_CONFIG_DIR") or Path.home() / ".azure") / _LOGIN


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
