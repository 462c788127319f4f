from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from simulator.kubelet.csi.contents import Copies
from simulator.kubelet.csi.mount import BlobMount
from tests.support.fake_container import Blob, FakeContainer


@pytest.fixture
def errors() -> list[str]:
    return []


def two_mounts(
    container: FakeContainer,
    folder: Path,
    errors: list[str],
    *,
    lock: threading.Lock | None = None,
    remembers_s: float = 0,
) -> tuple[BlobMount, BlobMount]:
    """A `lock` makes the namespace hierarchical."""
    first, second = (
        BlobMount(
            container.as_client(),
            folder / name,
            read_only=False,
            report=errors.append,
            lock=lock,
            remembers_s=remembers_s,
        )
        for name in ("first", "second")
    )
    return first, second


def test_downloads_a_blob_once_for_all_nodes(
    tmp_path: Path, errors: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    container, copies = FakeContainer(weights=b"w" * 2 * 2**20), Copies()
    read: list[str] = []
    download = container.download_blob

    def counted(name: str, *, offset: int, length: int) -> Blob:
        read.append(name)
        return download(name, offset=offset, length=length)

    monkeypatch.setattr(container, "download_blob", counted)
    for node in ("first", "second"):
        made = BlobMount(container.as_client(), tmp_path / node, read_only=True, report=errors.append, copies=copies)
        assert (made.path / "weights").read_bytes() == container.blobs["weights"].content
    assert read == ["weights"]


def test_a_cached_missing_name_appears_after_the_cache_expires(
    tmp_path: Path, errors: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    first, second = two_mounts(FakeContainer(), tmp_path, errors, remembers_s=120)
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
def test_renames_a_folder_in_one_step_or_blob_by_blob(tmp_path: Path, errors: list[str], *, hierarchical: bool) -> None:
    lock = threading.Lock() if hierarchical else None
    container = SlowContainer()
    for rank in range(3):
        container.put(f"step0-tmp/{rank}", b"1")
    first, second = two_mounts(container, tmp_path, errors, lock=lock)
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
    """Waits for `go_on` after the first written blob."""

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
