from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from config.data.skus import catalogue
from simulator.host.paths import ROOT
from tests.support.case_files import case_table, read
from tests.support.sizes import H100
from workloads._lib.aznhc import configuration

CASES = read(__file__, "nhc_logs")


VERDICT = ROOT / "docker/aksnhc/verdict.sh"
CONFIGURATION = "# a size\n * || check_gpu_count 8\n * || check_ib_bw_gdr 380\n"
FIRST, SECOND = 'Running check:  "check_gpu_count 8"\n', 'Running check:  "check_ib_bw_gdr 380"\n'
RAN = FIRST + SECOND
IB_BW = [
    f"check_ib_bw_gdr: IB write bandwidth test IB_WRITE_BW passed for IB=mlx5_{hca}, IB BW=39{hca}.1 Gbps"
    for hca in range(8)
]
ENDED = "Node Health Check completed successfully (9s).\n"
FAILED = "ERROR:  nhc:  1 health checks failed.\n"
ERROR = "ERROR:  nhc:  Health check failed:  "
COUNT = "ERROR:  nhc:  Health check failed:  check_gpu_count: Expected to see 8 but found 7. FaultCode: NHC2009\n"
SLOW = "ERROR:  nhc:  Health check failed:  check_ib_bw_gdr: expected > 380 Gbps. FaultCode: NHC2003\n"


