"""Kubernetes quantities: what they say, and their canonical form (`1024Mi` is `1Gi`, `1000m` is `1`, `0.5` is `500m`).

The rules are those of k8s.io/apimachinery/pkg/api/resource: binary numbers under 1024 turn decimal, exponents are
multiples of three, and what is finer than a nano is rounded up.
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
_FORM = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))(?:([KMGTPE]i)|([numkMGTPE])|[eE]([+-]?\d+))?")


def value(text: str | float) -> Fraction:
    """What a quantity says, exactly: bytes, cores, or whatever it counts. Raises ValueError for other texts."""
    found = _FORM.fullmatch(str(text))
    if found is None:
        raise ValueError(f"{text!r} is no quantity, such as 2, 500m or 64Gi")
    number, binary, decimal, exponent = found.groups()
    if binary is not None:
        return Fraction(number) * (1 << 10 * _BINARY[binary])
    return Fraction(f"{number}e{exponent or _DECIMAL[decimal or '']}")


def canonical(text: Any) -> Any:
    """The canonical form of a quantity, as text; anything that is not a quantity is returned as it is."""
    if isinstance(text, bool) or not isinstance(text, (str, int, float)):
        return text
    found = _FORM.fullmatch(str(text))
    if found is None:
        return text
    exact, (_, binary, _, exponent) = value(text), found.groups()
    if binary is not None and abs(exact) >= 1024:
        return _binary(math.ceil(exact))
    return _decimal(exact, "e{}" if exponent is not None else "")


def _binary(value: int) -> str:
    power = 0
    while value and value % 1024 == 0 and power < max(_BINARY_NAMES):
        value, power = value // 1024, power + 1
    return f"{value}{_BINARY_NAMES.get(power, '')}"


def _decimal(value: Fraction, form: str = "") -> str:
    """`form` writes the exponent as a number; without it, as a letter."""
    mantissa, exponent = math.ceil(value * 10**9), -9
    while mantissa and mantissa % 1000 == 0 and exponent < max(_DECIMAL_NAMES):
        mantissa, exponent = mantissa // 1000, exponent + 3
    if mantissa == 0:
        return "0"
    if form:
        return f"{mantissa}{form.format(exponent) if exponent else ''}"
    return f"{mantissa}{_DECIMAL_NAMES[exponent]}"
