"""Converts the text after a value to a unit, and compares units.

Covered: lengths, areas, volumes, masses, times, speeds, angles, forces, energies, pressures, electrical units, data,
temperatures, money, with SI prefixes, powers, products and quotients. Conversion is exact, with rational numbers. Not
covered: conversion between scales of temperature, or between currencies; the names of counted things (see
``vocabulary``).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from pathlib import Path

TABLE_FILES = tuple(Path(__file__).with_name(name) for name in ("registry.txt", "units.txt"))
"""Files of unit tables: the table made from pint's definitions by ``tools/unit_table.py``, and the table of this
package's own names, which overrides the first one."""

Dimension = tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit as a multiple of base units.

    Attributes:
        factor: Size of the unit in base units.
        dimension: The base units, and their powers.
    """

    factor: Fraction
    dimension: Dimension


def _table() -> dict[str, Unit]:
    """Return every unit by name."""
    units: dict[str, Unit] = {}
    for file in TABLE_FILES:
        for line in file.read_text(encoding="utf-8").strip().split("\n")[1:]:
            written, _, value = line.partition(" = ")
            factor, *base = value.split()
            powers = [(name, int(power or 1)) for name, _, power in (part.partition("^") for part in base)]
            unit = Unit(Fraction(factor), tuple(sorted(powers)))
            units.update((name.replace("_", " "), unit) for name in written.split())
    return units


_UNITS = _table()
_POWERS = {"square": 2, "sq": 2, "cubic": 3, "cu": 3}
_PART = re.compile(
    r"\s*(?:(?P<slash>/|\bper\b)|(?P<name>[^\W\d_]+|[$€£¥₹°%¢])\.?\s*(?:\^?\s*(?P<power>-?\d+)|(?P<said>squared|cubed)\b)?|(?P<skip>[*·.]))"
)


_TEMPERATURE = re.compile(r"(?:degrees?|deg|°)\s+([CF])(?:elsius|ahrenheit)?\b", re.IGNORECASE)


@lru_cache(maxsize=1024)
def read_unit(text: str) -> Unit | None:
    """Convert a text to a unit; return ``None`` if the text is not a unit, for example the name of counted objects."""
    factor, dimension = Fraction(1), dict[str, int]()
    direction, pending = 1, 1
    at, text = 0, _TEMPERATURE.sub(lambda match: f"deg{match[1].upper()}", text.strip())
    if not text or (whole := _named(text)) is not None:
        return whole if text else None
    while at < len(text):
        match = _PART.match(text, at)
        if match is None or match.end() == at:
            return None
        at = match.end()
        if match["slash"]:
            direction = -1
            continue
        if match["skip"]:
            continue
        name = match["name"]
        if name.lower() in _POWERS:
            pending = _POWERS[name.lower()]
            continue
        if (known := _named(name)) is None:
            return None
        power = int(match["power"] or {"squared": 2, "cubed": 3}.get(match["said"], pending))
        if abs(power) > 9:
            return None
        pending = 1
        factor *= known.factor ** (direction * power)
        for base, exponent in known.dimension:
            dimension[base] = dimension.get(base, 0) + direction * power * exponent
    return Unit(factor, tuple(sorted((base, power) for base, power in dimension.items() if power)))


def is_measure(text: str) -> bool:
    """Return whether a text is a unit that has a dimension, such as "cm" but not "radians"."""
    return (unit := read_unit(text)) is not None and unit.dimension != ()


def is_temperature(unit: str) -> bool:
    """Return whether a unit is degrees Celsius or Fahrenheit."""
    return (known := read_unit(unit)) is not None and known.dimension in ((("degC", 1),), (("degF", 1),))


def _named(name: str) -> Unit | None:
    """Return the unit with this name, if any; case and a plural ending are ignored in names of several letters."""
    lower = name.lower() if len(name) > 1 else name
    return _UNITS.get(name) or _UNITS.get(lower) or _UNITS.get(singular(lower))


def singular(name: str) -> str:
    """Return a word without its English plural ending."""
    if name.endswith("ies"):
        return name[:-3] + "y"
    return name[:-1] if name.endswith("s") and len(name) > 2 else name


DEGREE = Unit(Fraction(1), (("deg", 1),))
ANY_UNIT: Dimension = (("?", 1),)
"""The dimension of the word "units", which stands for any unit."""


def same_dimension(gold: Dimension, answer: Dimension) -> bool:
    """Return whether two dimensions are equal; the sign ¥ stands for both yen and yuan."""
    return gold == answer or {gold, answer} in ({(("¥", 1),), (("JPY", 1),)}, {(("¥", 1),), (("CNY", 1),)})
