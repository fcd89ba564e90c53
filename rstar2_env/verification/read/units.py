"""Read the text after a value as a unit, and compare units.

Covered: lengths, areas, volumes, masses, times, speeds, angles, forces, energies, pressures, electrical units, data,
temperatures (as names), money by currency, with SI prefixes, powers, products and quotients. Not covered: the names of
counted things (see ``vocabulary``). Conversion is exact, with rational numbers.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from pathlib import Path

from rstar2_env.verification.read.names import word_set

TABLE_FILE = Path(__file__).with_name("units.txt")
Dimension = tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit as a multiple of base units.

    Attributes:
        factor: Size in base units.
        dimension: Base units and their powers.
    """

    factor: Fraction
    dimension: Dimension


def _table() -> dict[str, tuple[Fraction, str]]:
    """Return the factor of every unit by name, and its base units written as ``m^2 s^-1``."""
    units: dict[str, tuple[Fraction, str]] = {}
    for line in TABLE_FILE.read_text(encoding="utf-8").strip().split("\n")[1:]:
        written, _, value = line.partition(" = ")
        number, _, dimension = value.partition(" ")
        units.update({name.replace("_", " "): (Fraction(number), dimension) for name in written.split()})
    for name, (factor, base) in list(units.items()):
        for symbol, word, size in _PREFIXES:
            prefix = symbol if name in _PREFIXED_SYMBOLS else word if name in _PREFIXED_NAMES else ""
            if prefix and prefix + name not in _NO_UNITS:
                units.setdefault(prefix + name, (factor * size, base))
    return units


_PREFIXES = (
    ("G", "giga", Fraction(10**9)),
    ("M", "mega", Fraction(10**6)),
    ("k", "kilo", Fraction(1000)),
    ("d", "deci", Fraction(1, 10)),
    ("c", "centi", Fraction(1, 100)),
    ("m", "milli", Fraction(1, 1000)),
    ("u", "micro", Fraction(1, 10**6)),
    ("μ", "micro", Fraction(1, 10**6)),
    ("n", "nano", Fraction(1, 10**9)),
    ("p", "pico", Fraction(1, 10**12)),
)
_PREFIXED_SYMBOLS = word_set("m g s L l N J W Pa Hz A V C T F K mol eV bit ohm")
_PREFIXED_NAMES = word_set(
    """meter metre gram gramme second liter litre newton joule watt pascal hertz amp ampere volt ohm coulomb tesla farad
    kelvin mole electronvolt bit byte"""
)
"""Units that take the symbols and the names of SI prefixes."""
_NO_UNITS = frozenset({"us", "pm"})
"""Words that are not read as the microsecond and the picometer."""


_UNITS = _table()
_POWERS = {"square": 2, "sq": 2, "cubic": 3, "cu": 3}
_PART = re.compile(
    r"\s*(?:(?P<slash>/|\bper\b)|(?P<name>[^\W\d_]+|[$€£¥₹°%¢])\.?\s*(?:\^?\s*(?P<power>-?\d+))?|(?P<skip>[*·.]))"
)


_TEMPERATURE = re.compile(r"(?:degrees?|deg|°)\s+([CF])(?:elsius|ahrenheit)?\b", re.IGNORECASE)


@lru_cache(maxsize=1024)
def read_unit(text: str) -> Unit | None:
    """Read a unit; return ``None`` if the text is something else, such as the name of counted things."""
    factor, dimension = Fraction(1), dict[str, int]()
    direction, pending = 1, 1
    at, text = 0, text.strip()
    if not text:
        return None
    text = _TEMPERATURE.sub(r"deg\1", text)
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
        known = _UNITS.get(name)
        if known is None and len(name) > 1:  # "Meters" is meters, "M" is not
            known = _UNITS.get(name.lower()) or _UNITS.get(singular(name.lower()))
        if known is None:
            return None
        after = re.match(r"\s*(squared|cubed)\b", text[at:])
        power = int(match["power"] or pending)
        if after is not None:
            power = 2 if after[1] == "squared" else 3
            at += after.end()
        if abs(power) > 9:
            return None
        pending = 1
        factor *= known[0] ** (direction * power)
        for part in known[1].split():
            base, _, exponent = part.partition("^")
            dimension[base] = dimension.get(base, 0) + direction * power * int(exponent or 1)
    return Unit(factor, tuple(sorted((base, power) for base, power in dimension.items() if power)))


def singular(name: str) -> str:
    """Return a word without the ending of an English plural."""
    if name.endswith("ies"):
        return name[:-3] + "y"
    return name[:-1] if name.endswith("s") and len(name) > 2 else name


ANY_UNIT: Dimension = (("?", 1),)
"""The dimension of the word "units", which stands for any unit."""


def same_dimension(gold: Dimension, answer: Dimension) -> bool:
    """Return whether two dimensions are equal; the sign ¥ equals both yen and yuan."""
    if gold == answer:
        return True
    return {gold, answer} in ({(("¥", 1),), (("JPY", 1),)}, {(("¥", 1),), (("CNY", 1),)})
