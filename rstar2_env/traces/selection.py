"""Select the episodes that become traces: rejection sampling, with limits on the share of each level of difficulty.

An episode qualifies if it earned the full reward and meets the conditions of ``TraceSelection``. The level of a problem
is its difficulty for the player, from the share p of its episodes that were right: ``easy`` if p > 1/2, ``medium`` if
p > 1/4, otherwise ``hard``. By default, a problem is not played again after its first qualifying episode; if this
episode is also the first right one, in try t, then p is 1/t.

A limit on the share of each level keeps easy problems from dominating. With n_l qualifying traces of level l and the
limits s_l, the number of traces is the largest T with T <= sum over l of min(n_l, floor(s_l * T)); a level without a
limit has s_l = 1. Example: 90 easy and 10 hard traces with ``easy=0.5`` give T = 20, 10 of each level. DART-Math
(arXiv 2407.13690) balances the number of answers per problem in the same spirit; levels and limits are our own choice.
Not covered: playing (``rstar2_env.traces.playing``).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from rstar2_env.core.episode import Episode, Message
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.declare import CheckedOptions, option
from rstar2_env.core.options.rules import did_you_mean
from rstar2_env.traces.writer import Trace

LEVELS = ("easy", "medium", "hard")
"""Difficulty of a problem for the player, by the share of its episodes that were right."""


def level_of(success_rate: float) -> str:
    """Return the difficulty of a problem with this share of right episodes: ``easy``, ``medium`` or ``hard``."""
    return "easy" if success_rate > 0.5 else "medium" if success_rate > 0.25 else "hard"


@dataclass(frozen=True)
class TraceSelection(CheckedOptions):
    """Conditions on the episodes that become traces.

    Attributes:
        per_problem: Largest number of traces of one problem.
        min_calls: Smallest number of tool calls of an episode.
        clean: Keep only episodes in which no call of the policy was an error.
        shares: For each level of difficulty, its largest share of all traces, in (0, 1]; a missing level has no limit.

    Raises:
        ConfigurationError: A number is out of its range, or a level is unknown.
    """

    per_problem: int = option(1, least=1)
    min_calls: int = option(0, least=0)
    clean: bool = False
    shares: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        for level, share in self.shares.items():
            if level not in LEVELS:
                raise ConfigurationError(
                    f"{level!r} is not a level of difficulty.{did_you_mean(level, LEVELS)} Levels: "
                    f"{', '.join(LEVELS)}.",
                    option="share",
                )
            if not 0 < share <= 1:
                raise ConfigurationError(
                    f"The share of {level} problems must be greater than 0 and at most 1, not {share!r}.",
                    option="share",
                )

    def objection(self, episode: Episode) -> str | None:
        """Return the reason why an episode does not qualify, or ``None`` if it does."""
        if not episode.available:
            return f"the episode cannot be graded, because it ended with `{episode.end}`"
        if not any(message.role == "assistant" for message in episode.messages):
            return "the player wrote no text"
        if not episode.correct:
            return "the answer was wrong" if episode.end == "answered" else f"the episode ended with {episode.end!r}"
        if episode.tool_calls < self.min_calls:
            return f"the answer was right, but with fewer than {self.min_calls} calls"
        if self.clean and any(status.is_error for status in episode.statuses):
            return "the answer was right, but a call failed"
        return None


@dataclass(slots=True)
class ProblemTries:
    """Counts of the episodes of one problem so far.

    Attributes:
        counted: Number of available episodes (``Episode.available``); other episodes do not count.
        right: Number of available episodes that earned the full reward.
        kept: Indices, in the plan of all episodes (``Episode.group``), of the episodes that qualify as traces.
    """

    counted: int = 0
    right: int = 0
    kept: list[int] = field(default_factory=list)
    _texts: set[tuple[str, ...]] = field(default_factory=set)

    @property
    def success_rate(self) -> float:
        """Share of the counted episodes that were right; 0 without any."""
        return self.right / self.counted if self.counted else 0.0

    @property
    def level(self) -> str:
        """Difficulty of the problem for the player: ``easy``, ``medium`` or ``hard``; empty if no episode counts."""
        return level_of(self.success_rate) if self.counted else ""

    def add(self, episode: Episode, selection: TraceSelection) -> str | None:
        """Count an episode; return the reason why it does not qualify, or ``None`` if it does.

        An episode that repeats the turns of a qualifying episode of the same problem does not qualify.
        """
        self.counted += episode.available
        self.right += episode.available and episode.correct
        if (objection := selection.objection(episode)) is not None:
            return objection
        texts = tuple(message.content for message in episode.messages if message.role == "assistant")
        if texts in self._texts:
            return "the answer was right, but another episode has the same turns"
        self._texts.add(texts)
        self.kept.append(episode.group)
        return None


def played_trace(episode: Episode, index: int, tries: ProblemTries) -> Trace:
    """Return the trace of a qualifying episode: its conversation up to the policy's last turn.

    Args:
        episode: The episode.
        index: Number of the trace, from 0.
        tries: The tries of its problem.
    """
    messages: list[Message] = list(episode.messages)
    while messages[-1].role != "assistant":  # no turn replies to the last observation
        messages.pop()
    return Trace(
        index=index,
        problem_id=episode.problem_id,
        messages=tuple(messages),
        reward=episode.reward,
        end=episode.end,
        statuses=tuple(episode.statuses),
        answer_tags=episode.answer_tags,
        call_mistake=None,
        wrong=False,
        format_mistake=None,
        source="played",
        success_rate=tries.success_rate,
        level=tries.level,
    )


def most_traces(counts: Mapping[str, int], shares: Mapping[str, float]) -> dict[str, int]:
    """Return the number of traces of each level to keep, by the formula in the module's docstring.

    Args:
        counts: Number of traces of each level.
        shares: Largest share of each level; a level that is missing has no limit.
    """
    total = sum(counts.values())
    while True:
        # The small number covers rounding: 0.29 * 100 must give 29.
        kept = {name: min(count, math.floor(shares.get(name, 1.0) * total + 1e-9)) for name, count in counts.items()}
        if sum(kept.values()) == total:
            return kept
        total = sum(kept.values())


def balanced(levels: Sequence[str], shares: Mapping[str, float], seed: int) -> list[int]:
    """Choose traces so that no level exceeds its share; return the positions of the chosen traces, in order.

    Args:
        levels: The level of each trace.
        shares: Largest share of each level.
        seed: Seed of the choice within a level.
    """
    room = most_traces(Counter(levels), shares)
    kept = []
    for at in np.random.default_rng(seed).permutation(len(levels)):
        if room[levels[at]] > 0:
            room[levels[at]] -= 1
            kept.append(int(at))
    return sorted(kept)
