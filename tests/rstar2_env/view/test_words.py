"""The page explains every selector, every sampler, and every number and reason by which selectors choose."""

from __future__ import annotations

import pytest
from page_words import page_words
from selected_runs import SELECTED

from rstar2_env.trainers.samplers.base import SAMPLERS
from rstar2_env.trainers.selectors.base import SELECTORS
from rstar2_env.trainers.step import collector, selection


@pytest.mark.parametrize(("table", "registry"), [("SELECTORS", SELECTORS), ("SAMPLERS", SAMPLERS)])
def test_every_part_has_a_sentence_and_no_sentence_is_of_a_part_that_is_gone(table, registry):
    # Another test of the process may have registered parts of its own.
    own = {name for name in registry.names() if registry.get(name).__module__.startswith("rstar2_env.")}
    assert set(page_words(table)) == own


def test_a_run_of_every_selector_is_among_those_that_are_tested():
    assert set(SELECTED) == set(SELECTORS.names())


def test_every_number_that_selectors_tell_has_a_sentence_and_no_other():
    told = {name for one in SELECTED.values() for name in one.weighed}
    assert set(page_words("NUMBERS")) == told


def test_every_reason_has_a_sentence():
    own = {collector.SURPLUS, collector.TAIL, selection.ALONE, selection.NO_TOKENS, "cancelled", "unselected"}
    told = {reason for one in SELECTED.values() for reason in one.reasons}
    assert told | own <= set(page_words("REASONS"))
