"""The words of the viewer, which the page and the terminal share: names of metrics, columns, roles, reasons.

Covered: ``cards.json`` (the curves of an overview, in order, with the metrics of each) and ``words.json`` (all other
tables, and the markup by which a message is split). The page is built from the same files. Not covered: sentences that
only the page or only the terminal shows.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence, Set
from functools import cache
from importlib import resources
from typing import Any


@cache
def words() -> Mapping[str, Any]:
    """Return the tables of ``words.json``."""
    found: Mapping[str, Any] = _read("words.json")
    return found


@cache
def cards() -> Sequence[Mapping[str, Any]]:
    """Return the cards (curves) of an overview, in order.

    Keys of a card: ``title``, ``section``, ``help``, ``metrics`` (names with labels), and ``form`` (the number format).
    """
    found: Sequence[Mapping[str, Any]] = _read("cards.json")["cards"]
    return found


def metrics_of(card: Mapping[str, Any], names: Set[str]) -> list[tuple[str, str]]:
    """Return the names and labels of a card's metrics that a run has.

    A metric of the card whose name ends in ``/``, such as ``clip/``, stands for all names that begin with it.

    Args:
        card: One of ``cards()``.
        names: Names of the run's metrics.
    """
    found: list[tuple[str, str]] = []
    for name, label in card["metrics"]:
        if name.endswith("/"):
            found += [(one, one.removeprefix(name)) for one in sorted(names) if one.startswith(name)]
        elif name in names:
            found.append((name, label))
    return found


def verdict_words(reason: str, method: str) -> str:
    """Return reason and method of a grade in words, such as ``the answer is correct (number)``."""
    told = words()["verdicts"].get(reason, reason.replace("_", " "))
    return f"{told} ({method.replace('_', ' ')})" if method else told


def selection_words(kept: bool | None, reason: str) -> str:
    """Return whether an episode was selected for training, such as ``kept`` or ``dropped: quota``; empty if unknown."""
    if kept is None:
        return ""
    table: Mapping[str, str] = words()["selection"]
    return table["kept"] if kept else ": ".join(filter(None, (table["dropped"], reason)))


def _read(name: str) -> Any:
    return json.loads(resources.files(__name__).joinpath(name).read_text("utf-8"))
