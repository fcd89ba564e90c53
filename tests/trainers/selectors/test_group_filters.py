"""``balanced_band``, ``minimum_group``, ``deviation``: which groups they reject; the rest is another's choice."""

from __future__ import annotations

import json
from statistics import stdev

import numpy as np
import pytest
from outcomes import went
from small_run import SmallPlayer, collector

from rstar2_env.core.episode import Episode
from rstar2_env.core.errors import ConfigurationError, UnknownNameError
from rstar2_env.trainers.samplers.base import GroupResult, Start
from rstar2_env.trainers.selectors.balanced_band import BalancedBand
from rstar2_env.trainers.selectors.deviation import Deviation
from rstar2_env.trainers.selectors.minimum_group import MinimumGroup
from rstar2_env.trainers.selectors.resample_on_correct import ResampleOnCorrect


def group(*rewards):
    """A group; a text is the end of an episode that does not count."""
    return [
        Episode(end=reward) if isinstance(reward, str) else Episode(end="answered", reward=reward, correct=reward > 0)
        for reward in rewards
    ]


def choice(selector, episodes, keep=8):
    chosen = selector(episodes, keep, np.random.default_rng(0))
    return chosen, dict(selector.reasons(episodes, keep, chosen))


class TestBalancedBand:
    @pytest.mark.parametrize(("right", "kept"), [(0, 0), (1, 0), (2, 10), (5, 10), (8, 10), (9, 0), (10, 0)])
    def test_the_ends_of_the_band_are_in_it(self, right, kept):
        assert len(choice(BalancedBand(), group(*[1.0] * right, *[0.0] * (10 - right)), keep=10)[0]) == kept

    def test_the_rate_is_that_of_the_episodes_that_count(self):
        lost = ["unavailable", "cancelled"] * 4
        chosen, reasons = choice(BalancedBand(), group(1.0, *lost, 0.0))
        assert chosen == [0, 9]
        chosen, reasons = choice(BalancedBand(), group(1.0, *lost))
        assert chosen == []
        assert (reasons[0], reasons[1], reasons[2]) == ("band", "unavailable", "cancelled")
        assert choice(BalancedBand(low=0.0), group(*lost))[0] == []

    def test_a_band_the_wrong_way_round_is_refused(self):
        with pytest.raises(ConfigurationError, match="greater than high"):
            BalancedBand(low=0.9)

    def test_with_refill_the_batch_has_a_constant_size(self):
        # Half of all problems are hopeless or trivial; the others are solved in half of the episodes.
        def earns(problem, number, rng):
            kind = int(problem[1:]) % 4
            return float(kind == 1) if kind < 2 else float(rng.random() < 0.5)

        made = collector(SmallPlayer(earns), selector=BalancedBand(), refill=20, problems_per_step=8, group_size=8)
        for step in range(6):
            batch = made.collect(step)
            assert len(batch.rows) == 64
            rates = [sum(e.correct for e in one) / 8 for one in batch.groups]
            kept = [any(decision.kept for decision in one) for one in batch.decisions]
            assert all(0.2 <= rate <= 0.8 for rate, trains in zip(rates, kept, strict=True) if trains)
        assert made.counts["refilled"] > 0, "how much was played beyond the batch is counted"


class TestMinimumGroup:
    def test_a_group_that_lost_too_many_is_rejected(self):
        short = group(1.0, 0.0, "unavailable", "unavailable")
        assert choice(MinimumGroup(least=2), short)[0] == [0, 1]
        assert choice(MinimumGroup(least=3), short) == (
            [],
            {0: "few", 1: "few", 2: "unavailable", 3: "unavailable"},
        )


class TestAnotherChooses:
    def test_within_a_group_that_passes(self):
        episodes = group(*[1.0] * 6, *[0.0] * 6)
        inner = choice(ResampleOnCorrect(mode="rank"), episodes, keep=4)
        for selector in (
            BalancedBand(of="roc:mode=rank"),
            MinimumGroup(of="(roc:mode=rank)"),
            BalancedBand(of={"name": "minimum_group", "of": "roc:mode=rank"}),
        ):
            assert choice(selector, episodes, keep=4) == inner

    def test_a_function_chooses_too(self):
        def last(episodes, keep, rng):
            return [len(episodes) - 1]

        assert choice(BalancedBand(of=last), group(1.0, 0.0)) == ([1], {0: "unselected"})

    def test_one_that_is_not_there_is_named(self):
        with pytest.raises(UnknownNameError, match="selector"):
            BalancedBand(of="rock")


def step_of(*deviations):
    return [GroupResult(Start(0), at, 8, 4, 0.5, 0.0, 8, "", value) for at, value in enumerate(deviations)]


