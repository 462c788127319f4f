"""`python -m tools.upstream_charts <folder>`: downloads the pinned charts from upstream.

Each chart is unpacked into a folder with its name, as `charts.source` requires. Manifests of operators without a chart
are written there too. Existing files are kept.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import yaml

from config.data.versions import INSTALL, Chart, versions
from simulator.host import files, paths
from simulator.tools.errors import ToolError, Unreachable

Run = Callable[[Sequence[str]], int]


def fetch_all(folder: Path, run: Run) -> list[str]:
    """Downloads missing charts, and returns them as `<name> <version>`. Raises ToolError if a download fails."""
    folder.mkdir(parents=True, exist_ok=True)
    return [f"{chart.name} {chart.version}" for chart in versions().charts.values() if _fetch(chart, folder, run)]


def _fetch(chart: Chart, folder: Path, run: Run) -> bool:
    """Returns False if the chart exists. Raises ToolError if its version differs, Unreachable if a download fails."""
    place = folder / chart.name
    if (metadata := place / "Chart.yaml").is_file():
        found = str(yaml.safe_load(metadata.read_text(encoding="utf-8")).get("version"))
        if found != chart.version:
            raise ToolError(f"{place} is version {found}, but {chart.version} is pinned: remove the folder")
        return False
    with tempfile.TemporaryDirectory(dir=folder) as fresh:
        if run(pull(chart, fresh)):
            raise Unreachable(
                f"chart {chart.name} could not be fetched; see helm's error above. The charts fetched before are kept."
            )
        (Path(fresh) / chart.name).rename(place)
    return True


def add_manifests(folder: Path, made: Path = paths.ROOT / "simulator" / "charts") -> None:
    """Writes each operator's manifests into its folder. The folder `made` has them as kubectl built them."""
    for name in versions().manifests:
        if not (file := folder / name / INSTALL).is_file():
            file.parent.mkdir(parents=True, exist_ok=True)
            files.replace(file, (made / name / INSTALL).read_text(encoding="utf-8"))


def pull(chart: Chart, folder: str) -> list[str]:
    place = [chart.oci] if chart.oci else [chart.name, "--repo", str(chart.repository)]
    return [str(paths.tool("helm")), "pull", *place, "--version", chart.version, "--untar", "--untardir", folder]


def main(arguments: list[str]) -> int:
    (folder,) = arguments
    try:
        for chart in fetch_all(Path(folder), lambda command: subprocess.run(command, check=False).returncode):
            print(f"fetched {chart}")
        add_manifests(Path(folder))
    except ToolError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(f"upstream's charts are in {folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
