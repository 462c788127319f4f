"""Alerts and dashboards: whole, and of what they ask for. What the chart is told is in the golden files."""

from __future__ import annotations

import json
import re

import pytest

from config.data.scheduling import AGENT_POOL_LABEL, SPOT_LABEL
from operators import monitoring
from operators.monitoring import files


def test_each_alert_says_how_bad_it_is_and_what_happened() -> None:
    found = [rule for group in files.rules()["groups"] for rule in group["rules"]]
    assert len({rule["alert"] for rule in found}) == len(found)
    for rule in found:
        assert rule["labels"]["severity"] in {"critical", "warning"}
        assert rule["annotations"]["summary"]


@pytest.mark.parametrize("name", list(files.dashboards()))
def test_a_dashboard_is_what_grafana_imports(name: str) -> None:
    dashboard = files.dashboards()[name]
    made = json.loads(files.grafana_json(name, dashboard))
    assert (made["uid"], made["title"]) == (f"ai-on-aks-{name}", dashboard.title)
    assert [each["targets"][0]["expr"] for each in made["panels"]] == [panel.query for panel in dashboard.panels]
    places = {(each["gridPos"]["x"], each["gridPos"]["y"]) for each in made["panels"]}
    assert len(places) == len(made["panels"])


@pytest.mark.parametrize("panel", [panel for each in files.dashboards().values() for panel in each.panels])
def test_series_are_called_by_labels_that_their_query_speaks_of(panel: files.Panel) -> None:
    named = set(re.findall(r"{{(\w+)}}", panel.legend))
    if grouped := re.match(r"\w+ by \(([^)]*)\)", panel.query):
        assert named <= set(grouped[1].split(", "))


def test_dashboards_ask_for_labels_of_nodes_that_kube_state_metrics_is_told_to_give() -> None:
    """It gives others none, and writes what is no letter or digit as `_` (v2.20.0, internal/store/utils.go)."""
    (allowed,) = monitoring.values("fast")["kube-state-metrics"]["metricLabelsAllowlist"]
    given = {re.sub(r"\W", "_", f"label_{name}") for name in re.findall(r"[\w./-]+(?=[],])", allowed)}
    asked = {name for each in files.dashboards().values() for panel in each.panels for name in _labels(panel)}
    assert {re.sub(r"\W", "_", f"label_{name}") for name in (AGENT_POOL_LABEL, SPOT_LABEL)} <= asked
    assert asked <= given


def _labels(panel: files.Panel) -> list[str]:
    return re.findall(r"\blabel_\w+", f"{panel.query} {panel.legend}")


def test_ports_of_infiniband_are_asked_for_and_not_that_of_ethernet() -> None:
    rules = [rule["expr"] for group in files.rules()["groups"] for rule in group["rules"]]
    panels = [panel.query for each in files.dashboards().values() for panel in each.panels]
    asked = re.findall(r"\bnode_infiniband_\w+(\S*)", " ".join([*rules, *panels]))
    assert asked
    assert all(each.startswith('{device=~"mlx5_[0-7]"}') for each in asked)


def test_dashboards_of_others_are_fetched_only_where_images_come_from_outside() -> None:
    published = monitoring.values("fast")["grafana"]["dashboards"]["published"]
    assert {each["gnetId"] for each in published.values()} == {12239, 23123}
    assert "dashboards" not in monitoring.values("fast", published=False)["grafana"]
