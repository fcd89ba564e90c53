"""A whole run: it learns, keeps what it made, resumes exactly, and says what is wrong with its surroundings."""

import gzip
import json
import math
import shutil
from collections import Counter
from itertools import groupby
from pathlib import Path

import gymnasium as gym
import pytest
import torch
from page_reader import check_page_reader
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM

from rstar2_env import trainers
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.run_folder import read_run
from rstar2_env.diagnosis.metric_table import metric_of
from rstar2_env.rollout import RolloutError
from rstar2_env.rollout.token_checks.subject import row_findings, template_of
from rstar2_env.trainers import TRAINERS
from rstar2_env.trainers.backends.trl.run.run import fewer_updates
from rstar2_env.trainers.hooks.base import RunHook
from rstar2_env.trainers.samplers.uniform import Uniform
from rstar2_env.wrappers import read_episodes

pytestmark = pytest.mark.train


def train(name, options, **changes):
    trainer = trainers.make(name, **{**options, **changes})
    try:
        return trainer.train()
    finally:
        trainer.close()


def weights(folder):
    return AutoModelForCausalLM.from_pretrained(folder).state_dict()


@pytest.mark.parametrize("name", [pytest.param("grpo_clip_higher", marks=pytest.mark.proof), "grpo_roc"])
def test_any_text_environment_is_learned_by_any_trainer(name, letter_options):
    result = train(name, letter_options, steps=40, problems_per_step=8, tokens_per_device=32 * 16, learning_rate=1e-2)
    rates = [line["rollout/pass_rate"] for line in result.history if "rollout/pass_rate" in line]
    assert sum(rates[:3]) / 3 < 0.5
    assert sum(rates[-5:]) / 5 > 0.8


def test_the_best_weights_of_held_out_evaluation_are_kept_and_load(letter_options):
    result = train("grpo_clip_higher", letter_options, steps=4, eval={"every": 2, "episodes": 16})
    evaluations = {line["step"]: line["eval/pass_rate"] for line in result.history if "eval/pass_rate" in line}
    assert set(evaluations) == {0, 2, 4}
    assert evaluations[result.best_step] == max(evaluations.values())
    assert result.before["pass_rate"] == evaluations[0]
    assert result.model_dir.name == "best"
    weights(result.model_dir)


def test_a_run_with_fewer_groups_than_minibatches_says_how_many_steps_a_rollout_has(letter_options, caplog):
    """Samplers count rollouts and hooks count optimizer steps, also if a rollout has fewer steps than asked for."""
    rollouts, steps = [], []

    class Counts(Uniform):
        def observe(self, outcomes):
            rollouts.append(len(outcomes))

    class Steps(RunHook):
        def on_step_end(self, args, state, control, **kwargs):
            steps.append(self._run.step)

    options = {"problems_per_step": 2, "steps": 6, "sampler": Counts, "hook": [Steps()], "minibatches": 16}
    result = train("gspo", letter_options, **options)
    assert (rollouts, steps) == ([2] * 3, [1, 2, 3, 4, 5, 6])
    told = "A rollout has only 2 groups, so at most 2 optimizer steps are possible instead of 16: "
    assert [note["text"].startswith(told) for note in read_run(result.output_dir).notes] == [True]
    assert any(record.getMessage().startswith(told) for record in caplog.records)
    assert fewer_updates(TRAINERS.get("dapo").configure({"model": "m", "problems_per_step": 16})) == []


def test_every_metric_of_a_run_is_in_the_table(letter_options):
    result = train("grpo_roc", letter_options, loss=["ppo_clip", "kl"], eval={"every": 2, "episodes": 4})
    logged = {name for line in result.history for name in line if name != "step"}
    assert [name for name in sorted(logged) if metric_of(name) is None] == []
    assert len(logged) > 60


