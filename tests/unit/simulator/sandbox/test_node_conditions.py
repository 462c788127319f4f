from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from config.data import skus
from k8s.objects import Object
from operators.node_problem_detector import daemon_set_name, pod_spec
from operators.node_problem_detector.conditions import conditions_of, configurations
from simulator.sandbox import machine, sandbox
from simulator.world import snapshot
from simulator.world.faults import Fault, new_fault
from simulator.world.hardware import node_hardware
from tests.support.case_files import case_table
from tests.support.pools import A100
from tests.support.sizes import H100, T4
from tests.unit.simulator.sandbox.node import NAME, Node

OK, PROBLEM, UNKNOWN = 0, 1, 2
NC80 = "Standard_NC80adis_H100_v5"
DRIVER, OFED = "run/nvidia/driver/usr/bin/nvidia-smi", "run/mellanox/drivers/.driver-ready"


@pytest.fixture(autouse=True)
def checks_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Building the real node-problem-detector takes minutes."""
    image_of = sandbox.image_of
    monkeypatch.setattr(sandbox, "image_of", lambda spec: replace(image_of(spec), tools={}))


class Checked:
    def __init__(self, folder: Path, sku: str = H100) -> None:
        self.node = Node(folder, sku)
        self.size = skus.sku(sku)
        for file in (DRIVER, OFED):
            self.put(file)
        self.pod = pod_spec("r.test/node-problem-detector:1", self.size, daemon_set_name(self.size), [])
        self.pod["volumes"] = [volume for volume in self.pod["volumes"] if "hostPath" in volume]

    def put(self, file: str, text: str = "") -> None:
        path = self.node.root / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def without(self, file: str) -> Checked:
        (self.node.root / file).unlink()
        return self

    def fault(self, *faults: Fault, **more: Any) -> Checked:
        self.node.hardware = replace(node_hardware(self.size, NAME, faults), **more)
        machine.write(self.node.root, self.node.hardware)
        return self

    def logs(self, line: str, minutes: float = 0) -> Checked:
        then = (datetime.now(UTC) - timedelta(minutes=minutes)).isoformat(timespec="microseconds")
        with (self.node.root / machine.KERNEL_LOG).open("a") as log:
            log.write(f"{then} {NAME} {line}\n")
        return self

    def check(self, condition: str, arguments: list[str] | None = None) -> tuple[int, str]:
        (rule,) = json.loads(configurations(self.size, ofed=True)[f"{condition}.json"])["rules"]
        return self.run([rule["path"], *(rule["args"] if arguments is None else arguments)])

    def run(self, command: list[str]) -> tuple[int, str]:
        container = {**self.pod["containers"][0], "command": command}
        container["volumeMounts"] = [m for m in container["volumeMounts"] if m["name"] not in ("config", "locks")]
        container["env"] = [*container["env"], {"name": "NODE_NAME", "value": NAME}]
        labels = {"node.kubernetes.io/instance-type": self.size.name}
        node = {"metadata": {"name": NAME, "labels": labels}, "status": {"conditions": []}}
        pod: Object = {
            "metadata": {"namespace": "node-tools", "name": "tool"},
            "spec": {**self.pod, "containers": [container], "nodeName": NAME},
            "status": {"phase": "Running", "podIP": "10.244.0.9"},
        }
        snapshot.write(snapshot.snapshot([node], [pod], {NAME: self.node.hardware}, {}), self.node.folder / "world")
        code, log = self.node.run(self.pod, container)
        return code, log.strip()


@pytest.fixture
def node(tmp_path: Path) -> Checked:
    return Checked(tmp_path)


@pytest.mark.parametrize(
    ("sku", "condition"),
    [(sku, name) for sku in (H100, A100, T4, NC80) for name in conditions_of(skus.sku(sku), ofed=True)],
)
def test_a_healthy_node_has_no_problem(tmp_path: Path, sku: str, condition: str) -> None:
    code, message = Checked(tmp_path, sku).check(condition)
    assert code == OK, message


@case_table(__file__, "faults")
def test_a_fault_is_a_problem_until_it_is_healed(
    node: Checked, condition: str, fault: list[str], options: dict[str, Any], message: str
) -> None:
    kind, device = fault
    code, found = node.fault(new_fault(kind, NAME, device, **options)).check(condition)
    assert (code, found[: len(message)]) == (PROBLEM, message)
    assert node.fault().check(condition)[0] == OK


def test_a_missing_driver_is_a_problem_and_makes_its_conditions_unknown(node: Checked) -> None:
    assert node.without(DRIVER).check("GPUDriverMissing") == (
        PROBLEM,
        "the GPU operator's driver does not run on the node",
    )
    for condition in ("GPUMissing", "GPUMemoryErrors", "GPURowRemapFailed", "NVLinkInactive", "GPUTooHot"):
        assert node.check(condition) == (UNKNOWN, "the node has no GPU driver")
    assert node.check("GPUXidCritical")[0] == OK


def test_a_driver_with_another_library_version_is_not_loaded(node: Checked) -> None:
    error = "Failed to initialize NVML: Driver/library version mismatch"
    chroot = f"mkdir /tmp/bin; printf '#!/bin/bash\necho {error}\nexit 18\n' >/tmp/bin/chroot; chmod +x /tmp/bin/chroot"
    command = f"{chroot}; PATH=/tmp/bin:$PATH /opt/checks/gpu-driver.sh"
    assert node.run(["bash", "-c", command]) == (PROBLEM, f"the GPU driver is not loaded: {error}")


def test_missing_ofed_is_a_problem(node: Checked) -> None:
    assert node.without(OFED).check("OFEDMissing") == (PROBLEM, "OFED is not loaded")


@pytest.mark.parametrize("condition", ["GPUMemoryErrors", "GPURowRemapFailed", "NVLinkInactive", "GPUTooHot"])
def test_a_lost_gpu_makes_conditions_of_all_gpus_unknown(node: Checked, condition: str) -> None:
    code, message = node.fault(new_fault("gpu", NAME, "3")).check(condition)
    assert (code, message.partition(":")[0]) == (UNKNOWN, "nvidia-smi ended with exit code 15")


@pytest.mark.parametrize("condition", ["GPUXidCritical", "GPUXidWarning", "InfiniBandFlapping"])
def test_a_node_without_a_log_is_unknown(node: Checked, condition: str) -> None:
    logs = next(entry for entry in node.pod["containers"][0]["env"] if entry["name"] == "KERNEL_LOGS")
    logs["value"] = "/tmp"
    assert node.check(condition) == (
        UNKNOWN,
        "the node has no readable log in /tmp (syslog or messages)",
    )


def test_a_critical_xid_lasts_until_the_boot_and_a_warning_for_an_hour(node: Checked) -> None:
    line = "kernel: NVRM: Xid (PCI:0001:00:00): {}, pid=7, name=train, of a job"
    node.logs(line.format(95), minutes=600).logs(line.format(13), minutes=61)
    assert node.check("GPUXidCritical") == (PROBLEM, "Xid 95 of GPU 0001:00:00")
    assert node.check("GPUXidWarning")[0] == OK
    node.logs(line.format(13), minutes=59)
    assert node.check("GPUXidWarning") == (PROBLEM, "Xid 13 of GPU 0001:00:00")
    node.fault(booted=datetime.now(UTC).timestamp() + 1)
    assert [node.check(name)[0] for name in ("GPUXidCritical", "GPUXidWarning")] == [OK, OK]


def test_reads_logs_of_ubuntu_22_and_kernel_times(node: Checked) -> None:
    now = f"{datetime.now():%b %e %H:%M:%S}"
    with (node.node.root / machine.KERNEL_LOG).open("a") as log:
        log.write(
            f"{now} {NAME} kernel: [ 9.1] Linux version 5.15\n"
            f"{now} {NAME} kernel: [10.2] NVRM: Xid (PCI:0001:00:00): 31, x\n"
        )
    assert node.check("GPUXidWarning") == (PROBLEM, "Xid 31 of GPU 0001:00:00")


def test_an_unreadable_time_is_unknown(node: Checked) -> None:
    with (node.node.root / machine.KERNEL_LOG).open("a") as log:
        log.write(f"yesterday {NAME} kernel: NVRM: Xid (PCI:0001:00:00): 31, x\n")
    assert node.check("GPUXidWarning")[0] == UNKNOWN


def test_one_lost_carrier_of_each_link_is_not_flapping(node: Checked) -> None:
    node.logs("systemd-networkd[622]: ib3: Lost carrier", 5).logs("systemd-networkd[622]: ib4: Lost carrier", 4)
    assert node.check("InfiniBandFlapping")[0] == OK
    node.logs("systemd-networkd[622]: ib3: Lost carrier", 7 * 60)
    assert node.check("InfiniBandFlapping")[0] == OK
    node.logs("systemd-networkd[622]: ib3: Lost carrier", 1)
    assert node.check("InfiniBandFlapping")[0] == PROBLEM


def test_recognizes_azures_link_names(node: Checked) -> None:
    for minutes in (5, 1):
        node.logs("systemd-networkd[622]: ibP257s154020: Lost carrier", minutes)
    code, message = node.check("InfiniBandFlapping")
    assert (code, message.rpartition(": ")[2]) == (PROBLEM, "ibP257s154020")


def test_a_missing_hca_is_a_problem(node: Checked) -> None:
    assert node.check("InfiniBandDown", ["active", "9"]) == (PROBLEM, "8 of 9 InfiniBand ports are there")


@pytest.mark.parametrize(
    ("condition", "arguments", "message"),
    [
        ("GPUXidCritical", ["fatal"], "unknown severity fatal; allowed: critical, warning"),
        ("InfiniBandDown", ["up", "8"], "unknown check up; allowed: active, rate"),
    ],
)
def test_an_unknown_argument_is_unknown(node: Checked, condition: str, arguments: list[str], message: str) -> None:
    assert node.check(condition, arguments) == (UNKNOWN, message)


def test_does_not_start_a_second_nvidia_smi_while_one_hangs(node: Checked) -> None:
    hanging = "exec 8>/tmp/gpu-count.sh.lock; flock 8; /opt/checks/gpu-count.sh 8"
    assert node.run(["bash", "-c", hanging]) == (UNKNOWN, "nvidia-smi hangs")


def test_an_error_of_the_check_is_unknown(node: Checked) -> None:
    code, message = node.check("GPUMissing", [])
    assert (code, message.splitlines()[-1]) == (
        UNKNOWN,
        "check gpu-count.sh has an error, see the log of its pod",
    )
