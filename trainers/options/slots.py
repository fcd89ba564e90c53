"""The slots of a trainer, with the registry of parts for each slot and a description of each part.

Covered: the registries of every slot, and the summary, options and paper of a part. This module does not load torch.
The first line of a part's docstring, with its formulas as plain text, is its summary; its paper is the first
``arXiv NNNN.NNNNN`` in its docstring or in the docstring of its module.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from rstar2_env.core.formulas import with_plain_formulas
from rstar2_env.core.options.parts import is_factory
from rstar2_env.core.options.registry import Registry
from rstar2_env.core.options.targets import Options, Parameter, options_of
from rstar2_env.rewards.base import REWARDS

from ..advantages.base import ADVANTAGES
from ..hooks.base import HOOKS
from ..losses.base import AGGREGATIONS, CORRECTIONS, LOSSES
from ..rollouts.base import ROLLOUTS
from ..samplers.base import SAMPLERS
from ..selectors.base import SELECTORS

_PAPER = re.compile(r"arXiv[: ]\d{4}\.\d{4,5}")

FIELDS: Mapping[str, Registry[Any]] = {
    "rollout": ROLLOUTS,
    "reward": REWARDS,
    "selector": SELECTORS,
    "advantage": ADVANTAGES,
    "loss": LOSSES,
    "aggregation": AGGREGATIONS,
    "correction": CORRECTIONS,
    "sampler": SAMPLERS,
    "hook": HOOKS,
}
"""The registry of parts for each field of ``PartOptions``."""

_LOSS: Mapping[str, Registry[Any]] = {"term": LOSSES, "aggregation": AGGREGATIONS, "correction": CORRECTIONS}
SLOTS: Mapping[str, Mapping[str, Registry[Any]]] = {
    slot: _LOSS if slot == "loss" else {"": registry} for slot, registry in FIELDS.items() if slot not in _LOSS
}
"""The registries of each slot, by the kind of part; the slot ``loss`` has terms, aggregations and corrections."""

GIVEN = {"sampler": ("ids", "seed", "problems")}
"""Arguments that the trainer, not the user, passes to the parts of a slot."""


@dataclass(frozen=True, slots=True)
class PartInfo:
    """Description of a part, as ``rstar2 list parts`` shows it.

    Attributes:
        name: Name of the part, as options write it.
        kind: Kind of a part of the loss ("term", "aggregation", "correction"); empty in other slots.
        summary: Description in one line, with formulas as plain text.
        paper: Its publication ("arXiv 2402.03300"); empty if there is none.
        options: Its options.
    """

    name: str
    kind: str
    summary: str
    paper: str
    options: tuple[Parameter, ...]

    def record(self) -> dict[str, Any]:
        """Return the description as JSON-compatible values."""
        found: dict[str, Any] = {"name": self.name, "summary": self.summary, "paper": self.paper}
        found["options"] = {one.name: one.default for one in self.options}
        found["required"] = [one.name for one in self.options if one.required]
        return {**found, "kind": self.kind} if self.kind else found


def parts_of(slot: str) -> list[PartInfo]:
    """Return a description of every part of a slot, grouped by kind."""
    return [
        part_info(name, registry.get(name), kind=kind, given=GIVEN.get(slot, ()))
        for kind, registry in SLOTS[slot].items()
        for name in registry
    ]


def part_info(name: str, made_by: Callable[..., Any], *, kind: str = "", given: tuple[str, ...] = ()) -> PartInfo:
    """Return the name, summary, paper and options of a part.

    Args:
        name: Name of the part.
        made_by: The class or function that creates it.
        kind: See ``PartInfo``.
        given: Names of arguments that are not options.
    """
    words = inspect.getdoc(made_by) or ""
    file = sys.modules.get(getattr(made_by, "__module__", ""))
    found = _PAPER.search(words) or _PAPER.search(inspect.getdoc(file) or "")
    options = tuple(one for one in part_options(made_by).parameters.values() if one.name not in given)
    summary = with_plain_formulas(words.partition("\n")[0])
    return PartInfo(name, kind, summary, found[0] if found else "", options)


def part_options(made_by: Callable[..., Any]) -> Options:
    """Return the options of a part; empty if ``made_by`` is not a class or function but the part itself."""
    return options_of(made_by) if is_factory(made_by) else Options({}, open=False)


def given_to(made_by: Callable[..., Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return those of the trainer's ``values`` that the part made by ``made_by`` takes as options, by name."""
    known = part_options(made_by)
    return {name: value for name, value in values.items() if known.open or name in known.parameters}
