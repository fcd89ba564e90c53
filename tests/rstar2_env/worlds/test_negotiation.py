"""Negotiations: fair pools, and an opponent that concedes."""

import pytest

from rstar2_env.worlds.negotiation import Negotiation, negotiation


def test_pools_are_as_they_should_be_and_the_opponent_concedes():
    for seed in range(100):
        match = negotiation(seed, 5, True)
        assert 8 <= sum(match.counts) <= 12
        for values in (match.mine, match.theirs):
            assert sum(a * b for a, b in zip(match.counts, values, strict=True)) == 30
        assert list(match.demands) == sorted(match.demands, reverse=True)
        assert match.demands[-1] < match.demands[0]


@pytest.mark.parametrize(
    ("deal", "own", "others"),
    [((2, 3, 1), 19, 19), ((3, 4, 0), 25, 20), ((0, 1, 5), 9, 9)],
)
def test_a_deal_is_worth_what_gamebots_players_earn_from_it(deal, own, others):
    """Visual-AI/GAMEBoT@ef9b98b, game_env/my_negotiate.py, run by itself: player 1 proposes, player 2 accepts."""

    def match(demand):
        return Negotiation((3, 4, 5), (3, 4, 1), (2, 1, 4), (demand,), seed=0, reveal=True)

    assert match(others).truths(deal) == (frozenset({str(own)}), frozenset({str(others)}))
    agreed, refused = match(others), match(others + 1)
    assert (agreed.play(deal), refused.play(deal)) == ("The opponent agrees.", "The opponent refuses.")
    assert refused.score == 0
    best = max(
        3 * a + 4 * b + c for a in range(4) for b in range(5) for c in range(6) if 30 - 2 * a - b - 4 * c >= others
    )
    assert agreed.score == pytest.approx(min(1, own / best))
