"""``rstar2/Negotiate-v0``: share a pool of items with a scripted opponent (after GAMEBoT, F30)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import gymnasium as gym
import numpy as np

from rstar2_env.errors import ConfigurationError
from rstar2_env.tools import Tool
from rstar2_env.vector_env import vector_entry_point

from ._game import GameEnv, IllegalMoveError, draw

_TOTAL = 30
_KINDS = ("books", "hats", "balls")
_GOOD = 0.8

_RULES = """\
A negotiation. You and an opponent share a pool of books, hats and balls. Each of you values the items in one's own \
way, and the whole pool is worth 30 to each. In every round you propose what you take, and the opponent gets the rest; \
it accepts, or refuses and makes an offer of its own, which you may accept in the next round. The longer it lasts, the \
less the opponent insists on. Without an agreement after round {rounds} nobody gets anything. Get as much value as \
you can.
In every turn, before your move, give the value of the deal that your move would make, each on a line of its own:
[Intermediate Thinking Results 1: its value to you]
{second}Then give your move: three numbers, how many books, hats and balls you take, such as 1, 0, 2; or the word \
accept, to take the opponent's last offer."""

_SECOND = "[Intermediate Thinking Results 2: its value to the opponent]\n"

Deal = tuple[int, ...]


@dataclass(slots=True)
class Negotiation:
    """One negotiation. A deal is how many of each kind the policy takes.

    Attributes:
        counts: Items of each kind in the pool.
        mine: Value of one item of each kind to the policy.
        theirs: Value of one item of each kind to the opponent.
        demands: Least value that the opponent accepts in each round.
        seed: Of the opponent's offers.
        reveal: Whether the policy knows the opponent's values.
        round: 0-based number of the round.
        offer: The deal that the opponent offered last.
        score: Value of the deal to the policy, over the most that this opponent would ever have left it.
    """

    counts: Deal
    mine: Deal
    theirs: Deal
    demands: tuple[int, ...]
    seed: int
    reveal: bool
    round: int = 0
    offer: Deal | None = None
    score: float | None = None

    @property
    def won(self) -> bool:
        """Whether the deal is worth at least 80 % of the most that could be had."""
        return self.score is not None and self.score >= _GOOD

    def position(self) -> str:
        """The round, the pool, the values and the last offer."""
        lines = [
            f"Round {self.round + 1} of {len(self.demands)}.",
            f"The pool: {_listed(self.counts)}.",
            f"Value of one item to you: {_listed(self.mine)}.",
        ]
        if self.reveal:
            lines.append(f"Value of one item to the opponent: {_listed(self.theirs)}.")
        if self.offer is not None:
            lines.append(f"The opponent's offer: you take {', '.join(map(str, self.offer))}.")
        return "\n".join(lines)

    def read(self, move: str) -> Deal:
        """The deal that a move means."""
        if move.strip().lower() == "accept":
            if self.offer is None:
                raise IllegalMoveError("illegal", "There is no offer yet that you could accept.")
            return self.offer
        words = move.replace(",", " ").split()
        if len(words) != len(_KINDS) or not all(w.isascii() and w.isdigit() and len(w) <= 3 for w in words):
            raise IllegalMoveError("unparsable", "Your move is neither three numbers nor the word accept.")
        deal = tuple(map(int, words))
        if any(taken > count for taken, count in zip(deal, self.counts, strict=True)):
            raise IllegalMoveError("illegal", f"You cannot take {move.strip()}: the pool is {_listed(self.counts)}.")
        return deal

    def truths(self, move: Deal) -> tuple[frozenset[str], ...]:
        """The value of the deal to the policy, and to the opponent where its values are known."""
        values = [_value(self.mine, move)] + ([self._rest(move)] if self.reveal else [])
        return tuple(frozenset({str(value)}) for value in values)

    def play(self, move: Deal) -> str:
        """Propose a deal, or accept the offer, which the opponent stands by."""
        if move == self.offer or self._rest(move) >= self.demands[self.round]:
            self.score = min(1.0, _value(self.mine, move) / self._most())
            return "The opponent agrees."
        deals = [deal for deal in self._deals() if self._rest(deal) >= self.demands[self.round]]
        least = min(map(self._rest, deals))
        near = [deal for deal in deals if self._rest(deal) <= least + 2]
        self.offer = near[int(draw(self.seed, "offers", self.round) * len(near))]
        self.round += 1
        if self.round == len(self.demands):
            self.score = 0.0
        return "The opponent refuses."

    def best(self) -> str:
        """The deal that is worth most of all those that the opponent will ever accept."""
        deals = [deal for deal in self._deals() if self._rest(deal) >= min(self.demands)]
        most = max(deals, key=lambda deal: (_value(self.mine, deal), self._rest(deal), deal))
        return ", ".join(map(str, most))

    def _deals(self) -> list[Deal]:
        return list(product(*(range(count + 1) for count in self.counts)))

    def _rest(self, deal: Deal) -> int:
        return _TOTAL - _value(self.theirs, deal)

    def _most(self) -> int:
        return max(_value(self.mine, deal) for deal in self._deals() if self._rest(deal) >= min(self.demands))


