"""Checks that end without a line of success, as the tests of Azure/azurehpc-health-checks print it since v0.4.1."""

from __future__ import annotations

from pathlib import Path

import pytest

from config.data.skus import catalogue
from tests.support.pools import H100
from tests.unit.workloads.test_health_check_scripts import ENDED, IB_BW, judge
from workloads._lib.aznhc import configuration

LINES = {
    "check_gpu_bw": ["check_nvBW_gpu_bw: GPU bandwidth Tests with NVBandwidth passed", "check_gpu_bw: Tests Passed"],
    "check_gpu_xid": ["check_gpu_xid:  GPU XID error check passed."],
    "check_ib_bw_gdr": IB_BW,
    "check_nvlink_status": [f"check_nvlink_status: GPU {gpu} has all nvlinks active." for gpu in range(8)],
    **{f"check_hw_{name}": [] for name in ("cpuinfo", "eth", "ib", "physmem", "swap")},
    **{f"check_{name}": [] for name in ("gpu_clock_throttling", "ib_link_flapping")},
}
"""What tests print that do not print one line with their name."""
CONFIGURATION = configuration(catalogue()[H100], "/opt/topology.xml")
CHECKS = [line.partition("|| ")[2] for line in CONFIGURATION.splitlines()[1:]]
COUNT = f"{len(CHECKS)}/{len(CHECKS)}"


def log(lines: dict[str, list[str]], checks: list[str] = CHECKS, *, other: bool = True) -> str:
    """The log of a run. `lines` replaces what these checks print; without `other`, the other checks print nothing."""
    text = ""
    for check in checks:
        name = check.split()[0]
        usual = LINES.get(name, [f"{name}: passed"]) if other else []
        text += f'Running check:  "{check}"\n'
        text += "".join(f"SUCCESS:  nhc:  Health check passed:  {line}\n" for line in lines.get(name, usual))
    return text + ENDED


@pytest.mark.parametrize(
    "lines",
    [
        {},
        {"check_nvlink_status": [""] * 8},  # v0.4.4
        {"check_nvlink_status": [f"check_nvlink_status: NVLink is enabled and GPU {gpu} has all" for gpu in range(8)]},
        {"check_gpu_bw": ["check_gpu_bw: GPU Bandiwdth Tests Passed"], "check_gpu_xid": []},  # v0.4.2, with an Xid 31
        {"check_ib_bw_gdr": [line for line in IB_BW for _ in "12"]},
    ],
)
def test_each_check_that_reports_success_passes(tmp_path: Path, lines: dict[str, list[str]]) -> None:
    assert judge(tmp_path, log(lines), CONFIGURATION) == (0, f"VERDICT: PASS; node=n checks={COUNT}")


@pytest.mark.parametrize(
    ("name", "lines", "of"),
    [
        ("check_ib_bw_gdr", IB_BW[:7], "7 of 8"),
        ("check_ib_bw_gdr", [*IB_BW[:7], IB_BW[0]], "7 of 8"),
        ("check_ib_bw_gdr", [], "0 of 8"),
        ("check_nvlink_status", LINES["check_nvlink_status"][1:], "7 of 8"),
        ("check_nvlink_status", [], "0 of 8"),
        *(
            (name, [], "0 of 1")
            for name in ("check_gpu_count", "check_gpu_bw", "check_gpu_xid", "check_nccl_allreduce")
        ),
    ],
)
def test_a_check_without_its_success_is_unknown(tmp_path: Path, name: str, lines: list[str], of: str) -> None:
    (check,) = [check for check in CHECKS if check.split()[0] == name]
    code, verdict = judge(tmp_path, log({name: lines}), CONFIGURATION)
    words = "the log does not show (SUCCESS) that this passed"
    assert (code, verdict) == (2, f"VERDICT: UNKNOWN {words}: {check}, {of}; node=n checks={COUNT}")


@pytest.mark.parametrize(
    ("checks", "lines", "of"),
    [
        (["check_gpu_count 8", "check_ib_bw_gdr 380"], IB_BW[:7], "7 of 8"),  # GPUDirect RDMA: a GPU for each HCA
        (["check_gpu_count 2", "check_ib_bw_gdr 380"], IB_BW[:2], ""),
        (["check_ib_bw_gdr 380"], IB_BW[:1], ""),
        (["check_gpu_count 8", "check_ib_bw_non_gdr 78 65536"], ["check_ib_bw_non_gdr: passed for IB=mlx5_0"], ""),
        (["check_hw_ib 400 mlx5_0:1", "check_hw_ib 100 mlx5_an0:1", "check_ib_bw_gdr 360"], IB_BW[:1], ""),
        (["check_nvlink_status 8"], LINES["check_nvlink_status"][:7], "7 of 8"),
        (["check_nccl_allreduce 460 1 16G", "check_nccl_allreduce 9 1 1M"], ["check_nccl_allreduce: passed"], ""),
    ],
)
def test_the_configuration_shows_how_many_devices_there_are(
    tmp_path: Path, checks: list[str], lines: list[str], of: str
) -> None:
    (name,) = {check.split()[0] for check in checks} - {"check_gpu_count", "check_hw_ib"}
    text = log({name: lines}, checks)
    code, verdict = judge(tmp_path, text, "".join(f"* || {check}\n" for check in checks))
    assert (code, of in verdict) == (2 if of else 0, True), verdict


def test_before_v0_4_1_no_test_reports_success(tmp_path: Path) -> None:
    """check_nvme_count came later, and the tests in this image show what they print."""
    old = [check for check in CHECKS if "nvme" not in check]
    lines = "".join(f"* || {check}\n" for check in old)
    assert judge(tmp_path, log({}, old, other=False), lines)[0] == 0
    assert judge(tmp_path, log({}, other=False), CONFIGURATION)[0] == 2
    (tmp_path / "azure_common.nhc").write_text('echo "SUCCESS:  $NAME:  Health check passed:  $*"')
    assert judge(tmp_path, log({}, old, other=False), lines, NHC_TESTS=str(tmp_path))[0] == 2
