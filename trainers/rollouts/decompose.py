"""``decompose``: retries unsolved problems with solved examples in the prompt, then with the policy's wrong answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from rstar2_env.core.episode import Episode
from rstar2_env.core.options.declare import option

from ..samplers.base import Start
from .base import ROLLOUTS, Play, at_once
from .solved import RemembersSolved
from .texts import answer_of

_APART = "{question}%s\n\nTake this problem apart: name smaller ones, solve each, and put the results together."
_REFLECT = "{question}\n\nA wrong answer:\n%s\n\nFind out what is wrong with it, and solve the problem another way."


@dataclass
class Decompose(RemembersSolved):
    """Retries unsolved problems with solved examples or a wrong answer in the prompt (Cog-Rethinker, arXiv 2510.15979).

    Only problems of groups without a right episode are retried. First, the prompt contains similar solved problems,
    found by BM25, and asks the policy to decompose the problem. If no attempt with examples is right, the prompt of
    each further attempt contains a wrong answer that the policy gave to this problem, and asks for the mistake in it.
    Right attempts are trained on separately from the group, with only the question as the prompt, the advantage 0, and
    1 in the column ``off_policy``, for the loss ``sft``. Failed attempts are not recorded. The solved problems of all
    processes are saved in checkpoints. The default numbers of examples and attempts are this package's choices.

    Args:
        attempts: Number of attempts with examples, and maximum number of attempts with a wrong answer.
        examples: Number of solved problems in the prompt of an attempt.
    """

    staged: ClassVar[str] = "it adds attempts only if all sampled episodes are wrong"
    attempts: int = option(4, least=1)
    examples: int = option(2, least=0)

    async def group(self, start: Start, number: int, size: int, play: Play) -> list[Episode]:
        """Return the episodes of one group; see ``Rollout``."""

        async def tried(first: int, shown: Sequence[str]) -> list[Episode]:
            played = (play.episode(start, group=number, member=first + at, shown=one) for at, one in enumerate(shown))
            return [one for one in await at_once(played) if one.available and one.policy_tokens]

        sampled = await at_once(play.episode(start, group=number, member=member) for member in range(size))
        wrong = [one for one in sampled if one.available and one.steps]
        if not wrong or any(one.correct for one in wrong):
            return list(sampled)
        known = self.like(wrong[0], self.examples)
        examples = "".join(f"\n\nA solved problem:\n{asked}\n\nIts solution:\n{solution}" for asked, solution in known)
        helped = await tried(size, [_APART % examples] * self.attempts)
        if not any(one.correct for one in helped):
            answers = [answer_of(one) for one in (*helped, *wrong)][: self.attempts]
            helped = await tried(size + self.attempts, [_REFLECT % answer for answer in answers])
        return [*sampled, *(one for one in helped if one.correct)]

    def apart(self, group: Sequence[Episode]) -> list[int]:
        """Return the positions of episodes that are trained on with the advantage 0; see ``Rollout``."""
        return [at for at, episode in enumerate(group) if episode.source == "refined" and episode.available]


ROLLOUTS.register("decompose", Decompose)
