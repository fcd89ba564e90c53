"""One optimizer step after the other: what is computed, what moves the weights, and what a checkpoint goes on from."""

from dataclasses import dataclass

import numpy as np
import pytest
import torch
from row_trainer import row_trainer
from training_rows import alike, few_rows, row
from transformers import TrainerCallback

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.trainers.backends.reference.step import gradients, log_probs
from rstar2_env.trainers.backends.trl.loss.forward import ReferenceModel
from rstar2_env.trainers.backends.trl.loss.objective import Objective
from rstar2_env.trainers.backends.trl.loss.pending_rows import BatchLayout
from rstar2_env.trainers.losses.aggregations import TokenMean
from rstar2_env.trainers.losses.carft import Carft
from rstar2_env.trainers.losses.corrections import NoCorrection, Truncate
from rstar2_env.trainers.losses.echo import Echo
from rstar2_env.trainers.losses.entropy import AdaptiveEntropy
from rstar2_env.trainers.losses.kl import Kl
from rstar2_env.trainers.losses.ppo_clip import PpoClip
from rstar2_env.trainers.losses.rover import Rover
from rstar2_env.trainers.record.checkpoints import newest_checkpoint


def silent():
    """Rows of which none has an advantage."""
    return [row(5, 4, 9, 0.0), row(5, 4, 12, np.zeros(12))]


def policy_of(trainer):
    return trainer.accelerator.unwrap_model(trainer.model)


@pytest.mark.parametrize("nothing", [[], silent()], ids=["no row", "no advantage"])
@pytest.mark.parametrize("optimizer", ["adamw_torch", "sgd"])
def test_a_step_with_nothing_to_learn_leaves_every_weight_as_it_is(tiny_model, tmp_path, nothing, optimizer):
    moving = {"optim": optimizer, "weight_decay": 0.1, "optim_args": "momentum=0.9" if optimizer == "sgd" else None}
    rollouts = [few_rows(), few_rows(), nothing, few_rows()]
    trainer, followed = row_trainer(tiny_model, tmp_path, rollouts, **moving)
    trainer.train()
    after = followed.weights
    assert all(torch.equal(after[1][name], after[2][name]) for name in after[1])
    assert [any(not torch.equal(after[a][name], after[a + 1][name]) for name in after[0]) for a in (0, 2)] == [True] * 2
    assert followed.lines[2]["loss"] == followed.lines[2]["grad_norm"] == followed.lines[2]["tokens/computed"] == 0
    assert "tokens/share_trained" not in followed.lines[2]


class Weighing(Kl):
    """Nothing, of a term that is no policy gradient: every row has to be computed."""

    needs = frozenset()

    def __call__(self, tokens):
        return tokens.logp * 0

    def figures(self, tokens):
        return {}


def test_a_row_without_an_advantage_is_not_computed_but_counts_in_the_mean(tiny_model, tmp_path):
    found = []
    for terms in ([PpoClip()], [PpoClip(), Weighing()]):
        objective = Objective(terms, TokenMean(), NoCorrection())
        trainer, followed = row_trainer(tiny_model, tmp_path, [few_rows()], objective=objective)
        trainer.train()
        found.append((followed.lines[0], followed.weights[0]))
    (less, moved), (whole, same) = found
    assert less["loss"] == pytest.approx(whole["loss"], rel=1e-6)
    assert less["grad_norm"] == pytest.approx(whole["grad_norm"], rel=1e-5)
    for name, value in moved.items():
        torch.testing.assert_close(value, same[name], rtol=1e-4, atol=1e-6)
    lengths = [one.tokens for one in few_rows()]
    trained = sum(lengths) - lengths[2]
    assert (less["tokens/computed"], whole["tokens/computed"]) == (4 * max(lengths), 5 * max(lengths))
    assert less["tokens/trained"] == whole["tokens/trained"] == trained
    assert less["tokens/share_trained"] == pytest.approx(trained / (4 * max(lengths)))


