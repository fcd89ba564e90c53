"""An agent that another agent asks: for one more turn, or for an answer to a text of its own; what it wrote is counted.

The one place where agents that ask others count: every text that the agent below writes (turns that are thrown away,
votes, values, judgements) passes through ``Asked``. Its tokens are what the agent below counts in its ``usage``; where
it counts none, a text has as many as it has words, which is an estimate, and ``usage`` says so: ``estimated_tokens``.

Covered: making the agent, its draws, several turns at one place of an episode, questions beside the episode, budgets.
Not covered: choosing among the turns, and what is asked: that is what the agents do.
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
    """Make the agent that another one asks.

    Args:
        written: Its name with options, in round brackets or not; a class or function that makes one; or an agent,
            which is copied.
        dialect: The environment's dialect, for an agent that takes one.

    Raises:
        UnknownNameError: There is no agent of that name.
        ConfigurationError: It does not take its options, plays only one episode at a time at a terminal, or is told
            the answer.
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
            f"{name} is told the answer, so that there is nothing to think about: name an agent that is not.",
            option="agent",
        )
    if getattr(agent, "interactive", False):
        raise ConfigurationError(
            f"{name} needs the terminal and cannot be asked several times: name another agent.", option="agent"
        )
    return cast(Agent, agent)


@dataclass(frozen=True, slots=True)
class Try:
    """One turn that could be played.

    Attributes:
        turn: Its text.
        agent: The agent after it.
    """

    turn: str
    agent: Agent


@dataclass(slots=True)
class _Book:
    """What was spent and drawn in an episode.

    Attributes:
        most: Tokens after which nothing more is asked; 0 for no limit.
        usage: What was spent.
        seed: Seed of the episode.
        draws: How many seeds were derived from it.
    """

    most: int
    usage: dict[str, float]
    seed: int = 0
    draws: int = 0


class Asked:
    """Asks an agent, and counts.

    Args:
        agent: As ``inner_agent`` takes it.
        dialect: The environment's dialect.
        tokens: Tokens of one episode after which nothing more is asked; 0 for no limit.

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
            observation: The text of the environment's ``reset``.
            info: The ``info`` of the environment's ``reset``.
            seed: Seed of all that is drawn.
        """
        self._book.usage = {"requests": 0.0, "completion_tokens": 0.0}
        self._book.seed, self._book.draws = seed, 0
        self._start = (observation, copy.deepcopy(dict(info)))
        self._leader: Agent | None = None

    def beside(self, agent: Any, dialect: Dialect | str) -> Asked:
        """Another agent that is asked in the same episodes, and counts here; the same one, where it is ``None``.

        Args:
            agent: As ``inner_agent`` takes it, or ``None``.
            dialect: The environment's dialect.
        """
        if agent is None:
            return self
        other = copy.copy(self)  # the book is one
        other._first = inner_agent(agent, dialect)
        return other

    @property
    def determinism(self) -> str:
        """What the agent says of the same seed."""
        return str(getattr(self._first, "determinism", ""))

    @property
    def usage(self) -> dict[str, float]:
        """What was spent in this episode, as agents count it; always with ``requests`` and ``completion_tokens``."""
        return self._book.usage

    @property
    def tokens(self) -> int:
        """Tokens that were written so far in this episode."""
        return int(self.usage["completion_tokens"])

    @property
    def spent(self) -> bool:
        """Whether the budget is used up."""
        return 0 < self._book.most <= self.tokens

    def tries(self, observation: str, info: Mapping[str, Any], most: int) -> Iterator[Try]:
        """Turns that could be played now, each drawn anew when the iterator is asked for it.

        At the first turn each is of an agent with a seed of its own. Later each is of a copy of the agent whose turn
        was kept; an agent that has no ``reseed(seed)`` would say the same again, so it is asked once. A reply that
        cannot be played is left out, unless there is no other.

        Args:
            observation: What the environment showed last.
            info: What came with it.
            most: How many at most.

        Raises:
            UnusableReplyError: No reply can be played.
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
        """Say which turn is played; the agent behind it goes on. Returns the turn."""
        self._leader = one.agent
        return one.turn

    def ask(self, text: str, *, system: str = "", always: bool = False) -> str:
        """Ask something beside the episode; empty where the reply cannot be used.

        Args:
            text: The question.
            system: The system message.
            always: Ask even if the budget is used up, as for the answer.

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
        """Let an agent go on with a turn that is begun.

        An agent that can go on with its own text has ``go_on(observation, info, begun)``, which returns what follows;
        another is shown it.

        Args:
            one: The turn as it was; the agent as it was before is asked.
            observation: What the environment showed last.
            info: What came with it.
            begun: The text that the turn begins with.
        """
        agent: Any = self._copy()
        if hasattr(agent, "go_on"):
            more = self._count(agent, lambda: str(agent.go_on(observation, info, begun)))
        else:
            shown = f"{observation}\n\nYour thoughts so far:\n{begun}\n\nGo on exactly from there."
            more = self._count(agent, lambda: str(agent.act(shown, info)))
        return Try(begun + more, agent)

    def length(self, text: str) -> int:
        """Tokens of a text, as the agent counts them (``count_tokens``); words, where it does not."""
        count = getattr(self._first, "count_tokens", None)
        return int(count(text)) if count is not None else len(text.split())

    def _copy(self) -> Agent:
        """An agent at the place where the episode is, with a draw of its own."""
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
    """What agents share that ask another one: they start and count as ``Asked`` does."""

    _asked: Asked

    @property
    def usage(self) -> dict[str, float]:
        """What was spent in this episode, whatever became of it."""
        return self._asked.usage

    @property
    def determinism(self) -> str:
        """What the agent below says of the same seed."""
        return self._asked.determinism

    def reset(self, observation: str, info: Mapping[str, Any], *, seed: int) -> None:
        """Start an episode.

        Args:
            observation: The text of the environment's ``reset``.
            info: The ``info`` of the environment's ``reset``.
            seed: Seed of all that is drawn.
        """
        self._asked.reset(observation, info, seed=seed)
