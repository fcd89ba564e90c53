"""Negotiations about a pool of items that two sides value differently, against an opponent that concedes.

Modelled on the negotiation of GAMEBoT (arXiv 2412.13602). A deal is the number of items of each kind that the policy
takes. Not covered: more than two sides, and items other than books, hats and balls.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from rstar2_env.worlds.game import IllegalMoveError, draw

TOTAL = 30
"""Value of the whole pool to each side."""

_KINDS = ("books", "hats", "balls")
_GOOD = 0.8

Deal = tuple[int, ...]


@dataclass(slots=True)
class Negotiation:
    """One negotiation. A deal is the number of items of each kind that the policy takes.

    Attributes:
        counts: Number of items of each kind in the pool.
        mine: Value of one item of each kind to the policy.
        theirs: Value of one item of each kind to the opponent.
        demands: For each round, the lowest value (to the opponent) at which the opponent accepts a deal.
        seed: Seed of the opponent's offers.
        reveal: Whether the policy knows the opponent's values.
        round: 0-based number of the round.
        offer: The deal that the opponent offered last; ``None`` before the first offer.
        score: Value of the agreed deal to the policy, as a fraction of the highest value among all deals that this
            opponent would ever accept, at most 1; 0 without agreement; ``None`` while the negotiation is in progress.
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
        """Whether ``score`` is at least 0.8."""
        return self.score is not None and self.score >= _GOOD

    def position(self) -> str:
        """The round, the pool, the values and the last offer, as text for the policy."""
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
        """Read a move from the policy's text.

        Raises:
            IllegalMoveError: The text is not a move, or the deal is not possible.
        """
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
        """The value of the deal ``move`` to the policy and, if ``reveal`` is true, its value to the opponent."""
        values = [_value(self.mine, move)] + ([self._rest(move)] if self.reveal else [])
        return tuple(frozenset({str(value)}) for value in values)

    def play(self, move: Deal) -> str:
        """Propose a deal or accept the offer; return a description of the opponent's reply."""
        if move == self.offer or self._rest(move) >= self.demands[self.round]:
            self.score = min(1.0, _value(self.mine, move) / _value(self.mine, self._most()))
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
        """The move that proposes the best deal for the policy among all deals that the opponent will ever accept."""
        return ", ".join(map(str, self._most()))

    def guess(self, rng: np.random.Generator) -> str:
        """Return a random proposal that the rules allow."""
        return ", ".join(str(int(rng.integers(count + 1))) for count in self.counts)

    def _deals(self) -> list[Deal]:
        return list(product(*(range(count + 1) for count in self.counts)))

    def _rest(self, deal: Deal) -> int:
        return TOTAL - _value(self.theirs, deal)

    def _most(self) -> Deal:
        """Return the best deal for the policy among all deals that the opponent will ever accept."""
        deals = [deal for deal in self._deals() if self._rest(deal) >= min(self.demands)]
        return max(deals, key=lambda deal: (_value(self.mine, deal), self._rest(deal), deal))


def negotiation(seed: int, rounds: int, reveal: bool) -> Negotiation:
    """Return the negotiation with this seed: 8 to 12 items, whose values add up to 30 for each side.

    Args:
        seed: Seed of the pool, the values and the opponent.
        rounds: Number of rounds in which an agreement may be found.
        reveal: Whether the policy knows the opponent's values.
    """
    rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed)))
    while True:
        counts = tuple(int(count) for count in rng.integers(1, 7, size=len(_KINDS)))
        if not 8 <= sum(counts) <= 12:
            continue
        values = [tuple(v) for v in product(range(11), repeat=len(_KINDS)) if _value(counts, v) == TOTAL]
        if len(values) >= 2:
            break
    mine, theirs = (values[int(index)] for index in rng.choice(len(values), size=2, replace=False))
    first, last = int(rng.integers(18, 23)), int(rng.integers(8, 15))
    steps = np.linspace(first, last, rounds) if rounds > 1 else [last]
    demands = tuple(round(step) for step in steps)
    return Negotiation(counts, mine, theirs, demands, seed, reveal)


def _value(values: Deal, deal: Deal) -> int:
    return sum(value * taken for value, taken in zip(values, deal, strict=True))


def _listed(numbers: Deal) -> str:
    return ", ".join(f"{number} {kind}" for number, kind in zip(numbers, _KINDS, strict=True))
