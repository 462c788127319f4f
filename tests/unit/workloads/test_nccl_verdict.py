from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.case_files import case_table, read
from tests.unit.workloads.nccl_output import GOOD, HEADER, INFINIBAND, INFO, judge, ranks, row, table

ENDS = read(__file__, "nccl_ends")


def test_passes_on_the_largest_message_and_the_better_direction(tmp_path: Path) -> None:
    output = table(row(8388608, 80, 81), row(17179869184, 470.5, 478.25))
    assert judge(tmp_path, output) == (
        0,
        "VERDICT: PASS; busbw=478.25 GB/s floor=400 GB/s expected=450 GB/s size=17179869184 B nodes=2 transport=NET/IB",
    )


def test_prints_the_expected_bandwidth_if_it_is_known(tmp_path: Path) -> None:
    _, verdict = judge(tmp_path, table(row(17179869184, 470, 476)), expected="")
    assert "expected" not in verdict


def test_compares_numbers_numerically(tmp_path: Path) -> None:
    assert judge(tmp_path, table(row(1024, 99, 100), row(2048, 1000, 1001)), floor="400")[0] == 0


def test_low_bandwidth_fails(tmp_path: Path) -> None:
    code, verdict = judge(tmp_path, table(row(17179869184, 399.9, 310)))
    assert code == 1
    assert verdict.startswith("VERDICT: FAIL bus bandwidth is below the floor")
    assert "busbw=399.90" in verdict


@pytest.mark.parametrize("halves", [(189.63, 453.67), (453.67, 189.63)])
def test_both_directions_must_reach_the_floor(tmp_path: Path, halves: tuple[float, float]) -> None:
    for output in (
        table(row(17179869184, *halves)),
        table(row(17179869184, *halves)) + table(row(17179869184, 470, 476)),
    ):
        code, verdict = judge(tmp_path, output)
        assert (code, "the other is 453.67 GB/s; busbw=189.63 GB/s" in verdict) == (1, True), verdict


def test_ignores_tags_colours_and_carriage_returns(tmp_path: Path) -> None:
    lines = table(row(17179869184, 470, 476)).splitlines()
    output = "".join(f"[1,{number % 2}]<stdout>:\033[1m{line}\033[0m\r\n" for number, line in enumerate(lines))
    assert judge(tmp_path, output)[0] == 0


@case_table(__file__, "cut")
@pytest.mark.parametrize("at", [35, 41, 67])  # within a word, between words, between the halves
def test_reads_rows_with_other_ranks_output_in_between(tmp_path: Path, mixed: str, at: int) -> None:
    text = row(17179869184, 470, 476)
    cut = mixed.format(begin=text[:at], end=text[at:], info=f"{INFO} Channel 01/0 : 3[3] -> 4[4] via P2P/CUMEM")
    code, verdict = judge(tmp_path, table(row(8388608, 80, 81)) + cut)
    assert code == 0, verdict
    assert "busbw=476.00" in verdict


def test_the_slowest_run_counts(tmp_path: Path) -> None:
    output = table(row(1024, 1, 1), row(17179869184, 390, 391)) + table(row(1024, 1, 1), row(17179869184, 470, 476))
    code, verdict = judge(tmp_path, output)
    assert code == 1
    assert "busbw=391.00" in verdict


def test_reads_rows_of_other_versions(tmp_path: Path) -> None:
    old = table("  17179869184  4294967296  float  sum  69000  470.1  470.20  4e-07  69001  476.1  476.20  4e-07")
    old = old.replace("redop    root ", "redop ").replace("#wrong", "error")
    assert "busbw=476.20" in judge(tmp_path, old)[1]
    assert judge(tmp_path, old)[0] == 0
    assert judge(tmp_path, old.replace(": 0 OK", ": 2 FAILED"))[1].startswith("VERDICT: FAIL 2 wrong values")
    stamped = table(f"{row(17179869184, 470, 476)}  2026-07-09 16:03:21")
    assert "busbw=476.00" in judge(tmp_path, stamped)[1]
    half = "69000  470.1  {}  0  68000  70000  69900  1.20"
    timed = table(f"  17179869184  4294967296  float  sum  -1  {half.format('470.00')}  {half.format('476.00')}")
    timed = timed.replace("#wrong", "#wrong   i_min   i_max   i_p99   i_cv%")
    assert "busbw=476.00" in judge(tmp_path, timed)[1]


@pytest.mark.parametrize(("wrong", "total"), [("3", "6"), ("1.5e+06", "3000000")])
def test_wrong_values_fail(tmp_path: Path, wrong: str, total: str) -> None:
    code, verdict = judge(tmp_path, table(row(1024, 1, 1, wrong=wrong), row(17179869184, 470, 476)))
    assert code == 1
    assert f"{total} wrong values" in verdict


