"""How the log of Azure's node health checks is judged: lines as mej/nhc and aznhc write them."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from simulator.host.paths import ROOT
from tests.support.case_files import case_table, read, rows

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
NOT_RUN = "ERROR:  nhc:  Health check failed:  check_ib_bw_gdr: returned error code 1. FaultCode: NHCNA\n"
MISSPELT = "ERROR:  nhc:  Health check failed:  check_hw_topology: SKU x is not supported. FauleCode: NHCNA\n"
TIMEOUT = 'ERROR:  nhc:  Health check failed:  Script timed out while executing "check_ib_bw_gdr 380".\n'
ABSENT = "/usr/sbin/nhc: line 640: check_gpu_count: command not found\n"


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
def test_prefixes_hide_neither_a_pass_nor_a_fault(tmp_path: Path, prefix: str) -> None:
    passed = (0, "VERDICT: PASS; node=n checks=2/2")
    assert judge(tmp_path, stamped(RAN + ENDED, prefix)) == passed
    assert judge(tmp_path, stamped(RAN + ENDED, prefix).replace("\n", "\r\n")) == passed
    code, verdict = judge(tmp_path, stamped(FIRST + COUNT + SECOND + FAILED, prefix))
    assert (code, verdict.partition(":")[2][:30]) == (1, " FAIL check_gpu_count: Expecte")


def test_the_last_check_has_ended_if_it_reports_success(tmp_path: Path) -> None:
    """Except one that reports each device on its own."""
    success = "SUCCESS:  nhc:  Health check passed:  {}: done\n"
    last = FIRST + success.format("check_gpu_count")
    assert judge(tmp_path, last, CONFIGURATION.splitlines()[1])[1] == "VERDICT: PASS; node=n checks=1/1"
    last = SECOND + "".join(map(success.format, IB_BW)) + last
    assert judge(tmp_path, last) == (0, "VERDICT: PASS; node=n checks=2/2")
    for log in (RAN + success.format("check_gpu_count"), RAN + success.format("check_ib_bw_gdr")):
        assert judge(tmp_path, log)[0] == 2


@case_table(__file__, "configurations")
def test_comments_and_checks_of_other_hosts_are_not_expected(tmp_path: Path, configuration: str) -> None:
    assert judge(tmp_path, RAN + ENDED, configuration) == (0, "VERDICT: PASS; node=n checks=2/2")


@pytest.mark.parametrize(("log", "why"), rows(CASES["unknown"]))
def test_a_log_that_does_not_show_each_check_is_unknown(tmp_path: Path, log: str, why: str) -> None:
    code, verdict = judge(tmp_path, log)
    assert code == 2, verdict
    assert verdict.startswith(f"VERDICT: UNKNOWN {why}")


@pytest.mark.parametrize(("log", "why"), rows(CASES["fault"]))
def test_a_fault_is_seen_in_all_its_words(tmp_path: Path, log: str, why: str) -> None:
    code, verdict = judge(tmp_path, log)
    assert code == 1, verdict
    assert verdict.startswith(f"VERDICT: FAIL {why}")


@case_table(__file__, "clocks")
def test_clocks_that_the_hardware_slows_down_are_a_fault(tmp_path: Path, reason: str, code: int, names: str) -> None:
    """check_gpu_clock_throttling itself only warns."""
    found, verdict = judge(tmp_path, f"{FIRST}Warning: GPU 3 throttled, reason={reason}\n{SECOND}{ENDED}")
    assert found == code, verdict
    text = f"check_gpu_clock_throttling: GPU 3 throttled, reason={reason}"
    said = ("PASS", f"FAIL {text} ({names})", f"UNKNOWN {text}")[code]
    assert verdict == f"VERDICT: {said}; node=n checks=2/2"


def test_only_checks_that_found_a_fault_are_named_as_failed(tmp_path: Path) -> None:
    hung = FIRST + COUNT + SECOND + ERROR + "Script timed out.\n"
    stopped = FIRST + COUNT + SECOND + ERROR + "Terminated by signal SIGTERM.\n"
    for log, failed in ((hung, "check_gpu_count 8\ncheck_ib_bw_gdr 380\n"), (stopped, "check_gpu_count 8\n")):
        (tmp_path / "log").write_text(stamped(log, "2026-11-26T10:00:00Z "))
        command = ["bash", str(VERDICT), "--failed", str(tmp_path / "log")]
        assert subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout == failed


@pytest.mark.parametrize("log", [COUNT, SLOW, TIMEOUT, COUNT + NOT_RUN, NOT_RUN + SLOW])
def test_a_fault_fails_the_node_whatever_else_could_not_run(tmp_path: Path, log: str) -> None:
    code, verdict = judge(tmp_path, RAN + log)
    assert code == 1
    assert verdict.startswith("VERDICT: FAIL ")


def test_the_first_fault_is_named_and_the_others_counted(tmp_path: Path) -> None:
    _, verdict = judge(tmp_path, RAN + COUNT + SLOW)
    assert verdict == (
        "VERDICT: FAIL check_gpu_count: Expected to see 8 but found 7. FaultCode: NHC2009 (and 1 more); "
        "node=n checks=2/2"
    )


@pytest.mark.parametrize("before", ["-e ", "\\t "])
def test_what_aznhc_means_for_echo_is_no_part_of_the_verdict(tmp_path: Path, before: str) -> None:
    """Of `die 1 -e ...` (azure_gpu_count.nhc) and a tab (azure_gpu_bandwidth.nhc) nhc's log has the signs."""
    _, verdict = judge(tmp_path, RAN + COUNT.replace("check_gpu_count:", f"{before}check_gpu_count:"))
    assert verdict.startswith("VERDICT: FAIL check_gpu_count: Expected")


@pytest.mark.parametrize("log", [NOT_RUN, MISSPELT, ABSENT])
def test_what_could_not_run_says_nothing_of_the_node(tmp_path: Path, log: str) -> None:
    code, verdict = judge(tmp_path, RAN + log)
    assert code == 2
    assert verdict.startswith("VERDICT: UNKNOWN check_")


@pytest.mark.parametrize(
    ("log", "configuration"), [("", CONFIGURATION), (RAN.splitlines()[0], CONFIGURATION), ("", "# nothing\n")]
)
def test_a_run_that_ended_early_says_nothing_of_the_node(tmp_path: Path, log: str, configuration: str) -> None:
    """nhc ends with 0 without a configuration, and is killed when its time is over."""
    code, verdict = judge(tmp_path, log, configuration)
    assert code == 2
    assert verdict.startswith("VERDICT: UNKNOWN ")


@pytest.mark.parametrize("line", CASES["a program fails"])
def test_a_check_in_which_a_program_fails_never_passes(tmp_path: Path, line: str) -> None:
    code, verdict = judge(tmp_path, FIRST + line + "\n" + SECOND + ENDED)
    assert (code, verdict.partition(";")[0]) == (2, f"VERDICT: UNKNOWN check_gpu_count 8: its script failed: {line}")


@pytest.mark.parametrize("line", CASES["healthy"])
def test_what_healthy_nodes_log_passes(tmp_path: Path, line: str) -> None:
    assert judge(tmp_path, f"{FIRST}{line}\n{SECOND}{line}\n{ENDED}")[0] == 0


def test_a_byte_order_mark_is_no_other_node(tmp_path: Path) -> None:
    assert judge(tmp_path, f"\ufeff{RAN}{ENDED}")[0] == 0
