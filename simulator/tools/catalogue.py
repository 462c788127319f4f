"""The tools, their versions and their sources, read from `tools.yaml`."""

from __future__ import annotations

import hashlib
import json
import platform
import sys
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path

import yaml
from pydantic import BaseModel, ConfigDict

from simulator.tools.errors import ToolError

_HERE = Path(__file__).resolve().parent
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


class _Data(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Release(_Data):
    """`members` are the files of the archive at `url`; without any, the url is the executable itself."""

    url: str
    checksums: str
    members: tuple[str, ...] = ()


class Build(_Data):
    """The Go package of the executable, in the module `modules/<module>`."""

    module: str
    package: str
    ldflags: str = ""


class Npm(_Data):
    """An executable of an npm package that `modules/<module>` locks; `node` is the oldest major version that does."""

    module: str
    node: int


class Pip(_Data):
    """An executable of the Python packages that `modules/<module>` locks."""

    module: str


class System(_Data):
    """An executable of the operating system; `optional` says what is lost without it."""

    debian_package: str
    optional: str | None = None


class Tool(_Data):
    name: str
    version: str
    needed_for: frozenset[str]
    system: System | None = None
    release: Release | None = None
    build: Build | None = None
    npm: Npm | None = None
    pip: Pip | None = None

    @property
    def label(self) -> str:
        return f"{self.name} {self.version}"

    def fill(self, template: str) -> str:
        """Completes a url, path or flag of tools.yaml for this tool on this machine."""
        machine = platform.machine()
        arch = _ARCHITECTURES.get(machine, machine)
        x64 = "x64" if arch == "amd64" else arch
        system = platform.system().lower()
        return template.format(name=self.name, version=self.version, os=system, arch=arch, arch_x64=x64)


class DiskSpace(_Data):
    """Free space in GiB that must be there before anything starts."""

    base: float
    per_build: float
    per_download: float


class Catalogue(_Data):
    probe: str
    go: str
    disk_gib: DiskSpace
    tools: tuple[Tool, ...]
    modules: Path = _HERE / "modules"

    @cached_property
    def by_name(self) -> dict[str, Tool]:
        return {tool.name: tool for tool in self.tools}

    @cached_property
    def groups(self) -> frozenset[str]:
        return frozenset().union(*(tool.needed_for for tool in self.tools))

    def needed_for(self, group: str) -> list[Tool]:
        return [tool for tool in self.tools if group in tool.needed_for]

    def named(self, names: Iterable[str]) -> list[Tool]:
        if unknown := sorted(set(names) - self.by_name.keys()):
            raise ToolError(f"No such tool: {', '.join(unknown)}. The tools are: {', '.join(self.by_name)}.")
        return [self.by_name[name] for name in names]

    def key(self, tool: Tool) -> str:
        """Names what a tool's executable depends on: another definition or pin gives another key."""
        digest = hashlib.sha256(json.dumps(tool.model_dump(mode="json", exclude={"needed_for", "npm", "pip"})).encode())
        if tool.build:
            for pins in ("go.mod", "go.sum"):
                digest.update((self.modules / tool.build.module / pins).read_bytes())
        if tool.npm:
            digest.update((self.modules / tool.npm.module / "package-lock.json").read_bytes())
        if tool.pip:
            digest.update((self.modules / tool.pip.module / "requirements.txt").read_bytes())
            digest.update(str(sys.implementation.cache_tag).encode())  # compiled parts are for one Python
        return f"{tool.name}-{tool.version}-{digest.hexdigest()[:12]}"


def load(file: Path = _HERE / "tools.yaml") -> Catalogue:
    return Catalogue.model_validate(yaml.safe_load(file.read_text()))
