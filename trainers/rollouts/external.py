"""``external``: adds demonstrations to each group, as episodes of an expert (RL-PLUS, LUFFY).

The policy plays n - ``count`` of the n episodes of a group; the others are demonstrations of the same problem, played
turn by turn through the same environment, which grades them like any other episode. Their rows have 1 in the column
``off_policy``, and their tokens have no log-probabilities from an engine. If a problem has no demonstration, or the
demonstration does not end the episode, the policy plays one more episode. With ``only_compared`` the policy plays all n
episodes, and the demonstrations are further rows with the advantage 0 (CARFT).
"""

# This module is longer than most parts because it also reads the demonstrations and finds those of a problem.

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from rstar2_env.core.episode import Episode
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.declare import CheckedOptions, option

from ..samplers.base import Start
from .base import ROLLOUTS, Play, Rollout, at_once


@dataclass
class External(CheckedOptions, Rollout):
    """Adds demonstrations to the sampled episodes of each group (RL-PLUS, arXiv 2508.00222).

    Demonstrations are found by the problem's id in a file of traces as ``rstar2 traces`` writes it, or in a field of
    ``Problem.meta``: the text of one turn, or a list of turns. The answers in demonstrations must have the
    environment's format. Use this part with a loss that weights such rows (``rl_plus`` or ``shaped_offpolicy``) and
    with the advantage ``policy_baseline``.

    Args:
        file: A file of traces (JSON lines with ``problem_id`` and ``messages``). Several traces of one problem are used
            one after the other.
        field: The field of ``Problem.meta`` that holds the demonstration of a problem that is not in the file.
        count: Number of demonstrations in each group; the paper uses 1 in a group of 8.
        only_compared: Add the demonstrations to the $n$ episodes of the policy as rows with the advantage 0. The
            selector and the advantage estimator do not see these rows; they are for a loss that compares rows with
            demonstrations (``carft``).
    """

    staged: ClassVar[str] = "the first episode determines the problem whose demonstration is looked up"
    file: str | None = None
    field: str = "demonstration"
    count: int = option(1, least=1)
    only_compared: bool = False

    def __post_init__(self) -> None:
        """Read the file.

        Raises:
            ConfigurationError: The file cannot be read, or a line is not a trace.
        """
        super().__post_init__()
        self._traces  # noqa: B018 - so that an invalid file is an error before anything is played

    async def group(self, start: Start, number: int, size: int, play: Play) -> list[Episode]:
        """Return the episodes of one group; see ``Rollout``."""
        own = size if self.only_compared else size - self.count
        if own < 1:
            raise ConfigurationError(
                f"The rollout part 'external' adds {self.count} demonstrations to each group, so group_size "
                f"must be at least {self.count + 1}; got {size}."
            )
        sampled = await at_once(play.episode(start, group=number, member=member) for member in range(own))
        problem_id = start.problem_id or next((one.problem_id for one in sampled if one.problem_id), "")
        known = self._demonstrations(problem_id, play)

        async def joined(at: int) -> Episode | None:
            if known:
                turns = known[(play.step + at) % len(known)]
                given = await play.given(start, turns, group=number, member=own + at)
                if given.available:
                    return given
            if self.only_compared:
                return None
            return await play.episode(start, group=number, member=size + at)

        return [*sampled, *filter(None, await at_once(map(joined, range(self.count))))]

    def apart(self, group: Sequence[Episode]) -> list[int]:
        """Return the positions of episodes that are trained on with the advantage 0; see ``Rollout``."""
        if not self.only_compared:
            return []
        return [position for position, episode in enumerate(group) if episode.source == "expert"]

    def _demonstrations(self, problem_id: str, play: Play) -> list[list[str]]:
        """Return the demonstrations of a problem, as lists of turns."""
        if problem_id in self._traces:
            return self._traces[problem_id]
        problem = play.problem(problem_id)
        written: Any = None if problem is None else problem.meta.get(self.field)
        turns = [written] if isinstance(written, str) else list(written or ())
        return [[str(turn) for turn in turns]] if turns else []

    @cached_property
    def _traces(self) -> dict[str, list[list[str]]]:
        found: dict[str, list[list[str]]] = {}
        try:
            lines = Path(self.file).read_text(encoding="utf-8").splitlines() if self.file else []
            for line in filter(str.strip, lines):
                trace = json.loads(line)
                turns = [one["content"] for one in trace["messages"] if one["role"] == "assistant"]
                found.setdefault(str(trace["problem_id"]), []).append(turns)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ConfigurationError(
                f"{self.file!r} is not a file of traces ({type(error).__name__}: {error}). Each line must "
                "be a JSON object with problem_id and messages, as `rstar2 traces` writes it.",
                option="parts.rollout.file",
            ) from error
        return found


ROLLOUTS.register("external", External)
