"""The health check's real scripts on simulated nodes: it passes on a healthy one, finds faults, and knows what it does
not know.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from config.facts import skus
from simulator.sandbox import machine, sandbox
from simulator.world import snapshot
from simulator.world.faults import Fault, new_fault
from simulator.world.hardware import NodeHardware, node_hardware
from tests.support.pools import A100, H100, H200, RDMA, T4, pool
from workloads.health_check import manifests
from workloads.health_check.options import NAME, HealthCheckOptions

NODE = "aks-gpu-22222222-vmss000000"
POD = {"namespace": "ai", "name": "health-check-0"}


class Check:
    """One pod of the job on one node. Change its files or hardware, then `run`."""

    def __init__(self, folder: Path, sku: str = H100, faults: Iterable[Fault] = (), **options: Any) -> None:
        self.folder = folder
        place: dict[str, Any] = {"pool": pool(sku), "nodes": 1, "rdma_resource": RDMA}
        request = manifests.Run(name=NAME, options=HealthCheckOptions(**options), image="r.test/aksnhc:1", **place)
        self.pod: dict[str, Any] = manifests.job_spec(request)["template"]["spec"]
        self.files = dict(manifests.files(request).contents)
        self.hardware = node_hardware(skus.sku(sku), NODE, faults)
        self.logged: list[str] = []
        """Lines of the node's log besides the kernel's own."""
        self.log_folder: Path | None = None
        """In place of the node's /var/log."""
        self.hcas = [hca.name for hca in self.hardware.hcas if hca.link_layer == "InfiniBand"]

    def edit(self, old: str, new: str) -> None:
        """Changes the configuration."""
        assert old in self.files["aznhc.conf"]
        self.files["aznhc.conf"] = self.files["aznhc.conf"].replace(old, new)

    def run(self) -> tuple[int, str]:
        """Exit code and log."""
        for name, text in self.files.items():
            (self.folder / "files").mkdir(exist_ok=True)
            (self.folder / "files" / name).write_text(text)
        root = self.folder / "node"
        machine.write(root, self.hardware)
        with (root / machine.KERNEL_LOG).open("a") as stream:
            stream.writelines(f"{line}\n" for line in self.logged)
        allocation: dict[str, list[Any]] = {"gpus": [gpu.index for gpu in self.hardware.gpus], "hcas": self.hcas}
        world = snapshot.snapshot(
            [_node(self.hardware)], [self._pod()], {NODE: self.hardware}, {"ai/health-check-0": allocation}
        )
        snapshot.write(world, self.folder / "world")
        container = self.pod["containers"][0]
        mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
        spec = sandbox.SandboxSpec(
            pod="ai/health-check-0",
            image="aksnhc",
            argv=tuple(container["command"]),
            hostname="health-check-0",
            hardware=self.hardware,
            run_dir=self.folder / "run",
            world_dir=self.folder / "world",
            node_dir=root,
            env={entry["name"]: entry.get("value", NODE) for entry in container["env"]},
            mounts=(
                sandbox.Mount(self.folder / "files", mounts["files"]),
                sandbox.Mount(self.log_folder or root / "var/log", mounts["kernel-logs"]),
            ),
            gpus=tuple(allocation["gpus"]),
            hcas=tuple(self.hcas),
            shm_bytes=snapshot.shm_bytes(self._pod()),
            capabilities=frozenset(container["securityContext"]["capabilities"]["add"]),
        )
        log = self.folder / "log"
        with log.open("wb") as stream:
            code = sandbox.start(spec, stream.fileno()).wait(60)
        print(log.read_text())
        return code, log.read_text()

    def _pod(self) -> dict[str, Any]:
        spec = {**self.pod, "nodeName": NODE, "hostname": "health-check-0"}
        return {"metadata": POD, "spec": spec, "status": {"phase": "Running", "podIP": "10.244.0.9"}}


def _node(hardware: NodeHardware) -> dict[str, Any]:
    labels = {"node.kubernetes.io/instance-type": hardware.sku, "kubernetes.azure.com/agentpool": "gpu"}
    status = {"capacity": {"cpu": str(skus.sku(hardware.sku).vcpus)}, "conditions": []}
    return {"metadata": {"name": NODE, "labels": labels}, "status": status}


