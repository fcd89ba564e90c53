"""Terms of the ratio at their bounds, at an advantage of 0, and far away; and the metrics that count them.

``test_formulas.py`` compares every formula with the same formula written out on random rows, which seldom lie at a
bound. Here, a token is written as its ratio and its advantage.
"""

import math

import pytest
import torch
from bounded_tokens import HALF, TWO, figure, loss, of

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.parts import make_part
from rstar2_env.trainers.losses.base import LOSSES
from rstar2_env.trainers.losses.ppo_clip import PpoClip

PAIRS = [(0.5, -1), (0.5, 1), (0.5, 0), (1, -1), (1, 1), (2, 1), (2, -1), (2, 0), (3, -1), (3, 1), (3, 0)]


@pytest.mark.parametrize(
    ("spec", "name", "total"),
    [
        # With low = high = 0, a ratio of 1 lies at both bounds and is not clipped.
        ("ppo_clip:low=0,high=0", "clip/low", 1),
        ("ppo_clip:low=0,high=0", "clip/high", 2),
        ("ppo_clip:low=0,high=0", "clip/outer", 0),
        ("ppo_clip:two_sided=2,dual=4", "clip/outer", 1),
        ("ppo_clip:two_sided=4,dual=2", "clip/outer", 1),
        ("ppo_clip:low=none,high=none", "clip/low", 0),
        ("ppo_clip:low=none,high=none", "clip/high", 0),
        ("cispo:low=0.5,high=1", "clip/low", 0),
        ("cispo:low=0.4,high=1", "clip/low", 3),
        ("cispo:low=0.5,high=1", "clip/high", 3),
        ("cispo", "clip/low", 0),
        ("gmpo:low=0,high=0", "clip/low", 2),  # an advantage of 0 is on the side of the lower bound
        ("gmpo:low=0,high=0", "clip/high", 2),
        (f"gmpo:low={-HALF},high={TWO}", "clip/low", 0),
        (f"gmpo:low={-HALF},high={TWO}", "clip/high", 1),
        ("gmpo:low=none,high=none", "clip/low", 0),
        ("gmpo:low=none,high=none", "clip/high", 0),
        ("rollout_is:low=0.5,high=1", "clip/dropped", 9),  # the bounds themselves are dropped
        ("rollout_is:low=0.6,high=1.5", "clip/dropped", 3),
    ],
)
def test_tokens_beyond_a_bound_are_counted(spec, name, total):
    assert figure(spec, name, of(*PAIRS)) == (total, len(PAIRS))


def test_bounds_that_are_not_set():
    assert PpoClip(None, None).bounds == (0.0, math.inf)
    assert PpoClip(0.25, 0.5).bounds == (0.75, 1.5)


class TestPpoClip:
    def test_a_token_at_its_bound_keeps_its_gradient(self):
        values, slopes = loss("ppo_clip:low=0.5,high=1,two_sided=3,dual=3", of((2, 1), (0.5, -1), (3, -1), (4, -1)))
        assert values == pytest.approx([-2, 0.5, 3, 3])
        assert slopes[3] == 0


class TestDppo:
    """Probabilities 1/2 and 1/4 differ by 1/4, and the ratio is 2."""

    @pytest.mark.parametrize(
        ("options", "up", "down"),
        [
            ("low=0.25,high=0.25", 0, 0),
            ("low=0.24,high=0.24", 1, 2),
            ("low=0.24,high=0.25", 0, 2),
            ("low=0.25,high=0.24", 1, 0),
            ("low=0.24,high=0.24,either=true", 3, 3),
        ],
    )
    def test_a_token_is_dropped_beyond_its_bound_if_it_would_move_on(self, options, up, down):
        """An advantage of 0 is on the side of the negative ones: below ``mu`` it counts as moving on."""
        advantages = (1, -1, 0)
        assert figure(f"dppo:{options}", "clip/dropped", of(*((2, one) for one in advantages), logp=[HALF] * 3)) == (
            up,
            3,
        )
        assert figure(
            f"dppo:{options}", "clip/dropped", of(*((0.5, one) for one in advantages), logp=[2 * HALF] * 3)
        ) == (
            down,
            3,
        )

    def test_the_weight_is_at_most_the_cap(self):
        values, _ = loss("dppo:low=1,high=1,cap=2", of((3, 1), (2, 1), (1, 1), logp=[-2.0] * 3))
        assert values == pytest.approx([4, 4, 2])

    def test_an_equal_probability_is_never_dropped(self):
        made = of((1, 1), (1, -1), logp=[HALF, HALF])
        assert figure("dppo:low=0,high=0", "clip/dropped", made) == (0, 2)

    def test_a_probability_of_one_has_a_finite_divergence(self):
        made = of((1, 1), (2, 1), logp=[0.0, 0.0])
        assert figure("dppo:divergence=kl", "clip/dropped", made) == (1, 2)
        assert math.isfinite(sum(loss("dppo:divergence=kl", made)[0]))

    def test_the_divergence_has_both_outcomes(self):
        """mu = 1/4, pi = 1/2: 1/4 log(1/2) + 3/4 log(3/2) = 0.1308."""
        made = of((2, 1), logp=[HALF])
        exact = 0.25 * HALF + 0.75 * math.log(1.5)
        for high, total in ((exact * 0.999, 1), (exact * 1.001, 0)):
            assert figure(f"dppo:divergence=kl,high={high}", "clip/dropped", made) == (total, 1)


