"""What hooks do to a run: later episodes, log-probabilities, reference, optimizer and weights really change."""

from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import torch
from hooked_run import SAYS, hooked_run
from training_rows import few_rows
from transformers import TrainerCallback

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.rollout import EpisodeRequest
from rstar2_env.trainers.backends.trl.loss.forward import score
from rstar2_env.trainers.backends.trl.loss.pending_rows import BatchLayout
from rstar2_env.trainers.backends.trl.run.hooks import HooksCallback
from rstar2_env.trainers.backends.trl.run.run_state import unique_names
from rstar2_env.trainers.hooks.base import EVENTS
from rstar2_env.trainers.hooks.kl_schedule import KlSchedule
from rstar2_env.trainers.hooks.reference_reset import ReferenceReset
from rstar2_env.trainers.hooks.state import Budgets
from rstar2_env.trainers.hooks.temperature_schedule import TemperatureSchedule
from rstar2_env.trainers.losses.kl import Kl
from rstar2_env.trainers.losses.ppo_clip import PpoClip
from rstar2_env.trainers.record.checkpoints import newest_checkpoint

ASKS = [*SAYS, {"role": "user", "content": "Another."}, {"role": "assistant", "content": "w"}]


@pytest.fixture
def make_run(tiny_model, tmp_path):
    players = []

    def build(*hooks, folder="run", **options):
        run = hooked_run(tiny_model, tmp_path / folder, *hooks, **options)
        players.append(run.player)
        return run

    yield build
    for player in players:
        player.close()


def test_the_events_are_those_of_transformers():
    theirs = {name for name in vars(TrainerCallback) if name.startswith("on_")}
    assert set(EVENTS) == theirs
    assert all(getattr(HooksCallback, name) is not getattr(TrainerCallback, name) for name in EVENTS)


def test_the_temperature_is_that_of_later_episodes_and_of_their_training(make_run):
    run = make_run()
    before = [episode.completion_ids for episode in run.play()]
    batch = run.trainer.micro_batches(few_rows())[0]
    warm = score(run.trainer.model, batch, run.trainer.accelerator.autocast).logp
    run.state.temperature = 0.05
    assert run.player.sampling.temperature == 1.0  # rows that were drawn at 1 may still be trained on
    same = score(run.trainer.model, batch, run.trainer.accelerator.autocast).logp
    assert torch.equal(warm, same)
    cold = [episode.completion_ids for episode in run.play()]
    assert len({tuple(ids) for ids in cold}) < len({tuple(ids) for ids in before})
    sharp = score(run.trainer.model, batch, run.trainer.accelerator.autocast).logp
    with torch.no_grad():
        logits = run.trainer.model(input_ids=batch.ids).logits[:, :-1] / 0.05
    expected = logits.log_softmax(-1).gather(-1, batch.ids[:, 1:, None])[..., 0]
    torch.testing.assert_close(sharp[batch.mask], expected[batch.mask], rtol=1e-4, atol=1e-4)
    reference = run.trainer.reference.score(run.trainer.model, batch, run.trainer.accelerator.autocast)
    torch.testing.assert_close(reference[batch.mask], expected[batch.mask], rtol=1e-4, atol=1e-4)


def test_limits_are_those_of_later_episodes(make_run):
    run = make_run()
    run.state.limits = replace(run.state.limits, env_options={"turns": 3, "reward": 0.25})
    assert {(episode.turns, episode.reward) for episode in run.play()} == {(3, 0.75)}
    run.state.limits = replace(run.state.limits, max_episode_tokens=7, max_turn_tokens=2)
    episodes = run.play()
    assert {episode.end for episode in episodes} == {"tokens"}
    assert max(len(episode.completion_ids) for episode in episodes) <= 7
    with pytest.raises(ConfigurationError, match=r"Budgets\.max_turn_tokens"):
        replace(run.state.limits, max_turn_tokens=0)
    with pytest.raises(TypeError, match="turn"):
        run.state.limits = Budgets(env_options={"turn": 3})
    assert run.state.limits.env_options == {"turns": 3, "reward": 0.25}


