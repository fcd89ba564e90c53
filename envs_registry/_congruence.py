"""The default task of ``rstar2/Bootcamp-v0``, in InternBootcamp's protocol: solve the congruence ``a x = b mod m``."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

_PROMPT = """\
Find a whole number x, at least 0 and less than {m}, such that {a} * x leaves the remainder {b} when divided by {m}. \
If several do, any of them is right. Give it in \\boxed{{}} between <answer> and </answer>."""


class Congruence:
    """A linear congruence that has a solution.

    Args:
        largest: Largest modulus, at least 2.
    """

    def __init__(self, largest: int = 100) -> None:
        if largest < 2:
            raise ValueError(f"`largest` must be at least 2, not {largest}.")
        self._largest = largest

    def case_generator(self, seed: int) -> dict[str, int]:
        """Return the instance that a seed generates."""
        rng = random.Random(seed)
        m = rng.randint(2, self._largest)
        a, x = rng.randrange(1, m), rng.randrange(m)
        return {"a": a, "b": a * x % m, "m": m}

    def prompt_func(self, identity: Mapping[str, Any]) -> str:
        """Return the prompt of an instance."""
        return _PROMPT.format(**identity)

    def reference(self, identity: Mapping[str, Any]) -> str:
        """Return a right answer; not part of InternBootcamp's protocol, but useful for tests."""
        return str(next(x for x in range(identity["m"]) if self.verify(x, identity)))

    @staticmethod
    def guess(identity: Mapping[str, Any], seed: int) -> str:
        """Return a random number below the modulus, for the random baseline; not part of InternBootcamp's protocol."""
        return str(random.Random(seed).randrange(identity["m"]))

    @staticmethod
    def extract_output(text: str) -> int | None:
        """Return the whole number in the last LaTeX box of the text, or ``None``."""
        from rstar2_env.verification import last_boxed

        box = (last_boxed(text) or "").strip()
        return int(box) if box.isascii() and box.isdigit() and len(box) <= 12 else None

    @staticmethod
    def verify(answer: int | None, identity: Mapping[str, Any]) -> bool:
        """Return whether the answer solves the congruence."""
        if answer is None or not 0 <= answer < identity["m"]:
            return False
        return bool(identity["a"] * answer % identity["m"] == identity["b"])

    def verify_score(self, text: str, identity: Mapping[str, Any], format_score: float = 0.0) -> float:
        """Score a turn: 1 for a solution, ``format_score`` for another number, 0 without a number.

        Args:
            text: The policy's whole turn.
            identity: The instance, as ``case_generator`` returned it.
            format_score: Score of a number that is not a solution.
        """
        answer = self.extract_output(text)
        if answer is None:
            return 0.0
        return 1.0 if self.verify(answer, identity) else format_score
