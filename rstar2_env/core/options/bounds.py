"""Upper bounds of count options such as ``max_tokens``, chosen by a word in the option's name.

Counts that determine memory use have an upper bound, so that a typo in the number is reported and does not exhaust the
memory. An option whose own rule has an upper bound keeps that bound. Not covered: whether a run within these
bounds fits the machine (``rstar2 plan``).
"""

from __future__ import annotations

from rstar2_env.core.errors import ConfigurationError

_BOUNDS: tuple[tuple[frozenset[str], int, str], ...] = (
    (
        frozenset({"tokens", "length", "len"}),
        1 << 24,
        "no published model has a context of more than 10 million tokens",
    ),
    (
        frozenset({"workers", "threads", "flight", "engines", "parallel", "envs"}),
        1 << 14,
        "each of them uses memory as long as the command runs",
    ),
    (
        frozenset({"size", "rank", "step", "samples", "n", "oversample", "refill", "resamples", "tries", "k"}),
        1 << 20,
        "all of them are held in memory together",
    ),
    (
        frozenset({"episodes", "steps", "problems", "traces", "count", "epochs", "turns", "calls", "rows", "plays"}),
        10**9,
        "a thousand a second would take more than eleven days",
    ),
)
_UNBOUNDED = frozenset({"total", "cache", "seed"})


def upper_bound(name: str) -> tuple[int, str] | None:
    """Return the upper bound of a count and the reason for it; ``None`` for an option without one.

    Args:
        name: Name of the option, with or without a dotted prefix. Its last word that names a quantity, such as
            ``tokens`` in ``max_episode_tokens``, defines the bound.
    """
    words = name.rpartition(".")[2].replace("-", "_").split("_")
    if _UNBOUNDED.intersection(words):
        return None
    for word in reversed(words):
        for counted, most, why in _BOUNDS:
            if word in counted:
                return most, why
    return None


def check_count(name: str, value: object, *, written: str | None = None) -> None:
    """Raise an error if a whole number exceeds the upper bound of its option.

    Args:
        name: The option.
        value: The given value: a whole number or a list of them; values of other types are accepted.
        written: The option in the message, such as its flag; ``None`` for its name.

    Raises:
        ConfigurationError: The number is too large.
    """
    for number in value if isinstance(value, (list, tuple)) else (value,):
        if isinstance(number, int) and not isinstance(number, bool) and (found := upper_bound(name)) is not None:
            most, why = found
            if number > most:
                given = f"{number:,}" if number < 10**15 else f"a number of {len(str(number))} digits"
                raise ConfigurationError(
                    f"{written or name} must be at most {most:,}, not {given}: {why}. Give a smaller number."
                )
