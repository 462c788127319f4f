from __future__ import annotations

from typing import Any

from tests.support.pools import RDMA, place, pool
from tests.support.sizes import H100
from workloads import gpu_batch
from workloads._lib.base import Run
from workloads._lib.node_check import CONTAINER, NodeCheck
from workloads._lib.pods import GpuPod
from workloads.metaseq import manifests as metaseq
from workloads.metaseq.options import MetaseqOptions
from workloads.nccl_allreduce import manifests as nccl
from workloads.nccl_allreduce.options import NcclAllreduceOptions

MEASURES = {"check_gpu_bw", "check_nccl_allreduce", "check_ib_bw_gdr"}


def check(depth: Any = "light", *, of_team: bool = False) -> NodeCheck:
    return NodeCheck(depth=depth, image="aksnhc:1", taint_effect="NoSchedule", of_team=of_team)


def pod(node_check: NodeCheck | None, gpus: int | None = None, **more: Any) -> dict[str, Any]:
    container = {"name": "main", "image": "image:1"}
    made = GpuPod(pool=pool(H100), rdma_resource=RDMA, container=container, gpus=gpus, node_check=node_check, **more)
    spec: dict[str, Any] = made.template()["spec"]
    return spec


def checks(spec: dict[str, Any]) -> set[str]:
    text = variables(spec)["CHECKS"]
    return {line.split()[2] for line in text.splitlines() if "||" in line}


def variables(spec: dict[str, Any]) -> dict[str, str]:
    (found,) = spec["initContainers"]
    return {each["name"]: each.get("value", "") for each in found["env"]}


def test_requests_the_devices_of_the_job() -> None:
    spec = pod(check())
    (found,) = spec["initContainers"]
    assert found["name"] == CONTAINER
    assert found["resources"] == spec["containers"][0]["resources"]
    assert found["securityContext"] == {"capabilities": {"add": ["IPC_LOCK"]}}


def test_only_the_check_has_a_token() -> None:
    spec = pod(check())
    assert spec["automountServiceAccountToken"] is False
    assert spec["serviceAccountName"] == "aksnhc-sa"
    mounted = {each["name"]: [mount["name"] for mount in each["volumeMounts"]] for each in _containers(spec)}
    assert "check-token" in mounted[CONTAINER]
    assert "check-token" not in mounted["main"]


def _containers(spec: dict[str, Any]) -> list[dict[str, Any]]:
    return [*spec["initContainers"], *spec["containers"]]


def test_only_a_full_check_measures() -> None:
    assert not checks(pod(check("light"))) & MEASURES
    assert checks(pod(check("full"), topology="/opt/x/topology.xml")) >= MEASURES


def test_leaves_out_one_check_without_a_topology_file() -> None:
    assert MEASURES - checks(pod(check("full"))) <= {"check_nccl_allreduce_ib_loopback"}


def test_checks_only_the_requested_gpus() -> None:
    spec = pod(check(), gpus=2)
    assert " * || check_gpu_count 2" in variables(spec)["CHECKS"].splitlines()
    assert not checks(spec) & {"check_nvlink_status", "check_hw_topology"}


def test_a_teams_check_does_not_read_the_nodes_log() -> None:
    spec = pod(check(of_team=True))
    assert not [volume for volume in spec["volumes"] if "hostPath" in volume]
    assert not checks(spec) & {"check_gpu_xid", "check_ib_link_flapping"}
    assert "KERNEL_LOGS" not in variables(spec)


def test_an_mpi_job_restarts_if_a_worker_is_on_a_bad_node() -> None:
    options = NcclAllreduceOptions(node_check="light")
    run = nccl.Run(options=options, node_check=check(), service_account="mpi", **place(nodes=2))
    master, worker = nccl.job(run).spec()["tasks"]
    assert worker["policies"] == [{"event": "PodFailed", "action": "RestartJob"}]
    assert "initContainers" not in master["template"]["spec"]
    assert worker["template"]["spec"]["initContainers"][0]["name"] == CONTAINER


def test_uses_the_topology_file_of_the_job() -> None:
    run = metaseq.Run(
        options=MetaseqOptions(num_updates=5), node_check=check("full"), service_account="mpi", **place(nodes=2)
    )
    spec = metaseq.job(run).spec()["tasks"][1]["template"]["spec"]
    assert "check_nccl_allreduce 460.0 1 16G /opt/metaseq/topology.xml" in variables(spec)["CHECKS"]
    assert "files" in [mount["name"] for mount in spec["initContainers"][0]["volumeMounts"]]


def test_a_bad_node_does_not_count_as_a_failure_of_the_job() -> None:
    run = Run(options=gpu_batch.GpuBatchOptions(), node_check=check(), **place(nodes=2))
    rules = gpu_batch.job_spec(run)["podFailurePolicy"]["rules"]
    ignored = {"containerName": CONTAINER, "operator": "In", "values": [1]}
    assert {"action": "Ignore", "onExitCodes": ignored} in rules
