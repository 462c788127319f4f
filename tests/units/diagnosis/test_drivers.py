"""Nodes that do not offer what is asked for: which part of NVIDIA's operators is not up there, and why."""

from __future__ import annotations

import pytest

from diagnosis.cluster import NODE, Kind
from diagnosis.report import platform, report
from k8s.objects import Object
from tests.units.diagnosis import objects as make

NOT_READY = {"name": "state-OFED", "state": "notReady"}


def told(*more: tuple[Kind, Object]) -> list[str]:
    """Of a job of one worker that has no node."""
    cluster = make.cluster(make.volcano_job(), make.worker("train-0"), *more)
    return make.told(report(cluster, "ai", "train"))


def ready(name: str, on: str = "a") -> tuple[Kind, Object]:
    return make.driver_pod(name, on, ready=True)


BARE = make.node("a")
POLICIES = (make.cluster_policy(), make.nic_policy())


def test_operators_that_are_not_there() -> None:
    assert told(BARE)[:2] == [
        "waits: nvidia.com/gpu is not offered, for there is no ClusterPolicy on node a",
        "do: kubectl get clusterpolicies",
    ]


def test_ofed_that_compiles_holds_back_gpus_too() -> None:
    compiling = make.driver_pod("mofed-ubuntu24.04-ds", "a")
    waits = make.driver_pod("nvidia-driver-daemonset", "a", **make.waiting("PodInitializing"))
    found = told(BARE, *POLICIES, *make.operators(), compiling, waits)
    assert found[0] == "waits: DOCA OFED is being installed on node a since 09:30 UTC"
    assert found[1] == "do: kubectl logs -n nvidia-operator mofed-ubuntu24.04-ds-a --all-containers"


def test_a_gpu_driver_that_is_being_installed() -> None:
    installing = make.driver_pod("nvidia-driver-daemonset", "a", **make.waiting("PodInitializing"))
    found = told(BARE, *POLICIES, *make.operators(), ready("mofed-ubuntu24.04-ds"), installing)
    assert found[0] == "waits: the GPU driver is being installed (PodInitializing) on node a since 09:30 UTC"


def test_a_driver_that_fails() -> None:
    back_off = "back-off 5m0s restarting failed container=nvidia-driver-ctr"
    failing = make.driver_pod("nvidia-driver-daemonset", "a", **make.waiting("CrashLoopBackOff", back_off))
    found = told(BARE, *POLICIES, *make.operators(), ready("mofed-ubuntu24.04-ds"), failing)
    assert found[0] == f"waits: the GPU driver does not start (CrashLoopBackOff: {back_off}) on node a"
    assert found[1] == "do: kubectl logs -n nvidia-operator nvidia-driver-daemonset-a --previous"


def test_a_device_plugin_without_the_toleration() -> None:
    there = [ready("mofed-ubuntu24.04-ds"), ready("nvidia-driver-daemonset")]
    found = told(BARE, *POLICIES, *make.operators(gpu_plugin_tolerates=False), *there)
    assert found[0] == (
        "waits: the GPU device plugin does not run: DaemonSet nvidia-device-plugin-daemonset has no toleration for "
        "taint sku=gpu:NoSchedule on node a"
    )


def test_a_node_that_nobody_has_labelled_yet() -> None:
    kind, unlabelled = make.node("a")
    del unlabelled["metadata"]["labels"]["nvidia.com/gpu.deploy.device-plugin"]
    there = [ready("mofed-ubuntu24.04-ds"), ready("nvidia-driver-daemonset")]
    found = told((kind, unlabelled), *POLICIES, *make.operators(), *there)
    assert "the label nvidia.com/gpu.deploy.device-plugin=true is missing" in found[0]


def test_a_device_that_has_failed() -> None:
    there = [
        ready(name) for name in ("mofed-ubuntu24.04-ds", "nvidia-driver-daemonset", "nvidia-device-plugin-daemonset")
    ]
    kind, node = make.node("a", gpu=7, nics=8)
    node["status"]["capacity"] = {"nvidia.com/gpu": "8"}
    found = told((kind, node), *POLICIES, *make.operators(), *there)
    assert found == [
        "waits: 7 nvidia.com/gpu are offered and 8 wanted: a device has failed on node a",
        "do: kubectl describe node a",
    ]


