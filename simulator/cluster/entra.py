"""Entra ID authentication and authorization of a cluster's API server.

The API server checks tokens with the issuer's published keys (structured authentication). As in AKS's guard, the user
name is the token's `upn`, else the object id (kubeguard/guard, getUserInfo in auth/providers/azure/azure.go). Guard
has the object id in the extra field `oid`. Here it is the UID, because extra keys need a domain.
"""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import yaml

from simulator.host import files
from simulator.world.azure_services import Entra

ADMINS = "aks-cluster-admin-binding-aad"
"""The binding's name on AKS (Microsoft's pages and users' listings)."""
_API = "apiserver.config.k8s.io/v1"
_MODES = ("--authorization-mode=Node,RBAC",)


def flags(entra: Entra | None, folder: Path) -> list[str]:
    if entra is None:
        return [*_MODES]
    authentication = _written(folder / "authentication.yaml", _authentication(entra))
    if not entra.guard:
        return [f"--authentication-config={authentication}", *_MODES]
    kubeconfig = _written(folder / "guard.kubeconfig", _kubeconfig(entra))
    authorization = _written(folder / "authorization.yaml", _authorization(kubeconfig))
    return [f"--authentication-config={authentication}", f"--authorization-config={authorization}"]


def admins(groups: list[str]) -> dict[str, Any]:
    api = "rbac.authorization.k8s.io"
    return {
        "apiVersion": f"{api}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": ADMINS, "labels": {"kubernetes.io/cluster-service": "true"}},
        "roleRef": {"apiGroup": api, "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"apiGroup": api, "kind": "Group", "name": group} for group in groups],
    }


def _authentication(entra: Entra) -> dict[str, Any]:
    issuer = {"url": entra.issuer, "discoveryURL": entra.discovery, "audiences": [entra.audience]}
    claims = {
        "username": {"expression": "has(claims.upn) ? claims.upn : claims.oid"},
        "groups": {"expression": "has(claims.groups) ? claims.groups : []"},
        "uid": {"claim": "oid"},
    }
    jwt = {"issuer": issuer | {"certificateAuthority": entra.ca}, "claimMappings": claims}
    return {"apiVersion": _API, "kind": "AuthenticationConfiguration", "jwt": [jwt]}


def _authorization(kubeconfig: Path) -> dict[str, Any]:
    """Guard is a webhook without a cache. It does not authorize system accounts."""
    webhook = {
        "timeout": "10s",
        "failurePolicy": "Deny",
        "cacheAuthorizedRequests": False,
        "cacheUnauthorizedRequests": False,
        "subjectAccessReviewVersion": "v1",
        "matchConditionSubjectAccessReviewVersion": "v1",
        "matchConditions": [{"expression": "!request.user.startsWith('system:')"}],
        "connectionInfo": {"type": "KubeConfigFile", "kubeConfigFile": str(kubeconfig)},
    }
    own = [{"type": mode, "name": mode.lower()} for mode in ("Node", "RBAC")]
    guard = {"type": "Webhook", "name": "guard", "webhook": webhook}
    return {"apiVersion": _API, "kind": "AuthorizationConfiguration", "authorizers": [*own, guard]}


def _kubeconfig(entra: Entra) -> dict[str, Any]:
    name = "guard"
    authority = base64.b64encode(entra.ca.encode()).decode()
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": {"server": entra.guard, "certificate-authority-data": authority}}],
        "users": [{"name": name, "user": {"token": entra.token}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "current-context": name,
    }


def _written(file: Path, content: dict[str, Any]) -> Path:
    files.replace(file, yaml.safe_dump(content, sort_keys=False))
    return file
