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
    """Records commands. Those with a word of `failing` return 1."""

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
def test_builds_and_pushes_each_image_with_its_content_tag(builder: str, login: str, build: str) -> None:
    shell = Shell("inspect", "repository show")
    pushed = image_build.push_all(ACR, builder, shell, azure_cli=True)
    assert pushed == [f"{ACR}/{name}:{content_tag(name)}" for name in image_names()]
    assert shell.having("login") == ([login] if login else [])
    assert shell.having(build)
    assert shell.having(str(IMAGES / "node-labeler"))


@pytest.mark.parametrize("names", [("node-labeler", "aksnhc"), ("aksnhc,node-labeler,",)])
def test_builds_only_the_named_images(names: tuple[str, ...], tmp_path: Path) -> None:
    shell, registries = Shell("inspect", "repository show"), Registries(tmp_path)
    pushed = image_build.push_all(ACR, "docker", shell, azure_cli=True, names=names)
    tags = [f"{name}:{content_tag(name)}" for name in ("aksnhc", "node-labeler")]
    assert pushed == [f"{ACR}/{tag}" for tag in tags]
    registries.add("aiondev")
    assert images.push_all(registries, names) == {"aiondev": tags}


def test_rejects_an_unknown_image_before_any_build() -> None:
    shell = Shell("inspect")
    with pytest.raises(UnknownImage, match="docker/nccl-tests/Dockerfile does not exist; similar: nccl-test"):
        image_build.push_all(ACR, "docker", shell, azure_cli=True, names=["aksnhc", "nccl-tests"])
    assert shell.commands == []


@pytest.mark.parametrize("builder", list(image_build.BUILDERS))
def test_does_not_build_images_that_the_registry_has(builder: str) -> None:
    shell = Shell()
    assert image_build.push_all(ACR, builder, shell, azure_cli=True) == []
    assert not shell.having(" build ")


def test_without_the_azure_cli_it_uses_the_existing_login(capsys: pytest.CaptureFixture[str]) -> None:
    shell = Shell("inspect")
    image_build.push_all(ACR, "docker", shell, azure_cli=False)
    assert not shell.having("login")
    assert "with the current login of docker" in capsys.readouterr().out


@pytest.mark.parametrize(("failing", "message"), [("login", "the role AcrPush"), ("buildx", "was not pushed: docker")])
def test_a_failed_step_ends_with_the_reason(failing: str, message: str) -> None:
    with pytest.raises(ToolError, match=message):
        image_build.push_all(ACR, "docker", Shell("inspect", failing), azure_cli=True)


@pytest.mark.parametrize(
    ("installed", "chosen"), [(["docker", "podman", "az"], "docker"), (["podman"], "podman"), (["az"], "acr")]
)
def test_uses_the_first_installed_builder(installed: list[str], chosen: str) -> None:
    assert image_build.choose(ACR, None, lambda probe: probe[0] in installed) == chosen


@pytest.mark.parametrize(
    ("registry", "wanted", "installed", "message"),
    [
        (ACR, None, [], "`docker buildx version`, `podman --version`, `az version` fails"),
        (ACR, "podman", [], "can build images: `podman --version` fails"),
        ("mirror.example.com", None, ["az"], "`docker buildx version`, `podman --version` fails"),
        ("mirror.example.com", "acr", ["az"], "builder acr cannot push to mirror.example.com; usable: docker"),
        ("https://x.azurecr.io", None, [], "is not a registry; give its host"),
    ],
)
def test_without_a_builder_it_shows_what_to_install(
    registry: str, wanted: str | None, installed: list[str], message: str
) -> None:
    with pytest.raises(ToolError, match=re.escape(message)):
        image_build.choose(registry, wanted, lambda probe: probe[0] in installed)


# -- the simulator's registries ----------------------------------------------------------------------------------------


def test_the_simulators_registries_get_each_tag_once(tmp_path: Path) -> None:
    registries = Registries(tmp_path)
    assert images.push_all(registries) == {}
    registries.add("aiondev")
    everything = [f"{name}:{content_tag(name)}" for name in image_names()]
    assert images.push_all(registries) == {"aiondev": everything}
    assert images.push_all(registries) == {"aiondev": []}
    assert registries.images("aiondev") == everything


def test_registers_images_in_a_new_registry(tmp_path: Path) -> None:
    registries = Registries(tmp_path)
    with images.registering(registries):
        registries.add("aiondev")
    assert LABELER in registries.images("aiondev")


# -- digests -----------------------------------------------------------------------------------------------------------


NEEDS_BUILDKIT = r"^# *syntax=|^ADD .*\.git\b|^ADD git@|--mount=|--link\b|--exclude=|--chmod=|<<"


@pytest.mark.parametrize("name", image_names())
def test_a_dockerfile_needs_no_buildkit(name: str) -> None:
    """`az acr build` lacks BuildKit (Azure/acr#721), and podman before buildah#4974 lacks ADD of repositories."""
    assert not re.findall(NEEDS_BUILDKIT, (IMAGES / name / "Dockerfile").read_text("utf-8"), re.MULTILINE)


@pytest.mark.parametrize("name", image_names())
def test_a_dockerfile_pins_downloads(name: str) -> None:
    text = (IMAGES / name / "Dockerfile").read_text("utf-8").replace("\\\n", "")
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
def test_parses_references(reference: str, base: image_lock.Base) -> None:
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
def test_finds_base_images_in_from_and_its_arguments(dockerfile: str, found: list[str]) -> None:
    assert image_lock.bases(dockerfile) == found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in {"a": "ARG BASE=nvcr.io/a:1\nFROM ${BASE}\n", "b": f"FROM debian:12@{OTHER}\nENV X=1\n"}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "Dockerfile").write_text(text)
    return tmp_path


def registry(request: httpx.Request) -> httpx.Response:
    """The registry requires an anonymous token, and has one digest for all images."""
    if request.url.path == "/token":
        assert request.url.params["scope"] == "repository:pull"
        return httpx.Response(200, json={"token": "anonymous"})
    if request.headers.get("authorization") != "Bearer anonymous":
        challenge = f'Bearer realm="https://{request.url.host}/token",service="s",scope="repository:pull"'
        return httpx.Response(401, headers={"www-authenticate": challenge})
    return httpx.Response(200, headers={"docker-content-digest": DIGEST})


def client(answer: Callable[[httpx.Request], httpx.Response]) -> httpx.Client:
    return httpx.Client(transport=httpx.MockTransport(answer))


def test_writes_digests_beside_the_tags(folder: Path) -> None:
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
def test_writes_nothing_if_a_digest_is_missing(
    folder: Path, answer: Callable[[httpx.Request], httpx.Response], error: type[Exception], message: str
) -> None:
    before = [file.read_text() for file in sorted(folder.glob("*/Dockerfile"))]
    with pytest.raises(error, match=re.compile(message, re.DOTALL)):
        image_lock.lock(client(answer), folder)
    assert [file.read_text() for file in sorted(folder.glob("*/Dockerfile"))] == before
