"""Charts are pinned, and values are checked against the keys of exactly the pinned version."""

from __future__ import annotations

from typing import Any

import pytest

import operators
from config.data.chart_values import chart_keys, value_problems
from config.data.versions import versions
from tests.support.case_files import case_table


@pytest.mark.parametrize("chart", versions().charts)
def test_keys_are_those_of_the_pinned_version_or_of_the_one_that_the_pin_names(chart: str) -> None:
    pin = versions().charts[chart]
    assert chart_keys(chart)[0] == (pin.read_from or pin.version)


def test_every_operator_s_chart_is_pinned() -> None:
    assert {name for name, each in operators.find().items() if each.has_chart} == set(versions().charts)


def test_what_is_released_as_manifests_is_an_operator_without_a_chart() -> None:
    assert versions().manifests.keys() <= {name for name, each in operators.find().items() if not each.has_chart}


@pytest.mark.parametrize("pin", versions().charts.values(), ids=lambda pin: pin.name)
def test_pins_are_exact_and_give_releases_time(pin: Any) -> None:
    assert pin.version.removeprefix("v").replace(".", "").isdigit()
    assert pin.timeout_s > 300, "Pulumi's own default is too short for hooks and pulls"


def test_the_default_kubernetes_version_is_supported() -> None:
    assert versions().kubernetes.default in versions().kubernetes.newest


@case_table(__file__, "known")
def test_values_that_the_chart_has(values: dict[str, Any]) -> None:
    assert value_problems("gpu-operator", values) == []


def test_the_configuration_of_alertmanager_is_not_the_chart_s() -> None:
    values = {
        "alertmanager": {"config": {"global": {"slack_api_url_file": "/etc/slack/url"}, "route": {"any": "thing"}}}
    }
    assert value_problems("kube-prometheus-stack", values) == []
    assert value_problems("kube-prometheus-stack", {"alertmanager": {"configs": {}}})


@case_table(__file__, "unknown")
def test_values_that_it_does_not(values: dict[str, Any], path: list[str]) -> None:
    assert [list(found.path) for found in value_problems("gpu-operator", values)] == [path]
