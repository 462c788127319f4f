"""Reports the result of a search as a table, as JSON, and as a verdict in the last line."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from bisection import BAD, UNKNOWN, Finding, Group, Outcome, Report

JSON = "JSON "
Result = dict[str, Any]


def result(
    about: Mapping[str, Any], nodes: Sequence[str], ports: Sequence[str], found: Report, left_out: Mapping[str, str]
) -> Result:
    """Returns the result. `about` describes the pool and its baselines; `left_out` has nodes not searched, and why."""
    lost = [Finding("node", Outcome(UNKNOWN, why=why), node) for node, why in left_out.items()]
    return {
        **about,
        "nodes": [*nodes, *left_out],
        "rails": [_device(port) for port in ports],
        "rounds": found.rounds,
        "measurements": found.measurements,
        "findings": [_plain(finding, ports) for finding in (*found.findings, *lost)],
        "chance": [_plain(finding, ports) for finding in found.chance],
        "rest": asdict(found.rest) if found.rest else None,
    }


def lines(result: Result) -> Iterator[str]:
    """Yields the table, the JSON and the verdict."""
    widths = (5, max((len(each["node"]) for each in result["findings"]), default=4), 7, 8, 8)
    row = "  ".join(f"{{:{'<' if index < 3 else '>'}{width}}}" for index, width in enumerate(widths)) + "  {:<7}  {}"
    yield row.format("what", "node", "rail", "busbw", "floor", "state", "why").rstrip()
    for each in result["findings"]:
        measured = [f"{each['busbw']:.2f}", f"{each['floor']:g}"] if each["floor"] else ["", ""]
        yield row.format(each["kind"], each["node"], each["rail"], *measured, each["state"], each["why"]).rstrip()
    if rest := result["rest"]:
        what = "all other nodes and rails" if result["findings"] else "all nodes and rails"
        yield f"{what}: {rest['busbw']:.2f} GB/s, floor {rest['floor']:g} GB/s: {rest['state']}"
    for each in result["chance"]:
        yield f"measured {each['state']} once and then good, so not counted: {named(each)}"
    if result["findings"]:
        yield "To check these nodes: docs/health-check.md. About these findings: docs/nccl-bisection.md."
    yield JSON + json.dumps(result)
    yield verdict(result)


def verdict(result: Result) -> str:
    """Returns the last line, the verdict."""
    counts = f"nodes={len(result['nodes'])} rounds={result['rounds']} measurements={result['measurements']}"
    rest = result["rest"]
    what = "rest" if result["findings"] else "busbw"
    numbers = f"; {what}={rest['busbw']:.2f} GB/s floor={rest['floor']:g} GB/s {counts}" if rest else f"; {counts}"
    for state, word, text in ((BAD, "FAIL", "bad"), (UNKNOWN, "UNKNOWN", "not measured")):
        if names := [named(each) for each in result["findings"] if each["state"] == state]:
            more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
            return f"VERDICT: {word} {text}: {', '.join(names[:_SHOWN])}{more}{numbers}"
    return f"VERDICT: PASS{numbers}"


_SHOWN = 8


def exit_code(result: Result) -> int:
    """Returns 0 if everything is good, 1 if a part is bad, 2 if a part could not be measured."""
    states = {each["state"] for each in result["findings"]}
    return 1 if BAD in states else 2 if UNKNOWN in states else 0


def named(finding: Mapping[str, Any]) -> str:
    """Returns a finding's name, such as `link mlx5_2 of aks-gpu-...-vmss000003`."""
    rail, node = finding["rail"], finding["node"]
    return f"{finding['kind']}{f' {rail}' if rail else ''}{' of' if rail and node else ''}{f' {node}' if node else ''}"


def described(group: Group, ports: Sequence[str], outcome: Outcome) -> str:
    """Returns the log line of one measurement."""
    rails = "all rails" if len(group.rails) == len(ports) else ",".join(_device(ports[rail]) for rail in group.rails)
    names = " ".join(group.nodes) if len(group.nodes) < 3 else f"{len(group.nodes)} nodes, {group.nodes[0]} and others"
    shown = f"{outcome.busbw:.2f} GB/s of {outcome.floor:g}: " if outcome.busbw else ""
    return f"{rails}: {names}: {shown}{outcome.state}{f' ({outcome.why})' if outcome.why else ''}"


def _plain(finding: Finding, ports: Sequence[str]) -> dict[str, Any]:
    rail = "" if finding.rail is None else _device(ports[finding.rail])
    return {"kind": finding.kind, "node": finding.node, "rail": rail, **asdict(finding.outcome)}


def _device(port: str) -> str:
    return port.partition(":")[0]
