"""Terms and corrections at their bounds, at an advantage of 0, and far away; and the metrics that count them.

``test_formulas.py`` compares every formula with the same formula written out on random rows, which seldom lie at a
bound. Here, a token is written as its ratio and its advantage. The last token is the environment's: it must not count.
"""

import math

import numpy as np
import pytest
import torch
from loss_tokens import tokens

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.parts import make_part
from rstar2_env.testing.training.batch_of_tokens import of_tokens
from rstar2_env.testing.training.processes import in_processes
from rstar2_env.trainers.losses.base import CORRECTIONS, LOSSES
from rstar2_env.trainers.losses.covariance import covariances
from rstar2_env.trainers.losses.kdrl import to_teacher
from rstar2_env.trainers.losses.mismatch import mismatch, summary
from rstar2_env.trainers.losses.ppo_clip import PpoClip
from rstar2_env.trainers.losses.tokens import bounded_exp
from rstar2_env.trainers.ranks import ONE

GARBAGE = (1e3, -7.0)
"""Ratio and advantage of the environment's token."""
HALF, TWO, THREE = math.log(0.5), math.log(2), math.log(3)


def of(*pairs, logp=None, **columns):
    """One row of tokens, each a ratio (to both ``old`` and ``sampled``) and an advantage, and the environment's."""
    every = [*pairs, GARBAGE]
    now = [math.log(ratio) for ratio, _ in every] if logp is None else [*logp, 3.0]
    before = [one - math.log(ratio) for one, (ratio, _) in zip(now, every, strict=True)]
    made = tokens(
        [now],
        old=[before],
        sampled=[before],
        advantage=[[advantage for _, advantage in every]],
        mask=[[1] * len(pairs) + [0]],
        turn=[[0] * len(pairs) + [-1]],
    )
    made.columns = {name: torch.tensor([[*values, 1.0]], dtype=torch.float64) for name, values in columns.items()}
    return made


def figure(spec, name, made):
    """Sum and count of a metric, which has no gradient."""
    total, count = make_part(LOSSES, spec).figures(made)[name]
    assert not total.requires_grad
    assert not count.requires_grad
    return float(total), int(count)


def loss(spec, made):
    """The loss of each of the policy's tokens, and its gradient by the log-probability."""
    found = make_part(LOSSES, spec)(made)
    found[made.mask].sum().backward()
    return found[made.mask].tolist(), made.logp.grad[made.mask].tolist()


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


class TestRlPlus:
    def test_only_rows_of_others_are_weighed_by_the_mixture(self):
        made = of((2, 1), (2, 1), (2, 1), logp=[HALF] * 3, off_policy=[0.0, 0.5, 1.0])
        values, _ = loss("rl_plus:gamma=2", made)
        external = -2 * 0.5 / ((0.25 + 1) / 2 + 0.25) * 0.25
        assert values == pytest.approx([-1.2, -1.2, external])
        assert figure("rl_plus", "external", made) == (1, 3)

    def test_the_advantage_multiplies_it(self):
        values, _ = loss("rl_plus:gamma=0", of((1, -3), logp=[HALF], off_policy=[1]))
        assert values == pytest.approx([3 * 2 * 0.5 / (0.75 + 0.5)])

    def test_probabilities_are_between_exp_of_minus_20_and_1(self):
        made = of((1, 1), (1, 1), logp=[-30.0, 0.5], off_policy=[1, 1])
        tiny = math.exp(-20)
        values, _ = loss("rl_plus:gamma=0", made)
        assert values == pytest.approx([-2 * tiny / ((tiny + 1) / 2 + tiny), -2 / 2])

    def test_the_weight_of_a_token_has_no_gradient(self):
        made = of((1, 1), logp=[HALF], off_policy=[1])
        (value,), (slope,) = loss("rl_plus:gamma=1", made)
        assert value == slope == pytest.approx(-2 * 0.5 / (0.75 + 0.5) * 0.5)


