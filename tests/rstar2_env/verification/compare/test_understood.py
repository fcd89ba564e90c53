"""A stated change is a signed value: its direction, relative to the one that the question asks for."""

from __future__ import annotations

from itertools import product

import pytest

from rstar2_env.verification.compare.understood import without_changes
from rstar2_env.verification.read.nodes import Relation, key
from rstar2_env.verification.read.readings import readings
from rstar2_env.verification.read.vocabulary import LISTS

VERBS = [(verb, 1) for verb in sorted(LISTS["rising"])] + [(verb, -1) for verb in sorted(LISTS["falling"])]


def value_of(answer: str, question: str | None) -> str | None:
    """The value of a stated change; ``None`` if the statement has none."""
    found = without_changes(readings(answer)[0], question)
    return key(found.sides[-1]) if isinstance(found, Relation) else None


def test_no_word_rises_and_falls():
    assert LISTS["rising"].isdisjoint(LISTS["falling"])


def test_every_verb_counts_in_the_direction_that_the_question_asks_for():
    for (said, sign), (asked, direction) in product(VERBS, VERBS):
        wanted = key(readings("8%" if sign == direction else "-8%")[0])
        assert value_of(f"sales {said} by 8%", f"By what percent did sales {asked}?") == wanted, (said, asked)


@pytest.mark.parametrize("answer", ["sales fell by 8%", "sales fell 8%", "8% fall", "an 8% fall", "a 8% fall"])
def test_a_change_has_the_same_value_in_every_form(answer):
    tree = without_changes(readings(answer)[0], "What was the percent change in sales?")
    assert key(tree.sides[-1] if isinstance(tree, Relation) else tree) == key(readings("-8%")[0])


@pytest.mark.parametrize(
    "question", [None, "", "What percent of the sales is left?", "By what percent did sales rise or fall?"]
)
def test_without_one_direction_in_the_question_a_change_has_no_value(question):
    assert value_of("sales fell by 8%", question) is None
