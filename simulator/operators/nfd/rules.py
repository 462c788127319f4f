"""NodeFeatureRules: whether a rule matches a node's features, and what it gives (NFD v0.19, "Customization guide")."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from diagnosis.cluster import Object

Features = Mapping[str, Any]
BACKREFERENCE = "rule.matched"
UNSUPPORTED = ("labelsTemplate", "varsTemplate", "taints", "extendedResources")


class RuleError(ValueError):
    """A rule that cannot be evaluated; NFD logs it and leaves the rule out."""


@dataclass
class RuleOutput:
    """What the rules of one object give to one node."""

    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)


def evaluate(rules: Iterable[Mapping[str, Any]], features: Features) -> RuleOutput:
    """Runs the rules in order; later ones see labels and vars of those that matched as feature rule.matched."""
    output = RuleOutput()
    matched: dict[str, str] = {}
    for rule in rules:
        if unsupported := [key for key in UNSUPPORTED if rule.get(key)]:
            output.errors.append(f"rule {rule['name']!r}: the simulator does not do {', '.join(unsupported)}")
        known = {**features, "attributes": {**features["attributes"], BACKREFERENCE: {"elements": matched}}}
        try:
            if not matches(rule, known):
                continue
        except RuleError as error:
            output.errors.append(f"rule {rule['name']!r}: {error}")
            continue
        output.labels |= rule.get("labels") or {}
        output.annotations |= rule.get("annotations") or {}
        matched |= (rule.get("labels") or {}) | (rule.get("vars") or {})
    return output


def matches(rule: Mapping[str, Any], features: Features) -> bool:
    """All of matchFeatures, and any of matchAny; a rule without either matches."""
    alternatives = rule.get("matchAny") or []
    if alternatives and not any(_all_terms(any_of["matchFeatures"], features) for any_of in alternatives):
        return False
    return _all_terms(rule.get("matchFeatures") or [], features)


def _all_terms(terms: Sequence[Mapping[str, Any]], features: Features) -> bool:
    return all(_term(term, features) for term in terms)


def _term(term: Mapping[str, Any], features: Features) -> bool:
    name = term["feature"]
    expressions, by_name = term.get("matchExpressions"), term.get("matchName")
    if name in features["flags"]:
        present = {key: "" for key in features["flags"][name]["elements"]}
        return _keys_match(expressions, by_name, present)
    if name in features["attributes"]:
        return _elements_match(expressions, by_name, features["attributes"][name]["elements"])
    if name in features["instances"]:
        elements = [item["attributes"] for item in features["instances"][name]["elements"]]
        return any(_elements_match(expressions, by_name, element) for element in elements)
    raise RuleError(f"feature {name!r} is not available")


def _keys_match(expressions: Object | None, by_name: Object | None, present: Mapping[str, str]) -> bool:
    """Flags have names only: they can be there or not."""
    for key, expression in (expressions or {}).items():
        if expression["op"] not in ("Exists", "DoesNotExist"):
            raise RuleError(f"op {expression['op']} cannot be used on flag {key!r}, only Exists and DoesNotExist")
        if (key in present) != (expression["op"] == "Exists"):
            return False
    return by_name is None or any(_holds(by_name, name) for name in present)


def _elements_match(expressions: Object | None, by_name: Object | None, element: Mapping[str, str]) -> bool:
    for key, expression in (expressions or {}).items():
        if not _holds(expression, element.get(key)):
            return False
    return by_name is None or any(_holds(by_name, name) for name in element)


def _holds(expression: Mapping[str, Any], value: str | None) -> bool:
    """One match expression against a value; None is a value that is not there, which only DoesNotExist matches."""
    op: str = expression["op"]
    wanted = [str(item) for item in expression.get("value") or []]
    if op in ("Exists", "DoesNotExist"):
        return (value is not None) == (op == "Exists")
    if value is None:
        return False
    if op == "InRegexp":
        return any(_regex(pattern).search(value) for pattern in wanted)
    if op in ("In", "NotIn"):
        return (value in wanted) == (op == "In")
    if op in ("IsTrue", "IsFalse"):
        return value == ("true" if op == "IsTrue" else "false")
    if op in _COMPARISONS:
        return _compare(op, value, wanted, versions=expression.get("type") == "version")
    raise RuleError(f"unknown op {op!r}")


_COMPARISONS: Mapping[str, tuple[int, Callable[..., bool]]] = {
    "Gt": (1, lambda value, bound: value > bound),
    "Ge": (1, lambda value, bound: value >= bound),
    "Lt": (1, lambda value, bound: value < bound),
    "Le": (1, lambda value, bound: value <= bound),
    "GtLt": (2, lambda value, low, high: low < value < high),
    "GeLe": (2, lambda value, low, high: low <= value <= high),
}


def _compare(op: str, value: str, wanted: Sequence[str], *, versions: bool) -> bool:
    count, holds = _COMPARISONS[op]
    if len(wanted) != count:
        raise RuleError(f"op {op} takes {count} value(s), found {len(wanted)}")
    try:
        numbers = [_version(text) if versions else (int(text),) for text in (value, *wanted)]
    except ValueError as error:
        raise RuleError(f"op {op}: {error}") from error
    return holds(*numbers)


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.removeprefix("v").partition("-")[0].split("."))


def _regex(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise RuleError(f"{pattern!r} is no regular expression: {error}") from error
