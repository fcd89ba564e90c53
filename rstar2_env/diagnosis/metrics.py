"""``Metric``: the description of a metric of a run; ``checks_of``: the checks that read a metric.

Not covered: the metrics themselves (``rstar2_env.diagnosis.metric_table``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from rstar2_env.diagnosis.base import RunCheck
from rstar2_env.diagnosis.examination import every_check

_PLACEHOLDER = re.compile(r"[A-Z]+")
_QUOTED = re.compile(r"`([^`]+)`")


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric of a run.

    Attributes:
        names: Names under which a run records the metric. A word in capitals stands for any text, such as the name of a
            status.
        unit: Unit of the metric; ``share`` is a number from 0 to 1.
        meaning: Description of the metric.
        healthy: Its healthy range, in agreement with the rules of the checks that read the metric; if the range differs
            between runs, the conditions that determine it.
        checks: Names of checks that compute the same quantity from episodes; the names of checks that read the metric
            itself follow from ``RunCheck.needs`` and ``RunCheck.looks_at``.
    """

    names: tuple[str, ...]
    unit: str
    meaning: str
    healthy: str = ""
    checks: tuple[str, ...] = ()

    def matches(self, name: str) -> bool:
        """Return whether a name is one of this metric's names, in which a word in capitals stands for any text."""
        return any(re.fullmatch(_PLACEHOLDER.sub(".+", re.escape(own)), name) for own in self.names)


def checks_of(metric: Metric) -> list[RunCheck]:
    """Return the checks that read a metric, in the order of their names."""
    return [one for one in every_check() if one.name in metric.checks or any(map(metric.matches, _read_by(one)))]


def _read_by(check: RunCheck) -> Iterator[str]:
    for need in check.needs:
        yield from need.split("|")
    yield from _QUOTED.findall(check.looks_at)
