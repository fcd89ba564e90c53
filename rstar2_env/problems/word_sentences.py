"""The sentences of ``word_arithmetic``, by split and kind of event.

The splits ``train`` and ``validation`` share the sentences in ``rstar2_env.problems.word_training``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rstar2_env.problems.word_training import TRAINING

NAMES = ("Ava", "Omar", "Lena", "Raj", "Ines", "Paul", "Yuki", "Nora", "Hugo", "Zoe", "Ivan", "Maya")
ITEMS = (
    *("apples", "books", "bricks", "buttons", "cards", "coins", "eggs", "letters", "marbles", "pencils", "plates"),
    *("seeds", "shells", "stamps", "stickers", "tickets", "tiles", "toys"),
)

SENTENCES: Mapping[str, Mapping[str, Sequence[str]]] = {
    "train": TRAINING,
    "test": {
        "open": (
            "{name}'s collection consists of {a} {items}.",
            "On Monday {a} {items} belonged to {name}.",
            "{name} keeps {a} {items} at home.",
        ),
        "open_packs": (
            "{name} stores {b} {items} in each of {a} drawers.",
            "{a} trays lie on {name}'s table, each with {b} {items} on it.",
        ),
        "gain": (
            "Later, {name} receives {a} additional {items}.",
            "An uncle sends {a} {items} to {name}.",
            "The collection increases by {a} {items}.",
        ),
        "loss": (
            "Unfortunately, {name} drops {a} of the {items} into a river.",
            "{name} returns {a} {items} to their owner.",
            "The collection decreases by {a} {items}.",
        ),
        "packs": (
            "A truck delivers {a} cartons, and every carton contains {b} {items}.",
            "{name} earns {b} {items} in each of {a} weeks.",
        ),
        "gifts": (
            "Each of {a} neighbours borrows {b} {items} and does not bring them back.",
            "{name} mails {a} parcels with {b} {items} inside each.",
        ),
        "times": (
            "Over the year the collection grows by a factor of {a}.",
            "Soon there are {a} times as many {items}.",
        ),
        "percent": (
            "A flood ruins {a}% of the {items}.",
            "{name} donates {a} percent of the collection.",
        ),
        "share": (
            "{name} and the others, {a} persons in total, each receive the same number, and only {name}'s part counts.",
            "A machine sorts the {items} into {a} equally full bins, of which {name} gets one.",
        ),
        "ask": (
            "What is the final count of {items}?",
            "With how many {items} does {name} end up?",
        ),
    },
}
"""Sentences by split and kind of event in a story; ``validation`` has the same sentences as ``train``."""
