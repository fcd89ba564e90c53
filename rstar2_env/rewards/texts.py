"""The parts of an episode's text that components read: the policy's turns, its answer, its length, and repetitions."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import takewhile

from rstar2_env.core.episode import Episode
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.tools.cut import Tokenizer

_IDEOGRAM = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
"""Character ranges, for a regular expression, of Chinese and Japanese, which have no spaces between words."""

_PIECE = re.compile(rf"[{_IDEOGRAM}]|[^\W{_IDEOGRAM}]+|[^\w\s]")


def policy_texts(episode: Episode) -> list[str]:
    """Return the text of each turn of the policy."""
    return [message.content for message in episode.messages if message.role == "assistant"]


def last_turn(episode: Episode) -> str:
    """Return the text of the policy's last turn; an empty text before the first turn."""
    return next((message.content for message in reversed(episode.messages) if message.role == "assistant"), "")


def need_tokens(episode: Episode, name: str) -> None:
    """Check that an episode has token ids; an episode in an environment's wrapper has none.

    Args:
        episode: The episode.
        name: Name of the component that counts tokens, for the error message.

    Raises:
        ConfigurationError: The episode has no token ids.
    """
    if not episode.completion_ids:
        raise ConfigurationError(
            f"The reward component {name!r} counts tokens, but this episode has no token ids: move the component "
            "from the wrapper to the rewards of a trainer."
        )


def pieces(text: str) -> list[str]:
    """Split a text into words and single symbols, which approximate tokens if there is no tokenizer.

    Each Chinese or Japanese character counts as a word.
    """
    return _PIECE.findall(text)


def length_of(text: str, tokenizer: Tokenizer | None) -> int:
    """Return the length of a text in tokens or, without a tokenizer, in words and symbols (see ``pieces``)."""
    return len(pieces(text) if tokenizer is None else tokenizer.encode(text, add_special_tokens=False))


def split_ids(encode: Callable[[str], list[int]], lead: str, text: str) -> tuple[list[int], list[int]]:
    """Tokenize ``lead + text`` as one string, and return the token ids of each part.

    A token that covers the end of ``lead`` and the start of ``text`` belongs to ``text``.
    """
    alone, whole = encode(lead), encode(lead + text)
    shared = len(list(takewhile(lambda pair: pair[0] == pair[1], zip(alone, whole, strict=False))))
    return whole[:shared], whole[shared:]


def repeated_share(items: Sequence[object], n: int) -> float:
    """Return the share of a sequence's n-grams that repeat an earlier n-gram; 0 if the sequence is shorter than n."""
    grams = [tuple(items[at : at + n]) for at in range(len(items) - n + 1)]
    return 1 - len(set(grams)) / len(grams) if grams else 0.0