@pytest.mark.parametrize(
    "end",
    ["", "node-1: Test NCCL failure common.cu:1204 'remote process exited or there was a network error / '",
     "mpirun noticed that process rank 3 with PID 63 on node node-1 exited on signal 9 (Killed)."],
)  # fmt: skip
def test_an_incomplete_test_fails(tmp_path: Path, end: str) -> None:
    code, verdict = judge(tmp_path, "\n".join([INFINIBAND, HEADER, row(8388608, 446.5, 446.5), end]))
    assert code == 2
    assert verdict.startswith("VERDICT: FAIL all_reduce_perf did not finish")


def test_unchecked_results_pass(tmp_path: Path) -> None:
    assert judge(tmp_path, table(row(17179869184, 470, 476, wrong="N/A")))[0] == 0


@pytest.mark.parametrize("output", ["", HEADER + "\n", "node-0: Test NCCL failure common.cu:1204\n"])
def test_an_output_without_results_fails(tmp_path: Path, output: str) -> None:
    assert judge(tmp_path, output) == (2, "VERDICT: FAIL no all_reduce_perf result in the output")


NONE = "FAIL no all_reduce_perf result in the output"
START = "# Collective test starting: "
ALONE = "cudaDev 0 nvmlDev 0 busId 100000 - Init COMPLETE"


