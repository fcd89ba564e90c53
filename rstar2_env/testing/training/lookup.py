"""Turn the argument of a check (a name with options, a class, or a part) into a function that makes a new part."""

from __future__ import annotations

import copy
import importlib
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.declare import call_with_options
from rstar2_env.core.options.parts import Part, PartSpec, is_factory, read_part
from rstar2_env.core.options.registry import Registry


def slots() -> Any:
    """Import the module with the registries of all slots, by name, since the core packages import no trainer."""
    return importlib.import_module("rstar2_env.trainers.options.slots")


def maker(
    slot: str, part: PartSpec | object, options: Mapping[str, Any], **given: Any
) -> tuple[str, Callable[[], Any]]:
    """Return a function that makes a new part for each use in a check.

    Args:
        slot: Its slot.
        part: A name as a recipe writes it (with options, or ``./file.py:Name``); a class, which makes the part; or the
            part itself, an object or a function, which is copied.
        options: Options of the part, when it is given as a name or a class.
        **given: Arguments that the trainer passes when it makes the part.

    Returns:
        The name of the part for messages, and a function that makes it.

    Raises:
        UnknownNameError: There is no part of that name.
        ConfigurationError: The options do not fit, or were given with a finished object.
    """
    registry: Registry[Callable[..., Any]] = slots().FIELDS[slot]
    what, found, own = _found(registry, part)
    chosen = {**own, **options}
    if is_factory(found):
        return what, partial(call_with_options, f"{registry.kind} {what!r}", found, {**given, **chosen})
    if chosen:
        raise ConfigurationError(
            f"{', '.join(chosen)}: options go with the name or the class of a {registry.kind}, not with one that is "
            "made."
        )
    return what, partial(copy.deepcopy, copy.deepcopy(found))


def given_to(slot: str, part: PartSpec | object, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the trainer's arguments that the part accepts."""
    _, found, _ = _found(slots().FIELDS[slot], part)
    return dict(slots().given_to(found, values))


def _found(registry: Registry[Callable[..., Any]], part: PartSpec | object) -> tuple[str, Any, dict[str, Any]]:
    """Return the name of a part, its class, function or object, and the options in its name."""
    if isinstance(part, (str, Part, Mapping, list, tuple)):
        read = read_part(part, registry.kind)
        return read.name, read.made_by or registry.get(read.name), dict(read.options)
    return getattr(part, "__qualname__", type(part).__qualname__), part, {}
