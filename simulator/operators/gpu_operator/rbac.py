"""Builds service accounts of the operands, and the RBAC rules that the emulation uses (gpu-operator's assets)."""

from __future__ import annotations

from k8s.objects import Object

READ = ["get", "list", "watch"]

CLUSTER_RULES: dict[str, list[Object]] = {
    "nvidia-driver": [
        {"apiGroups": [""], "resources": ["nodes"], "verbs": [*READ, "patch", "update"]},
        {"apiGroups": [""], "resources": ["pods"], "verbs": READ},
        {"apiGroups": [""], "resources": ["pods/eviction"], "verbs": ["create"]},
        {"apiGroups": ["apps"], "resources": ["daemonsets"], "verbs": ["get"]},
    ],
    "nvidia-mig-manager": [{"apiGroups": [""], "resources": ["nodes"], "verbs": [*READ, "patch", "update"]}],
    "nvidia-device-plugin": [{"apiGroups": [""], "resources": ["nodes"], "verbs": READ}],
    "nvidia-gpu-feature-discovery": [{"apiGroups": [""], "resources": ["nodes"], "verbs": READ}],
}
RULES: dict[str, list[Object]] = {
    "nvidia-gpu-feature-discovery": [
        {"apiGroups": ["nfd.k8s-sigs.io"], "resources": ["nodefeatures"], "verbs": [*READ, "create", "update"]},
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]},
    ],
}


def objects(account: str, namespace: str) -> list[Object]:
    result = [{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": account, "namespace": namespace}}]
    if rules := CLUSTER_RULES.get(account):
        result += _role("Cluster", account, namespace, rules)
    if rules := RULES.get(account):
        result += _role("", account, namespace, rules)
    return result


def _role(scope: str, account: str, namespace: str, rules: list[Object]) -> list[Object]:
    metadata = {"name": account} | ({} if scope else {"namespace": namespace})
    api = "rbac.authorization.k8s.io/v1"
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": f"{scope}Role", "name": account}
    subject = {"kind": "ServiceAccount", "name": account, "namespace": namespace}
    return [
        {"apiVersion": api, "kind": f"{scope}Role", "metadata": dict(metadata), "rules": rules},
        {
            "apiVersion": api,
            "kind": f"{scope}RoleBinding",
            "metadata": dict(metadata),
            "roleRef": reference,
            "subjects": [subject],
        },
    ]
