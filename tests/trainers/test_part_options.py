"""The published values of the parts that compute advantages and losses and choose episodes.

A default is part of an algorithm: a run that names a part and no options follows the paper, or the code that the part's
docstring names. ``test_part_options.txt`` has, for each part, its options with their defaults and ranges, and what it
declares to the trainer. A changed value changes the results of every run that relies on it; change the file with it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.trainers.advantages.base import ADVANTAGES
from rstar2_env.trainers.advantages.step_judges import STEP_JUDGES
from rstar2_env.trainers.losses.base import AGGREGATIONS, CORRECTIONS, LOSSES
from rstar2_env.trainers.options.slots import part_options
from rstar2_env.trainers.selectors.base import SELECTORS

REGISTRIES = {
    "advantage": ADVANTAGES,
    "loss": LOSSES,
    "aggregation": AGGREGATIONS,
    "correction": CORRECTIONS,
    "selector": SELECTORS,
    "judge": STEP_JUDGES,
}
DECLARED = ("least", "of_batch", "policy_gradient", "corrected", "reads_advantage", "ties")
"""What a class tells the trainer, besides its options."""
TABLE = Path(__file__).with_suffix(".txt").read_text("utf-8")


def described(part):
    """The lines of a part in the table."""
    known = part_options(part).parameters
    lines = [
        f"{name} = {'required' if one.required else repr(one.default)}{one.rule.range_in_words()}"
        for name, one in known.items()
    ]
    declared = {name: getattr(part, name, None) for name in DECLARED if name not in known}
    return [*lines, *(f"{name}: {value}" for name, value in declared.items() if isinstance(value, (bool, int)))]


ROWS = {lines[0]: lines[1:] for lines in (text.split("\n  ") for text in TABLE.strip().split("\n\n"))}


def test_every_part_is_in_the_table():
    assert set(ROWS) == {f"{slot} {name}" for slot, registry in REGISTRIES.items() for name in registry.names()}


@pytest.mark.parametrize("part", ROWS)
def test_its_options_have_the_published_values(part):
    slot, _, name = part.partition(" ")
    assert described(REGISTRIES[slot].get(name)) == ROWS[part]


def out_of_range(rule):
    """Numbers just beyond each bound of a rule."""
    beyond = {"least": -1, "most": 1, "above": 0, "below": 0}
    return [getattr(rule, name) + by for name, by in beyond.items() if getattr(rule, name) is not None]


@pytest.mark.parametrize("part", ROWS)
def test_a_number_out_of_its_range_is_refused_also_from_python(part):
    """A class checks its options itself, whoever calls it."""
    slot, _, name = part.partition(" ")
    made_by = REGISTRIES[slot].get(name)
    known = part_options(made_by).parameters
    given = {option: "http://localhost:1/v1" for option, one in known.items() if one.required and one.hint is str}
    for option, one in known.items():
        for value in out_of_range(one.rule):
            with pytest.raises(ConfigurationError, match=option):
                made_by(**{**given, option: value})
