"""Makes new parts from the argument of a check (a name with options, a class, or a part), and runs the checks."""

from __future__ import annotations

import copy
import importlib
import json
import pickle
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any, TypeVar

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.declare import call_with_options
from rstar2_env.core.options.parts import Part, PartSpec, is_factory, read_part
from rstar2_env.core.options.registry import Registry
from rstar2_env.rewards.text_function import as_score
from rstar2_env.testing.runner import run_checks

T = TypeVar("T")
H = TypeVar("H")


class LazyModule:
    """A module that is imported when one of its attributes is first read; used for torch and modules of ``trainers``.

    Args:
        name: Name of the module.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        """Import the module and read the attribute."""
        return getattr(importlib.import_module(self._name), attribute)


torch: Any = LazyModule("torch")
samplers: Any = LazyModule("rstar2_env.trainers.samplers.base")
slots: Any = LazyModule("rstar2_env.trainers.options.slots")


def check_part(
    slot: str,
    part: PartSpec | object,
    options: Mapping[str, Any],
    checks: Mapping[str, Callable[[H], None]],
    harness: Callable[[Callable[[], Any]], H],
    *,
    skip: Collection[str],
    kind: str = "",
) -> list[str]:
    """Run every check of a suite on one part of a trainer.

    Args:
        slot: Slot of the trainer that the part fills, such as ``"loss"``.
        part: The part; see ``maker``.
        options: Options of the part.
        checks: The checks of the suite, by name.
        harness: Function that makes the harness; its argument is the function that makes new parts.
        skip: Names of checks to leave out.
        kind: The kind of part in messages; by default the name of the slot.

    Returns:
        The names of the checks that were made.

    Raises:
        ConformanceError: The part breaks a check.
        UnknownNameError: There is no part with this name, or ``skip`` contains a name that is not a check.
        ConfigurationError: An option is unknown or invalid.
    """
    name, make = maker(slot, part, options)
    make()  # errors about the options are raised unchanged
    return run_checks(f"The {kind or slot} {name}", checks, harness(make), skip=skip)


def pickled(part: T) -> T:
    """Return a copy of a part, made by pickling and unpickling it."""
    copied: T = pickle.loads(pickle.dumps(part))
    return copied


def resumed(part: Any, new: Any) -> Any:
    """Write the state of ``part`` as JSON, load it into ``new``, and return ``new``."""
    new.load_state_dict(json.loads(json.dumps(part.state_dict(), allow_nan=False)))
    return new


def maker(
    slot: str, part: PartSpec | object, options: Mapping[str, Any], **given: Any
) -> tuple[str, Callable[[], Any]]:
    """Return a function that makes a new part for each use in a check.

    Args:
        slot: Slot of the trainer that the part fills, such as ``"loss"``.
        part: A name as a recipe writes it (with options, or ``./file.py:Name``); a class, which makes the part; or the
            part itself, an object or a function, which is copied.
        options: Options of the part, when it is given as a name or a class.
        **given: Arguments that the trainer passes when it makes the part.

    Returns:
        The name of the part for messages, and a function that makes it.

    Raises:
        UnknownNameError: There is no part with this name.
        ConfigurationError: The part does not accept the options, or ``part`` is an object and options were given.
    """
    registry: Registry[Callable[..., Any]] = slots.FIELDS[slot]
    what, found, own = _found(registry, part)
    chosen = {**own, **options}
    if is_factory(found):
        return what, partial(call_with_options, f"{registry.kind} {what!r}", found, {**given, **chosen})
    if chosen:
        raise ConfigurationError(
            f"The options {', '.join(chosen)} apply only to a {registry.kind} that is given by name or class, "
            f"not to a {registry.kind} that is already an object: omit them."
        )
    if slot == "reward":
        found = as_score(found)
    return what, partial(copy.deepcopy, copy.deepcopy(found))


def given_to(slot: str, part: PartSpec | object, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the items of ``values`` (arguments that a trainer offers when it makes a part) that the part accepts."""
    _, found, _ = _found(slots.FIELDS[slot], part)
    return dict(slots.given_to(found, values))


def _found(registry: Registry[Callable[..., Any]], part: PartSpec | object) -> tuple[str, Any, dict[str, Any]]:
    """Return a part's name, the part itself (a class, function or object), and the options that its spec sets."""
    if isinstance(part, (str, Part, Mapping, list, tuple)):
        read = read_part(part, registry.kind)
        return read.name, read.made_by or registry.get(read.name), dict(read.options)
    return getattr(part, "__qualname__", type(part).__qualname__), part, {}
