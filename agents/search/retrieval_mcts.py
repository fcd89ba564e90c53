"""``retrieval_mcts``: RAP's search with retrieval from solved problems. R2-LLMs (arXiv 2507.05557).

Coarse retrieval inserts the templates of the most similar solved problems before the question. Fine retrieval adds, to
each request for a step, the steps that are most similar to the end of the chain. Everything else is as in ``rap_mcts``;
without solved problems, all requests are identical to those of ``rap_mcts``. The paper retrieves with a dense encoder
and rates with a process reward model; here BM25 retrieves, and the model itself rates.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.declare import Count, Rule, checked
from rstar2_env.dialects import Dialect
from rstar2_env.search.bm25 import WORDS_AND_SIGNS, Bm25

from ..base import AGENTS
from ._chain import ThoughtChain
from .rap_mcts import RapMcts, RapWorld

Solved = Mapping[str, Any]
"""A solved problem: ``question``, and at least one of ``template`` (the method in words) and ``steps`` (lines)."""


class RetrievalMcts(RapMcts):
    """Searches as rap_mcts does, and shows the model similar problems and steps (R2-LLMs).

    Args:
        agent: The inner agent, which writes the texts: its name, optionally with options, or your own agent.
        solved: Solved problems: a JSONL file or a list of dicts, with the key ``question``, and with ``template`` (the
            method in words), ``steps`` (a list of strings) or both; ``None`` retrieves nothing.
        templates: Maximum number of similar problems to show.
        steps: Maximum number of similar steps to show.
        iterations: Number of descents from the root.
        depth: Maximum number of steps in a chain.
        width: Number of proposals requested in each state.
        votes: Number of requests to predict an outcome and to judge a step.
        weight: Weight w of the exploration bonus in the UCT score.
        output: ``"path"`` for the best path's answer; ``"vote"`` for the winner of a vote of all paths, weighted by
            reward.
        tokens: Token budget of an episode, after which the search ends; 0 for no limit.
        dialect: The environment's dialect.

    Raises:
        ConfigurationError: An option is out of its range, the file cannot be read, or the agent cannot be an inner
            agent.
    """

    @checked
    def __init__(
        self,
        agent: Any,
        solved: str | Sequence[Solved] | None = None,
        templates: Annotated[int, Rule(least=0)] = 1,
        steps: Annotated[int, Rule(least=0)] = 2,
        iterations: Count = 10,
        depth: Count = 5,
        width: Count = 4,
        votes: Count = 1,
        weight: float = 1.0,
        output: Literal["path", "vote"] = "path",
        tokens: int = 0,
        dialect: Dialect | str = "rstar2",
    ) -> None:
        super().__init__(agent, iterations, depth, width, votes, weight, output, tokens, dialect)
        self._solved = _read(solved) if isinstance(solved, str) else list(solved or ())
        self._most = (templates, steps)
        self._questions = Bm25([str(one.get("question", "")) for one in self._solved], words=WORDS_AND_SIGNS)
        self._steps = [str(step) for one in self._solved for step in one.get("steps", ())]
        self._index = Bm25(self._steps, words=WORDS_AND_SIGNS)

    def world(self, question: str) -> RapWorld:
        """Return RAP's search space for a prompt that consists of similar solved problems and the question."""
        near = [self._solved[place] for place in self._questions.nearest(question, self._most[0])]
        shown = [f"A similar problem: {one['question']}\nHow it is solved: {_template(one)}" for one in near]
        asked = "\n\n".join([*shown, question])
        return RapWorld(
            self, asked, width=self._width, votes=self._votes, predicts=True, hint=partial(self._hint, question)
        )

    def _hint(self, question: str, chain: ThoughtChain) -> str:
        # Retrieve by the end of the chain: its last step, or else the question without the retrieved text.
        where = chain.steps[-1] if chain.steps else question
        near = [f"- {self._steps[place]}" for place in self._index.nearest(where, self._most[1])]
        return "\n".join(["Steps that helped in similar places:", *near]) if near else ""


def _template(solved: Solved) -> str:
    return str(solved.get("template") or "; ".join(map(str, solved.get("steps", ()))))


def _read(file: str) -> list[Solved]:
    wanted = "Expected JSON lines, each with a question, and a template or steps."
    try:
        lines = Path(file).read_text("utf-8").splitlines()
        found = [json.loads(line) for line in lines if line.strip()]
    except (OSError, ValueError) as error:
        raise ConfigurationError(
            f"The file {file} of the option `solved` cannot be read: {error}. {wanted}", option="solved"
        ) from error
    for number, one in enumerate(found, 1):
        if not isinstance(one, dict) or "question" not in one:
            raise ConfigurationError(
                f"Record {number} of the file {file} (option `solved`) does not have a question. {wanted}",
                option="solved",
            )
    return found


AGENTS.register("retrieval_mcts", RetrievalMcts)