def logged_at(minutes: float) -> str:
    """So many minutes ago, as rsyslog of Ubuntu 24.04 writes it."""
    return (datetime.now(UTC) - timedelta(minutes=minutes)).isoformat(timespec="microseconds")


def verdict(log: str) -> str:
    return log.splitlines()[-1]


@pytest.fixture(scope="module", autouse=True)
def _needs_sandbox() -> None:
    assert sandbox.available() is None


@pytest.mark.parametrize("sku", [H100, H200, A100, T4, "Standard_NC80adis_H100_v5"])
def test_a_healthy_node_passes(tmp_path: Path, sku: str) -> None:
    check = Check(tmp_path, sku)
    code, log = check.run()
    count = check.files["aznhc.conf"].count("||")
    assert code == 0
    assert verdict(log) == f"VERDICT: PASS; node={NODE} checks={count}/{count}"


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        (new_fault("gpu", NODE, "3"), "NHC2009"),
        (new_fault("link", NODE, "mlx5_2", 100), "No IB port mlx5_2:1 is ACTIVE (LinkUp 400 Gb/sec)"),
        (new_fault("hca", NODE, "mlx5_5"), "No IB port mlx5_5:1"),
        (new_fault("nvme", NODE, "nvme7n1"), "Expected to see 8 but found 7. FaultCode: NHC2023"),
    ],
    ids=["gpu", "slow link", "port down", "disk"],
)
def test_a_fault_fails_the_node(tmp_path: Path, fault: Fault, code: str) -> None:
    exit_code, log = Check(tmp_path, faults=[fault]).run()
    assert exit_code == 1
    assert verdict(log).startswith("VERDICT: FAIL check_")
    assert code in log


def test_all_that_is_wrong_is_told(tmp_path: Path) -> None:
    _, log = Check(tmp_path, faults=[new_fault("gpu", NODE, "3")]).run()
    assert {"check_gpu_count", "check_nvsmi_healthmon", "check_gpu_xid"} <= set(log.replace(":", " ").split())
    assert "more)" in verdict(log)


def test_a_gpu_that_is_too_hot_fails_the_node(tmp_path: Path) -> None:
    code, log = Check(tmp_path, faults=[new_fault("thermal", NODE, "3")]).run()
    assert code == 1, log
    text = "check_gpu_clock_throttling: GPU 3 throttled, reason=0x0000000000000048"
    assert verdict(log).startswith(f"VERDICT: FAIL {text} (hardware slowdown, hardware thermal slowdown); node=")


def test_an_error_of_a_gpu_in_the_nodes_log_fails_the_node(tmp_path: Path) -> None:
    """With the timestamps that the node's rsyslog writes: as they are, aznhc's check takes the error for an old one."""
    check = Check(tmp_path)
    check.logged = [
        f"{logged_at(minutes=5)} {NODE} kernel: NVRM: Xid (PCI:0001:00:00): 48, pid=7, DBE (double bit error)"
    ]
    code, log = check.run()
    assert code == 1
    assert verdict(log).startswith("VERDICT: FAIL check_gpu_xid: GPU Xid errors detected")


@pytest.mark.parametrize(
    ("kind", "device", "said"),
    [
        ("ecc", "3", "check_ecc: GPU id 3: Row remap pending. FaultCode: NHC2007"),
        ("remap", "3", "check_ecc: GPU id 3: Row remap error. FaultCode: NHC2007"),
        ("nvlink", "3", "check_nvlink_status: GPU 3 has nvlinks inactive: Link 0: Inactive. FaultCode: NHC2016"),
        ("flapping", "mlx5_3", "check_ib_link_flapping: IB link flapping detected"),
    ],
)
def test_what_node_problem_detector_finds_the_check_finds_too(
    tmp_path: Path, kind: str, device: str, said: str
) -> None:
    code, log = Check(tmp_path, faults=[new_fault(kind, NODE, device)]).run()
    assert code == 1
    assert said in log


