"""Environments of this package as the checkers of others call them: an adapter of ``falsepass``, and episodes.

Imported only in the environment of the bridge ``checkers``, which has ``falsepass``.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from falsepass.adapter import Adapter
from falsepass.model import Completion, Example, Score

from rstar2_env.env.reference import playing
from rstar2_env.wrappers.make import make_env

LONGEST = 1 << 22
"""Characters of a turn that the environments take; one of the completions has two million."""
TOOL_ENVS = ("rstar2/MathTool-v0", "rstar2/MathFence-v0")


def earned(env: Any, seed: int, turns: Sequence[str]) -> float:
    """Play an episode; returns its reward. Turns after its end are not played."""
    env.reset(seed=seed)
    total = 0.0
    for turn in turns:
        _, reward, terminated, truncated, _ = env.step(turn)
        total += float(reward)
        if terminated or truncated:
            break
    return total


def tool_call(env: Any, code: str) -> str:
    """Return a turn that runs a program with the only tool of an environment."""
    (tool,) = playing(env).tools.specs
    written: str = playing(env).dialect.format_call(tool.name, {"code": code, "input": ""})
    return written


class EnvScorer:
    """Plays each completion as an episode.

    Args:
        env: The environment.
    """

    concurrent_safe = False

    def __init__(self, env: Any) -> None:
        self._env = env
        self.weights = {"reward": 1.0}

    async def score(self, example: Example, completion: Completion) -> Score:
        assert isinstance(completion, str | list)
        try:
            return Score(earned(self._env, example.raw, self._turns(completion)))
        except Exception as error:
            return Score(None, errors=[repr(error)])

    def _turns(self, completion: str | list[dict[str, Any]]) -> list[str]:
        """Return the turns of the policy, with native calls as the environment's dialect writes them."""
        if isinstance(completion, str):
            return [completion]
        turns = []
        for message in completion:
            if message["role"] == "assistant":
                calls = [one["function"] for one in message.get("tool_calls") or ()]
                written = [
                    playing(self._env).dialect.format_call(one["name"], json.loads(one["arguments"])) for one in calls
                ]
                turns.append("\n".join([message["content"] or "", *written]).strip())
        return turns

    async def close(self) -> None:
        self._env.close()


class EnvAdapter(Adapter):  # type: ignore[misc]  # the checks of types do not see its package
    """The problems of an environment, with answers in its own dialect.

    Args:
        env: Its id.
    """

    def __init__(self, env: str) -> None:
        self.name = env
        self._examples: list[Example] = []

    def load(self, n: int, seed: int) -> tuple[EnvScorer, list[Example]]:
        env = make_env(self.name, max_text=LONGEST)
        self._dialect = None
        for number in range(n + 1):
            text, info = env.reset(seed=number)
            prompt = f"{info.get('system', '')}\n{text}"
            self._examples.append(Example(f"seed-{number}", prompt, playing(env).problem.answer, number))
        self._dialect = playing(env).dialect
        return EnvScorer(env), self._examples[:n]

    def render(self, answer: str, example: Example) -> str:
        assert self._dialect is not None
        written: str = self._dialect.format_answer(answer)
        return written

    def wrong_answer(self, example: Example) -> str:
        after = self._examples[example.raw + 1 :] + self._examples[: example.raw]
        return next(one.answer for one in after if one.answer != example.answer)

    def hygiene_examples(self, limit: int) -> list[Example]:
        return self._examples[:limit]


def adapter(env: str) -> EnvAdapter:
    """Return the adapter of an environment."""
    return EnvAdapter(env)
