"""What a step of the collector plays, keeps and makes rows of, and which parts it refuses."""

from __future__ import annotations

import numpy as np
import pytest
from small_run import MIXED, SAME, SIGNS, SmallPlayer, advantages, by_group, collector

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.row import Row
from rstar2_env.rewards import Component
from rstar2_env.trainers.advantages.group import GroupMean
from rstar2_env.trainers.advantages.reinforce import Reinforce
from rstar2_env.trainers.selectors.keep_all import KeepAll


def test_only_the_episodes_that_train_are_rows_and_every_episode_is_told():
    batch = collector(by_group([MIXED, SAME, [1.0, "unavailable", 0.0, 1.0], MIXED])).collect(0)
    assert len(batch.rows) == 4 + 3 + 4
    assert advantages(batch)[:4] == pytest.approx([0.8660 * sign for sign in SIGNS], abs=1e-3)
    assert advantages(batch)[4:7] == pytest.approx([0.5773, -1.1547, 0.5773], abs=1e-3)
    reasons = [[decision.reason for decision in group] for group in batch.decisions]
    assert reasons == [[""] * 4, ["equal"] * 4, ["", "unavailable", "", ""], [""] * 4]
    assert [[decision.kept for decision in group] for group in batch.decisions][1] == [False] * 4
    assert batch.decisions[0][1].advantage == pytest.approx(-0.8660, abs=1e-3)
    assert [len(group) for group in batch.groups] == [4] * 4
    assert (batch.rejected, batch.refilled, batch.missing) == (1, 0, 1)
    assert all(row.trains for row in batch.rows)


def test_every_row_has_the_share_of_its_group_that_was_right():
    """Of all that were played and count, those that a selector left out too."""
    batch = collector(by_group([MIXED, [1.0, "unavailable", 0.0, 1.0], [1.0, 0.0, 0.0, 0.0], SAME])).collect(0)
    assert [row.columns["accuracy"] for row in batch.rows] == pytest.approx([0.5] * 4 + [2 / 3] * 3 + [0.25] * 4)
    chosen = collector(by_group([[1.0, 0.0, 0.0, 0.0]] * 4), group_size=2, oversample=2, selector=KeepAll()).collect(0)
    assert [row.columns["accuracy"] for row in chosen.rows] == [0.25] * 8


class Measured(GroupMean):
    """An advantage that needs to know more of the policy than the rewards."""

    needs = frozenset({"answer"})

    def __call__(self, groups, ranks):
        assert all(one.measured["answer"] == [0.5] for group in groups for one in group)
        return super().__call__(groups, ranks)


def test_what_an_advantage_needs_of_the_policy_is_measured_of_the_episodes_that_train():
    seen = []

    def measure(part, groups):
        seen.append((type(part), [len(group) for group in groups]))
        for one in (one for group in groups for one in group):
            one.measured["answer"] = [0.5]

    collector(by_group([MIXED, SAME, MIXED, MIXED]), advantage=Measured(), measure=measure).collect(0)
    assert seen == [(Measured, [4, 4, 4])]
    collector(by_group([MIXED] * 4), measure=lambda *_: pytest.fail("nothing was to be measured")).collect(0)


def test_an_advantage_that_needs_what_nobody_measures_is_refused():
    with pytest.raises(ConfigurationError, match=r"Measured needs the measurements answer"):
        collector(advantage=Measured())


def test_every_episode_of_a_group_starts_alike_and_draws_for_itself():
    player = SmallPlayer()
    batch = collector(player, group_size=3).collect(0)
    assert len(player.played) == 12
    for number, group in enumerate(batch.groups):
        assert {(one.group, one.seed, one.problem_id) for one in group} == {
            (number, group[0].seed, group[0].problem_id)
        }
        assert len({tuple(one.completion_ids) for one in group}) == 3


def test_it_is_the_same_again_and_differs_by_step_and_seed():
    def ids(seed, step):
        return [row.completion_ids for row in collector(seed=seed).collect(step).rows]

    assert ids(1, 5) == ids(1, 5)
    assert ids(1, 5) != ids(1, 6)
    assert ids(1, 5) != ids(2, 5)


def test_a_lone_survivor_trains_only_where_the_advantage_needs_no_group():
    alone = [[1.0, "unavailable", "cancelled", "unavailable"], MIXED]
    batch = collector(by_group(alone), selector=KeepAll(), problems_per_step=2).collect(0)
    assert [decision.reason for decision in batch.decisions[0]] == [
        "alone",
        "unavailable",
        "cancelled",
        "unavailable",
    ]
    assert len(batch.rows) == 4
    options = {"selector": KeepAll(), "advantage": Reinforce(), "problems_per_step": 2}
    batch = collector(by_group(alone), **options).collect(0)
    assert advantages(batch) == pytest.approx([0.4, 0.4, -0.6, -0.6, 0.4])