class TestShapedOffpolicy:
    def test_only_rows_of_others_are_shaped(self):
        made = of((2, 1), (2, 1), (2, 1), logp=[HALF] * 3, off_policy=[0.0, 0.5, 1.0])
        assert loss("shaped_offpolicy:gamma=0.5", made)[0] == pytest.approx([-2, -2, -0.5])
        assert loss("shaped_offpolicy:gamma=0.5", of((1, -3), logp=[HALF], off_policy=[1]))[0] == pytest.approx([1.5])

    def test_probabilities_are_between_exp_of_minus_20_and_1(self):
        made = of((1, 1), (1, 1), logp=[-30.0, 0.5], off_policy=[1, 1])
        tiny = math.exp(-20)
        assert loss("shaped_offpolicy:gamma=1", made)[0] == pytest.approx([-tiny / (tiny + 1), -0.5])


class TestSft:
    def test_only_tokens_of_others_are_learned_and_counted(self):
        made = of((1, 1), (1, 1), (1, 1), logp=[-1.0, -2.0, -4.0], off_policy=[0.0, 0.5, 1.0])
        assert loss("sft:coef=0.5", made)[0] == pytest.approx([0, 1, 2])
        assert figure("sft", "sft", made) == (6, 2)


class TestKdrl:
    def test_the_teacher_is_followed_in_answers_that_are_not_right(self):
        made = of((1, 1), (1, 1), (1, 1), logp=[-1.0] * 3, correct=[0.0, 0.5, 1.0])
        made.teacher = torch.tensor([[-2.0, -2.0, -2.0, 50.0]], dtype=torch.float64)
        assert loss("kdrl:coef=2,estimator=k1", made)[0] == pytest.approx([2, 2, 0])
        assert figure("kdrl", "teacher_kl", made) == (pytest.approx(3 * math.exp(-1)), 3)


class TestOpd:
    def made(self, *ratios, logp, teacher):
        made = of(*((ratio, 0) for ratio in ratios), logp=logp)
        made.teacher = torch.tensor([[*teacher, 50.0]], dtype=torch.float64)
        return made

    def test_a_token_that_fell_by_more_than_the_bound_is_dropped(self):
        """From 1 to 1/2: the fall is 1/2."""
        for bound, value in ((0.5, -0.5 * 1.0), (0.49, 0.0)):
            made = self.made(0.5, logp=[HALF], teacher=[HALF + 1])
            assert loss(f"opd:drop_below={bound}", made)[0] == pytest.approx([value])

    def test_the_fall_is_from_the_anchor(self):
        """From 1 to 1/2 since ``old``, and from 1/2 to 1/2 since ``sampled``."""
        for anchor, value in (("old", 0.0), ("sampled", -1.0)):
            made = self.made(1, logp=[HALF], teacher=[HALF + 1])
            made.old = torch.zeros_like(made.old)
            assert loss(f"opd:drop_below=0.4,anchor={anchor}", made)[0] == pytest.approx([value])

    def test_a_log_probability_above_0_is_a_probability_of_1(self):
        made = self.made(0.5 / math.exp(0.1), logp=[HALF], teacher=[HALF + 1])
        assert loss("opd:drop_below=0.55", made)[0] == pytest.approx([-0.5 / math.exp(0.1)])

    def test_the_signal_is_bounded_on_both_sides(self):
        made = self.made(1, 1, 1, logp=[-4.0] * 3, teacher=[-1.0, -7.0, -3.5])
        assert loss("opd:bound=2", made)[0] == pytest.approx([-2, 2, -0.5])

    def test_the_square_of_the_log_ratio_is_added(self):
        made = self.made(2, logp=[-1.0], teacher=[-1.0])
        assert loss("opd:coef=3,square=0.5", made)[0] == pytest.approx([3 * 0.5 * TWO**2])


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


class TestEcho:
    def test_the_environments_tokens_that_answer_calls_are_learned(self):
        made = of((1, 1), (1, 1), (1, 1), logp=[-1.0, -2.0, -4.0])
        made.answered = torch.tensor([[0, 1, -1, 2]])
        for spec, values, total, count in (
            ("echo:coef=0.5", [0, 1, 0, -1.5], 2 - 3, 2),
            ("echo:coef=0.5,tools=false", [0.5, 1, 0, -1.5], 1 + 2 - 3, 3),
        ):
            assert make_part(LOSSES, spec)(made).tolist() == [pytest.approx(values)]
            assert figure(spec, "echo", made) == (total, count)


