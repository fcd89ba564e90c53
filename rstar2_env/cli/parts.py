"""``rstar2 list parts``: list the parts that trainers are built from, by slot."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from rstar2_env.cli._options import Json
from rstar2_env.cli._printing import say
from rstar2_env.cli._trainers import import_trainers

if TYPE_CHECKING:
    from collections.abc import Iterable


def parts_command(
    slot: Annotated[
        str | None,
        typer.Argument(
            metavar="SLOT",
            help="Kind of parts to list: rollout, reward, selector, advantage, loss, aggregation, correction, "
            "sampler or hook [default: list all kinds].",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """List the parts of each kind (slot) that trainers consist of, with their options and defaults.

    A trainer's recipe names a part for each slot; `rstar2 train NAME --set SLOT=PART --set SLOT.OPTION=VALUE` replaces
    that part.
    """
    from rstar2_env.core.errors import UnknownNameError

    slots: Any = import_trainers("options.slots")
    if slot is not None and slot not in slots.FIELDS:
        raise UnknownNameError("slot", slot, slots.FIELDS)
    if slot is not None and slot not in slots.SLOTS:  # --set accepts it like a slot, but it is a kind of loss term
        listed = {"loss": [part for part in slots.parts_of("loss") if part.kind == slot]}
    else:
        listed = {name: slots.parts_of(name) for name in ([slot] if slot else slots.SLOTS)}
    if as_json:
        import json

        from rstar2_env.core.files.json_values import jsonable

        found = {name: [part.record() for part in parts] for name, parts in listed.items()}
        say(json.dumps(jsonable(found)))
        return
    for number, (name, parts) in enumerate(listed.items()):
        for place, kind in enumerate(dict.fromkeys(part.kind for part in parts)):
            say(("\n" if number or place else "") + (f"{name}: {kind}" if kind else name))
            _show(part for part in parts if part.kind == kind)


def _show(parts: Iterable[Any]) -> None:
    from rstar2_env.cli._tables import print_list

    rows: dict[str, str] = {}
    for part in parts:
        summary = part.summary.replace("``", "")
        if part.paper and part.paper not in summary:
            summary = f"{summary.removesuffix('.')} ({part.paper})."
        rows[f"  {part.name}"] = f"{summary}{_options(part.options)}"
    print_list(rows)


def _options(options: Iterable[Any]) -> str:
    shown = [option.name if option.required else f"{option.name}={_text(option.default)}" for option in options]
    return f" Options: {', '.join(shown)}." if shown else ""


def _text(value: Any) -> str:
    import json

    return json.dumps(value) if isinstance(value, (bool, list, tuple)) else "none" if value is None else str(value)
