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
FIRST, SECOND = 'Running check:  "check_gpu_count 8"\n', 'Running check:  "check_ib_bw_gdr 380"\n'
RAN = FIRST + SECOND
ENDED = "Node Health Check completed successfully (9s).\n"
FAILED = "ERROR:  nhc:  1 health checks failed.\n"
ERROR = "ERROR:  nhc:  Health check failed:  "
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


def stamped(log: str, prefix: str) -> str:
    return "".join(f"{prefix.format(index)}{line}\n" for index, line in enumerate(log.splitlines()))


@pytest.mark.parametrize(
    "prefix",
    [
        "",
        "2026-11-26T10:00:0{}.123456789Z ",  # kubectl logs --timestamps
        "[pod/health-check-0-abcde/health-check] ",  # kubectl logs --prefix
        "2026-11-26T10:00:0{}Z stdout F ",  # the log file of a container runtime
        "health-check-0-abcde health-check › \033[32m",  # stern
        "Nov 26 10:00:0{} n nhc[7]: ",  # syslog
        "[173261640{}] - ",  # nhc -d
    ],
)
def test_prefixes_hide_neither_a_pass_nor_a_fault(tmp_path: Path, prefix: str) -> None:
    passed = (0, "VERDICT: PASS; node=n checks=2/2")
    assert judge(tmp_path, stamped(RAN + ENDED, prefix)) == passed
    assert judge(tmp_path, stamped(RAN + ENDED, prefix).replace("\n", "\r\n")) == passed
    code, verdict = judge(tmp_path, stamped(FIRST + COUNT + SECOND + FAILED, prefix))
    assert (code, verdict.partition(":")[2][:30]) == (1, " FAIL check_gpu_count: Expecte")


def test_the_last_check_has_ended_if_it_reports_success(tmp_path: Path) -> None:
    """Except one that reports each device on its own."""
    success = "SUCCESS:  nhc:  Health check passed:  {}: done\n"
    last = SECOND + FIRST + success.format("check_gpu_count")
    assert judge(tmp_path, last) == (0, "VERDICT: PASS; node=n checks=2/2")
    for log in (RAN + success.format("check_gpu_count"), RAN + success.format("check_ib_bw_gdr")):
        assert judge(tmp_path, log)[0] == 2


@pytest.mark.parametrize(
    "configuration",
    [
        CONFIGURATION + "  # * || check_hw_ib 400 mlx5_0:1\nother-node* || check_hw_swap 0kB 0kB 3%\n",
        CONFIGURATION.replace("\n", "\r\n") + "/^x/ || check_hw_swap\n!n || check_hw_eth\n",
        "n||check_gpu_count 8\n/^n$/ || check_ib_bw_gdr 380",
    ],
)
def test_comments_and_checks_of_other_hosts_are_not_expected(tmp_path: Path, configuration: str) -> None:
    assert judge(tmp_path, RAN + ENDED, configuration) == (0, "VERDICT: PASS; node=n checks=2/2")


@pytest.mark.parametrize(
    ("log", "why"),
    [
        (RAN, "nhc did not come to its end, it was at: check_ib_bw_gdr 380"),
        (FIRST + ENDED, "the log does not show (nhc -v) that this ran: check_ib_bw_gdr 380"),
        (FIRST + FIRST + ENDED, "the log does not show (nhc -v) that this ran: check_ib_bw_gdr 380"),
        (FIRST.replace("8", "7") + SECOND + ENDED, "the log does not show (nhc -v) that this ran: check_gpu_count 8"),
        (RAN + RAN + ENDED, "the log is of another run or configuration, too: check_gpu_count 8"),
        ("SUCCESS:  nhc:  Health check passed:  check_gpu_count: 8\n", "the log does not show (nhc -v)"),
        ("pod-a " + FIRST + "pod-b " + SECOND + "pod-b " + ENDED, "the log has lines of several nodes"),
        ("Checking node m\n" + RAN + ENDED, "the log is of another node: m"),
        (RAN + FAILED, "nhc counts failures that the log does not show"),
        (RAN + "check_gpu_xid: /azure-nhc/syslog not found. Skipping GPU Xid error test.\n" + ENDED, "check_gpu_xid: "),
        (RAN + "check_ib_link_flapping: No valid log files found. IB Link flapping test skipped.\n" + ENDED, "check"),
        (RAN + "check_nvlink_status: NVLINK is not enabled\n" + ENDED, "check_nvlink_status: NVLINK is not enabled"),
        (RAN + "/etc/nhc/scripts/azure_x.nhc: line 70: bc: command not found\n" + ENDED, "check_ib_bw_gdr"),
        (FIRST + "/etc/nhc/scripts/x.nhc: line 21: [: : integer expression expected\n" + SECOND + ENDED, "check_gpu_c"),
        (RAN + "SUCCESS:  nhc:  Health check passed:  check_nccl_allreduce: test passed,  GB/s\n" + ENDED, "check"),
        (RAN + "SUCCESS:  nhc:  Health check passed:  check_ib_bw_gdr: passed, IB BW= Gbps\n" + ENDED, "check"),
        (RAN + "SUCCESS:  nhc:  Health check passed:  check_nccl_allreduce: test passed, nan GB/s\n" + ENDED, "check"),
        (RAN + "Failed to initialize NVML: Driver/library version mismatch\n" + ENDED, "check_ib_bw_gdr 380: its"),
        (FIRST + "No devices were found\n" + SECOND + ENDED, "check_gpu_count 8: its script failed: No devices"),
        (RAN + "n: Test CUDA failure common.cu:941 'invalid device ordinal'\n" + ENDED, "check_ib_bw_gdr 380"),
        (RAN + "x: error while loading shared libraries: libcudart.so.12: cannot open\n" + ENDED, "check_ib"),
        (RAN + "(standard_in) 1: syntax error\n" + ENDED, "check_ib_bw_gdr 380: its script failed"),
        (FIRST + ERROR + "Terminated by signal SIGTERM.\n", "nhc was stopped: Terminated"),
        (RAN + ERROR + "Terminated by signal SIGINT.\n", "nhc was stopped: Terminated"),
        (RAN + ERROR + "check_gpu_bw: bandwidth not set! NHCNA\n" + FAILED, "check_gpu_bw"),
        (RAN + ERROR + "check_hw_topology: expected\n GPU3\n. FauleCode: NHCNA\n", "check_hw_t"),
    ],
)  # fmt: skip
def test_a_log_that_does_not_show_each_check_is_unknown(tmp_path: Path, log: str, why: str) -> None:
    code, verdict = judge(tmp_path, log)
    assert code == 2, verdict
    assert verdict.startswith(f"VERDICT: UNKNOWN {why}")


