"""The penalty of Resample-on-Correct, ``p_err + p_format`` (rStar2-Agent, arXiv 2508.20722, Eqs. 4 and 5).

Covered: the penalty of one episode, which ``roc``, ``quality_ties`` and the reward ``clean_success`` use. Not covered:
how ``roc`` selects episodes by their penalty (``trainers/selectors/resample_on_correct.py``).
"""

from __future__ import annotations

from rstar2_env.core.episode import Episode


def tool_error_penalty(episode: Episode) -> float:
    """Return rStar2-Agent's ``p_err``: the share of calls whose status is an error, in [0, 1]; 0.5 without a call."""
    share = episode.error_share
    return 0.5 if share is None else share


def format_penalty(episode: Episode) -> float:
    """Return rStar2-Agent's ``p_format``: 1 without an answer tag, else min(1, (number of tags - 1) / turns)."""
    if episode.answer_tags == 0:
        return 1.0
    return min(1.0, (episode.answer_tags - 1) / max(episode.turns, 1))


def penalty(episode: Episode) -> float:
    """Return the sum of ``tool_error_penalty`` and ``format_penalty``, rStar2-Agent's ``p_total``, in [0, 2]."""
    return tool_error_penalty(episode) + format_penalty(episode)


def penalties(episode: Episode) -> dict[str, float]:
    """Return an episode's ``penalty`` and the two terms of this sum, which selectors report (``Weighs.weighed``)."""
    return {
        "penalty": penalty(episode),
        "tool_errors": tool_error_penalty(episode),
        "format": format_penalty(episode),
    }