class TestCorrections:
    def weights(self, spec, *pairs):
        """Weights where ``old`` exceeds ``sampled`` by the ratio."""
        made = of(*pairs)
        made.old = made.sampled + made.logp.detach() - made.sampled
        return make_part(CORRECTIONS, spec)(made)[made.mask].tolist()

    def test_a_ratio_at_a_bound_is_kept(self):
        pairs = [(0.5, 1), (2, 1), (0.4, 1), (2.5, 1)]
        assert self.weights("mask:low=0.5,high=2", *pairs) == pytest.approx([0.5, 2, 0, 0])
        assert self.weights("truncate:cap=2", *pairs) == pytest.approx([0.5, 2, 0.4, 2])
        for ratio, kept in ((2, 2), (0.5, 0.5), (2.1, 0), (0.4, 0)):
            assert self.weights("geometric:low=0.5,high=2", (ratio, 1)) == pytest.approx([kept])
            bounded = min(max(ratio, 0.5), 2)
            assert self.weights("geometric:low=0.5,high=2,mask=false", (ratio, 1)) == pytest.approx([bounded])

    @pytest.mark.parametrize(
        ("ratio", "advantage", "kept"), [(0.5, -1, 1), (0.49, -1, 0), (0.49, 0, 1), (0.49, 1, 1), (3, -1, 1)]
    )
    def test_a_negative_sequence_that_moved_away_is_dropped(self, ratio, advantage, kept):
        made = of((ratio, advantage))
        assert make_part(CORRECTIONS, f"opsm:delta={TWO}")(made)[made.mask].tolist() == [kept]


class TestMismatch:
    def test_the_metrics_of_every_depth(self):
        made = of((2, 1), (1, 1), (0.5, 1), (2, 1), (1, 1))
        made.old = made.logp.detach()
        made.depth = torch.tensor([[0, 1, 2, 3, 7, 0]])
        weights = torch.tensor([[2.0, 0.0, 1.0, 0.5, 1.0, 9.0]], dtype=torch.float64)
        found = {name: (float(total), int(count)) for name, (total, count) in mismatch(made, weights).items()}
        assert found["mismatch/logp_difference"] == (pytest.approx(3 * TWO), 5)
        assert found["mismatch/kl"] == (pytest.approx(2 * (1 - TWO) + 0.5 - 1 + TWO), 5)
        assert found["mismatch/chi2"] == (pytest.approx(3 + 3 + 0.25 - 1), 5)
        assert found["mismatch/masked"] == (1, 5)
        assert found["mismatch/weight/depth_3_or_more"] == (1.5, 2)
        assert found["mismatch/weight_squared/depth_0"] == (4, 1)
        assert found["mismatch/masked/depth_1"] == (1, 1)
        means = summary(found)
        assert means["mismatch/ess"] == pytest.approx((4.5 / 5) ** 2 / (6.25 / 5))
        assert means["mismatch/ess/depth_1"] == 0
        assert means["mismatch/ess/depth_3_or_more"] == pytest.approx(0.75**2 / (1.25 / 2))
        assert "mismatch/weight_squared" not in means

    @pytest.mark.parametrize("sign", [1, -1])
    def test_far_away_it_is_bounded(self, sign):
        made = of((math.exp(sign * 30), 1))
        made.old = made.logp.detach()
        found = mismatch(made, torch.ones_like(made.logp))
        assert float(found["mismatch/logp_difference"][0]) == 20
        assert float(found["mismatch/chi2"][0]) == pytest.approx(math.exp(sign * 40) - 1)

    def test_without_tokens_there_is_no_mean(self):
        assert summary({"mismatch/kl": (0.0, 0.0)}) == {}


def test_a_ratio_is_bounded_by_exp_of_20():
    found = bounded_exp(torch.tensor([30.0, -30.0, 1.0], dtype=torch.float64))
    assert found.tolist() == pytest.approx([math.exp(20), math.exp(-20), math.e])


