from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from k8s.objects import Object
from simulator.sandbox import machine
from simulator.sandbox.spec import Mount
from simulator.world.faults import Fault, new_fault
from tests.support.case_files import case_table
from tests.support.pools import A100, RDMA, pool
from tests.support.sizes import H100, H200, T4
from tests.unit.simulator.sandbox.sandboxes import Sandboxes, SandboxPod, node_name, put
from workloads.health_check import manifests
from workloads.health_check.options import NAME, HealthCheckOptions

NODE = node_name(0)


class Check(Sandboxes):
    def __init__(self, folder: Path, sku: str = H100, faults: Iterable[Fault] = (), **options: Any) -> None:
        super().__init__(folder, sku=sku, faults=list(faults))
        place: dict[str, Any] = {"pool": pool(sku), "nodes": 1, "rdma_resource": RDMA}
        request = manifests.Run(name=NAME, options=HealthCheckOptions(**options), image="r.test/aksnhc:1", **place)
        self.spec: Object = manifests.job_spec(request)["template"]["spec"]
        self.files = dict(manifests.files(request).contents)
        self.logged: list[str] = []
        self.log_folder: Path | None = None
        """A folder to mount as the node's /var/log."""

    def edit(self, old: str, new: str) -> None:
        assert old in self.files["aznhc.conf"]
        self.files["aznhc.conf"] = self.files["aznhc.conf"].replace(old, new)

    def run(self) -> tuple[int, str]:
        root, hardware = self.folder / "node", self.hardware(NODE)
        machine.write(root, hardware)
        with (root / machine.KERNEL_LOG).open("a") as stream:
            stream.writelines(f"{line}\n" for line in self.logged)
        at = {mount["name"]: mount["mountPath"] for mount in self.spec["containers"][0]["volumeMounts"]}
        mounts = (
            Mount(put(self.folder / "files", self.files), at["files"]),
            Mount(self.log_folder or root / "var/log", at["kernel-logs"]),
        )
        hcas = [hca for hca in hardware.hcas if hca.link_layer == "InfiniBand"]
        held = {"gpus": len(hardware.gpus), "hcas": len(hcas)}
        with self.running([SandboxPod("health-check-0", self.spec, NODE, mounts, held=held, more={"node_dir": root})]):
            return self.wait()[0]


def logged_at(minutes: float) -> str:
    """Returns a past time in the format of Ubuntu 24.04's rsyslog."""
    return (datetime.now(UTC) - timedelta(minutes=minutes)).isoformat(timespec="microseconds")


def verdict(log: str) -> str:
    return log.splitlines()[-1]


@pytest.mark.parametrize("sku", [H100, H200, A100, T4, "Standard_NC80adis_H100_v5"])
def test_a_healthy_node_passes(tmp_path: Path, sku: str) -> None:
    check = Check(tmp_path, sku)
    code, log = check.run()
    count = check.files["aznhc.conf"].count("||")
    assert code == 0
    assert verdict(log) == f"VERDICT: PASS; node={NODE} checks={count}/{count}"


@case_table(__file__, "faults", file="health_check")
def test_a_fault_fails_the_node(tmp_path: Path, kind: str, device: str, text: str) -> None:
    code, log = Check(tmp_path, faults=[new_fault(kind, NODE, device)]).run()
    assert code == 1
    assert verdict(log).startswith("VERDICT: FAIL check_")
    assert text in log


@pytest.mark.parametrize(
    ("gbps", "leave_out", "text"),
    [
        (100, (), "No IB port mlx5_2:1 is ACTIVE (LinkUp 400 Gb/sec)"),
        (200, ("check_hw_ib",), "IB=mlx5_2, mlx5_2, IB BW (expected > 380 Gbps, but measured 199.80 Gbps"),
    ],
)
def test_a_slow_link_fails_also_without_the_check_of_ports(
    tmp_path: Path, gbps: int, leave_out: tuple[str, ...], text: str
) -> None:
    check = Check(tmp_path, faults=[new_fault("link", NODE, "mlx5_2", gbps)], leave_out=leave_out)
    code, log = check.run()
    assert code == 1
    assert text in log


