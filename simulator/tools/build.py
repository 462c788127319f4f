"""Builds tools with Go from pinned modules, and extracts their charts and manifests.

Go verifies sources against go.sum.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import yaml

from simulator.tools.catalogue import Build, Catalogue, Chart, Crds, GoPackage, Manifests, Tool
from simulator.tools.errors import ToolError
from simulator.tools.workspace import Workspace


def require_go(catalogue: Catalogue, tools: list[Tool]) -> None:
    names = ", ".join(tool.name for tool in tools)
    fix = f"Install Go {catalogue.go} or newer (https://go.dev/dl/), put it on PATH and run the same command again."
    why = f"Go {catalogue.go} is needed to build {names}: no released binary can be fetched for them here"
    if not shutil.which("go"):
        raise ToolError(f"{why}, but PATH has no `go`.\n{fix}")
    asked = subprocess.run(
        ["go", "env", "GOVERSION"],
        cwd=catalogue.modules,
        capture_output=True,
        text=True,
        check=False,
    )
    answer = asked.stdout.strip()
    version = re.match(r"go(\d+)\.(\d+)", answer)
    if asked.returncode != 0 or (version and tuple(map(int, version.groups())) < _numbers(catalogue.go)):
        raise ToolError(f"{why}, but {shutil.which('go')} reports: {answer or asked.stderr.strip()}.\n{fix}")


def build(tool: Tool, source: Build, workspace: Workspace) -> None:
    """Builds the tool's executable. Raises ToolError with the end of the log if the build fails."""
    flags = ["-trimpath", "-mod=readonly", "-modcacherw", "-ldflags", f"-s -w {tool.fill(source.ldflags)}"]
    command = ["go", "build", *flags, "-o", str(workspace.folder / tool.name), source.package]
    again = "Finished tools are kept; run the same command to try again."
    workspace.run(
        f"{tool.label} could not be built",
        command,
        cwd=workspace.module,
        environment=_environment(workspace),
        hint=again,
    )


def copy_chart(tool: Tool, source: Chart, workspace: Workspace) -> None:
    """Copies the chart from its Go package. Raises ToolError for an unexpected version or values."""
    chart = workspace.folder / tool.name
    package = _package(tool, source, workspace)
    shutil.copytree(package / source.folder, chart)
    if source.crds:
        shutil.copytree(package / source.crds, chart / "crds")
    metadata, values = chart / "Chart.yaml", chart / "values.yaml"
    text = metadata.read_text(encoding="utf-8")
    if yaml.safe_load(text)["appVersion"].lstrip("v") != tool.version:
        raise ToolError(f"{tool.label} is not in {source.package}: its chart has another appVersion.")
    # Upstream sets the version when it packages a release.
    metadata.write_text(re.sub(r"(?m)^version: .*$", f"version: {tool.version}", text), encoding="utf-8")
    for before, after in source.released.items():
        text = values.read_text(encoding="utf-8")
        if before not in text:
            raise ToolError(f"values.yaml of {tool.label} has no {before!r}, which a release replaces.")
        values.write_text(text.replace(before, tool.fill(after)), encoding="utf-8")


def copy_crds(tool: Tool, source: Crds, workspace: Workspace) -> None:
    """Copies the CRDs from their Go package. Raises ToolError if the package has another version."""
    shutil.copytree(_package(tool, source, workspace) / source.folder, workspace.folder / tool.name)


def make_manifests(tool: Tool, source: Manifests, workspace: Workspace) -> None:
    """Writes install.yaml as in upstream's release. Raises ToolError if that fails."""
    if not workspace.kubectl.exists():
        raise ToolError(f"{tool.label} needs kubectl, which is not installed. To install both: make tools")
    package = _package(tool, source, workspace)
    made = workspace.folder / tool.name
    made.mkdir()
    kustomization = made / "kustomization.yaml"
    images = [{"name": image, "newTag": f"v{tool.version}"} for image in source.images]
    released = {"resources": [os.path.relpath(package / source.folder, made.resolve())], "images": images}
    own = {"namespace": source.namespace} if source.namespace else {}
    kustomization.write_text(yaml.safe_dump(released | own), encoding="utf-8")
    command = [str(workspace.kubectl), "kustomize", str(made), "--output", str(made / "install.yaml")]
    workspace.run(f"{tool.label} could not be made", command, cwd=workspace.folder)
    kustomization.unlink()


def _package(tool: Tool, source: GoPackage, workspace: Workspace) -> Path:
    command = ["go", "mod", "download", "-modcacherw", "-json", source.package]
    workspace.run(
        f"{tool.label} could not be downloaded", command, cwd=workspace.module, environment=_environment(workspace)
    )
    found = json.loads(workspace.log.read_text(errors="replace"))
    if found["Version"] != f"v{tool.version}":
        raise ToolError(
            f"{tool.label} is not in {source.package} {found['Version']}, which {workspace.module}/go.mod pins."
        )
    return Path(found["Dir"])


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def _environment(workspace: Workspace) -> dict[str, str]:
    """Returns Go's variables, for static executables like upstream's.

    If the user sets GOCACHE or GOMODCACHE, Go uses these folders.
    """
    ours = {"GOCACHE": str(workspace.go_caches / "build"), "GOMODCACHE": str(workspace.go_caches / "modules")}
    return {**ours, **os.environ, "CGO_ENABLED": "0", "GOWORK": "off"}
