from __future__ import annotations

from pathlib import Path

from tests.support.case_files import case_table
from tests.unit.workloads.nccl_output import GOOD, INFINIBAND, INFO, INITIALISED, SOCKET, judge, row, table


def test_tcp_fails_at_any_bandwidth(tmp_path: Path) -> None:
    code, verdict = judge(tmp_path, table(row(17179869184, 999, 999), transport=SOCKET))
    assert code == 1
    assert "TCP (NET/Socket)" in verdict


@case_table(__file__, "shown")
def test_channels_between_nodes_must_use_infiniband(tmp_path: Path, transport: str) -> None:
    code, verdict = judge(tmp_path, table(row(17179869184, 999, 999), transport=transport))
    assert code == 1
    assert "no channel shows that NCCL used InfiniBand" in verdict


@case_table(__file__, "channels")
def test_reads_the_transport_from_channels_only(tmp_path: Path, nodes: int, channel: str, transport: str) -> None:
    """The transport within one node is printed and not judged."""
    output = table(row(17179869184, 470, 476), transport=f"{INITIALISED}\n{INFO} {channel}")
    code, verdict = judge(tmp_path, output, nodes=nodes)
    assert code == 0, verdict
    assert verdict.endswith(f"transport={transport}")


def test_one_channel_over_tcp_fails(tmp_path: Path) -> None:
    output = table(row(17179869184, 999, 999), transport=f"{INFINIBAND}\n[receive] via NET/Socket/0")
    assert judge(tmp_path, output) == (
        1,
        "VERDICT: FAIL NCCL fell back to TCP (NET/Socket) between nodes; busbw=999.00 GB/s floor=400 GB/s "
        "expected=450 GB/s size=17179869184 B nodes=2 transport=NET/Socket",
    )


@case_table(__file__, "warnings")
def test_infiniband_errors_fail_a_complete_test(tmp_path: Path, text: str, code: int) -> None:
    line = f"n2:1000:1011 [3] NCCL WARN {text}"
    found, verdict = judge(tmp_path, table(GOOD, transport=f"{INFINIBAND}\n{line}"))
    expected = f"FAIL InfiniBand failed during the test: {line}; busbw" if code else "PASS; busbw"
    assert (found, verdict[: len(expected) + 9]) == (code, f"VERDICT: {expected}")


@case_table(__file__, "devices")
def test_devices_between_nodes_must_be_infiniband(
    tmp_path: Path, using: str, channel: str, code: int, words: str
) -> None:
    log = f"{INFO} {using}\n{INFO} Channel 00/0 : 0[0] -> 8[0] {channel}"
    found, verdict = judge(tmp_path, table(GOOD, transport=log))
    assert (found, words in verdict) == (code, True), verdict
