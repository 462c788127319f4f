from __future__ import annotations

from typing import Any

import pytest

from components.context import BlobVolume
from config.data.scheduling import COSCHEDULER, GPU_RESOURCE
from k8s.scheduling import toleration
from tests.support.pools import RDMA, pool
from tests.support.sizes import H100, T4
from workloads._lib.files import Files, nccl_variables, topology_file
from workloads._lib.pods import GpuPod, Mount, blob, scratch
from workloads._lib.results import SECONDS, Results

CONTAINER = {"name": "train", "image": "train:1"}


def template(vm_sku: str = H100, **fields: Any) -> dict[str, Any]:
    return GpuPod(**{"pool": pool(vm_sku), "rdma_resource": RDMA, "container": CONTAINER, **fields}).template()


def files(**contents: str) -> Files:
    return Files(config_map="train", folder="/opt/train", contents=contents)


def container(vm_sku: str = H100, **fields: Any) -> dict[str, Any]:
    found: dict[str, Any] = template(vm_sku, **fields)["spec"]["containers"][0]
    return found


def test_a_part_of_a_node_has_no_rdma() -> None:
    found = container(gpus=2)
    assert found["resources"]["limits"] == {"nvidia.com/gpu": "2"}
    assert "securityContext" not in found


@pytest.mark.parametrize(
    ("taint", "expected"),
    [
        ("a=b:NoSchedule", {"key": "a", "operator": "Equal", "value": "b", "effect": "NoSchedule"}),
        ("a:NoExecute", {"key": "a", "operator": "Exists", "effect": "NoExecute"}),
    ],
)
def test_a_toleration_matches_its_taint(taint: str, expected: dict[str, str]) -> None:
    assert toleration(taint) == expected


@pytest.mark.parametrize(("fields", "kept"), [({}, "false"), ({"repeatable": True}, None)])
def test_the_autoscaler_may_only_evict_repeatable_pods(fields: dict[str, Any], kept: str | None) -> None:
    annotations = template(**fields).get("metadata", {}).get("annotations", {})
    assert annotations.get("cluster-autoscaler.kubernetes.io/safe-to-evict") == kept


def test_keeps_the_containers_own_settings() -> None:
    own: dict[str, Any] = {
        **CONTAINER,
        "env": [{"name": "NODE", "valueFrom": "x"}],
        "resources": {"requests": {"cpu": "4"}},
    }
    found = container(container=own, variables={"B": "2", "A": "1"})
    assert found["env"] == [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}, own["env"][0]]
    assert found["resources"]["requests"] == {"nvidia.com/gpu": "8", RDMA: "8", "cpu": "4"}


def test_scratch_is_an_empty_dir_without_nvme() -> None:
    assert scratch(pool(), "/scratch").volume() == {"name": "scratch", "emptyDir": {}}


def test_a_new_sas_changes_the_pod() -> None:
    def with_sas(expiry: str) -> dict[str, Any]:
        volume = BlobVolume(claim="data", read_only=True, annotations={"sas": expiry}, upload_secret=None)
        return template(mounts=[blob("data", volume, "/data")])

    assert with_sas("1")["metadata"]["annotations"]["sas"] == "1"
    assert with_sas("1") != with_sas("2")
    assert {"name": "data", "mountPath": "/data", "readOnly": True} in with_sas("1")["spec"]["containers"][0][
        "volumeMounts"
    ]


def test_a_pod_uses_the_service_account_of_its_container() -> None:
    volume = BlobVolume(claim="data", read_only=True, annotations={}, service_account="blobs", upload_secret=None)
    mounted = template(mounts=[blob("data", volume, "/data")])["spec"]
    assert mounted["serviceAccountName"] == "blobs"
    assert "serviceAccountName" not in template(mounts=[])["spec"]


def test_a_changed_file_changes_the_pod() -> None:
    before, after = (template(mounts=[files(**{"run.sh": text}).mount()]) for text in ("echo 1", "echo 2"))
    assert before["spec"] == after["spec"]
    assert before["metadata"] != after["metadata"]


def test_nccl_gets_the_topology_file_of_the_size() -> None:
    with_topology = files(**topology_file(pool(H100)))
    assert nccl_variables(pool(H100), with_topology, sharp=False)["NCCL_TOPO_FILE"] == "/opt/train/topology.xml"
    assert "NCCL_TOPO_FILE" not in nccl_variables(pool(T4), files(**topology_file(pool(T4))), sharp=False)


def test_overrides_come_last() -> None:
    overrides = {
        "metadata": {"labels": {"team": "red"}},
        "spec": {
            "priorityClassName": "high",
            "tolerations": [],
            "containers": [{"name": "train", "env": [{"name": "A", "value": "mine"}], "image": "train:2"}],
        },
    }
    found = template(variables={"A": "1", "B": "2"}, overrides=overrides)
    spec = found["spec"]
    assert found["metadata"]["labels"] == {"team": "red"}
    assert (spec["priorityClassName"], spec["tolerations"]) == ("high", [])
    assert spec["containers"][0]["image"] == "train:2"
    assert spec["containers"][0]["env"] == [{"name": "A", "value": "mine"}, {"name": "B", "value": "2"}]
    assert spec["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] == "8"


CLAIM = Mount(name="cache", path="/cache", source={"persistentVolumeClaim": {"claimName": "model"}})


def test_the_job_for_results_queues_without_gpus_and_only_reads() -> None:
    job = Results(job="train", image="trainer:1", scheduler=COSCHEDULER, mount=CLAIM).manifest()
    assert job["metadata"]["labels"] == {"kueue.x-k8s.io/queue-name": "default-queue"}
    spec, pod = job["spec"], job["spec"]["template"]["spec"]
    assert (spec["backoffLimit"], spec["ttlSecondsAfterFinished"]) == (0, 0)
    assert (pod["schedulerName"], pod["automountServiceAccountToken"]) == (COSCHEDULER, False)
    (container,) = pod["containers"]
    assert GPU_RESOURCE not in container["resources"]["limits"]
    assert container["command"] == ["sleep", str(SECONDS)]
    assert container["volumeMounts"] == [{"name": "cache", "mountPath": "/cache", "readOnly": True}]
    rights = container["securityContext"]
    assert (rights["runAsNonRoot"], rights["allowPrivilegeEscalation"]) == (True, False)
    assert rights["capabilities"] == {"drop": ["ALL"]}
