from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from simulator.host.paths import ROOT
from tests.support.case_files import case_table

SCRIPT = ROOT / "docker" / "aksnhc" / "check-node.sh"
NODE = "aks-gpu-1-vmss000000"
COUNT, WRITE, COPIES = "check_gpu_count 8", "check_ib_bw_gdr 380", "check_gpu_bw 48 335"
CHECKS = "\n".join(f" * || {check}" for check in (COUNT, WRITE, COPIES))
MISSING = "check_gpu_count: Expected to see 8 but found 7. FaultCode: NHC2009"
SLOW = "check_ib_bw_gdr: expected > 380 Gbps but measured 91. FaultCode: NHC2003"
COMMANDS = Path(__file__).with_name("check_node")


class Check:
    """`answers` are the failures in aznhc's first and second run."""

    def __init__(self, folder: Path, *answers: Sequence[str], checks: str = CHECKS, **variables: str) -> None:
        self.folder = folder
        folder.mkdir(exist_ok=True)
        for name in ("nhc", "kubectl"):
            shutil.copy(COMMANDS / f"{name}.sh", folder / name)
        for index, failures in enumerate(answers):
            lines = "".join(f"{each.partition(':')[0].removeprefix('+')}|{each}\n" for each in failures)
            (folder / f"answer.{index}").write_text(lines)
        given = {
            "CHECKS": checks,
            "TIMEOUT_S": "60",
            "NODE_NAME": NODE,
            "TAINT_EFFECT": "NoSchedule",
            "PAUSE_S": "0",
            **variables,
        }
        path = f"{folder}:{os.environ['PATH']}"
        done = subprocess.run(
            ["bash", str(SCRIPT)],
            env={"PATH": path, "HERE": str(folder), "AZ_NHC_ROOT": str(folder / "nhc-root"), **given},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        self.code, self.errors, self.output = done.returncode, done.stderr, done.stdout
        self.verdict = next((line for line in done.stdout.splitlines() if line.startswith("VERDICT: ")), "")

    @property
    def runs(self) -> int:
        return len(list(self.folder.glob("ran.*")))

    @property
    def commands(self) -> list[list[str]]:
        file = self.folder / "commands"
        calls = file.read_text().split("\0\n\0") if file.exists() else []
        return [call.split("\0") for call in calls if call]

    @property
    def annotations(self) -> dict[str, str]:
        (call,) = [call for call in self.commands if call[0] == "annotate"]
        return dict(each.partition("=")[::2] for each in call[4:])

    @property
    def taints(self) -> list[str]:
        return [call[-1] for call in self.commands if call[0] == "taint"]


def test_a_node_that_passes_gets_annotations_and_no_taint(tmp_path: Path) -> None:
    check = Check(tmp_path, [])
    assert (check.code, check.runs, check.taints) == (0, 1, [])
    (annotate,) = check.commands
    assert annotate[:4] == ["annotate", "node", NODE, "--overwrite"]
    assert check.annotations["aznhc-verdict"] == check.verdict == f"VERDICT: PASS; node={NODE} checks=3/3"
    assert check.annotations["aznhc-results"].startswith(f"{check.verdict}\n")
    assert "aznhc-checked" not in check.annotations


COPIED = "check_gpu_bw: H2D test on GPU 0 failed. FaultCode: NHC2020"
TAINTED = ["aznhc=failed:NoSchedule"]


@case_table(__file__, "runs")
def test_judges_and_taints_the_node(
    tmp_path: Path, answers: list[list[str]], variables: dict[str, str], expected: tuple[int, int, list[str], str]
) -> None:
    check = Check(tmp_path, *answers, **variables)
    *found, verdict = expected
    assert [check.code, check.runs, check.taints] == found
    assert check.verdict.startswith(f"VERDICT: {verdict}")
    assert check.verdict.endswith("checks=3/3"), "the number of all checks, also after a second run"
    assert ("aznhc-checked" in check.annotations) == ("ALL" in variables)
    if check.taints == TAINTED:  # first, because a restarting job may end the pod
        assert [call[0] for call in check.commands] == ["taint", "annotate"]


def test_a_second_run_must_confirm_a_slow_result(tmp_path: Path) -> None:
    check = Check(tmp_path, [SLOW, COPIED], [])
    assert (check.code, check.runs, check.taints) == (0, 2, [])
    assert "PASS at the second run, at the first: check_ib_bw_gdr 380" in check.verdict
    assert (tmp_path / "ran.1").read_text() == f" * || {WRITE}\n * || {COPIES}\n"  # the others do not run again
    assert SLOW in check.annotations["aznhc-results"]


@pytest.mark.parametrize(("again", "code"), [(range(8), 0), (range(7), 2)])
def test_a_second_run_must_report_each_device(tmp_path: Path, again: range, code: int) -> None:
    wrote = [f"+check_ib_bw_gdr: passed for IB=mlx5_{hca}, IB BW=391.{hca} Gbps" for hca in range(8)]
    first = ["+check_gpu_count: 8", "+check_gpu_bw: passed", *wrote[:7], SLOW]
    check = Check(tmp_path, first, [wrote[hca] for hca in again])
    assert (check.code, check.runs, check.taints) == (code, 2, [])
    assert (
        "UNKNOWN the log does not show (SUCCESS) that this passed: check_ib_bw_gdr 380, 7" in check.verdict
    ) == bool(code)


def test_a_failed_node_that_cannot_be_tainted_has_another_exit_code(tmp_path: Path) -> None:
    """The Job must not send the next pod to the same node."""
    refusal = f'Error from server (Forbidden): nodes "{NODE}" is forbidden: User "x" cannot patch resource "nodes"'
    check = Check(tmp_path, [MISSING], BEFORE_JOB="true", REFUSAL=refusal)
    assert check.code == 3
    assert f"the check is not allowed to change node {NODE}" in check.errors
    assert "allowed: a service account that may get and patch nodes" in check.errors
    assert "fix:     pulumi config set --path operators.nodeHealth.enabled true && pulumi up" in check.errors


@pytest.mark.parametrize(("refusals", "code"), [("2", 1), ("3", 3)])
def test_retries_a_taint_after_a_concurrent_change(tmp_path: Path, refusals: str, code: int) -> None:
    """`kubectl taint` writes all taints, so the admission policy rejects a list without another's new taint."""
    refusal = "Error from server (Forbidden): of its node, a check may change the taint aznhc"
    check = Check(tmp_path, [MISSING], BEFORE_JOB="true", REFUSAL=refusal, REFUSALS=refusals)
    assert (check.code, check.taints) == (code, ["aznhc=failed:NoSchedule"] * 3)


def test_reports_that_the_node_was_deleted(tmp_path: Path) -> None:
    check = Check(tmp_path, [MISSING], REFUSAL=f'Error from server (NotFound): nodes "{NODE}" not found')
    assert check.code == 1
    assert f"node {NODE} does not exist any more" in check.errors


def test_the_annotation_with_the_log_has_a_limit(tmp_path: Path) -> None:
    """All annotations of an object may have 256 KiB."""
    long = f"check_gpu_count: {'x' * 400_000}é. FaultCode: NHC2009"
    check = Check(tmp_path, [long])
    results = check.annotations["aznhc-results"]
    assert len(results.encode()) < 2**16
    assert "Running check:" in results  # the log's end is kept


def test_changes_no_node_without_a_taint_effect(tmp_path: Path) -> None:
    check = Check(tmp_path, [MISSING], TAINT_EFFECT="")
    assert (check.code, check.commands) == (1, [])


DEVICES = {"DEVICES": "nvidia.com/gpu=8 rdma/hca=8", "SETTLE_S": "0"}


@case_table(__file__, "lacking")
def test_a_check_without_devices_reports_missing_devices(tmp_path: Path, offers: str, lacking: str) -> None:
    check = Check(tmp_path, [], OFFERS=offers, **DEVICES)
    assert (check.code, check.taints) == (1, ["aznhc=failed:NoSchedule"])
    assert check.verdict == f"VERDICT: FAIL {lacking}; node={NODE} checks=3/3"
    assert "aznhc-checked" not in check.annotations


def test_a_check_without_devices_skips_a_complete_node(tmp_path: Path) -> None:
    check = Check(tmp_path, [], OFFERS="8 8 8 8", **DEVICES)
    assert (check.code, check.runs, check.taints, check.verdict) == (0, 0, [], "")
    assert f"Node {NODE} offers all of its devices" in check.output


def test_waits_for_the_device_plugin(tmp_path: Path) -> None:
    shutil.copy(COMMANDS / "kubectl.sh", tmp_path / "kubectl")
    variables = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "HERE": str(tmp_path), "NODE_NAME": NODE, **DEVICES}
    command = ["timeout", "3", "bash", str(SCRIPT.with_name("offers.sh")), *DEVICES["DEVICES"].split()]
    done = subprocess.run(command, env={**variables, "OFFERS": "8 7 0 0"}, capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (124, b"")


def test_errors_in_the_nodes_log_are_never_chance(tmp_path: Path) -> None:
    (tmp_path / "syslog").write_text(
        f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S+00:00} n kernel: NVRM: Xid (PCI:0008:01:00): 154, "
        "GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)\n"
    )
    checks = f"{CHECKS}\n * || check_gpu_xid"
    check = Check(tmp_path, [SLOW], [], checks=checks, KERNEL_LOGS=str(tmp_path))
    assert (check.code, check.runs) == (1, 1)
    assert "FAIL check_gpu_xid: " in check.verdict
    left_out = Check(tmp_path / "other", [], KERNEL_LOGS=str(tmp_path))
    assert left_out.verdict.startswith("VERDICT: PASS")
