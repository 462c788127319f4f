"""A stack file that is not YAML is told of with the line, and how to mend it."""

from __future__ import annotations

from pathlib import Path

import pytest

from config.reading.check_stack_file import main

BROKEN = {
    "config:\n\ta: b\n": ("line 2, column 1", "indent with spaces, not tabs"),
    "config:\n  a: b: c\n": ("line 2, column 7", "quote text that has a colon"),
    "config:\n  a: [1, 2\n  b: c\n": ("line 3", "close the bracket"),
    "config:\n  a: 1\n  a: 2\n": ("line 3, column 3", "keep one of the two"),
    "config:\n  a: 1\n b: 2\n": ("line 3, column 2", "same column"),
    'config:\n  a: "x\n': ("line 3", "close the bracket or the quotation mark"),
    "config:\n  a: @x\n": ("line 2, column 6", "quote text that begins"),
    "just text\n": ("holds no keys", "begin with a line `config:`"),
    "config: dev\n": ("holds no keys", "begin with a line `config:`"),
}


@pytest.mark.parametrize(("text", "says"), BROKEN.items(), ids=[says[0] + " " + says[1] for says in BROKEN.values()])
def test_broken(text: str, says: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "Pulumi.dev.yaml"
    file.write_text(text)
    assert main([str(file)]) == 1
    message = capsys.readouterr().err
    assert all(part in message for part in (str(file), "fix:", *says))


@pytest.mark.parametrize("text", ["", "config:\n", "encryptionsalt: v1:abc\nconfig:\n  a: 1\n"])
def test_good(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "Pulumi.dev.yaml"
    file.write_text(text)
    assert (main([str(file)]), capsys.readouterr().err) == (0, "")


def test_missing_and_binary(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    binary = tmp_path / "Pulumi.bin.yaml"
    binary.write_bytes(b"config:\n  a: \xff\n")
    assert main([str(tmp_path / "Pulumi.none.yaml"), str(binary)]) == 1
    message = capsys.readouterr().err
    assert "pulumi stack init none" in message
    assert "not UTF-8" in message
    assert f"fix: iconv -f CP1252 -t UTF-8 {binary} > {binary}.utf8 && mv " in message


def test_a_file_that_powershell_wrote(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "Pulumi.dev.yaml"
    file.write_bytes("config:\n  a: b\n".encode("utf-16"))
    assert main([str(file)]) == 1
    assert f"fix: iconv -f UTF-16 -t UTF-8 {file} > {file}.utf8 && mv " in capsys.readouterr().err
    file.write_bytes("config:\r\n  a: b\r\n".encode("utf-8-sig"))
    assert main([str(file)]) == 0
