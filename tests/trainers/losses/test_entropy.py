"""The entropy bonus, fixed and steered."""

import json

import pytest
from loss_tokens import tokens

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.trainers.losses.entropy import AdaptiveEntropy, Entropy


def batch(*entropies):
    made = tokens([[0.0] * len(entropies)], entropy=[entropies])
    made.entropy.requires_grad_()
    return made


def test_the_bonus_lowers_the_loss_where_the_entropy_is_high():
    made = batch(0.5, 2.0)
    loss = Entropy(0.1)(made)
    assert loss.tolist() == [[pytest.approx(-0.05), pytest.approx(-0.2)]]
    loss.sum().backward()
    assert made.entropy.grad.tolist() == [[-0.1, -0.1]]


def test_a_bonus_without_the_entropy_says_so():
    for term in (Entropy(), AdaptiveEntropy()):
        with pytest.raises(ConfigurationError, match="entropy"):
            term(tokens([[0.0]]))


def seen(term, *entropies):
    """The coefficient of each step after that the first, by the entropies of the steps."""
    coefs = []
    for entropy in entropies:
        term.observe({"entropy": (entropy * 8, 8)})
        coefs.append(round(term.coef, 6))
    return coefs


def test_the_coefficient_rises_below_the_target_and_falls_above_it():
    term = AdaptiveEntropy(target=0.2, delta=0.005)
    assert term.coef == 0
    # Above the target there is no bonus, but the coefficient is remembered.
    assert seen(term, 0.1, 0.1, 0.1, 0.3, 0.1, 0.2, 0.3, 0.3, 0.3, 0.3, 0.1) == [
        0.005, 0.01, 0.015, 0.0, 0.015, 0.015, 0.0, 0.0, 0.0, 0.0, 0.005,
    ]  # fmt: skip


def test_the_coefficient_stays_within_its_bounds():
    assert seen(AdaptiveEntropy(start=0.1, delta=0.05, most=0.12), 0.1, 0.1) == [0.12, 0.12]
    assert seen(AdaptiveEntropy(start=0.0, delta=0.05), 0.5, 0.1) == [0.0, 0.05]


def test_a_step_that_observed_nothing_changes_nothing():
    term = AdaptiveEntropy()
    term.observe({"entropy": (0.0, 0.0)})
    term.observe({})
    assert term.state_dict() == AdaptiveEntropy().state_dict()


def test_the_state_continues_where_it_was():
    term, other = AdaptiveEntropy(), AdaptiveEntropy()
    seen(term, 0.1, 0.1)
    other.load_state_dict(json.loads(json.dumps(term.state_dict())))
    assert other.coef == term.coef > 0
    assert seen(other, 0.1, 0.3, 0.2) == seen(term, 0.1, 0.3, 0.2)


def test_it_logs_what_it_goes_by():
    term = AdaptiveEntropy(start=0.01)
    seen(term, 0.1)
    figures = {name: total.item() / count.item() for name, (total, count) in term.figures(batch(0.5, 1.5)).items()}
    assert figures == {"entropy": pytest.approx(1.0), "entropy_coef": pytest.approx(0.015)}


def test_tokens_off_the_mask_are_not_observed():
    made = tokens([[0.0, 0.0]], entropy=[[0.5, 9.0]], mask=[[1, 0]])
    total, count = Entropy().figures(made)["entropy"]
    assert (total.item(), count.item()) == (0.5, 1)
