"""``Replay``: starts an episode with the first tokens of another episode, and then continues it differently.

The tokens that both episodes share end within a turn of the policy, or at the end of an unfinished episode. The shared
turns are sent to the environment again instead of being generated. An environment that is deterministic for its seed
and actions, as its contract requires, reaches the same state. This is checked before anything new is generated: the
policy must see the same ids.
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
    """Source of an episode's turns that first returns turns of another episode, then turns that an engine generates.

    Args:
        parent: The other episode, played with the same chat template.
        token: Number of tokens of ``parent.completion_ids`` to share; ``None`` shares all turns. All tokens of an
            unfinished episode (``Episode.end`` is ``OPEN``) can be shared.

    Raises:
        BranchError: The parent has no policy turn at that token.
    """

    def __init__(self, parent: Episode, token: int | None) -> None:
        self._parent, self._turn = parent, 0
        turns = parent.steps
        self._shared, self._prefix = len(turns), -1
        if token is None:
            return
        if turns and parent.end == OPEN and token == len(parent.completion_ids):
            # The parent was cut within its last turn, or stopped after the environment had answered it.
            self._shared, self._prefix = len(turns) - (turns[-1].stop == token), token
            return
        # The end of a turn is followed by the environment's answer, and then by the start of the next turn.
        self._shared = next((number for number, turn in enumerate(turns) if token < turn.stop), len(turns))
        after = turns[self._shared].start if self._shared < len(turns) else -1
        ends = {turn.stop for turn in turns[: self._shared]}
        if not parent.prompt_ids or after < 0 or (token < after and token not in ends):
            spans = ", ".join(f"{turn.start} to {turn.stop}" for turn in turns) or "none"
            raise BranchError(
                f"An episode cannot be branched at token {token}: expected a token within a turn of the "
                f"policy (turns: {spans}), and before the end of the last turn."
            )
        self._prefix = max(token, after)

    @property
    def over(self) -> bool:
        """Whether all turns that are shared with the parent episode were returned."""
        return self._turn >= self._shared + (self._prefix >= 0)

    def next_turn(self) -> Turn:
        """Return the parent episode's turn that is replayed next, completely or in part."""
        return self._parent.steps[self._turn]

    def next_given(self) -> tuple[int, bool]:
        """Return how many tokens of the next turn are replayed, and whether they are the whole turn."""
        if self.over:
            return 0, False
        if self._turn < self._shared:
            return self._parent.steps[self._turn].tokens, True
        return self._prefix - self._start, False

    @property
    def _start(self) -> int:
        """Position of the next turn in the parent's completion; after the last turn, the number of shared tokens."""
        turns = self._parent.steps
        return turns[self._turn].start if self._turn < len(turns) else self._prefix

    async def generate(self, seat: Seat, ids: Sequence[int], params: SamplingParams) -> Generation:
        """Return the next turn: first the shared turns, then turns that ``seat`` generates.

        If only the beginning of a turn is shared, ``seat`` continues that turn.

        Raises:
            BranchError: ``ids`` differ from the ids that the policy saw in the parent.
        """
        if self.over:
            return await seat.generate(ids, params)
        parent, start = self._parent, self._start
        if list(ids) != parent.played_ids + parent.completion_ids[:start]:
            raise BranchError(
                f"The text before turn {self._turn + 1} of an episode changed when the episode was "
                "replayed. Branch episodes only in environments whose observations depend only on the "
                "seed and the actions, and whose tools do not print times or addresses."
            )
        whole = self._turn < self._shared
        stop = parent.steps[self._turn].stop if whole else self._prefix
        given, logprobs = parent.completion_ids[start:stop], parent.logprobs[start:stop]
        self._turn += 1
        if whole:
            return Generation(given, logprobs, "stop", parent.steps[self._turn - 1].version)
        rest = await seat.generate([*ids, *given], replace(params, max_tokens=max(1, params.max_tokens - len(given))))
        return replace(rest, ids=given + rest.ids, logprobs=logprobs + rest.logprobs)
