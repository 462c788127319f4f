from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from components import images
from config.data.content_tags import IMAGES, UnknownImage, content_tag, image_names


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    scripts = tmp_path / "tool" / "scripts"
    scripts.mkdir(parents=True)
    (tmp_path / "tool" / "Dockerfile").write_text("FROM scratch\nCOPY scripts/run.sh /\n")
    (scripts / "run.sh").write_text("echo hello\n")
    (scripts / "run.sh").chmod(0o755)
    return tmp_path


def leave_bytecode(image: Path) -> None:
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
def test_a_changed_file_changes_the_tag(folder: Path, change: str) -> None:
    before = content_tag("tool", folder)
    CHANGES[change](folder / "tool")
    assert content_tag("tool", folder) != before


@pytest.mark.parametrize("change", LEFTOVERS)
def test_other_changes_keep_the_tag(folder: Path, change: str) -> None:
    before = content_tag("tool", folder)
    LEFTOVERS[change](folder / "tool")
    assert content_tag("tool", folder) == before


def test_two_files_and_their_concatenation_have_different_tags(folder: Path) -> None:
    image = folder / "tool"
    (image / "a").write_text("1")
    (image / "b").write_text("2")
    both = content_tag("tool", folder)
    (image / "b").unlink()
    (image / "a").write_text("1b2")
    assert content_tag("tool", folder) != both


def test_a_folder_without_a_dockerfile_is_not_an_image(folder: Path) -> None:
    (folder / "notes").mkdir()
    assert image_names(folder) == ["tool"]
    with pytest.raises(UnknownImage, match="docker/notes/Dockerfile"):
        content_tag("notes", folder)


def test_rejects_an_unknown_image_and_lists_the_known_ones() -> None:
    message = "docker/ncll-test/Dockerfile does not exist; similar: nccl-test; the images are .*nccl"
    with pytest.raises(UnknownImage, match=message):
        content_tag("ncll-test", IMAGES)


def test_images_of_docker_are_in_the_stacks_registry_or_the_mirror() -> None:
    tag = content_tag("nccl-test")
    server = "aiondev123456.azurecr.io"
    assert images.own("nccl-test", login_server=server, mirror=None) == f"{server}/nccl-test:{tag}"
    mirror = "mirror.example.com/team/"
    assert images.own("nccl-test", login_server=server, mirror=mirror) == f"mirror.example.com/team/nccl-test:{tag}"
