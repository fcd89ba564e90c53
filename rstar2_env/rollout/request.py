"""``EpisodeRequest``, ``Budget``, and the error that a player raises when too many episodes failed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rstar2_env.core.episode import Episode
from rstar2_env.core.errors import Rstar2Error
from rstar2_env.core.manner import PLAIN, Manner
from rstar2_env.core.options.declare import check_options, option

QUESTION = "{question}"
"""Placeholder for the user's message in a text that is shown in place of that message."""


class RolloutError(Rstar2Error, RuntimeError):
    """More episodes of a batch ended ``unavailable`` than ``max_failed`` allows.

    Attributes:
        episodes: All episodes of the batch; a failed episode has its traceback in ``error``.
    """

    def __init__(self, episodes: Sequence[Episode]) -> None:
        self.episodes = list(episodes)
        failed = [episode for episode in episodes if episode.failed]
        causes = (episode.error for episode in failed if episode.error)
        cause = next(causes, "the tool or the grader did not answer")
        super().__init__(f"{len(failed)} of {len(episodes)} episodes ended with `unavailable`, for example:\n{cause}")


@dataclass(frozen=True, slots=True)
class EpisodeRequest:
    """A request to play one episode.

    Attributes:
        group: Number of the episode's group.
        seed: Seed of the environment's ``reset``, the same for a whole group; ``None`` leaves it to the environment.
        options: Options of ``reset``.
        sampling_seed: Seeds the policy's draws; different for each episode of a group. ``None`` leaves the seed to the
            engine.
        shown: Text shown to the policy in place of the user's message; its first ``{question}`` is replaced by that
            message. Training still uses the message itself. ``None`` shows the message.
        manner: How the episode is played.
    """

    group: int = 0
    seed: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    sampling_seed: int | None = None
    shown: str | None = None
    manner: Manner = PLAIN


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits of one episode, in addition to the environment's own budgets.

    Attributes:
        tokens: Maximum number of tokens after the prompt, the policy's and the environment's together.
        turn_tokens: Maximum number of tokens of one turn; ``None`` means the rest of ``tokens``.
        turns: Maximum number of turns, for environments without a budget of turns.
        wall_s: Wall-clock seconds from ``reset``, without the wait for room in the engine; ``None`` for no limit.
            Its effect depends on the machine's load, so a run with this limit is not exactly reproducible.
    """

    tokens: int = option(4096, least=1)
    turn_tokens: int | None = option(None, least=1)
    turns: int = option(256, least=1)
    wall_s: float | None = option(None, above=0, unit="seconds")

    def __post_init__(self) -> None:
        """Check that every limit is positive.

        Raises:
            ConfigurationError: A limit is not positive.
        """
        check_options(self, "Budget.")
