from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from k8s.quantities import canonical, count, is_quantity, value


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("1024Mi", "1Gi"), ("1.5Gi", "1536Mi"), ("0.5Gi", "512Mi"), ("1000m", "1"), ("0.5", "500m"), ("2000", "2k"),
        ("1500m", "1500m"), (8, "8"), ("512Ki", "512Ki"), ("100", "100"), ("1e3", "1e3"), ("0", "0"), ("0Mi", "0"),
        ("1Ki", "1Ki"), ("0.5Ki", "512"), ("text", "text"), (True, True), (None, None), ("-1024Ki", "-1Mi"),
        ("1000", "1k"), ("0.0000000001", "1n"), ("-0.3n", "-1n"), ("1E", "1E"), ("1E3", "1e3"),
    ],
)  # fmt: skip
def test_canonical_form(written: Any, shown: Any) -> None:
    assert canonical(written) == shown


@pytest.mark.parametrize(
    ("text", "exact"),
    [
        ("64Mi", 2**26), ("1G", 10**9), ("5", 5), (7, 7), ("1.5Gi", 3 * 2**29), ("250m", Fraction(1, 4)), ("1k", 1000),
        ("7Ki", 7168), ("2E", 2 * 10**18), ("1e+3", 1000), ("3E-3", Fraction(3, 1000)), (".5", Fraction(1, 2)),
        ("+1T", 10**12), ("-2u", Fraction(-2, 10**6)), ("8Ei", 2**63 - 1), ("-9Ei", 1 - 2**63), ("12P", 12 * 10**15),
        ("0.1n", Fraction(1, 10**9)), ("007", 7), ("5.", 5), (0.5, Fraction(1, 2)), ("1e999999999999", 10**999),
    ],
)  # fmt: skip
def test_exact_value(text: str | int, exact: Fraction | int) -> None:
    assert value(text) == exact


def test_rejects_the_value_of_other_text() -> None:
    with pytest.raises(ValueError, match="'64 GB' is not a quantity, such as 2, 500m or 64Gi"):
        value("64 GB")


@pytest.mark.parametrize(
    ("given", "whole"),
    [
        ("8", 8), (8, 8), ("1k", 1000), ("1500m", 2), ("1e3", 1000), ("-1500m", -2),
        ("", 0), ("many", 0), (None, 0), (True, 0), ({}, 0),
    ],
)  # fmt: skip
def test_a_count_is_a_whole_number_or_zero_for_other_values(given: Any, whole: int) -> None:
    assert count(given) == whole


@pytest.mark.parametrize(
    "text", ["", "K", "1K", "1KB", "64 GB", "1Gi ", "1ki", "1.2.3", "e3", "1e", "1_000", "٣", "0x8", "inf", "9" * 5000]
)
def test_other_text_is_not_a_quantity(text: str) -> None:
    assert not is_quantity(text)
    assert canonical(text) == text