def test_a_run_that_shares_prefixes_has_the_curve_of_one_that_does_not(letter_options):
    """The same episodes, rewards, losses and weights, from fewer tokens; a model that cannot share them says so."""
    folder, found = Path(letter_options["output_dir"]), {}
    options = {
        "loss": ["ppo_clip", "kl:coef=0.1"],
        "max_turn_tokens": 6,
        "steps": 4,
        "tokens_per_device": 1024,
        "hook": [],
    }
    for name, more in (
        ("shared", {}),
        ("off", {"share_prefixes": False}),
        ("eager", {"attn_implementation": "eager"}),
    ):
        result = train("grpo", letter_options, **options, **more, output_dir=str(folder / name))
        notes = [event["text"] for event in read_run(folder / name).events if event["event"] == "note"]
        assert len(notes) == (name == "eager")
        assert all("because its attention is 'eager', not 'sdpa'" in note for note in notes)
        found[name] = (result.history, weights(result.model_dir))
    curves, final = found["shared"]
    for name in ("off", "eager"):
        others, other_weights = found[name]
        for metric in ("tokens/computed", "tokens/no_grad"):
            fewer, more = (sum(line.get(metric, 0.0) for line in lines) for lines in (curves, others))
            assert 0 < fewer < 0.6 * more, metric
        for line, other in zip(curves, others, strict=True):
            assert line.keys() == other.keys()
            for metric in {"loss", "grad_norm", "kl", "rollout/reward", "rollout/tokens", "tokens/trained"} & set(line):
                assert line[metric] == pytest.approx(other[metric], rel=1e-3, abs=1e-6), metric
        for key, value in other_weights.items():
            torch.testing.assert_close(final[key], value, rtol=1e-3, atol=1e-5)


def test_an_evaluation_takes_nothing_from_the_line_of_its_step(letter_options):
    result = train("grpo_clip_higher", letter_options, steps=3, eval={"every": 3, "episodes": 4})
    lines = [json.loads(line) for line in (result.output_dir / "metrics.jsonl").read_text().splitlines()]
    trained = {line["step"]: set(line) for line in lines if "loss" in line}
    assert set(trained) == {1, 2, 3}, "the step that is evaluated has its loss too"
    assert all(
        trained[step] >= {"grad_norm", "learning_rate", "rollout/pass_rate", "tokens/computed"} for step in (2, 3)
    )
    evaluated = {line["step"]: set(line) for line in lines if "eval/pass_rate" in line}
    assert set(evaluated) == {0, 3}
    assert all(name.startswith("eval/") for name in evaluated[3] - {"step"})
    assert {"loss", "eval/pass_rate"} <= set(result.history[-1])


def test_every_episode_and_metric_is_in_the_runs_folder(letter_options):
    result = train("grpo_roc", letter_options)
    with gzip.open(result.output_dir / "episodes" / "train-000001.jsonl.gz", "rt") as file:
        episodes = [json.loads(line) for line in file]
    assert len(episodes) == 4 * 4 * 2
    assert {"messages", "reward", "end", "statuses", "kept"} <= set(episodes[0])
    assert any(episode["kept"] for episode in episodes)
    assert not all(episode["kept"] for episode in episodes)
    metrics = [json.loads(line) for line in (result.output_dir / "metrics.jsonl").read_text().splitlines()]
    assert {"rollout/pass_rate", "rollout/groups_rejected", "rollout/turns", "kept/pass_rate", "loss"} <= set(
        metrics[0]
    )
    config = json.loads((result.output_dir / "config.json").read_text())
    assert (config["trainer"], config["rollout"]["group_size"]) == ("grpo_roc", 4)
    assert config["parts"]["correction"] == {"name": "none"}, 'what "auto" stood for'