class TestSapo:
    def test_the_gate_of_an_advantage_of_zero_is_that_of_a_negative_one(self):
        def gate(tau, ratio):
            own = 1 / (1 + math.exp(-tau * (ratio - 1)))
            return 4 * own * (1 - own)

        for advantage, tau in ((1, 3), (0, 2), (-1, 2)):
            found = figure("sapo:positive=3,negative=2", "sapo/gate", of((1.25, advantage)))
            assert found == (pytest.approx(gate(tau, 1.25)), 1)


class TestTopr:
    def test_only_negative_tokens_of_the_policy_are_weighed_and_counted(self):
        made = of((0.5, -1), (0.5, 0), (0.5, 1), (3, -2))
        assert figure("topr:level=token", "topr/negative_weight", made) == (pytest.approx(1.5), 2)
        values, _ = loss("topr:level=token", of((0.5, -1), (0.5, 1), (2, -1), logp=[-1.0] * 3))
        assert values == pytest.approx([-0.5, 1, -1])


class TestVespo:
    def test_the_weight_of_an_advantage_of_zero_is_that_of_a_negative_one(self):
        spec = "vespo:k_positive=1,decay_positive=2,k_negative=3,decay_negative=0.5,level=turn"
        for advantage, k, decay in ((1, 1, 2), (0, 3, 0.5), (-1, 3, 0.5)):
            found = figure(spec, "vespo/weight", of((2, advantage)))
            assert found == (pytest.approx(2**k * math.exp(decay * (1 - 2))), 1)

    def test_far_away_it_is_bounded(self):
        made = of((math.exp(-30), 1), (math.exp(-20), 1))
        made.turn = torch.tensor([[0, 1, -1]])
        spec = "vespo:k_positive=0.5,decay_positive=0.25,level=turn"
        weight = math.exp(0.5 * -20 + 0.25 * (1 - math.exp(-20)))
        assert figure(spec, "vespo/weight", made) == (pytest.approx(2 * weight), 2)
        # Above, the decay leaves nothing; without it, the weight grows to the bound.
        made = of((math.exp(30), 1))
        found = figure("vespo:k_positive=0.5,decay_positive=0,level=turn", "vespo/weight", made)
        assert found == (pytest.approx(math.exp(10)), 1)


class TestFipo:
    def test_a_ratio_at_its_bound_counts_among_the_future_and_is_safe(self):
        """Half-life 1: a token's future is its own log-ratio, and half of the next token's."""
        at, beyond = of((2, 1), (2, 1)), of((2.01, 1), (2.01, 1))
        assert figure("fipo:half_life=1,dual=2,below=1,above=9", "fipo/weight", at) == (
            pytest.approx(2**1.5 + 2),
            2,
        )
        assert figure("fipo:half_life=1,dual=2,below=1,above=9", "fipo/weight", beyond) == (pytest.approx(2), 2)

    @pytest.mark.parametrize(("ratio", "advantage", "safe"), [(2, -1, 1), (3, -1, 0), (3, 0, 1), (3, 1, 1)])
    def test_the_weight_of_a_negative_token_beyond_the_safe_ratio_is_between_08_and_1(self, ratio, advantage, safe):
        spec = "fipo:half_life=1,dual=none,safety=2,below=1,above=9"
        assert figure(spec, "fipo/weight", of((ratio, advantage))) == (pytest.approx(ratio if safe else 1.0), 1)

    def test_a_weight_that_is_small_is_raised_there(self):
        made = of((3, -1), (0.01, 1))
        spec = "fipo:half_life=1,dual=none,safety=2,below=1,above=9"
        assert figure(spec, "fipo/weight", made) == (pytest.approx(0.8 + 0.01), 2)


