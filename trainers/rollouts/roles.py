"""Prompts of the roles of ``mae``, parsers of the roles' texts, and the roles' rewards."""

from __future__ import annotations

import re

from rstar2_env.core.episode import Episode

PROPOSE = (
    "Pose a new problem that is clear, complete and hard but possible to solve.{like}\n\nWrite it as "
    "<question>the problem</question>{answer}, and nothing else in these tags."
)
LIKE = " It may be of the kind of this one, and must not repeat it:\n\n{reference}"
WITH_ANSWER = " with its answer as <answer>the answer</answer>"
SOLVE = "{question}\n\nReason step by step, and end with <answer>your answer</answer>."
_SCORE = " Reason first, and end with <score>a whole number from 1 to 10</score>."
JUDGE_QUESTION = "A problem:\n\n{question}\n\nHow clear, complete and sensible is it?" + _SCORE
JUDGE_ANSWER = "A problem:\n\n{question}\n\nAn answer:\n\n{answer}\n\nHow right is the answer?" + _SCORE


def tagged(text: str, name: str) -> tuple[str, float]:
    """Return the content of the last pair of tags, and a score of the format.

    Args:
        text: The text of a role.
        name: Name of the tags.

    Returns:
        The content, empty if there is none; and the score of the format: 1 for exactly one pair of tags that is not
        empty, 0.5 for several pairs, else 0.
    """
    found = [one.strip() for one in re.findall(rf"<{name}>(.*?)</{name}>", text, re.DOTALL)]
    found = [one for one in found if one]
    return (found[-1], 1.0 if len(found) == 1 else 0.5) if found else ("", 0.0)


def score_of(text: str) -> tuple[float, float]:
    """Return the score (1 to 10) that a judge wrote, divided by 10, and the score of its format; (0, 0) without one."""
    content, form = tagged(text, "score")
    number = float(content) if re.fullmatch(r"\d+(\.\d+)?", content) else 0.0
    return (number / 10, form) if 1 <= number <= 10 else (0.0, 0.0)


def form_of(tags: int) -> float:
    """Return the score of an answer's format by its number of answer tags: 0 for none, 1 for one, 0.5 for more."""
    return {0: 0.0, 1: 1.0}.get(tags, 0.5)


def earn(episode: Episode, role: str, correct: bool, **parts: float) -> Episode:
    """Set the role of an episode and, unless the episode is unavailable, its reward, the mean of ``parts``.

    Args:
        episode: The episode.
        role: The role, stored in ``Episode.task``.
        correct: Whether the episode counts as correct.
        **parts: The parts of the reward, by name.
    """
    episode.task = role
    if episode.available and episode.steps:
        reward = sum(parts.values()) / len(parts)
        episode.steps[-1].reward += reward - episode.reward
        episode.reward, episode.rewards, episode.correct = reward, parts, correct
    return episode
