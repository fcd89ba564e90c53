"""``navigator``: a small policy chooses the next block of a chain of thought. RL of Thoughts (arXiv 2505.14140).

State: the model rates its own work with seven scores from 1 to 3. Three scores rate the work so far (correct modelling,
clarity, correct calculation), two rate the remaining work (few steps, easy ideas), and two rate the answer (nearness,
confidence). Blocks (actions): reason one step, decompose, debate, refine, terminate. Rules: the chain ends with an
answer, or after ``steps`` blocks; at the first step, ``reason`` is played instead of ``refine``. The policy is the
greedy policy of a dueling network of 2,566 parameters (``_dueling``), trained by Double DQN; without weights the agent
plays one fixed block until it has an answer. ``train_navigator`` trains a policy on any environment, with the reward at
the end of the episode; the paper uses a process reward model.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from rstar2_env.core.options.declare import Count, checked
from rstar2_env.dialects import Dialect
from rstar2_env.search import BudgetSpentError

from ..base import AGENTS
from . import _dueling
from ._base import Thinker
from ._chain import CONCLUDE, STEP, ThoughtChain
from ._dueling import save as save_weights
from ._navigator_training import Learning, train_navigator

__all__ = ["BLOCKS", "Learning", "Navigator", "allowed", "save_weights", "train_navigator"]

BLOCKS = ("reason", "decompose", "debate", "refine", "terminate")
SELF = (
    "Judge this work by seven scores from 1 (bad) to 3 (good), as seven digits: right modelling, clarity, right "
    "calculation; few steps left, easy ideas left; near to an answer, sure of it."
)
SPLIT = "Split what is left to do into smaller questions, in one line."
BETTER = "Two next steps are proposed.\nA: {first}\nB: {second}\nWhich is better? Reply A or B."
REFINE = "Rewrite the last step so that it is right, in one line."

Chooser = Callable[[tuple[int, ...]], int]
"""Function that chooses the next reasoning block from the seven scores that the model gives its own work."""


def allowed(block: int, *, step: int, steps: int, answered: bool) -> int:
    """Return the reasoning block to play: the chosen block, unless a rule replaces it.

    Args:
        block: The chosen block, as its index in ``BLOCKS``.
        step: Number of blocks that were played before this one.
        steps: Maximum number of blocks.
        answered: Whether the chain has an answer.
    """
    if answered or step >= steps:
        return BLOCKS.index("terminate")
    if step == 0 and BLOCKS[block] == "refine":
        return BLOCKS.index("reason")
    return block


class Navigator(Thinker):
    """Lets a small trained policy choose the next block of a chain of thought (RL of Thoughts).

    Args:
        agent: The inner agent, which writes the texts: its name, optionally with options, or your own agent.
        weights: Weights of a trained policy, as ``train_navigator`` returns them, or their file; ``None`` plays
            ``block`` until there is an answer.
        steps: Maximum number of blocks.
        block: The block to play without weights.
        tokens: Token budget of an episode, after which only the answer is requested; 0 for no limit.
        dialect: The environment's dialect.

    Raises:
        ConfigurationError: The file does not hold weights, an option is out of its range, or the agent cannot be an
            inner agent.
    """

    @checked
    def __init__(
        self,
        agent: Any,
        weights: str | Mapping[str, Any] | None = None,
        steps: Count = 8,
        block: Literal["reason", "decompose", "debate", "refine"] = "reason",
        tokens: int = 0,
        dialect: Dialect | str = "rstar2",
    ) -> None:
        super().__init__(agent, tokens, dialect)
        self._steps, self._fixed = steps, BLOCKS.index(block)
        self._weights = _dueling.load(weights) if isinstance(weights, str) else weights
        self.choose: Chooser | None = None

    def think(self, question: str, info: Mapping[str, Any]) -> str:
        """Play reasoning blocks until a rule or the trained policy terminates the chain; return the answer."""
        chain = ThoughtChain(question)
        try:
            for step in range(self._steps + 1):
                over = chain.answer is not None or step >= self._steps
                chosen = self._fixed if over else self._chosen(chain)
                block = allowed(chosen, step=step, steps=self._steps, answered=chain.answer is not None)
                if BLOCKS[block] == "terminate":
                    break
                chain = getattr(self, "_" + BLOCKS[block])(chain)
        except BudgetSpentError:
            pass
        return chain.answer if chain.answer is not None else self.conclude(chain.prompt(CONCLUDE))

    def scores(self, chain: ThoughtChain) -> tuple[int, ...]:
        """Return the seven scores that the model gives its own work; a score missing in the reply is 2."""
        found = [int(digit) for digit in re.findall(r"[123]", self._asked.ask(chain.prompt(SELF)))[:7]]
        return (*found, *[2] * (7 - len(found)))

    def _chosen(self, chain: ThoughtChain) -> int:
        if self.choose is not None:
            return self.choose(self.scores(chain))
        if self._weights is None:
            return self._fixed
        return int(np.argmax(_dueling.q_values(self._weights, np.asarray(self.scores(chain)))))

    def _reason(self, chain: ThoughtChain) -> ThoughtChain:
        return self._longer(chain, self._asked.ask(chain.prompt(STEP)))

    def _decompose(self, chain: ThoughtChain) -> ThoughtChain:
        return self._longer(chain, self._asked.ask(chain.prompt(SPLIT)))

    def _debate(self, chain: ThoughtChain) -> ThoughtChain:
        first, second = (self._asked.ask(chain.prompt(STEP)).strip() for _ in range(2))
        if first == second:
            return self._longer(chain, first)
        said = self._asked.ask(chain.prompt(BETTER.format(first=first, second=second)))
        return self._longer(chain, second if re.match(r"\W*B\b", said) else first)

    def _refine(self, chain: ThoughtChain) -> ThoughtChain:
        reply = self._asked.ask(chain.prompt(REFINE))
        return self._longer(replace(chain, steps=chain.steps[:-1]), reply) if reply.strip() else chain

    def _longer(self, chain: ThoughtChain, text: str) -> ThoughtChain:
        text = text.strip()
        answer = self.read(text)
        line = text if answer is not None else text.partition("\n")[0]
        return replace(chain, steps=(*chain.steps, line), answer=answer) if line else chain


AGENTS.register("navigator", Navigator)
