"""Recipes whose episodes are not all played from the start to the end: what each prescribes, and two steps of each."""

from __future__ import annotations

import math

import pytest
from scripted_policy import WORLDS, engine_kind

from rstar2_env import trainers
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.run_folder import read_run
from rstar2_env.rollout.engines.registry import ENGINES
from rstar2_env.trainers.options.parts import make_parts

pytestmark = pytest.mark.train


def configured(name, **options):
    return trainers.TRAINERS.get(name).configure({"model": "m"}, options)


def two_steps(name, tiny_model, folder, **options):
    """What a run of two steps did, whose policy says what a script says; its tool, rewards and optimizer are real."""
    world = WORLDS["tool"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(ENGINES._parts, "scripted", engine_kind(world.script))
        trainer = trainers.make(
            name,
            model=str(tiny_model),
            env=world.env,
            env_options=dict(world.options),
            **{
                "engine": "scripted",
                "output_dir": str(folder),
                "steps": 2,
                "problems_per_step": 2,
                "group_size": 6,
                "max_episode_tokens": world.tokens,
                "learning_rate": 1e-3,
                "minibatches": 1,
                "save_every": 0,
                "threads": 1,
                "progress": False,
                **options,
            },
        )
        try:
            result = trainer.train()
        finally:
            trainer.close()
    steps = [line for line in result.history if "loss" in line]
    assert [line["step"] for line in steps] == [1, 2]
    assert all(math.isfinite(value) for line in steps for value in line.values())
    run = read_run(result.output_dir)
    return [each.episode for step in (1, 2) for each in run.episodes(step)]


def by_group(episodes):
    groups = {}
    for at, episode in enumerate(episodes):
        groups.setdefault((at // 12, episode.group), []).append(episode)
    return list(groups.values())


def test_arpo_prescribes_what_its_paper_does():
    config = configured("arpo")
    parts = make_parts(config, shares_weights=True)
    rollout = parts.rollout
    assert (rollout.initial, rollout.beam, rollout.probability, rollout.weight) == (None, 2, 0.5, 0.2)
    assert (rollout.decide, rollout.threshold, rollout.of) == ("threshold", 0.5, "after")
    assert (rollout.candidates, rollout.tokens) == (10, 20)
    assert [part.name for part in config.parts.reward] == ["tool_hierarchy"]
    assert (config.rollout.group_size, config.rollout.problems_per_step, config.optim.minibatches) == (16, 128, 8)
    assert config.parts.advantage.name == "arpo"
    assert parts.advantage.attribution == "soft"
    assert [part.name for part in config.parts.loss] == ["ppo_clip"]
    assert (parts.terms[0].low, parts.terms[0].high, config.optim.learning_rate) == (0.2, 0.2, 1e-6)


def test_arpo_trains_on_branches_of_its_own_episodes(tiny_model, tmp_path):
    # The script reports no entropies, so that the paper's rule would branch nothing.
    parts = {"advantage": "arpo:attribution=hard", "rollout": "entropy_branching:decide=draw,of=before"}
    episodes = two_steps("arpo", tiny_model, tmp_path / "run", parts=parts)
    groups = by_group(episodes)
    assert [len(group) for group in groups] == [6] * 4
    branches = [(group, episode) for group in groups for episode in group if episode.parent]
    assert branches
    for group, episode in branches:
        parent = group[episode.parent[0]]
        shared = [turn.start for turn in parent.steps].index(episode.parent[1])
        assert shared >= 1
        assert [m.content for m in episode.messages][: 2 * shared] == [m.content for m in parent.messages][: 2 * shared]


def test_deepsearch_prescribes_what_its_paper_does():
    config = configured("deepsearch")
    rollout = make_parts(config, shares_weights=True).rollout
    assert (rollout.chunk, rollout.width, rollout.depth, rollout.weight) == (256, 8, 64, 2.0)
    assert (rollout.hard, config.rollout.group_size) == (0.25, 8)
    parts = make_parts(config, shares_weights=True)
    assert config.parts.advantage.name == "tree_value"
    assert parts.advantage.add == ("overlong",)
    assert (parts.rewards[1].score.limit, parts.rewards[1].score.share) == (16384, 0.25)
    assert config.optim.minibatches == 8


def test_deepsearch_trains_on_the_values_of_its_tree(tiny_model, tmp_path):
    """The script answers in one chunk, and calls its tool in another: a call has children, half of them right."""
    folder = tmp_path / "run"
    episodes = two_steps(
        "deepsearch", tiny_model, folder, keep_tokens=True, parts={"rollout": "deepsearch:width=3,hard=1"}
    )
    assert [len(group) for group in by_group(episodes)] == [6] * 4
    assert all(episode.available and episode.end != "open" for episode in episodes)
    assert any(episode.parent for episode in episodes)
    rows = read_run(folder).tokens(1) + read_run(folder).tokens(2)
    assert any(len({value for value, own in zip(row.advantages, row.mask, strict=True) if own}) > 1 for row in rows)


def test_agentrl_prescribes_what_its_paper_does():
    config = configured("agentrl")
    parts = make_parts(config, shares_weights=True)
    assert parts.rollout.older_weights.every == 4
    assert parts.rollout.stale == "train"
    assert config.parts.advantage.name == "task_norm"
    assert (config.rollout.group_size, config.rollout.temperature) == (8, 0.8)
    (loss,) = parts.terms
    assert (loss.anchor, loss.corrected) == ("sampled", False)


def test_agentrl_trains_on_turns_of_older_weights_with_their_own_log_probabilities(tiny_model, tmp_path):
    """In the second step the older weights are the first ones, and a token's ratio says so."""
    folder = tmp_path / "run"
    parts = {"rollout": "cross_policy:probability=0.5"}
    # The script's log-probabilities are those at temperature 1.
    two_steps("agentrl", tiny_model, folder, keep_tokens=True, learning_rate=1e-2, parts=parts, temperature=1.0)
    run = read_run(folder)
    turns = {step: [turn for each in run.episodes(step) for turn in each.episode.steps] for step in (1, 2)}
    assert {turn.version for turn in turns[1]} == {0}
    assert {(turn.stale, turn.version) for turn in turns[2]} == {(True, 0), (False, 1)}
    told = {(each.episode.group, each.member): each.episode for each in run.episodes(2)}
    off = {True: [], False: []}
    for row in run.tokens(2):
        for turn in told[row.group, row.member].steps:
            off[turn.stale] += [abs(math.log(ratio)) for ratio in row.ratios[turn.start : turn.stop]]
    assert max(off[False]) < 1e-3 < max(off[True])


@pytest.mark.parametrize("rollout", ["plain", "cross_policy"])
def test_a_loss_that_asks_a_teacher_is_refused_whatever_plays_where_none_is_named(rollout, tiny_model, tmp_path):
    """A part that makes its rows itself brings no teacher's column by that."""
    with pytest.raises(ConfigurationError, match="a teacher model: set"):
        two_steps("kdrl", tiny_model, tmp_path / "run", parts={"rollout": rollout})
