"""The verdict of the NCCL job, by its script, on the networks and devices that NCCL reports."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.units.workloads.nccl_output import GOOD, INFINIBAND, INFO, INITIALISED, SOCKET, judge, row, table


def test_tcp_fails_whatever_the_bandwidth(tmp_path: Path) -> None:
    code, verdict = judge(tmp_path, table(row(17179869184, 999, 999), transport=SOCKET))
    assert code == 1
    assert "TCP (NET/Socket)" in verdict


@pytest.mark.parametrize(
    "transport",
    [
        "",
        f"{INFO} NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB eth0:10.1.0.4<0>\n{INFO} Using network IB",
        f"{INFO} Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM",
        f"{INFO} Channel 00/0 : 0[0] -> 8[0] [send] via NET/AWS Libfabric/0/GDRDMA",
        f"{INFO} whatever goes via NET/IB/0",  # no channel
    ],
)
def test_between_nodes_channels_must_show_infiniband(tmp_path: Path, transport: str) -> None:
    code, verdict = judge(tmp_path, table(row(17179869184, 999, 999), transport=transport))
    assert code == 1
    assert "no channel shows that NCCL used InfiniBand" in verdict


@pytest.mark.parametrize(
    ("channel", "transport"),
    [
        ("Channel 00 : 0[d00000] -> 8[d00000] [send] via NET/IB/0/GDRDMA", "NET/IB"),  # NCCL 2.10
        ("Channel 00/0 : 8[0] -> 0[0] [receive] via NET/IB/0", "NET/IB"),
        ("Channel 00/0 : 7[7] -> 8[0] [send] via NET/IB/0(4)/GDRDMA(PCI)/Shared", "NET/IB"),  # by another GPU's HCA
        ("Channel 00/0 : 0[0] -> 8[0] [send] via NET/IBext/0/GDRDMA", "NET/IB"),
        ("Channel 00/0 : 0[0] -> 8[0] [send] via NET/IBext_v10/0/GDRDMA", "NET/IB"),
        ("CollNet 00/0 : 0 [send] via COLLNET/SHARP/0/GDRDMA", "COLLNET"),
        ("Coll 00 : 8 [receive] via COLLNET/SHARP/0/GDRDMA", "COLLNET"),
    ],
)
def test_initialisation_counts_for_nothing(tmp_path: Path, channel: str, transport: str) -> None:
    code, verdict = judge(tmp_path, table(row(17179869184, 470, 476), transport=f"{INITIALISED}\n{INFO} {channel}"))
    assert code == 0, verdict
    assert verdict.endswith(f"transport={transport}")


def test_one_channel_by_tcp_among_others_fails(tmp_path: Path) -> None:
    output = table(row(17179869184, 999, 999), transport=f"{INFINIBAND}\n[receive] via NET/Socket/0")
    assert judge(tmp_path, output) == (
        1,
        "VERDICT: FAIL NCCL fell back to TCP (NET/Socket) between nodes; busbw=999.00 GB/s floor=400 GB/s "
        "expected=450 GB/s size=17179869184 B nodes=2 transport=NET/Socket",
    )


@pytest.mark.parametrize(
    ("channel", "transport"),
    [
        ("", "none"),
        ("Channel 00/0 : 0[0] -> 1[1] via P2P/direct pointer", "P2P"),
        ("Channel 00/0 : 1[1] -> 0[0] via P2P/CUMEM/read", "P2P"),
        ("Channel 00 : 0[0] -> 1[1] via SHM/direct/direct", "SHM"),
        ("Channel 00 : 0[100000] -> 1[200000] via direct shared memory", "SHM"),  # NCCL 2.10
        ("NVLS comm 0x55d0 headRank 0 nHeads 8 buffSize 1048576 memSize 2097152", "NVLS"),
        ("Channel 00/0 : 0[0] -> 1[1] [send] via NET/Socket/0", "NET/Socket"),
    ],
)
def test_within_a_node_the_transport_is_only_told(tmp_path: Path, channel: str, transport: str) -> None:
    output = table(row(17179869184, 470, 476), transport=f"{INITIALISED}\n{INFO} {channel}")
    code, verdict = judge(tmp_path, output, nodes=1)
    assert code == 0, verdict
    assert verdict.endswith(f"transport={transport}")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("NET/IB : mlx5_ib3:1 Got async event : port error", 1),
        ("NET/IB : mlx5_ib3:1 async fatal event: device fatal error", 1),
        ("NET/IB : mlx5_ib3:1 async fatal event on QP (0x7f): local work queue catastrophic error", 1),
        ("NET/IB : Got async event : local catastrophic error", 1),  # up to NCCL 2.17
        ("NET/IB: Got completion from peer 10.0.0.5<1> with status=5 opcode=129 len=0 vendor err 244 (Recv)", 1),
        ("NET/IB : Got completion with error 12, opcode 1, len 11264, vendor err 129", 1),  # up to NCCL 2.14
        ("Call to ibv_modify_qp failed with 110 Connection timed out, on dev mlx5_3:1, retrying 1/34", 1),
        ("Call to ibv_reg_dmabuf_mr failed with error Operation not supported", 0),
        ("NET/IB : mlx5_ib3:1 Got async event : port active", 0),
        ("NET/IB : mlx5_ib3:1 Got async event : client reregistration", 0),
        ("NET/IB : mlx5_ib3:1 Got async event : GID table change", 0),
        ("NUMA auto balancing enabled which can lead to variability in the NCCL performance!", 0),
    ],
)
def test_errors_of_infiniband_fail_even_a_test_that_survives_them(tmp_path: Path, text: str, code: int) -> None:
    line = f"n2:1000:1011 [3] NCCL WARN {text}"
    found, verdict = judge(tmp_path, table(GOOD, transport=f"{INFINIBAND}\n{line}"))
    said = f"FAIL InfiniBand failed during the test: {line}; busbw" if code else "PASS; busbw"
    assert (found, verdict[: len(said) + 9]) == (code, f"VERDICT: {said}")


OTHER = INFO.replace("node-0", "node-1")
OWN = f"NET/IB : Using [0]mlx5_0:1/IB\n{OTHER} NET/IB : Using [0]mlx5_an0:1/RoCE [1]mlx5_0:1/IB"


@pytest.mark.parametrize(
    ("using", "channel", "code", "words"),
    [
        ("NET/UCX : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB", "[send] via NET/UCX/0/GDRDMA", 0, "transport=NET/UCX/IB"),
        ("NET/UCX : Using [0]mlx5_0:1/RoCE", "[send] via NET/UCX/0", 1, "Ethernet (RoCE)"),
        ("", "[send] via NET/UCX/0", 1, "no channel shows that NCCL used InfiniBand, but NET/UCX"),
        ("NET/IB : Using [0]mlx5_0:1/IB [8]mlx5_an0:1/RoCE [RO]", "[send] via NET/IB/8", 1, "Ethernet (RoCE)"),
        ("NET/IB : Using [0]mlx5_0:1/IB [8]mlx5_an0:1/RoCE [RO]", "[send] via NET/IB/0", 0, "transport=NET/IB"),
        ("NET/IBext_v8 : Using [0]mlx5_0:1/IB/SHARP [RO]", "[send] via NET/IBext_v8/0/GDRDMA", 0, "transport=NET/IB"),
        ("NET/IB : Using [0]mlx5_0:1/IB", "via P2P/MNNVL", 0, "transport=P2P/MNNVL"),
        ("MNNVL 1 cliqueId 7ffe cliqueSize 8 cliqueRank 0", "via P2P/CUMEM", 1, "no channel shows"),
        ("NET/IB : Using [0]={[0] mlx5_0:1/RoCE, [1] mlx5_1:1/RoCE} [RO]", "[send] via NET/IB/0", 1, "Ethernet (RoCE)"),
        ("NET/IB : Using [0]={[0] mlx5_0:1/IB, [1] mlx5_1:1/IB} [RO]", "[send] via NET/IB/0", 0, "transport=NET/IB"),
        # Each node counts its own devices; of a line that is cut, the node is unknown.
        (OWN, "[send] via NET/IB/0", 0, "transport=NET/IB"),
        (OWN, f"[send] via NET/IB/0\n{OTHER} Channel 00/0 : 8[0] -> 0[0] [send] via NET/IB/0", 1, "Ethernet (RoCE)"),
        (OWN, f"[send] via NET/IB/0\n{OTHER} Channel 00/0 : 8[0] -> 0[0] [send] via NET/IB/1", 0, "transport=NET/IB"),
        (f"NET/IB : Using [0]mlx5_0:1/IB\n{OTHER} NET/IB : Using [0]mlx5_0:1/RoCE", "[send] via NET/IB/0", 1, "RoCE"),
        ("NET/IB : Using [0]mlx5_0:1/RoCE", "via P2P/MNNVL", 0, "transport=P2P/MNNVL"),
        (OWN, "[send] via NET/IB/0\n[send] via NET/IB/0", 1, "Ethernet (RoCE)"),
        ("", f"[send] via NET/IB/0\n{INFO} Channel 01/0 : 8[0] -> 0[0] [send] via NET/OFI/0", 1, "but NET/OFI"),
        ("NET/OFI Selected Provider is efa", "[send] via NET/AWS Libfabric/0/GDRDMA", 1, "but NET/AWS Libfabric"),
    ],
)  # fmt: skip
def test_between_nodes_the_link_layer_of_the_devices_counts(
    tmp_path: Path, using: str, channel: str, code: int, words: str
) -> None:
    log = f"{INFO} {using}\n{INFO} Channel 00/0 : 0[0] -> 8[0] {channel}"
    found, verdict = judge(tmp_path, table(GOOD, transport=log))
    assert (found, words in verdict) == (code, True), verdict
