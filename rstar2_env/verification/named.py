"""Verifiers by name, so that an environment's options can choose one: by rules, with a tolerance, with a model.

Covered: the names, what they take, one judge (with its cache and its budget) for all environments of a process that
name the same one. Not covered: how they decide (see ``verifier`` and ``model``).
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias
from weakref import WeakValueDictionary

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.own_code import Shape, is_class_with
from rstar2_env.core.parts import PartSpec, make_part, read_part
from rstar2_env.core.registry import Registry
from rstar2_env.verification.options import TIMEOUT_S, Options
from rstar2_env.verification.verifier import RuleVerifier, Verifier, numeric

VerifierSpec: TypeAlias = PartSpec | Verifier
"""A verifier as it may be written: a part ("numeric:tolerance=0.02"), or a ``Verifier`` itself."""

VERIFIERS: Registry[Callable[..., Verifier]] = Registry(
    "verifier",
    entry_points="rstar2_env.verifiers",
    shape=Shape(is_class_with("__call__", "acall"), "a class whose objects are called with (gold, answer, question)"),
)


def make_verifier(written: VerifierSpec, *, timeout: float = TIMEOUT_S) -> Verifier:
    """Return a verifier itself, or make the one that is written.

    Args:
        written: A name of ``VERIFIERS`` or one's own code, with options or without; or a verifier.
        timeout: Seconds that a worker may compute, where the verifier goes by rules and says nothing else.

    Raises:
        UnknownNameError: There is no verifier of that name.
        ConfigurationError: An option does not fit, or it is no verifier.
    """
    if isinstance(written, Verifier) and not isinstance(written, type):
        return written
    name = read_part(written, VERIFIERS.kind).name
    made: Any = make_part(VERIFIERS, written, **({_TIMEOUTS[name]: timeout} if name in _TIMEOUTS else {}))
    if not isinstance(made, Verifier):
        raise ConfigurationError(
            f"The verifier {name!r} made {type(made).__name__}: expected an object that is called with (gold, answer, "
            "question) and has the coroutine acall."
        )
    return made


def rules(
    kind: str = "auto",
    *,
    tolerance: float | None = None,
    strict: bool = True,
    undone: str = "arithmetic",
    echo: bool = False,
    timeout: float = TIMEOUT_S,
) -> RuleVerifier:
    """The rules of docs/verification.md.

    Args:
        kind: How to read both texts: "auto", "number", "choice" or "words".
        tolerance: Relative tolerance between numbers; ``None`` compares exactly.
        strict: Apply the strict rules; ``False`` the lenient ones.
        undone: How much work an answer may leave undone: "none", "arithmetic" or "any".
        echo: Accept an expression that was copied out of the question.
        timeout: Seconds that a worker may compute.

    Raises:
        ConfigurationError: An option is none of its values, or out of its range.
    """
    options = Options(kind=kind, tolerance=tolerance, strict=strict, undone=undone, timeout=timeout)
    return RuleVerifier(options, guard_echo=not echo)


def model(
    url: str,
    model: str,
    *,
    api_key_env: str = "",
    rules: str = "rules",
    timeout: float = 30.0,
    max_calls: int | None = None,
    cache: str | None = None,
    verify_timeout: float = TIMEOUT_S,
) -> Verifier:
    """Rules first, then a language model about what they leave open, over an OpenAI-compatible endpoint.

    Args:
        url: Base of the endpoint, such as ``http://localhost:8000/v1``.
        model: The model's name there.
        api_key_env: Environment variable that holds the key, where the endpoint wants one.
        rules: The verifier that goes first, by name ("numeric"), with options in round brackets.
        timeout: Seconds for one request.
        max_calls: Most questions put to the model by all environments of this process that name the same judge.
        cache: An SQLite file that keeps the model's replies; in memory without one.
        verify_timeout: Seconds that the rules may take.

    Raises:
        ConfigurationError: The URL is not one of HTTP, a number is out of its range, or the key is not set.
    """
    from rstar2_env.verification.model import model_verifier  # brings SQLite and an HTTP client

    if api_key_env and api_key_env not in os.environ:
        raise ConfigurationError(f"The environment variable {api_key_env}, which api_key_env names, is not set.")
    key = (url, model, api_key_env, rules, timeout, max_calls, cache, verify_timeout)
    with _lock:
        judge = _judges.get(key)
        if judge is None:
            judge = _judges[key] = model_verifier(
                url,
                model,
                api_key=os.environ[api_key_env] if api_key_env else None,
                rules=make_verifier(rules.removeprefix("(").removesuffix(")"), timeout=verify_timeout),
                timeout=timeout,
                max_calls=max_calls,
                cache=None if cache is None else Path(cache),
            )
        return judge


_TIMEOUTS = {"rules": "timeout", "numeric": "timeout", "model": "verify_timeout"}
_judges: WeakValueDictionary[Any, Any] = WeakValueDictionary()
_lock = threading.Lock()

VERIFIERS.register("rules", rules)
VERIFIERS.register("numeric", numeric)
VERIFIERS.register("model", model)
