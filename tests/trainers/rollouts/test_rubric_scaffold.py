"""``rubric_scaffold``: how much of the rubric is shown to whom and when, and that nobody trains under it."""

from __future__ import annotations

import re

import pytest
from asked_run import SUMS, collector_of, text_of
from small_run import collector

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.testing.training.processes import in_processes
from rstar2_env.trainers.rollouts.rubric_scaffold import RubricScaffold
from rstar2_env.trainers.selectors.keep_all import KeepAll

EIGHT = [1.0, 0.857, 0.714, 0.571, 0.429, 0.286, 0.143, 0.0]


def guess(prompt, rng):
    return f"It is {7 + int(rng.integers(20))}"


def points_of(text):
    return [int(point) for point in re.findall(r"- Point (\d)\.", text)]


@pytest.mark.parametrize(("step", "left"), [(0, 1.0), (20, 0.5)])
def test_the_shares_are_those_of_the_paper(step, left):
    shares = RubricScaffold(steps=101).shares(8, step)  # t = 0 and t = .2
    assert shares == pytest.approx([left * share for share in EIGHT], abs=5e-4)


def test_soon_after_t0_nothing_is_left_and_one_episode_sees_nothing():
    part = RubricScaffold(steps=101)
    assert max(part.shares(8, 25)) <= 0.002
    assert max(part.shares(8, 100)) < 1e-40
    assert part.shares(1, 0) == [0.0]
    assert RubricScaffold(alpha=1e6, steps=2).shares(2, 1) == [0.0, 0.0]


def test_criteria_are_in_the_prompt_that_is_played_and_never_in_the_one_that_trains():
    made = collector_of(RubricScaffold(steps=101), guess, selector=KeepAll())
    batch = made.collect(0)
    for group in batch.groups:
        # 4 criteria: round(4 * (1, 2/3, 1/3, 0))
        assert [len(points_of(one.shown)) for one in group] == [4, 3, 1, 0]
        assert [one.source for one in group] == ["refined"] * 3 + ["policy"]
        assert [points_of(text_of(made, one.played_ids)) for one in group] == [points_of(one.shown) for one in group]
        assert group[0].shown.endswith("- Point 2. (+3)\n- Point 3. (+4)")
    assert len(batch.rows) == 8
    assert all("Point" not in text_of(made, row.prompt_ids) for row in batch.rows)
    assert all(
        one.messages[0].content in {sum_["question"] for sum_ in SUMS} for group in batch.groups for one in group
    )


def test_at_the_end_of_the_run_it_plays_as_plain_does():
    late = collector_of(RubricScaffold(steps=101), guess, selector=KeepAll()).collect(100)
    assert {one.source for group in late.groups for one in group} == {"policy"}


def test_what_is_shown_does_not_depend_on_the_number_of_processes():
    def work(**options):
        made = collector_of(RubricScaffold(steps=101), guess, selector=KeepAll(), problems_per_step=6, **options)
        return made.collect(3)

    shown = [[one.shown for one in group] for group in work().groups]
    two = in_processes(2, lambda ranks: work(ranks=ranks))
    assert [[one.shown for one in group] for batch in two for group in batch.groups] == shown
    assert len({tuple(points_of(group[1])) for group in shown}) > 1  # drawn anew for each


def test_it_needs_rubrics_and_the_length_of_the_run():
    with pytest.raises(ConfigurationError, match=r"needs problems with a rubric"):
        collector(rollout=RubricScaffold(steps=5)).collect(0)
    with pytest.raises(ConfigurationError, match="set its option `steps`"):
        collector(rollout=RubricScaffold()).collect(0)


def test_early_stop_and_a_tail_that_drops_groups_work():
    batch = collector_of(RubricScaffold(steps=101), guess, selector=KeepAll(), early_stop=True, oversample=2).collect(0)
    assert all(sum(decision.kept for decision in group) == 4 for group in batch.decisions)
    made = collector_of(RubricScaffold(steps=101), guess, selector=KeepAll(), tail="carry", spare=0.5)
    assert len({row.episode.group for row in made.collect(0).rows}) == 2
