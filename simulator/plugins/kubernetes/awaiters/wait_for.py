"""The annotation `pulumi.com/waitFor`: `jsonpath={...}=value`, `condition=Name=Status`, or a JSON list of these."""

from __future__ import annotations

import json
from typing import Any

from simulator.plugins.kubernetes.awaiters.base import Check, Look, Progress
from simulator.plugins.kubernetes.awaiters.jsonpath import JsonPath


def parse(text: str) -> Check:
    """The check that the annotation asks for. Raises ValueError for text in another form."""
    try:
        listed = json.loads(text)
    except ValueError:
        listed = None
    expressions = listed if isinstance(listed, list) and all(isinstance(item, str) for item in listed) else [text]
    if not expressions:
        raise ValueError("at least one condition must be specified")
    checks = [_parse_one(expression) for expression in expressions]
    return checks[0] if len(checks) == 1 else _all(checks)


def _parse_one(expression: str) -> Check:
    if expression.startswith("jsonpath="):
        return _json_path(expression.removeprefix("jsonpath="))
    if expression.startswith("condition="):
        name, _, status = expression.removeprefix("condition=").partition("=")
        return _condition(name, status or "True")
    raise ValueError(f'expected a "jsonpath=" or "condition=" prefix, got "{expression}"')


def _all(checks: list[Check]) -> Check:
    def check(look: Look) -> Progress:
        for each in checks:
            progress = each(look)
            if not progress.done:
                return progress
        return Progress(done=True)

    return check


def _json_path(expression: str) -> Check:
    path_text, value = _split(expression)
    path = JsonPath(path_text)
    wanted = f"{path_text}={value}" if value else path_text

    def check(look: Look) -> Progress:
        if _stale(look.live, look.live.get("status")):
            return Progress(done=False, status=f"Waiting for {wanted}")
        found = path.select(look.live)
        if not found:
            return Progress(done=False, status=f"{path_text} selected nothing")
        if isinstance(found[0], (dict, list)):
            return Progress(done=not value, status=f'"{path_text}" has a non-primitive value ({found[0]})')
        shown = _shown(found[0])
        return Progress(done=not value or shown == value, status=f'Waiting for {wanted} (found "{shown}")')

    return check


def _split(expression: str) -> tuple[str, str]:
    """The path and the value of `{path}=value`; `==` in a filter is not the separator."""
    parts = expression.replace("==", "\0").split("=")
    if len(parts) > 2:
        raise ValueError(f'format should be {{.path}}=value or {{.path}}, got "{expression}"')
    path, value = parts[0].replace("\0", "=="), "".join(parts[1:]).replace("\0", "==")
    if len(parts) == 2 and not value:
        raise ValueError(f"{path}= requires a value")
    if path.startswith("'"):
        raise ValueError(f"{path} should omit shell quotes")
    if not (path.startswith("{") and path.endswith("}")):
        raise ValueError(f"{path} should be wrapped in brackets {{ ... }}")
    return path, value


def _shown(value: Any) -> str:
    """As the annotation would write it: `true`, not `True`."""
    return json.dumps(value) if isinstance(value, bool) or value is None else str(value)


def _condition(name: str, status: str) -> Check:
    def check(look: Look) -> Progress:
        conditions = look.live.get("status", {}).get("conditions")
        if conditions is None:
            return Progress(done=False, status="Has no .status.conditions")
        for condition in conditions:
            if condition.get("type", "").lower() != name.lower():
                continue
            if _stale(look.live, condition if "observedGeneration" in condition else look.live["status"]):
                return Progress(done=False, status=f"Waiting for a newer condition {name}")
            found = condition.get("status", "")
            status_line = f"Resource has condition {name}={found} (want {status})"
            return Progress(done=found.lower() == status.lower(), status=status_line)
        return Progress(done=False, status=f"Waiting for condition {name}={status}")

    return check


def _stale(live: dict[str, Any], observed: Any) -> bool:
    generation = live["metadata"].get("generation")
    seen = observed.get("observedGeneration") if isinstance(observed, dict) else None
    return generation is not None and seen is not None and seen < generation