def test_a_run_reads_back_from_its_folder(letter_options):
    options = {"steps": 2, "save_every": 1, "refill": 1, "keep_tokens": True, "hook": []}
    result = train("grpo_roc", letter_options, **options, eval={"every": 2, "episodes": 4})
    run = read_run(result.output_dir)
    later_best = [event for event in run.events if event.get("path") == "best" and event["step"]]
    happened = [(event["event"], event["step"]) for event in run.events if event not in later_best]
    assert happened == [
        ("started", 0),
        ("evaluation", 0),
        ("saved", 0),
        ("checkpoint", 1),
        ("evaluation", 2),
        ("checkpoint", 2),
        ("trained", 2),
        ("saved", 2),
        ("finished", 2),
    ]
    assert (run.steps, run.evaluated_steps) == ([0, 1, 2], [0, 2])
    assert run.recipe["name"] == "grpo_roc"
    assert [one.path.name for one in run.checkpoints] == ["checkpoint-1", "checkpoint-2"]
    assert [one.figures["pass_rate"] for one in run.evaluations] == [
        line["eval/pass_rate"] for line in result.history if "eval/pass_rate" in line
    ]
    for step in (1, 2):
        groups = run.groups(step)
        assert {len(group) for group in groups} == {8}
        assert len(groups) >= 4
        rounds = [group[0].decision.round for group in groups]
        assert rounds == sorted(rounds)
        assert sum(not number for number in rounds) == 4
        kept = {}
        for entry in (entry for group in groups for entry in group):
            (turn,) = entry.episode.steps
            assert turn.tokens == entry.episode.policy_tokens > 0
            assert turn.reward == entry.episode.reward
            assert turn.version == step - 1
            assert bool(entry.decision.reason) is not entry.kept, "dropped for a reason, or kept"
            assert (entry.decision.advantage is not None) is entry.kept
            assert entry.episode.rewards == {"return": entry.episode.reward}
            if entry.kept:
                kept[entry.episode.group, entry.member] = entry
        tokens = run.tokens(step)
        assert {(row.group, row.member) for row in tokens} <= set(kept)
        for row in tokens:
            entry = kept[row.group, row.member]
            (turn,) = entry.episode.steps
            assert [at for at, one in enumerate(row.mask) if one] == list(range(turn.start, turn.stop))
            assert set(row.advantages) == {entry.decision.advantage}
            assert len(row.ratios) in (0, len(row.mask))
    assert any(run.tokens(step) for step in (1, 2))
    for checkpoint in run.checkpoints:
        assert "sampler" in json.loads((result.output_dir / checkpoint.more["sampler"]).read_text())
    assert len(run.held_out(2)) == 4
    check_page_reader(result.output_dir)
    assert run.weights == {"best": result.best_step, "final": 2}
    assert result.outcome in (result.output_dir / "README.md").read_text()
    assert "after step 2 of 2" in (result.output_dir / "final" / "README.md").read_text()
    assert "arXiv 2508.20722" in (result.model_dir / "README.md").read_text()
    checked = row_findings(run, template_of(run))
    assert checked.looked_at
    assert checked.fit, checked.examples


