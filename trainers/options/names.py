"""Find the group of an option that is written with its short name.

``steps`` is ``run.steps``, ``env.max_turns`` is ``rollout.env_options.max_turns``, ``selector`` is ``parts.selector``.
Covered: the group of a name, and errors about names that no group or several groups have. Not covered: values
(``config``), and the options of parts (``parts``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rstar2_env.core.errors import ConfigurationError, UnknownOptionError
from rstar2_env.core.options.declare import nested_options
from rstar2_env.core.options.rules import did_you_mean
from rstar2_env.core.options.targets import options_of

from .config import GROUPS, LISTS

EVAL = "eval"
FIRST = "rollout"
_HOLDERS = {"env": "env_options", "engine": "engine_options"}
"""Options whose value is a mapping, by the prefix of their short names: ``env.NAME`` and ``engine.NAME``."""

OptionGroups = Mapping[str, Iterable[str]]
"""Names of the options in each group."""


def known_names() -> dict[str, tuple[str, ...]]:
    """Return the names of the options in each group of ``TrainConfig``."""
    return {group: tuple(options_of(record).parameters) for group, record in GROUPS.items()}


def place(name: str, groups: OptionGroups) -> tuple[str, str]:
    """Return the group and the name of an option that is written without its group.

    The group is ``rollout`` if it has the option, else the only group that has it; ``eval`` is not considered.
    ``parts.rollout`` must be written in full, since ``rollout`` is a group.

    Args:
        name: The name of the option, as the user wrote it.
        groups: The names of the options in each group.

    Raises:
        UnknownOptionError: No group has the option; the message suggests the nearest.
        ConfigurationError: Several groups have the option, but ``rollout`` does not; the message lists the full names.
    """
    having = [group for group, names in groups.items() if name in names and group != EVAL]
    if FIRST in having:
        return FIRST, name
    if len(having) == 1:
        return having[0], name
    if having:
        full = " or ".join(f"{group}.{name}" for group in having)
        raise ConfigurationError(
            f"The option name {name!r} is ambiguous, because several groups of options contain it: write {full}."
        )
    raise UnknownOptionError(f"There is no option {name!r}.{_nearest(name, groups)}")


def in_groups(options: Mapping[str, Any], groups: OptionGroups | None = None) -> dict[str, dict[str, Any]]:
    """Put options into their groups, whether they are written with or without the group.

    Args:
        options: Groups as mappings, options by their short names, or both.
        groups: The names of the options in each group; by default the names in ``TrainConfig``.

    Returns:
        A mapping for each group with options. Values, including text, are unchanged.

    Raises:
        UnknownOptionError: No group has an option with that name; the message suggests the nearest, with its group.
        ConfigurationError: A short name is ambiguous, a group is not a mapping, or an option is given twice.
    """
    known = known_names() if groups is None else groups
    found: dict[str, dict[str, Any]] = {}
    written: dict[tuple[str, str], str] = {}

    def put(group: str, name: str, value: Any, full: str) -> None:
        if isinstance(value, Mapping):
            name = _HOLDERS.get(name, name)
        if name not in known[group]:
            raise UnknownOptionError(f"There is no option {group}.{name}.{_nearest(name, known, group)}")
        held = found.setdefault(group, {})
        earlier = written.setdefault((group, name), full)
        if name in held and not (isinstance(value, Mapping) and isinstance(held[name], Mapping)):
            raise ConfigurationError(
                f"The option {group}.{name} is given twice, as {earlier!r} and as {full!r}: omit one of them."
            )
        written[group, name] = full
        held[name] = {**held[name], **value} if name in held else value

    for name, value in options.items():
        if name in known and not (name == "model" and not _is_table(value)):
            if name == FIRST and isinstance(value, str) and not value.lstrip().startswith("{"):
                raise ConfigurationError(
                    "rollout is a group of options, not an option: write rollout.NAME=VALUE for an "
                    f"option of this group, or parts.rollout={value} to choose the part that plays the "
                    "groups."
                )
            for inner, one in nested_options(name, value).items():
                put(name, inner, one, f"{name}.{inner}")
        elif name == "model":
            put("model", "path", value, name)
        elif name in _HOLDERS and isinstance(value, Mapping):
            put(FIRST, name, value, name)
        else:
            group, inner = place(name, known)
            put(group, inner, value, name)
    return found


def full_name(name: str) -> str:
    """Return an option's full name; a name that belongs to no group, or to several, is returned unchanged.

    Names of entries in an option, such as ``env.max_turns``, are completed too: ``rollout.env_options.max_turns``.
    """
    known = known_names()
    first, *more = name.split(".")
    if first == "model" and not more:
        return "model.path"
    if first in _HOLDERS and more:
        group, more = FIRST, [first, *more]
    elif first in known and more:
        group = first
    else:
        try:
            group, first = place(first, known)
        except ConfigurationError:
            return name
        more = [first, *more]
    return ".".join([group, _HOLDERS.get(more[0], more[0]) if len(more) > 1 else more[0], *more[1:]])


def _is_table(value: Any) -> bool:
    return isinstance(value, Mapping) or (isinstance(value, str) and value.lstrip().startswith("{"))


def _nearest(name: str, groups: OptionGroups, group: str = "") -> str:
    """Return a hint for an unknown name: similar options with their groups; options of ``group`` come first."""
    elsewhere = [f"{other}.{name}" for other in groups if name in groups[other] and other != group]
    joined = {f"{other}_{one}": f"{other}.{one}" for other in groups for one in groups[other]}
    if name in joined:
        elsewhere = [joined[name]]
    if elsewhere:
        return f" Did you mean {' or '.join(map(repr, elsewhere))}?"
    if not group and (slots := _slots_of(name)):
        written = " or ".join(f"{slot}.{name}.OPTION=VALUE" if slot in LISTS else f"{slot}={name}" for slot in slots)
        return f" {name!r} is the name of a part: write {written}."
    by_name: dict[str, str] = {}
    for other in sorted(groups, key=lambda one: (one != group, one == EVAL)):
        for one in groups[other]:
            by_name.setdefault(one, f"{other}.{one}")
    mine = did_you_mean(name, groups[group]) if group else ""
    hint = mine or did_you_mean(name, by_name) or did_you_mean(name, groups)
    for one, full in by_name.items():
        hint = hint.replace(f"{one!r}?", f"{full!r}?") if f" {one!r}?" in hint else hint
    if hint:
        return hint
    listing = ", ".join(groups[group]) if group else ", ".join(groups)
    if group:
        return f" {group} has: {listing}."
    return f" The groups are {listing}; `rstar2 list trainers NAME` lists their options."


def _slots_of(name: str) -> list[str]:
    """Return the slots that have a part with that name."""
    from .slots import FIELDS  # here, since only a message needs the parts

    return [slot for slot, registry in FIELDS.items() if name in registry]


def by_full_name(layer: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a layer by their full names: ``optim.learning_rate``, ``rollout.env_options.problems``."""
    found: dict[str, Any] = {}
    for group, options in in_groups(layer).items():
        for name, value in options.items():
            inner = value if isinstance(value, Mapping) else {}
            found |= {f"{group}.{name}.{each}": one for each, one in inner.items()} or {f"{group}.{name}": value}
    return found
