"""Cross-entropy of what a tool wrote: on which tokens, with which weight, and beside the policy gradient."""

import pytest
import torch
from loss_tokens import tokens

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.parts import make_part
from rstar2_env.trainers.losses.base import LOSSES, environment_losses, token_losses
from rstar2_env.trainers.losses.echo import Echo
from rstar2_env.trainers.losses.reinforce import ReinforceLoss


def batch():
    """A turn with a call and its answer of two tokens, one without a call and what was shown, the last turn."""
    return tokens(
        [[-1.0, -2.0, -3.0, -0.5, -4.0, -0.25]],
        mask=[[1, 0, 0, 1, 0, 1]],
        turn=[[0, -1, -1, 1, -1, 2]],
        answered=[[-1, 2, 2, -1, 0, -1]],
        advantage=[[5.0] * 6],
    )


def test_it_is_the_negative_log_probability_of_what_tools_wrote():
    assert environment_losses(batch(), [Echo(coef=0.1)])[0].tolist() == pytest.approx([0, 0.2, 0.3, 0, 0, 0])


def test_what_the_environment_shows_without_a_call_is_learned_on_request():
    found = environment_losses(batch(), [Echo(coef=0.1, tools=False)])[0].tolist()
    assert found == pytest.approx([0, 0.2, 0.3, 0, 0.4, 0])


def test_its_gradient_is_on_these_tokens_alone():
    made = batch()
    environment_losses(made, [Echo(coef=0.1)]).sum().backward()
    assert made.logp.grad[0].tolist() == pytest.approx([0, -0.1, -0.1, 0, 0, 0])


def test_the_policys_tokens_have_the_other_terms_and_no_correction_acts_on_it():
    made, doubled = batch(), torch.full((1, 6), 2.0, dtype=torch.float64)
    terms = [ReinforceLoss(), Echo()]
    assert token_losses(made, terms, doubled)[0].tolist() == pytest.approx([10, 0, 0, 5, 0, 2.5])
    assert environment_losses(made, terms)[0].tolist() == environment_losses(made, [Echo()])[0].tolist()


class Everywhere(Echo):
    """About the environment's tokens, with a loss on all."""

    def __call__(self, tokens):
        return -tokens.logp


def test_what_such_a_term_says_of_the_policys_tokens_does_not_count():
    made = batch()
    ones = torch.ones(1, 6, dtype=torch.float64)
    assert not token_losses(made, [Everywhere()], ones).any()
    assert environment_losses(made, [Everywhere()])[0].tolist() == [0, 2, 3, 0, 4, 0]
    assert not environment_losses(made, [ReinforceLoss()]).any()


def test_its_figure_is_the_mean_over_what_it_learns():
    total, count = make_part(LOSSES, "echo").figures(batch())["echo"]
    assert (total.item(), count.item()) == (5.0, 2)


def test_where_no_one_said_which_tokens_are_the_environments_it_says_so():
    with pytest.raises(ConfigurationError, match="environment"):
        Echo()(tokens([[-1.0]]))