class TestOfTheBatch:
    """Log-probabilities 2, -2, 1, -1, 0 and advantages of mean 0: the covariances are their products."""

    def batch(self, advantage=(1, -1, 1, -1, 0), ratio=(1, 1, 1, 1, 1)):
        logp = [2.0, -2.0, 1.0, -1.0, 0.0]
        old = [one - math.log(by) for one, by in zip(logp, ratio, strict=True)]
        return of_tokens(tokens([logp], old=[old], sampled=[old], advantage=[list(advantage)]))

    def column(self, spec, batch):
        ((_, values),) = make_part(LOSSES, spec).prepare(batch, ONE, np.random.default_rng(0)).items()
        return values.tolist()

    @pytest.mark.parametrize(
        ("options", "chosen"),
        [
            ("share=1,least=0,most=3", [1, 1, 1, 1, 0]),  # 0 itself is not above 0
            ("share=1,least=1,most=3", [1, 1, 0, 0, 0]),
            ("share=1,least=0,most=2", [0, 0, 1, 1, 0]),
            ("share=1,least=2,most=3", [0, 0, 0, 0, 0]),
        ],
    )
    def test_candidates_of_clip_cov_lie_between_the_bounds(self, options, chosen):
        assert self.column(f"clip_cov:{options}", self.batch()) == chosen

    @pytest.mark.parametrize(
        ("ratio", "chosen"),
        [
            ((1, 1, 1, 1, 1), [1, 1, 1, 1, 0]),
            ((2, 2, 0.5, 0.5, 1), [0, 1, 1, 0, 0]),
        ],
    )
    @pytest.mark.filterwarnings("error")
    def test_tokens_that_the_surrogate_clips_are_no_candidates(self, ratio, chosen):
        assert self.column("clip_cov:share=1,least=0,most=3,low=0,high=0", self.batch(ratio=ratio)) == chosen

    @pytest.mark.filterwarnings("error")
    def test_an_advantage_of_zero_is_never_clipped_and_a_huge_ratio_is_no_error(self):
        """The mean of the advantages is 1; the token of advantage 0 has log-probability -2 and a covariance of 2."""
        batch = self.batch(advantage=(2, 0, 1, 1, 1), ratio=(math.exp(700), 3, 1, 1, 1))
        assert self.column("clip_cov:share=1,least=0,most=9,low=0,high=0", batch) == [0, 1, 0, 0, 0]
        far = self.batch()
        far.logp[0], far.old[0] = 2.0, -2000.0
        assert self.column("clip_cov:share=1,least=0,most=9,low=0,high=0", far)[0] == 0

    @pytest.mark.parametrize(("share", "count"), [(0, 1), (0.39, 1), (0.4, 2), (0.59, 2), (0.6, 3), (1, 4)])
    def test_the_share_is_of_all_tokens_and_at_least_one(self, share, count):
        assert sum(self.column(f"clip_cov:share={share},least=0,most=9", self.batch())) == count

    @pytest.mark.parametrize(
        ("share", "held"),
        [(0, [1, 0, 0, 0, 0]), (0.4, [1, 1, 0, 0, 0]), (0.79, [1, 1, 1, 0, 0]), (1, [1, 1, 1, 1, 1])],
    )
    def test_kl_cov_holds_the_highest_covariances_the_first_of_equal_ones(self, share, held):
        assert self.column(f"kl_cov:share={share}", self.batch()) == held

    def test_the_distance_of_held_tokens_is_counted(self):
        made = of((2, 1), (0.5, 1), (3, 1), kl_cov=[1, 1, 0])
        assert figure("kl_cov", "kl_cov/distance", made) == (pytest.approx(2 * TWO), 2)

    @pytest.mark.parametrize("spec", ["clip_cov", "m2po"])
    def test_dropped_tokens_are_counted(self, spec):
        made = of((2, 1), (0.5, 1), (3, 1), **{spec: [1, 1, 0]})
        assert figure(spec, "clip/dropped", made) == (2, 3)

    @pytest.mark.filterwarnings("error")
    @pytest.mark.parametrize("spec", ["clip_cov", "kl_cov", "m2po", "gvpo"])
    def test_without_tokens_the_columns_are_empty(self, spec):
        none = of_tokens(tokens([[0.0]], mask=[[0]], turn=[[-1]]))
        found = make_part(LOSSES, spec).prepare(none, ONE, np.random.default_rng(0))
        assert {values.shape for values in found.values()} == {(0,)}

    @pytest.mark.parametrize(
        ("options", "dropped"),
        [
            # Squares 4, 1, 1/4 and 0: the mean is 5.25 / 4, then 1.25 / 3, then 0.25 / 2.
            ("threshold=1.3125", [1, 0, 0, 0]),
            ("threshold=1.3126", [0, 0, 0, 0]),
            ("threshold=0.4", [1, 1, 0, 0]),
            ("threshold=0.125", [1, 1, 1, 0]),
            ("threshold=0.12", [1, 1, 1, 0]),
            # Of the first and the third, whose ratio moves with the advantage: 4.25 / 2, then 0.25.
            ("threshold=0.3,of=harmful", [1, 0, 0, 0]),
            ("threshold=0.25,of=harmful", [1, 0, 1, 0]),
        ],
    )
    def test_m2po_drops_the_largest_until_the_mean_is_below_the_threshold(self, options, dropped):
        batch = of_tokens(
            tokens([[2.0, -1.0, 0.5, 0.0]], old=[[0.0] * 4], sampled=[[0.0] * 4], advantage=[[1.0, 1.0, 1.0, -1.0]])
        )
        assert self.column(f"m2po:{options}", batch) == dropped


