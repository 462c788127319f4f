from __future__ import annotations

import contextlib
import gzip
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.host.paths import ROOT
from tests.support.case_files import case_table
from tests.support.docker_modules import imported

IMAGE = ROOT / "docker/ray-finetuning"
GOOD = '{"text": "fabric"}'
_CYRILLIC, _JAPANESE = "\u043f\u0440\u0438\u0432\u0435\u0442", "\u65e5\u672c\u8a9e\u306e"
FOREIGN = {"cp1251": _CYRILLIC, "shift_jis": _JAPANESE, "euc_kr": "\ud55c\uad6d\uc5b4"}
"""Text in unrecognizable encodings."""


@pytest.fixture(scope="module")
def lines() -> Any:
    return imported("ray-finetuning", "finetuning.lines")


def texts(lines: Any, path: Path) -> list[str]:
    found: list[str] = lines.read(path, lambda prompt, text: text)
    return found


@pytest.mark.parametrize(
    "content",
    [
        b"\xef\xbb\xbf" + GOOD.encode(),
        GOOD.encode() + b"\n\xef\xbb\xbf" + GOOD.encode(),
        f"\r\n{GOOD}\r\n  \r\n{GOOD} \t\r\n".encode(),
        f"{GOOD}\r{GOOD}\r".encode(),
        '{"text": "a\u2028b\u0085c"}'.encode(),
        b'{"text": "\\ud83d\\ude00", "weight": NaN, "note": null, "meta": {"a": 1, "a": 2}}',
        f'{{"text": "{"word " * 400_000}"}}'.encode(),
    ],
    ids=["mark", "joined", "windows", "old mac", "separators in a string", "pair and NaN", "two megabytes"],
)
def test_reads_the_output_of_editors_and_tools(lines: Any, tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "a.jsonl"
    file.write_bytes(content)
    assert len(texts(lines, file)) == content.count(b'"text"')
    assert texts(lines, tmp_path) == texts(lines, file)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (GOOD.encode("utf-16"), "a.jsonl:1 is not UTF-8, probably UTF-16: iconv -f UTF-16 -t UTF-8 "),
        (GOOD.encode("utf-16-be"), "iconv -f UTF-16BE -t UTF-8 "),
        (GOOD.encode("utf-16-le"), "iconv -f UTF-16LE -t UTF-8 "),
        (GOOD.encode("utf-32"), "iconv -f UTF-32 -t UTF-8 "),
        (f"{GOOD}\n".encode() + '{"text": "Größe"}'.encode("cp1252"), "a.jsonl:2 is not UTF-8, probably CP1252: "),
        (f"{GOOD}\n".encode() + GOOD.encode("utf-16-le"), "a.jsonl:2 has NUL bytes"),
        ('{"text": "“Größe”, É"}'.encode("cp1252"), "a.jsonl:1 is not UTF-8, probably CP1252: "),
        ('{"text": "你好，世界"}'.encode("gbk"), "a.jsonl:1 is not UTF-8, probably GB18030: iconv -f GB18030 "),
        *((f'{{"text": "{text}"}}'.encode(encoding), "a.jsonl:1 is not UTF-8: iconv -f <encoding> ")
          for encoding, text in FOREIGN.items()),
        ('{"text": "é"}\n{"text": "'.encode() + b'\xc3"}', "a.jsonl:2 is not UTF-8; lines before it are UTF-8, so fix"),
        (b"PAR1\x15\x04", "a.jsonl is Parquet: python -c "),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 3\n", "a.jsonl is a pointer of Git LFS"),
        (gzip.compress(GOOD.encode(), mtime=0), "a.jsonl is compressed: gunzip < "),
        (b'[{"text": "a"}]', "a.jsonl:1: a JSON array; each line must be one object: jq -c "),
        (b'{\n  "text": "a"\n}', r"a.jsonl:1: not JSON \(.*\); each line must be one object"),
        (b'{"text": "a", "text": "b"}', "duplicate key in text, text"),
        (b'{"prompt": "", "completion": ""}', "a.jsonl:1: the text is empty"),
        (b'{"text": ""}', "a.jsonl:1: the text is empty"),
        (b'{"text": null}', "as strings; it has text: null"),
        (b'{"prompt": "a", "completion": ["b"]}', r'it has prompt: "a", completion: \["b"\]'),
        (b'{"messages": [{"role": "user"}]}', "it has messages: "),
        (b"3", "it has none"),
        (b'{"text": "\\ud83d"}', "a lone surrogate"),
        (b'{"prompt": "\\ud83d", "completion": "a"}', "a lone surrogate"),
        (b'{"text": "a\tb"}', r"not JSON \(Invalid control character at, column 12\)"),
        (b'{"text": ' + b"[" * 100_000, "nested too deeply"),
        (GOOD.encode() + b'\n{"text": "cut sh', r"a.jsonl:2: not JSON \(Unterminated string"),
        (b"\xef\xbb\xbf \n", "a.jsonl is empty"),
    ],
)  # fmt: skip
def test_rejects_other_files_with_file_and_line(lines: Any, tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "a.jsonl").write_bytes(content)
    with pytest.raises(lines.DataError, match=message):
        lines.read(tmp_path / "a.jsonl", lambda prompt, text: text)


@case_table(__file__, "ignored")
def test_rejects_files_with_other_names(lines: Any, tmp_path: Path, names: list[str], message: str) -> None:
    for name in names:
        (tmp_path / name).write_text(GOOD)
    with pytest.raises(lines.DataError, match=message):
        lines.read(tmp_path, lambda prompt, text: text)


def test_the_suggested_command_converts(lines: Any, tmp_path: Path) -> None:
    for number, encoding in enumerate(("utf-16", "utf-16-be", "utf-32", "cp1252")):
        file = tmp_path / f"{number}.jsonl"
        file.write_bytes('{"text": "Größe"}'.encode(encoding))
        with pytest.raises(lines.DataError) as error:
            texts(lines, file)
        command = re.search("iconv .*", str(error.value))
        assert command
        subprocess.run(command[0], shell=True, check=True)  # noqa: S602 - as a user would
        assert texts(lines, Path(f"{file}.utf8")) == ["Größe"]


@given(st.binary(max_size=200) | st.text(max_size=100).map(str.encode))
def test_reads_or_rejects_any_bytes(lines: Any, tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    file = tmp_path_factory.getbasetemp() / "any.jsonl"
    file.write_bytes(content)
    with contextlib.suppress(lines.DataError):
        texts(lines, file)


def test_the_command_checks_a_file(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text(json.dumps({"text": "a"}))
    command = [sys.executable, "-m", "finetuning.lines", str(file)]
    options: dict[str, Any] = {"env": {**os.environ, "PYTHONPATH": str(IMAGE)}, "capture_output": True, "text": True}
    assert subprocess.run(command, **options).stdout == "1 examples\n"
    file.write_text("no")
    answer = subprocess.run(command, **options)
    assert (answer.returncode, answer.stderr) == (1, f"error: {file}:1: not JSON (Expecting value, column 1)\n")
