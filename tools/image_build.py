"""`python -m tools.image_build <registry>`: builds images of `docker/` and pushes them by content tag.

Builds all of them, or those in `--images`, with the first available builder: docker (buildx), podman, or the registry
itself (`az acr build`). Skips images if the registry already has the tag, because the tag is a hash of the content.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from config.data.content_tags import IMAGES, UnknownImage, chosen_images, content_tag
from simulator.tools.errors import ToolError

PLATFORM = "linux/amd64"
"""The platform of all supported VM sizes. GB200 and GB300 have arm64 and are not supported."""
ACR = ".azurecr.io"
_REGISTRY = r"[\w.-]+(:\d+)?(/[\w./-]+)?"
ACR_BUILD_S = 4 * 3600
"""The timeout of a build in Azure. The default of an hour is too short for base images of tens of GB (PyTorch)."""
Command = Sequence[str]
Run = Callable[[Command, dict[str, str]], int]


@dataclass(frozen=True)
class Target:
    registry: str
    name: str
    tag: str

    @property
    def reference(self) -> str:
        return f"{self.registry}/{self.name}:{self.tag}"

    @property
    def folder(self) -> str:
        return str(IMAGES / self.name)

    @property
    def acr(self) -> str:
        return self.registry.removesuffix(ACR)


@dataclass(frozen=True)
class Builder:
    program: str
    probe: Command
    present: Callable[[Target], Command]
    build: Callable[[Target], list[Command]]


BUILDERS = {
    "docker": Builder(
        "docker",
        ["docker", "buildx", "version"],
        lambda target: ["docker", "manifest", "inspect", target.reference],
        lambda target: [
            ["docker", "buildx", "build", "--platform", PLATFORM, "--push", "--tag", target.reference, target.folder]
        ],
    ),
    "podman": Builder(
        "podman",
        ["podman", "--version"],
        lambda target: ["podman", "manifest", "inspect", f"docker://{target.reference}"],
        lambda target: [
            ["podman", "build", "--platform", PLATFORM, "--tag", target.reference, target.folder],
            ["podman", "push", target.reference],
        ],
    ),
    "acr": Builder(
        "az",
        ["az", "version"],
        lambda target: ["az", "acr", "repository", "show", "--name", target.acr, "--image", _in_registry(target)],
        lambda target: [
            ["az", "acr", "build", "--registry", target.acr, "--platform", PLATFORM, "--timeout", str(ACR_BUILD_S)]
            + ["--image", _in_registry(target), target.folder]
        ],
    ),
}


def choose(registry: str, wanted: str | None, works: Callable[[Command], bool]) -> str:
    """Returns the builder to use. Raises ToolError, with the fix, if none works."""
    if not re.fullmatch(_REGISTRY, registry):
        raise ToolError(f"{registry!r} is not a registry; give its host, as in myregistry{ACR}")
    usable = [name for name in BUILDERS if name != "acr" or registry.endswith(ACR)]
    if wanted and wanted not in usable:
        raise ToolError(f"builder {wanted} cannot push to {registry}; usable: {', '.join(usable)}")
    found = [name for name in usable if works(BUILDERS[name].probe) and wanted in (None, name)]
    if not found:
        probes = ", ".join(f"`{' '.join(BUILDERS[name].probe)}`" for name in ([wanted] if wanted else usable))
        raise ToolError(
            f"No program on this machine can build images: {probes} fails.\n"
            "Install Docker with buildx (docs.docker.com/engine/install) or Podman. For a registry in Azure, you can "
            "also\ninstall Azure's CLI: the registry then builds the images. Then run the same command again."
        )
    return found[0]


def push_all(registry: str, builder: str, run: Run, *, azure_cli: bool, names: Sequence[str] = ()) -> list[str]:
    """Builds and pushes all images, or only `names`, unless the registry has them. Returns the pushed references.

    Raises ToolError and UnknownImage.
    """
    chosen = chosen_images(names)
    _log_in(registry, builder, run, azure_cli=azure_cli)
    pushed = []
    for name in chosen:
        target = Target(registry, name, content_tag(name))
        if run(BUILDERS[builder].present(target), {}) == 0:
            print(f"{target.reference} already exists", flush=True)
            continue
        for command in BUILDERS[builder].build(target):
            print(f"== {' '.join(command)}", flush=True)
            if run(command, {}):
                raise ToolError(f"{target.reference} was not pushed: {' '.join(command)} failed; see above")
        pushed.append(target.reference)
    return pushed


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.image_build", description=__doc__)
    parser.add_argument("registry", help="where to push: the stack output `registry`, or a mirror")
    parser.add_argument("--builder", choices=list(BUILDERS))
    parser.add_argument("--images", nargs="*", default=[], metavar="NAME", help="only these, separated by commas")
    options = parser.parse_args(arguments)
    try:
        builder = choose(options.registry, options.builder, _works)
        azure_cli = shutil.which("az") is not None
        pushed = push_all(options.registry, builder, _run, azure_cli=azure_cli, names=options.images)
    except (ToolError, UnknownImage) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(f"pushed {len(pushed)} of {len(chosen_images(options.images))} images to {options.registry}")
    return 0


def _log_in(registry: str, builder: str, run: Run, *, azure_cli: bool) -> None:
    """Runs `az acr login` for docker or podman. `az acr build` needs no login. Users log in to other registries."""
    if builder == "acr" or not registry.endswith(ACR):
        return
    if not azure_cli:
        print(f"Azure's CLI is not installed: pushing to {registry} with the current login of {builder}", flush=True)
        return
    name = registry.removesuffix(ACR)
    if run(["az", "acr", "login", "--name", name], {"DOCKER_COMMAND": BUILDERS[builder].program}):
        raise ToolError(f"cannot log in to {registry}: run `az login`, and get the role AcrPush there")


def _in_registry(target: Target) -> str:
    return f"{target.name}:{target.tag}"


def _works(probe: Command) -> bool:
    if shutil.which(probe[0]) is None:
        return False
    return subprocess.run(list(probe), capture_output=True, check=False).returncode == 0


def _run(command: Command, environment: dict[str, str]) -> int:
    """Runs a command. Hides the output of queries, because an image that the registry lacks is not an error."""
    asking = "inspect" in command or "show" in command
    sink = subprocess.DEVNULL if asking else None
    env = {**os.environ, **environment}
    return subprocess.run(list(command), env=env, stdout=sink, stderr=sink, cwd=Path.cwd(), check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