def test_a_coefficient_scales_its_term_from_the_next_step_on(make_run):
    class Set:
        def bind(self, run):
            self.run = run

        def on_step_end(self, args, state, control, **kwargs):
            self.run.set_coefficient(0.0)

    silent = [replace(row, advantage=0.0) for row in few_rows()]
    run = make_run(Set(), coef=5.0, rows=silent, learning_rate=0.0, steps=2)
    with torch.no_grad():
        for weights in run.trainer.reference.model.parameters():
            weights.add_(0.1 * torch.randn_like(weights))
    run.trainer.train()
    first, second = run.followed.lines
    assert first["loss"] == pytest.approx(5 * first["kl"], rel=1e-4)
    assert first["kl"] > 0
    assert second["loss"] == 0
    assert run.state.coefficient() == 0
    with pytest.raises(ConfigurationError, match=r"'entropy' with an option coef\. Terms with this option: kl"):
        run.state.coefficient("entropy")
    with pytest.raises(ConfigurationError, match="at least 0"):
        run.state.set_coefficient(-1.0)


def test_two_terms_of_one_name_have_a_coefficient_each():
    assert unique_names(["kl", "ppo_clip", "kl", "kl"]) == ["kl", "ppo_clip", "kl#2", "kl#3"]


def test_the_second_term_of_a_name_is_set_and_kept_apart(make_run):
    run = make_run(terms=[PpoClip(), Kl(coef=0.1), Kl(coef=0.2, estimator="k2")])
    run.state.set_coefficient(0.5, "kl#2")
    assert (run.state.coefficient("kl"), run.state.coefficient("kl#2")) == (0.1, 0.5)
    kept = run.state.state_dict()
    assert kept["coefficients"] == {"kl": 0.1, "kl#2": 0.5}
    run.state.set_coefficient(0.9, "kl")
    run.state.load_state_dict(kept)
    assert [term.coef for term in run.trainer.objective.terms[1:]] == [0.1, 0.5]


def test_a_term_that_learns_keeps_what_it_learned_when_its_coefficient_is_set(make_run):
    @dataclass
    class Learns:
        coef: float = 0.5
        needs = frozenset()
        policy_gradient = False
        seen = 0

        def __call__(self, tokens):
            return self.coef * tokens.logp

    term = Learns()
    run = make_run(terms=[PpoClip(), term])
    term.seen = 3
    run.state.set_coefficient(0.25)
    assert run.trainer.objective.terms[1] is term
    assert (term.coef, term.seen) == (0.25, 3)


def test_a_reset_reference_is_the_policy_also_for_rows_that_wait(make_run):
    class Reset:
        def bind(self, run):
            self.run = run

        def on_step_end(self, args, state, control, **kwargs):
            if state.global_step == 3:
                self.run.reset_reference()

    run = make_run(Reset(), steps=4, shape=BatchLayout(4096, passes=4), learning_rate=3e-2)
    run.trainer.train()
    divergence = [line["kl"] for line in run.followed.lines]
    assert divergence[0] == pytest.approx(0, abs=1e-6)
    assert divergence[2] > 1e-3
    # The fourth update is on the rows of the first rollout, whose reference was computed before the reset.
    assert divergence[3] == pytest.approx(0, abs=1e-6)
    assert run.trainer.collector.asked == [0]


def test_a_reset_optimizer_has_no_moments_and_goes_on(make_run):
    class Reset:
        seen = None

        def bind(self, run):
            self.run = run

        def on_step_end(self, args, state, control, **kwargs):
            inner = kwargs["optimizer"].optimizer
            if state.global_step == 2:
                full = len(inner.state)
                self.run.reset_optimizer()
                self.seen = full, len(inner.state), [group["lr"] for group in inner.param_groups]

    hook = Reset()
    run = make_run(hook, steps=3, terms=[PpoClip()])
    run.trainer.train()
    full, left, rates = hook.seen
    assert full > 0
    assert left == 0
    assert set(rates) == {1e-2}
    steps = {int(state["step"]) for state in run.trainer.optimizer.state.values()}
    assert steps == {1}


