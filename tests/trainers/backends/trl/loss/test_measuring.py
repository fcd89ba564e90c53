"""What advantages are told of the policy equals plain forward passes, in whatever micro-batches it is measured."""

import pytest
import torch
from row_trainer import row_trainer
from training_rows import row

from rstar2_env.core.episode import Episode
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.trainers.advantages.igpo import Igpo
from rstar2_env.trainers.advantages.optimal_token_baseline import OptimalTokenBaseline
from rstar2_env.trainers.backends.trl.loss.forward import score
from rstar2_env.trainers.backends.trl.loss.measuring import PolicyMeasurer
from rstar2_env.trainers.backends.trl.loss.pending_rows import BatchLayout

pytestmark = pytest.mark.train

TEMPERATURE = 0.7
GOLD = {"a": "42", "b": "twelve"}


def played():
    """Groups of episodes of two turns, of unequal lengths."""
    groups = []
    for group, problem in enumerate("ab"):
        made = []
        for length in (9, 17):
            one = row(group, 5, length, 0.0)
            episode = one.episode
            episode.prompt_ids, episode.completion_ids, episode.mask = one.prompt_ids, one.completion_ids, one.mask
            episode.logprobs, episode.problem_id, episode.reward = one.logprobs, problem, float(length == 9)
            made.append(episode)
        groups.append(made)
    return groups


@pytest.fixture
def made(tiny_model, tmp_path):
    trainer, _ = row_trainer(tiny_model, tmp_path, [[]], shape=BatchLayout(40), temperature=TEMPERATURE)
    tokenizer = trainer.processing_class
    measuring = PolicyMeasurer(
        trainer,
        encode=lambda text: tokenizer.encode(text, add_special_tokens=False),
        answer=GOLD.__getitem__,
        temperature=lambda: TEMPERATURE,
    )
    return trainer, measuring


def distributions(trainer, ids):
    """Log-probabilities of the whole vocabulary after each token."""
    with torch.no_grad():
        return (trainer.model(input_ids=torch.tensor([ids])).logits[0].double() / TEMPERATURE).log_softmax(-1)


def test_sums_of_squares_are_those_of_the_whole_vocabulary_at_the_policys_tokens(made):
    trainer, measuring = made
    groups = played()
    measuring(OptimalTokenBaseline(), groups)
    for episode in (one for group in groups for one in group):
        logp = distributions(trainer, [*episode.prompt_ids, *episode.completion_ids])[len(episode.prompt_ids) - 1 : -1]
        squares = (2 * logp).exp().sum(-1) * torch.tensor(episode.mask)
        assert episode.measured["sum_squares"] == pytest.approx(squares.tolist(), rel=1e-4, abs=1e-9)
    assert len(OptimalTokenBaseline()(groups, None)) == 2


def test_the_probability_of_the_answer_is_that_after_what_came_before_each_turn(made):
    trainer, measuring = made
    groups = played()
    measuring(Igpo(lead="So: "), groups)
    encode = trainer.processing_class.encode
    for episode in (one for group in groups for one in group):
        lead, whole = (encode(text, add_special_tokens=False) for text in ("So: ", f"So: {GOLD[episode.problem_id]}"))
        assert whole[: len(lead)] == lead, "the tiny model's tokens are characters"
        expected = []
        for turn in episode.steps:
            before = [*episode.prompt_ids, *episode.completion_ids[: turn.start], *lead]
            ids = whole[len(lead) :]
            logp = distributions(trainer, [*before, *ids])[len(before) - 1 : -1]
            expected.append(logp.gather(1, torch.tensor(ids)[:, None]).mean().exp().item())
        assert episode.measured["answer"] == pytest.approx(expected, rel=1e-4)
    assert len(set(groups[0][0].measured["answer"])) == 2


def test_a_token_that_the_lead_and_the_answer_share_is_the_answers():
    ids = {"a": [1], "a b": [1, 2], "a{": [3], "a{b": [4, 5]}
    measuring = PolicyMeasurer(None, encode=ids.__getitem__, answer=None, temperature=lambda: 1.0)
    assert measuring._split("a", " b") == ([1], [2])
    assert measuring._split("a{", "b") == ([], [4, 5])


def test_the_head_of_the_policy_is_as_before_afterwards(made):
    trainer, measuring = made
    measuring(OptimalTokenBaseline(), played())
    ids = torch.tensor([[5, 6, 7]])
    with torch.no_grad():
        output = trainer.model(input_ids=ids, labels=ids, fused_lm_head=True)
    assert output.log_sum_sq_probs is None
    assert output.entropy is not None


def test_rows_train_at_the_sampling_temperature_after_a_measurement(made):
    trainer, measuring = made
    measuring(OptimalTokenBaseline(), played())
    batch = trainer.micro_batches([row(0, 5, 9, 1.0)])[0]
    with torch.no_grad():
        logits = trainer.model(input_ids=batch.ids).logits[:, :-1].double() / TEMPERATURE
        logp = score(trainer.model, batch, trainer.autocast).logp
    expected = logits.log_softmax(-1).gather(-1, batch.ids[:, 1:, None])[..., 0]
    torch.testing.assert_close(logp[batch.mask].double(), expected[batch.mask], rtol=1e-4, atol=1e-4)


def test_no_group_at_all_is_measured_too(made):
    """A process without a group takes part in the passes of the others."""
    _, measuring = made
    measuring(Igpo(), [])
    measuring(OptimalTokenBaseline(), [[]])


def test_a_need_that_nobody_knows_is_refused(made):
    class Odd:
        needs = frozenset({"luck"})

    with pytest.raises(ConfigurationError, match=r"Odd lists 'luck' in `needs`.*'sum_squares' and 'answer'"):
        made[1](Odd(), [[Episode()]])
