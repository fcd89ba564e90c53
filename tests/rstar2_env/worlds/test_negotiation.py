"""Negotiations: fair pools, and an opponent that concedes."""

from rstar2_env.worlds.negotiation import negotiation


def test_pools_are_as_they_should_be_and_the_opponent_concedes():
    for seed in range(100):
        match = negotiation(seed, 5, True)
        assert 8 <= sum(match.counts) <= 12
        for values in (match.mine, match.theirs):
            assert sum(a * b for a, b in zip(match.counts, values, strict=True)) == 30
        assert list(match.demands) == sorted(match.demands, reverse=True)
        assert match.demands[-1] < match.demands[0]
