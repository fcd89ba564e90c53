"""Creates verifiers by name, for the options of environments: rules, rules with a tolerance, a model as judge.

Covered: the names and their options. All environments of a process that name the same model judge share one object,
with its cache and its budget. Not covered: how verifiers decide (see ``verifier`` and ``model``).
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeAlias
from weakref import WeakValueDictionary

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.net.chat.responses import ChatApi
from rstar2_env.core.options.parts import PartSpec, make_part, read_part
from rstar2_env.core.options.registry import Registry
from rstar2_env.core.options.user_code import Shape, is_class_with
from rstar2_env.verification.options import TIMEOUT_S, VerifyOptions
from rstar2_env.verification.verifier import RuleVerifier, Verifier, numeric

VerifierSpec: TypeAlias = PartSpec | Verifier
"""Specification of a verifier: text such as "numeric:tolerance=0.02", or a ``Verifier`` object."""

VERIFIERS: Registry[Callable[..., Verifier]] = Registry(
    "verifier",
    entry_points="rstar2_env.verifiers",
    shape=Shape(is_class_with("__call__", "acall"), "a class whose objects are called with (gold, answer, question)"),
)


def make_verifier(written: VerifierSpec, *, timeout_s: float = TIMEOUT_S) -> Verifier:
    """Create a verifier from its specification; a verifier object is returned unchanged.

    Args:
        written: A name in ``VERIFIERS`` or the user's own code, with or without options; or a verifier.
        timeout_s: Seconds that a worker may compute for a verifier that applies rules, unless ``written`` sets them.

    Raises:
        UnknownNameError: There is no verifier with this name.
        ConfigurationError: An option does not fit, or the object is not a verifier.
    """
    if isinstance(written, Verifier) and not isinstance(written, type):
        return written
    name = read_part(written, VERIFIERS.kind).name
    made: Any = make_part(VERIFIERS, written, **({_TIMEOUTS[name]: timeout_s} if name in _TIMEOUTS else {}))
    if not isinstance(made, Verifier):
        raise ConfigurationError(
            f"The verifier {name!r} returned an object of type {type(made).__name__}; expected an object that can be "
            "called with (gold, answer, question) and has a coroutine acall."
        )
    return made


def rules(
    kind: str = "auto",
    *,
    tolerance: float | None = None,
    strict: bool = True,
    undone: str = "none",
    echo: bool = False,
    timeout_s: float = TIMEOUT_S,
) -> RuleVerifier:
    """Create a verifier that applies the rules of docs/verification-rules.md.

    Args:
        kind: How to read both texts: "auto", "number", "choice" or "words".
        tolerance: Relative tolerance between numbers; ``None`` compares exactly.
        strict: Whether to apply the strict rules, or the lenient ones.
        undone: How much work an answer may leave uncomputed: "none", "arithmetic" or "any".
        echo: Whether to accept an expression that was copied from the question.
        timeout_s: Seconds that a worker may compute.

    Raises:
        ConfigurationError: An option is not among its allowed values, or is out of its range.
    """
    options = VerifyOptions(kind=kind, tolerance=tolerance, strict=strict, undone=undone, timeout_s=timeout_s)
    return RuleVerifier(options, guard_echo=not echo)


def model(
    url: str,
    model: str,
    *,
    api_key_env: str = "",
    rules: str = "rules",
    timeout_s: float = 30.0,
    max_calls: int | None = None,
    cache: str | None = None,
    api: ChatApi = "chat",
    verify_timeout_s: float = TIMEOUT_S,
) -> Verifier:
    """Create a verifier that applies rules first, and asks a language model if they cannot decide.

    Args:
        url: Base of the endpoint, such as ``http://localhost:8000/v1``.
        model: Name of the model at the endpoint.
        api_key_env: Environment variable that holds the API key, if the endpoint requires one.
        rules: The verifier that is applied first: its name ("numeric"), or its name and options in parentheses.
        timeout_s: Seconds for one request.
        max_calls: Largest number of requests to the model, over all environments of this process that name the same
            judge; ``None`` sets no limit.
        cache: An SQLite file that keeps the model's replies; ``None`` keeps them in memory.
        api: API of the endpoint: ``chat`` (chat completions) or ``responses``.
        verify_timeout_s: Seconds that a worker may compute for the rules.

    Raises:
        ConfigurationError: The URL is not an HTTP URL, a number is outside its range, the API is unknown, or the key is
            not set.
    """
    from rstar2_env.core.net.chat.asking import key_from
    from rstar2_env.verification.model import model_verifier  # loads SQLite and an HTTP client

    options: dict[str, Any] = {"timeout_s": timeout_s, "max_calls": max_calls, "cache": cache, "api": api}
    options["api_key"] = key_from(api_key_env)
    key = (url, model, api_key_env, rules, timeout_s, max_calls, cache, api, verify_timeout_s)
    with _lock:
        judge = _judges.get(key)
        if judge is None:
            first = make_verifier(rules.removeprefix("(").removesuffix(")"), timeout_s=verify_timeout_s)
            judge = _judges[key] = model_verifier(url, model, rules=first, **options)
        return judge


_TIMEOUTS = {"rules": "timeout_s", "numeric": "timeout_s", "model": "verify_timeout_s"}
_judges: WeakValueDictionary[Any, Any] = WeakValueDictionary()
_lock = threading.Lock()

VERIFIERS.register("rules", rules)
VERIFIERS.register("numeric", numeric)
VERIFIERS.register("model", model)
