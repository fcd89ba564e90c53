"""A Gymnasium space of text: any Unicode string up to a length.

``gymnasium.spaces.Text`` lists its characters one by one: such a space with all Unicode characters takes seconds to
build and hundreds of megabytes, and ``AsyncVectorEnv`` with shared memory silently returns zeros for it. The space of
this module stores only a length. Its vectorized form is a ``Tuple``; ``AsyncVectorEnv`` raises an error unless
``shared_memory=False``.
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym

from rstar2_env.core.errors import ConfigurationError

_SAMPLE_LENGTH = 64
"""Maximum length of a sample: long enough to expose faults of an environment, short enough to read."""

_SURROGATES = range(0xD800, 0xE000)


def check_action(action: object, space: gym.Space[str], advice: str = "") -> None:
    """Reject an action that is not a text of the action space.

    Args:
        action: The value that was passed to ``step``.
        space: The action space, a ``UnicodeText``.
        advice: Advice at the end of the error message for an action that is too long.

    Raises:
        TypeError: The action is not a string.
        ConfigurationError: The action is longer than the space admits.
    """
    if not isinstance(action, str):
        raise TypeError(f"The action must be the text of the turn, a str, not {type(action).__name__}.")
    if action not in space:
        most = getattr(space, "max_length", 0)
        raise ConfigurationError(f"The action has {len(action)} characters; the maximum is {most}{advice}.")


class UnicodeText(gym.Space[str]):
    """Every ``str`` of at most ``max_length`` characters.

    Args:
        max_length: Longest string that belongs to the space, in characters.
        seed: Seed of ``sample``.

    Raises:
        ValueError: ``max_length`` is not a positive integer.
    """

    def __init__(self, max_length: int = 1 << 20, *, seed: int | None = None) -> None:
        if not isinstance(max_length, int) or max_length < 1:
            raise ValueError(f"UnicodeText.max_length must be a positive integer, not {max_length!r}.")
        self.max_length = max_length
        super().__init__(dtype=str, seed=seed)

    def sample(self, mask: Any | None = None, probability: Any | None = None) -> str:
        """Draw a short random string: mostly printable ASCII, with some other Unicode characters.

        Raises:
            ValueError: A mask or probabilities were given; this space supports neither.
        """
        if mask is not None or probability is not None:
            raise ValueError("UnicodeText.sample does not accept mask or probability: omit them.")
        length = int(self.np_random.integers(0, min(_SAMPLE_LENGTH, self.max_length) + 1))
        wide = self.np_random.random(length) < 0.2
        ascii_codes = self.np_random.integers(0x20, 0x7F, size=length)
        any_codes = self.np_random.integers(0, 0x110000, size=length)
        codes = [int(b if w else a) for w, a, b in zip(wide, ascii_codes, any_codes, strict=True)]
        return "".join("\ufffd" if code in _SURROGATES else chr(code) for code in codes)

    def contains(self, x: Any) -> bool:
        """Return whether ``x`` is a string of at most ``max_length`` characters."""
        return isinstance(x, str) and len(x) <= self.max_length

    @property
    def is_np_flattenable(self) -> bool:
        """False: text cannot be flattened into an array."""
        return False

    def __repr__(self) -> str:
        return f"UnicodeText(max_length={self.max_length})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UnicodeText) and other.max_length == self.max_length

    def __hash__(self) -> int:
        return hash((UnicodeText, self.max_length))
