"""``AskedTurns``: the turns of one episode as the player asks for them, in the manner in which it is played."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rstar2_env.core.manner import Manner
from rstar2_env.core.turn import Turn
from rstar2_env.rollout.engine import Generation, SamplingParams, Seat
from rstar2_env.rollout.replay import Replay
from rstar2_env.rollout.turn_entropy import turn_entropy
from rstar2_env.rollout.two_policies import TwoPolicies


class AskedTurns:
    """Asks for turns: of the episode that is replayed while there are some, of the engine afterwards.

    Args:
        seat: Where turns are generated.
        manner: How the episode is played.
        replay: What it shares with another; ``None`` for nothing.
        two: The seat below, where it has two policies.

    Attributes:
        cut: Whether the last turn was cut because the chunk was full.
        chunk_ended: Whether no further turn may be asked for.
    """

    def __init__(self, seat: Seat, manner: Manner, replay: Replay | None, two: TwoPolicies | None) -> None:
        self._seat = seat if replay is None else replay.around(seat)
        self._manner, self._replay, self._two = manner, replay, two
        self._shared: Turn | None = None
        self.cut = self.chunk_ended = False

    async def generate(self, ids: Sequence[int], params: SamplingParams) -> Generation:
        """The next turn.

        Args:
            ids: All tokens so far.
            params: How to sample; the chunk and what is measured are added.
        """
        given, whole = (0, False) if self._replay is None else self._replay.next_given()
        self._shared = None if self._replay is None or not given else self._replay.next_turn()
        most = params.max_tokens
        if self._manner.chunk is not None and not whole:
            most = min(most, given + self._manner.chunk)
            self.chunk_ended = True
        if self._manner.candidates:
            measured = self._manner.measured_tokens
            params = replace(params, candidates=self._manner.candidates, measured_tokens=measured)
        asked = params if most == params.max_tokens else replace(params, max_tokens=most)
        generation = await self._seat.generate(ids, asked)
        full = generation.finish_reason == "length" and len(generation.ids) >= most
        self.cut = not whole and full and most < params.max_tokens
        return generation

    def measure(self, turn: Turn, generation: Generation, vocabulary: int) -> None:
        """Write into a turn what is known of how it was drawn; a turn that begins as another has what that one had.

        Args:
            turn: The turn.
            generation: What was generated for it.
            vocabulary: Number of tokens that there are.
        """
        if self._shared is not None:
            turn.entropy, turn.stale = self._shared.entropy, self._shared.stale
            return
        turn.entropy = turn_entropy(generation, vocabulary)
        turn.stale = self._two is not None and self._two.was_stale
