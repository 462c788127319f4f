from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

import operators
from config.data.versions import INSTALL, versions
from config.rules.mirrors import mirror_problems
from config.schema.models import StackFile
from config.schema.operators import Installation
from simulator.tools.errors import ToolError, Unreachable
from tools.upstream_charts import add_manifests, fetch_all, pull


class Helm:
    """Unpacks charts with only a Chart.yaml, except the chart `failing`."""

    def __init__(self, failing: str = "") -> None:
        self.failing = failing

    def __call__(self, command: Sequence[str]) -> int:
        chart = command[2].rpartition("/")[2]
        if chart == self.failing:
            return 1
        add(Path(command[-1]), chart, command[command.index("--version") + 1])
        return 0


def add(folder: Path, chart: str, version: str) -> None:
    (folder / chart).mkdir(parents=True)
    (folder / chart / "Chart.yaml").write_text(f"name: {chart}\nversion: {version}\n")


def test_fetches_all_pinned_charts_into_a_folder_that_the_settings_accept(tmp_path: Path) -> None:
    helm, folder = Helm(), tmp_path / "new" / "charts"
    assert fetch_all(folder, helm) == [f"{chart.name} {chart.version}" for chart in versions().charts.values()]
    made = tmp_path / "made"
    for name in versions().manifests:
        (made / name).mkdir(parents=True)
        (made / name / INSTALL).write_text(f"of: {name}\n")
    add_manifests(folder, made)
    stack = StackFile.model_validate({"vmSku": "Standard_ND96isr_H100_v5", "charts": {"source": str(folder)}})
    assert list(mirror_problems(Installation(stack, operators.find()), lambda path: Path(path).is_file())) == []
    assert {file.name for file in folder.iterdir()} == versions().charts.keys() | versions().manifests.keys()
    assert (folder / "appwrapper" / "install.yaml").read_text() == "of: appwrapper\n"


def test_pulls_a_chart_from_its_repository() -> None:
    charts = versions().charts
    assert pull(charts["volcano"], "here")[1:] == [
        *("pull", "volcano", "--repo", "https://volcano-sh.github.io/helm-charts"),
        *("--version", charts["volcano"].version, "--untar", "--untardir", "here"),
    ]
    assert "oci://registry.k8s.io/nfd/charts/node-feature-discovery" in pull(charts["node-feature-discovery"], "here")


def test_a_failed_chart_leaves_the_others_and_no_partial_folder(tmp_path: Path) -> None:
    with pytest.raises(Unreachable, match="chart volcano could not be fetched"):
        fetch_all(tmp_path, Helm("volcano"))
    assert {file.name for file in tmp_path.iterdir()} == {"node-feature-discovery", "network-operator", "gpu-operator"}


def test_rejects_and_keeps_another_version(tmp_path: Path) -> None:
    add(tmp_path, "volcano", "1.10.0")
    with pytest.raises(ToolError, match=r"volcano is version 1.10.0, but .* is pinned: remove the folder"):
        fetch_all(tmp_path, Helm())
    assert (tmp_path / "volcano").exists()