@pytest.mark.parametrize(
    ("output", "nodes", "code", "words"),
    [
        # Ranks that are not together, and ranks that are.
        ((ranks("a") + table(row(1024, 0, 0))) * 2, 2, 1, "FAIL the ranks did not find each other"),
        (ranks("a") + ranks("b") + table(row(1024, 0, 0)) * 2, 2, 1, "FAIL the ranks did not find each other"),
        (ranks("a", "a") + ranks("b", "b") + table(GOOD) * 2, 2, 1, "FAIL the ranks did not find each other"),
        (ranks("a", "a") + ranks("b", "b").replace("# Using devices\n", "") + table(GOOD), 2, 1, "FAIL the ranks did"),
        (f"{INFO} comm 0x1 rank 0 nranks 1 {ALONE}\n" * 2 + table(GOOD), 2, 1, "FAIL the ranks did not find"),
        (f"{INFO} comm 0x1 rank 0 nranks 1 {ALONE}\n" + table(row(1024, 0, 0)), 1, 1, "FAIL the ranks did not"),
        (ranks("a", "a") + table(GOOD), 2, 1, "FAIL all ranks were on one node of 2"),
        (ranks("a", "b") + table(GOOD), 2, 0, "PASS"),
        (ranks("a", "b") + table(GOOD) + ranks("c", "a") + table(GOOD), 2, 0, "PASS"),
        (f"{INFO} comm 0x1 rank 0 nranks 16 {ALONE}\n" + table(GOOD), 2, 0, "PASS"),
        (ranks(*"aabb") + table(GOOD), 4, 1, "FAIL the ranks were on 2 nodes of 4"),
        (f"{INFO} comm 0x1 rank 0 nRanks 16 nNodes 2 localRanks 8 localRank 0 MNNVL 0\n" + table(GOOD), 4, 1,
         "FAIL the ranks were on 2 nodes of 4"),
        (f"{INFO} comm 0x1 rank 0 nRanks 8 nNodes 1 localRanks 8 localRank 0 MNNVL 1\n" + table(GOOD), 2, 0, "PASS"),
        (ranks(*"abc") + "".join(f"{host}:1:1 [0] NCCL INFO x\n" for host in "abcd") + table(GOOD), 4, 0, "PASS"),
        # A process that failed after its results, and a run without any.
        (table(GOOD) + "a: Test CUDA failure common.cu:941 'unknown error'\n", 2, 2, "FAIL all_reduce_perf did not"),
        (table(GOOD) + "mpirun noticed that process rank 3 exited on signal 9.\n", 2, 2, "FAIL all_reduce_perf did"),
        (ranks(*"ab") + table(GOOD) + ranks(*"ab"), 2, 2, "FAIL all_reduce_perf did not finish"),
        (table(GOOD) * 2 + "# nThread 1 nGpus 1\n" * 3, 2, 2, "FAIL all_reduce_perf did not finish"),
        (f"{START}all_reduce_perf\n{table(GOOD)}{START}all_reduce_perf\n", 2, 2, "FAIL all_reduce_perf did not finish"),
        # Other collectives, with another factor of the bus bandwidth.
        (f"{START}sendrecv_perf\n{table(GOOD)}", 2, 2, NONE),
        (f"{START}sendrecv_perf\n{table(GOOD)}{START}all_reduce_perf_mpi\n{table(GOOD)}", 2, 0, "PASS"),
        (table(GOOD.replace("4294967296", "268435456")), 2, 2, NONE),  # reduce_scatter of 16 ranks
        (table(GOOD.replace("4294967296  float", "4294967296  half")), 2, 2, NONE),  # of 2 ranks
        (table(GOOD.replace("4294967296  float", "8589934592  bfloat16")), 2, 0, "PASS"),
        (table(GOOD.replace("  -1  ", "   0  ")), 2, 2, NONE),  # reduce
        (f"{START}all_reduce_perf\n{table(GOOD)}", 2, 0, "PASS"),
        # Interrupted, after wrong values or before the second test's end.
        ("\n".join([INFINIBAND, HEADER, row(1024, 1, 1, wrong="7")]), 2, 1, "FAIL 14 wrong values"),
        ("\n".join([table(GOOD), HEADER, row(1024, 1, 1)]), 2, 2, "FAIL all_reduce_perf did not finish"),
        ("\n".join([table(GOOD), HEADER]), 1, 2, "FAIL all_reduce_perf did not finish"),
        # No numbers.
        (table(row(1024, 9, 9), row(2048, float("nan"), 476)), 2, 2, "FAIL all_reduce_perf measured no bandwidth: nan"),
        (table(row(2048, 476, float("inf")), row(1024, 9, 9)), 2, 2, "FAIL all_reduce_perf measured no bandwidth: inf"),
        (table(GOOD.replace("470.00", "N/A")), 2, 2, "FAIL all_reduce_perf measured no bandwidth: N/A"),
        (table(row(17179869184, 470, 476), row(8388608, 5, 5)), 2, 0, "PASS; busbw=476.00"),  # the largest comes first
        (table(GOOD).replace("17179869184", "1: 17179869184"), 2, 0, "PASS"),  # srun --label
        (stamped := table(GOOD).replace("\n", "\n2026-11-26T10:00:00.1Z [prterun-m-1@1,0]<stdout>: "), 2, 0, "PASS"),
        (stamped.replace(": 0 OK", ": 3 FAILED"), 2, 1, "FAIL 3 wrong values"),
        (table(GOOD).replace("\n", "\nFri Nov 27 01:00:00 2026[1,0]<stdout>:").replace(">:  ", ">: "), 2, 0, "PASS"),
        (table(GOOD).replace("\n", "\nFri Nov 27 01:00:00 2026<stdout>:").replace(">:  ", ">: "), 2, 0, "PASS"),
        # Why there is no result.
        ("bash: line 1: orted: command not found\n", 2, 2, f"{NONE}: orted: command"),
        ("all_reduce_perf: error while loading shared libraries: libmpi.so.40: cannot open\n", 2, 2,
         f"{NONE}: error while loading shared libraries: libmpi.so.40"),
        ("There are not enough slots available in the system\n", 2, 2, f"{NONE}: not"),
        ("ssh: connect to host w-1 port 22: Connection refused\n", 2, 2, f"{NONE}: ssh"),
        ("Invalid number of GPUs: 8 requested but only 7 were found.\n", 2, 2,
         f"{NONE}: Invalid number of GPUs: 8 requested but only 7 were found"),
        ("n:1:1 [0] misc/socket.cc:50 NCCL WARN socketProgress: Connection closed\n", 2, 2,
         f"{NONE}: NCCL WARN socketProgress"),
    ],
)  # fmt: skip
def test_judges_other_logs(tmp_path: Path, output: str, nodes: int, code: int, words: str) -> None:
    floor = "400" if nodes > 1 else "1"
    found, verdict = judge(tmp_path, output, nodes=nodes, floor=floor)
    assert (found, verdict.removeprefix("VERDICT: ")[: len(words)]) == (code, words)


@pytest.mark.parametrize("end", ENDS["failed"])
def test_reports_a_process_that_fails_after_its_results(tmp_path: Path, end: str) -> None:
    words = f"VERDICT: FAIL all_reduce_perf did not finish: {end}"
    code, verdict = judge(tmp_path, f"{table(GOOD)}{end}\n")
    assert (code, verdict[: len(words)]) == (2, words)


@pytest.mark.parametrize("end", ENDS["others"])
def test_ignores_the_end_of_other_processes(tmp_path: Path, end: str) -> None:
    assert judge(tmp_path, f"{table(GOOD)}{end}\n")[0] == 0


HEADING = "# nThread 1 nGpus 1 minBytes {} maxBytes {} step: {} warmup iters: 5 iters: 20 agg iters: 1 validation: 1\n"
LARGE = HEADING.format(8388608, 17179869184, "2(factor)")
SMALL = row(8589934592, 470, 476)
MISSING = "FAIL the largest message, 17179869184 B, has no readable result"