def test_hcas_have_a_plugin_of_their_own() -> None:
    there = [
        ready(name) for name in ("mofed-ubuntu24.04-ds", "nvidia-driver-daemonset", "nvidia-device-plugin-daemonset")
    ]
    starting = make.driver_pod("sriovdp", "a", **make.waiting("ContainerCreating"))
    found = told(make.node("a", gpu=8), *POLICIES, *make.operators(), *there, starting)
    assert found[0] == "waits: the SR-IOV device plugin is starting (ContainerCreating) on node a since 09:30 UTC"


@pytest.mark.parametrize(
    ("policies", "expected"),
    [
        (
            (
                make.cluster_policy(),
                make.nic_policy("notReady", NOT_READY, {"name": "state-multus-cni", "state": "ignore"}),
            ),
            "NicClusterPolicy nic-cluster-policy is notReady: state-OFED notReady",
        ),
        (
            (make.cluster_policy(), make.nic_policy("error", NOT_READY | {"state": "error", "message": "no image"})),
            "NicClusterPolicy nic-cluster-policy is error: state-OFED error: no image",
        ),
        (
            (
                make.cluster_policy("notReady", "ClusterPolicy is not ready, states not ready: [state-driver]"),
                make.nic_policy(),
            ),
            "ClusterPolicy cluster-policy is notReady: ClusterPolicy is not ready, states not ready: [state-driver]",
        ),
        (
            (make.cluster_policy(""), make.nic_policy()),
            "ClusterPolicy cluster-policy is not looked at by its operator yet",
        ),
    ],
)
def test_policies_that_are_not_ready_say_which_state(policies: tuple[tuple[Kind, Object], ...], expected: str) -> None:
    """The texts are those of nicclusterpolicy_types.go (appliedStates) and clusterpolicy_controller.go."""
    compiling = make.driver_pod("mofed-ubuntu24.04-ds", "a")
    assert f"waits: {expected}" in told(BARE, *policies, *make.operators(), compiling)


OLD_OFED = make.daemon_set("mofed", "nic", make.OFED_LABELS, generation="2")


def test_old_pods_of_a_driver_are_named_with_their_node() -> None:
    """Their DaemonSet is OnDelete: after another version they stay, and the policy is notReady for ever."""
    old = make.driver_pod("mofed", "b", ready=True, generation="1")
    new = make.driver_pod("mofed", "a", generation="2")
    found = told(BARE, make.cluster_policy(), make.nic_policy("notReady", NOT_READY), OLD_OFED, old, new)
    assert "waits: pod mofed-b on node b is old: replaced only once deleted (OnDelete)" in found
    assert "do: roll these nodes, as docs/drivers.md shows; their devices serve meanwhile" in found


def test_old_pods_that_are_not_ready_serve_nothing_and_may_be_deleted_at_once() -> None:
    """A node that came just before the template changed, say: its driver waits for what is not wanted any more."""
    old = [make.driver_pod("mofed", name, generation="1") for name in ("a", "b")]
    found = told(BARE, make.cluster_policy(), make.nic_policy("notReady", NOT_READY), OLD_OFED, *old)
    assert found == [
        "waits: DOCA OFED is not up, and its pod is old on node a",
        "do: kubectl delete pod -n nvidia-operator mofed-a",
        "waits: NicClusterPolicy nic-cluster-policy is notReady: state-OFED notReady",
        "do: kubectl describe nicclusterpolicies nic-cluster-policy",
        "waits: pods mofed-a on node a and mofed-b on node b are old and not ready",
        "do: kubectl delete pod -n nvidia-operator mofed-a mofed-b",
    ]


