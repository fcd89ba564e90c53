"""A mixture of conversations from several sources, as records for supervised fine-tuning."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.problems.files.jsonl import read_objects
from rstar2_env.problems.prepare import Pin, Shelf
from rstar2_env.traces.conversations.base import UnusableError
from rstar2_env.traces.conversations.catalog import Convert, conversation_set
from rstar2_env.traces.conversations.chat import messages


@dataclass(slots=True)
class Mixture:
    """Conversations of several sources.

    Attributes:
        records: Conversations in random order, each a dict with ``messages`` and ``source``.
        rows: Number of rows of each source.
        taken: Number of conversations taken from each source.
        unusable: For each source, the number of unusable rows for each reason.
    """

    records: list[dict[str, Any]] = field(default_factory=list)
    rows: dict[str, int] = field(default_factory=dict)
    taken: dict[str, int] = field(default_factory=dict)
    unusable: dict[str, dict[str, int]] = field(default_factory=dict)

    def report(self) -> dict[str, Any]:
        """The number of ``conversations``, and the attributes ``rows``, ``taken`` and ``unusable``."""
        return {"conversations": len(self.records), "rows": self.rows, "taken": self.taken, "unusable": self.unusable}


def mix_conversations(
    sources: Mapping[str, int | None],
    shelf: Shelf,
    *,
    seed: int = 0,
    report: Callable[[int, int], None] = lambda done, total: None,
) -> Mixture:
    """Load, convert, choose and shuffle conversations.

    Args:
        sources: Maximum number of random conversations from each source; ``None`` takes all. A source is a name in
            ``CONVERSATION_SETS``, or a JSONL file whose lines have the key ``messages``.
        shelf: Location of the data sets.
        seed: Seed of the choice and of the order. The choice from a source depends only on the seed, and on the
            source's name and rows.
        report: Called with the number of finished sources and the number of all sources.

    Raises:
        ConfigurationError: A source cannot be loaded, or has no usable conversation.
        UnknownNameError: There is no such source.
    """
    found = Mixture()
    for number, (name, most) in enumerate(sources.items()):
        report(number, len(sources))
        rows, convert = _rows(name, shelf)
        usable: list[dict[str, Any]] = []
        unusable: Counter[str] = Counter()
        for row in rows:
            try:
                told = [message.record() for message in convert(row)]
            except UnusableError as error:
                unusable[str(error)] += 1
            else:
                usable.append({"messages": told, "source": name})
        if not usable:
            raise ConfigurationError(
                f"None of the {len(rows)} rows of {name!r} is a conversation that can be used: {dict(unusable)}.",
                option="sources",
            )
        order = np.random.default_rng([seed, *name.encode("utf-8")]).permutation(len(usable))
        found.records += [usable[int(at)] for at in order[:most]]
        found.rows[name], found.taken[name] = len(rows), len(order[:most])
        found.unusable[name] = dict(unusable.most_common())
    order = np.random.default_rng([seed, len(found.records)]).permutation(len(found.records))
    found.records = [found.records[int(at)] for at in order]
    report(len(sources), len(sources))
    return found


def is_file(source: str) -> bool:
    """Return whether a source is a JSONL file, and not the name of a set."""
    return Path(source).suffix == ".jsonl"


def _rows(name: str, shelf: Shelf) -> tuple[list[Mapping[str, Any]], Convert]:
    if is_file(name):
        return shelf.checked(name, Pin(name), list(read_objects(shelf.find(name) or Path(name)))), messages
    entry = conversation_set(name)
    rows = shelf.rows(
        name, entry.hub, config=entry.config, split=entry.split, columns=entry.columns, licence=entry.licence
    )
    return rows, entry.convert
