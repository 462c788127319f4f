"""A real API server lets a check's pod change its own node's taint and annotations, and nothing else of any node."""

from __future__ import annotations

from collections.abc import Callable, Iterator

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
    """As a pod on node `own` speaks with the API server."""
    admin = plane.client()
    for each in _objects():
        admin.create(each)
    found = _as(plane, _token(admin, HEALTH_ACCOUNT))
    eventually(lambda: "no other" in refused(found, OTHER, annotated("aznhc-results", "x")), "the policy acts")
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
    """As a kubelet asks for a pod's; a person may ask for one that is bound to no pod."""
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
    """Why a merge patch of a node is refused; empty where it is taken.

    Taints that Kubernetes has given the node, which no kubelet looks after, stay beside those of the patch; where it
    gives it another one meanwhile, the patch is made anew.
    """
    before = None
    said = ""
    while before != (before := _of_kubernetes(kube, name)):
        own = body.get("spec", {}).get("taints")
        patch = {"spec": {"taints": [*before, *own]}} if own else body
        try:
            kube.patch("v1", "Node", name, None, patch)
        except ApiError as error:
            said = error.message
        else:
            return ""
    return said


def _of_kubernetes(kube: KubeClient, name: str) -> list[Object]:
    taints = kube.get("v1", "Node", name)["spec"].get("taints", [])
    return [taint for taint in taints if taint["key"].startswith("node.kubernetes.io/")]


ALLOWED: dict[str, Object] = {
    "what was found": annotated("aznhc-results", "VERDICT: PASS"),
    "the taint": {"spec": {"taints": [SKU, FAILED]}},
    "the taint, at once": {"spec": {"taints": [SKU, {**FAILED, "effect": "NoExecute"}]}},
    "no taint any more": {"spec": {"taints": [SKU]}},
    "the taint, before others": {"spec": {"taints": [FAILED, SKU]}},
}
REFUSED: dict[str, Object] = {
    "an annotation of others": annotated("mine", "2"),
    "an annotation of others, away": annotated("mine", None),
    "a new annotation": annotated("other", "1"),
    "a label": {"metadata": {"labels": {"ai-on-aks/gpu": "true"}}},
    "a taint of others": {"spec": {"taints": []}},
    "another taint": {"spec": {"taints": [SKU, {**FAILED, "key": "other"}]}},
    "to cordon": {"spec": {"unschedulable": True}},
    "a finalizer": {"metadata": {"finalizers": ["example.com/keep"]}},
}


@pytest.mark.parametrize("what", ALLOWED)
def test_of_its_own_node_it_may_tell(check: KubeClient, what: str) -> None:
    assert refused(check, OWN, ALLOWED[what]) == ""


@pytest.mark.parametrize("what", REFUSED)
def test_and_change_nothing_else(check: KubeClient, what: str) -> None:
    assert "a check may change the taint aznhc" in refused(check, OWN, REFUSED[what])


@pytest.mark.parametrize("what", ALLOWED)
def test_of_another_node_it_may_not_even_tell(check: KubeClient, what: str) -> None:
    said = refused(check, OTHER, ALLOWED[what] if what != "no taint any more" else {"spec": {"taints": [SKU, FAILED]}})
    assert "a check may change the node that it runs on, and no other: its pod is on own" in said


def test_a_token_of_no_pod_is_of_no_node(plane: ControlPlane, check: KubeClient) -> None:
    admin = plane.client()
    loose = _as(plane, _token(admin, HEALTH_ACCOUNT, bound=False))
    assert "its pod is on none that its token names" in refused(loose, OWN, ALLOWED["the taint"])
    loose.close()
    admin.close()


def test_who_only_says_to_be_the_account_is_on_no_node(plane: ControlPlane, check: KubeClient) -> None:
    config = yaml.safe_load(plane.kubeconfig())
    config["users"][0]["user"]["as"] = f"system:serviceaccount:default:{HEALTH_ACCOUNT}"
    with KubeClient.from_kubeconfig(config) as impersonated:
        assert "its pod is on none that its token names" in refused(impersonated, OWN, ALLOWED["the taint"])


def test_without_the_right_to_patch_it_is_rbac_that_refuses(plane: ControlPlane, check: KubeClient) -> None:
    admin = plane.client()
    less: Callable[[list[str]], Object] = lambda verbs: {"rules": [{**RULES[0], "verbs": verbs}]}  # noqa: E731
    admin.patch("rbac.authorization.k8s.io/v1", "ClusterRole", HEALTH_ROLE, None, less(["get"]))
    eventually(lambda: 'cannot patch resource "nodes"' in refused(check, OWN, ALLOWED["the taint"]), "RBAC acts")
    admin.patch("rbac.authorization.k8s.io/v1", "ClusterRole", HEALTH_ROLE, None, less(["get", "patch"]))
    eventually(lambda: refused(check, OWN, ALLOWED["the taint"]) == "", "RBAC acts")
    admin.close()


def test_others_who_may_patch_nodes_are_not_its_business(plane: ControlPlane, check: KubeClient) -> None:
    admin = plane.client()
    labeler = _as(plane, _token(admin, "labeler"))
    assert refused(labeler, OTHER, REFUSED["a label"]) == ""
    labeler.close()
    admin.close()