@pytest.mark.parametrize(
    ("log", "why"),
    [
        (RAN + ERROR + "Script timed out.\n", "Script timed out. It was at: check_ib_bw_gdr 380"),
        (FIRST + "NHC watchdog timer 9 (500 secs) has expired.  Signaling\n", "Script timed out. It was at: check_"),
        (RAN + COUNT + ENDED, "check_gpu_count: Expected to see 8"),  # a line of success takes no fault away
        (RAN + COUNT.replace("ERROR:  nhc:", "ERROR:  nhc-cron:") + FAILED, "check_gpu_count: Expected to see 8"),
        (RAN + "Node Health Check failed.  Check check_gpu_count 8 returned 1\n", "Check check_gpu_count 8 returned 1"),
        (RAN + "This XID has been reported before: Nov 26 09:00:00 n kernel: Xid (PCI:1): 79\n" + ENDED, "check_"),
        (FIRST + COUNT + ERROR + "Terminated by signal SIGTERM.\n", "check_gpu_count: Expected"),
    ],
)  # fmt: skip
def test_a_fault_is_seen_in_all_its_words(tmp_path: Path, log: str, why: str) -> None:
    code, verdict = judge(tmp_path, log)
    assert code == 1, verdict
    assert verdict.startswith(f"VERDICT: FAIL {why}")


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


@pytest.mark.parametrize(
    ("lines", "noted"),
    [
        ([(9, "154, GPU recovery action changed from 0x0 (None) to 0x2 (OS Reboot)")], "to 0x2 (OS Reboot)"),
        ([(9, "154, from 0x0 (None) to 0x1 (PF FLR)"), (8, "154, changed from 0x1 (PF FLR) to 0x0 (None)")], ""),
        ([(1, "149, NETIR_LINK_EVT Fatal XC0 i0 Link 00")], "149, NETIR_LINK_EVT Fatal"),
        ([(1, "145, RLW_RXPIPE Nonfatal XC0 i0 Link 13")], ""),
        ([(1, "95, pid=7, uncontained")], "95, pid=7, uncontained"),
        ([(9, "95, pid=7, uncontained")], ""),
        ([(1, "79, GPU has fallen off the bus.")], ""),  # aznhc knows it
    ],
)  # fmt: skip
def test_gpu_errors_that_aznhc_does_not_know_are_noted(
    tmp_path: Path, lines: list[tuple[float, str]], noted: str
) -> None:
    text = "".join(f"{stamp(hours, 'iso')} n kernel: NVRM: Xid (PCI:0008:01:00): {line}\n" for hours, line in lines)
    _, _, _, history = hand_over(tmp_path, syslog=text)
    assert (noted in history) if noted else history == ""
    rebooted = f"{stamp(0.5, 'iso')} n kernel: Linux version 6.8\n"
    (tmp_path / "again").mkdir()
    assert hand_over(tmp_path / "again", syslog=text + rebooted)[3] == ""


@pytest.mark.parametrize(
    "line",
    [
        "kernel: nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 24007, Fatal, Link 30 sourcetrack timeout error",
        "kernel: NVRM: fallen off the bus and is not responding to commands.",
        "kernel: NVRM: nvAssert: GPU lost from the bus [NV_ERR_GPU_IS_LOST] (0x0000000F)",
        "kernel: NVRM: GPU0 Reset required [NV_ERR_RESET_REQUIRED]",
    ],
)
@pytest.mark.parametrize(
    "after", ["", 'x[9]: msg="kernel: Linux version 6.8"', "kernel: [ 0.0][    T0] Linux version 6"]
)
def test_errors_without_an_xid_are_noted_until_the_next_boot(tmp_path: Path, line: str, after: str) -> None:
    text = "".join(f"{stamp(1, 'iso')} n {each}\n" for each in (line, after) if each)
    _, _, _, history = hand_over(tmp_path, syslog=text)
    noted = history.startswith("ERROR:  nhc:  Health check failed:  check_gpu_xid: ")
    assert noted == (not after.startswith("kernel"))
