from __future__ import annotations

import errno
import os
import shutil
import threading
from pathlib import Path
from typing import Any

import pytest

from simulator.kubelet.csi import confined, mount
from simulator.kubelet.csi.mount import BlobMount
from tests.support.fake_container import FakeContainer
from tests.support.waiting import eventually


@pytest.fixture
def errors() -> list[str]:
    return []


def mounted(container: FakeContainer, folder: Path, errors: list[str], *, read_only: bool = False) -> BlobMount:
    return BlobMount(container.as_client(), folder, read_only=read_only, report=errors.append)


def test_uploads_an_emptied_folder_with_the_files_that_left_it(tmp_path: Path, errors: list[str]) -> None:
    container = FakeContainer()
    made = mounted(container, tmp_path / "m", errors)
    (made.path / "attempts/1/output").mkdir(parents=True)
    made.flush()
    (made.path / "attempts/1/output/a").write_text("1")
    (made.path / "attempts/1").rename(made.path / "done")
    made.flush()
    made.close()
    assert made.is_alike()
    assert container.text() == {"attempts": "", "done/output/a": "1"}
    assert errors == []


def test_does_not_upload_a_file_that_is_being_written(tmp_path: Path, errors: list[str]) -> None:
    container = FakeContainer()
    made = mounted(container, tmp_path / "m", errors)
    (made.path / "checkpoint").write_text("half")
    made._upload(settled=True)
    assert container.text() == {}
    made.flush()
    assert container.text() == {"checkpoint": "half"}


def test_does_not_overwrite_a_file_that_a_pod_changed(tmp_path: Path, errors: list[str]) -> None:
    container = FakeContainer(log=b"1")
    made = mounted(container, tmp_path / "m", errors)
    (made.path / "log").write_text("mine")
    container.put("log", b"of another node")
    made._take()
    assert (made.path / "log").read_text() == "mine"


def test_a_container_without_access_stays_mounted_and_reports_an_error(tmp_path: Path, errors: list[str]) -> None:
    container = FakeContainer(data=b"1")
    made = mounted(container, tmp_path / "m", errors, read_only=True)
    container.permissions = ""
    made.refresh()
    assert errors == ["reading the container failed: AuthorizationPermissionMismatch"]
    assert (made.path / "data").exists()


def test_restores_a_deleted_file_without_delete_permission(tmp_path: Path, errors: list[str]) -> None:
    container = FakeContainer("rwl", data=b"1")
    made = mounted(container, tmp_path / "m", errors)
    (made.path / "data").unlink()
    made.refresh()
    assert (made.path / "data").read_text() == "1"
    assert errors == ["deleting data failed: AuthorizationPermissionMismatch"]


def test_a_read_only_mount_uploads_nothing(tmp_path: Path, errors: list[str]) -> None:
    container = FakeContainer("rl", data=b"1")
    made = mounted(container, tmp_path / "m", errors, read_only=True)
    (made.path / "written-from-outside").write_text("x")
    made.flush()
    assert container.text() == {"data": "1"}


def test_copies_only_the_beginning_of_a_very_large_blob(
    tmp_path: Path, errors: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mount, "MAX_FULL_COPY_BYTES", 4)
    monkeypatch.setattr(mount, "_BEGINNING_BYTES", 2)
    container = FakeContainer(big=b"abcdefgh")
    made = mounted(container, tmp_path / "m", errors)
    made.flush()
    assert (made.path / "big").read_bytes() == b"ab" + b"\0" * 6
    assert container.text() == {"big": "abcdefgh"}


def test_does_not_follow_links_of_a_pod(tmp_path: Path, errors: list[str]) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "key").write_text("of this machine")
    container = FakeContainer()
    made = mounted(container, tmp_path / "m", errors)
    (made.path / "file").symlink_to(secret / "key")
    (made.path / "folder").symlink_to(secret)
    made.flush()
    assert container.text() == {}
    container.put("folder/key", b"overwritten")
    container.put("file", b"overwritten")
    made.refresh()
    assert (secret / "key").read_text() == "of this machine"
    assert "folder/key" in errors[0]


# -- not deletions ----------------------------------------------------------------------------------------------------


