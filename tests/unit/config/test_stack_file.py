from __future__ import annotations

from pathlib import Path

import pytest

from config.reading.check_stack_file import main
from tests.support.case_files import case_table


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "Pulumi.dev.yaml"


@case_table(__file__, "broken")
def test_rejects_invalid_yaml(text: str, parts: list[str], file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(text)
    assert main([str(file)]) == 1
    message = capsys.readouterr().err
    assert all(part in message for part in (str(file), "fix:", *parts))


@pytest.mark.parametrize("text", ["", "config:\n", "encryptionsalt: v1:abc\nconfig:\n  a: 1\n"])
def test_accepts_valid_files(text: str, file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(text)
    assert (main([str(file)]), capsys.readouterr().err) == (0, "")


def test_rejects_missing_and_binary_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    binary = tmp_path / "Pulumi.bin.yaml"
    binary.write_bytes(b"config:\n  a: \xff\n")
    assert main([str(tmp_path / "Pulumi.none.yaml"), str(binary)]) == 1
    message = capsys.readouterr().err
    assert "pulumi stack init none" in message
    assert "not UTF-8" in message
    assert f"fix: iconv -f CP1252 -t UTF-8 {binary} > {binary}.utf8 && mv " in message


def test_suggests_a_conversion_of_files_that_powershell_wrote(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_bytes("config:\n  a: b\n".encode("utf-16"))
    assert main([str(file)]) == 1
    assert f"fix: iconv -f UTF-16 -t UTF-8 {file} > {file}.utf8 && mv " in capsys.readouterr().err
    file.write_bytes("config:\r\n  a: b\r\n".encode("utf-8-sig"))
    assert main([str(file)]) == 0
