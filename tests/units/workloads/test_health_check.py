"""The health check: what is checked on each VM size, and the job that does it."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, get_args

import pytest

import workloads
from config.facts.skus import catalogue
from config.problems.errors import SettingsError
from tests.support.pools import A100, H100, H200, RDMA, T4, pool
from tests.support.settings import load
from workloads._aznhc import CheckName, configuration
from workloads.health_check import WORKLOAD
from workloads.health_check.manifests import Run, command, files, job_spec, job_without_devices
from workloads.health_check.options import NAME, HealthCheckOptions

TOPOLOGY = "/opt/health-check/topology.xml"


def checks(vm_sku: str, *leave_out: str) -> list[str]:
    text = configuration(pool(vm_sku).sku, TOPOLOGY, leave_out)
    return [line.removeprefix(" * || ") for line in text.splitlines() if not line.startswith("#")]


def run(vm_sku: str = H100, nodes: int = 2, **options: Any) -> Run:
    chosen = HealthCheckOptions(**options)
    return Run(name=NAME, options=chosen, pool=pool(vm_sku), nodes=nodes, image="aksnhc:1", rdma_resource=RDMA)


def template(**fields: Any) -> dict[str, Any]:
    found: dict[str, Any] = job_spec(run(**fields))["template"]
    return found


@pytest.mark.parametrize(
    ("vm_sku", "expected"),
    [
        (H100, "check_nccl_allreduce 460.0 1 16G /opt/health-check/topology.xml"),
        (H200, "check_nccl_allreduce 431.0 1 16G /opt/health-check/topology.xml"),
        (A100, "check_nccl_allreduce 228.0 1 8G /opt/health-check/topology.xml"),
        (A100, "check_nccl_allreduce_ib_loopback 18.0 1 8G /opt/health-check/topology.xml"),
        ("Standard_NC80adis_H100_v5", "check_nccl_allreduce 208.0 1 16G"),
        (H100, "check_gpu_bw 48 335"),
        (A100, "check_gpu_bw 21 235"),
        ("Standard_ND96amsr_A100_v4", "check_gpu_bw 21 238"),
        (H100, "check_ib_bw_gdr 380"),
        (H200, "check_ib_bw_gdr 360"),
        (A100, "check_ib_bw_gdr 180"),
        (H100, "check_hw_physmem 1915071MB 1915071MB 5%"),
        (H100, "check_hw_cpuinfo 2 96 96"),
        (H100, "check_nvme_count 8"),
        (T4, "check_gpu_count 1"),
    ],
)
def test_limits_and_their_order(vm_sku: str, expected: str) -> None:
    assert expected in checks(vm_sku)


def test_what_a_size_does_not_have_is_not_checked() -> None:
    found = " ".join(checks(T4))
    assert not re.findall("_ib|nvme|topology|nccl|nvlink|gpu_bw", found)


def test_every_size_has_checks_and_all_are_known() -> None:
    for size in catalogue().values():
        if size.gpus and size.supported:
            names = {check.split()[0] for check in checks(size.name)}
            assert {"check_gpu_count", "check_nvsmi_healthmon"} <= names <= set(get_args(CheckName))


def test_checks_can_be_left_out() -> None:
    assert len(checks(H100, "check_hw_ib", "check_gpu_xid")) == len(checks(H100)) - 9
    assert "check_gpu_xid" not in files(run(leave_out=("check_gpu_xid",))).contents["aznhc.conf"]


def test_a_node_that_lacks_devices_is_checked_by_a_pod_that_takes_none() -> None:
    """On each node one, at once, beside whatever job is there: it measures nothing, and opens no GPU."""
    name, spec = job_without_devices(replace(run(node_names=("aks-x-1",)), taint_effect="NoSchedule"))
    pod = spec["template"]["spec"]
    (container,) = pod["containers"]
    assert (name, spec["completions"]) == ("health-check-devices", 2)
    assert not [key for kind in container["resources"].values() for key in kind if "/" in key]
    assert "securityContext" not in container
    (apart,) = pod["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert apart["labelSelector"]["matchLabels"] == {"batch.kubernetes.io/job-name": name}
    assert "aks-x-1" in str(pod["affinity"]["nodeAffinity"])
    variables = {each["name"]: each.get("value", "") for each in container["env"]}
    assert variables["DEVICES"] == f"nvidia.com/gpu=8 {RDMA}=8"
    assert "ALL" not in variables  # it takes no taint away
    names = set(re.findall("check_[a-z_]+", variables["CHECKS"]))
    assert {"check_hw_ib", "check_gpu_xid"} <= names
    assert not names & {
        "check_gpu_count",
        "check_gpu_bw",
        "check_nccl_allreduce",
        "check_ib_bw_gdr",
        "check_hw_topology",
    }


def test_what_is_left_out_is_left_out_there_too() -> None:
    _, spec = job_without_devices(run(leave_out=("check_gpu_xid",)))
    assert "check_gpu_xid" not in str(spec)


def test_jobs_of_several_pools_share_no_object() -> None:
    other = replace(run(), name=f"{NAME}-dev")
    assert files(other).config_map == f"{NAME}-dev"
    annotations = job_spec(other)["template"]["metadata"]["annotations"]
    assert annotations["scheduling.k8s.io/group-name"] == f"{NAME}-dev"
    assert f"job-name={NAME}-dev " in command("ai", other.name)


def test_it_checks_the_whole_pool_unless_told() -> None:
    assert WORKLOAD.nodes(HealthCheckOptions(), 5) == 5
    assert WORKLOAD.nodes(HealthCheckOptions(num_nodes=2), 5) == 2


def test_a_check_that_does_not_exist_cannot_be_left_out() -> None:
    options = {"health-check": {"leaveOut": ["check_gpu_xid", "check_gpus"]}}
    with pytest.raises(SettingsError) as caught:
        load({"vmSku": H100, "workloads": "health-check", "workloadOptions": options}, known=workloads.find())
    (problem,) = caught.value.problems
    assert str(problem).startswith("workloadOptions[\"health-check\"].leaveOut[1] is 'check_gpus'")
    assert "check_gpu_count" in problem.allowed
    assert problem.fix == 'change workloadOptions["health-check"].leaveOut[1] in the stack file to what is allowed'
