"""Kubernetes quantities: value and canonical form (`1024Mi` is `1Gi`, `1000m` is `1`, `0.5` is `500m`).

Follows apimachinery (pkg/api/resource/quantity.go, ParseQuantity and CanonicalizeBytes): binary quantities are capped
at 2^63-1, binary numbers below 1024 become decimal, exponents are multiples of three, and fractions of a nano are
rounded away from zero.
"""

from __future__ import annotations

import math
import re
from fractions import Fraction
from typing import Any

_BINARY = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY_NAMES = {power: name for name, power in _BINARY.items()}
_DECIMAL_NAMES = {exponent: name for name, exponent in _DECIMAL.items()}
_FORM = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+))(?:([KMGTPE]i)|([numkMGTPE])|[eE]([+-]?[0-9]+))?")
_LARGEST = 2**63 - 1
_NANO = 10**9
_MOST_DIGITS = 999
"""The maximum number of digits, and the maximum exponent: more than real quantities have, but cheap to compute."""


def is_quantity(text: Any) -> bool:
    return _parse(text) is not None


def value(text: Any) -> Fraction:
    """Returns the exact value of a quantity, in bytes, cores or devices. Raises ValueError for other text."""
    found = _parse(text)
    if found is None:
        raise ValueError(f"{text!r} is not a quantity, such as 2, 500m or 64Gi")
    number, binary, decimal, exponent = found.groups()
    if binary is not None:
        exact = Fraction(number) * (1 << 10 * _BINARY[binary])
        return max(min(exact, Fraction(_LARGEST)), Fraction(-_LARGEST))
    power = int(exponent[:10]) if exponent else _DECIMAL[decimal or ""]
    exact = Fraction(f"{number}e{max(min(power, _MOST_DIGITS), -_MOST_DIGITS)}")
    return Fraction(_away_from_zero(exact * _NANO), _NANO)


def count(text: Any) -> int:
    """Returns a quantity as a whole number, rounded like `Quantity.Value()`; 0 for a value that is not a quantity,
    which other vendors' objects may have.
    """
    return _away_from_zero(value(text)) if is_quantity(text) else 0


def canonical(text: Any) -> Any:
    found = _parse(text)
    if found is None:
        return text
    exact, (_, binary, _, exponent) = value(text), found.groups()
    if binary is not None and abs(exact) >= 1024:
        return _binary(math.ceil(exact))
    return _decimal(exact, "e{}" if exponent is not None else "")


def _parse(text: Any) -> re.Match[str] | None:
    if isinstance(text, bool) or not isinstance(text, (str, int, float)):
        return None
    found = _FORM.fullmatch(str(text))
    return found if found and len(found[1]) <= _MOST_DIGITS else None


def _away_from_zero(exact: Fraction) -> int:
    return math.ceil(exact) if exact > 0 else math.floor(exact)


def _binary(value: int) -> str:
    power = 0
    while value and value % 1024 == 0 and power < max(_BINARY_NAMES):
        value, power = value // 1024, power + 1
    return f"{value}{_BINARY_NAMES.get(power, '')}"


def _decimal(value: Fraction, form: str = "") -> str:
    mantissa, exponent = _away_from_zero(value * _NANO), -9
    while mantissa and mantissa % 1000 == 0 and exponent < max(_DECIMAL_NAMES):
        mantissa, exponent = mantissa // 1000, exponent + 3
    if mantissa == 0:
        return "0"
    if form:
        return f"{mantissa}{form.format(exponent) if exponent else ''}"
    return f"{mantissa}{_DECIMAL_NAMES[exponent]}"