def judge(tmp_path: Path, log: str, configuration: str = CONFIGURATION, **environment: str) -> tuple[int, str]:
    (tmp_path / "log").write_text(log)
    (tmp_path / "conf").write_text(configuration)
    done = subprocess.run(
        ["bash", str(VERDICT), str(tmp_path / "log"), str(tmp_path / "conf")],
        env={"PATH": os.environ["PATH"], "NODE_NAME": "n", **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert not done.stderr
    return done.returncode, done.stdout.strip()


def stamped(log: str, prefix: str) -> str:
    return "".join(f"{prefix.format(index)}{line}\n" for index, line in enumerate(log.splitlines()))


@case_table(__file__, "prefixes")
def test_ignores_prefixes_of_lines(tmp_path: Path, prefix: str) -> None:
    passed = (0, "VERDICT: PASS; node=n checks=2/2")
    assert judge(tmp_path, stamped(RAN + ENDED, prefix)) == passed
    assert judge(tmp_path, stamped(RAN + ENDED, prefix).replace("\n", "\r\n")) == passed
    code, verdict = judge(tmp_path, stamped(FIRST + COUNT + SECOND + FAILED, prefix))
    assert (code, verdict.partition(":")[2][:30]) == (1, " FAIL check_gpu_count: Expecte")


def test_the_last_check_is_complete_if_it_reports_success(tmp_path: Path) -> None:
    """A check that reports each device separately is not."""
    success = "SUCCESS:  nhc:  Health check passed:  {}: done\n"
    last = FIRST + success.format("check_gpu_count")
    assert judge(tmp_path, last, CONFIGURATION.splitlines()[1])[1] == "VERDICT: PASS; node=n checks=1/1"
    last = SECOND + "".join(map(success.format, IB_BW)) + last
    assert judge(tmp_path, last) == (0, "VERDICT: PASS; node=n checks=2/2")
    for log in (RAN + success.format("check_gpu_count"), RAN + success.format("check_ib_bw_gdr")):
        assert judge(tmp_path, log)[0] == 2


@case_table(__file__, "configurations")
def test_ignores_comments_and_checks_of_other_hosts(tmp_path: Path, configuration: str) -> None:
    assert judge(tmp_path, RAN + ENDED, configuration) == (0, "VERDICT: PASS; node=n checks=2/2")


@case_table(__file__, "unknown", file="nhc_logs")
def test_an_incomplete_log_is_unknown(tmp_path: Path, log: str, why: str) -> None:
    code, verdict = judge(tmp_path, log.format(ran=RAN, ended=ENDED))
    assert code == 2, verdict
    assert verdict.startswith(f"VERDICT: UNKNOWN {why}")


@case_table(__file__, "fault", file="nhc_logs")
def test_finds_faults(tmp_path: Path, log: str, why: str) -> None:
    code, verdict = judge(tmp_path, log.format(ran=RAN, ended=ENDED))
    assert code == 1, verdict
    assert verdict.startswith(f"VERDICT: FAIL {why}")


@case_table(__file__, "clocks")
def test_clocks_slowed_by_the_hardware_are_a_fault(tmp_path: Path, reason: str, code: int, names: str) -> None:
    """check_gpu_clock_throttling only warns."""
    found, verdict = judge(tmp_path, f"{FIRST}Warning: GPU 3 throttled, reason={reason}\n{SECOND}{ENDED}")
    assert found == code, verdict
    text = f"check_gpu_clock_throttling: GPU 3 throttled, reason={reason}"
    expected = ("PASS", f"FAIL {text} ({names})", f"UNKNOWN {text}")[code]
    assert verdict == f"VERDICT: {expected}; node=n checks=2/2"


def test_lists_only_checks_that_found_a_fault_as_failed(tmp_path: Path) -> None:
    hung = FIRST + COUNT + SECOND + ERROR + "Script timed out.\n"
    stopped = FIRST + COUNT + SECOND + ERROR + "Terminated by signal SIGTERM.\n"
    for log, failed in ((hung, "check_gpu_count 8\ncheck_ib_bw_gdr 380\n"), (stopped, "check_gpu_count 8\n")):
        (tmp_path / "log").write_text(stamped(log, "2026-11-26T10:00:00Z "))
        command = ["bash", str(VERDICT), "--failed", str(tmp_path / "log")]
        assert subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout == failed


def test_reports_the_first_fault_and_counts_the_others(tmp_path: Path) -> None:
    _, verdict = judge(tmp_path, RAN + COUNT + SLOW)
    assert verdict == (
        "VERDICT: FAIL check_gpu_count: Expected to see 8 but found 7. FaultCode: NHC2009 (and 1 more); "
        "node=n checks=2/2"
    )


@pytest.mark.parametrize("before", ["-e ", "\\t "])
def test_removes_options_of_echo_from_the_verdict(tmp_path: Path, before: str) -> None:
    """nhc logs the -e of `die 1 -e ...` (azure_gpu_count.nhc) and the \\t of azure_gpu_bandwidth.nhc."""
    _, verdict = judge(tmp_path, RAN + COUNT.replace("check_gpu_count:", f"{before}check_gpu_count:"))
    assert verdict.startswith("VERDICT: FAIL check_gpu_count: Expected")


def test_a_configuration_without_checks_is_unknown(tmp_path: Path) -> None:
    assert judge(tmp_path, "", "# nothing\n")[0] == 2


@pytest.mark.parametrize("line", CASES["a program fails"])
def test_a_check_with_a_failing_program_is_unknown(tmp_path: Path, line: str) -> None:
    code, verdict = judge(tmp_path, FIRST + line + "\n" + SECOND + ENDED)
    assert (code, verdict.partition(";")[0]) == (2, f"VERDICT: UNKNOWN check_gpu_count 8: its script failed: {line}")


@pytest.mark.parametrize("line", CASES["healthy"])
def test_accepts_the_log_lines_of_healthy_nodes(tmp_path: Path, line: str) -> None:
    assert judge(tmp_path, f"{FIRST}{line}\n{SECOND}{line}\n{ENDED}")[0] == 0


def test_ignores_a_byte_order_mark(tmp_path: Path) -> None:
    assert judge(tmp_path, f"\ufeff{RAN}{ENDED}")[0] == 0


LINES = {
    "check_gpu_bw": ["check_nvBW_gpu_bw: GPU bandwidth Tests with NVBandwidth passed", "check_gpu_bw: Tests Passed"],
    "check_gpu_xid": ["check_gpu_xid:  GPU XID error check passed."],
    "check_ib_bw_gdr": IB_BW,
    "check_nvlink_status": [f"check_nvlink_status: GPU {gpu} has all nvlinks active." for gpu in range(8)],
    **{f"check_hw_{name}": [] for name in ("cpuinfo", "eth", "ib", "physmem", "swap")},
    **{f"check_{name}": [] for name in ("gpu_clock_throttling", "ib_link_flapping")},
}
"""The output of tests that do not print exactly one line with their name."""
H100_CHECKS = configuration(catalogue()[H100], "/opt/topology.xml")
CHECKS = [line.partition("|| ")[2] for line in H100_CHECKS.splitlines()[1:]]
ALL = f"{len(CHECKS)}/{len(CHECKS)}"


def log(lines: dict[str, list[str]], checks: list[str] = CHECKS, *, other: bool = True) -> str:
    """`lines` replaces these checks' output; without `other`, the others print nothing."""
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
def test_checks_that_report_success_pass(tmp_path: Path, lines: dict[str, list[str]]) -> None:
    assert judge(tmp_path, log(lines), H100_CHECKS) == (0, f"VERDICT: PASS; node=n checks={ALL}")


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
    code, verdict = judge(tmp_path, log({name: lines}), H100_CHECKS)
    words = "the log does not show (SUCCESS) that this passed"
    assert (code, verdict) == (2, f"VERDICT: UNKNOWN {words}: {check}, {of}; node=n checks={ALL}")


@pytest.mark.parametrize(
    ("checks", "lines", "of"),
    [
        (["check_gpu_count 8", "check_ib_bw_gdr 380"], IB_BW[:7], "7 of 8"),  # GPUDirect RDMA: a GPU per HCA
        (["check_gpu_count 2", "check_ib_bw_gdr 380"], IB_BW[:2], ""),
        (["check_ib_bw_gdr 380"], IB_BW[:1], ""),
        (["check_gpu_count 8", "check_ib_bw_non_gdr 78 65536"], ["check_ib_bw_non_gdr: passed for IB=mlx5_0"], ""),
        (["check_hw_ib 400 mlx5_0:1", "check_hw_ib 100 mlx5_an0:1", "check_ib_bw_gdr 360"], IB_BW[:1], ""),
        (["check_nvlink_status 8"], LINES["check_nvlink_status"][:7], "7 of 8"),
        (["check_nccl_allreduce 460 1 16G", "check_nccl_allreduce 9 1 1M"], ["check_nccl_allreduce: passed"], ""),
    ],
)
def test_reads_the_number_of_devices_from_the_configuration(
    tmp_path: Path, checks: list[str], lines: list[str], of: str
) -> None:
    (name,) = {check.split()[0] for check in checks} - {"check_gpu_count", "check_hw_ib"}
    text = log({name: lines}, checks)
    code, verdict = judge(tmp_path, text, "".join(f"* || {check}\n" for check in checks))
    assert (code, of in verdict) == (2 if of else 0, True), verdict


def test_expects_no_success_lines_before_v0_4_1(tmp_path: Path) -> None:
    """A configuration with check_nvme_count, or the image's tests, show a later version."""
    old = [check for check in CHECKS if "nvme" not in check]
    lines = "".join(f"* || {check}\n" for check in old)
    assert judge(tmp_path, log({}, old, other=False), lines)[0] == 0
    assert judge(tmp_path, log({}, other=False), H100_CHECKS)[0] == 2
    (tmp_path / "azure_common.nhc").write_text('echo "SUCCESS:  $NAME:  Health check passed:  $*"')
    assert judge(tmp_path, log({}, old, other=False), lines, NHC_TESTS=str(tmp_path))[0] == 2