def test_many_micro_batches_make_the_step_of_one(tiny_model, tmp_path):
    found = []
    for budget in (4096, 40, 1):
        objective = Objective([PpoClip()], TokenMean(), Truncate())
        trainer, followed = row_trainer(
            tiny_model, tmp_path, [few_rows()], objective=objective, shape=BatchLayout(budget), optim="sgd"
        )
        trainer.train()
        found.append((followed.lines[0], followed.weights[0]))
    assert [line["tokens/computed"] for line, _ in found] == [108, 27 + 2 * 18 + 12, 70]
    for line, weights in found[1:]:
        assert line["loss"] == pytest.approx(found[0][0]["loss"], rel=1e-5)
        for name, value in found[0][1].items():
            torch.testing.assert_close(weights[name], value, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("lora", [False, True], ids=["full", "lora"])
@pytest.mark.parametrize("minibatches", [1, 2])
def test_shared_prefixes_change_no_step(tiny_model, tmp_path, lora, minibatches):
    """The same curves, with old and reference log-probabilities, the second pass over the rows, and recomputation."""
    rows = [*alike(0, 24, 9), *alike(3, 30, 6), *few_rows()[3:]]
    found = []
    for share in (True, False):
        trainer, followed = row_trainer(
            tiny_model,
            tmp_path / str(share),
            [rows, rows[::-1]],
            objective=Objective([PpoClip(), Kl(coef=0.1), AdaptiveEntropy(target=0.3)], TokenMean(), Truncate()),
            shape=BatchLayout(150, passes=2, minibatches=minibatches, share_prefixes=share),
            reference=lambda policy: ReferenceModel(policy, torch.float32, 1.0),
            max_steps=4 * minibatches,
            optim="sgd",
            lora=lora,
            gradient_checkpointing=minibatches == 2,
        )
        trainer.train()
        found.append(followed)
    shared, separate = found
    counted = ("tokens/computed", "tokens/share_trained", "tokens/no_grad")
    for line, expected in zip(shared.lines, separate.lines, strict=True):
        names = [name for name in expected if not name.startswith(("seconds/", "speed/", *counted))]
        assert {name: line[name] for name in names} == pytest.approx(
            {name: expected[name] for name in names}, rel=1e-4, abs=1e-6
        )
        assert line["tokens/computed"] < 0.65 * expected["tokens/computed"]
    for name in ("tokens/computed", "tokens/no_grad"):
        total, whole = (sum(line[name] for line in one.lines) for one in found)
        assert total < 0.6 * whole, name
    for weights, others in zip(shared.weights, separate.weights, strict=True):
        for name, value in others.items():
            torch.testing.assert_close(weights[name], value, rtol=1e-4, atol=1e-6)


@dataclass
class Recorded:
    """The clipped surrogate, and the old log-probabilities of every row that it saw, by the row's first advantage."""

    inner: PpoClip

    def __post_init__(self):
        self.seen = []

    policy_gradient = True

    @property
    def needs(self):
        return self.inner.needs

    def __call__(self, tokens):
        for place in range(len(tokens.mask)):
            chosen = tokens.mask[place]
            self.seen.append((float(tokens.advantage[place][chosen][0]), tokens.old[place][chosen].clone()))
        return self.inner(tokens)


@pytest.mark.parametrize(("passes", "minibatches"), [(2, 1), (1, 2), (2, 2), (3, 2)])
def test_several_updates_train_on_every_row_against_the_weights_that_drew_it(tiny_model, tmp_path, passes, minibatches):
    rows = [row(group, 4, 6 + group, 0.1 + group + 0.01 * one, seed=one) for group in range(3) for one in range(2)]
    term = Recorded(PpoClip())
    trainer, followed = row_trainer(
        tiny_model,
        tmp_path,
        [rows],
        objective=Objective([term], TokenMean(), NoCorrection()),
        shape=BatchLayout(4096, passes=passes, minibatches=minibatches),
        max_steps=passes * minibatches,
    )
    start = {one.advantage: log_probs(policy_of(trainer), one).detach()[torch.tensor(one.mask).bool()] for one in rows}
    trainer.train()
    assert trainer.collector.asked == [0]
    assert len(followed.weights) == passes * minibatches
    assert sorted(advantage for advantage, _ in term.seen) == pytest.approx(sorted(passes * list(start)), rel=1e-6)
    for advantage, old in term.seen:
        nearest = min(start, key=lambda known, seen=advantage: abs(known - seen))
        torch.testing.assert_close(old, start[nearest], rtol=1e-4, atol=1e-4)
    # The rows of the first update need no pass of their own.
    assert (followed.lines[0]["tokens/no_grad"] > 0) == (minibatches > 1)
    assert all(line["tokens/no_grad"] == 0 for line in followed.lines[1:])
    assert trainer.pending is None


def test_the_second_update_is_the_reference_backends(tiny_model, tmp_path):
    rows, objective = few_rows(), Objective([PpoClip(low=0.01, high=0.01)], TokenMean(), Truncate())
    trainer, followed = row_trainer(
        tiny_model, tmp_path, [rows], objective=objective, shape=BatchLayout(50, passes=2), max_steps=2, optim="sgd"
    )
    model = policy_of(trainer)
    old = [log_probs(model, one).detach() for one in rows]
    trainer.train()
    before = followed.weights[0]
    loss = {}
    for given in (old, None):
        model.load_state_dict(before)
        loss[given is None] = gradients(model, rows, objective.terms, TokenMean(), Truncate(), old=given)[0]
    assert followed.lines[1]["loss"] == pytest.approx(loss[False], rel=1e-4)
    assert loss[False] != pytest.approx(loss[True], rel=2e-3), "old log-probabilities make a difference here"
    assert followed.lines[1]["clip/high"] > 0


def test_the_pass_of_the_reference_is_counted_on_a_line_of_its_own(tiny_model, tmp_path):
    objective = Objective([PpoClip(), Kl(coef=0.1)], TokenMean(), NoCorrection())
    trainer, followed = row_trainer(
        tiny_model,
        tmp_path,
        [few_rows(), few_rows()],
        objective=objective,
        reference=lambda policy: ReferenceModel(policy, torch.float32, 1.0),
    )
    trainer.train()
    first, second = followed.lines
    assert first["tokens/no_grad"] == first["tokens/computed"] == 5 * 27
    assert first["kl"] == pytest.approx(0, abs=1e-6)
    assert second["kl"] > 1e-4


def test_a_term_without_its_reference_model_is_refused(tiny_model, tmp_path):
    objective = Objective([Kl()], TokenMean(), NoCorrection())
    trainer, _ = row_trainer(tiny_model, tmp_path, [few_rows()], objective=objective)
    with pytest.raises(ConfigurationError, match="needs a reference model"):
        trainer.train()


def test_the_lag_is_that_of_the_turns(tiny_model, tmp_path):
    rollouts = [[row(0, 4, 9, 1.0)], [row(0, 4, 9, 1.0, version=1)], [row(0, 4, 9, 1.0, version=1)]]
    trainer, followed = row_trainer(tiny_model, tmp_path, rollouts)
    trainer.train()
    assert [line["policy/lag"] for line in followed.lines] == [0, 0, 1]


def test_figures_are_summed_over_the_steps_between_two_lines(tiny_model, tmp_path):
    rollouts = [few_rows(), [row(0, 4, 40, 1.0)]]
    each, followed = row_trainer(tiny_model, tmp_path, rollouts)
    each.train()
    both, together = row_trainer(tiny_model, tmp_path, rollouts, logging_steps=2)
    both.train()
    (one, other), (line,) = followed.lines, together.lines
    share = (one["tokens/trained"] + other["tokens/trained"]) / (one["tokens/computed"] + other["tokens/computed"])
    assert line["tokens/share_trained"] == pytest.approx(share)
    assert line["loss"] == pytest.approx((one["loss"] + other["loss"]) / 2)
    assert "completions/mean_length" not in line, "TRL's own figures are of this process alone"


def same_lines(found, expected):
    timed = ("seconds/", "speed/", "train_runtime")
    for one, other in zip(found, expected, strict=True):
        names = [name for name in other if not name.startswith(timed)]
        assert {name: one[name] for name in names} == {name: other[name] for name in names}


@pytest.mark.parametrize("stop", [3, 4])
def test_a_run_goes_on_from_the_middle_of_a_rollout_as_if_it_had_not_stopped(tiny_model, tmp_path, stop):
    rollouts = [few_rows(), [row(1, 4, 20, 1.0), row(2, 4, 10, -1.0), row(3, 3, 14, 0.5)], silent()]

    def trainer(where):
        return row_trainer(
            tiny_model,
            tmp_path / where,
            rollouts,
            shape=BatchLayout(60, passes=1, minibatches=2, seed=7),
            max_steps=8,
            save_strategy="steps",
            save_steps=stop,
            keep_checkpoints=9,
            logging_steps=2,
            weight_decay=0.1,
        )

    whole, unbroken = trainer("whole")
    whole.train()
    again, resumed = trainer("whole")
    again.train(resume_from_checkpoint=str(tmp_path / "whole" / f"checkpoint-{stop}"))
    same_lines(resumed.lines, [line for line in unbroken.lines if line["step"] > stop])
    for one, other in zip(resumed.weights, unbroken.weights[stop:], strict=True):
        assert all(torch.equal(one[name], other[name]) for name in other)
    assert again.collector.asked == [step for step in whole.collector.asked if step >= stop]


DEEP = {"rover": Rover, "carft": lambda: Carft(coef=1.0), "echo": Echo}


@pytest.mark.parametrize("name", DEEP)
def test_what_a_term_knows_of_the_weights_that_sampled_is_in_the_checkpoint(tiny_model, tmp_path, name):
    """Means over the vocabulary, embeddings, and which rows were right and whose calls were answered."""

    def rollout():
        made = [row(group, 4, 9 + 3 * member, 1.0, seed=member) for group in range(2) for member in range(3)]
        for place, one in enumerate(made):
            one.episode.correct = place % 3 > 0
        return made

    def trainer():
        return row_trainer(
            tiny_model,
            tmp_path,
            [rollout()],
            objective=Objective([DEEP[name]()], TokenMean(), NoCorrection()),
            shape=BatchLayout(60, passes=2),
            max_steps=2,
            save_strategy="steps",
            save_steps=1,
        )

    whole, unbroken = trainer()
    whole.train()
    again, resumed = trainer()
    again.train(resume_from_checkpoint=str(tmp_path / "checkpoint-1"))
    same_lines(resumed.lines, unbroken.lines[1:])
    assert all(torch.equal(resumed.weights[0][name], weights) for name, weights in unbroken.weights[1].items())
    assert unbroken.lines[1]["grad_norm"] > 0


def test_a_ratio_that_is_far_out_is_bounded_in_its_metric(tiny_model, tmp_path):
    far = few_rows()
    trainer, followed = row_trainer(
        tiny_model, tmp_path, [far], shape=BatchLayout(4096, passes=2), learning_rate=1e3, max_steps=2
    )
    trainer.train()
    assert np.isfinite(followed.lines[1]["policy/ratio"])


def test_a_reference_that_was_reset_is_in_the_checkpoint_and_one_that_was_not_is_none(tiny_model, tmp_path):
    objective = Objective([PpoClip(), Kl(coef=0.1)], TokenMean(), NoCorrection())

    def trainer():
        made, followed = row_trainer(
            tiny_model,
            tmp_path,
            [few_rows()] * 4,
            objective=objective,
            reference=lambda policy: ReferenceModel(policy, torch.float32, 1.0),
            save_strategy="steps",
            save_steps=1,
            keep_checkpoints=9,
        )

        class Resets(TrainerCallback):
            def on_step_end(self, args, state, control, **kwargs):
                if state.global_step == 2:
                    made.reference.reset(policy_of(made))

        made.add_callback(Resets())
        return made, followed

    whole, unbroken = trainer()
    whole.train()
    assert [(tmp_path / f"checkpoint-{step}" / "reference.pt").exists() for step in (1, 2, 3)] == [False, True, True]
    assert unbroken.lines[1]["kl"] > 1e-4 > unbroken.lines[2]["kl"]
    again, resumed = trainer()
    again.train(resume_from_checkpoint=str(tmp_path / "checkpoint-3"))
    assert resumed.lines[-1]["kl"] == unbroken.lines[3]["kl"]


def test_checkpoints_are_whole_old_ones_go_and_trls_model_card_is_not_there(tiny_model, tmp_path):
    trainer, _ = row_trainer(tiny_model, tmp_path, [few_rows()] * 4, save_strategy="steps", save_steps=1)
    trainer.train()
    assert newest_checkpoint(tmp_path).name == "checkpoint-4"
    assert {path.name for path in tmp_path.glob("checkpoint-*")} == {"checkpoint-3", "checkpoint-4"}
    assert not list(tmp_path.rglob("README.md"))


def test_a_checkpoint_that_lacks_the_state_of_a_process_is_refused(tiny_model, tmp_path):
    trainer, _ = row_trainer(tiny_model, tmp_path, [few_rows()], save_strategy="steps", save_steps=1)
    trainer.train()
    (tmp_path / "checkpoint-1" / "run_state_0.pt").unlink()
    again, _ = row_trainer(tiny_model, tmp_path, [few_rows()])
    with pytest.raises(ConfigurationError, match="is incomplete"):
        again.train(resume_from_checkpoint=str(tmp_path / "checkpoint-1"))


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_half_precision_computes_in_it_and_keeps_the_weights_in_float32(tiny_model, tmp_path, precision):
    if precision == "fp16" and not torch.cuda.is_available():
        pytest.skip("float16 with scaled gradients needs an accelerator")
    trainer, followed = row_trainer(tiny_model, tmp_path, [few_rows(), silent(), few_rows()], **{precision: True})
    seen = set()
    policy_of(trainer).model.layers[0].mlp.register_forward_hook(lambda *given: seen.add(given[2].dtype))
    trainer.train()
    assert seen == {torch.bfloat16 if precision == "bf16" else torch.float16}
    assert {value.dtype for value in followed.weights[0].values()} == {torch.float32}
    assert followed.lines[0]["grad_norm"] > 0


def test_the_policy_plays_in_half_precision_after_its_head_was_replaced(tiny_model, tmp_path):
    trainer, _ = row_trainer(tiny_model, tmp_path, [few_rows()] * 2, bf16=True)
    seen = []

    class Replaces(TrainerCallback):
        """Replaces the head, as hooks and measurements do, then calls the policy as an engine does."""

        def on_step_end(self, args, state, control, **kwargs):
            trainer.use_head(0.7, "sum_squares")
            trainer.use_head(0.7)
            policy = policy_of(trainer)
            hook = policy.model.layers[0].mlp.register_forward_hook(lambda *given: seen.append(given[2].dtype))
            with torch.no_grad():
                policy(input_ids=torch.tensor([[30, 31, 32]]))
            hook.remove()

    trainer.add_callback(Replaces())
    trainer.train()
    assert seen == [torch.bfloat16] * 2


def test_in_half_precision_the_first_step_has_no_distance_from_the_reference(tiny_model, tmp_path):
    objective = Objective([PpoClip(), Kl(coef=0.1)], TokenMean(), NoCorrection())
    trainer, followed = row_trainer(
        tiny_model,
        tmp_path,
        [few_rows()] * 2,
        objective=objective,
        reference=lambda policy: ReferenceModel(policy, torch.bfloat16, 1.0, autocasts=True),
        bf16=True,
    )
    trainer.train()
    assert followed.lines[0]["kl"] == 0.0 < followed.lines[1]["kl"]


def test_an_adaptive_term_learns_from_every_step_and_goes_on_from_a_checkpoint(tiny_model, tmp_path):
    def made():
        return AdaptiveEntropy(target=10.0, delta=0.01)

    term, resumed = made(), made()
    options = {"save_strategy": "steps", "save_steps": 2}
    parts = {"aggregation": TokenMean(), "correction": NoCorrection()}
    trainer, followed = row_trainer(
        tiny_model, tmp_path, [few_rows()], objective=Objective([PpoClip(), term], **parts), max_steps=3, **options
    )
    trainer.train()
    assert term.coef == pytest.approx(0.03)
    assert [line["entropy_coef"] for line in followed.lines] == pytest.approx([0, 0.01, 0.02])
    again, _ = row_trainer(
        tiny_model, tmp_path, [few_rows()], objective=Objective([PpoClip(), resumed], **parts), max_steps=3, **options
    )
    again.train(resume_from_checkpoint=str(tmp_path / "checkpoint-2"))
    assert resumed.state_dict() == term.state_dict()
