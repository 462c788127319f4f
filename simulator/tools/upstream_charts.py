"""`python -m simulator.tools.upstream_charts <folder>`: fetches the pinned charts from where upstream publishes them.

Each is unpacked into a folder with its name, as `charts.source` wants it, and so are manifests of operators without a
chart. What is there is kept.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import httpx
import yaml

from config.facts.versions import INSTALL, Chart, Kustomization, versions
from simulator.host import files, paths
from simulator.tools import manifest_lock
from simulator.tools.errors import ToolError, Unreachable

Run = Callable[[Sequence[str]], int]
"""Runs a command and returns its exit code."""
_TIMEOUT_S = 60.0


def fetch_all(folder: Path, run: Run) -> list[str]:
    """The charts that were fetched, as `<name> <version>`. Raises ToolError; then the others are kept."""
    folder.mkdir(parents=True, exist_ok=True)
    return [f"{chart.name} {chart.version}" for chart in versions().charts.values() if _fetch(chart, folder, run)]


def _fetch(chart: Chart, folder: Path, run: Run) -> bool:
    """False where the chart is there. Raises ToolError for one of another version, Unreachable where there is none."""
    place = folder / chart.name
    if (metadata := place / "Chart.yaml").is_file():
        found = str(yaml.safe_load(metadata.read_text(encoding="utf-8")).get("version"))
        if found != chart.version:
            raise ToolError(f"{place} is version {found}, and {chart.version} is pinned: remove the folder")
        return False
    with tempfile.TemporaryDirectory(dir=folder) as fresh:
        if run(pull(chart, fresh)):
            raise Unreachable(
                f"chart {chart.name} could not be fetched; helm says why above. What came before is kept."
            )
        (Path(fresh) / chart.name).rename(place)
    return True


def fetch_manifests(folder: Path, client: httpx.Client, made: Path = paths.ROOT / "simulator" / "charts") -> list[str]:
    """The same of released manifests, each in a file of its operator's folder.

    What upstream releases as a kustomization is in `made` since the tools are: by kubectl, of its Go module.
    """
    fetched = []
    for pin in versions().manifests.values():
        if not (file := folder / pin.name / INSTALL).is_file():
            if isinstance(pin, Kustomization):
                text = (made / pin.name / INSTALL).read_text(encoding="utf-8")
            else:
                text = manifest_lock.fetch(client, pin).decode()
            file.parent.mkdir(parents=True, exist_ok=True)
            files.replace(file, text)
            fetched.append(f"{pin.name} {pin.version}")
    return fetched


def pull(chart: Chart, folder: str) -> list[str]:
    """The command that unpacks a chart into a folder."""
    place = [chart.oci] if chart.oci else [chart.name, "--repo", str(chart.repository)]
    return [str(paths.tool("helm")), "pull", *place, "--version", chart.version, "--untar", "--untardir", folder]


def main(arguments: list[str]) -> int:
    """0, or 1 after telling what is wrong."""
    (folder,) = arguments
    try:
        for chart in fetch_all(Path(folder), lambda command: subprocess.run(command, check=False).returncode):
            print(f"fetched {chart}")
        with httpx.Client(timeout=_TIMEOUT_S, follow_redirects=True) as client:
            for manifests in fetch_manifests(Path(folder), client):
                print(f"fetched the manifests of {manifests}")
    except ToolError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(f"upstream's charts are in {folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
