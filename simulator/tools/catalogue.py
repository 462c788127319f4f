"""Reads tools, versions and sources from `tools.yaml` in this folder and in the real operators' folders."""

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
_OPERATORS = _HERE.parent / "operators"
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


class _Data(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Release(_Data):
    """A download. `members` are the needed files in the archive at `url`. Without members, `url` is the executable."""

    url: str
    checksums: str
    members: tuple[str, ...] = ()


class GoPackage(_Data):
    """A Go package pinned in `modules/<module>` or `simulator/operators/<module>`."""

    module: str
    package: str


class Build(GoPackage):
    """A Go package that builds an executable."""

    ldflags: str = ""


class Chart(GoPackage):
    """A chart in a folder of the package."""

    folder: str
    crds: str | None = None
    """The folder of the CRDs, if the chart has only a link to them: Go modules contain no links."""
    released: dict[str, str] = {}
    """The replacements that upstream's release makes in values.yaml."""


class Manifests(GoPackage):
    """The kustomization that upstream releases as install.yaml."""

    folder: str
    images: tuple[str, ...] = ()
    """Images that get the version as tag in upstream's release."""
    namespace: str | None = None


class Crds(GoPackage):
    """CRDs in a folder of the package, for the simulator's own chart in the folder `chart`."""

    folder: str
    chart: str


class Npm(_Data):
    """An executable of an npm package locked in `modules/<module>`. `node` is the oldest major version of Node.js."""

    module: str
    node: int


class Pip(_Data):
    """An executable of Python packages locked in `modules/<module>`."""

    module: str
    executable: str = ""
    """The executable's name, or empty if it is the tool's name."""


class System(_Data):
    """An executable of the operating system. `optional` describes the consequence if it is missing."""

    debian_package: str
    optional: str | None = None


class Tool(_Data):
    name: str
    version: str
    needed_for: frozenset[str]
    system: System | None = None
    release: Release | None = None
    build: Build | None = None
    chart: Chart | None = None
    manifests: Manifests | None = None
    crds: Crds | None = None
    npm: Npm | None = None
    pip: Pip | None = None

    @property
    def out_of_module(self) -> GoPackage | None:
        return self.build or self.chart or self.manifests or self.crds

    @property
    def label(self) -> str:
        return f"{self.name} {self.version}"

    def fill(self, template: str) -> str:
        machine = platform.machine()
        arch = _ARCHITECTURES.get(machine, machine)
        x64 = "x64" if arch == "amd64" else arch
        system = platform.system().lower()
        return template.format(name=self.name, version=self.version, os=system, arch=arch, arch_x64=x64)


class DiskSpace(_Data):
    """The free space in GiB that is required to start."""

    base: float
    per_build: float
    per_download: float


class Catalogue(_Data):
    probe: str
    go: str
    disk_gib: DiskSpace
    tools: tuple[Tool, ...]
    modules: Path = _HERE / "modules"
    operators: Path = _OPERATORS

    @cached_property
    def by_name(self) -> dict[str, Tool]:
        return {tool.name: tool for tool in self.tools}

    @cached_property
    def groups(self) -> frozenset[str]:
        return frozenset().union(*(tool.needed_for for tool in self.tools))

    def needed_for(self, *groups: str) -> list[Tool]:
        return [tool for tool in self.tools if tool.needed_for.intersection(groups)]

    def named(self, names: Iterable[str]) -> list[Tool]:
        if unknown := sorted(set(names) - self.by_name.keys()):
            raise ToolError(f"unknown tools: {', '.join(unknown)}. The tools are: {', '.join(self.by_name)}.")
        return [self.by_name[name] for name in names]

    def module_of(self, source: GoPackage | Npm | Pip) -> Path:
        """Returns the folder with the pinned versions. A real operator's folder is next to its program."""
        own = self.modules / source.module
        return own if own.is_dir() else self.operators / source.module

    def key(self, tool: Tool) -> str:
        unused = {kind for kind in ("chart", "manifests", "crds") if getattr(tool, kind) is None}
        definition = tool.model_dump(mode="json", exclude={"needed_for", "npm", "pip", *unused})
        digest = hashlib.sha256(json.dumps(definition).encode())
        if source := tool.out_of_module:
            for pins in ("go.mod", "go.sum"):
                digest.update((self.module_of(source) / pins).read_bytes())
        if tool.npm:
            digest.update((self.module_of(tool.npm) / "package-lock.json").read_bytes())
        if tool.pip:
            digest.update((self.module_of(tool.pip) / "requirements.txt").read_bytes())
            # Compiled extensions and bytecode depend on the Python version.
            digest.update(f"{sys.implementation.cache_tag} bytecode".encode())
        return f"{tool.name}-{tool.version}-{digest.hexdigest()[:12]}"


def load(file: Path = _HERE / "tools.yaml") -> Catalogue:
    """Returns the tools in `file`, and the real operators' executables and charts."""
    data = yaml.safe_load(file.read_text())
    for operator in sorted(_OPERATORS.glob("*/tools.yaml")):
        data["tools"] += yaml.safe_load(operator.read_text())
    return Catalogue.model_validate(data)
