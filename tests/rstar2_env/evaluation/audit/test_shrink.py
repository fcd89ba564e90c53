"""Claims about shrinking."""

from __future__ import annotations

from rstar2_env.evaluation.audit.shrink import shrunk, shrunk_text


def test_only_the_needed_items_are_kept_in_their_order():
    assert shrunk(range(100), lambda kept: {17, 63, 64} <= set(kept)) == [17, 63, 64]


def test_a_text_is_shrunk_to_what_matters():
    assert shrunk_text("the word PASS anywhere", lambda text: "PASS" in text) == "PASS"


def test_nothing_is_left_of_what_never_mattered():
    assert shrunk_text("abc", lambda text: True) == ""


def test_no_single_item_can_be_left_out():
    def holds(kept):
        return sum(kept) >= 10

    kept = shrunk([3, 1, 4, 1, 5, 9, 2, 6], holds)
    assert holds(kept)
    assert not any(holds(kept[:at] + kept[at + 1 :]) for at in range(len(kept)))


def test_the_number_of_trials_is_bounded():
    trials = []
    shrunk(range(1000), lambda kept: bool(trials.append(1)), most=15)
    assert len(trials) == 15
