"""An image's tag stands for its files: another file, name, mode or content is another tag, and nothing else is."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from components import images
from config.data.content_tags import IMAGES, UnknownImage, content_tag, image_names


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A `docker/` of one image, made of a Dockerfile and a script."""
    scripts = tmp_path / "tool" / "scripts"
    scripts.mkdir(parents=True)
    (tmp_path / "tool" / "Dockerfile").write_text("FROM scratch\nCOPY scripts/run.sh /\n")
    (scripts / "run.sh").write_text("echo hello\n")
    (scripts / "run.sh").chmod(0o755)
    return tmp_path


def leave_bytecode(image: Path) -> None:
    """As Python does beside a script that a test imports."""
    (image / "__pycache__").mkdir()
    (image / "__pycache__" / "run.pyc").touch()


CHANGES: dict[str, Callable[[Path], object]] = {
    "content": lambda image: (image / "scripts" / "run.sh").write_text("echo other\n"),
    "Dockerfile": lambda image: (image / "Dockerfile").write_text("FROM busybox\n"),
    "name": lambda image: (image / "scripts" / "run.sh").rename(image / "scripts" / "go.sh"),
    "no longer executable": lambda image: (image / "scripts" / "run.sh").chmod(0o644),
    "new file": lambda image: (image / "empty").touch(),
    "removed file": lambda image: (image / "scripts" / "run.sh").unlink(),
}
LEFTOVERS: dict[str, Callable[[Path], object]] = {
    "another umask": lambda image: (image / "scripts" / "run.sh").chmod(0o700),
    "touched": lambda image: (image / "Dockerfile").touch(),
    "bytecode": leave_bytecode,
}


@pytest.mark.parametrize("change", CHANGES)
def test_any_change_to_the_files_is_another_tag(folder: Path, change: str) -> None:
    before = content_tag("tool", folder)
    CHANGES[change](folder / "tool")
    assert content_tag("tool", folder) != before


@pytest.mark.parametrize("change", LEFTOVERS)
def test_what_is_not_content_leaves_the_tag(folder: Path, change: str) -> None:
    before = content_tag("tool", folder)
    LEFTOVERS[change](folder / "tool")
    assert content_tag("tool", folder) == before


def test_two_files_are_not_one_that_reads_like_both(folder: Path) -> None:
    image = folder / "tool"
    (image / "a").write_text("1")
    (image / "b").write_text("2")
    both = content_tag("tool", folder)
    (image / "b").unlink()
    (image / "a").write_text("1b2")
    assert content_tag("tool", folder) != both


@pytest.mark.parametrize("name", image_names())
def test_every_image_has_a_tag_that_registries_take(name: str) -> None:
    assert re.fullmatch("[0-9a-f]{12}", content_tag(name))


def test_a_folder_without_dockerfile_is_no_image(folder: Path) -> None:
    (folder / "notes").mkdir()
    assert image_names(folder) == ["tool"]
    with pytest.raises(UnknownImage, match="docker/notes/Dockerfile"):
        content_tag("notes", folder)


def test_an_unknown_image_is_refused_with_those_there_are() -> None:
    with pytest.raises(UnknownImage, match="no docker/ncll-test/Dockerfile; near: nccl-test; the images are .*nccl"):
        content_tag("ncll-test", IMAGES)


def test_own_images_are_in_the_stacks_registry_or_in_the_mirror() -> None:
    tag = content_tag("nccl-test")
    server = "aiondev123456.azurecr.io"
    assert images.own("nccl-test", login_server=server, mirror=None) == f"{server}/nccl-test:{tag}"
    mirror = "mirror.example.com/team/"
    assert images.own("nccl-test", login_server=server, mirror=mirror) == f"mirror.example.com/team/nccl-test:{tag}"