class TestGvpo:
    def prepared(self, made):
        return make_part(LOSSES, "gvpo:beta=1").prepare(of_tokens(made), ONE, np.random.default_rng(0))

    @pytest.mark.filterwarnings("error")
    def test_a_row_alone_in_its_group_has_no_loss(self):
        found = self.prepared(tokens([[1.0, 2.0]], old=[[0.0, 0.0]], advantage=[[3.0, 3.0]]))
        assert set(found["gvpo/slope"]) == set(found["gvpo/share"]) == {0.0}

    def test_the_distance_is_counted_without_its_sign(self):
        made = of((1, 1), (1, 1), **{"gvpo/distance": [-2.0, 1.0]})
        assert figure("gvpo", "gvpo/distance", made) == (3, 2)


def test_the_figures_of_the_surrogate_stay_beside_those_of_a_term():
    made = of((2, 1), (0.5, -1), (1, 1), clip_cov=[0, 0, 1], off_policy=[0, 0, 0])
    for spec in ("clip_cov:low=0,high=0", "fipo:low=0,high=0", "rl_plus:low=0,high=0"):
        assert figure(spec, "clip/low", made) == figure(spec, "clip/high", made) == (1, 3)


def test_the_bounds_of_a_covariance_must_differ():
    with pytest.raises(ConfigurationError, match=r"least=2\.0 and most=2\.0"):
        make_part(LOSSES, "clip_cov:least=2,most=2")


@pytest.mark.parametrize(
    ("spec", "needs"),
    [
        ("kl", {"reference"}),
        ("kl:estimator=unbiased", {"reference", "old"}),
        ("kdrl", {"teacher"}),
        ("kdrl:estimator=unbiased", {"teacher", "old"}),
        ("opd", {"teacher", "old"}),
        ("opd:anchor=sampled", {"teacher"}),
        ("cispo", {"old"}),
        ("cispo:anchor=sampled", set()),
    ],
)
def test_a_term_needs_what_its_options_read(spec, needs):
    assert make_part(LOSSES, spec).needs == needs


def test_a_distance_from_another_model_is_0_off_the_mask():
    made = of((1, 1), logp=[-1.0])
    made.reference = made.teacher = torch.tensor([[-3.0, 50.0]], dtype=torch.float64)
    for distance in (to_teacher(made), make_part(LOSSES, "kl:coef=1,estimator=k1")(made)):
        assert distance.tolist() == [[2, 0]]


