"""Charts: what is not there leaves a gap, scales are round, and long legends say how much they leave out."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from demos.chart import Chart, svg

SVG = "{http://www.w3.org/2000/svg}"


def drawn(*charts: Chart, columns: int = 1) -> ElementTree.Element:
    return ElementTree.fromstring(svg(charts, columns))  # noqa: S314 - our own


def texts(root: ElementTree.Element) -> list[str]:
    return [each.text or "" for each in root.iter(f"{SVG}text")]


def test_where_there_was_nothing_the_line_has_a_gap() -> None:
    lines = list(drawn(Chart("GPUs", {"blue": [1, 2, None, None, 3, 4]}, 5)).iter(f"{SVG}polyline"))
    assert [len(line.attrib["points"].split()) for line in lines] == [2, 2]


def test_series_that_are_stacked_lie_on_each_other() -> None:
    root = drawn(Chart("GPUs", {"blue": [8, 8], "red": [8, None]}, 5, stacked=True))
    lower, upper = (each.attrib["points"].split() for each in root.iter(f"{SVG}polygon"))
    assert upper[-1] == lower[0], "the upper one begins where the lower one ends"


@pytest.mark.parametrize(
    ("highest", "scale"), [(24, "24"), (23, "24"), (98, "100"), (0.3, "0.32"), (0, "4"), (5e10, "6e+10")]
)
def test_the_scale_ends_with_a_round_number_that_is_no_less(highest: float, scale: str) -> None:
    found = texts(drawn(Chart("x", {"a": [highest]}, 5)))
    assert scale in found
    assert float(scale) >= highest


def test_a_long_legend_says_how_many_it_leaves_out() -> None:
    root = drawn(Chart("x", {f"gpu {number}": [number] for number in range(16)}, 5))
    assert "gpu 5" in texts(root)
    assert "gpu 6" not in texts(root)
    assert "and 10 more" in texts(root)
    assert len(list(root.iter(f"{SVG}polyline"))) == 16


def test_charts_stand_in_columns() -> None:
    root = drawn(*(Chart(str(number), {"a": [1]}, 5) for number in range(3)), columns=2)
    places = [each.attrib["transform"].partition("(")[2].rstrip(")").split() for each in root.iter(f"{SVG}g")]
    (left, top), (right, beside), (_, below) = (tuple(map(int, place)) for place in places)
    assert (top, left < right, below > top) == (beside, True, True)


def test_an_empty_chart_is_one_too() -> None:
    assert texts(drawn(Chart("nothing", {}, 5)))[0] == "nothing"