def test_reports_all_failed_checks(tmp_path: Path) -> None:
    _, log = Check(tmp_path, faults=[new_fault("gpu", NODE, "3")]).run()
    assert {"check_gpu_count", "check_nvsmi_healthmon", "check_gpu_xid"} <= set(log.replace(":", " ").split())
    assert "more)" in verdict(log)


def test_an_xid_in_the_log_fails_the_node(tmp_path: Path) -> None:
    """With unconverted timestamps, aznhc's check would ignore the error as old."""
    check = Check(tmp_path)
    check.logged = [
        f"{logged_at(minutes=5)} {NODE} kernel: NVRM: Xid (PCI:0001:00:00): 48, pid=7, DBE (double bit error)"
    ]
    code, log = check.run()
    assert code == 1
    assert verdict(log).startswith("VERDICT: FAIL check_gpu_xid: GPU Xid errors detected")


def test_a_flapping_link_fails_the_node(tmp_path: Path) -> None:
    check = Check(tmp_path)
    lost = f"{NODE} systemd-networkd[622]: ib3: Lost carrier"
    check.logged = [f"{logged_at(minutes=minutes)} {lost}" for minutes in (90, 30)]
    code, log = check.run()
    assert code == 1
    assert verdict(log).startswith("VERDICT: FAIL check_ib_link_flapping: IB link flapping detected")


def test_a_node_without_a_log_is_unknown(tmp_path: Path) -> None:
    check = Check(tmp_path)
    check.log_folder = tmp_path / "empty"
    check.log_folder.mkdir()
    code, log = check.run()
    assert code == 2
    assert verdict(log).startswith(
        "VERDICT: UNKNOWN check_gpu_xid: the node's log in /host/var/log (syslog or messages)"
    )


def test_needs_no_log_without_checks_of_it(tmp_path: Path) -> None:
    check = Check(tmp_path, leave_out=("check_gpu_xid", "check_ib_link_flapping"))
    check.log_folder = tmp_path / "empty"
    check.log_folder.mkdir()
    assert check.run()[0] == 0


@pytest.mark.parametrize(
    ("old", "new", "code", "text"),
    [
        # Older charts' limits are too high for some healthy nodes.
        ("check_gpu_bw 48 335", "check_gpu_bw 60 400", 1, "FaultCode: NHC2020"),
        # Older charts have the topology before the size, which all_reduce_perf rejects.
        (
            "16G /opt/health-check/topology.xml",
            "/opt/health-check/topology.xml 16G",
            2,
            "VERDICT: UNKNOWN collect_nccl_allreduce_data: nccl_allreduce returned error code 1",
        ),
        ("check_gpu_count 8", "check_gpu_number 8", 2, "UNKNOWN check_gpu_number is not in this image"),
    ],
)
def test_a_wrong_configuration_fails_or_is_unknown(tmp_path: Path, old: str, new: str, code: int, text: str) -> None:
    check = Check(tmp_path)
    check.edit(old, new)
    found, log = check.run()
    assert found == code
    assert text in verdict(log)


def test_rdma_is_unknown_without_ipc_lock(tmp_path: Path) -> None:
    check = Check(tmp_path)
    check.spec["containers"][0]["securityContext"] = {"capabilities": {"add": []}}
    code, log = check.run()
    assert code == 2
    assert "UNKNOWN check_ib_bw_gdr" in verdict(log)


def test_a_missing_configuration_is_unknown(tmp_path: Path) -> None:
    check = Check(tmp_path)
    check.files = {"topology.xml": check.files["topology.xml"]}
    code, log = check.run()
    assert code == 2
    assert "UNKNOWN /opt/health-check/aznhc.conf has no checks" in verdict(log)


def test_a_failed_check_takes_precedence_over_an_unknown_one(tmp_path: Path) -> None:
    check = Check(tmp_path, faults=[new_fault("hca", NODE, "mlx5_0")])
    check.edit("check_gpu_count 8", "check_gpu_number 8")
    assert verdict(check.run()[1]).startswith("VERDICT: FAIL check_hw_ib")
