"""Write the table of units of the verifier from pint's definitions: ``python tools/unit_table.py``.

Needs pint 0.25.3 (``pip install pint==0.25.3``), which nothing else here needs. The table holds the facts alone: the
names and symbols of each unit, its exact size, and its base units. Left out are physical constants, units whose size is
measured or irrational, units of printers, textiles, surveyors and Gaussian systems, and units whose size depends on a
calendar. A name that also counts things ("3 bags") or changes a number ("3 fifths") is a unit only if it is the main
name of a unit that has a symbol; a single letter only if it is on the list that the lexer reads as a unit. A symbol in
capitals is left out if its small letters are a symbol too, since answers may be in capitals.
Names that pint does not have (money, other languages) are in ``read/units.txt``.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Container, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

from rstar2_env.verification.read import names
from rstar2_env.verification.read.lexer import UNIT_LETTERS
from rstar2_env.verification.read.names import word_set
from rstar2_env.verification.read.units import TABLE_FILES
from rstar2_env.verification.read.vocabulary import COUNTED_FILE, OPERATORS, REMARKS

VERSION = "0.25.3"
GROUPS_LEFT_OUT = ("Printer", "Textile", "Gaussian", "ESU", "USCSLengthSurvey")
LEFT_OUT = re.compile(
    r"year|month|century|millenni|eon|planck|atomic|conventional_|international|bohr|debye|^US_|^ab|_H2O|_Hg"
)
CUSTOMARY = ("USCSLengthInternational", "USCSLiquidVolume", "Avoirdupois")
BASES = {"meter": "m", "gram": "g", "second": "s", "ampere": "A", "candela": "cd", "mole": "mol", "kelvin": "K"}
WITH_PREFIXES = word_set(
    """meter gram second ampere candela mole kelvin hertz newton joule watt pascal volt coulomb ohm siemens farad weber
    henry tesla lumen lux becquerel gray sievert katal liter electron_volt bit byte calorie watt_hour bar molar"""
)
"""The units of the SI, and those that are written with its prefixes."""
ACCEPTED = WITH_PREFIXES | word_set(
    "minute hour day degree hectare metric_ton horsepower cubic_centimeter cup teaspoon tablespoon"
)
"""Units whose symbols of two letters are read, besides the customary ones."""
PREFIXES = {"tera": 12, "giga": 9, "mega": 6, "kilo": 3, "deci": -1, "centi": -2, "milli": -3, "micro": -6, "nano": -9}
PREFIXES |= {"pico": -12}
NO_SYMBOLS = frozenset({"us", "pm", "as", "PS", "ds", "cs", "fs", "cd", "dd", "ft", "pt", "kt", "Mt", "dt", "ct", "mt"})
"""Words, and symbols of other units, that a symbol with its prefix must not be."""
MOST_DIGITS = 30
"""Digits of the numerator or denominator of an exact size; measured constants have more."""
NAME = re.compile(r"[^\W\d_]+(?:_[^\W\d_]+)*")
NOUNS = frozenset(COUNTED_FILE.read_text(encoding="utf-8").split()) | REMARKS
WORDS = OPERATORS | names.VERBS | names.UNIT_STOPS | names.FILLERS | {"at", "th", "a", "an", "or", "and", "to"}


def rows() -> Iterator[tuple[list[str], Fraction, str]]:
    """Iterate over the names, the size and the base units of every unit."""
    pint: Any = importlib.import_module("pint")
    registry = pint.UnitRegistry(non_int_type=Fraction, cache_folder=None)
    folder = Path(str(pint.__file__)).parent
    defined, constants = (
        {line.partition("=")[0].strip() for line in (folder / name).read_text("utf-8").splitlines()}
        for name in ("default_en.txt", "constants_en.txt")
    )
    customary = set().union(*(registry.get_group(name).members for name in CUSTOMARY))
    left_out = constants.union(*(registry.get_group(name).members for name in GROUPS_LEFT_OUT))
    half_turn = registry.Quantity(Fraction(1), "pi").to_root_units().magnitude
    for unit in {id(each): each for each in registry._units.values()}.values():
        if (
            unit.name in left_out
            or LEFT_OUT.search(unit.name)
            or unit.name not in defined
            or not unit.is_multiplicative
        ):
            continue
        try:
            size = registry.Quantity(Fraction(1), unit.name).to_root_units()
        except (pint.errors.PintError, TypeError, ValueError, ZeroDivisionError, OverflowError):
            continue
        powers: dict[str, Any] = dict(size._units)
        if not powers or any(Fraction(power).denominator != 1 for power in powers.values()):
            continue
        factor = Fraction(size.magnitude) / Fraction(1000) ** int(powers.get("gram", 0))
        if (turns := int(powers.pop("radian", 0))) != 0:
            factor *= (180 / half_turn) ** turns
        base = [("kg" if name == "gram" else BASES.get(name, name), int(power)) for name, power in powers.items()]
        base += [("deg", turns)] if turns else []
        if len(str(max(factor.numerator, factor.denominator))) > MOST_DIGITS:
            continue
        written = " ".join(name if power == 1 else f"{name}^{power}" for name, power in sorted(base))
        known = unit.name in ACCEPTED or unit.name in customary
        kept = [name for name in _names(unit) if _is_name(name, unit, known)]
        if kept:
            yield kept, factor, written
        if unit.name in WITH_PREFIXES:
            for prefix, power in PREFIXES.items():
                symbols = ["u", "μ"] if prefix == "micro" else [registry._prefixes[prefix].symbol]
                more = [f"{prefix}{name}" for name in kept if len(name) > 2 and name.islower()]
                short = {name for name in (unit.symbol, *kept) if len(name) <= 3}
                more += [f"{symbol}{name}" for symbol in symbols for name in sorted(short)]
                yield [name for name in more if name not in NO_SYMBOLS], factor * Fraction(10) ** power, written


def _names(unit: Any) -> list[str]:
    found = [unit.name, *([unit.symbol] if unit.has_symbol else []), *unit.aliases]
    return [name for name in dict.fromkeys(found) if NAME.fullmatch(name) or name == "°"]


def _is_name(name: str, unit: Any, known: bool) -> bool:
    """Whether a name always means its unit after a number.

    Args:
        name: The name, the symbol or an alias.
        unit: pint's definition of the unit.
        known: Whether the unit is one of the SI, one that is used with them, or a customary one.
    """
    if len(name) == 1 or name in names.GREEK or name in NO_SYMBOLS - {"ft", "pt"}:
        return name in UNIT_LETTERS or name == "°"
    if len(name) == 2 or {name.lower(), f"{name.lower()}s"} & (WORDS | NOUNS):
        symbol = len(name) == 2 and name not in WORDS - {"in"}
        return known and unit.has_symbol and (symbol or name == unit.name)
    return True


def _is_capitals(name: str, lines: Container[str]) -> bool:
    """Whether a symbol is another one in capitals: "ML" and "MM" say "ml" and "mm", as "KM" and "KG" say "km" and "kg".

    Args:
        name: A symbol.
        lines: All names.
    """
    return len(name) > 1 and name.isupper() and name.lower() in lines


def main() -> None:
    """Write the table."""
    lines: dict[str, str] = {}
    for kept, factor, written in rows():
        new = [name for name in kept if name not in lines]
        lines.update(dict.fromkeys(new, f"{factor} {written}"))
    lines = {name: value for name, value in lines.items() if not _is_capitals(name, lines)}
    units: dict[str, list[str]] = {}
    for name, value in lines.items():
        units.setdefault(value, []).append(name)
    table = [f"{' '.join(found)} = {value}" for value, found in units.items()]
    head = f'# Units of pint {VERSION}, by tools/unit_table.py: names ("_" is a space), size, base units.'
    TABLE_FILES[0].write_text("\n".join([head, *table]) + "\n", encoding="utf-8")
    print(f"{len(lines)} names of {len(table)} units are in {TABLE_FILES[0]}.")


if __name__ == "__main__":
    main()
