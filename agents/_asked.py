"""``Asked``: the inner agent from which an outer agent requests candidate turns or answers, with a count of all tokens.

Every text that an inner agent writes (discarded turns, votes, values, judgements) passes through ``Asked``, which
counts its tokens. The counts come from the inner agent's ``usage``. If the inner agent does not count tokens, words are
counted as an estimate, and ``usage`` reports their number as ``estimated_tokens`` too.

Covered: the inner agent's creation and seeds, requests for several turns in one state of an episode, questions outside
the episode, token budgets. Not covered: the choice among turns, and prompts; outer agents define both.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import numpy as np

from rstar2_env.core.errors import ConfigurationError, UnusableReplyError
from rstar2_env.core.options.parts import make_part, read_part
from rstar2_env.dialects import Dialect
from rstar2_env.env.agent import Agent
from rstar2_env.search import BudgetSpentError

from .base import AGENTS


def inner_agent(written: Any, dialect: Dialect | str) -> Agent:
    """Create an inner agent: the agent from which an outer agent requests its texts.

    Args:
        written: The inner agent: its name, optionally with options (``"policy:model=m"`` or ``"policy(model=m)"``); a
            class or function that creates it; or an agent, which is copied.
        dialect: The environment's dialect; passed to an agent that has an argument ``dialect``.

    Raises:
        UnknownNameError: No agent has this name.
        ConfigurationError: The agent does not accept its options, or cannot be an inner agent because it needs the
            terminal or the gold answer.
    """
    if hasattr(written, "act") and not isinstance(written, type):
        agent: Any = copy.deepcopy(written)
    else:
        part = read_part(written, "agent")
        takes = inspect.signature(part.made_by or AGENTS.get(part.name)).parameters
        agent = make_part(AGENTS, part, **({"dialect": dialect} if "dialect" in takes else {}))
    name = type(agent).__name__
    if getattr(agent, "needs_problem", False):
        raise ConfigurationError(
            f"The agent {name} receives the gold answer, so it cannot be used inside another agent: "
            "choose an agent that does not receive it.",
            option="agent",
        )
    if getattr(agent, "interactive", False):
        raise ConfigurationError(
            f"The agent {name} needs the terminal, so it cannot be used inside another agent: choose another agent.",
            option="agent",
        )
    return cast(Agent, agent)


@dataclass(frozen=True, slots=True)
class Try:
    """A candidate turn, with the agent that wrote it.

    Attributes:
        turn: Text of the turn.
        agent: The agent in its state after the turn.
    """

    turn: str
    agent: Agent


@dataclass(slots=True)
class _Book:
    """Token usage and seed counter of an episode.

    Attributes:
        most: Token budget, after which no further request is made; 0 for no limit.
        usage: Counters of this episode, such as ``requests`` and ``completion_tokens``, keyed by name.
        seed: Seed of the episode.
        draws: Number of seeds derived from ``seed`` so far.
    """

    most: int
    usage: dict[str, float]
    seed: int = 0
    draws: int = 0


class Asked:
    """Makes requests to an inner agent, and counts its tokens.

    Args:
        agent: The inner agent, in any form that ``inner_agent`` accepts.
        dialect: The environment's dialect.
        tokens: Token budget of an episode, after which no further request is made; 0 for no limit.

    Raises:
        ConfigurationError: See ``inner_agent``.
    """

    def __init__(self, agent: Any, dialect: Dialect | str, tokens: int = 0) -> None:
        self._first = inner_agent(agent, dialect)
        self._book = _Book(tokens, {})
        self.reset("", {}, seed=0)

    def reset(self, observation: str, info: Mapping[str, Any], *, seed: int) -> None:
        """Start an episode.

        Args:
            observation: The text that the environment's ``reset`` returned.
            info: The ``info`` that ``reset`` returned.
            seed: Seed of all random draws.
        """
        self._book.usage = {"requests": 0.0, "completion_tokens": 0.0}
        self._book.seed, self._book.draws = seed, 0
        self._start = (observation, copy.deepcopy(dict(info)))
        self._leader: Agent | None = None

    def with_agent(self, agent: Any, dialect: Dialect | str) -> Asked:
        """Return an ``Asked`` for another inner agent; it shares this object's episode and token count.

        Args:
            agent: The other agent, in any form that ``inner_agent`` accepts; ``None`` returns ``self``.
            dialect: The environment's dialect.
        """
        if agent is None:
            return self
        other = copy.copy(self)  # the copy shares the counters
        other._first = inner_agent(agent, dialect)
        return other

    @property
    def determinism(self) -> str:
        """The inner agent's note on its reproducibility with equal seeds; empty if it has none."""
        return str(getattr(self._first, "determinism", ""))

    @property
    def usage(self) -> dict[str, float]:
        """Counters of this episode, keyed by name; ``requests`` and ``completion_tokens`` are always present."""
        return self._book.usage

    @property
    def tokens(self) -> int:
        """Number of tokens that the inner agent has written so far in this episode."""
        return int(self.usage["completion_tokens"])

    @property
    def spent(self) -> bool:
        """Whether the token budget of the episode is used up; always false without a budget."""
        return 0 < self._book.most <= self.tokens

    def tries(self, observation: str, info: Mapping[str, Any], most: int) -> Iterator[Try]:
        """Yield candidate turns; each is requested when the iterator advances.

        At the first turn, each candidate comes from a new copy of the agent with a different seed. At later turns, each
        comes from a copy of the agent whose turn was kept, with a new seed. If the agent has no method
        ``reseed(seed)``, all such copies would write the same turn, so only one is requested. Unusable replies are
        skipped.

        Args:
            observation: The last observation of the environment.
            info: The ``info`` of that observation.
            most: Maximum number of candidates.

        Raises:
            UnusableReplyError: No reply is usable.
        """
        again = self._leader is None or hasattr(self._leader, "reseed")
        unusable: UnusableReplyError | None = None
        played = 0
        for number in range(most if again else 1):
            if number and self.spent:
                break
            agent = self._copy()
            try:
                turn = self._count(agent, partial(agent.act, observation, info))
            except UnusableReplyError as error:
                unusable = error
                continue
            played += 1
            yield Try(turn, agent)
        if not played and unusable is not None:
            raise unusable

    def keep(self, one: Try) -> str:
        """Return the turn of the candidate ``one``, to be played; the agent that wrote it continues the episode."""
        self._leader = one.agent
        return one.turn

    def ask(self, text: str, *, system: str = "", always: bool = False) -> str:
        """Ask the inner agent a question that is not part of the episode; return "" if the reply is unusable.

        Args:
            text: The question.
            system: The system message.
            always: Whether to ask even if the budget is used up, as for the final answer.

        Raises:
            BudgetSpentError: The budget of tokens is used up.
        """
        if self.spent and not always:
            raise BudgetSpentError
        agent, info = copy.deepcopy(self._first), {"system": system} if system else {}
        agent.reset(text, info, seed=self._draw())
        try:
            return self._count(agent, lambda: agent.act(text, info))
        except UnusableReplyError:
            return ""

    def extend(self, one: Try, observation: str, info: Mapping[str, Any], begun: str) -> Try:
        """Let the inner agent complete the text ``begun``; return the candidate with the whole turn.

        An agent that can continue its own text has ``go_on(observation, info, begun)``, which returns the continuation.
        Any other agent receives the partial turn in the prompt.

        Args:
            one: The candidate to replace; the request uses the inner agent's state before the candidate's turn.
            observation: The last observation of the environment.
            info: The ``info`` of that observation.
            begun: The text with which the new turn starts.
        """
        agent: Any = self._copy()
        if hasattr(agent, "go_on"):
            more = self._count(agent, lambda: str(agent.go_on(observation, info, begun)))
        else:
            shown = f"{observation}\n\nYour thoughts so far:\n{begun}\n\nGo on exactly from there."
            more = self._count(agent, lambda: str(agent.act(shown, info)))
        return Try(begun + more, agent)

    def length(self, text: str) -> int:
        """Return the number of tokens in a text; if the inner agent has no ``count_tokens``, the number of words."""
        count = getattr(self._first, "count_tokens", None)
        return int(count(text)) if count is not None else len(text.split())

    def _copy(self) -> Agent:
        """Return a copy of the agent in its current state, with a new seed."""
        agent: Any = copy.deepcopy(self._first if self._leader is None else self._leader)
        if self._leader is None:
            agent.reset(*self._start, seed=self._draw())
        elif hasattr(agent, "reseed"):
            agent.reseed(self._draw())
        return cast(Agent, agent)

    def _draw(self) -> int:
        self._book.draws += 1
        # Endpoints accept seeds of 31 bits.
        return int(np.random.SeedSequence([self._book.seed, self._book.draws]).generate_state(1)[0]) >> 1

    def _count(self, agent: Any, speak: Callable[[], str]) -> str:
        before = dict(getattr(agent, "usage", {}))
        text = ""
        try:
            text = speak()
        finally:
            spent = {name: value - before.get(name, 0.0) for name, value in getattr(agent, "usage", {}).items()}
            if "completion_tokens" not in spent:
                spent["completion_tokens"] = float(self.length(text))
                if not hasattr(agent, "count_tokens"):
                    spent["estimated_tokens"] = spent["completion_tokens"]
            spent.setdefault("requests", 1.0)
            for name, value in spent.items():
                self.usage[name] = self.usage.get(name, 0.0) + value
        return text


class Asking:
    """Base class of agents with an inner agent; ``reset``, ``usage`` and ``determinism`` delegate to ``Asked``."""

    _asked: Asked

    @property
    def usage(self) -> dict[str, float]:
        """Counts of requests and tokens in this episode so far, keyed by name."""
        return self._asked.usage

    @property
    def determinism(self) -> str:
        """The inner agent's note on its reproducibility with equal seeds."""
        return self._asked.determinism

    def reset(self, observation: str, info: Mapping[str, Any], *, seed: int) -> None:
        """Start an episode.

        Args:
            observation: The text that the environment's ``reset`` returned.
            info: The ``info`` that ``reset`` returned.
            seed: Seed of all random draws.
        """
        self._asked.reset(observation, info, seed=seed)
