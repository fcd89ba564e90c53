"""The protocol and the registry of judges of chains of thought.

CoT-pass@k (Wen et al., Reinforcement Learning with Verifiable Rewards Implicitly Incentivizes Correct Reasoning in Base
LLMs, arXiv 2506.14245) counts a sample as right only if both its answer and its chain of thought are right. Only
samples with a right answer are judged.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from rstar2_env.core.episode import Episode
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.parts import PartSpec, make_part, read_part
from rstar2_env.core.options.registry import Registry
from rstar2_env.core.options.user_code import Shape, is_class_with


@dataclass(frozen=True, slots=True)
class JudgedChain:
    """An episode whose chain of thought is to be judged; the input of a judge.

    Attributes:
        question: The problem, or the first message of the episode if the problem is known only to the environment.
        gold: The gold answer; ``None`` if it is unknown.
        episode: The episode, with the whole conversation and the status of every call.
    """

    question: str
    gold: str | None
    episode: Episode


class ChainJudge(Protocol):
    """Judges chains of thought; several threads call it at the same time."""

    def __call__(self, chain: JudgedChain) -> bool | None:
        """Return whether every step of the chain of thought is correct; ``None`` if the judge cannot decide."""
        ...


JUDGES: Registry[Callable[..., ChainJudge]] = Registry(
    "judge",
    "rstar2_env.evaluation.judges",
    "rstar2_env.judges",
    shape=Shape(is_class_with("__call__"), "a class whose objects are called with a JudgedChain"),
)


def make_judge(written: PartSpec) -> ChainJudge:
    """Make a judge from its specification.

    Args:
        written: A name of ``JUDGES`` or the user's own code, with or without options.

    Raises:
        UnknownNameError: There is no judge with that name.
        ConfigurationError: An option does not fit, or the created object is not callable.
    """
    made: Any = make_part(JUDGES, written)
    if not callable(made):
        raise ConfigurationError(
            f"The judge {read_part(written, JUDGES.kind).name!r} created an object of type {type(made).__name__}, "
            "which cannot be called; expected an object that can be called with a JudgedChain."
        )
    judge: ChainJudge = made
    return judge


def judge_of(judge: ChainJudge, question: str, gold: str | None, episode: Episode) -> bool | None:
    """Return a judge's verdict on an episode; if the answer is not right, return ``None`` without calling the judge.

    Args:
        judge: The judge.
        question: The problem; empty if only the environment knows it.
        gold: The gold answer; ``None`` if it is unknown.
        episode: The episode.
    """
    if not (episode.available and episode.correct):
        return None
    asked = question or next((message.content for message in episode.messages if message.role != "system"), "")
    return judge(JudgedChain(asked, gold, episode))
