"""Checks for answers that become much longer or much shorter while the share of right answers does not rise."""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt
from statistics import fmean

from rstar2_env.diagnosis.base import Evidence, RunCheck, register
from rstar2_env.diagnosis.record import RunRecord
from rstar2_env.diagnosis.spells import rolling, spell, start_level

_TIMES, _WINDOW, _BETTER = 3.0, 3, 0.05
_USUAL = 1.5
"""Factor by which the mean length over 3 steps may differ from the length at the start without counting as changed."""


def _changes(ratio: Callable[[float], bool]) -> Callable[[RunRecord], Evidence | None]:
    def look(run: RunRecord) -> Evidence | None:
        start = start_level(run.series("rollout/tokens"))
        if not start:
            return None
        lengths = rolling(run.series("rollout/tokens"), _WINDOW)
        found = spell(lengths, lambda tokens: ratio(tokens / start))
        if found is None:
            return None
        rates = rolling(run.series("rollout/pass_rate") or run.series("rollout/reward"), _WINDOW)
        stop = run.last if found.until is None else found.until
        # Learning before the lengths began to change is no reason for the change.
        usual = [step for step, tokens in lengths if 1 / _USUAL < tokens / start < _USUAL and step < found.since]
        before = [rate for step, rate in rates if step <= max(usual, default=_WINDOW)]
        now = [rate for step, rate in rates if step <= stop]
        if before and now and now[-1] > before[-1] + max(_BETTER, 2 * _error(run)):
            return None  # the answers are right more often, so the change in length is part of learning
        return Evidence(
            since=found.since,
            until=found.until,
            says=f"Episodes have {found.last:.0f} tokens on average, {found.last / start:.2g} times as many as at the "
            f"start ({start:.0f}), but are not correct more often.",
            figures={"rollout/tokens": found.last, "at the start": start},
            episodes=run.examples(found.since, found.until, lambda one: one.available and not one.correct),
        )

    return look


def _error(run: RunRecord) -> float:
    """Return an upper bound of the standard error of the difference between two pass rates.

    Each pass rate is a mean over 3 steps. The result is 0 if the run did not record the number of episodes.
    """
    episodes = [value for _, value in run.series("rollout/episodes") if value > 0]
    return sqrt(0.25 / fmean(episodes) * 2 / _WINDOW) if episodes else 0.0


_RULE = (
    " the length at the start (the median of the run's first 3 steps), at 3 steps in a row. Since the length began to "
    "change, the pass rate, also averaged over 3 steps, has risen by at most 5 percentage points, or by at most 2 "
    "standard errors if these are more: lengths vary by a third between steps, and in runs that learn, a change of "
    "length can be useful"
)
_NEEDS = ("rollout/tokens",)

register(
    RunCheck(
        name="lengths_explode",
        title="Answers become longer and longer",
        looks_at="`rollout/tokens` and `rollout/pass_rate`",
        rule="the mean length of an episode, averaged over 3 steps, is more than 3 times" + _RULE,
        severity="warning",
        cause="A loss averaged over each row, which punishes long wrong answers less, or a policy that no longer ends "
        "its turns.",
        change=("--set aggregation=token_mean", "--set rollout.max_turn_tokens=LESS"),
        otherwise="Harder problems of a curriculum need longer answers.",
        needs=_NEEDS,
        look=_changes(lambda ratio: ratio > _TIMES),
        effects=("cut_by_tokens", "throughput_falls"),
    ),
    RunCheck(
        name="lengths_collapse",
        title="Answers become shorter and shorter",
        looks_at="`rollout/tokens` and `rollout/pass_rate`",
        rule="the mean length of an episode, averaged over 3 steps, is less than a third of" + _RULE,
        severity="warning",
        cause="A penalty on length or on tool calls that outweighs the answer, or a budget that punishes long answers.",
        change=("--set reward=return", "--set rollout.max_episode_tokens=MORE"),
        otherwise="The policy omits explanations that it does not need: then the pass rate stays the same or rises.",
        needs=_NEEDS,
        look=_changes(lambda ratio: ratio < 1 / _TIMES),
    ),
)
