"""What an image holds, from its recipe and its own Dockerfile."""

from __future__ import annotations

import functools
import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from simulator import paths
from simulator.sandbox import PATH
from simulator.sandbox.executables import Bind
from simulator.tools.pip_packages import packages

_HERE = Path(__file__).parent
PYTHON = "python3"
SHIM = "/opt/simulator/shim"
"""Begins every container; there in all images."""


@dataclass(frozen=True)
class Image:
    """One image that can be run."""

    name: str
    executables: tuple[str, ...]
    """Programs of this machine."""
    commands: dict[str, str]
    """Path in the image -> module of `simulator/sandbox/commands`."""
    files: tuple[Bind, ...] = ()
    env: dict[str, str] = field(default_factory=dict)
    workdir: str = "/"
    python: bool = False
    """It has the Python that runs the simulator: `python3` among the recipe's executables."""
    packages: Path | None = None
    """The folder of this machine with the packages that its Python has."""
    entrypoint: tuple[str, ...] = ()
    """What a container without a command runs."""
    user: int = 0
    kubernetes_api: bool = False
    """Its sandbox has a way to the Kubernetes API: `kubernetesApi` in its recipe."""


def image_name(reference: str) -> str:
    """The last part of a reference without tag and digest: `host/team/nccl-test:1` is `nccl-test`."""
    return reference.partition("@")[0].rpartition("/")[2].partition(":")[0]


@functools.cache
def images() -> dict[str, Image]:
    """All images that can be run, by name: one recipe each."""
    return {file.stem: _image(file.stem, _read(file)) for file in sorted((_HERE / "recipes").glob("*.yaml"))}


def _read(file: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(file.read_text(encoding="utf-8"))
    return found


def _image(name: str, recipe: dict[str, Any]) -> Image:
    sets = _read(_HERE / "sets.yaml")
    executables = [program for each in recipe["executables"] for program in sets["executables"].get(each, [each])]
    commands: dict[str, str] = {}
    for each in recipe.get("commandSets", []):
        commands |= sets["commands"][each]
    commands |= recipe.get("commands", {})
    commands |= {SHIM: "shim"}
    folder = paths.ROOT / "docker" / name
    files = [(str(_HERE / "files" / source), target) for target, source in recipe.get("files", {}).items()]
    env = {"PATH": PATH, **recipe.get("env", {})}
    workdir = recipe.get("workdir", "/")
    for instruction, rest in _instructions(folder / "Dockerfile"):
        if instruction == "COPY":
            files += _copied(folder, rest)
        elif instruction == "ENV":
            env |= _variables(rest, env)
        elif instruction == "WORKDIR":
            workdir = rest
    programs = tuple(dict.fromkeys(program for program in executables if program != PYTHON))
    return Image(
        name,
        programs,
        commands,
        tuple(files),
        env,
        workdir,
        python=PYTHON in executables,
        packages=packages(paths.tools_bin() / recipe["packages"]) if "packages" in recipe else None,
        entrypoint=tuple(recipe.get("entrypoint", [])),
        user=recipe.get("user", 0),
        kubernetes_api=bool(recipe.get("kubernetesApi")),
    )


def _instructions(dockerfile: Path) -> list[tuple[str, str]]:
    """(instruction, rest of line) of the last build stage; an image without a Dockerfile has none."""
    if not dockerfile.exists():
        return []
    text = dockerfile.read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    parsed = [(line.partition(" ")[0].upper(), line.partition(" ")[2].strip()) for line in lines]
    stages = [index for index, (instruction, _) in enumerate(parsed) if instruction == "FROM"]
    return parsed[stages[-1] :] if stages else parsed


def _copied(folder: Path, rest: str) -> list[Bind]:
    """Files that a COPY takes from the image's folder; what it takes from other stages is built, not copied."""
    words = shlex.split(rest)
    if any(word.startswith("--from=") for word in words):
        return []
    *sources, target = [word for word in words if not word.startswith("--")]
    pairs: list[Bind] = []
    for source in sources:
        path = folder / source
        into = target.endswith("/") or len(sources) > 1
        inside = f"{target.rstrip('/')}/{path.name}" if into and path.is_file() else target.rstrip("/")
        pairs.append((str(path), inside))
    return pairs


def _variables(rest: str, known: dict[str, str]) -> dict[str, str]:
    found = {}
    for word in shlex.split(rest):
        name, _, value = word.partition("=")
        for other, text in known.items():
            value = value.replace(f"${{{other}}}", text).replace(f"${other}", text)
        found[name] = value
    return found