def test_a_group_of_one_needs_an_advantage_without_groups():
    with pytest.raises(ConfigurationError, match=r"GroupMean compares .* at least 2 .*is 1\..*\(group_size=\.\.\.\)"):
        collector(advantage=GroupMean(), group_size=1)
    batch = collector(advantage=Reinforce(), selector=KeepAll(), group_size=1).collect(0)
    assert len(batch.rows) == 4


def test_an_episode_without_a_token_of_the_policy_does_not_train():
    def silent(episode, ctx):
        episode.mask = [0] * len(episode.mask) if episode.reward == 0.25 else episode.mask
        return episode.reward

    player = by_group([[1.0, 0.25, 0.0, 0.0]])
    batch = collector(player, rewards=[Component("r", silent)], problems_per_step=1).collect(0)
    assert [decision.reason for decision in batch.decisions[0]] == ["", "no_tokens", "", ""]
    assert len(batch.rows) == 3


def test_too_many_failures_end_the_step():
    with pytest.raises(RuntimeError, match="every episode failed"):
        collector(by_group([["unavailable"] * 4])).collect(0)


def test_no_more_than_is_allowed_play_at_once():
    player = SmallPlayer(delay_s=lambda rng: 0.002, max_in_flight=3)
    collector(player).collect(0)
    assert player.most_in_flight == 3


def test_a_rollout_part_may_make_several_rows_of_an_episode():
    class Halves:
        async def __call__(self, starts, size, play):
            return [
                [await play.episode(start, group=group, member=member) for member in range(size)]
                for group, start in enumerate(starts)
            ]

        def rows(self, episode, advantage):
            middle = len(episode.completion_ids) // 2
            parts = (slice(0, middle), slice(middle, None))
            return [
                Row(
                    episode,
                    episode.prompt_ids,
                    episode.completion_ids[part],
                    episode.mask[part],
                    episode.logprobs[part],
                    advantage,
                    start=part.start,
                )
                for part in parts
            ]

    batch = collector(by_group([MIXED]), rollout=Halves(), problems_per_step=1).collect(0)
    assert len(batch.rows) == 8
    assert advantages(batch)[::2] == advantages(batch)[1::2]


def test_an_advantage_may_be_one_number_a_token():
    class ByToken:
        def __call__(self, groups, ranks):
            return [[np.arange(len(episode.completion_ids)) - 1.0 for episode in group] for group in groups]

    batch = collector(by_group([MIXED]), advantage=ByToken(), problems_per_step=1).collect(0)
    row = batch.rows[0]
    assert row.advantage.shape == (len(row.completion_ids),)
    expected = np.abs(np.arange(len(row.completion_ids)) - 1.0).mean()
    assert batch.decisions[0][0].advantage == pytest.approx(expected)


@pytest.mark.parametrize("wrong", [[1.0], [float("nan")] * 4, [np.zeros(99)] * 4])
def test_an_advantage_that_fits_no_episode_is_refused(wrong):
    class Wrong:
        def __call__(self, groups, ranks):
            return [wrong for _ in groups]

    with pytest.raises(ConfigurationError, match="The advantage Wrong must return"):
        collector(by_group([MIXED]), advantage=Wrong()).collect(0)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [([1, 0], "ascending"), ([0, 0], "ascending"), ([0, 9], "from 0 to 3"), ([0, 1, 2], "at most 2"), ([1], "[1]")],
)
def test_a_selector_that_chooses_what_it_must_not_is_refused(wrong, said):
    class Wrong:
        def __call__(self, group, keep, rng):
            return wrong

    player = by_group([[1.0, "unavailable", 0.0, 1.0]])
    with pytest.raises(ConfigurationError, match="The selector Wrong") as caught:
        collector(player, selector=Wrong(), group_size=2, oversample=2).collect(0)
    assert said in str(caught.value)


def test_a_selector_without_reasons_gets_plain_ones():
    class First:
        def __call__(self, group, keep, rng):
            return [0, 1] if group[0].reward else []

    player = by_group([[1.0, 0.0, "unavailable", 0.0], [0.0, 1.0, 1.0, 1.0]])
    batch = collector(player, selector=First(), problems_per_step=2, group_size=2, oversample=2).collect(0)
    reasons = [[decision.reason for decision in group] for group in batch.decisions]
    assert reasons == [["", "", "unavailable", "unselected"], ["rejected"] * 4]


def test_the_draws_of_a_selector_differ_between_groups_and_between_steps():
    drawn: list[float] = []

    class Draws(KeepAll):
        def __call__(self, group, keep, rng):
            drawn.append(rng.random())
            return super().__call__(group, keep, rng)

    one, again = (collector(selector=Draws()) for _ in range(2))
    for step in range(2):
        one.collect(step)
    assert len(set(drawn)) == len(drawn) == 8
    for step in range(2):
        again.collect(step)
    assert drawn[8:] == drawn[:8]
