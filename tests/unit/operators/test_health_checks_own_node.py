from __future__ import annotations

from collections.abc import Iterator

import pytest
import yaml

from config.data.scheduling import HEALTH_ACCOUNT, HEALTH_ROLE
from operators._lib.rights import policy_binding
from operators.node_health import POLICY, RULES, policy_spec
from simulator.cluster.controlplane import ControlPlane
from simulator.kube.client import ApiError, KubeClient
from tests.support.waiting import eventually
from tests.unit.operators.policy_objects import Object, policy_objects

pytestmark = pytest.mark.simulator
OWN, OTHER = "own", "other"
SKU = {"key": "sku", "value": "gpu", "effect": "NoSchedule"}
FAILED = {"key": "aznhc", "value": "failed", "effect": "NoSchedule"}
TOKEN = "authentication.k8s.io/v1"


@pytest.fixture(scope="module")
def check(plane: ControlPlane) -> Iterator[KubeClient]:
    admin = plane.client()
    for each in _objects():
        admin.create(each)
    found = _as(plane, _token(admin, HEALTH_ACCOUNT))
    eventually(
        lambda: "may only change the node" in refused(found, OTHER, annotated("aznhc-results", "x")), "the policy acts"
    )
    yield found
    found.close()
    admin.close()


def _objects() -> Iterator[Object]:
    for name in (OWN, OTHER):
        labels = {"kubernetes.io/hostname": name}
        metadata = {"name": name, "labels": labels, "annotations": {"mine": "1"}}
        yield {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": {"taints": [SKU]}}
    account = {"name": HEALTH_ACCOUNT, "namespace": "default"}
    for name in (HEALTH_ACCOUNT, "labeler"):
        yield {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {**account, "name": name}}
        yield pod(name)
    rbac = "rbac.authorization.k8s.io"
    yield {"apiVersion": f"{rbac}/v1", "kind": "ClusterRole", "metadata": {"name": HEALTH_ROLE}, "rules": RULES}
    yield {
        "apiVersion": f"{rbac}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": HEALTH_ROLE},
        "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": HEALTH_ROLE},
        "subjects": [
            {"kind": "ServiceAccount", "name": name, "namespace": "default"} for name in (HEALTH_ACCOUNT, "labeler")
        ],
    }
    yield from policy_objects(POLICY, policy_spec(), policy_binding(POLICY))


def pod(account: str) -> Object:
    container = {"name": "main", "image": "image"}
    spec = {"nodeName": OWN, "serviceAccountName": account, "containers": [container]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": account, "namespace": "default"}, "spec": spec}


def _token(admin: KubeClient, account: str, *, bound: bool = True) -> str:
    """Returns a kubelet's token for the account's pod, or one without a pod."""
    uid = admin.get("v1", "Pod", account, "default")["metadata"]["uid"]
    reference = {"apiVersion": "v1", "kind": "Pod", "name": account, "uid": uid}
    spec = {"boundObjectRef": reference} if bound else {}
    path = f"/api/v1/namespaces/default/serviceaccounts/{account}/token"
    answer = admin.raw("POST", path, json={"apiVersion": TOKEN, "kind": "TokenRequest", "spec": spec})
    return str(answer["status"]["token"])


def _as(plane: ControlPlane, token: str) -> KubeClient:
    return KubeClient(plane.server, plane.tls, token)


def annotated(name: str, value: str | None) -> Object:
    return {"metadata": {"annotations": {name: value}}}


def refused(kube: KubeClient, name: str, body: Object) -> str:
    """Keeps Kubernetes' taints of a node without a kubelet, and retries if it adds another."""
    before = None
    message = ""
    while before != (before := _of_kubernetes(kube, name)):
        own = body.get("spec", {}).get("taints")
        patch = {"spec": {"taints": [*before, *own]}} if own else body
        try:
            kube.patch("v1", "Node", name, None, patch)
        except ApiError as error:
            message = error.message
        else:
            return ""
    return message


def _of_kubernetes(kube: KubeClient, name: str) -> list[Object]:
    taints = kube.get("v1", "Node", name)["spec"].get("taints", [])
    return [taint for taint in taints if taint["key"].startswith("node.kubernetes.io/")]


ALLOWED: dict[str, Object] = {
    "the results": annotated("aznhc-results", "VERDICT: PASS"),
    "the taint": {"spec": {"taints": [SKU, FAILED]}},
    "the taint with NoExecute": {"spec": {"taints": [SKU, {**FAILED, "effect": "NoExecute"}]}},
    "no taint": {"spec": {"taints": [SKU]}},
    "the taint, before others": {"spec": {"taints": [FAILED, SKU]}},
}
REFUSED: dict[str, Object] = {
    "an annotation of others": annotated("mine", "2"),
    "removing an annotation of others": annotated("mine", None),
    "a new annotation": annotated("other", "1"),
    "a label": {"metadata": {"labels": {"ai-on-aks/gpu": "true"}}},
    "a taint of others": {"spec": {"taints": []}},
    "another taint": {"spec": {"taints": [SKU, {**FAILED, "key": "other"}]}},
    "cordoning": {"spec": {"unschedulable": True}},
    "a finalizer": {"metadata": {"finalizers": ["example.com/keep"]}},
}


@pytest.mark.parametrize("what", ALLOWED)
def test_accepts_changes_of_its_own_node(check: KubeClient, what: str) -> None:
    assert refused(check, OWN, ALLOWED[what]) == ""


@pytest.mark.parametrize("what", REFUSED)
def test_rejects_other_changes_of_its_own_node(check: KubeClient, what: str) -> None:
    assert "a check may only change its node's taint aznhc" in refused(check, OWN, REFUSED[what])


@pytest.mark.parametrize("what", ALLOWED)
def test_rejects_changes_of_another_node(check: KubeClient, what: str) -> None:
    message = refused(check, OTHER, ALLOWED[what] if what != "no taint" else {"spec": {"taints": [SKU, FAILED]}})
    assert "a check may only change the node that it runs on, which is own" in message


def test_rejects_a_token_without_a_pod(plane: ControlPlane, check: KubeClient) -> None:
    admin = plane.client()
    loose = _as(plane, _token(admin, HEALTH_ACCOUNT, bound=False))
    assert "its token names no node" in refused(loose, OWN, ALLOWED["the taint"])
    loose.close()
    admin.close()


def test_rejects_an_impersonated_account(plane: ControlPlane, check: KubeClient) -> None:
    config = yaml.safe_load(plane.kubeconfig())
    config["users"][0]["user"]["as"] = f"system:serviceaccount:default:{HEALTH_ACCOUNT}"
    with KubeClient.from_kubeconfig(config) as impersonated:
        assert "its token names no node" in refused(impersonated, OWN, ALLOWED["the taint"])


def test_does_not_apply_to_other_accounts(plane: ControlPlane, check: KubeClient) -> None:
    admin = plane.client()
    labeler = _as(plane, _token(admin, "labeler"))
    assert refused(labeler, OTHER, REFUSED["a label"]) == ""
    labeler.close()
    admin.close()
