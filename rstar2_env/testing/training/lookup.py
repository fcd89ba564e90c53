"""What a check is given, as a function that makes the part anew: a name with options, a class, or the part itself."""

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
    """The module that knows the registries of all slots; by name, since the core packages import no trainer."""
    return importlib.import_module("rstar2_env.trainers.options.slots")


def maker(
    slot: str, part: PartSpec | object, options: Mapping[str, Any], **given: Any
) -> tuple[str, Callable[[], Any]]:
    """How to make a part anew, for each use of a check.

    Args:
        slot: Its slot.
        part: A name as a recipe writes it (with options, or ``./file.py:Name``); a class, which makes the part; or the
            part itself, an object or a function, which is copied.
        options: Options of the part, with a name or a class.
        **given: Arguments that the trainer gives to what makes the part.

    Returns:
        What the part is called in messages, and a function that makes it.

    Raises:
        UnknownNameError: There is no part of that name.
        ConfigurationError: The options do not fit, or go with a part that is made already.
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
    """Of what the trainer gives the parts of a slot, that which a part takes."""
    _, found, _ = _found(slots().FIELDS[slot], part)
    return dict(slots().given_to(found, values))


def _found(registry: Registry[Callable[..., Any]], part: PartSpec | object) -> tuple[str, Any, dict[str, Any]]:
    """What a part is called, the class, function or object itself, and the options that it is written with."""
    if isinstance(part, (str, Part, Mapping, list, tuple)):
        read = read_part(part, registry.kind)
        return read.name, read.made_by or registry.get(read.name), dict(read.options)
    return getattr(part, "__qualname__", type(part).__qualname__), part, {}
