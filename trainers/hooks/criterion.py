"""Exit condition of a run: a comparison of a metric with a number, such as ``pass_rate >= 0.9``."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from rstar2_env.core.errors import ConfigurationError

_WRITTEN = re.compile(r"\s*(?P<figure>[^\s<>=]+)\s*(?P<sign>>=|<=|>|<)\s*(?P<value>[-+.\deE]+)\s*")
_SIGNS: Mapping[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}


@dataclass(frozen=True, slots=True)
class Criterion:
    """A comparison of a metric with a number.

    Attributes:
        figure: Name of the metric to compare.
        sign: ``>=``, ``<=``, ``>`` or ``<``.
        value: The number to compare the metric with.
    """

    figure: str
    sign: str
    value: float

    def met(self, figures: Mapping[str, float | None]) -> bool:
        """Return whether ``figures`` meets the criterion; false if the metric is missing or has no data."""
        found = figures.get(self.figure)
        return found is not None and _SIGNS[self.sign](found, self.value)

    def __str__(self) -> str:
        """Return the criterion as text that ``read_criterion`` reads."""
        return f"{self.figure} {self.sign} {repr(self.value).removesuffix('.0')}"


def read_criterion(written: str) -> Criterion:
    """Parse a criterion such as ``eval/pass_rate >= 0.9``.

    Raises:
        ConfigurationError: The text is not a metric, one of the four signs of ``Criterion`` and a number.
    """
    found = _WRITTEN.fullmatch(written)
    try:
        if found is None:
            raise ValueError
        return Criterion(found["figure"], found["sign"], float(found["value"]))
    except ValueError:
        raise ConfigurationError(
            "A criterion must have the form METRIC SIGN NUMBER, such as 'pass_rate >= 0.9', with one of "
            f"the signs {', '.join(_SIGNS)}; got {written!r}."
        ) from None
