"""Health checks read the node's log, with times that aznhc understands, and errors that it does not know."""

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
    """rsyslog's format is `iso` since Ubuntu 24.04, or the traditional one."""
    time = (now or datetime.now().astimezone()) - timedelta(hours=hours)
    return time.isoformat(timespec="microseconds") if style == "iso" else f"{time:%b} {time.day:2d} {time:%T}"


def convert(tmp_path: Path, **logs: str) -> tuple[int, str, str, str]:
    """Returns node-log.sh's exit code and output, the log for aznhc's checks, and earlier runs' history."""
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
def test_converts_the_times_of_gpu_errors_for_aznhc(tmp_path: Path, style: str, name: str) -> None:
    now = datetime.now().astimezone()
    old, new = (stamp(hours, style, now) for hours in (9, 1))
    text = f"{old} n kernel: {XID}\n{new} n kernel: {XID}\n{new} n kernel: other\n"
    code, _, syslog, _ = convert(tmp_path, **{"syslog" if name == "syslog_1" else name: "", name: text})
    assert code == 0
    assert syslog == f"{stamp(1, 'traditional', now)} n kernel: {XID}\n"


@pytest.mark.parametrize("program", ["kernel", "python3"])
def test_reads_the_kernels_errors_in_a_log_of_rfc_5424(tmp_path: Path, program: str) -> None:
    text = f"<4>1 {stamp(1, 'iso')} n {program} - - - {XID}\n"
    code, _, syslog, _ = convert(tmp_path, syslog=text)
    assert (code, syslog.endswith(f" n kernel - - - {XID}\n")) == (0, program == "kernel")


def test_a_date_without_a_year_is_in_the_past(tmp_path: Path) -> None:
    assert convert(tmp_path, syslog=f"{stamp(-72, 'traditional')} n kernel: {XID}\n")[2] == ""


def test_adds_the_first_loss_of_a_link_that_was_lost_twice_to_the_history(tmp_path: Path) -> None:
    times = [stamp(hours, "iso") for hours in (5, 4, 3)]
    links = ["ib3", "ib5", "ib3"]
    text = "".join(f"{time} n {LOST.format(link)}\n" for time, link in zip(times, links, strict=True))
    _, _, syslog, history = convert(tmp_path, syslog=text)
    assert [line.split()[-3] for line in syslog.splitlines()] == ["ib3:", "ib3:"]
    assert history.startswith("Linkflap event:")
    assert history.removeprefix("Linkflap event:").split() == syslog.split()[:3]


def test_adds_an_earlier_time_for_a_link_that_was_lost_twice_within_a_second(tmp_path: Path) -> None:
    """aznhc counts two events in one second as one."""
    time = datetime.now().astimezone().replace(microsecond=0) - timedelta(hours=1)
    times = [(time + timedelta(milliseconds=part)).isoformat(timespec="microseconds") for part in (1, 9)]
    text = "".join(f"{time} n {LOST.format('ib3')}\n" for time in times)
    _, _, _, history = convert(tmp_path, syslog=text)
    before = time - timedelta(seconds=1)
    assert history == f"Linkflap event:{before:%b} {before.day} {before:%T}\n"


@pytest.mark.parametrize(
    "events", [((3, "ib3"),), ((9, "ib3"), (3, "ib3")), ((3, "ib3"), (2, "ib4")), ((3, "eth0"), (2, "eth0"))]
)
def test_a_link_that_was_lost_once_is_not_flapping(tmp_path: Path, events: tuple[tuple[int, str], ...]) -> None:
    text = "".join(f"{stamp(hours, 'iso')} n {LOST.format(link)}\n" for hours, link in events)
    assert convert(tmp_path, syslog=text) == (0, "", "", "")


@pytest.mark.parametrize("logs", [{}, {"syslog": ""}, {"messages": ""}, {"syslog": "", "syslog_1": ""}])
def test_reports_a_missing_or_empty_log(tmp_path: Path, logs: dict[str, str]) -> None:
    code, printed, *_ = convert(tmp_path, **logs)
    assert (code, printed) == (1, f"the node's log in {tmp_path}/log (syslog or messages) is missing or empty\n")


@pytest.mark.parametrize(
    "time", ["Sunday", "Nov 22 2026 15:35:55", "Nov 22 15:35", "Nov 22 2026", "2026-11-22 15:35:55"]
)
def test_reports_an_unreadable_time(tmp_path: Path, time: str) -> None:
    """A traditional time with a year is unreadable too, since the year looks like a time."""
    entry = f"{time} n kernel: {XID}"
    code, printed, *_ = convert(tmp_path, syslog=f"{entry}\n")
    assert (code, printed) == (1, f"the time of this entry of the node's log cannot be read: {entry}\n")


@case_table(__file__, "noted")
def test_logs_gpu_errors_that_aznhc_does_not_know_until_the_next_boot(
    tmp_path: Path, lines: list[tuple[float, str]], noted: str
) -> None:
    text = "".join(f"{stamp(hours, 'iso')} n kernel: NVRM: Xid (PCI:0008:01:00): {line}\n" for hours, line in lines)
    _, _, _, history = convert(tmp_path, syslog=text)
    assert (noted in history) if noted else history == ""
    rebooted = f"{stamp(0.5, 'iso')} n kernel: Linux version 6.8\n"
    (tmp_path / "again").mkdir()
    assert convert(tmp_path / "again", syslog=text + rebooted)[3] == ""


@case_table(__file__, "without_xid")
@pytest.mark.parametrize(
    "after", ["", 'x[9]: msg="kernel: Linux version 6.8"', "kernel: [ 0.0][    T0] Linux version 6"]
)
def test_logs_errors_without_an_xid_until_the_next_boot(tmp_path: Path, line: str, after: str) -> None:
    text = "".join(f"{stamp(1, 'iso')} n {each}\n" for each in (line, after) if each)
    _, _, _, history = convert(tmp_path, syslog=text)
    noted = history.startswith("ERROR:  nhc:  Health check failed:  check_gpu_xid: ")
    assert noted == (not after.startswith("kernel"))


def test_ignores_the_output_of_jobs(tmp_path: Path) -> None:
    needs = "NVRM: Xid (PCI:0008:01:00): 154, changed from 0x0 (None) to 0x2 (OS Reboot)"
    text = "".join(f"{stamp(1, 'iso')} n python3[1]: {line}\n" for line in (XID, needs, f"kernel: {XID}"))
    assert convert(tmp_path, syslog=text) == (0, "", "", "")
