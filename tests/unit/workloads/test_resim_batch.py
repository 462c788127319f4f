"""What a batch is: its scenarios, its name, its parts."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.support.case_files import case_table
from workloads.resim.batch import (
    MOST_SCENARIOS,
    Layout,
    Refused,
    checked_count,
    checked_name,
    default_name,
    digest,
    numbered,
    parse,
)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_scenario_a_line_in_the_files_order(encoding: str, end: str) -> None:
    lines = ["# of November", "night-2", "", "  night-1.v2 \t", "   # X_8", "X_9"]
    assert parse(end.join(lines).encode(encoding), "list.txt") == ["night-2", "night-1.v2", "X_9"]


@pytest.mark.parametrize(
    ("content", "what", "fix"),
    [
        (b"", "list.txt has no scenarios", "--njobs 20"),
        (b"\n \n", "list.txt has no scenarios", "--njobs 20"),
        (b"a\nb\xff\n", "list.txt:2 is not UTF-8", "iconv"),
        (b"\x1f\x8b\x08\0\0\0", "list.txt:1 is not UTF-8", "file list.txt"),
        (b"# none yet\n", "list.txt has no scenarios", "--njobs 20"),
        ("night\u20281\n".encode(), r"line 1 is 'night\u20281'", "sed -i"),
        ("night-1\u200b\n".encode(), r"line 1 is 'night-1\u200b'", "sed -i"),
        (b"night-1 # later\n", "line 1 is 'night-1 # later'", "sed -i"),
        (b'["night-1"]\n', "line 1 is", "sed -i"),
        (b"a/b\n..\nok\n", "line 1 is 'a/b'; line 2 is '..'", "sed -i"),
        (b".hidden\n", "line 1 is '.hidden'", "sed -i"),
        (b"ends.\n", "line 1 is 'ends.'", "sed -i"),
        (b"two words\n", "line 1 is 'two words'", "sed -i"),
        (b"-rf\n", "line 1 is '-rf'", "sed -i"),
        (b"a\nb\na\n", "names 1 scenarios more than once: a", "sort -u"),
        (b"x\n" * 1_000_000, "list.txt has 1,000,000 scenarios", f"split -l {MOST_SCENARIOS} list.txt"),
        ("\n".join(f"bad name {n}" for n in range(9)).encode(), "and 6 more", "sed -i"),
        (("n" * 101).encode(), "no file names", "sed -i"),
    ],
)
def test_a_file_that_is_no_list_of_scenarios(content: bytes, what: str, fix: str, tmp_path: Path) -> None:
    with pytest.raises(Refused) as refused:
        parse(content, "list.txt")
    assert what in refused.value.what
    assert fix in refused.value.fix
    assert refused.value.allowed
    if refused.value.fix.startswith("sed"):
        listed = tmp_path / "list.txt"
        listed.write_bytes(content)
        subprocess.run(["/bin/sh", "-c", refused.value.fix], cwd=tmp_path, check=True)
        assert parse(listed.read_bytes(), "list.txt"), "the fix mends it"


@pytest.mark.parametrize(
    ("count", "what"), [(0, "is 0"), (-1, "is -1"), (1_000_000, "--njobs has 1,000,000 scenarios")]
)
def test_a_number_of_scenarios_that_is_none(count: int, what: str) -> None:
    with pytest.raises(Refused, match=what):
        checked_count(count)


def test_other_scenarios_or_another_order_are_another_batch() -> None:
    assert digest(["a", "b"]) == digest(iter(["a", "b"]))
    assert len({digest(["a", "b"]), digest(["b", "a"]), digest(["ab"]), digest(["a"])}) == 4
    assert default_name(numbered(20)) == default_name(numbered(20)) != default_name(numbered(21))
    assert checked_name(default_name(numbered(20)))


@case_table(__file__, "names")
def test_a_batchs_name_names_jobs_and_folders(name: str, fix: str) -> None:
    with pytest.raises(Refused) as refused:
        checked_name(name)
    assert refused.value.fix == fix


def test_each_namespace_has_batches_of_its_own() -> None:
    mine, theirs = Layout("ai", "night"), Layout("guest", "night")
    assert (mine.identity, mine.run(2)) == ("ai/night/batch.json", "ai/night/runs/2.txt")
    assert not theirs.root.startswith(mine.root)
