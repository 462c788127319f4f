from __future__ import annotations

from xml.etree import ElementTree

import pytest

from demos.chart import Chart, svg

SVG = "{http://www.w3.org/2000/svg}"


def drawn(chart: Chart, columns: int = 1) -> ElementTree.Element:
    return ElementTree.fromstring(svg([chart], columns))  # noqa: S314 - our own


def points(root: ElementTree.Element, shape: str) -> list[list[str]]:
    return [each.attrib["points"].split() for each in root.iter(f"{SVG}{shape}")]


def test_missing_values_are_gaps_and_series_are_stacked() -> None:
    lines = points(drawn(Chart("GPUs", {"blue": [1, 2, None, None, 3, 4]}, 5)), "polyline")
    assert [len(line) for line in lines] == [2, 2]
    stacked = Chart("GPUs", {"blue": [8, 8], "red": [8, None]}, 5, stacked=True)
    lower, upper = points(drawn(stacked), "polygon")
    assert upper[-1] == lower[0], "the upper one starts at the end of the lower one"


@pytest.mark.parametrize(
    ("highest", "scale"), [(24, "24"), (23, "24"), (98, "100"), (0.3, "0.32"), (0, "4"), (5e10, "6e+10")]
)
def test_the_scale_ends_with_a_round_number(highest: float, scale: str) -> None:
    texts = [each.text for each in drawn(Chart("x", {"a": [highest]}, 5)).iter(f"{SVG}text")]
    assert scale in texts
    assert float(scale) >= highest


def test_a_long_legend_is_shortened() -> None:
    root = drawn(Chart("x", {f"gpu {number}": [number] for number in range(16)}, 5))
    texts = {each.text for each in root.iter(f"{SVG}text")}
    assert {"gpu 5", "and 10 more"} <= texts
    assert "gpu 6" not in texts
    assert len(points(root, "polyline")) == 16
