"""Merge layers of options: a recipe's defaults, a file, the command line.

Mappings are merged key by key, at any depth. If a layer does not change the part of a slot, the layer's options
override the part's options. If the layer names another part or another engine, the options of the previous one are
dropped. Not covered: valid values (``config``, ``parts``).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.parts import Part, read_part
from rstar2_env.core.options.text import split_list, split_parts

from .config import LISTS
from .record import code_name

_JOINT, _MARK = re.compile(r"\+(?=\s*[\w./(])(?!\d)"), "\0"


def merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Merge the mapping ``over`` into a copy of ``base``, key by key at any depth; values of ``over`` win."""
    found = dict(base)
    for name, value in over.items():
        both = isinstance(value, Mapping) and isinstance(found.get(name), Mapping)
        found[name] = merged(found[name], value) if both else value
    return found


def over_groups(base: Mapping[str, Mapping[str, Any]], over: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Merge the options of the layer ``over`` into a copy of ``base``, group by group.

    Args:
        base: The options of each group; its parts must be converted to ``Part`` objects already.
        over: The options of each group; its parts can have any form that ``over_slot`` accepts.
    """
    found = {group: dict(options) for group, options in base.items()}
    for group, options in over.items():
        held = found.setdefault(group, {})
        if group == "parts":
            for slot, written in options.items():
                held[slot] = over_slot(slot, held.get(slot, [] if slot in LISTS else None), written)
            continue
        engine = options.get("engine")
        if engine is not None and engine != held.get("engine", engine):
            held.pop("engine_options", None)
        found[group] = merged(held, options)
    return found


def over_slot(slot: str, base: Any, written: Any) -> Any:
    """Merge a part, or a list of parts, over the current content of a slot.

    Args:
        slot: Name of the slot, for error messages.
        base: The current content: a ``Part`` or ``None``; for the slots in ``LISTS``, a list of parts.
        written: A part in any form, or a mapping of options for the current part; in lists, a list of parts in any
            form, or a mapping from names of parts to options. ``None`` changes nothing.

    Raises:
        ConfigurationError: ``written`` has none of these forms.
    """
    if written is None:
        return base
    written = _table(written)
    if slot in LISTS:
        return _over_list(slot, list(base), written)
    if isinstance(written, Mapping) and "name" not in written:
        if base is None:
            raise ConfigurationError(
                f"The part {slot} has options but no name: {dict(written)!r}. Add its name: {slot}=NAME."
            )
        return Part(base.name, merged(base.options, written), base.made_by)
    return _over_part(base, _part(slot, written))


def read_slot(slot: str, written: Any) -> Any:
    """Convert a part that is written in any form to a ``Part``; for the slots in ``LISTS``, to a list of parts."""
    return over_slot(slot, [] if slot in LISTS else None, written)


def _over_list(slot: str, base: list[Part], written: Any) -> list[Part]:
    by_name = {part.name: part for part in base}
    if isinstance(written, Mapping) and "name" not in written:
        for name, options in written.items():
            options = _table(options)
            if not isinstance(options, Mapping):
                raise ConfigurationError(
                    f"{slot}.{name} must be the options of the part {name} ({slot}.{name}.OPTION=VALUE), not "
                    f"{options!r}. To replace the list of parts: {slot}=[...]."
                )
            earlier = by_name.get(name, Part(name))
            by_name[name] = Part(name, merged(earlier.options, options), earlier.made_by)
        return list(by_name.values())
    return [_over_part(by_name.get(part.name), part) for part in (_part(slot, one) for one in _listed(written))]


def _over_part(base: Part | None, part: Part) -> Part:
    if base is None or base.name != part.name:
        return part
    return Part(part.name, merged(base.options, part.options), part.made_by or base.made_by)


def _part(slot: str, written: Any) -> Part:
    if isinstance(written, (str, Part, Mapping, Sequence)):
        found = read_part(written, slot)
        return Part(code_name(found.made_by), found.options, found.made_by) if found.made_by is not None else found
    return Part(code_name(written), {}, written)


def _table(written: Any) -> Any:
    """Parse text that begins like a JSON object or list; return any other value unchanged."""
    if isinstance(written, str) and written.lstrip()[:1] in ("{", "["):
        try:
            return json.loads(written)
        except ValueError as error:
            raise ConfigurationError(f"The value {str(written)!r} is not valid JSON: {error}.") from None
    return written


def _listed(written: Any) -> Iterable[Any]:
    if isinstance(written, str):
        return _split(written)
    if isinstance(written, (Mapping, Part)) or not isinstance(written, Sequence):
        return [written]
    # ["name", {...}] is one part with its options, as in other places.
    if (
        len(written) == 2
        and isinstance(written[0], str)
        and isinstance(written[1], Mapping)
        and "name" not in written[1]
    ):
        return [written]
    return written


def _split(text: str) -> list[str]:
    """Split ``a:x=1+b`` into parts: a plus sign separates parts if a name follows; otherwise it is text (``k3+``)."""
    marked = _JOINT.sub(_MARK, text)
    pieces = [piece.replace(_MARK, "+").strip() for piece in split_list(marked, _MARK)]
    return [split_parts(piece)[0] if piece.startswith("(") else piece for piece in pieces if piece]


def each_part(parts: Mapping[str, Any], make: Callable[[str, Part], Part]) -> dict[str, Any]:
    """Return the slots after replacing each part with the result of ``make(slot, part)``."""
    return {
        slot: [make(slot, one) for one in held] if isinstance(held, list) else make(slot, held)
        for slot, held in parts.items()
    }