def test_gmpo_without_bounds_is_the_geometric_mean():
    values, _ = loss("gmpo:low=none,high=none", of((4, 1), (9, 1)))
    assert values == pytest.approx([-6, -6])
    values, _ = loss("gmpo:low=none,high=none", of((0.25, -1), (1, -1)))
    assert values == pytest.approx([0.5, 0.5])


class Counting:
    """One process that counts what it sends."""

    rank, size, sent = 0, 1, 0

    def sum(self, values):
        return values

    def gather(self, value):
        self.sent = [len(one) for one in value] if isinstance(value, tuple) else len(value)
        return [value]


def test_no_process_sends_more_tokens_than_can_be_chosen():
    ranks, rng = Counting(), np.random.default_rng(0)
    logp = [2.0, -2.0, 1.0, -1.0, 0.0]
    batch = of_tokens(tokens([logp], old=[[0.0] * 5], sampled=[[0.0] * 5], advantage=[[1, -1, 1, -1, 0]]))
    make_part(LOSSES, "kl_cov:share=0.4").prepare(batch, ranks, rng)
    assert ranks.sent == [2, 2]
    make_part(LOSSES, "m2po:threshold=1").prepare(batch, ranks, rng)
    assert ranks.sent == 4


def test_kl_cov_holds_the_highest_covariance_of_all_processes():
    rows = [([2.0, -2.0], [1, -1]), ([5.0, -5.0], [1, -1])]

    def prepare(ranks):
        logp, advantage = rows[ranks.rank]
        batch = of_tokens(tokens([logp], advantage=[advantage]))
        batch.groups[:] = ranks.rank
        return make_part(LOSSES, "kl_cov:share=0").prepare(batch, ranks, np.random.default_rng(0))["kl_cov"].tolist()

    assert in_processes(2, prepare) == [[0, 0], [1, 0]]


@pytest.mark.parametrize("missing", ["mean_logp", "old_mean_logp"])
def test_rover_names_the_means_that_are_missing(missing):
    made = of((1, 1))
    made.mean_logp = made.old_mean_logp = torch.zeros_like(made.old)
    setattr(made, missing, None)
    with pytest.raises(ConfigurationError, match="rover needs means of log-probabilities"):
        make_part(LOSSES, "rover")(made)


@pytest.mark.filterwarnings("error")
def test_a_token_without_an_advantage_is_not_harmful():
    batch = of_tokens(tokens([[3.0, 1.0]], old=[[0.0] * 2], sampled=[[0.0] * 2], advantage=[[0.0, 1.0]]))
    found = make_part(LOSSES, "m2po:of=harmful,threshold=0.5").prepare(batch, ONE, np.random.default_rng(0))
    assert found["m2po"].tolist() == [0, 1]


def test_cispo_counts_above_its_bound_alone():
    assert figure("cispo:high=1", "clip/high", of((2.5, 1), (1.5, 1))) == (1, 2)


def test_the_covariance_of_one_token_is_0():
    values, count = covariances(of_tokens(tokens([[3.0]], advantage=[[2.0]])), ONE)
    assert (values.tolist(), count) == ([0], 1)


def test_a_low_ratio_without_an_advantage_is_a_candidate_of_clip_cov():
    logp = [2.0, -2.0, 0.0]
    old = [2.0, -1.0, 0.0]
    batch = of_tokens(tokens([logp], old=[old], sampled=[old], advantage=[[2.0, 0.0, 1.0]]))
    found = make_part(LOSSES, "clip_cov:share=1,least=0,most=9,low=0,high=0").prepare(
        batch, ONE, np.random.default_rng(0)
    )
    assert found["clip_cov"].tolist() == [1, 1, 0]


def test_the_other_tokens_have_a_probability_of_at_least_a_trillionth():
    """mu = 1/2, pi = 1: 1/2 log(1/2) + 1/2 (log(1/2) - log(1e-12)) = 13.12."""
    for high, dropped in ((13.1, 1), (13.2, 0)):
        made = of((2, 1), logp=[0.0])
        assert figure(f"dppo:divergence=kl,high={high}", "clip/dropped", made) == (dropped, 1)