@dataclass(frozen=True, slots=True)
class Negotiate:
    """The rules.

    Attributes:
        rounds: Rounds in which an agreement may be found.
        reveal: Whether the policy knows the opponent's values.
    """

    rounds: int = 5
    reveal: bool = True
    name = "negotiate"

    def __post_init__(self) -> None:
        """Refuse a negotiation without a round.

        Raises:
            ConfigurationError: ``rounds`` is not from 1 to 50.
        """
        if isinstance(self.rounds, bool) or not isinstance(self.rounds, int) or not 1 <= self.rounds <= 50:
            raise ConfigurationError(f"rounds must be an integer from 1 to 50, not {self.rounds!r}.")

    @property
    def rules(self) -> str:
        """The rules as the policy reads them."""
        return _RULES.format(rounds=self.rounds, second=_SECOND if self.reveal else "")

    def start(self, seed: int) -> Negotiation | None:
        """The negotiation of that seed: 8 to 12 items, worth 30 to each side."""
        rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed)))
        while True:
            counts = tuple(int(count) for count in rng.integers(1, 7, size=len(_KINDS)))
            if not 8 <= sum(counts) <= 12:
                continue
            values = [tuple(v) for v in product(range(11), repeat=len(_KINDS)) if _value(counts, v) == _TOTAL]
            if len(values) >= 2:
                break
        mine, theirs = (values[int(index)] for index in rng.choice(len(values), size=2, replace=False))
        first, last = int(rng.integers(18, 23)), int(rng.integers(8, 15))
        steps = np.linspace(first, last, self.rounds) if self.rounds > 1 else [last]
        demands = tuple(round(step) for step in steps)
        return Negotiation(counts, mine, theirs, demands, seed, self.reveal)


class NegotiateEnv(GameEnv):
    r"""Share a pool of books, hats and balls with an opponent who concedes a little in every round.

    ## Action space
    Any string: the policy's whole turn. The move is the dialect's answer: ``<answer>\boxed{1, 0, 2}</answer>``, how
    many of each kind the policy takes, or ``accept``. Intermediate answers stand in
    ``[Intermediate Thinking Results 1: ...]`` (value of the deal to the policy) and ``... 2: ...`` (to the opponent).

    ## Observation space
    Any string: the rules, pool and values; then the opponent's answer and offer.

    ## Reward
    At the end ``(1 - intermediate_weight) * outcome + intermediate_weight * F1``. The outcome is the value of the deal
    over the most that this opponent would have left to anyone, 0 without an agreement; F1 is that of the intermediate
    answers of the game, where a question that was not answered is a miss. ``correct``: an outcome of at least 0.8.

    ## Episode end
    ``terminated``: an agreement, or the last round is over (``answered``), or ``illegal_moves`` moves could not be
    played (``no_answer``). A turn with a legal move goes on. ``truncated``: ``turns``, ``tokens``, ``time`` or
    ``unavailable``.

    ## Information
    As in ``rstar2/TicTacToe-v0``.

    ## Difficulty
    ``rounds=5``, ``reveal=True``. A player who knows what the opponent will accept earns 1.0.

    ## Random baseline
    0.31: any proposal that the pool allows, no intermediate answers; 0.09 of them are ``correct``. Over 300 matches.

    ## Version history
    v0: the first.

    Args:
        rounds: Rounds in which an agreement may be found.
        reveal: Whether the policy knows the opponent's values; without it there is one intermediate question.
        split: "train", "validation" or "test"; no match is in two of them.
        tools: Tools that the policy may call on the way.
        illegal_moves: Moves that cannot be played after which the game is lost.
        intermediate_weight: Share of the reward that the intermediate answers decide.
        **options: What ``ToolEnv`` takes: ``max_turns``, ``dialect``, ...
    """

    random_baseline = 0.31

    def __init__(
        self,
        *,
        rounds: int = 5,
        reveal: bool = True,
        split: str = "train",
        tools: Sequence[Tool] = (),
        illegal_moves: int = 3,
        intermediate_weight: float = 0.2,
        **options: Any,
    ) -> None:
        super().__init__(
            Negotiate(rounds, reveal),
            defaults={"rounds": 5, "reveal": True},
            options={"rounds": rounds, "reveal": reveal},
            split=split,
            tools=tools,
            illegal_moves=illegal_moves,
            intermediate_weight=intermediate_weight,
            more={"max_turns": rounds + 5, **options},
        )


def _value(values: Deal, deal: Deal) -> int:
    return sum(value * taken for value, taken in zip(values, deal, strict=True))


def _listed(numbers: Deal) -> str:
    return ", ".join(f"{number} {kind}" for number, kind in zip(numbers, _KINDS, strict=True))


gym.register(
    "rstar2/Negotiate-v0",
    entry_point="rstar2_env.envs_registry.negotiate:NegotiateEnv",
    vector_entry_point=vector_entry_point("rstar2/Negotiate-v0"),
)
