"""Chains of steps in words, as a world to search: what is asked of a model to propose, take and judge a step.

``Chain`` is a state (text and what is known of it), ``ChainWorld`` world model and guide in one: a subclass says what a
step earns. The prompts stand here, since a model that is scripted or trained must know them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rstar2_env.search import BudgetSpentError, Found

from .._scorers import share_of_yes

if TYPE_CHECKING:
    from ._base import Thinker

STEP = (
    "Write the next step only, in one line. If the work so far settles the question, write 'Answer:' and the answer "
    "instead."
)
OUTCOME = "The next step is: {step}\nWrite in one line what is known after it."
USEFUL = "The proposed next step is: {step}\nIs it useful? Reply Yes or No."
RIGHT = "Is the last step right? Reply Yes or No."
PROMISE = "How promising is this work? Reply with one whole number from 0 (hopeless) to 10 (sure to succeed)."
CONCLUDE = "Answer the question now: write 'Answer:' and the answer."


@dataclass(frozen=True, slots=True)
class Chain:
    """Some steps towards an answer.

    Attributes:
        question: What is to be answered.
        steps: The steps, each a line.
        sure: How sure the last step's outcome is: the share of predictions that agree on it.
        answer: The answer, where the last step gives one.
    """

    question: str
    steps: tuple[str, ...] = ()
    sure: float = 1.0
    answer: str | None = None

    def prompt(self, task: str, hint: str = "") -> str:
        """The question, the work so far, and what is to be done."""
        work = "\n".join(f"{number}. {step}" for number, step in enumerate(self.steps, 1)) or "(nothing yet)"
        return "\n\n".join(part for part in (self.question, f"Work so far:\n{work}", hint, task) if part)


class ChainWorld:
    """A world of chains, and a guide that tries what a model proposes; every step earns nothing.

    Args:
        thinker: Who asks, and reads answers.
        question: What is to be answered.
        width: How many proposals are asked for in each state; equal ones are one action.
        votes: How often everything else is asked.
        predicts: Whether the outcome of a step is asked for too (RAP's world model), and the answer that most
            predictions agree on stands behind the step; if not, the step says it itself.
        hint: Shown with each request for a step.
    """

    def __init__(
        self,
        thinker: Thinker,
        question: str,
        *,
        width: int,
        votes: int = 1,
        predicts: bool = False,
        hint: Callable[[Chain], str] = lambda chain: "",
    ) -> None:
        self._thinker, self.ask = thinker, thinker.asked.ask
        self.question, self.width, self.votes, self.predicts, self.hint = question, width, votes, predicts, hint
        self._looks: dict[tuple[Chain, str], float] = {}

    def init_state(self) -> Chain:
        """The question."""
        return Chain(self.question)

    def is_terminal(self, state: Chain) -> bool:
        """Whether there is an answer."""
        return state.answer is not None

    def get_actions(self, state: Chain) -> Sequence[str]:
        """What the model proposes, each once."""
        found: dict[str, None] = {}
        for number in range(self.width):
            try:
                reply = self.ask(state.prompt(STEP, self.hint(state))).strip()
            except BudgetSpentError:
                if not number:
                    raise
                break
            if reply:
                found[reply if self._thinker.read(reply) is not None else reply.splitlines()[0].strip()] = None
        return list(found)

    def step(self, state: Chain, action: str) -> Chain:
        """The chain with one step more; with what the model predicts of it, if it is asked."""
        answer = self._thinker.read(action)
        if answer is not None or not self.predicts:
            return Chain(self.question, (*state.steps, action), 1.0, answer)
        said = [self.ask(state.prompt(OUTCOME.format(step=action))).strip() for _ in range(self.votes)]
        outcome, agree = Counter(said).most_common(1)[0]
        return replace(state, steps=(*state.steps, f"{action} -> {outcome}"), sure=agree / self.votes)

    def fast_reward(self, state: Chain, action: str) -> float:
        """Nothing is asked."""
        return 0.0

    def reward(self, state: Chain, action: str, after: Chain) -> float:
        """Nothing is earned."""
        return 0.0

    def useful(self, state: Chain, action: str) -> float:
        """The share of Yes to whether a step is useful; asked once."""
        if (state, action) not in self._looks:
            prompt = state.prompt(USEFUL.format(step=action))
            self._looks[state, action] = share_of_yes(self._thinker.asked, prompt, self.votes)
        return self._looks[state, action]


def promise(reply: str) -> float:
    """The first number of a reply to ``PROMISE``, from 0 to 1; 0 without one."""
    match = re.search(r"\d+(?:\.\d+)?", reply[:200])
    return 0.0 if match is None else min(1.0, float(match[0]) / 10)


def ends(found: Found[Chain, str]) -> list[tuple[Chain, float]]:
    """Every chain with an answer that a search has found, with what its steps earned."""
    return [
        (node.state, sum(one.reward for one in node.path()))
        for node in found.root.walk()
        if node.state.answer is not None
    ]
