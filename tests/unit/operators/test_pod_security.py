"""A real API server refuses in namespaces that pin memory what it refuses at the level baseline, but for IPC_LOCK."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from operators.kueue import admission
from simulator.cluster.controlplane import ControlPlane
from simulator.kube.client import ApiError, KubeClient
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


def context(**fields: Any) -> Object:
    return pod({"securityContext": fields})


def refused(kube: KubeClient, namespace: str, made: Object) -> str:
    """Why; empty where it is taken. Nothing is made."""
    try:
        kube.create({**made, "metadata": {**made["metadata"], "namespace": namespace}}, dry_run=True)
    except ApiError as error:
        return error.message
    return ""


PROBE = {"httpGet": {"port": 80, "host": "10.0.0.1"}}
INIT = {"name": "init", "image": "image", "securityContext": {"privileged": True}}
REFUSED = {
    "privileged": context(privileged=True),
    "an init container": pod(initContainers=[INIT]),
    "capabilities": context(capabilities={"add": ["SYS_ADMIN"]}),
    "all capabilities": context(capabilities={"add": ["ALL"]}),
    "the network": pod(hostNetwork=True),
    "processes": pod(hostPID=True),
    "memory": pod(hostIPC=True),
    "folders": pod(volumes=[{"name": "root", "hostPath": {"path": "/"}}]),
    "ports": pod({"ports": [{"containerPort": 80, "hostPort": 80}]}),
    "a probe of another host": pod({"livenessProbe": PROBE}),
    "a hook of another host": pod({"lifecycle": {"preStop": PROBE}}),
    "seccomp": context(seccompProfile={"type": "Unconfined"}),
    "seccomp of the pod": pod(securityContext={"seccompProfile": {"type": "Unconfined"}}),
    "apparmor": context(appArmorProfile={"type": "Unconfined"}),
    "apparmor's annotation": pod(annotations={"container.apparmor.security.beta.kubernetes.io/main": "unconfined"}),
    "selinux": context(seLinuxOptions={"type": "spc_t"}),
    "selinux' user": context(seLinuxOptions={"user": "system_u"}),
    "sysctls": pod(securityContext={"sysctls": [{"name": "kernel.msgmax", "value": "1"}]}),
    "windows": pod(hostNetwork=True, securityContext={"windowsOptions": {"hostProcess": True}}),
}
TAKEN = {
    "plain": pod(),
    "a usual capability": context(capabilities={"add": ["CHOWN"], "drop": ["ALL"]}),
    "memory of its own": pod(volumes=[{"name": "shm", "emptyDir": {"medium": "Memory"}}]),
    "its own port": pod({"ports": [{"containerPort": 80}], "livenessProbe": {"httpGet": {"port": 80}}}),
    "the runtime's seccomp": context(seccompProfile={"type": "RuntimeDefault"}),
    "a safe sysctl": pod(securityContext={"sysctls": [{"name": "net.ipv4.tcp_syncookies", "value": "1"}]}),
    "a container's selinux": context(seLinuxOptions={"type": "container_t", "level": "s0"}),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_baseline_refuses_is_refused(cluster: KubeClient, what: str) -> None:
    assert "PodSecurity" in refused(cluster, BASELINE, REFUSED[what])
    assert "pods of this team may not" in refused(cluster, PINNING, REFUSED[what])


@pytest.mark.parametrize("what", TAKEN)
def test_what_baseline_takes_is_taken(cluster: KubeClient, what: str) -> None:
    assert refused(cluster, BASELINE, TAKEN[what]) == ""
    assert refused(cluster, PINNING, TAKEN[what]) == ""


def test_it_differs_in_that_memory_may_be_pinned_and_that_all_of_proc_is_refused_in_user_namespaces_too(
    cluster: KubeClient,
) -> None:
    pins = context(capabilities={"add": ["IPC_LOCK"]})
    assert "IPC_LOCK" in refused(cluster, BASELINE, pins)
    assert refused(cluster, PINNING, pins) == ""
    unmasked = pod({"securityContext": {"procMount": "Unmasked"}}, hostUsers=False)
    assert "more of /proc" in refused(cluster, PINNING, unmasked)