def test_a_row_of_memory_that_waits_to_be_remapped_fails_the_node_by_its_xid(tmp_path: Path) -> None:
    _, log = Check(tmp_path, faults=[new_fault("ecc", NODE, "3")]).run()
    assert verdict(log).startswith("VERDICT: FAIL check_gpu_xid: GPU Xid errors detected")
    assert ": 63," in log


def test_a_link_that_flaps_fails_the_node(tmp_path: Path) -> None:
    check = Check(tmp_path)
    lost = f"{NODE} systemd-networkd[622]: ib3: Lost carrier"
    check.logged = [f"{logged_at(minutes=minutes)} {lost}" for minutes in (90, 30)]
    code, log = check.run()
    assert code == 1
    assert verdict(log).startswith("VERDICT: FAIL check_ib_link_flapping: IB link flapping detected")


def test_a_node_without_a_log_is_not_known_to_be_well(tmp_path: Path) -> None:
    check = Check(tmp_path)
    check.log_folder = tmp_path / "empty"
    check.log_folder.mkdir()
    code, log = check.run()
    assert code == 2
    assert verdict(log).startswith("VERDICT: UNKNOWN check_gpu_xid: the node has no log in /host/var/log")


def test_without_checks_of_it_the_log_is_not_needed(tmp_path: Path) -> None:
    check = Check(tmp_path, leave_out=("check_gpu_xid", "check_ib_link_flapping"))
    check.log_folder = tmp_path / "empty"
    check.log_folder.mkdir()
    assert check.run()[0] == 0


def test_a_slow_link_fails_although_its_port_is_not_looked_at(tmp_path: Path) -> None:
    fault = new_fault("link", NODE, "mlx5_2", 200)
    code, log = Check(tmp_path, faults=[fault], leave_out=("check_hw_ib",)).run()
    assert code == 1
    assert "IB=mlx5_2, mlx5_2, IB BW (expected > 380 Gbps, but measured 199.80 Gbps" in verdict(log)


def test_slow_copies_fail_the_node(tmp_path: Path) -> None:
    """The limits of older charts are above what some healthy nodes reach."""
    check = Check(tmp_path)
    check.edit("check_gpu_bw 48 335", "check_gpu_bw 60 400")
    code, log = check.run()
    assert code == 1
    assert "FaultCode: NHC2020" in verdict(log)


def test_arguments_in_the_old_order_say_nothing_of_the_node(tmp_path: Path) -> None:
    """Topology before size, as in older charts: all_reduce_perf refuses it."""
    check = Check(tmp_path)
    check.edit("16G /opt/health-check/topology.xml", "/opt/health-check/topology.xml 16G")
    code, log = check.run()
    assert code == 2
    assert verdict(log).startswith("VERDICT: UNKNOWN collect_nccl_allreduce_data: nccl_allreduce returned error code 1")


def test_a_check_that_the_image_lacks_says_nothing_of_the_node(tmp_path: Path) -> None:
    check = Check(tmp_path)
    check.edit("check_gpu_count 8", "check_gpu_number 8")
    code, log = check.run()
    assert code == 2
    assert "UNKNOWN check_gpu_number is not in this image" in verdict(log)


def test_without_the_right_to_pin_memory_rdma_cannot_be_checked(tmp_path: Path) -> None:
    check = Check(tmp_path)
    check.pod["containers"][0]["securityContext"] = {"capabilities": {"add": []}}
    code, log = check.run()
    assert code == 2
    assert "UNKNOWN check_ib_bw_gdr" in verdict(log)


def test_without_a_configuration_nothing_is_known(tmp_path: Path) -> None:
    check = Check(tmp_path)
    check.files = {"topology.xml": check.files["topology.xml"]}
    code, log = check.run()
    assert code == 2
    assert "UNKNOWN there is no check in /opt/health-check/aznhc.conf" in verdict(log)


def test_a_known_fault_outweighs_what_is_not_known(tmp_path: Path) -> None:
    check = Check(tmp_path, faults=[new_fault("hca", NODE, "mlx5_0")])
    check.edit("check_gpu_count 8", "check_gpu_number 8")
    assert verdict(check.run()[1]).startswith("VERDICT: FAIL check_hw_ib")