class Teaches:
    """Takes SFT steps after the first step, and keeps what it saw."""

    def __init__(self, times=1, **options):
        self.times, self.options, self.losses = times, options, []

    def bind(self, run):
        self.run = run

    def on_step_end(self, args, state, control, **kwargs):
        if state.global_step == 1:
            self.losses = [self.run.sft_step([SAYS, ASKS], **self.options) for _ in range(self.times)]
            self.rates = {group["lr"] for group in kwargs["optimizer"].param_groups}


def test_an_sft_step_raises_the_likelihood_of_what_it_was_given(make_run):
    silent = [replace(row, advantage=0.0) for row in few_rows()]
    hook = Teaches(5, learning_rate=1e-2)
    run = make_run(hook, terms=[PpoClip()], rows=silent, shape=BatchLayout(8))
    run.state.temperature = 0.5
    run.state.begin_rollout()
    before = torch.cat([run.logp(SAYS), run.logp(ASKS)])
    run.trainer.train()
    after = torch.cat([run.logp(SAYS), run.logp(ASKS)])
    # The loss is that of the model as it is, whatever the temperature of the rollouts.
    assert hook.losses[0] == pytest.approx(-float(before.mean()), rel=1e-4)
    assert float(after.mean()) > float(before.mean()) + 0.5
    assert hook.losses == sorted(hook.losses, reverse=True)
    assert len(run.new_weights) == 5


def test_an_sft_step_leaves_the_learning_rate_and_the_training_of_rows_as_they_were(make_run):
    hook = Teaches(learning_rate=0.0)
    run = make_run(hook, terms=[PpoClip()], weight_decay=0.0)
    run.trainer.train()
    plain = make_run(folder="plain", terms=[PpoClip()], weight_decay=0.0)
    plain.trainer.train()
    assert hook.rates == {1e-2}
    one, other = run.followed.weights[0], plain.followed.weights[0]
    assert all(torch.equal(one[name], other[name]) for name in one)
    assert all(parameter.grad is None for parameter in run.trainer.model.parameters())


def test_rows_train_at_the_sampling_temperature_after_an_sft_step(make_run):
    run = make_run(terms=[PpoClip()])
    run.trainer.train()
    run.state.temperature = 0.5
    run.state.begin_rollout()
    batch = run.trainer.micro_batches(few_rows())[0]
    run.state.sft_step([SAYS], learning_rate=0.0)
    with torch.no_grad():
        logits = run.trainer.model(input_ids=batch.ids).logits[:, :-1] / 0.5
        logp = score(run.trainer.model, batch, run.trainer.accelerator.autocast).logp
    expected = logits.log_softmax(-1).gather(-1, batch.ids[:, 1:, None])[..., 0]
    torch.testing.assert_close(logp[batch.mask], expected[batch.mask], rtol=1e-4, atol=1e-4)


def test_an_sft_step_is_refused_without_a_turn_and_in_the_middle_of_a_step(make_run):
    class InTheMiddle(Teaches):
        def on_pre_optimizer_step(self, args, state, control, **kwargs):
            self.run.sft_step([SAYS])

    run = make_run(InTheMiddle(), terms=[PpoClip()])
    with pytest.raises(ConfigurationError, match="only between optimizer steps"):
        run.trainer.train()
    with pytest.raises(ConfigurationError, match="without any conversation"):
        run.state.sft_step([])


class Evaluates(TrainerCallback):
    """Logs the figure of an evaluation after every step."""

    def __init__(self, trainer, figures):
        self.trainer, self.figures = trainer, figures

    def on_step_end(self, args, state, control, **kwargs):
        due = control.should_log
        self.trainer.log_apart({"eval/pass_rate": self.figures[state.global_step - 1]})
        control.should_log = due


