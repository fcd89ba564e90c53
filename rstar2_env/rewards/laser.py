"""``laser``: a bonus for correct answers within a target length: LASER, LASER-D and LASER-DE (arXiv 2505.15612).

The score is ``correct`` (1) or ``wrong`` (-0.5), plus ``bonus`` (0.5) for a correct answer of at most L_T tokens.

- ``mode="fixed"`` (LASER): L_T is ``target``, 2048 to 8192 in the paper.
- ``mode="d"`` (LASER-D): L_T depends on the group's accuracy a, in three bands: easy (a >= 2/3), medium (a >= 1/3) and
  hard. For each band, L_T is the smallest length L of a grid (from ``lowest`` to ``limit`` in steps of ``step``) with
  int(c k) >= 1. Here c is the share of the band's monitored answers, correct or wrong, that have at most L tokens, and
  k is int(2n/3), int(n/3) and 1 for the three bands, in groups of n episodes. For n = 8 this requires a share c of 1/5,
  1/2 and 1. If no L of the grid satisfies the condition, L_T is the length of the longest monitored answer of all
  bands. If a band has no monitored answers, L_T is ``limit``. The targets are updated after the first collected batch,
  and then after every ``every`` batches.
- ``mode="de"`` (LASER-DE): in addition, a wrong answer longer than L_T without repetition gets the bonus, so that an
  attempt at a hard problem may continue.

The authors monitor 500 separate problems, which they replay for each update; here the latest ``monitor`` training
groups are monitored, which needs no further episodes. Before the first update, L_T is ``limit``.

The module implements all three rewards. Checkpoints contain the targets of LASER-D and LASER-DE.
"""

# This module is longer than most parts because it implements three published rewards.

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from rstar2_env.core.episode import Episode
from rstar2_env.core.options.declare import CheckedOptions, Count, option
from rstar2_env.core.options.rules import FromRun
from rstar2_env.rewards.base import REWARDS, GroupOutcome, Need, RewardContext
from rstar2_env.rewards.texts import need_tokens, repeated_share

BANDS = ("easy", "medium", "hard")
_PAPER_LIMIT = 16384


@dataclass
class Laser(CheckedOptions):
    """A bonus for correct answers within a target length: LASER, LASER-D and LASER-DE (arXiv 2505.15612).

    Attributes:
        mode: Choice of the target length: ``"fixed"`` uses ``target``; ``"d"`` (LASER-D) and ``"de"`` (LASER-DE) choose
            one for each difficulty.
        target: The target length with ``"fixed"``, in policy tokens.
        limit: Largest length in the grid of targets, in policy tokens; a trainer fills in ``max_episode_tokens``.
            Outside of a trainer, ``None`` means the paper's 16,384.
        lowest: Smallest length in the grid of targets.
        step: Difference between neighbouring lengths in the grid.
        every: Number of collected batches between two updates of the targets.
        monitor: Number of latest groups whose lengths determine the targets.
        bonus: Bonus for a correct answer within the target; with ``"de"``, also for a wrong answer that is longer than
            the target and not repetitive.
        correct: Score of a correct answer.
        wrong: Score of a wrong answer.
        ngram: Length of the n-grams that detect repetition, with ``"de"``.
        repeats: Share of repeated n-grams, 0 to 1, from which an answer counts as repetitive.
    """

    mode: Literal["fixed", "d", "de"] = "fixed"
    target: Count = 4096
    limit: Annotated[int | None, FromRun("rollout.max_episode_tokens")] = option(None, least=1)
    lowest: Count = 1024
    step: Count = 1024
    every: Count = 20
    monitor: Count = 500
    bonus: float = 0.5
    correct: float = 1.0
    wrong: float = -0.5
    ngram: Count = 20
    repeats: float = option(0.2, above=0, most=1)
    targets: dict[str, int] = field(default_factory=dict, init=False)
    _steps: int = field(default=0, init=False, repr=False)
    _seen: list[tuple[str, int, list[int]]] = field(default_factory=list, init=False, repr=False)

    @property
    def needs(self) -> frozenset[Need]:
        """The needed inputs: ``tokens``, and also ``group`` if the target depends on the group's accuracy."""
        return frozenset({"tokens"}) if self.mode == "fixed" else frozenset({"tokens", "group"})

    def __call__(self, episode: Episode, ctx: RewardContext) -> float:
        """Return ``correct`` or ``wrong``, plus ``bonus`` if it applies.

        Raises:
            ConfigurationError: The episode has no token ids.
        """
        need_tokens(episode, "laser")
        within = episode.policy_tokens <= self._target(ctx.group)
        if episode.correct:
            return self.correct + self.bonus * within
        explores = self.mode == "de" and not within and not self._repetitive(episode)
        return self.wrong + self.bonus * explores

    def observe(self, outcomes: Sequence[GroupOutcome]) -> None:
        """Record the lengths and successes of a collected batch; after ``every`` batches, update the target lengths."""
        if self.mode == "fixed":
            return
        for one in outcomes:
            if one.lengths:
                band = _band(one.successes / len(one.lengths))
                self._seen.append((band, len(one.lengths), list(one.lengths)))
        del self._seen[: -self.monitor]
        if self._steps % self.every == 0 and self._seen:
            self.targets = {band: self._smallest(band) for band in BANDS}
        self._steps += 1

    def state_dict(self) -> dict[str, Any]:
        """Return the state as JSON-compatible values; see ``Learns``."""
        return {"steps": self._steps, "targets": dict(self.targets), "seen": [list(one) for one in self._seen]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Load a state that ``state_dict`` returned; see ``Learns``."""
        self._steps, self.targets = state["steps"], dict(state["targets"])
        self._seen = [(band, n, list(lengths)) for band, n, lengths in state["seen"]]

    def _target(self, group: Sequence[Episode]) -> int:
        if self.mode == "fixed":
            return self.target
        accuracy = sum(one.correct for one in group) / max(len(group), 1)
        return self.targets.get(_band(accuracy), self.limit or _PAPER_LIMIT)

    def _smallest(self, band: str) -> int:
        """Compute the target length of a difficulty band ("easy", "medium" or "hard") from the latest groups."""
        limit = self.limit or _PAPER_LIMIT
        lengths = [length for name, _, each in self._seen if name == band for length in each]
        if not lengths:
            return limit
        size = max(n for _, n, _ in self._seen)
        expected = {"easy": int(2 * size / 3), "medium": int(size / 3), "hard": 1}[band]
        for length in range(self.lowest, limit + 1, self.step):
            # In integers: int(share * expected) >= 1 without rounding.
            if sum(one <= length for one in lengths) * max(expected, 1) >= len(lengths):
                return length
        return max(length for _, _, each in self._seen for length in each)

    def _repetitive(self, episode: Episode) -> bool:
        own = [token for token, mask in zip(episode.completion_ids, episode.mask, strict=True) if mask]
        return repeated_share(own, self.ngram) >= self.repeats


def _band(accuracy: float) -> str:
    return BANDS[0] if accuracy >= 2 / 3 else BANDS[1] if accuracy >= 1 / 3 else BANDS[2]


REWARDS.register("laser", Laser)