class TestEntropy:
    def test_the_coefficient_stays_at_the_target_and_moves_within_its_bounds(self):
        part = make_part(LOSSES, "adaptive_entropy:target=0.5,delta=0.25,start=0.5,most=0.75")
        seen = []
        for entropy in (0.5, 0.4, 0.4, 0.6, 0.5, 0.6, 0.6, 0.6):
            part.observe({"entropy": (entropy * 4, 4)})
            seen.append((part.coef, part.state_dict()["coef"]))
        assert seen == [(0.5, 0.5), (0.75, 0.75), (0.75, 0.75), (0, 0.5), (0.5, 0.5), (0, 0.25), (0, 0), (0, 0)]
        part.observe({"entropy": (0.0, 0.0)})
        part.observe({})
        assert part.state_dict() == {"coef": 0.0, "active": False}

    def test_the_loss_is_minus_the_coefficient_times_the_entropy(self):
        made = of((1, 1), (1, 1))
        made.entropy = torch.tensor([[1.0, 2.0, 9.0]], dtype=torch.float64)
        part = make_part(LOSSES, "adaptive_entropy:target=2,start=0.5,delta=0")
        assert part(made)[made.mask].tolist() == [0, 0]
        part.observe({"entropy": (1.0, 1.0)})
        assert part(made)[made.mask].tolist() == [-0.5, -1]
        assert make_part(LOSSES, "entropy:coef=3")(made)[made.mask].tolist() == [-3, -6]

    def test_the_figures(self):
        made = of((1, 1), (1, 1))
        made.entropy = torch.tensor([[1.0, 2.0, 9.0]], dtype=torch.float64, requires_grad=True)
        part = make_part(LOSSES, "adaptive_entropy:target=2,start=0.5,delta=0")
        part.observe({"entropy": (1.0, 1.0)})
        found = {name: (float(total), int(count)) for name, (total, count) in part.figures(made).items()}
        assert found == {"entropy": (3, 2), "entropy_coef": (1, 2)}
        assert figure("entropy", "entropy", made) == (3, 2)


def test_the_figures_of_the_surrogate_stay_beside_those_of_a_term():
    made = of((2, 1), (0.5, -1), (1, 1), clip_cov=[0, 0, 1], off_policy=[0, 0, 0])
    for spec in ("clip_cov:low=0,high=0", "fipo:low=0,high=0", "rl_plus:low=0,high=0"):
        assert figure(spec, "clip/low", made) == figure(spec, "clip/high", made) == (1, 3)


def test_gmpo_without_bounds_is_the_geometric_mean():
    values, _ = loss("gmpo:low=none,high=none", of((4, 1), (9, 1)))
    assert values == pytest.approx([-6, -6])
    values, _ = loss("gmpo:low=none,high=none", of((0.25, -1), (1, -1)))
    assert values == pytest.approx([0.5, 0.5])


@pytest.mark.parametrize("missing", ["mean_logp", "old_mean_logp"])
def test_rover_names_the_means_that_are_missing(missing):
    made = of((1, 1))
    made.mean_logp = made.old_mean_logp = torch.zeros_like(made.old)
    setattr(made, missing, None)
    with pytest.raises(ConfigurationError, match="'rover' needs the mean log-probability"):
        make_part(LOSSES, "rover")(made)


def test_cispo_counts_above_its_bound_alone():
    assert figure("cispo:high=1", "clip/high", of((2.5, 1), (1.5, 1))) == (1, 2)


def test_the_other_tokens_have_a_probability_of_at_least_a_trillionth():
    """mu = 1/2, pi = 1: 1/2 log(1/2) + 1/2 (log(1/2) - log(1e-12)) = 13.12."""
    for high, dropped in ((13.1, 1), (13.2, 0)):
        made = of((2, 1), logp=[0.0])
        assert figure(f"dppo:divergence=kl,high={high}", "clip/dropped", made) == (dropped, 1)
