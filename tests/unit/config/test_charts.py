from __future__ import annotations

from typing import Any

import pytest

import operators
from config.data.chart_values import chart_keys, value_problems
from config.data.versions import versions
from tests.support.case_files import case_table


@pytest.mark.parametrize("chart", versions().charts)
def test_keys_are_of_the_pinned_version(chart: str) -> None:
    pin = versions().charts[chart]
    assert chart_keys(chart)[0] == (pin.read_from or pin.version)


def test_the_charts_of_all_operators_are_pinned() -> None:
    assert {name for name, each in operators.find().items() if each.has_chart} == set(versions().charts)


def test_manifests_are_of_operators_without_a_chart() -> None:
    assert versions().manifests.keys() <= {name for name, each in operators.find().items() if not each.has_chart}


@pytest.mark.parametrize("pin", versions().charts.values(), ids=lambda pin: pin.name)
def test_pins_are_exact_and_have_a_long_timeout(pin: Any) -> None:
    assert pin.version.removeprefix("v").replace(".", "").isdigit()
    assert pin.timeout_s > 300, "Pulumi's own default is too short for hooks and pulls"


def test_the_default_kubernetes_version_is_supported() -> None:
    assert versions().kubernetes.default in versions().kubernetes.newest


@case_table(__file__, "known")
def test_accepts_values_of_the_chart(values: dict[str, Any]) -> None:
    assert value_problems("gpu-operator", values) == []


def test_accepts_any_configuration_of_alertmanager() -> None:
    values = {
        "alertmanager": {"config": {"global": {"slack_api_url_file": "/etc/slack/url"}, "route": {"any": "thing"}}}
    }
    assert value_problems("kube-prometheus-stack", values) == []
    assert value_problems("kube-prometheus-stack", {"alertmanager": {"configs": {}}})


@case_table(__file__, "unknown")
def test_rejects_other_values(values: dict[str, Any], path: list[str]) -> None:
    assert [list(found.path) for found in value_problems("gpu-operator", values)] == [path]