@pytest.mark.parametrize(
    ("output", "words"),
    [
        (LARGE + table(SMALL, GOOD), "PASS; busbw=476.00"),
        (LARGE + table(SMALL), MISSING),
        (LARGE + table(SMALL, GOOD[:-20]), MISSING),
        (table(SMALL, GOOD[:-20]), MISSING),
        (LARGE + table(SMALL, row(17179869184, 470, -476)), MISSING),
        (table(SMALL, GOOD.replace("470.00", "******")), MISSING),
        (LARGE + table(GOOD) + LARGE + table(SMALL), MISSING),
        (LARGE + table(GOOD) + LARGE + table(GOOD), "PASS"),
        (HEADING.format(8, 20000000000, "2(factor)") + table(GOOD), "PASS"),  # twice that exceeds maxBytes
        (HEADING.format(8, 20000000000, "2(factor)") + table(SMALL), MISSING),
        (HEADING.format(8589934592, 17179869190, "8589934592(bytes)") + table(SMALL, GOOD), "PASS"),
        (HEADING.format(17179869187, 17179869187, "1048576(bytes)") + table(GOOD), "PASS"),  # whole values only
        (LARGE + "#\n# Reducing maxBytes to 16106127360 due to memory limitation.\n" + table(SMALL), "PASS"),
        (f"{START}sendrecv_perf\n{LARGE}{table(SMALL)}{START}all_reduce_perf\n{LARGE}{table(GOOD)}", "PASS"),
    ],
)
def test_requires_a_result_for_the_largest_message(tmp_path: Path, output: str, words: str) -> None:
    found, verdict = judge(tmp_path, output)
    assert (found, verdict.removeprefix("VERDICT: ")[: len(words)]) == (0 if words[0] == "P" else 2, words)


SEVEN_AND_EIGHT = ranks(*"aaaaaaabbbbbbbb")
WHOLE = ranks(*"aaaaaaaabbbbbbbb")
SEVEN = ranks(*"aaaaaaa")
NP_8 = "+ mpirun --allow-run-as-root -np 8 all_reduce_perf -n 20\n" + LARGE
CUT = "[0001:00:00] NVIDIA H100\n#  Rank  9", "[0001:00:00] NVIDIA H100\n#  Ran" + INFO + " x\nk  9"
LOCAL = f"{INFO} comm 0x1 rank 0 nRanks {{}} nNodes 2 localRanks {{}} localRank 0 MNNVL 0\n"
UNEQUAL = "the nodes have different numbers of ranks"


@pytest.mark.parametrize(
    ("output", "nodes", "gpus", "words"),
    [
        (WHOLE, 2, "8", ""),
        (WHOLE, 2, "", ""),
        (WHOLE.replace(*CUT), 2, "8", ""),
        (WHOLE.replace("\n", "\r\n[1,0]<stdout>:"), 2, "8", ""),
        (WHOLE.replace("\n", "\nFri Nov 27 01:00:00 2026[1,0]<stdout>:"), 2, "8", ""),
        (SEVEN_AND_EIGHT, 2, "", f"{UNEQUAL}, 15 in total"),
        (ranks(*"aaaaaaaabbbbbb"), 2, "", f"{UNEQUAL}, 14 in total"),
        (ranks(*"aaaaaaabbbbbbb"), 2, "8", "14 ranks of 16 took part"),
        (f"{WHOLE}{table(GOOD)}{SEVEN_AND_EIGHT}", 2, "8", "15 ranks of 16 took part"),
        (SEVEN, 1, "8", "7 ranks of 8 took part"),
        (SEVEN, 1, "", ""),  # nothing shows how many GPUs the node has
        (NP_8 + SEVEN, 1, "", "7 ranks of 8 took part"),
        (f"{INFO} comm 0x1 rank 0 nranks 8 {ALONE}\n{SEVEN}", 1, "", "7 ranks of 8 took part"),
        (f"{INFO} comm 0x1 rank 0 nranks 15 {ALONE}\n", 2, "", f"{UNEQUAL}, 15 in total"),
        (f"{INFO} comm 0x1 rank 0 nranks 14 {ALONE}\n", 2, "8", "14 ranks of 16 took part"),
        (LOCAL.format(14, 8) + LOCAL.format(14, 6), 2, "", f"{UNEQUAL}, 14 in total"),
        (LOCAL.format(16, 8) * 2, 2, "8", ""),
        ("", 2, "8", "no log line shows how many ranks took part"),
        ("", 2, "", ""),
    ],
)
def test_all_gpus_must_take_part(tmp_path: Path, output: str, nodes: int, gpus: str, words: str) -> None:
    found, verdict = judge(tmp_path, output + table(GOOD), nodes=nodes, gpus=gpus)
    start = f"FAIL not all GPUs took part: {words}" if words else "PASS"
    assert (found, verdict.removeprefix("VERDICT: ")[: len(start)]) == (int(bool(words)), start)
