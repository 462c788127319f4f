from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, get_args

import pytest

from config.data.skus import catalogue
from tests.support.case_files import case_table
from tests.support.pools import A100, RDMA, place, pool
from tests.support.sizes import H100, T4
from workloads._lib.aznhc import CheckName, configuration
from workloads.health_check import WORKLOAD
from workloads.health_check.lines import CHOSEN, faults, parsed
from workloads.health_check.manifests import Run, command, files, job_spec, job_without_devices
from workloads.health_check.options import NAME, HealthCheckOptions

TOPOLOGY = "/opt/health-check/topology.xml"


def checks(vm_sku: str, *leave_out: str) -> list[str]:
    text = configuration(pool(vm_sku).sku, TOPOLOGY, leave_out)
    return [line.removeprefix(" * || ") for line in text.splitlines() if not line.startswith("#")]


def run(vm_sku: str = H100, nodes: int = 2, **options: Any) -> Run:
    return Run(name=NAME, options=HealthCheckOptions(**options), **place(vm_sku, nodes))


def template(**fields: Any) -> dict[str, Any]:
    found: dict[str, Any] = job_spec(run(**fields))["template"]
    return found


@case_table(__file__, "limits", file="health_check_limits")
def test_checks_have_limits_of_the_size(vm_sku: str, expected: str) -> None:
    assert expected in checks(vm_sku)


def test_checks_no_missing_hardware() -> None:
    found = " ".join(checks(T4))
    assert not re.findall("_ib|nvme|topology|nccl|nvlink|gpu_bw", found)


def test_every_size_has_checks_and_all_are_known() -> None:
    for size in catalogue().values():
        if size.gpus and size.supported:
            names = {check.split()[0] for check in checks(size.name)}
            assert {"check_gpu_count", "check_nvsmi_healthmon"} <= names <= set(get_args(CheckName))


def test_checks_can_be_left_out() -> None:
    assert len(checks(H100, "check_hw_ib", "check_gpu_xid")) == len(checks(H100)) - 9
    without = run(leave_out=("check_gpu_xid",))
    assert "check_gpu_xid" not in files(without).contents["aznhc.conf"]
    assert "check_gpu_xid" not in str(job_without_devices(without))


def test_checks_nodes_with_missing_devices_without_requesting_any() -> None:
    """Each node gets one such pod, also beside other jobs. It measures nothing and opens no GPU."""
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
    assert "ALL" not in variables  # so it removes no taint
    names = set(re.findall("check_[a-z_]+", variables["CHECKS"]))
    assert {"check_hw_ib", "check_gpu_xid"} <= names
    assert not names & {
        "check_gpu_count",
        "check_gpu_bw",
        "check_nccl_allreduce",
        "check_ib_bw_gdr",
        "check_hw_topology",
    }


def test_jobs_of_several_pools_have_separate_objects() -> None:
    other = replace(run(), name=f"{NAME}-dev")
    assert files(other).config_map == f"{NAME}-dev"
    annotations = job_spec(other)["template"]["metadata"]["annotations"]
    assert annotations["scheduling.k8s.io/group-name"] == f"{NAME}-dev"
    assert f"job-name={NAME}-dev " in command("ai", other.name)


def test_checks_all_nodes_by_default() -> None:
    assert WORKLOAD.nodes(HealthCheckOptions(), 5) == 5
    assert WORKLOAD.nodes(HealthCheckOptions(num_nodes=2), 5) == 2


def fault(line: str, sku: str = H100) -> str:
    return "; ".join(what for what, _ in faults(pool(sku).sku, line))


@case_table(__file__, "refused", file="health_check_lines")
def test_rejects_limits_that_no_healthy_node_reaches(line: str, why: str) -> None:
    assert why in fault(line)


def test_rejects_infiniband_checks_without_infiniband() -> None:
    assert "which Standard_NC4as_T4_v3 does not have" in fault("check_ib_bw_gdr 100", T4)


@pytest.mark.parametrize("name", [size.name for size in catalogue().values() if size.gpus and size.supported])
def test_accepts_all_generated_checks(name: str) -> None:
    text = configuration(catalogue()[name], "/opt/topology.xml")
    lines = [line for line in text.splitlines() if "||" in line and parsed(line)[0] in CHOSEN]
    assert lines
    assert not [line for line in lines if fault(line, name)]


def test_an_own_check_replaces_the_generated_one() -> None:
    text = configuration(pool(A100).sku, "/opt/t.xml", own=[parsed("* || check_ib_bw_gdr 190")])
    assert [line for line in text.splitlines() if "check_ib_bw_gdr" in line] == [" * || check_ib_bw_gdr 190"]
