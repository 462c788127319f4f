"""Quantities as the API server writes them, and what they are worth."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from simulator.kube.quantity import canonical, value


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("1024Mi", "1Gi"), ("1.5Gi", "1536Mi"), ("0.5Gi", "512Mi"), ("1000m", "1"), ("0.5", "500m"), ("2000", "2k"),
        ("1500m", "1500m"), (8, "8"), ("512Ki", "512Ki"), ("100", "100"), ("1e3", "1e3"), ("0", "0"), ("0Mi", "0"),
        ("1Ki", "1Ki"), ("0.5Ki", "512"), ("text", "text"), (True, True), (None, None), ("-1024Ki", "-1Mi"),
    ],
)  # fmt: skip
def test_quantities(written: Any, shown: Any) -> None:
    assert canonical(written) == shown


@pytest.mark.parametrize(
    ("text", "exact"),
    [("64Mi", 2**26), ("1G", 10**9), ("5", 5), (7, 7), ("1.5Gi", 3 * 2**29), ("250m", Fraction(1, 4))],
)
def test_quantities_have_an_exact_value(text: str | int, exact: Fraction | int) -> None:
    assert value(text) == exact


def test_what_is_no_quantity_has_no_value() -> None:
    with pytest.raises(ValueError, match="'64 GB' is no quantity, such as 2, 500m or 64Gi"):
        value("64 GB")
