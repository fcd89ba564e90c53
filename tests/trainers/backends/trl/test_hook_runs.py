"""Hooks in whole runs: what they do reaches the episodes, the weights and the run's folder, and outlasts a resume."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest
import torch
from letter_env import LetterEnv
from transformers import AutoModelForCausalLM, TrainerCallback

from rstar2_env import trainers
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.run_folder import read_run
from rstar2_env.trainers.record.checkpoints import newest_checkpoint

pytestmark = pytest.mark.train


class NamedLetters(LetterEnv):
    """Problems with an id, which come up in turn."""

    def reset(self, *, seed=None, options=None):
        """Name the problem after its text."""
        text, info = super().reset(seed=seed, options=options)
        return text, {**info, "problem_id": text}


@pytest.fixture
def train(letter_options):
    """Take some steps, in the same folder as before where it resumes."""

    def run(*hooks, **changes):
        options = {
            **letter_options,
            "problems_per_step": 2,
            "steps": 4,
            "save_every": 1,
            "keep_checkpoints": 9,
            "selector": "all",
        }
        trainer = trainers.make("grpo_clip_higher", **{**options, "hook": list(hooks), **changes})
        try:
            return trainer.train()
        finally:
            trainer.close()

    return run


def notes(result):
    return [(event["step"], event["text"]) for event in read_run(result.output_dir).events if event["event"] == "note"]


def column(result, name):
    return [line[name] for line in result.history if name in line]


def test_a_guard_ends_a_run_with_a_checkpoint_and_its_reason(train):
    result = train(["guard", {"metric": "rollout/reward", "high": -1.0, "patience": 2, "action": "stop"}], save_every=0)
    assert len(column(result, "loss")) == 2
    assert newest_checkpoint(result.output_dir).name == "checkpoint-2"
    ((at, text),) = notes(result)
    assert at == 2
    assert "rollout/reward was outside of the range -inf to -1 2 times in a row" in text


def test_the_entropy_and_the_divergence_can_be_guarded(train):
    guards = [["guard", {"metric": name, "low": 1e9, "patience": 1}] for name in ("policy/entropy", "kl")]
    result = train(*guards, steps=1, loss=["ppo_clip", "kl"], problems_per_step=8)
    assert [text.split()[0] for _, text in notes(result)] == ["policy/entropy", "kl"]


class Falls:
    """Lets the environment pay less after some steps."""

    def bind(self, run):
        self.run = run

    def on_step_begin(self, args, state, control, **kwargs):
        reward = 0.75 if self.run.step < 2 else 0.25
        self.run.limits = replace(self.run.limits, env_options={"reward": reward})


def test_a_run_whose_reward_collapsed_is_stopped_and_says_from_where(train):
    result = train(Falls, ["collapse", {"window": 1, "patience": 2, "share": 0.5}], steps=8)
    assert column(result, "rollout/reward") == [0.75, 0.75, 0.25, 0.25]
    ((at, text),) = notes(result)
    assert at == 4
    assert "was 0.75 at step 1: the run stops" in text


def test_a_refresh_takes_the_divergence_back_to_nothing(train):
    options = {"loss": ["ppo_clip", ["kl", {"coef": 1e-3}]], "learning_rate": 3e-2, "problems_per_step": 8}
    divergence = column(train(["policy_refresh", {"steps": [2]}], **options), "kl")
    assert divergence[1] > 1e-4
    assert divergence[2] == pytest.approx(0, abs=1e-6)
    assert divergence[3] > 1e-4


def test_a_refresh_refuses_a_run_that_evaluates_under_another_template(tiny_model, tmp_path):
    options = {
        "model": str(tiny_model),
        "env": "rstar2/MathTool-v0",
        "env_options": {"problems": [{"question": "1 + 1?", "answer": "2"}]},
        "hook": ["policy_refresh"],
        "output_dir": str(tmp_path / "run"),
        "threads": 1,
        "progress": False,
    }
    held_out = {"env_options": {"dialect": "fenced", "problems": [{"question": "1 + 2?", "answer": "3"}]}}
    with pytest.raises(ConfigurationError, match="use different templates"):
        trainers.make("grpo_clip_higher", **options, eval=held_out)
    trainers.make("grpo_clip_higher", **options).close()


def test_a_stalled_validation_takes_the_divergence_back_to_nothing(train):
    options = {
        "loss": ["ppo_clip", ["kl", {"coef": 1e-3}]],
        "learning_rate": 3e-2,
        "problems_per_step": 8,
        "eval": {"every": 1, "episodes": 2},
    }
    constant = {**options, "eval": {**options["eval"], "env_options": {"reward": 0.5}}}
    # The evaluations before and after the first step; the third is the second that is no better.
    divergence = column(train(["reference_reset", {"patience": 2}], **constant), "kl")
    assert divergence[1] > 1e-4
    assert divergence[2] == pytest.approx(0, abs=1e-6)


def test_stages_that_grow_with_what_is_cut_off_grow_and_stay(train):
    hook = ["length_stages", {"tokens": [1, 100], "when_cut": 0.5}]
    options = {"env_options": {"turns": 3}, "max_episode_tokens": 2}
    result = train(hook, steps=2, **options)
    assert column(result, "rollout/end/tokens") == [1.0, 0.0]
    resumed = train(hook, steps=3, resume=True, **options)
    assert column(resumed, "rollout/end/tokens") == [1.0, 0.0, 0.0]


def test_unsolved_problems_are_learned_from_demonstrations_also_after_a_resume(train, tmp_path, tiny_model):
    texts = [f"Say a letter. {number}" for number in range(10)]
    shown = [[{"role": "user", "content": text}, {"role": "assistant", "content": "q"}] for text in texts]
    path = tmp_path / "shown.jsonl"
    path.write_text(
        "".join(
            json.dumps({"problem_id": text, "messages": one}) + "\n" for text, one in zip(texts, shown, strict=True)
        )
    )
    hook = ["interleaved_sft", {"demonstrations": str(path), "size": 3, "learning_rate": 1e-2}]
    options = {"env": NamedLetters, "env_options": {"reward": 0.0}, "steps": 4}
    whole = train(hook, **options, output_dir=str(tmp_path / "whole"))
    taught = notes(whole)
    assert taught
    assert all("an SFT step on demonstrations of" in text for _, text in taught)
    before, after = (_weights(folder) for folder in (tiny_model, whole.model_dir))
    assert any(not torch.equal(before[name], after[name]) for name in after)  # the advantages are all 0
    losses = [float(text.rstrip(".").split()[-1]) for _, text in taught]
    assert all(math.isfinite(loss) for loss in losses)

    train(hook, **{**options, "steps": 2})
    resumed = train(hook, **options, resume=True)
    assert notes(resumed) == taught
    again = _weights(resumed.model_dir)
    for name, value in after.items():
        torch.testing.assert_close(again[name], value)


def test_without_the_hook_nothing_is_learned_from_problems_that_nobody_solves(train, tiny_model):
    result = train(env=NamedLetters, env_options={"reward": 0.0}, steps=2)
    before, after = (_weights(folder) for folder in (tiny_model, result.model_dir))
    assert all(torch.equal(before[name], after[name]) for name in after)


def _weights(folder):
    return AutoModelForCausalLM.from_pretrained(folder).state_dict()


def test_parts_that_take_the_budget_of_an_episode_follow_its_stages(letter_options):
    options = {**letter_options, "problems_per_step": 2, "steps": 4, "selector": "all", "max_episode_tokens": 20}
    parts = {
        "hook": ["length_stages:tokens=1+1.5,steps=2"],
        "reward": ["return", "overlong"],
        "aggregation": "const_len",
    }
    seen = []

    class Looks(TrainerCallback):
        def on_step_end(self, args, state, control, **kwargs):
            overlong = trainer.trl.collector._collector.parts.rewards[1].score
            seen.append((overlong.limit, trainer.trl.objective.aggregation.length))

    trainer = trainers.make("grpo_clip_higher", **options, **parts, callbacks=[Looks()])
    try:
        trainer.train()
    finally:
        trainer.close()
    assert seen == [(20, 20), (20, 20), (30, 30), (30, 30)]


def test_a_stage_whose_budget_a_part_does_not_accept_is_refused_before_the_first_step(letter_options):
    parts = {"hook": ["length_stages:tokens=1+0.5,steps=1"], "reward": ["return", "overlong:buffer=12"]}
    with pytest.raises(ConfigurationError, match=r"max_episode_tokens to 8, .* parts\.reward .*'overlong', the buffer"):
        trainers.make("grpo", **letter_options, **parts)


def test_a_length_that_the_user_set_stays(letter_options):
    options = {**letter_options, "problems_per_step": 2, "steps": 3, "selector": "all", "max_episode_tokens": 20}
    parts = {"hook": ["length_stages:tokens=1+1.5,steps=1"], "aggregation": "const_len:length=7"}
    trainer = trainers.make("grpo_clip_higher", **options, **parts)
    try:
        trainer.train()
        assert trainer.trl.objective.aggregation.length == 7
    finally:
        trainer.close()
