"""Namespaces that pin memory have level baseline plus IPC_LOCK on a real API server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from operators.kueue import admission
from simulator.cluster.controlplane import ControlPlane
from simulator.kube.client import ApiError, KubeClient
from tests.support.case_files import read
from tests.support.waiting import eventually
from tests.unit.operators.policy_objects import Object, policy_objects

pytestmark = pytest.mark.simulator
BASELINE, PINNING = "baseline", "pinning"


@pytest.fixture(scope="module")
def cluster(plane: ControlPlane) -> Iterator[KubeClient]:
    with plane.client() as kube:
        for each in _objects():
            kube.create(each)
        spaces = (BASELINE, PINNING)
        eventually(lambda: all(kube.list("v1", "ServiceAccount", name) for name in spaces), "pods have accounts")
        eventually(lambda: refused(kube, PINNING, pod(hostNetwork=True)), "the policy acts")
        yield kube


def _objects() -> Iterator[Object]:
    levels = {BASELINE: {"enforce": "baseline"}, PINNING: {"enforce": "privileged"}}
    for name, found in levels.items():
        labels = {f"pod-security.kubernetes.io/{key}": value for key, value in found.items()}
        labels |= admission.SECURITY_LABELS if name == PINNING else {}
        yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}
    yield from policy_objects(admission.SECURITY, admission.security_policy(), admission.binding(admission.SECURITY))


def pod(container: Object | None = None, annotations: Object | None = None, **spec: Any) -> Object:
    main = {"name": "main", "image": "image", **(container or {})}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "pod", "annotations": annotations or {}},
        "spec": {"containers": [main], **spec},
    }


def refused(kube: KubeClient, namespace: str, made: Object) -> str:
    """Creates nothing."""
    try:
        kube.create({**made, "metadata": {**made["metadata"], "namespace": namespace}}, dry_run=True)
    except ApiError as error:
        return error.message
    return ""


CASES = read(__file__, "pod_security")


@pytest.mark.parametrize("case", CASES["refused"].values(), ids=CASES["refused"])
def test_rejects_pods_that_baseline_rejects(cluster: KubeClient, case: Object) -> None:
    assert "PodSecurity" in refused(cluster, BASELINE, pod(**case))
    assert "pods of this team may " in refused(cluster, PINNING, pod(**case))


@pytest.mark.parametrize("case", CASES["taken"].values(), ids=CASES["taken"])
def test_accepts_pods_that_baseline_accepts(cluster: KubeClient, case: Object) -> None:
    assert refused(cluster, BASELINE, pod(**case)) == ""
    assert refused(cluster, PINNING, pod(**case)) == ""


def test_accepts_ipc_lock_and_rejects_an_unmasked_proc(
    cluster: KubeClient,
) -> None:
    pins = pod({"securityContext": {"capabilities": {"add": ["IPC_LOCK"]}}})
    assert "IPC_LOCK" in refused(cluster, BASELINE, pins)
    assert refused(cluster, PINNING, pins) == ""
    unmasked = pod({"securityContext": {"procMount": "Unmasked"}}, hostUsers=False)
    assert "may not unmask /proc" in refused(cluster, PINNING, unmasked)
