"""Credentials of a managed cluster, which depend on Entra and on local accounts.

| cluster                    | user credentials        | admin credentials |
|----------------------------|-------------------------|-------------------|
| no Entra, local accounts   | client certificate      | certificate       |
| Entra, local accounts      | kubelogin (exec plugin) | certificate       |
| Entra, no local accounts   | kubelogin (exec plugin) | 400 BadRequest    |

AKS rejects a cluster with neither Entra nor local accounts. Source: AKS's pages on kubeconfig access and on local
accounts.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import yaml

from simulator.azure.arm_world import World
from simulator.azure.errors import ArmError, bad_request, conflict
from simulator.azure.store import Body, Record
from simulator.azure.tokens import AKS

_CLIENT_APP = "80faf920-1908-4b52-b5ef-a8e7bedfc67a"
"""The id of AKS's application for device code logins, in every tenant (Azure/kubelogin)."""
_FORMATS = ("azure", "exec")
_REFUSED = (
    "Getting static credential is not allowed because this cluster is set to disable local accounts. "
    "Please refer to https://aka.ms/aks/disable-local-accounts"
)


def admin(world: World, cluster: Record) -> Body:
    """Answers `listClusterAdminCredential`. Raises ArmError (400) if local accounts are disabled."""
    _check_there(cluster)
    if no_local_accounts(cluster):
        raise bad_request(_REFUSED)
    return _answer("clusterAdmin", _certificate(world, cluster, "clusterAdmin", "-admin"))


def user(world: World, cluster: Record, query: Mapping[str, str]) -> Body:
    """Answers `listClusterUserCredential`. Raises ArmError (400) for an unknown `format`."""
    _check_there(cluster)
    form = query.get("format")
    if form is not None and form not in _FORMATS:
        message = f"The value of parameter 'format' is invalid: '{form}'. Allowed: {', '.join(_FORMATS)}."
        raise bad_request(message, code="InvalidParameter", target="format")
    if cluster.properties.get("aadProfile", {}).get("managed"):
        return _answer("clusterUser", _kubelogin(world, cluster))
    return _answer("clusterUser", _certificate(world, cluster, "clusterUser", ""))


def no_local_accounts(cluster: Record) -> bool:
    return bool(cluster.properties.get("disableLocalAccounts"))


def _check_there(cluster: Record) -> None:
    if cluster.state in ("Creating", "Deleting"):
        raise conflict(f"The managed cluster '{cluster.id.name}' is in state {cluster.state} and has no credentials.")


def _certificate(world: World, cluster: Record, role: str, suffix: str) -> Body:
    user = _section(world, cluster, "users", "user")
    return _kubeconfig(world, cluster, role, suffix, user)


def _kubelogin(world: World, cluster: Record) -> Body:
    """Uses a device code login, AKS's default. To log in without a browser, users change `--login`."""
    tenant = world.subscription.tenant_id
    options = {
        "environment": "AzurePublicCloud",
        "server-id": AKS,
        "client-id": _CLIENT_APP,
        "tenant-id": tenant,
    }
    return _kubeconfig(world, cluster, "clusterUser", "", {"exec": plugin("devicecode", options)})


def plugin(login: str, options: Mapping[str, str]) -> Body:
    arguments = [part for name, value in options.items() for part in (f"--{name}", value)]
    return {
        "apiVersion": "client.authentication.k8s.io/v1beta1",
        "args": ["get-token", "--login", login, *arguments],
        "command": "kubelogin",
        "env": None,
        "installHint": "kubelogin is not installed which is required to connect to AAD enabled cluster. "
        "To learn more, please go to https://aka.ms/aks/kubelogin",
        "provideClusterInfo": False,
    }


def _kubeconfig(world: World, cluster: Record, role: str, suffix: str, user: Body) -> Body:
    name, login = cluster.id.name, f"{role}_{cluster.id.group}_{cluster.id.name}"
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": _section(world, cluster, "clusters", "cluster")}],
        "contexts": [{"name": name + suffix, "context": {"cluster": name, "user": login}}],
        "current-context": name + suffix,
        "preferences": {},
        "users": [{"name": login, "user": user}],
    }


def _section(world: World, cluster: Record, plural: str, singular: str) -> Body:
    try:
        config: dict[str, Any] = yaml.safe_load(world.backend.admin_kubeconfig(cluster.id.text))
    except KeyError as error:
        message = f"The managed cluster '{cluster.id.name}' is starting."
        raise ArmError(HTTPStatus.SERVICE_UNAVAILABLE, "ServiceUnavailable", message) from error
    section: Body = config[plural][0][singular]
    return section


def _answer(name: str, kubeconfig: Body) -> Body:
    text = yaml.safe_dump(kubeconfig, sort_keys=False)
    return {"kubeconfigs": [{"name": name, "value": base64.b64encode(text.encode()).decode()}]}
