"""What the health checks take from the node's log: entries with times that aznhc reads, and errors it does not know."""

from __future__ import annotations

import subprocess
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from simulator.host.paths import ROOT
from tests.support.case_files import case_table

NODE_LOG = ROOT / "docker/aksnhc/node-log.sh"
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
    command = ["bash", str(NODE_LOG), str(folder), "6", str(syslog), str(history)]
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


@pytest.mark.parametrize("program", ["kernel", "python3"])
def test_of_a_log_of_rfc_5424_the_kernels_errors_are_handed_over(tmp_path: Path, program: str) -> None:
    text = f"<4>1 {stamp(1, 'iso')} n {program} - - - {XID}\n"
    code, _, syslog, _ = hand_over(tmp_path, syslog=text)
    assert (code, syslog.endswith(f" n kernel - - - {XID}\n")) == (0, program == "kernel")


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


@case_table(__file__, "noted")
def test_gpu_errors_that_aznhc_does_not_know_are_noted(
    tmp_path: Path, lines: list[tuple[float, str]], noted: str
) -> None:
    text = "".join(f"{stamp(hours, 'iso')} n kernel: NVRM: Xid (PCI:0008:01:00): {line}\n" for hours, line in lines)
    _, _, _, history = hand_over(tmp_path, syslog=text)
    assert (noted in history) if noted else history == ""
    rebooted = f"{stamp(0.5, 'iso')} n kernel: Linux version 6.8\n"
    (tmp_path / "again").mkdir()
    assert hand_over(tmp_path / "again", syslog=text + rebooted)[3] == ""


@case_table(__file__, "without_xid")
@pytest.mark.parametrize(
    "after", ["", 'x[9]: msg="kernel: Linux version 6.8"', "kernel: [ 0.0][    T0] Linux version 6"]
)
def test_errors_without_an_xid_are_noted_until_the_next_boot(tmp_path: Path, line: str, after: str) -> None:
    text = "".join(f"{stamp(1, 'iso')} n {each}\n" for each in (line, after) if each)
    _, _, _, history = hand_over(tmp_path, syslog=text)
    noted = history.startswith("ERROR:  nhc:  Health check failed:  check_gpu_xid: ")
    assert noted == (not after.startswith("kernel"))


def test_what_a_job_prints_is_not_handed_over(tmp_path: Path) -> None:
    needs = "NVRM: Xid (PCI:0008:01:00): 154, changed from 0x0 (None) to 0x2 (OS Reboot)"
    text = "".join(f"{stamp(1, 'iso')} n python3[1]: {line}\n" for line in (XID, needs, f"kernel: {XID}"))
    assert hand_over(tmp_path, syslog=text) == (0, "", "", "")
