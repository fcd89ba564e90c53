"""The reference step against arithmetic that knows nothing of it: differences of losses."""

import numpy as np
import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel

from rstar2_env.core.episode import Episode
from rstar2_env.core.row import Row
from rstar2_env.core.turn import Turn
from rstar2_env.trainers.backends.reference.step import gradients, log_probs
from rstar2_env.trainers.losses.aggregations import SeqMean, TokenMean
from rstar2_env.trainers.losses.corrections import NoCorrection, Truncate
from rstar2_env.trainers.losses.entropy import Entropy
from rstar2_env.trainers.losses.kl import Kl
from rstar2_env.trainers.losses.reinforce import ReinforceLoss

PARTS = ([ReinforceLoss(), Kl(0.1, "k2"), Entropy(0.05)], SeqMean(), Truncate(cap=1.1))


@pytest.fixture(scope="module")
def model():
    """GPT-2, since the norms of newer models compute in float32, whatever their weights are."""
    torch.manual_seed(0)
    config = GPT2Config(vocab_size=60, n_positions=32, n_embd=16, n_layer=1, n_head=2, initializer_range=0.3)
    return GPT2LMHeadModel(config).eval().double()


def row(tokens, advantage, group=0, seed=0):
    """Two turns with two of the environment's tokens between them."""
    rng = np.random.default_rng(seed)
    first = tokens // 2
    mask = [1] * first + [0, 0] + [1] * (tokens - first)
    steps = [Turn(0, first), Turn(first + 2, tokens + 2)]
    ids = rng.integers(3, 60, tokens + 2).tolist()
    return Row(
        Episode(group=group, steps=steps), [1, 5, 7], ids, mask, (-4 * rng.random(tokens + 2)).tolist(), advantage
    )


ROWS = [row(5, 1.0), row(3, -0.5, seed=1), row(4, np.array([1.0, -1, 9, 9, 0.5, 2]), group=1, seed=2)]


def step(model, rows, parts=PARTS, **options):
    with torch.no_grad():
        scored = [log_probs(model, each).detach() for each in rows]
    given = {"old": [each - 0.05 for each in scored], "reference": [each + 0.1 for each in scored], **options}
    return gradients(model, rows, *parts, **given), given


def test_the_gradients_are_the_slopes_of_the_loss(model):
    (loss, found), given = step(model, ROWS)
    assert set(found) == {name for name, _ in model.named_parameters()}
    rng = np.random.default_rng(0)
    for name, parameter in model.named_parameters():
        place = tuple(int(rng.integers(size)) for size in parameter.shape)
        values = []
        for change in (1e-5, -1e-5):
            with torch.no_grad():
                parameter[place] += change
            values.append(gradients(model, ROWS, *PARTS, **given)[0])
            with torch.no_grad():
                parameter[place] -= change
        slope = (values[0] - values[1]) / 2e-5
        assert slope == pytest.approx(found[name][place].item(), rel=1e-6, abs=1e-9), name
    assert loss != 0


def test_the_loss_of_reinforce_is_a_mean_of_log_probabilities(model):
    (loss, _), _ = step(model, ROWS[:2], ([ReinforceLoss()], TokenMean(), NoCorrection()))
    total = 0.0
    for each in ROWS[:2]:
        ids = torch.tensor([[*each.prompt_ids, *each.completion_ids]])
        chances = model(ids).logits[0].softmax(-1)
        for at, (token, counts) in enumerate(zip(each.completion_ids, each.mask, strict=True)):
            total -= counts * each.advantage * chances[len(each.prompt_ids) + at - 1, token].log().item()
    assert loss == pytest.approx(total / 8)


def test_the_entropy_is_that_of_the_whole_distribution(model):
    (loss, _), _ = step(model, ROWS[:1], ([Entropy(1.0)], TokenMean(), NoCorrection()))
    ids = torch.tensor([[*ROWS[0].prompt_ids, *ROWS[0].completion_ids]])
    entropies = torch.distributions.Categorical(logits=model(ids).logits[0, 2:-1]).entropy()
    assert loss == pytest.approx(-entropies[torch.tensor(ROWS[0].mask).bool()].mean().item())


def test_the_temperature_is_that_of_the_sampling(model):
    hot = log_probs(model, ROWS[0], 2.0)
    ids = torch.tensor([[*ROWS[0].prompt_ids, *ROWS[0].completion_ids]])
    scaled = (model(ids).logits[0, 2:-1] / 2).softmax(-1)
    torch.testing.assert_close(hot, scaled[range(7), ROWS[0].completion_ids].log())


def test_what_the_environment_wrote_has_no_loss(model):
    """Its tokens change what follows, so only those after the policy's last may differ."""
    ended = row(4, 1.0)
    other = row(4, 1.0)
    for each, token in ((ended, 8), (other, 9)):
        each.completion_ids = [*each.completion_ids, token]
        each.mask, each.logprobs = [*each.mask, 0], [*each.logprobs, 0.0]
    (loss, found), (other_loss, other_found) = step(model, [ended])[0], step(model, [other])[0]
    assert loss == other_loss
    for name, gradient in found.items():
        torch.testing.assert_close(gradient, other_found[name], rtol=1e-9, atol=1e-12)
