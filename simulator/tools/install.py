"""Installs missing tools one at a time, because each build uses all cores. An interruption loses at most one tool."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from simulator.host import files, paths
from simulator.tools import build, fetch, packages, system
from simulator.tools.catalogue import Catalogue, Release, System, Tool
from simulator.tools.errors import ToolError, Unreachable
from simulator.tools.progress import Progress
from simulator.tools.store import Store
from simulator.tools.workspace import Workspace

_GIB = 2**30
_HOW_LONG = "one to six minutes each on two idle cores"


_WAYS: Mapping[str, tuple[str, Callable[[Tool, Any, Workspace], None], str]] = {
    "system": ("searching", system.provide, "ready"),
    "npm": ("installing from npm", packages.install_npm, "installed from npm"),
    "pip": ("installing its Python packages", packages.install_pip, "installed"),
    "chart": ("downloading", build.copy_chart, "downloaded"),
    "crds": ("downloading", build.copy_crds, "downloaded"),
    "manifests": ("making", build.make_manifests, "made"),
    "build": ("building", build.build, "built"),
}
"""The text during installation, the function and the text afterwards, by kind of source."""


def _free_bytes(folder: Path) -> int:
    return shutil.disk_usage(folder).free


@contextmanager
def _temporary_files_in(folder: Path) -> Iterator[None]:
    """Sets TMPDIR, because killed child processes would leave temporary files in /tmp."""
    before = os.environ.get("TMPDIR")
    os.environ["TMPDIR"] = str(folder)
    try:
        yield
    finally:
        del os.environ["TMPDIR"]
        if before is not None:
            os.environ["TMPDIR"] = before


@dataclass
class Installer:
    """Installs a catalogue's tools in a store. All errors are ToolError."""

    catalogue: Catalogue
    store: Store
    progress: Progress = field(default_factory=Progress)
    free_bytes: Callable[[Path], int] = _free_bytes
    charts: Path = paths.ROOT / "simulator" / "charts"
    """The folder with the simulator's own charts, and with links to charts and manifests of Go modules."""

    def missing(self, tools: list[Tool]) -> list[Tool]:
        return [tool for tool in tools if not self._executable(tool).exists()]

    def install(self, tools: list[Tool]) -> None:
        """Installs all tools in the store's bin folder. Only reports optional tools that are not available."""
        if self.missing(tools):
            waiting = partial(self.progress.following, self.store.step)
            with (
                self.store.exclusively(waiting, lambda: bool(self.missing(tools))),
                _temporary_files_in(self.store.temporary),
            ):
                self._make(self.missing(tools))
        for tool in tools:
            folder = self.store.folder(self.catalogue.key(tool))
            for file in folder.iterdir() if folder.exists() else ():
                if file.is_file():  # the tool, or another file of its release
                    self.store.link(file.name, file)
                elif tool.chart or tool.manifests:
                    files.link(self.charts / tool.name, file)
                elif tool.crds:
                    files.link(self.charts / tool.crds.chart / "crds", file)

    def _executable(self, tool: Tool) -> Path:
        return self.store.folder(self.catalogue.key(tool)) / tool.name

    def _make(self, tools: list[Tool]) -> None:
        if not tools:
            return
        released = [tool for tool in tools if tool.release]
        online = bool(released) and fetch.internet_is_open(self.catalogue.probe)
        downloads = [*(released if online else []), *(tool for tool in tools if tool.npm or tool.pip)]
        by_go = [tool for tool in tools if tool.out_of_module]
        builds = [tool for tool in by_go if tool not in downloads]
        self._require_space(downloads=len(downloads), builds=len(builds))
        if builds:
            build.require_go(self.catalogue, builds)
            self.progress.write(f"Building {len(builds)} of {len(tools)} tools from source, once: {_HOW_LONG}.")
        for number, tool in enumerate(tools, start=1):
            with self.progress.step(number, len(tools), tool.label, self.store.step) as report:
                self._make_one(tool, report, download=tool in downloads)
        shutil.rmtree(self.store.go, ignore_errors=True)  # gigabytes, only for builds

    def _make_one(self, tool: Tool, report: Callable[[str], None], *, download: bool) -> None:
        try:
            with self.store.making(self.catalogue.key(tool)) as folder:
                self._fill(folder, tool, report, download=download)
        except ToolError as error:
            if not (tool.system and tool.system.optional):
                raise
            report(f"skipped, {tool.system.optional}: {error}")

    def _fill(self, folder: Path, tool: Tool, report: Callable[[str], None], *, download: bool) -> None:
        if download and tool.release and self._fetched(tool, tool.release, folder, report):
            report("downloaded")
            return
        for kind, (doing, make, done) in _WAYS.items():
            if source := getattr(tool, kind):
                report(doing)
                make(tool, source, self._workspace(tool, source, folder))
                report(done)
                return
        raise ToolError(f"{tool.label} can only be downloaded, and the internet is not reachable.")

    def _workspace(self, tool: Tool, source: Any, folder: Path) -> Workspace:
        module = folder if isinstance(source, System) else self.catalogue.module_of(source)
        kubectl = self.catalogue.by_name.get("kubectl", tool)
        return Workspace(
            folder, module, self.store.log(self.catalogue.key(tool)), self.store.go, self._executable(kubectl)
        )

    def _fetched(self, tool: Tool, release: Release, folder: Path, report: Callable[[str], None]) -> bool:
        try:
            fetch.fetch(tool, release, folder, report)
        except Unreachable as error:
            if not tool.build:
                raise
            self.progress.write(f"{error}; building it instead.")
            build.require_go(self.catalogue, [tool])
            return False
        return True

    def _require_space(self, *, downloads: int, builds: int) -> None:
        sizes = self.catalogue.disk_gib
        needed = sizes.base + sizes.per_build * builds + sizes.per_download * downloads
        free = self.free_bytes(self.store.root) / _GIB
        if free < needed:
            raise ToolError(
                f"Not enough disk space in {self.store.root}: {free:.1f} GiB are free, {needed:.1f} GiB are needed to "
                f"make {builds + downloads} tools.\n"
                "Free some space, or set another folder: AI_ON_AKS_CACHE=<folder on a larger disk> <command>"
            )
