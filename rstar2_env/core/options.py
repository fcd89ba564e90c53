"""Options given by name: read from text (``level=3``), and checked against the function that takes them."""

from __future__ import annotations

import difflib
import inspect
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from rstar2_env.core.errors import ConfigurationError

T = TypeVar("T")


def parse_options(written: Iterable[str]) -> dict[str, Any]:
    """Read ``name=value`` pairs. A value that is JSON (``3``, ``true``, ``[1, 2]``) is read as such, else as text.

    Raises:
        ConfigurationError: A pair is not ``name=value``, or a name comes twice.
    """
    options: dict[str, Any] = {}
    for pair in written:
        name, sign, value = pair.partition("=")
        name = name.strip()
        if not sign or not name.isidentifier():
            raise ConfigurationError(f"Expected an option as name=value, got {pair!r}.")
        if name in options:
            raise ConfigurationError(f"The option {name!r} is given twice.")
        try:
            options[name] = json.loads(value)
        except ValueError:
            options[name] = value
    return options


def call_with_options(what: str, function: Callable[..., T], options: Mapping[str, Any]) -> T:
    """Call ``function(**options)``, and word a name that it does not take as a mistake of the user.

    Args:
        what: Names the part in the message ("agent 'oracle'").
        function: Takes its options by name.
        options: What the user gave.

    Raises:
        ConfigurationError: An option is unknown, or one that it must have is missing.
    """
    signature = inspect.signature(function)
    try:
        signature.bind(**options)
    except TypeError as error:
        known = list(signature.parameters)
        near = [match for name in options if name not in known for match in difflib.get_close_matches(name, known, n=1)]
        hint = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
        listing = ", ".join(known) or "none"
        raise ConfigurationError(
            f"The options of the {what} do not fit: {error}.{hint} It takes: {listing}."
        ) from error
    return function(**options)
