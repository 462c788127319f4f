"""Golden files have the chart's values."""

from __future__ import annotations

import json
import re

import pytest

from config.data.scheduling import AGENT_POOL_LABEL, SPOT_LABEL
from operators import monitoring
from operators.monitoring import files


def test_each_alert_has_a_severity_and_a_summary() -> None:
    found = [rule for group in files.rules()["groups"] for rule in group["rules"]]
    assert len({rule["alert"] for rule in found}) == len(found)
    for rule in found:
        assert rule["labels"]["severity"] in {"critical", "warning"}
        assert rule["annotations"]["summary"]


@pytest.mark.parametrize("name", list(files.dashboards()))
def test_dashboards_have_grafanas_format(name: str) -> None:
    dashboard = files.dashboards()[name]
    made = json.loads(files.grafana_json(name, dashboard))
    assert (made["uid"], made["title"]) == (f"ai-on-aks-{name}", dashboard.title)
    assert [each["targets"][0]["expr"] for each in made["panels"]] == [panel.query for panel in dashboard.panels]
    places = {(each["gridPos"]["x"], each["gridPos"]["y"]) for each in made["panels"]}
    assert len(places) == len(made["panels"])


@pytest.mark.parametrize("panel", [panel for each in files.dashboards().values() for panel in each.panels])
def test_legends_use_labels_of_their_query(panel: files.Panel) -> None:
    named = set(re.findall(r"{{(\w+)}}", panel.legend))
    if grouped := re.match(r"\w+ by \(([^)]*)\)", panel.query):
        assert named <= set(grouped[1].split(", "))


def test_dashboards_use_node_labels_that_kube_state_metrics_exports() -> None:
    """It exports no others, and replaces special characters with `_` (v2.20.0, internal/store/utils.go)."""
    (allowed,) = monitoring.values("fast")["kube-state-metrics"]["metricLabelsAllowlist"]
    given = {re.sub(r"\W", "_", f"label_{name}") for name in re.findall(r"[\w./-]+(?=[],])", allowed)}
    asked = {name for each in files.dashboards().values() for panel in each.panels for name in _labels(panel)}
    assert {re.sub(r"\W", "_", f"label_{name}") for name in (AGENT_POOL_LABEL, SPOT_LABEL)} <= asked
    assert asked <= given


def _labels(panel: files.Panel) -> list[str]:
    return re.findall(r"\blabel_\w+", f"{panel.query} {panel.legend}")


def test_queries_exclude_the_ethernet_port() -> None:
    rules = [rule["expr"] for group in files.rules()["groups"] for rule in group["rules"]]
    panels = [panel.query for each in files.dashboards().values() for panel in each.panels]
    asked = re.findall(r"\bnode_infiniband_\w+(\S*)", " ".join([*rules, *panels]))
    assert asked
    assert all(each.startswith('{device=~"mlx5_[0-7]"}') for each in asked)


def test_downloads_published_dashboards_without_a_mirror_only() -> None:
    published = monitoring.values("fast")["grafana"]["dashboards"]["published"]
    assert {each["gnetId"] for each in published.values()} == {12239, 23123}
    assert "dashboards" not in monitoring.values("fast", published=False)["grafana"]
