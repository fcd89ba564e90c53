"""The table of figures (metrics) of episodes: each figure is one sum of counts divided by another.

Training, evaluation and the viewer compute their figures from this table. They add up the counts over episodes, steps
and processes, and divide only when they show a figure; they never average means. Not covered: standard errors and
intervals (``rstar2_env.evaluation.figures``), the SQL of the counts (``rstar2_env.view.queries.figures``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from rstar2_env.core.episode import Episode

MetricSums: TypeAlias = Mapping[str, tuple[float, float]]
"""The sum and the count of each metric, by name; the metric's value is their quotient, and does not exist if the count
is 0."""

ENDS = ("answered", "no_answer", "turns", "tokens", "time", "terminated", "truncated", "unavailable", "cancelled")
"""The values of ``Episode.end`` that training always reports, even if no episode has the value; an environment may
define further values."""
CUT_ENDS = frozenset({"tokens", "turns", "time", "truncated"})
"""The values of ``Episode.end`` that mean that a budget was exhausted."""

_WORDS = 4


@dataclass(frozen=True, slots=True)
class Figure:
    """Definition of one figure (metric) of episodes: a quotient of two counts, and its display.

    Attributes:
        numerator: Name of a count, one of ``COUNTS``.
        denominator: Name of the count to divide by.
        label: Label of the figure in a summary; empty if summaries do not show it.
        unit: Unit of the figure; a ``share`` is a number from 0 to 1, shown in percent.
        better: ``higher`` if higher values are better, ``lower`` if lower values are better; else empty.
        each_step: Whether training logs the figure at every step.
        meaning: Description of the figure: a noun phrase that ends with a full stop.
    """

    numerator: str
    denominator: str
    label: str
    unit: str = "share"
    better: Literal["higher", "lower", ""] = ""
    each_step: bool = True
    meaning: str = field(kw_only=True)

    @property
    def percent(self) -> bool:
        """Whether the metric is shown in percent."""
        return self.unit == "share"


FIGURES: Mapping[str, Figure] = {
    "pass_rate": Figure("correct", "episodes", "pass rate", better="higher", meaning="Share of correct episodes."),
    "reward": Figure("reward", "episodes", "mean reward", "reward", "higher", meaning="Mean reward of an episode."),
    "tool_error_share": Figure(
        "errors",
        "calls",
        "tool errors, of all calls",
        better="lower",
        meaning="Share of calls that are the policy's errors; `unavailable` calls do not count.",
    ),
    "tool_error_share_correct": Figure(
        "errors_correct",
        "calls_correct",
        "tool errors in correct episodes",
        better="lower",
        meaning="Share of calls in correct episodes that are the policy's errors; `unavailable` calls do not count.",
    ),
    "tool_calls": Figure(
        "calls",
        "episodes",
        "calls an episode",
        "calls",
        meaning="Mean number of tool calls of an episode; `unavailable` calls do not count.",
    ),
    "code_share": Figure(
        "coded",
        "episodes",
        "episodes that used code",
        each_step=False,
        meaning="Share of episodes with a tool call.",
    ),
    "code_share_correct": Figure(
        "coded_correct",
        "correct",
        "",
        each_step=False,
        meaning="Share of the correct episodes that have a tool call.",
    ),
    "turns": Figure("turns", "episodes", "turns", "turns", meaning="Mean number of turns of an episode."),
    "broken_format": Figure(
        "broken",
        "episodes",
        "broken answer formats",
        better="lower",
        meaning="Share of episodes that do not mark exactly one answer.",
    ),
    "truncated": Figure(
        "cut",
        "episodes",
        "cut by a budget",
        better="lower",
        each_step=False,
        meaning="Share of episodes that exhausted a budget of turns, tokens or time.",
    ),
    "repetition": Figure(
        "repeated",
        "episodes",
        "repeated four-word sequences",
        better="lower",
        each_step=False,
        meaning="Share of the four-word sequences in the policy's text that occurred earlier in the same episode; "
        "mean over episodes.",
    ),
    "tokens": Figure(
        "tokens", "tokened", "tokens an episode", "tokens", meaning="Mean number of tokens of the policy in an episode."
    ),
}
"""Every metric of episodes, by name, in the order of a summary. Metrics are computed only over episodes that are
``Episode.available``."""

COUNTS: Mapping[str, Callable[[Episode], float]] = {
    "episodes": lambda episode: 1.0,
    "correct": lambda episode: float(episode.correct),
    "reward": lambda episode: episode.reward,
    "errors": lambda episode: _errors(episode),
    "calls": lambda episode: float(episode.tool_calls),
    "errors_correct": lambda episode: episode.correct * _errors(episode),
    "calls_correct": lambda episode: float(episode.correct * episode.tool_calls),
    "turns": lambda episode: float(episode.turns),
    "broken": lambda episode: float(episode.answer_tags != 1),
    "coded": lambda episode: float(episode.tool_calls > 0),
    "coded_correct": lambda episode: float(episode.correct and episode.tool_calls > 0),
    "tokens": lambda episode: float(episode.policy_tokens),
    # A player without token ids reports 0 tokens.
    "tokened": lambda episode: float(episode.policy_tokens > 0),
    "repeated": lambda episode: repetition(episode),
    "cut": lambda episode: float(episode.end in CUT_ENDS),
}
"""The function of each count, by the count's name; it returns the count of one ``Episode.available`` episode."""

STEP_FIGURES = tuple(name for name, figure in FIGURES.items() if figure.each_step)
"""Names of the metrics in ``FIGURES`` that training logs at every step."""


def figure_sums(episodes: Iterable[Episode], names: Iterable[str] = FIGURES) -> dict[str, tuple[float, float]]:
    """Return the numerator and the denominator of each metric in ``FIGURES``, added up over episodes.

    Args:
        episodes: The episodes; episodes that are not ``available`` are left out.
        names: Names of the metrics to compute.
    """
    pairs = {name: (FIGURES[name].numerator, FIGURES[name].denominator) for name in names}
    totals = dict.fromkeys((count for pair in pairs.values() for count in pair), 0.0)
    for episode in episodes:
        if episode.available:
            for count in totals:
                totals[count] += COUNTS[count](episode)
    return {name: (totals[over], totals[under]) for name, (over, under) in pairs.items()}


def repetition(episode: Episode, words_of: Callable[[str], Sequence[str]] = str.split) -> float:
    """Return the share, in [0, 1], of the policy's four-word sequences that occurred earlier in the episode.

    The share is ``1 - unique / all`` (seq-rep-4 of Welleck et al., Neural Text Generation with Unlikelihood Training,
    arXiv 1908.04319, section 6.1). A sequence lies within one turn.

    Args:
        episode: The episode.
        words_of: Divides a text into words; by default, at white space.
    """
    total = 0
    seen: set[tuple[str, ...]] = set()
    for message in episode.messages:
        if message.role == "assistant":
            words = words_of(message.content)
            total += max(0, len(words) - _WORDS + 1)
            seen.update(zip(*(words[shift:] for shift in range(_WORDS)), strict=False))
    return 1.0 - len(seen) / total if total else 0.0


def _errors(episode: Episode) -> float:
    return float(sum(status.is_error for status in episode.statuses))
