"""How the log of Azure's node health checks is judged: lines as mej/nhc and aznhc write them."""

from __future__ import annotations

import os
import subprocess
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from simulator.host.paths import ROOT

SCRIPTS = ROOT / "docker" / "aksnhc"
VERDICT = SCRIPTS / "verdict.sh"
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


XID = "NVRM: Xid (PCI:0001:00:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
LOST = "systemd-networkd[622]: {}: Lost carrier"


def stamp(hours: float, style: str, now: datetime | None = None) -> str:
    """A time so many hours ago as rsyslog writes it: `iso` since Ubuntu 24.04, else the traditional one."""
    time = (now or datetime.now().astimezone()) - timedelta(hours=hours)
    return time.isoformat(timespec="microseconds") if style == "iso" else f"{time:%b} {time.day:2d} {time:%T}"


def hand_over(tmp_path: Path, **logs: str) -> tuple[int, str, str, str]:
    """Of node-log.sh: exit code, what it printed, the log for aznhc's checks, and the events of earlier runs."""
    folder = tmp_path / "log"
    folder.mkdir()
    for name, text in logs.items():
        (folder / name.replace("_", ".")).write_text(text)
    syslog, history = tmp_path / "syslog", tmp_path / "history"
    history.touch()
    command = ["bash", str(SCRIPTS / "node-log.sh"), str(folder), "6", str(syslog), str(history)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert not done.stderr
    return done.returncode, done.stdout, syslog.read_text() if syslog.exists() else "", history.read_text()


@pytest.mark.parametrize("style", ["iso", "traditional"])
@pytest.mark.parametrize("name", ["syslog", "messages", "syslog_1"])
def test_gpu_errors_come_with_times_that_aznhc_reads(tmp_path: Path, style: str, name: str) -> None:
    now = datetime.now().astimezone()
    old, new = (stamp(hours, style, now) for hours in (9, 1))
    text = f"{old} n kernel: {XID}\n{new} n kernel: {XID}\n{new} n kernel: other\n"
    code, _, syslog, _ = hand_over(tmp_path, **{"syslog" if name == "syslog_1" else name: "", name: text})
    assert code == 0
    assert syslog == f"{stamp(1, 'traditional', now)} n kernel: {XID}\n"


def test_a_date_without_a_year_is_never_in_the_future(tmp_path: Path) -> None:
    assert hand_over(tmp_path, syslog=f"{stamp(-72, 'traditional')} n kernel: {XID}\n")[2] == ""


def test_a_link_that_was_lost_twice_is_compared_with_its_first_time(tmp_path: Path) -> None:
    times = [stamp(hours, "iso") for hours in (5, 4, 3)]
    links = ["ib3", "ib5", "ib3"]
    text = "".join(f"{time} n {LOST.format(link)}\n" for time, link in zip(times, links, strict=True))
    _, _, syslog, history = hand_over(tmp_path, syslog=text)
    assert [line.split()[-3] for line in syslog.splitlines()] == ["ib3:", "ib3:"]
    assert history.startswith("Linkflap event:")
    assert history.removeprefix("Linkflap event:").split() == syslog.split()[:3]


def test_a_link_that_was_lost_twice_within_one_second_is_compared_with_the_second_before(tmp_path: Path) -> None:
    """aznhc takes events of the same second for one."""
    time = datetime.now().astimezone().replace(microsecond=0) - timedelta(hours=1)
    times = [(time + timedelta(milliseconds=part)).isoformat(timespec="microseconds") for part in (1, 9)]
    text = "".join(f"{time} n {LOST.format('ib3')}\n" for time in times)
    _, _, _, history = hand_over(tmp_path, syslog=text)
    before = time - timedelta(seconds=1)
    assert history == f"Linkflap event:{before:%b} {before.day} {before:%T}\n"


@pytest.mark.parametrize(
    "events", [((3, "ib3"),), ((9, "ib3"), (3, "ib3")), ((3, "ib3"), (2, "ib4")), ((3, "eth0"), (2, "eth0"))]
)
def test_links_that_were_lost_once_are_not_flapping(tmp_path: Path, events: tuple[tuple[int, str], ...]) -> None:
    text = "".join(f"{stamp(hours, 'iso')} n {LOST.format(link)}\n" for hours, link in events)
    assert hand_over(tmp_path, syslog=text) == (0, "", "", "")


@pytest.mark.parametrize("logs", [{}, {"syslog": ""}, {"messages": ""}, {"syslog": "", "syslog_1": ""}])
def test_no_log_and_an_empty_one_are_told(tmp_path: Path, logs: dict[str, str]) -> None:
    code, printed, *_ = hand_over(tmp_path, **logs)
    assert (code, printed) == (1, f"the node has no log in {tmp_path}/log (syslog or messages), or an empty one\n")


@pytest.mark.parametrize(
    "time", ["Sunday", "Nov 22 2026 15:35:55", "Nov 22 15:35", "Nov 22 2026", "2026-11-22 15:35:55"]
)
def test_a_time_that_cannot_be_read_is_told(tmp_path: Path, time: str) -> None:
    """Also one with a year, in which a year could be taken for a time."""
    entry = f"{time} n kernel: {XID}"
    code, printed, *_ = hand_over(tmp_path, syslog=f"{entry}\n")
    assert (code, printed) == (1, f"the time of this entry of the node's log cannot be read: {entry}\n")
