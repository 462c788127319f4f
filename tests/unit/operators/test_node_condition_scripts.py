"""The checks of node-problem-detector that read the node's log, its counters and nvidia-smi, in all forms of these."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.case_files import read, rows
from tests.unit.operators.condition_scripts import OK, PROBLEM, log, run

CASES = read(__file__, "xids")


XID = "kernel: NVRM: Xid (PCI:0008:01:00): "
GPU = "154 of GPU 0008:01:00: recovery action "


@pytest.mark.parametrize(("lines", "critical", "warning"), rows(CASES["forms"]))
@pytest.mark.parametrize(
    "style",
    ["{:%Y-%m-%dT%H:%M:%S.000000+00:00} n ", "{:%Y-%m-%dT%H:%M:%SZ} n ", "{:%b %e %H:%M:%S} n ", "{:%b %e %T.5} n "],
)
def test_xids_in_all_their_forms(tmp_path: Path, lines: list[str], critical: str, warning: str, style: str) -> None:
    node = log(tmp_path, *((0.2, line) for line in lines), style=style)
    for severity, words in (("critical", critical), ("warning", warning)):
        code, message = run("gpu-xid.sh", severity, KERNEL_LOGS=str(node), TZ="UTC")
        expected = f"Xid {words}" if words else f"no Xid that is {severity}"
        assert (code, message[: len(expected)]) == (PROBLEM if words else OK, expected)


@pytest.mark.parametrize(("style", "lines", "critical", "warning"), rows(CASES["RFC 5424"]))
def test_xids_in_a_log_of_rfc_5424(tmp_path: Path, style: str, lines: list[str], critical: str, warning: str) -> None:
    style = style.replace("{}", "{:%Y-%m-%dT%H:%M:%S.000000+00:00}")
    test_xids_in_all_their_forms(tmp_path, lines, critical, warning, style)


def test_old_errors_hold_if_they_are_critical_or_the_driver_has_not_taken_them_back(tmp_path: Path) -> None:
    drained = "GPU recovery action changed from 0x0 (None) to 0x4 (Drain and Reset)"
    node = log(tmp_path, (9, f"{XID}149, NETIR_LINK_EVT Fatal XC0"), (8, f"{XID}154, {drained}"), (7, f"{XID}31, mmu"))
    assert run("gpu-xid.sh", "critical", KERNEL_LOGS=str(node)) == (PROBLEM, "Xid 149 of GPU 0008:01:00")
    found = run("gpu-xid.sh", "warning", KERNEL_LOGS=str(node))
    assert found == (PROBLEM, "Xid 154 of GPU 0008:01:00: recovery action 4 (Drain and Reset)")


def test_many_errors_of_jobs_hide_no_critical_one(tmp_path: Path) -> None:
    node = log(tmp_path, (2, f"{XID}79, GPU has fallen off the bus."), *((1.5, f"{XID}31, {n}") for n in range(900)))
    assert run("gpu-xid.sh", "critical", KERNEL_LOGS=str(node)) == (PROBLEM, "Xid 79 of GPU 0008:01:00")
