"""Reads what an image contains from its recipe and its Dockerfile."""

from __future__ import annotations

import functools
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from simulator.host import paths
from simulator.sandbox import PATH
from simulator.sandbox.executables import Bind
from simulator.tools.packages import packages

_HERE = Path(__file__).parent
RECIPES = _HERE / "recipes"
_PROGRAMS = _HERE / "programs"
_SETS = _HERE / "sets.yaml"
PYTHON = "python3"
SHIM = "/opt/simulator/shim"
"""The program that starts every container."""


@dataclass(frozen=True)
class Image:
    """An image that can run."""

    name: str
    executables: tuple[str, ...]
    """This machine's programs in the image."""
    commands: dict[str, str]
    """Path in the image -> module of `simulator/sandbox/commands`."""
    files: tuple[Bind, ...] = ()
    tools: dict[str, str] = field(default_factory=dict)
    """Path in the image -> executable of the simulator's own tools."""
    env: dict[str, str] = field(default_factory=dict)
    workdir: str = "/"
    python: bool = False
    """Whether the image has the simulator's Python, because the recipe's executables include `python3`."""
    packages: Path | None = None
    """This machine's folder with the image's Python packages."""
    entrypoint: tuple[str, ...] = ()
    """The command of a container that sets no command."""
    user: int = 0
    kubernetes_api: bool = False
    """Whether sandboxes can reach the Kubernetes API (`kubernetesApi` in the recipe)."""


class Recipe(BaseModel):
    """The schema of a recipe. Most fields are those of `Image`."""

    model_config = ConfigDict(extra="forbid")

    executables: tuple[str, ...]
    """Names of programs, and of sets in sets.yaml."""
    commandSets: tuple[str, ...] = ()
    commands: dict[str, str] = {}
    files: dict[str, str] = {}
    """Path in the image -> path below `files/`."""
    tools: dict[str, str] = {}
    env: dict[str, str] = {}
    workdir: str = "/"
    packages: str = ""
    """The tool with the image's Python packages."""
    entrypoint: tuple[str, ...] = ()
    user: int = 0
    kubernetesApi: bool = False


class RecipeError(Exception):
    """The image cannot run. The message has the reason."""


@functools.cache
def programs() -> dict[str, Any]:
    """Returns the recipes of programs by name. Sandboxes get them as JSON, because they cannot parse YAML."""
    return {file.stem: _read(file) for file in sorted(_PROGRAMS.glob("*.yaml"))}


def image_name(reference: str) -> str:
    """Returns the name in an image reference, without tag and digest: `nccl-test` for `host/team/nccl-test:1`."""
    return reference.partition("@")[0].rpartition("/")[2].partition(":")[0]


def names() -> list[str]:
    return sorted(file.stem for file in RECIPES.glob("*.yaml"))


def has_recipe(reference: str) -> bool:
    """Returns whether the image has a recipe, so that its containers run in a sandbox."""
    return _recipe(image_name(reference)).is_file()


def image_named(name: str) -> Image:
    """Returns the image. Raises RecipeError if its recipe is missing or invalid."""
    files = (_recipe(name), _SETS, _dockerfile(name))
    if not has_recipe(name):
        raise RecipeError(f"image {name!r} has no recipe; images with a recipe: {', '.join(names())}")
    return _image(name, tuple(file.stat().st_mtime_ns if file.exists() else 0 for file in files))


@functools.lru_cache
def _image(name: str, _: tuple[int, ...]) -> Image:
    """Reads the image. The files' modification times, the second argument, are only a cache key."""
    recipe, sets = _read_recipe(_recipe(name)), _read(_SETS)
    if faults := list(_faults(recipe, sets)):
        raise RecipeError(f"recipes/{name}.yaml: {'; '.join(faults)}")
    commands = {path: module for each in recipe.commandSets for path, module in sets["commands"][each].items()}
    executables = [program for each in recipe.executables for program in sets["executables"].get(each, [each])]
    folder = _dockerfile(name).parent
    files = [(str(_HERE / "files" / source), target) for target, source in recipe.files.items()]
    env = {"PATH": PATH, **recipe.env}
    workdir = recipe.workdir
    for instruction, rest in _instructions(folder / "Dockerfile"):
        if instruction == "COPY":
            files += _copied(folder, rest)
        elif instruction == "ENV":
            env |= _variables(rest, env)
        elif instruction == "WORKDIR":
            workdir = rest
    return Image(
        name,
        tuple(dict.fromkeys(program for program in executables if program != PYTHON)),
        {**commands, **recipe.commands, SHIM: "shim"},
        tuple(files),
        recipe.tools,
        env,
        workdir,
        python=PYTHON in executables,
        packages=packages(paths.tools_bin() / recipe.packages) if recipe.packages else None,
        entrypoint=recipe.entrypoint,
        user=recipe.user,
        kubernetes_api=recipe.kubernetesApi,
    )


def _read_recipe(file: Path) -> Recipe:
    try:
        return Recipe.model_validate(_read(file))
    except yaml.YAMLError as error:
        raise RecipeError(f"recipes/{file.name}: {' '.join(str(error).split())}") from error
    except ValidationError as error:
        faults = [f"{'.'.join(map(str, each['loc'])) or 'all of it'}: {each['msg']}" for each in error.errors()]
        raise RecipeError(f"recipes/{file.name}: {'; '.join(faults)}") from error


def _faults(recipe: Recipe, sets: Mapping[str, Any]) -> Iterator[str]:
    for name in recipe.commandSets:
        if name not in sets["commands"]:
            yield f"commandSets: {name!r} does not exist; allowed: {', '.join(sets['commands'])}"
    for path, module in recipe.commands.items():
        if not (_HERE / "commands" / f"{module}.py").is_file():
            yield f"commands: {path} is {module!r}, but simulator/sandbox/commands/{module}.py does not exist"
    for path, source in recipe.files.items():
        if not (_HERE / "files" / source).exists():
            yield f"files: {path} is {source!r}, but simulator/sandbox/files/{source} does not exist"


def _recipe(name: str) -> Path:
    return RECIPES / f"{name}.yaml"


def _dockerfile(name: str) -> Path:
    return paths.ROOT / "docker" / name / "Dockerfile"


def _read(file: Path) -> Any:
    return yaml.safe_load(file.read_text(encoding="utf-8"))


def _instructions(dockerfile: Path) -> list[tuple[str, str]]:
    """Returns the instructions of the last build stage, each with the rest of its line, or [] without a Dockerfile."""
    if not dockerfile.exists():
        return []
    text = dockerfile.read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    parsed = [(line.partition(" ")[0].upper(), line.partition(" ")[2].strip()) for line in lines]
    stages = [index for index, (instruction, _) in enumerate(parsed) if instruction == "FROM"]
    return parsed[stages[-1] :] if stages else parsed


def _copied(folder: Path, rest: str) -> list[Bind]:
    """Returns bind mounts for a COPY instruction. Ignores copies from other stages, which are not built."""
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
