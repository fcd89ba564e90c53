"""A term that compares tokens with the others of the optimizer batch is given all of them, before each step."""

import numpy as np
import pytest
import torch
from row_trainer import row_trainer
from training_rows import few_rows, row

from rstar2_env.trainers.backends.reference.step import log_probs
from rstar2_env.trainers.backends.trl.loss.objective import Objective
from rstar2_env.trainers.backends.trl.loss.pending_rows import BatchLayout
from rstar2_env.trainers.losses.aggregations import TokenMean
from rstar2_env.trainers.losses.corrections import NoCorrection
from rstar2_env.trainers.losses.ppo_clip import PpoClip


class Prepared(PpoClip):
    """The clipped surrogate; keeps every batch that it was given, a draw, and the columns that came back."""

    def __init__(self):
        super().__init__()
        vars(self).update(batches=[], draws=[], columns=[])

    def prepare(self, batch, ranks, rng):
        self.batches.append(batch)
        self.draws.append(rng.random())
        return {"place": np.arange(1.0, 1 + len(batch.logp))}

    def __call__(self, tokens):
        self.columns.append(tokens.column("place")[tokens.mask].tolist())
        return super().__call__(tokens)


def trained(tiny_model, folder, term, rows, steps, **options):
    objective = Objective([term], TokenMean(), NoCorrection())
    trainer, followed = row_trainer(tiny_model, folder, [rows], objective=objective, max_steps=steps, **options)
    model = trainer.accelerator.unwrap_model(trainer.model)
    weights = [{name: value.clone() for name, value in model.state_dict().items()}]
    trainer.train()
    return model, [*weights, *followed.weights], followed.lines


def line(model, rows):
    with torch.no_grad():
        return np.concatenate([log_probs(model, one).numpy()[np.array(one.mask, bool)] for one in rows])


@pytest.mark.parametrize(("passes", "minibatches"), [(2, 1), (2, 2)])
def test_it_is_given_the_log_probabilities_of_now_and_of_the_rollout(tiny_model, tmp_path, passes, minibatches):
    rows = [row(group, 4, 6 + group, float(one), seed=one) for group in range(3) for one in range(2)]
    term, steps = Prepared(), passes * minibatches
    shape = BatchLayout(40, passes=passes, minibatches=minibatches)
    model, weights, _ = trained(tiny_model, tmp_path, term, rows, steps, shape=shape)
    assert len(term.batches) == steps
    for batch, before in zip(term.batches, weights, strict=False):
        own = [one for one in rows if one.episode.group in set(batch.groups.tolist())]
        assert batch.groups.tolist() == [one.episode.group for one in own]
        for values, state in ((batch.logp, before), (batch.old, weights[0])):
            model.load_state_dict(state)
            np.testing.assert_allclose(values, line(model, own), rtol=1e-4, atol=1e-4)
    assert len(set(term.draws)) == steps, "each step draws anew"


def test_rows_without_an_advantage_are_in_it_though_they_do_not_train(tiny_model, tmp_path):
    rows = few_rows()
    term = Prepared()
    _, _, lines = trained(tiny_model, tmp_path, term, rows, 1, shape=BatchLayout(30))
    (batch,) = term.batches
    assert batch.lengths().tolist() == [one.policy_tokens for one in rows]
    silent = np.flatnonzero(batch.row == 2) + 1.0
    found = sorted(value for columns in term.columns for value in columns)
    assert found == [place for place in range(1, 1 + len(batch.logp)) if place not in silent]
    assert lines[0]["tokens/no_grad"] > lines[0]["tokens/computed"]


def test_a_run_that_goes_on_draws_what_it_would_have_drawn(tiny_model, tmp_path):
    whole, again = Prepared(), Prepared()
    saving = {
        "shape": BatchLayout(4096, passes=2, seed=5),
        "save_strategy": "steps",
        "save_steps": 1,
        "keep_checkpoints": 9,
    }
    trained(tiny_model, tmp_path, whole, few_rows(), 3, **saving)
    objective = Objective([again], TokenMean(), NoCorrection())
    trainer, _ = row_trainer(tiny_model, tmp_path, [few_rows()], objective=objective, max_steps=3, **saving)
    trainer.train(resume_from_checkpoint=str(tmp_path / "checkpoint-1"))
    assert again.draws == whole.draws[1:]
    for one, other in zip(again.batches, whole.batches[1:], strict=True):
        np.testing.assert_array_equal(one.old, other.old)
        np.testing.assert_array_equal(one.logp, other.logp)
