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

from rstar2_env.verification.read.names import word_set

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

    def add(names: str, factor: Fraction | int | str, base: str) -> None:
        for name in names.split():
            units[name.replace("_", " ")] = (Fraction(factor), base)

    add("m meter metre", 1, "m")
    add("micron", "1/1000000", "m")
    add("inch in inche", "127/5000", "m")
    add("ft foot feet", "381/1250", "m")
    add("yd yard", "1143/1250", "m")
    add("mi mile", "201168/125", "m")
    add("g gram gramme gm", "1/1000", "kg")
    add("kg kilogram kilo", 1, "kg")
    add("t ton tonne", 1000, "kg")
    add("lb lbs pound", "45359237/100000000", "kg")
    add("oz ounce", "45359237/1600000000", "kg")
    add("s sec second", 1, "s")
    add("min minute", 60, "s")
    add("h hr hour", 3600, "s")
    add("day d", 86400, "s")
    add("week wk", 604800, "s")
    add("month mo", 1, "month")
    add("year yr", 12, "month")
    add("mph miles_per_hour", "201168/450000", "m s^-1")
    add("kph kmph kmh", "5/18", "m s^-1")
    add("L l liter litre", "1/1000", "m^3")
    add("cc", "1/1000000", "m^3")
    add("gal gallon", "473176473/125000000000", "m^3")
    add("acre", "316160658/78125", "m^2")
    add("ha hectare", 10000, "m^2")
    add("N newton", 1, "kg m s^-2")
    add("J joule", 1, "kg m^2 s^-2")
    add("W watt", 1, "kg m^2 s^-3")
    add("kw", 1000, "kg m^2 s^-3")
    add("kWh kwh", 3600000, "kg m^2 s^-2")
    add("Pa pascal", 1, "kg m^-1 s^-2")
    add("atm atmosphere", 101325, "kg m^-1 s^-2")
    add("Hz hertz", 1, "s^-1")
    add("A amp ampere", 1, "A")
    add("V volt", 1, "kg m^2 s^-3 A^-1")
    add("ohm Omega", 1, "kg m^2 s^-3 A^-2")
    add("C coulomb", 1, "A s")
    add("T tesla", 1, "kg s^-2 A^-1")
    add("F farad", 1, "kg^-1 m^-2 s^4 A^2")
    add("K kelvin", 1, "K")
    add("dB decibel", 1, "dB")
    add("rev revolution", 1, "rev")
    add("rpm", "1/60", "rev s^-1")
    add("degC celsius", 1, "degC")
    add("degF fahrenheit", 1, "degF")
    add("mol mole", 1, "mol")
    add("deg degree ° 度", 1, "deg")
    add("rad radian", 1, "")
    add("$ dollar usd buck 美元", 1, "USD")
    add("cent ¢", "1/100", "USD")
    add("€ eur euro", 1, "EUR")
    add("£ gbp", 1, "GBP")
    add("yuan rmb cny 元", 1, "CNY")
    add("yen jpy 円", 1, "JPY")
    add("¥", 1, "¥")
    add("₹ rs rupee inr", 1, "INR")
    add("ruble rouble rub", 1, "RUB")
    add("franc franken chf", 1, "CHF")
    add("peso", 1, "MXN")
    add("reais brl", 1, "BRL")
    add("krona kronor sek", 1, "SEK")
    add("krw", 1, "KRW")
    add("lira liras", 1, "TRY")
    add("baht บาท", 1, "THB")
    add("taka টাকা", 1, "BDT")
    add("shilling shilingi", 1, "KES")
    add("bit", 1, "bit")
    add("byte", 8, "bit")
    add("unit", 1, "?")
    add("dozen", 12, "")
    add("eV electronvolt", "1602176634/10000000000000000000000000000", "kg m^2 s^-2")
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
