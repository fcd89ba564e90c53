"""``dppo``: its divergences, and which tokens they drop."""

import math

import pytest
from loss_tokens import tokens

from rstar2_env.trainers.losses.dppo import Dppo


def trains(mu, pi, advantage, **options):
    """The weight of a token that the engine drew with mu and the policy has with pi; 0 where it is dropped."""
    batch = tokens([[math.log(pi)]], old=[[-9.0]], sampled=[[math.log(mu)]], advantage=[[advantage]])
    Dppo(**options)(batch).sum().backward()
    return -batch.logp.grad.item() / advantage


GOLDEN = [(0.5, 0.75, 1.0, 0.25, 0.14384), (0.01, 0.05, 1.0, 0.04, 0.02474), (0.9, 0.6, -1.0, 0.3, 0.22629)]


@pytest.mark.parametrize(("mu", "pi", "advantage", "tv", "kl"), GOLDEN)
def test_a_token_is_dropped_from_its_divergence_on(mu, pi, advantage, tv, kl):
    for name, apart in (("tv", tv), ("kl", kl)):
        for bounds, dropped in (((1.001, 0.999), False), ((0.999, 1.001), True)):
            own, other = (bound * apart for bound in bounds)
            sides = {"high": own, "low": other} if advantage > 0 else {"low": own, "high": other}
            weight = trains(mu, pi, advantage, divergence=name, **sides)
            assert weight == pytest.approx(0 if dropped else pi / mu), (name, sides)


def test_a_token_that_comes_back_trains_however_far_it_is():
    assert trains(0.9, 0.1, 1.0) == pytest.approx(1 / 9)
    assert trains(0.1, 0.9, -1.0) == pytest.approx(9)
    assert trains(0.9, 0.1, 1.0, either=True) == trains(0.1, 0.9, -1.0, either=True) == 0


def test_a_rare_token_may_have_a_large_ratio_and_a_frequent_one_may_not_move_far():
    assert trains(0.01, 0.05, 1.0) == pytest.approx(5)
    assert trains(0.01, 0.05, 1.0, cap=3.0) == pytest.approx(3)
    assert trains(0.5, 0.7, 1.0) == 0


@pytest.mark.parametrize(("divergence", "usual"), [("tv", 0.15), ("kl", 0.05)])
def test_the_bounds_are_the_authors_unless_they_are_given(divergence, usual):
    batch = [(0.3, 0.3 + 0.01 * step) for step in range(1, 50)]
    for advantage in (1.0, -1.0):
        pairs = batch if advantage > 0 else [(pi, mu) for mu, pi in batch]
        own = [trains(*pair, advantage, divergence=divergence) for pair in pairs]
        assert own == [trains(*pair, advantage, divergence=divergence, low=usual, high=usual) for pair in pairs]
        assert 0 in own
        assert any(own)


def test_what_it_is_compared_with_can_be_the_trainers():
    batch = tokens([[math.log(0.9)]], old=[[math.log(0.9)]], sampled=[[math.log(0.1)]])
    Dppo(anchor="old")(batch).sum().backward()
    assert batch.logp.grad.item() == -1
    assert (Dppo().needs, Dppo().corrected) == (frozenset(), False)
    assert (Dppo(anchor="old").needs, Dppo(anchor="old").corrected) == (frozenset({"old"}), True)


@pytest.mark.parametrize(("mu", "pi"), [(1.0, 1.0), (1.0, 1e-30), (1e-30, 1.0)])
def test_certain_and_impossible_tokens_stay_finite(mu, pi):
    for divergence in ("tv", "kl"):
        assert math.isfinite(trains(mu, pi, 1.0, divergence=divergence))


def test_a_certain_token_that_was_given_up_is_dropped():
    assert trains(1.0, 1e-9, -1.0, divergence="tv") == trains(1.0, 1e-9, -1.0, divergence="kl") == 0


def test_it_logs_what_is_dropped():
    logs = [[math.log(0.75), math.log(0.05), math.log(0.75)]]
    batch = tokens(logs, sampled=[[math.log(0.5), math.log(0.01), math.log(0.5)]], mask=[[1, 1, 0]])
    assert tuple(map(int, Dppo().figures(batch)["clip/dropped"])) == (1, 2)
