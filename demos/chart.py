"""Draws time series of Prometheus as line or stacked charts in one SVG.

It uses no library, because matplotlib would be the largest dependency for only a few pictures in docs/.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from xml.etree import ElementTree

_COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#ff7f0e", "#9467bd", "#8c564b", "#17becf", "#7f7f7f")
_WIDTH, _HEIGHT = 520, 200
_LEFT, _TOP, _BELOW, _LEGEND_ROW = 60, 34, 30, 16
_MOST_NAMES = 6
_X_LABELS, _Y_LABELS = 6, 4


@dataclass(frozen=True)
class Chart:
    """Series by name, with a value for each step, or None without data."""

    title: str
    series: Mapping[str, Sequence[float | None]]
    step_s: int
    stacked: bool = False


def svg(charts: Sequence[Chart], columns: int = 1) -> str:
    rows = [charts[start : start + columns] for start in range(0, len(charts), columns)]
    root = ElementTree.Element("svg", {"xmlns": "http://www.w3.org/2000/svg", "font-family": "sans-serif"})
    ElementTree.SubElement(root, "rect", {"width": "100%", "height": "100%", "fill": "white"})
    top = 0
    for row in rows:
        for column, chart in enumerate(row):
            place = {"transform": f"translate({column * (_LEFT + _WIDTH) + _LEFT} {top + _TOP})", "font-size": "11"}
            _draw(ElementTree.SubElement(root, "g", place), chart)
        top += _TOP + _HEIGHT + _BELOW + _LEGEND_ROW * max(len(_legend(chart)) for chart in row)
    root.set("viewBox", f"0 0 {columns * (_LEFT + _WIDTH) + _LEFT // 2} {top}")
    return ElementTree.tostring(root, encoding="unicode") + "\n"


def _draw(group: ElementTree.Element, chart: Chart) -> None:
    steps = max((len(values) for values in chart.series.values()), default=1)
    layers = list(_layers(chart))
    tick = _tick(max((high or 0 for _, highs in layers for high in highs), default=0))
    top = tick * _Y_LABELS
    x, y = _WIDTH / max(1, steps - 1), _HEIGHT / top
    _text(group, 0, -12, chart.title, "start").set("font-size", "14")
    for number in range(_Y_LABELS + 1):
        height = _HEIGHT - number * _HEIGHT / _Y_LABELS
        ElementTree.SubElement(group, "path", {"d": f"M0 {height:.1f}H{_WIDTH}", "stroke": "#ddd"})
        _text(group, -6, height + 4, f"{number * tick:g}", "end")
    for step in range(0, steps, max(1, math.ceil(steps / _X_LABELS))):
        minutes, seconds = divmod(step * chart.step_s, 60)
        _text(group, step * x, _HEIGHT + 16, f"{minutes}:{seconds:02}", "middle")
    for (lows, highs), colour in zip(layers, _cycle(len(layers)), strict=True):
        for first, last in _runs(highs):
            points = [f"{at * x:.1f},{_HEIGHT - (highs[at] or 0) * y:.1f}" for at in range(first, last)]
            line = {"points": " ".join(points), "fill": "none", "stroke": colour, "stroke-width": "1.5"}
            if chart.stacked:
                back = [f"{at * x:.1f},{_HEIGHT - (lows[at] or 0) * y:.1f}" for at in reversed(range(first, last))]
                line = {"points": " ".join(points + back), "fill": colour, "fill-opacity": "0.6"}
            ElementTree.SubElement(group, "polygon" if chart.stacked else "polyline", line)
    colours = [*_cycle(min(len(layers), _MOST_NAMES)), "#444"]
    for number, (name, colour) in enumerate(zip(_legend(chart), colours, strict=False)):
        _text(group, 0, _HEIGHT + _BELOW + 6 + number * _LEGEND_ROW, name, "start").set("fill", colour)


def _layers(chart: Chart) -> Iterable[tuple[Sequence[float | None], Sequence[float | None]]]:
    below: list[float] = [0.0] * max((len(values) for values in chart.series.values()), default=0)
    for values in chart.series.values():
        if not chart.stacked:
            yield below, values
            continue
        above = [low + (value or 0) for low, value in zip(below, values, strict=True)]
        yield below, above
        below = above


def _runs(values: Sequence[float | None]) -> Iterable[tuple[int, int]]:
    start = None
    for at, value in enumerate([*values, None]):
        if value is not None and start is None:
            start = at
        elif value is None and start is not None:
            yield start, at
            start = None


def _legend(chart: Chart) -> list[str]:
    names = list(chart.series)
    more = len(names) - _MOST_NAMES
    return [*names[:_MOST_NAMES], f"and {more} more"] if more > 0 else names


def _cycle(count: int) -> list[str]:
    return [_COLOURS[number % len(_COLOURS)] for number in range(count)]


def _tick(highest: float) -> float:
    """Returns a round number that is at least a fourth of `highest`."""
    if highest <= 0:
        return 1
    power = math.pow(10, math.floor(math.log10(highest / _Y_LABELS)))
    return next(power * factor for factor in (1, 2, 2.5, 5, 6, 8, 10) if power * factor * _Y_LABELS >= highest)


def _text(group: ElementTree.Element, x: float, y: float, words: str, anchor: str) -> ElementTree.Element:
    text = ElementTree.SubElement(group, "text", {"x": f"{x:.1f}", "y": f"{y:.1f}", "text-anchor": anchor})
    text.text = words
    return text
