"""AKS's checks of a pool's labels and taints.

Syntax: https://github.com/kubernetes/apimachinery (pkg/api/validate/content/kube.go and dns.go). AKS checks taints
since its release of 2020-10-26 (https://github.com/Azure/AKS/blob/master/CHANGELOG.md).
"""

from __future__ import annotations

import re

from config.data.scheduling import INSTANCE_TYPE, SPOT_LABEL
from simulator.azure.errors import ArmError, bad_request
from simulator.azure.store import Body

_NAME = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_DNS_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = re.compile(rf"{_DNS_LABEL}(\.{_DNS_LABEL})*")
_LONGEST_NAME, _LONGEST_PREFIX = 63, 253
_AKS, _KUBERNETES = "kubernetes.azure.com", ("kubernetes.io", "k8s.io")
_KUBELET = ("kubelet.kubernetes.io", "node.kubernetes.io")
"""Kubernetes namespaces of labels that a kubelet can set on its node."""
_SYSTEM_TAINTS = (  # https://github.com/Azure/AKS/issues/2578
    "Operation failed due to insufficient nodes for system pod scheduling. Placing custom taints on system pool is not "
    "supported(except 'CriticalAddonsOnly' taint or taint effect is 'PreferNoSchedule'). Please refer to "
    "https://aka.ms/aks/system-taints for detail"
)


def is_key(text: str) -> bool:
    prefix, slash, name = text.rpartition("/")
    is_prefix = len(prefix) <= _LONGEST_PREFIX and _SUBDOMAIN.fullmatch(prefix) is not None
    return _is_name(name) and (is_prefix or not slash)


def is_value(text: str) -> bool:
    return not text or _is_name(text)


def _is_name(text: str) -> bool:
    return len(text) <= _LONGEST_NAME and _NAME.fullmatch(text) is not None


def check(properties: Body) -> None:
    """Raises ArmError for the first invalid label or taint."""
    is_spot = properties.get("scaleSetPriority") == "Spot"
    for key, value in properties.get("nodeLabels", {}).items():
        if not (is_key(key) and is_value(value)):
            raise _wrong_syntax(key, value)
        if not (is_spot and key == SPOT_LABEL):
            _check_reserved(key, value)
    taints: list[str] = properties.get("nodeTaints", [])
    _check_taints(taints)
    kept = all(taint.startswith("CriticalAddonsOnly=") or taint.endswith(":PreferNoSchedule") for taint in taints)
    if properties.get("mode") == "System" and not (is_spot or kept):
        raise bad_request(_SYSTEM_TAINTS, code="SystemPoolHasRestrictedTaint", target="properties.nodeTaints")


def _wrong_syntax(key: str, value: str) -> ArmError:
    """Error text: https://github.com/Azure/AKS/issues/1538."""
    message = (
        f"Node label '{key}: {value}' does not meet syntax and character specifications. Please see "
        "https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/ for more details."
    )
    return bad_request(message, target="properties.nodeLabels")


def _check_reserved(key: str, value: str) -> None:
    """Error texts: ams0/aks-nvme-ssd-provisioner#5, Azure/AKS#4613. The text for the VM size's label is a guess."""
    namespace = key.rpartition("/")[0]
    if namespace == _AKS:
        message = f"Invalid node label key {key}. The '{_AKS}' prefix is preserved by aks system labels"
        raise bad_request(message, target="properties.nodeLabels")
    if _is_below(namespace, _KUBERNETES) and (key == INSTANCE_TYPE or not _is_below(namespace, _KUBELET)):
        message = (
            "For Kubernetes version greater than or equal to 1.16, node label keys in the 'kubernetes.io' or 'k8s.io' "
            f"namespace must begin with an allowed prefix ({', '.join(_KUBELET)}). For more information, please check "
            "https://aka.ms/aks-node-labels-116."
        )
        raise bad_request(message, target=f"{key}={value}")


def _is_below(namespace: str, domains: tuple[str, ...]) -> bool:
    return any(f".{namespace}".endswith(f".{domain}") for domain in domains)


def _check_taints(taints: list[str]) -> None:
    seen: set[tuple[str, str]] = set()
    for taint in taints:
        pair, _, effect = taint.rpartition(":")
        key, _, value = pair.partition("=")
        if not (is_key(key) and is_value(value)) or (key, effect) in seen:
            message = f"Node taint '{taint}' is invalid: key and value as of labels, each key and effect once."
            raise bad_request(message, code="InvalidParameter", target="properties.nodeTaints")
        seen.add((key, effect))
