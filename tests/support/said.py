"""Episodes of one text, contexts with a problem, and judges that say what they are told to."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from typing import Any

from rstar2_env.core.episode import Episode, Message
from rstar2_env.core.turn import Turn
from rstar2_env.problems import Problem
from rstar2_env.rewards import RewardContext


def said(*texts: str, **fields: Any) -> Episode:
    """An episode in which the policy said these turns."""
    messages = [Message("user", "A question.")]
    for number, text in enumerate(texts):
        messages += [Message("user", "A result.")] if number else []
        messages.append(Message("assistant", text))
    fields = {"answer_tags": 1, "turns": len(texts), "steps": [Turn() for _ in texts], **fields}
    return Episode(messages=messages, **fields)


def given(answer: str, *, judge: Callable[[str], str] | None = None, **meta: Any) -> RewardContext:
    """A context with a problem of that gold answer, and a judge who answers by a function of the prompt."""

    async def asked(prompt: str) -> str:
        await asyncio.sleep(0)
        assert judge is not None
        return judge(prompt)

    return RewardContext(problem=Problem("p", "A question?", answer, meta=meta), judge=asked if judge else None)


def score(component: Any, episode: Episode, ctx: RewardContext | None = None) -> Any:
    """The score, awaited where it must be."""

    async def awaited() -> Any:
        found = component(episode, ctx or RewardContext())
        return await found if inspect.isawaitable(found) else found

    return asyncio.run(awaited())
