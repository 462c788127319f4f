"""Another manager sets an unset field of an item of an atomic list."""

from __future__ import annotations

from typing import Any

import pytest

from simulator.kube.client import KubeClient
from tests.contract.conformance.conftest import NewStack, Rows

pytestmark = pytest.mark.conformance
SECTION = "Lists"
KIND = ("networking.k8s.io/v1", "NetworkPolicy", "lists")
PROGRAM = """
provider = k8s.Provider("own", kubeconfig=kubeconfig, cluster_identifier="x")
source = {"podSelector": {"matchLabels": {"app": values["app"]}}}
k8s.networking.v1.NetworkPolicy("lists",
    metadata={"namespace": values["namespace"], "name": "lists", "annotations": {"pulumi.com/patchForce": "true"}},
    spec={"podSelector": {}, "ingress": [{"from": [source]}]},
    opts=pulumi.ResourceOptions(provider=provider))
"""


def test_a_field_of_an_item(new_stack: NewStack, space: str, kube: KubeClient, rows: Rows) -> None:
    def item() -> dict[str, Any]:
        (found,) = kube.get(*KIND, space)["spec"]["ingress"]
        return dict(found)

    stack = new_stack()
    stack.program(PROGRAM, namespace=space, app="a")
    assert stack.up().code == 0
    ports = [{"port": 80, "protocol": "TCP"}]
    kube.patch(*KIND, space, {"spec": {"ingress": [{**item(), "ports": ports}]}})
    # provider.go, pruneLiveState: each item, cut to the inputs' shape.
    rows.is_(
        "a field of an item that another manager set, after a refresh",
        "same",
        stack.preview("--refresh").operation("lists"),
    )
    assert stack.pulumi("up", "--yes", "--skip-preview", "--refresh").code == 0
    rows.is_("it stays", ports, item().get("ports"))
    stack.program(PROGRAM, namespace=space, app="b")
    # await.go, patchForce: else a conflict, because `spec.ingress` is an atomic list.
    assert stack.pulumi("up", "--yes", "--skip-preview").code == 0
    rows.is_("a forced update of the item removes it", None, item().get("ports"))
