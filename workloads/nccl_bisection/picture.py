"""Draws a pool's fabric as SVG: a column for each node, a row for each rail, and their states."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any
from xml.etree import ElementTree

LINE = "JSON "
"""Prefix of the result's line in the job's log (scripts/report.py)."""
COLOURS = {"good": "#2ca02c", "bad": "#d62728", "unknown": "#9e9e9e"}
_MEANINGS = {"good": "at its floor", "bad": "slow, or wrong", "unknown": "not measured"}
_CELL, _GAP, _LEFT, _TOP, _LEGEND = 14, 2, 76, 44, 24
_PER_BAND = 50
_NAMED = 16
_BELOW = 190

Result = Mapping[str, Any]


class NoResult(ValueError):
    """Raised if the input contains no result. The text is printed to the user."""


def result(text: str) -> Result:
    """Returns the result from the job's log or a JSON file. Raises NoResult."""
    lines = [line.removeprefix(LINE) for line in text.splitlines() if line.startswith(LINE)]
    try:
        found = json.loads(lines[-1] if lines else text)
    except json.JSONDecodeError:
        hint = "the search has not ended, or this is another log"
        raise NoResult(f"no line begins with {LINE.strip()!r}: {hint}") from None
    if not (isinstance(found, dict) and {"nodes", "rails", "findings"} <= set(found)):
        raise NoResult("this JSON is not a result of nccl-bisection: nodes, rails or findings are missing")
    return found


def svg(found: Result) -> str:
    nodes, rails = list(found["nodes"]), list(found["rails"])
    bands = [nodes[start : start + _PER_BAND] for start in range(0, len(nodes), _PER_BAND)]
    step = _CELL + _GAP
    named = {each["node"] for each in found["findings"]} if len(nodes) > _NAMED else set(nodes)
    root = ElementTree.Element(
        "svg", {"xmlns": "http://www.w3.org/2000/svg", "font-family": "sans-serif", "font-size": "11"}
    )
    ElementTree.SubElement(root, "rect", {"width": "100%", "height": "100%", "fill": "white"})
    _text(root, 10, 18, _title(found)).set("font-size", "13")
    top = _TOP
    for band in bands:
        for row, rail in enumerate(rails):
            _text(root, _LEFT - 8, top + row * step + 11, rail, anchor="end")
        for column, node in enumerate(band):
            x = _LEFT + column * step
            for row, rail in enumerate(rails):
                state = state_of(found, node, rail)
                place = {"x": str(x), "y": str(top + row * step), "width": str(_CELL), "height": str(_CELL)}
                cell = ElementTree.SubElement(root, "rect", place | {"rx": "2", "fill": COLOURS[state]})
                ElementTree.SubElement(cell, "title").text = f"{node} {rail}: {_MEANINGS[state]}"
            if node in named:
                turned = f"translate({x + 4} {top + len(rails) * step + 6}) rotate(90)"
                _text(root, 0, 0, node).set("transform", turned)
        top += len(rails) * step + (_BELOW if named & set(band) else step)
    for number, (state, meaning) in enumerate(_MEANINGS.items()):
        x = _LEFT + number * 120
        place = {"x": str(x), "y": str(top), "width": str(_CELL), "height": str(_CELL)}
        ElementTree.SubElement(root, "rect", place | {"rx": "2", "fill": COLOURS[state]})
        _text(root, x + step + 2, top + 11, meaning)
    width = max(_LEFT + min(len(nodes), _PER_BAND) * step + 10, 560)
    root.set("viewBox", f"0 0 {width} {top + _LEGEND}")
    return ElementTree.tostring(root, encoding="unicode") + "\n"


def state_of(found: Result, node: str, rail: str) -> str:
    of_it = [each["state"] for each in found["findings"] if each["node"] in ("", node) and each["rail"] in ("", rail)]
    return next((state for state in ("bad", "unknown") if state in of_it), "good")


def _title(found: Result) -> str:
    counts: Iterable[str] = (f"{found[what]} {what}" for what in ("rounds", "measurements") if what in found)
    size = f"{len(found['nodes'])} nodes of {found.get('vmSize', 'one pool')}"
    return ", ".join([size, *counts])


def _text(parent: ElementTree.Element, x: float, y: float, words: str, anchor: str = "start") -> ElementTree.Element:
    text = ElementTree.SubElement(parent, "text", {"x": f"{x:g}", "y": f"{y:g}", "text-anchor": anchor})
    text.text = words
    return text
