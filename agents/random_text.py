"""``random_text``: random text, a baseline for policies and adversarial input for environments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.declare import Count, Rule, checked
from rstar2_env.dialects import Dialect, make_dialect
from rstar2_env.evaluation.play.episode import python_call

from .base import AGENTS

_SCRAPS = (
    "<tool_call>",
    "</tool_call>",
    "<answer>",
    "</answer>",
    "<tool_response>",
    "\\boxed{",
    "}",
    '{"name": ',
    "```",
)


class RandomText:
    """Plays random characters, fragments of mark-up, and sometimes a call or an answer.

    Args:
        length: Maximum number of pieces in a turn; a piece is an answer, a call, or a fragment of text.
        answers: Probability that a piece is a well-formed answer, which is a random whole number from 0 to 99.
        calls: Probability that a piece is a well-formed call of a tool of the environment, with random characters as
            its arguments.
        dialect: The dialect of calls and answers.

    Raises:
        ConfigurationError: An option is out of range.
        UnknownNameError: No dialect has this name.
    """

    @checked
    def __init__(
        self,
        length: Count = 30,
        answers: Annotated[float, Rule(least=0, most=1)] = 0.05,
        calls: Annotated[float, Rule(least=0, most=1)] = 0.02,
        dialect: Dialect | str = "rstar2",
    ) -> None:
        if answers + calls > 1:
            raise ConfigurationError(
                f"The sum of the options `answers` and `calls` must be at most 1; got {answers} and {calls}."
            )
        self._length = length
        self._chances = (answers, answers + calls, answers + calls + (1 - answers - calls) / 4)
        self._dialect = make_dialect(dialect)
        self._tools: list[Any] = []
        self._rng = np.random.default_rng(0)

    def reset(self, observation: str, info: Mapping[str, Any], *, seed: int) -> None:
        """Seed the random generator.

        Args:
            observation: The text that the environment's ``reset`` returned.
            info: The ``info`` that ``reset`` returned.
            seed: Seed of the random generator.
        """
        self._rng = np.random.default_rng(seed)
        self._tools = list(info.get("tools", ()))

    def reseed(self, seed: int) -> None:
        """Change the seed of all later random characters."""
        self._rng = np.random.default_rng(seed)

    def act(self, observation: str, info: Mapping[str, Any]) -> str:
        """Return a turn of randomly drawn answers, calls and fragments of text."""
        return "".join(self._piece() for _ in range(int(self._rng.integers(1, self._length + 1))))

    def _piece(self) -> str:
        answer, call, scrap = self._chances
        draw = self._rng.random()
        if draw < answer:
            return self._dialect.format_answer(str(self._rng.integers(100)))
        if draw < call and self._tools:
            return self._call()
        if draw < scrap:
            return _SCRAPS[int(self._rng.integers(len(_SCRAPS)))]
        return self._noise()

    def _call(self) -> str:
        """Return a call of the tool that takes code, or else of any tool, with random characters for each argument."""
        taken = [tool["function"]["parameters"].get("properties", {}) for tool in self._tools]
        if any("code" in names for names in taken):
            return python_call(self._dialect, self._tools, self._noise())
        chosen = int(self._rng.integers(len(self._tools)))
        name = self._tools[chosen]["function"]["name"]
        return self._dialect.format_call(name, {argument: self._noise() for argument in taken[chosen]})

    def _noise(self) -> str:
        """Return random characters: mostly ASCII, sometimes from all of Unicode except lone surrogates."""
        high = 0x110000 if self._rng.random() < 0.1 else 0x7F
        points = self._rng.integers(0x20, high, size=int(self._rng.integers(1, 12)))
        return "".join(chr(point) for point in points if not 0xD800 <= point <= 0xDFFF)


AGENTS.register("random_text", RandomText)
