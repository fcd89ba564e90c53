"""Rounds of fresh groups in place of rejected ones, and the rest of a group that needs no more."""

from __future__ import annotations

from collections import Counter

import pytest
from small_run import MIXED, PROBLEMS, SAME, SmallPlayer, by_group, collector

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.trainers.samplers.uniform import Uniform
from rstar2_env.trainers.selectors.resample_on_correct import ResampleOnCorrect


class Moody:
    """A selector with a state: it rejects every third group that it sees."""

    def __init__(self):
        self.seen = 0

    def __call__(self, group, keep, rng):
        self.seen += 1
        return [] if self.seen % 3 == 0 else list(range(keep))

    def state_dict(self):
        return {"seen": self.seen}

    def load_state_dict(self, state):
        self.seen = state["seen"]


class TestRefill:
    @pytest.mark.parametrize("rate", [0.1, 0.3, 0.7])
    def test_it_returns_exactly_the_wanted_groups_or_uses_up_its_rounds_and_says_so(self, rate):
        def earns(problem, group, rng):
            return float(rng.random() < rate)

        short = 0
        for seed in range(12):
            batch = collector(SmallPlayer(earns), seed=seed, refill=3).collect(0)
            rounds = sorted(Counter(group[0].round for group in batch.decisions).items())
            trained = {row.episode.group for row in batch.rows}
            assert len(trained) == 4 - batch.missing
            assert [number for number, _ in rounds] == list(range(len(rounds)))
            assert all(count for _, count in rounds)
            assert len(rounds) == 4 or not batch.missing
            assert sum(count for _, count in rounds) == len(batch.groups) == 4 + batch.refilled
            assert batch.rejected == len(batch.groups) - len(trained)
            # As many are played anew as were rejected the round before.
            kept = [
                sum(any(d.kept for d in group) for group in batch.decisions if group[0].round == r) for r, _ in rounds
            ]
            assert [count for _, count in rounds[1:]] == [
                4 - sum(kept[: number + 1]) for number in range(len(rounds) - 1)
            ]
            short += batch.missing > 0
        assert 0 < short < 12 if rate == 0.1 else short <= 6

    def test_a_fresh_group_is_a_fresh_problem_and_its_round_is_told(self):
        player = by_group([MIXED, SAME, MIXED, MIXED, SAME, MIXED])
        batch = collector(player, refill=5).collect(0)
        assert [group[0].round for group in batch.decisions] == [0, 0, 0, 0, 1, 2]
        assert [group[0].group for group in batch.groups] == [0, 1, 2, 3, 4, 5]
        problems = [group[0].problem_id for group in batch.groups]
        assert problems == [start.options["problem_id"] for start in Uniform(PROBLEMS).draw(6)]
        assert (batch.rejected, batch.refilled, batch.missing) == (2, 2, 0)
        assert batch.figures["rollout/groups_rejected"] == (2.0, 6.0)

    def test_without_rounds_nothing_is_played_anew(self):
        batch = collector(by_group([SAME])).collect(0)
        assert (batch.rows, batch.rejected, batch.missing, batch.refilled) == ([], 4, 4, 0)


class TestEarlyStop:
    def test_the_rest_of_a_settled_group_is_cancelled_and_in_no_mean(self):
        def slow_last(rng):
            return 0.001 if rng.random() < 0.5 else 0.2

        options = {"group_size": 2, "oversample": 4, "selector": ResampleOnCorrect(spare=1.0), "early_stop": True}
        batch = collector(SmallPlayer(delay_s=slow_last), **options).collect(0)
        ends = [decision.reason for group in batch.decisions for decision in group]
        assert ends.count("cancelled") >= 4
        assert batch.seconds["rollout"] < 0.2 * 2
        cancelled, played = batch.figures["rollout/cancelled"]
        assert (cancelled, played) == (ends.count("cancelled"), 32)
        assert batch.figures["rollout/reward"][1] == 32 - cancelled

    def test_a_selector_that_cannot_tell_is_refused(self):
        with pytest.raises(ConfigurationError, match="early_stop ends a group when the selector"):
            collector(selector=Moody(), early_stop=True)
