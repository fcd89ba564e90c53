"""``Replay``: begin an episode as another one did, and go on from any token of the policy's, or from its end.

The turns before that token are given to the environment again instead of being generated, so the environment comes to
the same place if it is deterministic for its seed and actions, as its contract says. That it did is checked before
anything new is generated: what the policy is shown must be the same ids.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rstar2_env.core.episode import Episode
from rstar2_env.core.errors import BranchError
from rstar2_env.core.manner import OPEN
from rstar2_env.core.turn import Turn
from rstar2_env.rollout.engine import Generation, SamplingParams, Seat


class Replay:
    """Stands between an episode and its seat in the engine: gives the turns of another one, then the engine's.

    Args:
        parent: The other episode, played with the same chat template.
        token: Number of tokens of ``parent.completion_ids`` to share; ``None`` shares all turns, the last one too. All
            of them can be shared of an episode that was left ``OPEN``.

    Raises:
        BranchError: The parent has no turn of the policy there.
    """

    def __init__(self, parent: Episode, token: int | None) -> None:
        self._parent, self._turn = parent, 0
        turns = parent.steps
        self._shared, self._prefix = len(turns), -1
        if token is None:
            return
        if turns and parent.end == OPEN and token == len(parent.completion_ids):
            # Cut in the middle of its last turn, or left off after the environment had answered it.
            self._shared, self._prefix = len(turns) - (turns[-1].stop == token), token
            return
        # At the end of a turn stands what the environment answered, which leads to the beginning of the next.
        self._shared = next((number for number, turn in enumerate(turns) if token < turn.stop), len(turns))
        after = turns[self._shared].start if self._shared < len(turns) else -1
        ends = {turn.stop for turn in turns[: self._shared]}
        if not parent.prompt_ids or after < 0 or (token < after and token not in ends):
            spans = ", ".join(f"{turn.start} to {turn.stop}" for turn in turns) or "none"
            raise BranchError(
                f"An episode cannot be branched at token {token}: expected one within a turn of the policy "
                f"(its turns: {spans}), not at the end of the last."
            )
        self._prefix = max(token, after)

    @property
    def over(self) -> bool:
        """Whether all shared turns have been given."""
        return self._turn >= self._shared + (self._prefix >= 0)

    def next_turn(self) -> Turn:
        """The turn of the parent that is given next, whole or in part."""
        return self._parent.steps[self._turn]

    def next_given(self) -> tuple[int, bool]:
        """How many tokens are given of the next turn, and whether that is all of it."""
        if self.over:
            return 0, False
        if self._turn < self._shared:
            return self._parent.steps[self._turn].tokens, True
        return self._prefix - self._start, False

    @property
    def _start(self) -> int:
        """Where the next turn begins; after the last one, where the shared tokens end."""
        turns = self._parent.steps
        return turns[self._turn].start if self._turn < len(turns) else self._prefix

    def around(self, seat: Seat) -> Seat:
        """A seat that gives the shared turns, and then those of ``seat``."""
        return _ReplaySeat(self, seat)

    async def turn(self, seat: Seat, ids: Sequence[int], params: SamplingParams) -> Generation:
        """The next turn.

        Raises:
            BranchError: What the policy is shown differs from what it was shown in the parent.
        """
        if self.over:
            return await seat.generate(ids, params)
        parent, start = self._parent, self._start
        if list(ids) != parent.played_ids + parent.completion_ids[:start]:
            raise BranchError(
                f"The replay of an episode shows something else before turn {self._turn + 1} than the episode did; "
                "branch only in environments that are deterministic for their seed and actions, whose tools print no "
                "clocks or addresses."
            )
        whole = self._turn < self._shared
        stop = parent.steps[self._turn].stop if whole else self._prefix
        given, logprobs = parent.completion_ids[start:stop], parent.logprobs[start:stop]
        self._turn += 1
        if whole:
            return Generation(given, logprobs, "stop", parent.steps[self._turn - 1].version)
        rest = await seat.generate([*ids, *given], replace(params, max_tokens=max(1, params.max_tokens - len(given))))
        return replace(rest, ids=given + rest.ids, logprobs=logprobs + rest.logprobs)


class _ReplaySeat:
    def __init__(self, replay: Replay, seat: Seat) -> None:
        self._replay, self._seat = replay, seat

    async def generate(self, ids: Sequence[int], params: SamplingParams) -> Generation:
        """See ``Seat``."""
        return await self._replay.turn(self._seat, ids, params)
