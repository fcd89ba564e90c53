"""``critique_refine``: critiques answers, lets the policy refine them, and adds the best refinement to the group."""

# This module is longer than most parts because two critics and three kinds of critiques are published (Critique-GRPO,
# arXiv 2506.03106).

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import ClassVar, Literal

from rstar2_env.core.episode import Episode
from rstar2_env.core.errors import ConfigurationError, ServiceError
from rstar2_env.core.net.chat.asking import marked
from rstar2_env.core.options.declare import CheckedOptions

from ..samplers.base import Start
from .base import ROLLOUTS, Play, Rollout, at_once
from .texts import answer_of, question_of

_log = logging.getLogger(__name__)
_ASK = "Criticise it: say briefly which steps hold, which do not, and what to do otherwise. Do not solve the problem."


@dataclass(frozen=True)
class CritiqueRefine(CheckedOptions, Rollout):
    """Samples $n - 1$ episodes, and adds the best refinement of their answers (Critique-GRPO, arXiv 2506.03106).

    For each sampled episode, a critique is written, and the problem is played again with question, answer and critique
    in the prompt. The first right refinement, or else the refinement with the highest reward, is the last of the $n$
    episodes of the group ($7 + 1$ in the paper). In training, the prompt of this episode is only the question, and its
    column ``off_policy`` is 1, which the loss ``shaped_offpolicy`` reads. If there is no refinement, one more episode
    is sampled. Only the chosen refinement is recorded, not the other refinements and the critiques. In the paper, a
    larger model writes the critiques (``critic="judge"``).

    Args:
        critique: Content of a critique: ``"text"`` is the critic's text about each answer, ``"simple"`` states whether
            the answer is right, and ``"simple_gt"`` also states the gold answer.
        critic: Author of the critiques: the ``"policy"``, in one more turn about each answer, or the ``"judge"``, the
            model that ``rollout.judge`` names. An answer without a reply of the judge is not refined.
    """

    staged: ClassVar[str] = "it refines episodes that were sampled before"
    critique: Literal["text", "simple", "simple_gt"] = "text"
    critic: Literal["policy", "judge"] = "policy"

    async def group(self, start: Start, number: int, size: int, play: Play) -> list[Episode]:
        """Return the episodes of one group; see ``Rollout``."""
        if size < 2:
            raise ConfigurationError(
                "The rollout part 'critique_refine' needs groups of at least 2 episodes, since the last episode of a "
                f"group is a refinement of another; got {size}."
            )
        if self.critique == "text" and self.critic == "judge" and play.judge is None:
            raise ConfigurationError(
                "critic=judge lets a judge model write the critiques, but no judge is set. Set it "
                "(rollout.judge=model:url=...,model=NAME), or let the policy write the critiques "
                "(critic=policy)."
            )
        own = size - 1

        async def tried(member: int) -> tuple[Episode, Episode | None]:
            first = await play.episode(start, group=number, member=member)
            text = (
                await self._critique(first, play, number, 2 * own + member) if first.available and first.steps else ""
            )
            shown = (
                f"{{question}}\n\nAn earlier attempt:\n{answer_of(first)}\n\nA critique of it:\n{text}\n\nTry again."
            )
            return first, await play.episode(start, group=number, member=own + member, shown=shown) if text else None

        pairs = await at_once(map(tried, range(own)))
        refined = [again for _, again in pairs if again is not None and again.available]
        best = next((one for one in refined if one.correct), None) or max(
            refined, key=lambda one: one.reward, default=None
        )
        return [*(first for first, _ in pairs), best or await play.episode(start, group=number, member=3 * own)]

    async def _critique(self, episode: Episode, play: Play, group: int, member: int) -> str:
        verdict = f"The attempt is {'right' if episode.correct else 'wrong'}."
        if self.critique == "text" and self.critic == "judge":
            assert play.judge is not None  # checked before playing
            shown = marked([("QUESTION", question_of(episode)), ("ATTEMPT", answer_of(episode))])
            try:
                return await play.judge(f"{shown}\n\n{verdict} {_ASK}")
            except ServiceError as error:
                _log.warning("An answer is not refined, because the model that criticizes it did not reply: %s", error)
                return ""
        if self.critique == "text":
            asked = f"{question_of(episode)}\n\nAn attempt:\n{answer_of(episode)}\n\n{verdict} {_ASK}"
            return answer_of(await play.reply(asked, group=group, member=member))
        if self.critique == "simple":
            return verdict
        problem = play.problem(episode.problem_id)
        if problem is None or not problem.answer.strip():
            raise ConfigurationError(
                f"critique=simple_gt needs a gold answer, but the problem {episode.problem_id!r} does not have one. "
                "Set critique=simple or critique=text, or use an environment whose problems have gold answers."
            )
        return f"{verdict} The right answer is {problem.answer}."


ROLLOUTS.register("critique_refine", CritiqueRefine)
