"""How the log of Azure's node health checks is judged: lines as mej/nhc and aznhc write them."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from simulator.paths import ROOT

VERDICT = ROOT / "docker" / "aksnhc" / "verdict.sh"
CONFIGURATION = "# a size\n * || check_gpu_count 8\n * || check_ib_bw_gdr 380\n"
RAN = 'Running check:  "check_gpu_count 8"\nRunning check:  "check_ib_bw_gdr 380"\n'
COUNT = "ERROR:  nhc:  Health check failed:  check_gpu_count: Expected to see 8 but found 7. FaultCode: NHC2009\n"
SLOW = "ERROR:  nhc:  Health check failed:  check_ib_bw_gdr: expected > 380 Gbps. FaultCode: NHC2003\n"
NOT_RUN = "ERROR:  nhc:  Health check failed:  check_ib_bw_gdr: returned error code 1. FaultCode: NHCNA\n"
MISSPELT = "ERROR:  nhc:  Health check failed:  check_hw_topology: SKU x is not supported. FauleCode: NHCNA\n"
TIMEOUT = 'ERROR:  nhc:  Health check failed:  Script timed out while executing "check_ib_bw_gdr 380".\n'
ABSENT = "/usr/sbin/nhc: line 640: check_gpu_count: command not found\n"


def judge(tmp_path: Path, log: str, configuration: str = CONFIGURATION) -> tuple[int, str]:
    (tmp_path / "log").write_text(log)
    (tmp_path / "conf").write_text(configuration)
    done = subprocess.run(
        ["bash", str(VERDICT), str(tmp_path / "log"), str(tmp_path / "conf")],
        env={"PATH": os.environ["PATH"], "NODE_NAME": "n"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert not done.stderr
    return done.returncode, done.stdout.strip()


def test_all_checks_ran_and_none_complained(tmp_path: Path) -> None:
    assert judge(tmp_path, RAN) == (0, "VERDICT: PASS; node=n checks=2/2")


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