def test_hooks_are_told_of_evaluations_and_see_the_newest_figures(make_run):
    class Watches:
        seen = ()

        def bind(self, run):
            self.run = run

        def on_evaluate(self, args, state, control, metrics, **kwargs):
            self.seen = (*self.seen, (state.global_step, metrics, dict(self.run.figures)["eval/pass_rate"]))

    hook = Watches()
    run = make_run(hook, terms=[PpoClip()])
    run.trainer.add_callback(Evaluates(run.trainer, [0.1, 0.2]))
    run.trainer.train()
    assert hook.seen == ((1, {"eval/pass_rate": 0.1}, 0.1), (2, {"eval/pass_rate": 0.2}, 0.2))
    assert run.state.figures["loss"] == run.followed.lines[-1]["loss"]


def test_a_hook_may_end_the_run(make_run):
    class Ends:
        def on_step_end(self, args, state, control, **kwargs):
            control.should_training_stop = state.global_step == 2
            return control

    run = make_run(Ends(), steps=4, terms=[PpoClip()])
    run.trainer.train()
    assert [line["step"] for line in run.followed.lines] == [1, 2]


def test_what_hooks_changed_and_counted_is_in_the_checkpoint(make_run):
    def begin(folder="run"):
        hooks = ReferenceReset(patience=3), TemperatureSchedule(end=2.0), KlSchedule(start=0.5, end=0.1)
        run = make_run(*hooks, folder=folder, steps=6, save_strategy="steps", save_steps=2, learning_rate=2e-2)
        run.trainer.add_callback(Evaluates(run.trainer, [0.5, 0.4, 0.4, 0.4, 0.4, 0.4]))
        return run, hooks[0]

    whole, _ = begin("whole")
    whole.trainer.train()
    stopped, _ = begin()
    stopped.trainer.args.max_steps = 2
    stopped.trainer.train()
    resumed, hook = begin()
    resumed.trainer.train(resume_from_checkpoint=str(newest_checkpoint(Path(resumed.trainer.args.output_dir))))
    assert hook.state_dict() == {"best": 0.4, "stale": 2}
    assert resumed.state.temperature == pytest.approx(1 + 5 / 6)
    for name, value in whole.followed.weights[-1].items():
        torch.testing.assert_close(resumed.followed.weights[-1][name], value)


def test_what_holds_from_the_next_rollout_on_waits_in_a_checkpoint_too(make_run, tmp_path):
    run = make_run()
    run.state.temperature, run.state.limits = 0.5, Budgets(64, 3, {"turns": 2})
    run.state.begin_rollout()
    run.state.temperature, run.state.limits = 0.25, Budgets(150, 2, {"turns": 2, "reward": 1.0})
    torch.save(run.hooks.state_dict(), tmp_path / "state.pt")
    other = make_run(folder="other")
    other.hooks.load_state_dict(torch.load(tmp_path / "state.pt", weights_only=True))
    assert other.player.sampling.temperature == 0.5
    assert (other.player.budget.tokens, other.player.budget.turn_tokens) == (64, 3)
    assert {episode.turns for episode in other.player.play([EpisodeRequest(sampling_seed=1)])} == {2}
    assert {episode.reward for episode in other.play(2)} == {2.0}
    assert other.player.sampling.temperature == 0.25
    assert (other.player.budget.tokens, other.player.budget.turn_tokens) == (150, 2)


def test_a_hook_whose_needs_the_run_lacks_is_refused_before_training(make_run):
    with pytest.raises(ConfigurationError, match="'reference_reset' needs a reference model"):
        make_run(ReferenceReset(), terms=[PpoClip()])
    with pytest.raises(ConfigurationError, match="not have a term 'kl'"):
        make_run(KlSchedule(), terms=[PpoClip()])