def test_keeps_the_blobs_of_an_unmounted_folder(tmp_path: Path, errors: list[str]) -> None:
    container = FakeContainer(data=b"1")
    made = mounted(container, tmp_path / "m", errors)
    made.close()
    shutil.rmtree(made.path)
    made.refresh()
    assert container.text() == {"data": "1"}


def test_unmounting_waits_for_the_current_copy(
    tmp_path: Path, errors: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    container = FakeContainer(data=b"1")
    made = mounted(container, tmp_path / "m", errors)
    reached, go_on = threading.Event(), threading.Event()
    tree = confined.tree

    def slowly(*arguments: Any) -> tuple[confined.Files, confined.Folders]:
        reached.set()
        go_on.wait(10)
        return tree(*arguments)

    monkeypatch.setattr(confined, "tree", slowly)
    copying = threading.Thread(target=made.flush)
    copying.start()
    reached.wait(10)
    closing = threading.Thread(target=made.close)
    closing.start()
    closing.join(0.2)
    assert closing.is_alive()
    assert not made.close(waits=False)
    go_on.set()
    closing.join(10)
    shutil.rmtree(made.path)
    copying.join(10)
    assert container.text() == {"data": "1"}


@pytest.mark.parametrize("closed", ["data", "."])
def test_an_unreadable_folder_is_not_empty(
    tmp_path: Path, errors: list[str], monkeypatch: pytest.MonkeyPatch, closed: str
) -> None:
    container = FakeContainer(data__shard=b"1", readme=b"2")
    made = mounted(container, tmp_path / "m", errors)
    (made.path / "new").write_text("3")
    really = os.open

    def refuse(path: str | Path, *arguments: Any, **named: Any) -> int:
        if Path(path).name == Path(made.path, closed).name:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return really(path, *arguments, **named)

    with monkeypatch.context() as patched:
        patched.setattr(os, "open", refuse)
        made.flush()
    assert container.text() == {"data/shard": "1", "readme": "2"}
    assert "nothing is written while a folder cannot be read: [Errno 13] Permission denied" in errors[0]
    made.flush()
    assert container.text() == {"data/shard": "1", "new": "3", "readme": "2"}


# -- invalid names -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["../up", "/root", "a//b", "a/./b", "", "a/../../b"])
@pytest.mark.parametrize("metadata", [{}, {"hdi_isfolder": "true"}])
def test_ignores_blobs_with_names_outside_of_the_folder(
    tmp_path: Path, errors: list[str], name: str, metadata: dict[str, str]
) -> None:
    assert not confined.is_plain(name)
    container = FakeContainer()
    container.put(name, b"x", **metadata)
    made = mounted(container, tmp_path / "deep/m", errors)
    assert list(made.path.iterdir()) == []
    assert list(tmp_path.rglob("*")) == [tmp_path / "deep", made.path]


def test_reports_a_file_in_place_of_a_folder_and_copies_the_rest(tmp_path: Path, errors: list[str]) -> None:
    container = FakeContainer()
    made = mounted(container, tmp_path / "m", errors)
    (made.path / "logs").write_text("a file")
    container.put("logs", b"", hdi_isfolder="true")
    container.put("more", b"1")
    made._take()
    assert errors == ["logs: [Errno 20] Not a directory: 'logs'"]
    assert (made.path / "more").read_text() == "1"


def test_continues_to_copy_after_an_error(tmp_path: Path, errors: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mount, "EVERY_S_UNREMEMBERED", 0.01)
    container = FakeContainer()
    made = mounted(container, tmp_path / "m", errors)
    (made.path / "logs").write_text("a file")
    container.put("logs", b"", hdi_isfolder="true")
    eventually(lambda: errors)
    container.put("more", b"1")
    eventually((made.path / "more").exists)
    made.close()


def test_a_pipe_at_the_partial_name_does_not_block_a_copy(tmp_path: Path, errors: list[str]) -> None:
    container = FakeContainer()
    made = mounted(container, tmp_path / "m", errors)
    os.mkfifo(made.path / ".blobfuse-partial-data")
    container.put("data", b"1")
    taking = threading.Thread(target=made._take, daemon=True)
    taking.start()
    taking.join(10)
    assert (made.path / "data").read_text() == "1"