def test_an_old_driver_is_not_to_be_deleted_under_pods_with_devices() -> None:
    old, job = make.driver_pod("mofed", "a", generation="1"), make.worker("other-0", "other", on="a")
    found = told(BARE, make.cluster_policy(), make.nic_policy("notReady", NOT_READY), OLD_OFED, old, job)
    deletions = [text for text in found if "kubectl delete pod" in text]
    assert len(deletions) == 2
    assert all(text.endswith("# once the pods that have devices there have ended") for text in deletions)


def test_pods_that_fail_are_named_with_their_node_and_reason() -> None:
    back_off = "back-off 5m0s restarting failed container=mofed-container"
    failing = [make.driver_pod("mofed", name, **make.waiting("CrashLoopBackOff", back_off)) for name in ("b", "c")]
    ofed = make.daemon_set("mofed", "nic", make.OFED_LABELS)
    found = told(BARE, make.cluster_policy(), make.nic_policy("notReady", NOT_READY), ofed, *failing)
    pods = "pods mofed-b on node b and mofed-c on node c"
    assert f"waits: {pods} are failing: CrashLoopBackOff: {back_off}" in found
    assert "do: kubectl logs -n nvidia-operator mofed-b --previous" in found


def test_the_platform_alone_names_pods_that_only_start_too() -> None:
    starting = make.driver_pod("mofed", "a")
    ofed = make.daemon_set("mofed", "nic", make.OFED_LABELS)
    objects = (make.cluster_policy(), make.nic_policy("notReady", NOT_READY), ofed, starting)
    assert platform(make.cluster(*objects)).lines() == [
        "platform: NotReady",
        "  waits: NicClusterPolicy nic-cluster-policy is notReady: state-OFED notReady",
        "    do: kubectl describe nicclusterpolicies nic-cluster-policy",
        "  waits: pods start on node a since 09:30 UTC, of DaemonSet mofed",
        "    do: kubectl get pods -n nvidia-operator -o wide",
    ]
    assert platform(make.cluster(*POLICIES)).lines() == ["platform: Ready"]


def test_policies_are_no_matter_where_devices_are_offered() -> None:
    other = make.worker("olmo-0", "olmo", on="a")
    assert told(make.node("a", gpu=8, nics=8), make.cluster_policy("notReady", "x"), make.nic_policy(), other) == [
        "waits: nvidia.com/gpu is taken by ai/olmo on node a"
    ]


def test_the_platform_names_nodes_that_do_not_report_and_devices_that_have_failed() -> None:
    kind, silent = make.node("n1", gpu=8)
    message = "Kubelet stopped posting node status."
    silent["status"]["conditions"] = [{"type": "Ready", "status": "Unknown", "message": message}]
    _, broken = make.node("n2", gpu=7)
    broken["status"]["capacity"] = {"cpu": "96", "nvidia.com/gpu": "8"}
    _, whole = make.node("n3", gpu=8)
    whole["status"]["capacity"] = {"cpu": "96", "nvidia.com/gpu": "8"}
    assert platform(make.cluster(*POLICIES, (kind, silent), (kind, broken), (kind, whole))).lines() == [
        "platform: NotReady",
        "  waits: not ready: Kubelet stopped posting node status. on node n1",
        "    do: kubectl describe node n1",
        "  waits: 7 of 8 nvidia.com/gpu are offered: a device has failed on node n2",
        "    do: kubectl describe node n2",
        "        # check it: pulumi up -s <stack> --replace '**:Job::health-check*' (docs/health-check.md)",
    ]


@pytest.mark.parametrize("spec", [{}, {"template": {"spec": {"containers": []}}}])
def test_a_daemon_set_whose_template_has_no_metadata_crashes_nothing(spec: Object) -> None:
    kind, plugin = make.daemon_set("other", "gpu", {})
    old = make.node("a")[1]
    old["metadata"]["labels"]["node.kubernetes.io/instance-type"] = "Standard_ND96isr_H100_v5"
    objects = ((NODE, old), make.cluster_policy(), (kind, plugin | {"spec": spec}))
    assert platform(make.cluster(*objects)).lines()[0] == "platform: NotReady"
