"""``tactic_router``: chooses between reasoning in words and writing programs. Reason in the Wild (arXiv 2406.13764).

The model names a tactic: ``text`` (reason in words), ``program`` (a program that computes the answer), or
``program_aided`` (words and a program). Each tactic runs at most once; its result is added to the prompt, and the model
chooses again, until it names ``aggregate`` or no unused tactic of ``routes``, a tactic fails, or ``steps`` tactics have
run. Then the model answers from all results. The paper also has logic programs for a solver; here a Python program can
call a solver.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.declare import Count, Rule, checked
from rstar2_env.dialects import Dialect
from rstar2_env.evaluation.play.episode import python_call
from rstar2_env.search import BudgetSpentError

from ..base import AGENTS
from ._base import Thinker

CHOOSE = "How should this be gone about next? Reply with one word: {routes}."
TACTICS = {
    "text": "Reason in words, step by step, to an answer.",
    "program": "Write a Python program in a code fence that prints the answer.",
    "program_aided": "Reason in words, and write a Python program in a code fence that computes what is hard.",
}
AGGREGATE = "Answer the question from these results: write 'Answer:' and the answer."
_FENCE = re.compile(r"```(?:python3?|py)?[ \t]*\n(.*?)(?:```|\Z)", re.DOTALL)


class TacticRouter(Thinker):
    """Lets the model choose tactics (text or programs), runs each chosen tactic once, and answers from all results.

    To run a program, the agent plays a turn that calls a tool of the environment: the first tool with an argument
    ``code``. Without such a tool, the tactics ``program`` and ``program_aided`` fail.

    Args:
        agent: The inner agent, which writes the texts: its name, optionally with options, or your own agent.
        routes: The tactics to choose from, each one of ``TACTICS``.
        steps: Maximum number of tactics to run.
        tokens: Token budget of an episode, after which only the answer is requested; 0 for no limit.
        dialect: The environment's dialect, in which tool calls and answers are written.

    Raises:
        ConfigurationError: A route is not one of ``TACTICS``, an option is out of its range, or the agent cannot be an
            inner agent.
    """

    @checked
    def __init__(
        self,
        agent: Any,
        routes: Annotated[Sequence[str], Rule(least=1)] = ("text", "program", "program_aided"),
        steps: Count = 3,
        tokens: int = 0,
        dialect: Dialect | str = "rstar2",
    ) -> None:
        super().__init__(agent, tokens, dialect)
        for route in routes:
            if route not in TACTICS:
                raise ConfigurationError(
                    f"The option `routes` must contain only {', '.join(TACTICS)}; got {route!r}.", option="routes"
                )
        self._routes, self._steps = tuple(dict.fromkeys(routes)), steps
        self._question = ""
        self._results: list[tuple[str, str]] = []
        self._running: tuple[str, str] | None = None

    @property
    def results(self) -> Sequence[tuple[str, str]]:
        """The tactics that were run for the last question, each with its result."""
        return tuple(self._results)

    def reset(self, observation: str, info: Mapping[str, Any], *, seed: int) -> None:
        """Start an episode.

        Args:
            observation: The text that the environment's ``reset`` returned.
            info: The ``info`` that ``reset`` returned.
            seed: Seed of all random draws.
        """
        super().reset(observation, info, seed=seed)
        self._tools = list(info.get("tools") or ())
        self._results, self._running = [], None

    def act(self, observation: str, info: Mapping[str, Any]) -> str:
        """Return the next tool call, or the answer."""
        if self._running is None:
            self._question, self._results = "\n\n".join([*self._said, observation]), []
            self._said.append(observation)
            goes_on = True
        else:
            (route, text), self._running = self._running, None
            # The status of a call, not its text, tells whether the call succeeded.
            goes_on = all(call.get("status") in ("ok", "empty") for call in info.get("tool_calls") or ())
            self._results.append((route, f"{text}\n{observation}".strip() if goes_on else "It failed."))
        try:
            while goes_on and len(self._results) < self._steps and (chosen := self._choose()) is not None:
                call = self._carry_out(chosen)
                if call is not None:
                    return call
                goes_on = self._results[-1][1] != "It failed."
        except BudgetSpentError:
            pass
        turn = self._dialect.format_answer(self.conclude(self._prompt(AGGREGATE)))
        self._said.append(turn)
        return turn

    def _choose(self) -> str | None:
        done = [route for route, _ in self._results]
        left = [route for route in self._routes if route not in done]
        if not left:
            return None
        reply = self._asked.ask(self._prompt(CHOOSE.format(routes=", ".join([*left, "aggregate"]))))
        named = re.search(rf"\b(?:{'|'.join([*TACTICS, 'aggregate'])})\b", reply.lower())
        return named[0] if named is not None and named[0] in left else None

    def _carry_out(self, route: str) -> str | None:
        """Request a tactic's text; return a turn that runs the program in this text, or ``None`` without a program."""
        reply = self._asked.ask(self._prompt(TACTICS[route])).strip()
        result = reply or "It failed."
        if route != "text":
            fence = _FENCE.search(reply)
            try:
                if fence is not None and fence[1].strip():
                    turn = python_call(self._dialect, self._tools, fence[1])
                    self._running = (route, reply[: fence.start()].strip())
                    return turn
            except (ConfigurationError, ValueError):
                pass  # no tool runs programs, or the dialect cannot write this program
            result = "It failed."
        self._results.append((route, result))
        return None

    def _prompt(self, task: str) -> str:
        shown = [f"Result of {route}:\n{result}" for route, result in self._results]
        return "\n\n".join([self._question, *shown, task])


AGENTS.register("tactic_router", TacticRouter)
