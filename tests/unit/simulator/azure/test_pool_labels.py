from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from config.rules.labels import label_problems, taint_problems
from simulator.azure.errors import ArmError
from simulator.azure.types.agent_pool import labels

TEXTS = st.text("aZ0-._/", max_size=9) | st.text(max_size=4)
RESERVED = "For Kubernetes version greater than or equal to 1.16, node label keys in the 'kubernetes.io' or 'k8s.io'"


def accepts(key: str, value: str) -> bool:
    """The program's own rule."""
    return not list(label_problems({key: value}, ("labels",)))


@pytest.mark.parametrize(
    ("key", "is_key"),
    [
        # https://github.com/kubernetes/apimachinery, pkg/api/validate/content/kube_test.go
        ("1234", True),
        ("1.2.3.4/5678", True),
        ("now-with.dashes-and.dots/simple", True),
        ("example.com/Uppercase_Is_OK_123", True),
        ("a" * 63, True),
        (f"{'a' * 253}/{'b' * 63}", True),
        ("a" * 64, False),
        (f"{'a' * 254}/abc", False),
        ("Example.com/abc", False),
        ("example_com/abc", False),
        ("example.com/", False),
        ("/simple", False),
        ("only/one/slash", False),
        ("cantendwithadash-", False),
        # The parts of a subdomain are DNS labels (pkg/api/validate/content/dns.go)
        ("a..b/c", False),
        ("a-.b/c", False),
        ("a.-b/c", False),
        ("a\n", False),
        ("", False),
    ],
)
def test_accepts_the_label_keys_of_kubernetes(key: str, *, is_key: bool) -> None:
    assert (labels.is_key(key), accepts(key, "")) == (is_key, is_key)


@given(TEXTS)
def test_the_program_has_the_same_syntax_of_labels(text: str) -> None:
    assert accepts(text, "") == labels.is_key(text)
    assert accepts("app", text) == labels.is_value(text)


@pytest.mark.parametrize(
    ("key", "refusal"),
    [
        ("app", ""),
        ("agentpool.example.com/x", ""),
        ("node.kubernetes.io/lifecycle", ""),  # https://github.com/Azure/AKS/issues/1937
        ("x.kubelet.kubernetes.io/y", ""),
        # https://github.com/ams0/aks-nvme-ssd-provisioner/issues/5
        ("kubernetes.azure.com/aks-local-ssd", "Invalid node label key kubernetes.azure.com/aks-local-ssd. The 'kube"),
        ("node-restriction.kubernetes.io/mvis", RESERVED),  # https://github.com/Azure/AKS/issues/2866
        ("node-role.kubernetes.io/control-plane", RESERVED),  # https://github.com/Azure/AKS/issues/4613
        ("kubernetes.io/arch", RESERVED),
        ("x.k8s.io/y", RESERVED),
        ("node.kubernetes.io/instance-type", RESERVED),
    ],
)
def test_rejects_reserved_names(key: str, refusal: str) -> None:
    """The program rejects more: all namespaces of Kubernetes and AKS, as AKS's page on labels advises."""
    assert refused({"nodeLabels": {key: "value"}}).startswith(refusal)
    assert bool(refused({"nodeLabels": {key: "value"}})) == bool(refusal)
    if refusal:
        assert list(label_problems({key: "value"}, ("pools", "gpu", "labels")))


def test_accepts_the_spot_label_of_spot_pools() -> None:
    label = {"kubernetes.azure.com/scalesetpriority": "spot"}
    assert refused({"nodeLabels": label})
    assert not refused({"nodeLabels": label, "scaleSetPriority": "Spot"})


@given(st.lists(st.text("a=:-/.", max_size=4).map(lambda pair: f"{pair}:NoSchedule"), max_size=2))
def test_accepts_all_taints_that_the_program_accepts(taints: list[str]) -> None:
    if not list(taint_problems(taints, ("pools", "gpu", "taints"))):
        assert not refused({"nodeTaints": taints})


def refused(properties: dict[str, object]) -> str:
    try:
        labels.check(properties)
    except ArmError as error:
        return error.message
    return ""
