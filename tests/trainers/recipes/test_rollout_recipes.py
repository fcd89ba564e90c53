"""Recipes whose episodes are not all played from the start to the end: what each prescribes, and two steps of each."""

from __future__ import annotations

import math

import pytest
from scripted_policy import WORLDS, engine_kind

from rstar2_env import trainers
from rstar2_env.core.run_folder import read_run
from rstar2_env.rollout.engines.registry import ENGINES
from rstar2_env.trainers.parts import make_parts

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
    assert (rollout.candidates, rollout.tokens) == (10, 20)
    assert (config.rollout.group_size, config.rollout.problems_per_step, config.optim.minibatches) == (16, 128, 8)
    assert config.parts.advantage.name == "arpo"
    assert parts.advantage.attribution == "soft"
    assert [part.name for part in config.parts.loss] == ["ppo_clip"]


def test_arpo_trains_on_branches_of_its_own_episodes(tiny_model, tmp_path):
    episodes = two_steps("arpo", tiny_model, tmp_path / "run", advantage="arpo:attribution=hard")
    groups = by_group(episodes)
    assert [len(group) for group in groups] == [6] * 4
    branches = [(group, episode) for group in groups for episode in group if episode.parent]
    assert branches
    for group, episode in branches:
        parent = group[episode.parent[0]]
        shared = [turn.start for turn in parent.steps].index(episode.parent[1])
        assert shared >= 1
        assert [m.content for m in episode.messages][: 2 * shared] == [m.content for m in parent.messages][: 2 * shared]
