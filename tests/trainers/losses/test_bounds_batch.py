"""Terms that choose tokens of the whole batch (covariances, second moments, groups), at their bounds."""

import math

import numpy as np
import pytest
from bounded_tokens import TWO, figure, of
from loss_tokens import tokens

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.parts import make_part
from rstar2_env.testing.training.batch_of_tokens import of_tokens
from rstar2_env.testing.training.processes import in_processes
from rstar2_env.trainers.losses.base import LOSSES
from rstar2_env.trainers.losses.covariance import covariances
from rstar2_env.trainers.ranks import ONE


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


def test_the_bounds_of_a_covariance_must_differ():
    with pytest.raises(ConfigurationError, match=r"least=2\.0 and most=2\.0"):
        make_part(LOSSES, "clip_cov:least=2,most=2")


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


@pytest.mark.filterwarnings("error")
def test_a_token_without_an_advantage_is_not_harmful():
    batch = of_tokens(tokens([[3.0, 1.0]], old=[[0.0] * 2], sampled=[[0.0] * 2], advantage=[[0.0, 1.0]]))
    found = make_part(LOSSES, "m2po:of=harmful,threshold=0.5").prepare(batch, ONE, np.random.default_rng(0))
    assert found["m2po"].tolist() == [0, 1]


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