class TestDeviation:
    def test_the_golden_thresholds(self):
        selector = Deviation(beta=0.5, decay=0.9, begin=4, filter_from=5)
        thresholds = []
        for deviations in ((0.2, 0.4), (0.6,), (0.0, 0.0, 0.3), (0.5,), (1.0, 0.0)):
            selector.observe(step_of(*deviations))
            thresholds.append(selector.threshold)
        # Means .3, .6, .1: the average begins at 1/3; then .9/3 + .05 = .35, then .315 + .05 = .365.
        assert thresholds == pytest.approx([0.0, 0.0, 0.0, 0.5 * 0.35, 0.5 * 0.365])

    def test_the_released_steps(self):
        selector = Deviation()
        for step in range(1, 11):
            assert selector.threshold == 0
            assert choice(selector, group(0.5, 0.5))[0] == [0, 1]
            selector.observe(step_of(0.4))
            assert selector._average == pytest.approx(0.4), step
        assert selector.threshold == pytest.approx(0.2)

    def test_a_group_below_the_threshold_is_rejected(self):
        selector = Deviation(begin=2, filter_from=2)
        selector.observe(step_of(0.2))
        assert choice(selector, group(0.5, 0.6)) == ([], {0: "deviation", 1: "deviation"})  # .0707 < .1
        assert choice(selector, group(0.5, 0.7))[0] == [0, 1]  # .1414
        assert choice(selector, group(0.5, "unavailable"))[0] == []

    def test_the_threshold_moves_with_the_rewards(self):
        selector = Deviation(begin=2, filter_from=2, decay=0.5)
        for value in (0.4, 0.1, 0.1, 0.1, 0.1):
            selector.observe(step_of(value))
        assert selector.threshold < 0.06

    def test_groups_of_which_nothing_counts_say_nothing(self):
        selector = Deviation(begin=2, filter_from=2)
        selector.observe([went("a", 0, 0), went("b", 1, 1)])
        assert selector.threshold == 0
        selector.observe([*step_of(0.4), went("a", 0, 0)])
        assert selector.threshold == pytest.approx(0.2), "the average begins with the first step that says something"

    def test_its_state_goes_on_with_that_of_the_other(self):
        def make():
            return Deviation(of="deviation:begin=2,filter_from=3", begin=3, filter_from=4)

        whole = make()
        for value in (0.4, 0.2, 0.3):
            whole.observe(step_of(value))
        resumed = make()
        resumed.load_state_dict(json.loads(json.dumps(whole.state_dict())))
        for one in (whole, resumed):
            one.observe(step_of(0.9))
        assert resumed.threshold == whole.threshold
        assert resumed._inner.threshold == whole._inner.threshold > 0

    def test_it_refuses_to_reject_before_the_average_begins(self):
        with pytest.raises(ConfigurationError, match="less than begin"):
            Deviation(filter_from=3)

    def test_a_group_at_the_threshold_passes(self):
        selector = Deviation(beta=0.5, begin=2, filter_from=2)
        selector.observe(step_of(2 * 0.5**0.5))
        assert selector.threshold == stdev([0.0, 1.0])
        assert choice(selector, group(0.0, 1.0))[0] == [0, 1]
        assert choice(selector, group(0.0, 0.99))[0] == []

    def test_a_group_of_one_episode_says_nothing(self):
        selector = Deviation(begin=2, filter_from=2)
        selector.observe([went("a", 1, 1), *step_of(0.5)])
        assert selector.threshold == 0.25
        assert choice(selector, group(1.0))[0] == []

    def test_rejecting_begins_with_the_step_that_is_named(self):
        selector = Deviation(beta=1.0, begin=2, filter_from=3)
        thresholds = []
        for _ in range(3):
            thresholds.append(selector.threshold)
            selector.observe(step_of(0.5))
        assert thresholds == [0, 0, 0.5]

    def test_the_average_begins_with_the_step_that_is_named(self):
        """Begin 3: the means of steps 1 and 2, then the moving average."""
        selector = Deviation(beta=1.0, decay=0.75, begin=3, filter_from=3)
        averages = []
        for value in (0.25, 0.75, 1.0):
            selector.observe(step_of(value))
            averages.append(selector.state_dict()["average"])
        assert averages == pytest.approx([0.25, 0.5, 0.75 * 0.5 + 0.25 * 1.0])


def test_what_a_filter_looks_at_where_nothing_or_one_counts():
    assert BalancedBand().looks_at([]) == {"pass_rate": 0.0, "low": 0.2, "high": 0.8}
    assert BalancedBand().looks_at(group(1.0))["pass_rate"] == 1.0
    assert choice(BalancedBand(low=1.0, high=1.0), group(1.0))[0] == [0]
    assert choice(BalancedBand(low=0.0, high=0.0), group(0.0))[0] == [0]
    assert Deviation().looks_at(group(0.0, 1.0)) == {"deviation": stdev([0.0, 1.0]), "threshold": 0.0}
    assert Deviation().looks_at(group(1.0))["deviation"] == 0.0


def test_a_filter_passes_no_group_without_episodes_and_weighs_none_that_was_lost():
    assert not BalancedBand(low=0.0).passes([])
    assert set(BalancedBand().weighed(group(1.0, "unavailable", 0.0), 2)) == {0, 2}


def test_two_episodes_are_enough_for_a_deviation():
    selector = Deviation(beta=1.0, begin=2, filter_from=2)
    selector.observe([GroupResult(Start(0), 0, 2, 1, 0.5, 0.0, 2, "", 0.75)])
    assert selector.threshold == 0.75
