from __future__ import annotations

import pytest

from k8s.objects import Object
from simulator.kubelet.events import EventRecorder
from simulator.kubelet.kwok_pods import KwokPods
from simulator.kubelet.pods import PodCatalogue
from simulator.kubelet.programs import Gate, ImageProgram
from simulator.kubelet.pulls import ImagePulls
from simulator.sandbox import sandbox
from tests.unit.simulator.kubelet.cluster import Cluster
from tests.unit.simulator.kubelet.pods import context, make, node_root

NODE: Object = {"status": {"addresses": [{"type": "InternalIP", "address": "10.224.0.4"}]}}
IMAGE = "dev.azurecr.io/olmo:1"


def kwok_pods(cluster: Cluster, gate: Gate | None = None) -> KwokPods:
    kube = cluster.kube.as_client()
    catalogue = PodCatalogue([ImageProgram("olmo", gate=gate)], lambda image: None)
    pulls = ImagePulls(lambda image: cluster.azure.may_pull("", image))
    return KwokPods(
        kube, catalogue, pulls, EventRecorder(kube), lambda pod, container, node: context(cluster, pod, container)
    )


def live(cluster: Cluster) -> Object:
    pod = cluster.kube.find("v1", "Pod", "train-0", "ai")
    assert pod is not None
    return pod


def is_handed_over(cluster: Cluster) -> bool:
    return bool(live(cluster)["metadata"]["annotations"].get("simulator/run-by") == "kwok")


@pytest.mark.parametrize(
    ("init", "image", "expected"),
    [
        ((), IMAGE, None),
        ((), "docker.io/me/mine:1", ("Stubbed", ["mine:1 has no recipe in simulator/sandbox/recipes/"])),
        ((), "dev.azurecr.io/metaseq:1", ("Stubbed", ["metaseq:1 cannot run on this machine: no bubblewrap"])),
        (("alpine:3",), IMAGE, ("PartlyStubbed", ["image alpine:3 has no recipe"])),
        (("alpine:3",), "mine:1", ("Stubbed", ["image alpine:3 has no recipe", "; image mine:1 has no recipe"])),
    ],
)
def test_the_status_names_the_images_without_a_program(
    cluster: Cluster,
    monkeypatch: pytest.MonkeyPatch,
    init: tuple[str, ...],
    image: str,
    expected: tuple[str, list[str]] | None,
) -> None:
    monkeypatch.setattr(sandbox, "available", lambda: "no bubblewrap")
    pod = make(init=tuple({"name": f"init-{name}", "image": name} for name in init), image=image)
    cluster.has(pod)
    kwok_pods(cluster).advance(pod, NODE)
    status = live(cluster)["status"]
    reason, parts = expected or (None, [])
    assert status.get("reason") == reason
    assert [part for part in parts if part not in status["message"]] == []


def test_the_pod_of_a_simulated_driver_has_no_reason(cluster: Cluster) -> None:
    pod = make(image="nvcr.io/nvidia/dcgm:1")
    pod["metadata"]["ownerReferences"] = [{"kind": "DaemonSet", "name": "dcgm", "uid": "dcgm"}]
    cluster.has(pod)
    kwok_pods(cluster).advance(pod, NODE)
    assert is_handed_over(cluster)
    assert "reason" not in live(cluster)["status"]


def test_a_pod_rejected_by_its_node_keeps_the_reason(cluster: Cluster) -> None:
    pod = make(image="mine:1") | {"status": {"phase": "Failed", "reason": "UnexpectedAdmissionError"}}
    cluster.has(pod)
    kwok_pods(cluster).advance(pod, NODE)
    assert live(cluster)["status"]["reason"] == "UnexpectedAdmissionError"


def test_a_rejected_image_shows_on_each_container_that_needs_it(cluster: Cluster) -> None:
    pod = make(init=({"name": "prepare", "image": "alpine:3"},))
    cluster.has(pod)
    cluster.azure.refused[IMAGE] = f"{IMAGE}: not found"
    keeper = kwok_pods(cluster)
    keeper.advance(pod, NODE)
    status = live(cluster)["status"]
    assert status["phase"] == "Pending"
    assert status["hostIP"] == "10.224.0.4"
    assert status["containerStatuses"][0]["state"]["waiting"] == {
        "reason": "ErrImagePull",
        "message": f"{IMAGE}: not found",
    }
    assert cluster.events() == [f'Failed to pull image "{IMAGE}": {IMAGE}: not found']
    assert not is_handed_over(cluster)
    keeper.advance(pod, NODE)
    assert live(cluster)["status"]["containerStatuses"][0]["state"]["waiting"]["reason"] == "ImagePullBackOff"


def test_a_pod_waits_for_a_claim_that_does_not_mount(cluster: Cluster) -> None:
    pod = make(volumes=({"name": "data", "persistentVolumeClaim": {"claimName": "data"}},))
    cluster.has(pod)
    cluster.lacks("Secret", "sas")
    kwok_pods(cluster).advance(pod, NODE)
    state = live(cluster)["status"]["containerStatuses"][0]["state"]["waiting"]
    assert state["reason"] == "ContainerCreating"
    assert "fetching NodeStageSecretRef ai/sas failed" in state["message"]


def test_a_pod_waits_for_the_scratch_folder_but_not_for_folders_of_the_system(cluster: Cluster) -> None:
    own = {"name": "own", "hostPath": {"path": "/sys/class", "type": "Directory"}}
    scratch = {"name": "scratch", "hostPath": {"path": "/mnt/nvme/scratch", "type": "Directory"}}
    pod = make(volumes=(own, scratch))
    cluster.has(pod)
    keeper = kwok_pods(cluster)
    keeper.advance(pod, NODE)
    assert not is_handed_over(cluster)
    (node_root(cluster, "n1") / "mnt/nvme/scratch").mkdir(parents=True)
    keeper.advance(pod, NODE)
    assert is_handed_over(cluster)


def test_writes_the_same_reason_once(cluster: Cluster) -> None:
    cluster.has(make())
    keeper = kwok_pods(cluster, gate=lambda ctx: "waiting for OFED")
    keeper.advance(make(), NODE)
    writes = len(cluster.kube.writes)
    keeper.advance(make(), NODE)
    assert len(cluster.kube.writes) == writes
    assert live(cluster)["status"]["conditions"][0]["message"] == "waiting for OFED"


def test_hands_over_a_pod_that_is_being_deleted(cluster: Cluster) -> None:
    cluster.azure.refused[IMAGE] = "not found"
    pod = make()
    pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    cluster.has(pod)
    kwok_pods(cluster).advance(pod, NODE)
    assert is_handed_over(cluster)
