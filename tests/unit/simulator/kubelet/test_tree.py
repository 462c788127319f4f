"""The tree from kernel notifications equals a walk."""

from __future__ import annotations

import contextlib
import errno
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from inotify_simple import INotify

from simulator.kubelet.csi import confined
from simulator.kubelet.csi.contents import signature
from simulator.kubelet.csi.tree import Tree


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "mounted"
    folder.mkdir()
    return folder


def walked(root: Path) -> dict[str, object]:
    return shown(*confined.tree(root, "", lambda *_: None))


def known(tree: Tree) -> dict[str, object]:
    return shown(tree.files, tree.folders)


def shown(files: confined.Files, folders: confined.Folders) -> dict[str, object]:
    return {**{name: signature(status) for name, status in files.items()}, **folders}


def write(root: Path, path: str) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(path)


def replace_by_file(root: Path) -> None:
    shutil.rmtree(root / "a")
    (root / "a").write_text("a file")


def remove_and_make(root: Path) -> None:
    shutil.rmtree(root / "a/b")
    write(root, "a/b/other")


def move_and_write(root: Path) -> None:
    (root / "a").rename(root / "z")
    write(root, "z/b/more")


def swap(root: Path) -> None:
    write(root, "e/of-e")
    (root / "a").rename(root / "between")
    (root / "e").rename(root / "a")
    (root / "between").rename(root / "e")
    write(root, "a/new")


@pytest.mark.parametrize(
    "change",
    [
        lambda root: write(root, "new/deep/file"),
        lambda root: (root / "a/b/c").write_text("longer than before"),
        lambda root: os.utime(root / "a/b/c", (1, 1)),
        lambda root: (root / "a/b/c").unlink(),
        lambda root: (root / "a/b/c").rename(root / "c"),
        lambda root: shutil.rmtree(root / "a"),
        lambda root: (root / "link").symlink_to("a"),
        move_and_write,
        replace_by_file,
        remove_and_make,
        swap,
    ],
)
def test_a_change_is_touched(root: Path, change: Callable[[Path], Any]) -> None:
    write(root, "a/b/c")
    write(root, "d")
    tree = Tree(root)
    tree.look()
    assert known(tree) == walked(root)
    before = known(tree)
    tree.touched.clear()
    change(root)
    tree.look()
    after = walked(root)
    assert known(tree) == after
    assert tree.touched >= {name for name in {*before, *after} if before.get(name) != after.get(name)}
    assert "d" not in tree.touched


def remove(root: Path, path: str) -> None:
    if (root / path).is_dir() and not (root / path).is_symlink():
        shutil.rmtree(root / path)
    else:
        (root / path).unlink()


ACTIONS: list[Callable[[Path, str, str], Any]] = [
    lambda root, one, _: write(root, one),
    lambda root, one, _: remove(root, one),
    lambda root, one, other: (root / one).rename(root / other),
    lambda root, one, other: (root / one).symlink_to(root / other),
]


@pytest.mark.parametrize("seed", range(5))
def test_random_changes_are_touched(root: Path, seed: int) -> None:
    """Few names make files, folders and links replace each other."""
    chosen = random.Random(seed)  # noqa: S311 - a seed makes failures reproducible
    tree = Tree(root)
    before: dict[str, object] = {}
    for step in range(200):
        one, other = ("/".join(chosen.choices("abc", k=chosen.randint(1, 3))) for _ in range(2))
        with contextlib.suppress(OSError):  # no such file, not a folder, etc.
            chosen.choice(ACTIONS)(root, one, other)
        if chosen.random() < 0.3:
            tree.look()
            now = walked(root)
            assert known(tree) == now, step
            assert tree.touched >= {name for name in {*before, *now} if before.get(name) != now.get(name)}
            before = now
            tree.touched.clear()


def test_a_look_reads_only_changes(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(50):
        write(root, f"results/{number}/output")
    tree = Tree(root)
    tree.look()
    tree.touched.clear()
    read: list[str] = []
    seen = confined.seen

    def noted(root: Path, path: str) -> os.stat_result | None:
        read.append(path)
        return seen(root, path)

    monkeypatch.setattr(confined, "seen", noted)
    monkeypatch.setattr(confined, "tree", lambda *_: pytest.fail("the whole folder was read"))
    write(root, "results/7/output")
    tree.look()
    assert set(read) == tree.touched == {"results/7/output"}
    read.clear()
    tree.look()
    assert read == []


def test_without_watches_each_look_reads_all(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(INotify, "add_watch", refuse)
    tree = Tree(root)
    for name in ("a", "b/c"):
        write(root, name)
        tree.look()
        assert known(tree) == walked(root)
        assert name in tree.touched


def test_survives_more_changes_than_the_kernel_queues(root: Path) -> None:
    tree = Tree(root)
    tree.look()
    most = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    file, other = root / "file", root / "other"
    for _ in range(most // 2 + 10):  # alternates files: the kernel merges equal notifications
        file.touch()
        other.touch()
    write(root, "last")
    tree.look()
    assert known(tree) == walked(root)
    assert tree.touched >= {"file", "other", "last"}


def test_reads_a_folder_at_the_next_look_after_an_error(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = Tree(root)
    tree.look()
    write(root, "a/b")
    with monkeypatch.context() as patched:
        patched.setattr(os, "scandir", _refused)
        with pytest.raises(PermissionError):
            tree.look()
    tree.look()
    assert known(tree) == walked(root)
    assert "a/b" in tree.touched


def _refused(_: object) -> Any:
    raise PermissionError(errno.EACCES, "Permission denied")