def test_a_run_that_resumes_leaves_nothing_of_lost_steps_behind(letter_options):
    train("grpo_clip_higher", letter_options, steps=3, save_every=2)
    folder = Path(letter_options["output_dir"])
    shutil.rmtree(folder / "checkpoint-3")
    again = train("grpo_clip_higher", letter_options, steps=3, save_every=2, resume=True)
    lines = [json.loads(line)["step"] for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert lines == [1, 2, 3], "each step once"
    assert len(read_run(folder).groups(3)) == 4
    happened = [event["event"] for event in read_run(folder).events if event["event"] != "note"]
    assert happened[-5:] == ["resumed", "checkpoint", "trained", "saved", "finished"]
    assert again.history[-1]["step"] == 3


def test_a_run_that_fails_or_is_interrupted_says_so_in_its_events(letter_options, letter_env):
    class Interrupted(letter_env):
        def reset(self, **options):
            if not self.begun:  # before the run begins, one prompt is looked at for its length
                type(self).begun = True
                return super().reset(**options)
            raise self.why

    for number, (why, event) in enumerate([(RuntimeError("no"), "failed"), (SystemExit(143), "interrupted")]):
        Interrupted.why, Interrupted.begun = why, False
        folder = Path(letter_options["output_dir"]) / str(number)
        with pytest.raises((RolloutError, SystemExit)):
            train("grpo_clip_higher", letter_options, env=Interrupted, output_dir=str(folder))
        last = read_run(folder).events[-1]
        assert (last["event"], last["step"]) == (event, 0)


def test_the_same_seed_plays_the_same_episodes_and_another_one_does_not(letter_options, tmp_path):
    def played(where, seed):
        result = train("grpo_clip_higher", letter_options, steps=1, output_dir=str(tmp_path / where), seed=seed)
        with gzip.open(result.output_dir / "episodes" / "train-000001.jsonl.gz", "rt") as file:
            return [json.loads(line)["messages"] for line in file]

    one = played("one", 5)
    assert played("two", 5) == one
    assert played("three", 6) != one


def test_a_run_with_nothing_to_learn_changes_no_weight(letter_options):
    before = weights(letter_options["model"])
    result = train("grpo_roc", letter_options, env_options={"reward": 1.0}, weight_decay=0.5)
    for name, value in weights(result.model_dir).items():
        assert torch.equal(value, before[name]), name
    assert result.history[0]["rollout/groups_rejected"] == 1


def test_a_folder_that_holds_a_run_is_not_overwritten(letter_options):
    train("grpo_clip_higher", letter_options)
    with pytest.raises(ConfigurationError, match=r"already holds a training run.*resume="):
        train("grpo_clip_higher", letter_options)


def test_a_run_whose_environment_always_fails_stops_and_shows_the_cause(letter_options, letter_env):
    class Broken(letter_env):
        def step(self, action):
            raise RuntimeError("the disk is on fire")

    with pytest.raises(RolloutError, match="the disk is on fire"):
        train("grpo_clip_higher", letter_options, env=Broken)


def test_one_failing_episode_in_ten_stops_nothing_and_trains_nothing(letter_options, letter_env):
    class Shaky(letter_env):
        steps = 0

        def step(self, action):
            Shaky.steps += 1
            if Shaky.steps % 10 == 0:
                raise RuntimeError("lost")
            return super().step(action)

    result = train("grpo_roc", letter_options, env=Shaky)
    assert 0 < result.history[0]["rollout/unavailable"] < 0.2
    assert not math.isnan(result.history[-1]["loss"])


class Recording:
    """The run's engine, and every turn that it made: what it was asked to continue, and with what it did."""

    def __init__(self, engine):
        self.engine, self.turns = engine, []

    async def generate(self, ids, params):
        turn = await self.engine.generate(ids, params)
        self.turns.append((list(ids), list(turn.ids)))
        return turn


def test_the_ids_that_train_are_the_ids_that_the_engine_made(letter_options):
    trainer = trainers.make(
        "grpo_roc",
        **{**letter_options, "env_options": {"turns": 2}, "max_episode_tokens": 200, "keep_tokens": True, "steps": 1},
    )
    engine = trainer.play.train.engine = Recording(trainer.play.policy.engine)
    try:
        result = trainer.train()
    finally:
        trainer.close()
    entries = list(read_run(result.output_dir).tokens(1))
    kept = {
        (one.episode.group, one.member) for group in read_run(result.output_dir).groups(1) for one in group if one.kept
    }
    assert {(one.group, one.member) for one in entries} == kept != set()
    for one in entries:
        spans = [(mask, list(places)) for mask, places in groupby(range(len(one.mask)), key=one.mask.__getitem__)]
        asked = [
            (one.prompt_ids + one.completion_ids[: at[0]], [one.completion_ids[i] for i in at]) for m, at in spans if m
        ]
        assert len(asked) == 2
        assert all(turn in engine.turns for turn in asked)
        assert one.ratios == pytest.approx([1.0] * len(one.mask), abs=1e-3)
        assert {value for value, mask in zip(one.advantages, one.mask, strict=True) if mask} != {0.0}


def test_figures_of_a_step_are_those_of_its_episodes(letter_options):
    result = train("grpo_roc", letter_options, steps=2, env_options={"turns": 3}, max_episode_tokens=16)
    for line in result.history:
        entries = [entry for group in read_run(result.output_dir).groups(line["step"]) for entry in group]
        ends = Counter(entry.episode.end for entry in entries)
        shares = {name.rpartition("/")[2]: value for name, value in line.items() if name.startswith("rollout/end/")}
        assert {end: share * len(entries) for end, share in shares.items() if share} == pytest.approx(dict(ends))
        assert sum(shares.values()) == pytest.approx(1)
        assert shares["time"] == 0, "what did not happen is there, as a share of nothing"
        assert not any(name.startswith("rollout/status/") for name in line), "no call was seen"
        assert line["rollout/reward"] == pytest.approx(sum(entry.episode.reward for entry in entries) / len(entries))
        assert line["kept/episodes"] == sum(entry.kept for entry in entries)
        assert {"seconds/rollout", "seconds/tool", "seconds/engine_wait", "seconds/hand_over", "seconds/train"} <= set(
            line
        )
        assert 0 < line["seconds/engine_wait"] <= line["seconds/rollout"]
        assert 0 < line["engine/cached_share"] < 1
        assert line["engine/generated_tokens"] == sum(entry.episode.policy_tokens for entry in entries)
        assert line["policy/lag"] == 0
        assert "speed/mfu" not in line or torch.cuda.is_available(), "a CPU has no peak to compare with"


def test_metrics_and_a_table_of_episodes_reach_tensorboard(letter_options):
    accumulators = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    result = train("grpo_clip_higher", letter_options, report_to=["tensorboard"])
    (events,) = {path.parent for path in result.output_dir.rglob("events.out.tfevents.*")}
    found = accumulators.EventAccumulator(str(events), size_guidance={"tensors": 0}).Reload()
    assert [event.step for event in found.Scalars("train/rollout/pass_rate")] == [1, 2]
    tables = found.Tensors("episodes/text_summary")
    assert [event.step for event in tables] == [1, 2]
    table = tables[0].tensor_proto.string_val[0].decode()
    assert len(table.splitlines()) == 2 + 8
    assert "Say a letter." in table


def test_adapters_train_and_the_frozen_weights_stay(letter_options):
    before = weights(letter_options["model"])
    trainer = trainers.make("grpo_clip_higher", **{**letter_options, "lora_rank": 2})
    try:
        result = trainer.train()
        after = trainer.trl.model.get_base_model().state_dict()
    finally:
        trainer.close()
    frozen = {name.replace(".base_layer", ""): value for name, value in after.items() if "lora_" not in name}
    assert set(frozen) == set(before)
    for name, value in frozen.items():
        assert torch.equal(value, before[name]), name
    adapter = load_file(result.model_dir / "adapter_model.safetensors")
    # The second of the two starts at zero, so that an adapter that has not learned changes nothing.
    second = [value for name, value in adapter.items() if "lora_B" in name]
    assert second
    assert all(value.abs().max() > 0 for value in second)


def test_several_updates_train_on_the_episodes_of_one_rollout(letter_options):
    result = train("grpo_roc", letter_options, updates_per_rollout=2, steps=4)
    assert [line["step"] for line in result.history] == [1, 2, 3, 4]
    played = sorted(path.name for path in (result.output_dir / "episodes").iterdir())
    assert played == ["train-000001.jsonl.gz", "train-000003.jsonl.gz"]
    assert ["rollout/pass_rate" in line for line in result.history] == [True, False, True, False]
    assert all(line["grad_norm"] > 0 for line in result.history)


def test_a_math_environment_trains_with_its_real_tool(letter_options):
    result = train(
        "grpo_roc",
        letter_options,
        env="rstar2/MathTool-v0",
        env_options={"problems": "arithmetic:level=1", "max_turns": 2},
        max_episode_tokens=64,
        max_turn_tokens=16,
        steps=1,
    )
    assert result.history[0]["rollout/episodes"] == 32


def test_a_model_that_is_not_there_is_named(letter_options, tmp_path):
    with pytest.raises(ConfigurationError, match="nowhere"):
        trainers.make("grpo_clip_higher", **{**letter_options, "model": str(tmp_path / "nowhere")})


def test_a_custom_gymnasium_id_is_made_with_its_options(letter_options, letter_env):
    gym.register("tests/Letter-v0", entry_point=letter_env)
    try:
        assert train("grpo_clip_higher", letter_options, env="tests/Letter-v0", steps=1).history
    finally:
        del gym.registry["tests/Letter-v0"]


def test_the_run_folder_is_where_it_was_asked_for(letter_options):
    result = train("grpo_clip_higher", letter_options, steps=1)
    assert result.output_dir == Path(letter_options["output_dir"])
    assert (result.output_dir / "final" / "config.json").exists()


def test_training_and_evaluation_have_wrappers_of_their_own(letter_options, tmp_path):
    shaped = "reward_shaping:components=answer_format,task_weight=0"
    wrappers = [shaped, f"record_episodes:path={tmp_path}/train.jsonl"]
    evaluation = {"every": 2, "episodes": 4}
    result = train(
        "grpo_clip_higher",
        letter_options,
        wrappers=wrappers,
        eval={**evaluation, "wrappers": [f"record_episodes:path={tmp_path}/eval.jsonl"]},
    )
    trained, evaluated = (read_episodes(tmp_path / f"{name}.jsonl") for name in ("train", "eval"))
    assert len(trained) == 2 * 4 * 4
    assert len(evaluated) == 2 * 4
    assert all(set(line["info"]["reward_components"]) == {"task", "answer_format"} for line in trained)
    assert not any("reward_components" in line["info"] for line in evaluated)
    config = json.loads((result.output_dir / "config.json").read_text())
    assert config["rollout"]["wrappers"] == wrappers


def test_in_half_precision_a_run_begins_at_its_reference(letter_options):
    """The policy keeps its weights in float32 and computes in bfloat16; its reference must compute the same."""
    options = {**letter_options, "selector": "all", "problems_per_step": 8, "loss": ["ppo_clip", "kl"]}
    result = train("grpo", options, dtype="bfloat16", steps=2, learning_rate=3e-2)
    first, second = [line["kl"] for line in result.history if "kl" in line]
    assert first == 0.0 < second
