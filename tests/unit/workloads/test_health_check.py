"""The health check: what is checked on each VM size, and the job that does it."""

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


def said(line: str, sku: str = H100) -> str:
    return "; ".join(what for what, _ in faults(pool(sku).sku, line))


@case_table(__file__, "refused", file="health_check_lines")
def test_what_no_healthy_node_could_pass_is_refused(line: str, why: str) -> None:
    assert why in said(line)


def test_infiniband_is_not_checked_where_there_is_none() -> None:
    assert "which Standard_NC4as_T4_v3 does not have" in said("check_ib_bw_gdr 100", T4)


@pytest.mark.parametrize("name", [size.name for size in catalogue().values() if size.gpus and size.supported])
def test_what_is_generated_is_never_refused(name: str) -> None:
    text = configuration(catalogue()[name], "/opt/topology.xml")
    lines = [line for line in text.splitlines() if "||" in line and parsed(line)[0] in CHOSEN]
    assert lines
    assert not [line for line in lines if said(line, name)]


def test_a_check_of_ones_own_takes_the_place_of_its_name() -> None:
    text = configuration(pool(A100).sku, "/opt/t.xml", own=[parsed("* || check_ib_bw_gdr 190")])
    assert [line for line in text.splitlines() if "check_ib_bw_gdr" in line] == [" * || check_ib_bw_gdr 190"]
