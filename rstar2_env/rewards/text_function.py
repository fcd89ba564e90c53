"""Reward components as plain functions of texts, with the signature of TRL's reward functions.

    def short(completions, answers, **kwargs):
        return [1.0 if answer in text and len(text) < 200 else 0.0 for text, answer in zip(completions, answers)]

A function with a parameter ``completions`` is such a component. Every argument is a list with one element, for the
episode that is scored; the function returns a list with one element: a number, or ``None`` for no score. Not covered:
TRL's arguments ``trainer_state``, ``log_extra`` and ``log_metric``, and conversations as lists of messages.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from rstar2_env.core.episode import Episode
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.rewards.base import COMPLETIONS, Need, RewardContext, Score, is_text_function, parameters_of
from rstar2_env.rewards.texts import policy_texts

_OF_EPISODE = (COMPLETIONS, "prompts", "completion_ids")
_OF_PROBLEM = {"answer": "answer", "answers": "answer", "question": "question", "questions": "question"}


@dataclass(frozen=True)
class TextFunction:
    """A reward component that calls a function of texts.

    Arguments are passed by the parameter's name: ``completions`` (all turns of the policy, joined by newlines),
    ``prompts`` (the first message of the user), ``completion_ids`` (the policy's token ids), ``answer`` or ``answers``
    (the gold answer), ``question`` or ``questions``, and any key of the problem's ``meta``. A parameter with a default
    keeps the default if there is no value of that name. A function with ``**kwargs`` receives all of these arguments,
    but nothing from the problem if the environment has no source of problems.

    Attributes:
        function: The function.
    """

    function: Callable[..., Any]

    @property
    def needs(self) -> frozenset[Need]:
        """``tokens`` for a parameter ``completion_ids``; ``problem`` if a parameter's value comes from the problem."""
        names = {name for name, one in parameters_of(self.function).items() if one.kind is not one.VAR_KEYWORD}
        found: set[Need] = {"problem"} if names - set(_OF_EPISODE) else set()
        return frozenset(found | ({"tokens"} if "completion_ids" in names else set()))

    @property
    def takes_problem(self) -> bool:
        """Whether the function has ``**kwargs``, which receives the values of the problem if there is one."""
        return any(one.kind is one.VAR_KEYWORD for one in parameters_of(self.function).values())

    def __call__(self, episode: Episode, ctx: RewardContext) -> Score | Awaitable[Score]:
        """Score an episode.

        Raises:
            ConfigurationError: The problem lacks the value of a parameter, or the function did not return a list with
                one number.
        """
        returned = self.function(**self._arguments(episode, ctx))
        return self._awaited(returned) if inspect.isawaitable(returned) else self._score(returned)

    def _arguments(self, episode: Episode, ctx: RewardContext) -> dict[str, list[Any]]:
        prompts = (message.content for message in episode.messages if message.role == "user")
        ids = [token for token, own in zip(episode.completion_ids, episode.mask, strict=False) if own]
        known: dict[str, Any] = {} if ctx.problem is None else dict(ctx.problem.meta)
        if ctx.problem is not None:
            known |= {name: getattr(ctx.problem, attribute) for name, attribute in _OF_PROBLEM.items()}
        known |= {COMPLETIONS: "\n".join(policy_texts(episode)), "prompts": next(prompts, ""), "completion_ids": ids}
        parameters = parameters_of(self.function)
        if self.takes_problem:
            return {name: [value] for name, value in known.items()}
        for name, one in parameters.items():
            if name not in known and one.default is one.empty:
                raise ConfigurationError(
                    f"The reward function {self._name} has a parameter {name!r}, for which the problem "
                    f"has no value: give the parameter a default, or choose from the parameters "
                    f"{', '.join(sorted(known))}."
                )
        return {name: [known[name]] for name in parameters if name in known}

    async def _awaited(self, returned: Awaitable[Any]) -> Score:
        return self._score(await returned)

    def _score(self, returned: Any) -> Score:
        if isinstance(returned, (str, bytes)) or not (isinstance(returned, Sequence) or hasattr(returned, "__len__")):
            raise ConfigurationError(
                f"The reward function {self._name} returned {returned!r}: expected a list with one number for each of "
                "`completions`."
            )
        if len(returned) != 1:
            raise ConfigurationError(
                f"The reward function {self._name} returned {len(returned)} scores for one completion: return one "
                "number for each of `completions`."
            )
        score: Score = returned[0]
        return score

    @property
    def _name(self) -> str:
        return repr(getattr(self.function, "__name__", type(self.function).__name__))


def as_score(value: Any) -> Any:
    """Wrap a function of texts (``is_text_function``) in ``TextFunction``; return any other object unchanged."""
    return TextFunction(value) if is_text_function(value) else value
