"""NodeFeatureRules: each operator of a match expression, and how terms combine."""

from __future__ import annotations

from typing import Any

import pytest

from simulator.operators.nfd.rules import RuleError, evaluate, matches

FEATURES: dict[str, Any] = {
    "flags": {"kernel.loadedmodule": {"elements": {"ib_uverbs": {}}}},
    "attributes": {"kernel.version": {"elements": {"full": "6.8.0-1030-azure", "major": "6", "on": "true"}}},
    "instances": {
        "pci.device": {
            "elements": [
                {"attributes": {"vendor": "15b3", "device": "101a", "class": "0200"}},
                {"attributes": {"vendor": "10de", "device": "1eb8", "class": "0302"}},
            ]
        }
    },
}


def rule(feature: str, **expressions: Any) -> dict[str, Any]:
    return {"name": "r", "matchFeatures": [{"feature": feature, "matchExpressions": expressions}]}


@pytest.mark.parametrize(
    ("op", "value", "expected"),
    [
        ("In", ["5", "6"], True),
        ("In", ["5"], False),
        ("NotIn", ["5"], True),
        ("InRegexp", ["^[67]$"], True),
        ("Exists", [], True),
        ("DoesNotExist", [], False),
        ("Gt", ["5"], True),
        ("Gt", ["6"], False),
        ("Ge", ["6"], True),
        ("Lt", ["7"], True),
        ("Le", ["5"], False),
        ("GtLt", ["5", "7"], True),
        ("GeLe", ["7", "9"], False),
        ("IsTrue", [], False),
    ],
)
def test_each_operator_on_an_attribute(op: str, value: list[str], expected: bool) -> None:
    assert matches(rule("kernel.version", major={"op": op, "value": value}), FEATURES) is expected


def test_a_value_that_is_not_there_matches_only_does_not_exist() -> None:
    assert matches(rule("kernel.version", minor={"op": "DoesNotExist"}), FEATURES)
    assert not matches(rule("kernel.version", minor={"op": "NotIn", "value": ["1"]}), FEATURES)


def test_versions_are_compared_by_their_parts() -> None:
    assert matches(rule("kernel.version", full={"op": "Gt", "value": ["6.7.99"], "type": "version"}), FEATURES)


def test_all_expressions_must_hold_on_one_and_the_same_instance() -> None:
    vendor, infiniband = {"op": "In", "value": ["15b3"]}, {"op": "In", "value": ["0207"]}
    assert matches(rule("pci.device", vendor=vendor), FEATURES)
    assert not matches(rule("pci.device", vendor=vendor, **{"class": infiniband}), FEATURES)
    display = {"op": "In", "value": ["0302"]}
    assert not matches(rule("pci.device", vendor=vendor, **{"class": display}), FEATURES)


def test_flags_know_only_existence() -> None:
    assert matches(rule("kernel.loadedmodule", ib_uverbs={"op": "Exists"}), FEATURES)
    with pytest.raises(RuleError, match="only Exists and DoesNotExist"):
        matches(rule("kernel.loadedmodule", ib_uverbs={"op": "In", "value": ["x"]}), FEATURES)


def test_match_any_needs_one_and_match_features_all() -> None:
    yes = rule("kernel.version", major={"op": "In", "value": ["6"]})["matchFeatures"]
    no = rule("kernel.version", major={"op": "In", "value": ["5"]})["matchFeatures"]
    assert matches({"name": "r", "matchAny": [{"matchFeatures": no}, {"matchFeatures": yes}]}, FEATURES)
    assert not matches({"name": "r", "matchAny": [{"matchFeatures": yes}], "matchFeatures": no}, FEATURES)


def test_match_name() -> None:
    term = {"feature": "kernel.loadedmodule", "matchName": {"op": "InRegexp", "value": ["^ib_"]}}
    assert matches({"name": "r", "matchFeatures": [term]}, FEATURES)


def test_later_rules_see_what_earlier_ones_gave() -> None:
    first = {**rule("kernel.version", major={"op": "Exists"}), "labels": {"a": "1"}, "vars": {"v": "x"}}
    second = {**rule("rule.matched", a={"op": "In", "value": ["1"]}, v={"op": "Exists"}), "labels": {"b": "2"}}
    assert evaluate([first, second], FEATURES).labels == {"a": "1", "b": "2"}
    assert evaluate([second, first], FEATURES).labels == {"a": "1"}


def test_what_cannot_be_evaluated_is_told_and_left_out() -> None:
    output = evaluate(
        [
            {**rule("cpu.model", vendor_id={"op": "Exists"}), "labels": {"x": "1"}},
            {**rule("kernel.version", major={"op": "Gt", "value": ["six"]}), "labels": {"y": "1"}},
            {"name": "t", "labels": {"z": "1"}, "taints": [{"key": "k", "effect": "NoSchedule"}]},
        ],
        FEATURES,
    )
    assert output.labels == {"z": "1"}
    assert [("not available" in error, "op Gt" in error, "taints" in error) for error in output.errors] == [
        (True, False, False),
        (False, True, False),
        (False, False, True),
    ]
