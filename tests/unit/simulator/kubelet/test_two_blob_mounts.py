"""Two nodes mount one container: what one remembers as absent, and what it sees of a folder that the other renames."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from simulator.kubelet.csi.contents import Copies
from simulator.kubelet.csi.mount import BlobMount
from tests.support.fake_container import Blob, FakeContainer


@pytest.fixture
def told() -> list[str]:
    return []


def two_mounts(
    container: FakeContainer,
    folder: Path,
    told: list[str],
    *,
    lock: threading.Lock | None = None,
    remembers_s: float = 0,
) -> tuple[BlobMount, BlobMount]:
    """Of two nodes; with one `lock`, of an account with a hierarchical namespace."""
    first, second = (
        BlobMount(
            container.as_client(),
            folder / name,
            read_only=False,
            report=told.append,
            lock=lock,
            remembers_s=remembers_s,
        )
        for name in ("first", "second")
    )
    return first, second


def test_a_blob_is_read_from_the_container_once_for_all_nodes(
    tmp_path: Path, told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    container, copies = FakeContainer(weights=b"w" * 2 * 2**20), Copies()
    read: list[str] = []
    download = container.download_blob

    def counted(name: str, *, offset: int, length: int) -> Blob:
        read.append(name)
        return download(name, offset=offset, length=length)

    monkeypatch.setattr(container, "download_blob", counted)
    for node in ("first", "second"):
        made = BlobMount(container.as_client(), tmp_path / node, read_only=True, report=told.append, copies=copies)
        assert (made.path / "weights").read_bytes() == container.blobs["weights"].content
    assert read == ["weights"]


def test_what_a_node_remembers_as_absent_stays_so_for_a_while(
    tmp_path: Path, told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    first, second = two_mounts(FakeContainer(), tmp_path, told, remembers_s=120)
    (first.path / "step0").mkdir()
    first.flush()
    second._take()
    now[0] += 11.9
    second._take()
    assert not (second.path / "step0").exists()
    now[0] += 0.2
    second._take()
    assert (second.path / "step0").is_dir()


@pytest.mark.parametrize("hierarchical", [True, False])
def test_a_folder_is_renamed_at_once_or_blob_by_blob(tmp_path: Path, told: list[str], *, hierarchical: bool) -> None:
    lock = threading.Lock() if hierarchical else None
    container = SlowContainer()
    for rank in range(3):
        container.put(f"step0-tmp/{rank}", b"1")
    first, second = two_mounts(container, tmp_path, told, lock=lock)
    (first.path / "step0-tmp").rename(first.path / "step0")
    renaming = threading.Thread(target=first.flush)
    renaming.start()
    assert container.between.wait(10), "one blob is copied, the others are not yet"
    looking = threading.Thread(target=second._take)
    looking.start()
    looking.join(0 if hierarchical else 10)
    container.go_on.set()
    if hierarchical:
        seen = {len(files(second.path, "step0"))}
        renaming.join(10)
        looking.join(10)
        assert seen | {len(files(second.path, "step0"))} <= {0, 3}
    else:
        assert 0 < len(files(second.path, "step0")) < 3
        renaming.join(10)
        second._take()
    assert (len(files(second.path, "step0")), len(files(second.path, "step0-tmp"))) == (3, 0)


def files(folder: Path, name: str) -> list[Path]:
    return list((folder / name).glob("*"))


class SlowContainer(FakeContainer):
    """Stops after the first blob that is written, until told to go on."""

    def __init__(self) -> None:
        super().__init__()
        self.between, self.go_on = threading.Event(), threading.Event()
        self.written = 0

    def put(self, name: str, content: bytes, **metadata: str) -> None:
        self.written += "step0/" in name
        if self.written == 2:
            self.between.set()
            assert self.go_on.wait(10)
        super().put(name, content, **metadata)
