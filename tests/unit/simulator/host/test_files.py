from __future__ import annotations

import itertools
import stat
from pathlib import Path

import pytest

from simulator.host import files
from simulator.host.certificates import cluster_certificates


class Killed(BaseException):
    """Simulates the end of the process."""


def test_a_file_has_its_content_and_its_mode(tmp_path: Path) -> None:
    files.replace(tmp_path / "secret", "ä\n")
    files.replace(tmp_path / "public", b"\x00", mode=0o644)

    assert (tmp_path / "secret").read_bytes() == "ä\n".encode()
    assert [_mode(tmp_path / name) for name in ("secret", "public")] == [0o600, 0o644]
    assert len(list(tmp_path.iterdir())) == 2


def test_a_kill_during_a_write_keeps_the_old_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files.replace(tmp_path / "state", "before")
    _kill_at_write(monkeypatch, 1)

    with pytest.raises(Killed):
        files.replace(tmp_path / "state", "afterwards")

    assert (tmp_path / "state").read_text() == "before"


def test_does_not_replace_a_file_with_equal_content(tmp_path: Path) -> None:
    files.replace(tmp_path / "state", "same")
    before = (tmp_path / "state").stat()
    files.replace(tmp_path / "state", "same")
    assert (tmp_path / "state").stat().st_ino == before.st_ino


def test_replaces_a_link_instead_of_following_it(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text("not ours")
    (tmp_path / "state").symlink_to("elsewhere")

    files.replace(tmp_path / "state", "ours")

    assert (tmp_path / "elsewhere").read_text() == "not ours"
    assert (tmp_path / "state").read_text() == "ours"


def test_creates_certificates_after_a_kill_at_any_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for count in itertools.count(1):
        folder = tmp_path / str(count)
        with monkeypatch.context() as patched:
            _kill_at_write(patched, count)
            try:
                cluster_certificates(folder)
            except Killed:
                pass
            else:  # no write is left
                break
        cluster_certificates(folder)
        assert all(file.read_bytes().endswith(b"-----\n") for file in folder.glob("[!.]*"))
    assert count > 10


def _kill_at_write(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    write_bytes, left = Path.write_bytes, itertools.count(1 - count)

    def write(path: Path, data: bytes) -> int:
        if next(left):
            return write_bytes(path, data)
        write_bytes(path, data[: len(data) // 2])
        raise Killed

    monkeypatch.setattr(Path, "write_bytes", write)


def _mode(file: Path) -> int:
    return stat.S_IMODE(file.stat().st_mode)
