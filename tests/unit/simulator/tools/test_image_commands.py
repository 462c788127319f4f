"""`make images` and `make lock-images`: which commands build, what is not built again, which digests are written."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

import httpx
import pytest

from config.data.content_tags import IMAGES, UnknownImage, content_tag, image_names
from simulator.azure.registries import Registries
from simulator.command import images
from simulator.tools.errors import ToolError, Unreachable
from tools import image_build, image_lock

ACR = "aiondev123456.azurecr.io"
LABELER = f"node-labeler:{content_tag('node-labeler')}"
DIGEST = "sha256:" + "a" * 64
OTHER = "sha256:" + "b" * 64


class Shell:
    """Records commands instead of running them; those that contain a word of `failing` end with 1."""

    def __init__(self, *failing: str) -> None:
        self.failing = failing
        self.commands: list[str] = []

    def __call__(self, command: Sequence[str], environment: dict[str, str]) -> int:
        self.commands.append(" ".join([*(f"{key}={value}" for key, value in environment.items()), *command]))
        return int(any(word in self.commands[-1] for word in self.failing))

    def having(self, word: str) -> list[str]:
        return [command for command in self.commands if word in command]


# -- building ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("builder", "login", "build"),
    [
        ("docker", "DOCKER_COMMAND=docker az acr login --name aiondev123456", "docker buildx build --platform"),
        ("podman", "DOCKER_COMMAND=podman az acr login --name aiondev123456", f"podman push {ACR}/{LABELER}"),
        ("acr", "", "az acr build --registry aiondev123456 --platform linux/amd64 --timeout 14400 --image " + LABELER),
    ],
)
def test_every_image_is_built_and_pushed_by_its_content_tag(builder: str, login: str, build: str) -> None:
    shell = Shell("inspect", "repository show")
    pushed = image_build.push_all(ACR, builder, shell, azure_cli=True)
    assert pushed == [f"{ACR}/{name}:{content_tag(name)}" for name in image_names()]
    assert shell.having("login") == ([login] if login else [])
    assert shell.having(build)
    assert shell.having(str(IMAGES / "node-labeler"))


@pytest.mark.parametrize("names", [("node-labeler", "aksnhc"), ("aksnhc,node-labeler,",)])
def test_only_the_images_that_are_named_are_built(names: tuple[str, ...], tmp_path: Path) -> None:
    shell, registries = Shell("inspect", "repository show"), Registries(tmp_path)
    pushed = image_build.push_all(ACR, "docker", shell, azure_cli=True, names=names)
    tags = [f"{name}:{content_tag(name)}" for name in ("aksnhc", "node-labeler")]
    assert pushed == [f"{ACR}/{tag}" for tag in tags]
    registries.add("aiondev")
    assert images.push_all(registries, names) == {"aiondev": tags}


def test_an_image_that_does_not_exist_is_refused_before_anything_is_built() -> None:
    shell = Shell("inspect")
    with pytest.raises(UnknownImage, match="no docker/nccl-tests/Dockerfile; near: nccl-test"):
        image_build.push_all(ACR, "docker", shell, azure_cli=True, names=["aksnhc", "nccl-tests"])
    assert shell.commands == []


@pytest.mark.parametrize("builder", list(image_build.BUILDERS))
def test_what_the_registry_has_is_not_built_again(builder: str) -> None:
    shell = Shell()
    assert image_build.push_all(ACR, builder, shell, azure_cli=True) == []
    assert not shell.having(" build ")


def test_without_azures_cli_the_login_that_is_there_is_used(capsys: pytest.CaptureFixture[str]) -> None:
    shell = Shell("inspect")
    image_build.push_all(ACR, "docker", shell, azure_cli=False)
    assert not shell.having("login")
    assert "with the login that docker has" in capsys.readouterr().out


@pytest.mark.parametrize(("failing", "message"), [("login", "the role AcrPush"), ("buildx", "was not pushed: docker")])
def test_a_failed_step_ends_it_with_the_reason(failing: str, message: str) -> None:
    with pytest.raises(ToolError, match=message):
        image_build.push_all(ACR, "docker", Shell("inspect", failing), azure_cli=True)


@pytest.mark.parametrize(
    ("there", "chosen"), [(["docker", "podman", "az"], "docker"), (["podman"], "podman"), (["az"], "acr")]
)
def test_the_first_builder_that_is_there_is_taken(there: list[str], chosen: str) -> None:
    assert image_build.choose(ACR, None, lambda probe: probe[0] in there) == chosen


def nowhere(_: Sequence[str]) -> bool:
    return False


def azure_cli_only(probe: Sequence[str]) -> bool:
    return probe[0] == "az"


@pytest.mark.parametrize(
    ("registry", "wanted", "works", "message"),
    [
        (ACR, None, nowhere, "`docker buildx version`, `podman --version`, `az version` does not work"),
        (ACR, "podman", nowhere, "builds images: `podman --version` does not work"),
        ("mirror.example.com", None, azure_cli_only, "`docker buildx version`, `podman --version` does"),
        ("mirror.example.com", "acr", azure_cli_only, "builder acr cannot push to mirror.example.com; usable: docker"),
        ("https://x.azurecr.io", None, nowhere, "is not a registry; give its host"),
    ],
)
def test_without_a_way_to_build_it_says_what_to_install(
    registry: str, wanted: str | None, works: Callable[[Sequence[str]], bool], message: str
) -> None:
    with pytest.raises(ToolError, match=re.escape(message)):
        image_build.choose(registry, wanted, works)


# -- the simulator's registries ----------------------------------------------------------------------------------------


def test_on_the_simulator_every_registry_gets_every_tag_once(tmp_path: Path) -> None:
    registries = Registries(tmp_path)
    assert images.push_all(registries) == {}
    registries.add("aiondev")
    everything = [f"{name}:{content_tag(name)}" for name in image_names()]
    assert images.push_all(registries) == {"aiondev": everything}
    assert images.push_all(registries) == {"aiondev": []}
    assert registries.images("aiondev") == everything


def test_images_are_pushed_to_a_registry_that_appears_meanwhile(tmp_path: Path) -> None:
    registries = Registries(tmp_path)
    with images.pushed_meanwhile(registries):
        registries.add("aiondev")
    assert LABELER in registries.images("aiondev")


# -- digests -----------------------------------------------------------------------------------------------------------


def dockerfiles() -> dict[str, str]:
    return {name: (IMAGES / name / "Dockerfile").read_text("utf-8") for name in image_names()}


NEEDS_BUILDKIT = r"^# *syntax=|^ADD .*\.git\b|^ADD git@|--mount=|--link\b|--exclude=|--chmod=|<<"


@pytest.mark.parametrize("name", image_names())
def test_every_builder_can_build_it(name: str) -> None:
    """`az acr build` has no BuildKit (Azure/acr#721), nor has podman an ADD of repositories before buildah#4974."""
    assert not re.findall(NEEDS_BUILDKIT, dockerfiles()[name], re.MULTILINE)


@pytest.mark.parametrize("name", image_names())
def test_what_is_fetched_is_pinned(name: str) -> None:
    text = dockerfiles()[name].replace("\\\n", "")
    versions = dict(re.findall(r"^ARG (\w+)=(\S+)", text, re.MULTILINE))
    for repository, commit in re.findall(r"git fetch .*?(https://\S+) \$\{(\w+)\}", text):
        assert re.fullmatch("[0-9a-f]{40}", versions[commit]), repository
    packages = [word.strip("'\"") for words in re.findall(r"pip install ([^&\n]+)", text) for word in words.split()]
    unpinned = [word for word in packages if not word.startswith(("-", ".")) and "==" not in word]
    assert unpinned == []


@pytest.mark.parametrize(
    ("reference", "base"),
    [
        ("nvcr.io/nvidia/pytorch:25.06-py3", image_lock.Base("nvcr.io", "nvidia/pytorch", "25.06-py3")),
        ("debian:12-slim", image_lock.Base("registry-1.docker.io", "library/debian", "12-slim")),
        ("team/tool:1", image_lock.Base("registry-1.docker.io", "team/tool", "1")),
        ("docker.io/library/python:3", image_lock.Base("registry-1.docker.io", "library/python", "3")),
        ("localhost:5000/a/b:1", image_lock.Base("localhost:5000", "a/b", "1")),
    ],
)
def test_references_name_a_registry_a_repository_and_a_tag(reference: str, base: image_lock.Base) -> None:
    assert image_lock.parse(reference) == base


@pytest.mark.parametrize(
    ("dockerfile", "found"),
    [
        ("FROM debian:12-slim\n", ["debian:12-slim"]),
        (f"FROM --platform=linux/amd64 debian:12-slim@{OTHER} AS build\n", ["debian:12-slim"]),
        ("ARG BASE=nvcr.io/a:1\nFROM ${BASE} AS build\nFROM $BASE\n", ["nvcr.io/a:1"]),
        ("ARG NOTE=a:1\nFROM scratch\n", []),
        ("FROM debian:12 AS build\nFROM build\n", ["debian:12"]),
    ],
)
def test_bases_are_found_in_from_and_in_the_arguments_that_it_names(dockerfile: str, found: list[str]) -> None:
    assert image_lock.bases(dockerfile) == found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A `docker/` of two images, one of them locked to an older digest."""
    for name, text in {"a": "ARG BASE=nvcr.io/a:1\nFROM ${BASE}\n", "b": f"FROM debian:12@{OTHER}\nENV X=1\n"}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "Dockerfile").write_text(text)
    return tmp_path


def registry(request: httpx.Request) -> httpx.Response:
    """Registries that want an anonymous token first, and have one digest for everything."""
    if request.url.path == "/token":
        assert request.url.params["scope"] == "repository:pull"
        return httpx.Response(200, json={"token": "for-anybody"})
    if request.headers.get("authorization") != "Bearer for-anybody":
        challenge = f'Bearer realm="https://{request.url.host}/token",service="s",scope="repository:pull"'
        return httpx.Response(401, headers={"www-authenticate": challenge})
    return httpx.Response(200, headers={"docker-content-digest": DIGEST})


def client(answer: Callable[[httpx.Request], httpx.Response]) -> httpx.Client:
    return httpx.Client(transport=httpx.MockTransport(answer))


def test_digests_are_written_beside_the_tags(folder: Path) -> None:
    assert image_lock.lock(client(registry), folder) == [f"debian:12@{DIGEST}", f"nvcr.io/a:1@{DIGEST}"]
    assert (folder / "a/Dockerfile").read_text() == f"ARG BASE=nvcr.io/a:1@{DIGEST}\nFROM ${{BASE}}\n"
    assert (folder / "b/Dockerfile").read_text() == f"FROM debian:12@{DIGEST}\nENV X=1\n"


def unreachable(request: httpx.Request) -> httpx.Response:
    raise httpx.ConnectError("no route to host", request=request)


@pytest.mark.parametrize(
    ("answer", "error", "message"),
    [
        (unreachable, Unreachable, "registry-1.docker.io is not reachable.*on a machine that reaches"),
        (lambda _: httpx.Response(404), ToolError, "answered 404. Check that the tag exists"),
        (lambda _: httpx.Response(200), ToolError, "returned no digest"),
        (lambda _: httpx.Response(401, headers={"www-authenticate": "Basic"}), ToolError, "anonymous access: Basic"),
    ],
    ids=["unreachable", "missing", "no digest", "login"],
)
def test_where_a_digest_cannot_be_had_nothing_is_written(
    folder: Path, answer: Callable[[httpx.Request], httpx.Response], error: type[Exception], message: str
) -> None:
    before = [file.read_text() for file in sorted(folder.glob("*/Dockerfile"))]
    with pytest.raises(error, match=re.compile(message, re.DOTALL)):
        image_lock.lock(client(answer), folder)
    assert [file.read_text() for file in sorted(folder.glob("*/Dockerfile"))] == before
