"""``PartFinding``: the result of one part of ``rstar2 doctor --prove``: figures, and their expected ranges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

PartLevel = Literal["ok", "problem", "skipped", "late"]
"""Result of a part of ``rstar2 doctor --prove``: ``problem`` means an error or a wrong result; ``late`` means that the
time was up."""


@dataclass(frozen=True, slots=True)
class ProofFigure:
    """A figure that a part of ``rstar2 doctor --prove`` measured, with its expected range.

    Attributes:
        name: The measured quantity, with its unit.
        value: The measured value.
        low: Lower end of the expected range; ``None`` if there is none.
        high: Upper end of the expected range; ``None`` if there is none.
        source: Source of the range.
        must: Whether a value outside the range is an error; otherwise, such a value is only reported as unexpected.
    """

    name: str
    value: float
    low: float | None = None
    high: float | None = None
    source: str = ""
    must: bool = False

    @property
    def inside(self) -> bool:
        """Whether the value is in the range; NaN is in no range."""
        low, high = float("-inf") if self.low is None else self.low, float("inf") if self.high is None else self.high
        return low <= self.value <= high

    @property
    def expected(self) -> str:
        """The range as text; empty without a range."""
        if self.low is None and self.high is None:
            return ""
        if self.high is None:
            return f"at least {self.low:.4g} ({self.source})"
        if self.low is None:
            return f"at most {self.high:.4g} ({self.source})"
        return f"{self.low:.4g} to {self.high:.4g} ({self.source})"


def planned_figure(name: str, value: float, planned: float | None) -> ProofFigure:
    """Return a figure whose expected range is half to eight times the estimate of ``rstar2 plan``.

    Args:
        name: The measured quantity, with its unit; larger values are better.
        value: The measured value.
        planned: The estimate; ``None`` if it is unknown, so that the figure has no range.
    """
    if planned is None:
        return ProofFigure(name, value)
    return ProofFigure(name, value, planned / 2, 8 * planned, "half to eight times the estimate of rstar2 plan")


@dataclass(frozen=True, slots=True)
class PartFinding:
    """The result of one part of ``rstar2 doctor --prove``.

    Attributes:
        part: Name of the part.
        level: Whether the part passed, was skipped or failed; see ``PartLevel``.
        note: The reason if the part failed or was skipped, otherwise a description of the work that ran.
        figures: The measured figures, each with its expected range.
        seconds: Wall-clock seconds.
    """

    part: str
    level: PartLevel
    note: str = ""
    figures: Sequence[ProofFigure] = ()
    seconds: float = 0.0

    def record(self) -> dict[str, Any]:
        """Return the finding as JSON-compatible values."""
        return asdict(self)

    @classmethod
    def from_record(cls, found: dict[str, Any]) -> PartFinding:
        """Create a finding from the values that ``record`` returned."""
        figures = tuple(ProofFigure(**figure) for figure in found["figures"])
        return cls(**{**found, "figures": figures})


def judged(part: str, note: str, figures: Sequence[ProofFigure]) -> PartFinding:
    """Return the finding of a part that finished: a problem if a figure marked ``must`` is outside its range.

    Args:
        part: Name of the part of ``rstar2 doctor --prove``.
        note: Description of the work that ran; if a figure makes the finding a problem, its name replaces this note.
        figures: The measured figures.
    """
    wrong = [figure for figure in figures if figure.must and not figure.inside]
    if wrong:
        first = wrong[0]
        return PartFinding(part, "problem", f"{first.name} is {first.value:.4g}, expected {first.expected}", figures)
    return PartFinding(part, "ok", note, figures)
