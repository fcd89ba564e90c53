r"""``letter_choice``: 1 if the chosen letter of a multiple-choice question is right (AlphaMed, arXiv 2505.17952).

The letter is read from the policy's last turn, independently of the environment's answer: the last of ``\boxed{B}``,
``<answer>B</answer>``, ``answer: B`` or ``answer is (B)``; else the last ``(B)``; else a turn that is only a letter,
with or without a dot. Several letters ("A, C") must be exactly the gold letters. Case does not matter.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

from rstar2_env.core.episode import Episode
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.rewards.base import REWARDS, Need, RewardContext, problem_of
from rstar2_env.rewards.texts import last_turn

_LETTERS = r"[A-Ja-j](?:\s*(?:,|and|&)\s*[A-Ja-j])*"
_CHOSEN = rf"[*_\s(\[]*(?:\\(?:text|mathrm|mathbf)\{{\s*)?({_LETTERS})(?![\w'])"
_MARKED = re.compile(
    rf"(?:\\boxed\{{|<answer>){_CHOSEN}"
    # "The answer is a number" does not choose a letter.
    rf"|\banswer(?:\s+is)?\s*:?(?!\s*(?-i:a)\s+\w){_CHOSEN}",
    re.IGNORECASE,
)
_BRACKETED = re.compile(rf"\(({_LETTERS})\)")
_ALONE = re.compile(rf"\s*({_LETTERS})[.)]?\s*")


def letters_of(text: str) -> frozenset[str]:
    """Return the letters that a text chooses; empty if it chooses none."""
    found = ""
    for match in _MARKED.finditer(text):
        found = next(group for group in match.groups() if group)
    if not found:
        bracketed = _BRACKETED.findall(text)
        alone = _ALONE.fullmatch(text)
        found = bracketed[-1] if bracketed else alone[1] if alone else ""
    return frozenset(re.findall(r"\b[A-J]\b", found.upper()))


@dataclass(frozen=True, slots=True)
class LetterChoice:
    """1 if the chosen letter of a multiple-choice question is right, else 0 (AlphaMed, arXiv 2505.17952)."""

    needs: ClassVar[frozenset[Need]] = frozenset({"problem"})

    def __call__(self, episode: Episode, ctx: RewardContext) -> float:
        """Return 1 or 0.

        Raises:
            ConfigurationError: The gold answer does not contain a letter that can be chosen.
        """
        problem = problem_of(ctx, "letter_choice")
        gold = letters_of(problem.answer)
        if not gold:
            raise ConfigurationError(
                "The reward component 'letter_choice' needs a gold answer that is one letter, or several "
                f"letters as in 'A, C'; the gold answer of the problem {problem.id!r} is "
                f"{problem.answer[:60]!r}."
            )
        return float(letters_of(last_turn(episode)) == gold)


REWARDS.register("letter_choice", LetterChoice)
