"""What a player writes into the record of an episode, token by token."""

from __future__ import annotations

from collections.abc import Sequence

from rstar2_env.core.episode import Episode


def extend(episode: Episode, ids: Sequence[int], mask: int, logprobs: Sequence[float]) -> None:
    """Add tokens to an episode.

    Args:
        episode: The episode.
        ids: The tokens.
        mask: 1 where the policy wrote them, else 0.
        logprobs: Their log-probabilities.
    """
    episode.completion_ids += ids
    episode.mask += [mask] * len(ids)
    episode.logprobs += logprobs


def drop_unanswered(episode: Episode) -> None:
    """Leave out what the environment showed and the policy could not answer any more."""
    while episode.mask and not episode.mask[-1]:
        for entries in (episode.completion_ids, episode.mask, episode.logprobs):
            entries.pop()
    if episode.turns and episode.messages[-1].role != "assistant":
        episode.messages.pop()


def show_instead(episode: Episode, text: str, ids: list[int]) -> None:
    """Note that an episode is played under another prompt than the one it trains under.

    Args:
        episode: The episode.
        text: The user's message in that prompt.
        ids: That prompt.
    """
    episode.shown, episode.shown_ids, episode.source = text, ids, "refined"
