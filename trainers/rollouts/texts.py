"""What a rollout part reads of an episode when it asks the policy about it: the question, and what followed."""

from __future__ import annotations

from rstar2_env.core.episode import Episode


def question_of(episode: Episode) -> str:
    """The user's first message; empty where there is none."""
    return next((message.content for message in episode.messages if message.role == "user"), "")


def answer_of(episode: Episode) -> str:
    """All that followed the question: the policy's turns, and between them what the environment showed."""
    first = next((at for at, message in enumerate(episode.messages) if message.role == "assistant"), None)
    return "" if first is None else "\n".join(message.content for message in episode.messages[first:])
