"""Figures of masks: tokens of the environment that train, and ends of turns that do not train."""

from __future__ import annotations

import pytest
from training_rows import row

from rstar2_env.core.row import Row
from rstar2_env.trainers.step.mask_metrics import mask_metrics

END = 7


def ended(**changes: object) -> Row:
    """A row of two turns, whose last one ends with the token that ends a turn."""
    made = row(0, 4, 12, 1.0)
    made.episode.end = "answered"
    made.completion_ids[-1] = END
    for name, value in changes.items():
        setattr(made, name, value)
    return made


def test_tokens_of_the_environment_that_do_not_train_are_counted() -> None:
    figures = mask_metrics([ended(), ended()], (END,))
    assert figures["mask/environment"] == (0.0, 2.0 * (12 - sum(ended().mask)))
    assert figures["mask/turn_ends"] == (2.0, 2.0)


@pytest.mark.parametrize("trained", [1, 2])
def test_a_token_of_the_environment_that_trains_is_counted(trained: int) -> None:
    mask = list(ended().mask)
    others = [at for at, on in enumerate(mask) if not on]
    for at in others[:trained]:
        mask[at] = 1
    assert mask_metrics([ended(mask=mask)], (END,))["mask/environment"] == (trained, len(others))


@pytest.mark.parametrize("broken", ["mask", "token"])
def test_an_end_of_a_turn_counts_if_it_trains_and_ends_the_turn(broken: str) -> None:
    made = ended()
    if broken == "mask":
        made.mask[-1] = 0
    else:
        made.completion_ids[-1] = END + 1
    assert mask_metrics([made], (END,))["mask/turn_ends"] == (0.0, 1.0)


def test_a_turn_that_a_budget_cut_has_no_end_to_train() -> None:
    made = ended()
    made.episode.end = "tokens"
    assert mask_metrics([made], (END,))["mask/turn_ends"] == (0.0, 0.0)


@pytest.mark.parametrize(("turn_tokens", "last", "figure"), [(6, END + 1, 0.0), (7, END + 1, 1.0), (6, END, 1.0)])
def test_a_turn_that_the_budget_of_turns_cut_has_no_end_to_train(turn_tokens: int, last: int, figure: float) -> None:
    made = ended()
    made.completion_ids[-1] = last
    assert mask_metrics([made], (END,), turn_tokens)["mask/turn_ends"] == (float(last == END), figure)


def test_a_row_that_begins_later_in_its_episode_counts_its_own_tokens() -> None:
    whole = ended()
    start = whole.episode.steps[1].start
    part = Row(whole.episode, [1], whole.completion_ids[start:], [1] * (12 - start), [0.0] * (12 - start), start=start)
    assert mask_metrics([part], (END,)) == {"mask/environment": (0.0, 0.0), "mask/turn_ends": (1.0, 1.0)}


def test_rows_of_experts_and_rows_without_spans_are_left_out() -> None:
    expert, plain = ended(), ended()
    expert.episode.source = "expert"
    plain.episode.steps = []
    assert mask_metrics([expert, plain], (END,)) == {"mask/environment": (0.0, 0.0), "mask/turn_ends": (0.0, 0.0)}
