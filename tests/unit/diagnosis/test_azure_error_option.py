"""`python -m diagnosis --azure-error` explains a saved log."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from diagnosis.__main__ import main


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le"])
def test_a_log_is_explained(tmp_path: Path, capsys: pytest.CaptureFixture[str], encoding: str) -> None:
    log = tmp_path / "destroy.log"
    log.write_text('error: Status=409 Code="ScopeLocked" Message="..."', encoding=encoding)
    assert main(["--azure-error", str(log)]) == 0
    assert "management lock" in capsys.readouterr().out


def test_a_log_without_a_known_error_is_not(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("all is well"))
    assert main(["--azure-error", "-"]) == 1
    assert "docs/azure-errors.md" in capsys.readouterr().out


def test_a_log_that_is_not_there_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--azure-error", str(tmp_path / "none")]) == 1
    assert "cannot be read: No such file" in capsys.readouterr().err
