"""``PolicyMeasurer``: computes probabilities of the policy for advantages that need more than rewards.

The measurer uses the trainer's own forward passes and micro-batches, so it works with any engine. It measures the
episodes that will be trained on, at the sampling temperature. Not covered: problem sources that cannot look up a gold
answer by the problem's id.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import takewhile
from typing import Any

import numpy as np

from rstar2_env.core.episode import Episode
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.row import Row

from ....advantages.base import Advantage
from ..trainer import CollectorTrainer
from .forward import score
from .micro_batches import completion_values

Encode = Callable[[str], "list[int]"]


class PolicyMeasurer:
    """Computes the measurements of the policy for a collector; see ``Measure``.

    Args:
        trainer: Runs the forward passes.
        encode: Converts text to token ids, without special tokens.
        answer: Returns the gold answer of a problem by its id; the argument may be ``None`` if no advantage estimator
            needs answers.
        temperature: Returns the current sampling temperature.
        prepare: Called before the passes; frees the memory of an engine.

    Attributes:
        call_in: Calls a function in the training thread; must be set if episodes are collected in another thread.
    """

    def __init__(
        self,
        trainer: CollectorTrainer,
        *,
        encode: Encode,
        answer: Callable[[str], str] | None,
        temperature: Callable[[], float],
        prepare: Callable[[], object] = lambda: None,
    ) -> None:
        self._trainer, self._encode, self._answer = trainer, encode, answer
        self._temperature, self._prepare = temperature, prepare
        self.call_in: Callable[[Callable[[], None]], None] = lambda work: work()

    def __call__(self, part: Advantage, groups: Sequence[Sequence[Episode]]) -> None:
        """Store the measurements that an advantage estimator needs in ``Episode.measured``; see ``Measure``."""
        self.call_in(lambda: self._measure(part, groups))

    def _measure(self, part: Advantage, groups: Sequence[Sequence[Episode]]) -> None:
        needs: frozenset[str] = frozenset(getattr(part, "needs", ()))
        if unknown := needs - {"sum_squares", "answer"}:
            raise ConfigurationError(
                f"The advantage {type(part).__name__} lists {', '.join(sorted(map(repr, unknown)))} in "
                "`needs`, which no trainer can measure; the possible values are 'sum_squares' and 'answer'."
            )
        episodes = [episode for group in groups for episode in group]
        self._prepare()
        if "sum_squares" in needs:
            self._sum_squares(episodes)
        if "answer" in needs:
            self._answers(episodes, str(getattr(part, "lead", "")))

    def _sum_squares(self, episodes: Sequence[Episode]) -> None:
        trainer, rows = self._trainer, [Row.of(episode, 1.0) for episode in episodes]
        trainer.use_head(self._temperature(), "sum_squares")
        try:
            looked = trainer.score_rows(rows, lambda model, batch: score(model, batch, trainer.autocast).sum_squares)
        finally:
            trainer.use_head(self._temperature())
        for batch, squares in looked:
            assert squares is not None  # the head computes it now
            for place, own in zip(batch.rows, completion_values(squares, batch, rows), strict=True):
                episodes[place].measured["sum_squares"] = own.tolist()

    def _answers(self, episodes: Sequence[Episode], lead: str) -> None:
        assert self._answer is not None  # an advantage needs it
        rows, whose = [], []
        for episode in episodes:
            episode.measured["answer"] = [0.0] * len(episode.steps)
            before, gold = self._split(lead, self._answer(episode.problem_id))
            for number, turn in enumerate(episode.steps):
                history = [*episode.prompt_ids, *episode.completion_ids[: turn.start], *before]
                rows.append(_given(history, gold))
                whose.append((episode, number))
        trainer = self._trainer
        for batch, logp in trainer.score_rows(rows, lambda model, batch: score(model, batch, trainer.autocast).logp):
            for place, own in zip(batch.rows, completion_values(logp, batch, rows), strict=True):
                episode, number = whose[place]
                episode.measured["answer"][number] = float(np.exp(own.mean()))

    def _split(self, lead: str, answer: str) -> tuple[list[int], list[int]]:
        """Return the token ids of ``lead`` and of the answer after it; a token that spans both is in the answer."""
        alone, whole = self._encode(lead), self._encode(lead + answer)
        shared = len(list(takewhile(lambda pair: pair[0] == pair[1], zip(alone, whole, strict=False))))
        return whole[:shared], whole[shared:]


def _given(prompt: list[int], ids: list[int]) -> Row:
    """Return a row with this prompt and completion. Its advantage is 1, since rows with advantage 0 are skipped."""
    zeros: list[Any] = [0.0] * len(ids)
    return Row(Episode(), prompt, ids, [1] * len(ids), zeros, advantage=1.0)
