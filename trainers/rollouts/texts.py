"""The question and the answer in an episode, as texts that a rollout part can put into further prompts."""

from __future__ import annotations

from rstar2_env.core.episode import Episode


def question_of(episode: Episode) -> str:
    """Return the user's first message; empty if there is none."""
    return next((message.content for message in episode.messages if message.role == "user"), "")


def answer_of(episode: Episode) -> str:
    """Return all text after the question: the policy's turns, and the environment's messages between them."""
    first = next((at for at, message in enumerate(episode.messages) if message.role == "assistant"), None)
    return "" if first is None else "\n".join(message.content for message in episode.messages[first:])
