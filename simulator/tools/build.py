"""Builds tools with Go from their pinned modules, and takes charts and manifests out of them.

Go verifies every source against the module's go.sum.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

import yaml

from simulator.tools.catalogue import Build, Catalogue, Chart, Crds, Manifests, Tool
from simulator.tools.errors import ToolError

_LOG_LINES = 15


def require_go(catalogue: Catalogue, tools: list[Tool]) -> None:
    """Raises ToolError unless a Go that can build the tools is on PATH."""
    names = ", ".join(tool.name for tool in tools)
    mend = f"Install Go {catalogue.go} or newer (https://go.dev/dl/), put it on PATH and run the same command again."
    why = f"Go {catalogue.go} is needed to build {names}: no released binary can be fetched for them here"
    if not shutil.which("go"):
        raise ToolError(f"{why}, but there is no `go` on PATH.\n{mend}")
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
        raise ToolError(f"{why}, but {shutil.which('go')} says: {answer or asked.stderr.strip()}.\n{mend}")


def build(tool: Tool, source: Build, module: Path, folder: Path, *, go_caches: Path, log: Path) -> None:
    """Builds the tool's executable into `folder`; raises ToolError with the end of the log if that fails."""
    flags = ["-trimpath", "-mod=readonly", "-modcacherw", "-ldflags", f"-s -w {tool.fill(source.ldflags)}"]
    command = ["go", "build", *flags, "-o", str(folder / tool.name), source.package]
    with log.open("wb") as output:
        code = run(command, cwd=module, environment=_environment(go_caches), output=output.fileno())
    if code != 0:
        raise ToolError(
            f"{tool.label} could not be built (go build exited with {code}). The end of {log}:\n{end_of(log)}\n"
            "Finished tools are kept; run the same command to try again."
        )


def copy_chart(tool: Tool, source: Chart, module: Path, folder: Path, *, go_caches: Path, log: Path) -> None:
    """Copies the chart out of its Go package into `folder`; raises ToolError where it is not what the tool says."""
    chart = folder / tool.name
    package = _package(tool, source, module, go_caches, log)
    shutil.copytree(package / source.folder, chart)
    if source.crds:
        shutil.copytree(package / source.crds, chart / "crds")
    metadata, values = chart / "Chart.yaml", chart / "values.yaml"
    text = metadata.read_text(encoding="utf-8")
    if yaml.safe_load(text)["appVersion"].lstrip("v") != tool.version:
        raise ToolError(f"{tool.label} is not in {source.package}: the appVersion of its chart is another.")
    # Upstream gives the chart its version when it packages a release.
    metadata.write_text(re.sub(r"(?m)^version: .*$", f"version: {tool.version}", text), encoding="utf-8")
    for before, after in source.released.items():
        text = values.read_text(encoding="utf-8")
        if before not in text:
            raise ToolError(f"{tool.label} has no {before!r} in its values.yaml, which its release would replace.")
        values.write_text(text.replace(before, tool.fill(after)), encoding="utf-8")


def copy_crds(tool: Tool, source: Crds, module: Path, folder: Path, *, go_caches: Path, log: Path) -> None:
    """Copies the CRDs out of their Go package into `folder`; raises ToolError where that is another version."""
    shutil.copytree(_package(tool, source, module, go_caches, log) / source.folder, folder / tool.name)


def make_manifests(
    tool: Tool, source: Manifests, module: Path, folder: Path, *, kubectl: Path, go_caches: Path, log: Path
) -> None:
    """Writes install.yaml into `folder`, as upstream makes that of a release; raises ToolError where that fails."""
    if not kubectl.exists():
        raise ToolError(f"{tool.label} is made by kubectl, which is not there yet: `make tools` makes both.")
    package = _package(tool, source, module, go_caches, log)
    made = folder / tool.name
    made.mkdir()
    kustomization = made / "kustomization.yaml"
    images = [{"name": image, "newTag": f"v{tool.version}"} for image in source.images]
    released = {"resources": [os.path.relpath(package / source.folder, made.resolve())], "images": images}
    own = {"namespace": source.namespace} if source.namespace else {}
    kustomization.write_text(yaml.safe_dump(released | own), encoding="utf-8")
    command = [str(kubectl), "kustomize", str(made), "--output", str(made / "install.yaml")]
    with log.open("wb") as output:
        code = run(command, cwd=folder, environment=None, output=output.fileno())
    if code != 0:
        raise ToolError(f"{tool.label} could not be made. The end of {log}:\n{end_of(log)}")
    kustomization.unlink()


def _package(tool: Tool, source: Chart | Crds | Manifests, module: Path, go_caches: Path, log: Path) -> Path:
    """The folder of the Go package that a module pins. Raises ToolError where that is another version."""
    command = ["go", "mod", "download", "-modcacherw", "-json", source.package]
    with log.open("wb") as output:
        code = run(command, cwd=module, environment=_environment(go_caches), output=output.fileno())
    answer = log.read_text(errors="replace")
    if code != 0:
        raise ToolError(f"{tool.label} could not be downloaded. The end of {log}:\n{end_of(log)}")
    found = json.loads(answer)
    if found["Version"] != f"v{tool.version}":
        raise ToolError(f"{tool.label} is not in {source.package} {found['Version']}, which {module}/go.mod pins.")
    return Path(found["Dir"])


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def _environment(go_caches: Path) -> dict[str, str]:
    """Static executables like upstream's; Go's caches beside ours unless the user has set them."""
    ours = {"GOCACHE": str(go_caches / "build"), "GOMODCACHE": str(go_caches / "modules")}
    return {**ours, **os.environ, "CGO_ENABLED": "0", "GOWORK": "off"}


def end_of(log: Path) -> str:
    """The last lines of a log, indented, for an error's text."""
    return "\n".join(f"  {line}" for line in log.read_text(errors="replace").splitlines()[-_LOG_LINES:])


def run(command: list[str], *, cwd: Path, environment: dict[str, str] | None, output: int) -> int:
    """Runs a command in a process group of its own, so that an interruption ends its children too."""
    process = subprocess.Popen(
        command, cwd=cwd, env=environment, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
    )
    try:
        return process.wait()
    except BaseException:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait()
        raise
