"""``mae``: self-play in which one policy proposes problems, solves them, and judges problems and answers.

The prompts of the roles are in ``roles``.
"""

# This module is longer than most parts because it has three roles.

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np

from rstar2_env.core.episode import Episode
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.declare import CheckedOptions, option
from rstar2_env.core.saved_attributes import SavedAttributes

from ..samplers.base import Start
from .base import ROLLOUTS, Play, Rollout, at_once
from .roles import JUDGE_ANSWER, JUDGE_QUESTION, LIKE, PROPOSE, SOLVE, WITH_ANSWER, earn, form_of, score_of, tagged
from .texts import answer_of

_UNJUDGED = "The judge of the episode was not available."


@dataclass
class Mae(CheckedOptions, SavedAttributes, Rollout):
    r"""One policy proposes, solves and judges problems (Multi-Agent Evolve, arXiv 2510.23595).

    A group consists of rounds. A round with $n$ solvers has $2 + 2 n$ episodes. A proposer reads a reference problem
    and proposes another problem, and a judge scores its quality. If the quality is at least ``least``, $n$ solvers
    answer the problem, and a judge scores each answer. The rewards are:

    - proposer: $\frac{\text{quality} + \text{difficulty} + \text{format}}{3}$, where the difficulty is 1 minus the mean
      score of the answers; the difficulty of a problem without solvers is 0;
    - solver: $\frac{\text{score} + \text{format}}{2}$;
    - judge: its format, which is 1 for exactly one pair of the requested tags, 0.5 for more, else 0.

    If a problem gets no solvers, the remaining episodes of the group solve the environment's own problem, and their
    score is the environment's reward. With ``judge=environment``, a round has $1 + n$ episodes: the proposer also
    writes an answer, the environment compares the solvers' answers with it, and the quality is 1 if a solver agrees
    with the proposer, else 0.

    ``Episode.task`` is the role. The advantage ``task_norm:of=(reinforce:baseline=none)`` computes mean and deviation
    for each role. Proposed problems of sufficient quality can be references in later steps, and are saved in
    checkpoints.

    Args:
        solvers: Number of solvers of a proposed problem; fewer if the group is smaller.
        judge: Source of the scores: the ``"policy"``, or the ``"environment"`` if its ``reset`` accepts a problem.
        difficulty: ``"mean"`` is 1 minus the mean score, as in the paper; ``"threshold"`` is 1 if the mean score is
            below 0.7, else 0, as in the released code.
        least: Minimum quality of a proposed problem; solvers do not receive a problem of lower quality.
        capacity: Maximum number of good problems that are remembered; the oldest are dropped.
    """

    saved: ClassVar[tuple[str, ...]] = ("_good",)
    staged: ClassVar[str] = "the texts of some roles are the tasks of others"
    solvers: int = option(3, least=1)
    judge: Literal["policy", "environment"] = "policy"
    difficulty: Literal["mean", "threshold"] = "mean"
    least: float = option(0.7, least=0, most=1)
    capacity: int = option(1024, least=1)
    _good: list[str] = field(init=False, repr=False, default_factory=list)

    async def group(self, start: Start, number: int, size: int, play: Play) -> list[Episode]:
        """Return the episodes of one group; see ``Rollout``."""
        if size < 2:
            raise ConfigurationError(
                "The rollout part 'mae' needs one episode for each of two or more roles, so group_size must be "
                f"at least 2; got {size}."
            )
        solvers = min(self.solvers, (size - 2) // 2 if self.judge == "policy" else size - 1)
        return await _Table(self, start, number, size, solvers, play).group()

    def reference(self, start: Start, play: Play, number: int) -> str:
        """Return a proposer's reference problem: the environment's or an earlier good problem, else an empty text.

        Args:
            start: Start of the group, which selects the environment's problem.
            play: Looks up that problem.
            number: Index of the proposer's episode in the group, which seeds the choice.
        """
        rng = np.random.default_rng([start.seed, play.step, number])
        if self._good and rng.random() < 0.5:
            return self._good[int(rng.integers(len(self._good)))]
        problem = play.problem(start.problem_id)
        return "" if problem is None else problem.question

    def report(self, group: Sequence[Episode]) -> list[str] | None:
        """Return the questions that the policy proposed in a group and that were rated good; see ``Rollout``."""
        good = [one for one in group if one.task == "proposer" and one.available and one.correct]
        return [tagged(answer_of(one), "question")[0] for one in good] or None

    def update(self, reports: Sequence[list[str]]) -> None:
        """Remember the good questions that all groups of a step reported, at most ``capacity``; see ``Rollout``."""
        self._good = [*self._good, *(question for own in reports for question in own)][-self.capacity :]


@dataclass(frozen=True, slots=True)
class _Table:
    """Plays the rounds of one group."""

    part: Mae
    start: Start
    number: int
    size: int
    solvers: int
    play: Play

    async def group(self) -> list[Episode]:
        each = 2 + 2 * self.solvers if self.part.judge == "policy" else 1 + self.solvers
        played = await at_once(self._round(at * each) for at in range(self.size // each))
        found = [episode for one in played for episode in one]
        return [*found, *await at_once(map(self._own, range(self.size, 2 * self.size - len(found))))]

    async def _round(self, first: int) -> list[Episode]:
        reference, graded = self.part.reference(self.start, self.play, first), self.part.judge == "environment"
        like = LIKE.format(reference=reference) if reference else ""
        proposer = await self._reply(PROPOSE.format(like=like, answer=WITH_ANSWER if graded else ""), first)
        question, form = tagged(answer_of(proposer), "question")
        if not question:
            return [earn(proposer, "proposer", False, quality=0.0, difficulty=0.0, format=form)]
        if graded:
            return await self._graded(proposer, question, form, first + 1)
        judge, quality = await self._judged(JUDGE_QUESTION.format(question=question), first + 1)
        if quality is None:
            proposer.void("unavailable", _UNJUDGED)
            return [earn(proposer, "proposer", False), judge]
        scores: list[float] = []
        others: list[Episode] = []
        if quality >= self.part.least:
            answers = await at_once(self._answer(question, first + 2 + at) for at in range(self.solvers))
            others = [episode for pair, _ in answers for episode in pair]
            scores = [score for _, score in answers if score is not None]
        self._pay(proposer, quality, scores, form, good=quality >= self.part.least)
        return [proposer, judge, *others]

    async def _answer(self, question: str, member: int) -> tuple[list[Episode], float | None]:
        """Return the episodes of a solver and its judge, and the solver's score (``None`` if either is unavailable)."""
        solver = await self._reply(SOLVE.format(question=question), member)
        if not solver.available:
            return [earn(solver, "solver", False)], None
        asked = JUDGE_ANSWER.format(question=question, answer=answer_of(solver))
        judge, score = await self._judged(asked, member + self.solvers)
        if score is None:
            solver.void("unavailable", _UNJUDGED)
        form = tagged(answer_of(solver), "answer")[1]
        return [earn(solver, "solver", (score or 0.0) >= 0.5, judge=score or 0.0, format=form), judge], score

    async def _graded(self, proposer: Episode, question: str, form: float, first: int) -> list[Episode]:
        """Play solvers of a proposed problem; the environment compares their answers with the proposer's answer.

        Args:
            proposer: Episode of the proposer.
            question: The proposed problem.
            form: Format score of the proposal.
            first: Index of the first solver's episode in the group.

        Returns:
            The episodes of the proposer and the solvers, with their rewards.
        """
        gold, told = tagged(answer_of(proposer), "answer")
        if not gold:
            return [earn(proposer, "proposer", False, quality=0.0, difficulty=0.0, format=0.0)]
        name = f"{self.start.problem_id}+proposed"
        start = Start(self.start.seed, {"problem": {"id": name, "question": question, "answer": gold}})
        solvers = await at_once(self._own(first + at, start) for at in range(self.solvers))
        scores = [one.rewards["judge"] for one in solvers if one.available]
        agreed = any(one.available and one.correct for one in solvers)
        self._pay(proposer, float(agreed), scores, min(form, told), good=agreed)
        return [proposer, *solvers]

    async def _own(self, member: int, start: Start | None = None) -> Episode:
        """Play one solver of the group's problem, or of the problem of ``start``; the environment grades the answer."""
        solver = await self.play.episode(start or self.start, group=self.number, member=member)
        score = min(max(solver.reward, 0.0), 1.0)
        return earn(solver, "solver", solver.correct, judge=score, format=form_of(solver.answer_tags))

    async def _judged(self, asked: str, member: int) -> tuple[Episode, float | None]:
        judge = await self._reply(asked, member)
        score, form = score_of(answer_of(judge))
        return earn(judge, "judge", form == 1, format=form), score if judge.available else None

    async def _reply(self, text: str, member: int) -> Episode:
        return await self.play.reply(text, group=self.number, member=member)

    def _pay(self, proposer: Episode, quality: float, scores: Sequence[float], form: float, *, good: bool) -> None:
        """Set the proposer's reward from the quality, the difficulty and the format of the proposed problem.

        The difficulty is computed from ``scores``; it is 0 if the problem is not good or has no scores.

        Args:
            proposer: Episode of the proposer.
            quality: Quality of the proposed problem, from 0 to 1.
            scores: Scores of the solvers' answers.
            form: Format score of the proposal.
            good: Whether the problem is good enough for solvers to learn from.
        """
        mean = sum(scores) / len(scores) if scores else 1.0
        hard = 0.0 if not (good and scores) else 1 - mean if self.part.difficulty == "mean" else float(mean < 0.7)
        earn(proposer, "proposer", good, quality=quality, difficulty=hard, format=form)


ROLLOUTS.register("mae", Mae)
