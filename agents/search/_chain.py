"""Search space of reasoning chains, with the prompts that let a model propose, perform and judge a step.

``ThoughtChain`` is a state of the search. ``ChainWorld`` is both the world model (states and actions) and the guide
(the rewards of the search, which a subclass defines). The prompts are public, since a scripted or trained model depends
on them.
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
class ThoughtChain:
    """The state of a search: a question, and the reasoning steps so far.

    Attributes:
        question: The question to answer.
        steps: The steps, each a line.
        sure: Confidence in the last step's outcome: the share of predictions that agree on it, in [0, 1].
        answer: The answer, if the last step gives one.
    """

    question: str
    steps: tuple[str, ...] = ()
    sure: float = 1.0
    answer: str | None = None

    def prompt(self, task: str, hint: str = "") -> str:
        """Return a prompt: the question, the steps so far, the hint if there is one, and the instruction ``task``."""
        work = "\n".join(f"{number}. {step}" for number, step in enumerate(self.steps, 1)) or "(nothing yet)"
        return "\n\n".join(part for part in (self.question, f"Work so far:\n{work}", hint, task) if part)


class ChainWorld:
    """Defines a tree search over chains of reasoning steps: its states, actions and rewards.

    The model proposes the steps. Every step has reward 0, unless a subclass overrides the reward.

    Args:
        thinker: The agent that makes requests and parses answers.
        question: The question to answer.
        width: Number of proposals requested in each state; equal proposals count as one action.
        votes: Number of requests for each prediction and each judgement.
        predicts: Whether to request a prediction of each step's outcome (RAP's world model), and append the most
            frequent prediction to the step. If false, a step itself should contain its outcome.
        hint: Text added to each request for a step.
    """

    def __init__(
        self,
        thinker: Thinker,
        question: str,
        *,
        width: int,
        votes: int = 1,
        predicts: bool = False,
        hint: Callable[[ThoughtChain], str] = lambda chain: "",
    ) -> None:
        self._thinker, self.ask = thinker, thinker.asked.ask
        self.question, self.width, self.votes, self.predicts, self.hint = question, width, votes, predicts, hint
        self._looks: dict[tuple[ThoughtChain, str], float] = {}

    def init_state(self) -> ThoughtChain:
        """Return the chain without steps."""
        return ThoughtChain(self.question)

    def is_terminal(self, state: ThoughtChain) -> bool:
        """Return whether the chain has an answer."""
        return state.answer is not None

    def get_actions(self, state: ThoughtChain) -> Sequence[str]:
        """Return the distinct next steps that the model proposes."""
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

    def step(self, state: ThoughtChain, action: str) -> ThoughtChain:
        """Return the chain with one more step and, if ``predicts`` is set, the prediction of the step's outcome."""
        answer = self._thinker.read(action)
        if answer is not None or not self.predicts:
            return ThoughtChain(self.question, (*state.steps, action), 1.0, answer)
        said = [self.ask(state.prompt(OUTCOME.format(step=action))).strip() for _ in range(self.votes)]
        outcome, agree = Counter(said).most_common(1)[0]
        return replace(state, steps=(*state.steps, f"{action} -> {outcome}"), sure=agree / self.votes)

    def fast_reward(self, state: ThoughtChain, action: str) -> float:
        """Return 0, without a request to the model."""
        return 0.0

    def reward(self, state: ThoughtChain, action: str, after: ThoughtChain) -> float:
        """Return the reward of a step, which is 0."""
        return 0.0

    def useful(self, state: ThoughtChain, action: str) -> float:
        """Return the share of Yes replies to the question whether a step is useful; cached for each step."""
        if (state, action) not in self._looks:
            prompt = state.prompt(USEFUL.format(step=action))
            self._looks[state, action] = share_of_yes(self._thinker.asked, prompt, self.votes)
        return self._looks[state, action]


def promise(reply: str) -> float:
    """Return the first number in a reply to the prompt ``PROMISE``, scaled to [0, 1]; 0 if there is no number."""
    match = re.search(r"\d+(?:\.\d+)?", reply[:200])
    return 0.0 if match is None else min(1.0, float(match[0]) / 10)


def ends(found: Found[ThoughtChain, str]) -> list[tuple[ThoughtChain, float]]:
    """Return the chains in a search tree that have an answer, each with the total reward of its steps."""
    return [
        (node.state, sum(one.reward for one in node.path()))
        for node in found.root.walk()
        if node.state.answer is not None
    ]
