"""``cross_policy``: how many turns come from older weights, how they train, and who holds the weights."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from branching_play import Words
from scripted_engine import EchoEnv, echo_player
from small_run import collector
from tiny_models import tiny_qwen3

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.testing.training.examples import group_of
from rstar2_env.trainers import TRAINERS
from rstar2_env.trainers.rollouts.base import OlderWeights
from rstar2_env.trainers.rollouts.cross_policy import CrossPolicy
from rstar2_env.trainers.samplers.base import Start
from rstar2_env.trainers.step.group_play import GroupPlay


def episodes_of(part, seed=0):
    newest, stale = Words(turns=8, least=7), Words(turns=8, least=7)
    with echo_player(newest, lambda: EchoEnv(turns=12), stale_engine=stale) as player:

        async def run():
            play = GroupPlay(player, seed=seed, step=0, first=0, size=12)
            return await part([Start(1), Start(2)], 12, play)

        groups = asyncio.run(asyncio.wait_for(run(), 60))
    assert [len(group) for group in groups] == [12, 12]
    turns = [turn for group in groups for episode in group for turn in episode.steps]
    assert sum(turn.stale for turn in turns) == stale.asked
    assert len(turns) == newest.asked + stale.asked
    return groups, turns


@pytest.mark.parametrize("probability", [0.0, 0.25, 0.7, 1.0])
def test_the_share_of_turns_from_older_weights_is_the_probability(probability):
    _, turns = episodes_of(CrossPolicy(probability=probability))
    error = (probability * (1 - probability) / len(turns)) ** 0.5
    assert np.mean([turn.stale for turn in turns]) == pytest.approx(probability, abs=max(3 * error, 1e-9))


def test_the_draws_are_those_of_the_seed():
    def drawn(seed):
        return [turn.stale for turn in episodes_of(CrossPolicy(probability=0.5), seed)[1]]

    assert drawn(1) == drawn(1) != drawn(2)


def test_turns_of_older_weights_train_or_are_masked():
    episode = next(one for seed in range(99) for one in group_of([1.0], seed=seed) if len(one.steps) > 1)
    first, *others = episode.steps
    first.stale = True
    (row,) = CrossPolicy().rows(episode, 0.5)
    assert row.mask == episode.mask
    assert row.logprobs == episode.logprobs
    (row,) = CrossPolicy(stale="mask").rows(episode, 0.5)
    assert row.mask[first.start : first.stop] == [0] * first.tokens
    assert [row.mask[turn.start : turn.stop] for turn in others] == [[1] * turn.tokens for turn in others]
    assert sum(episode.mask) > sum(row.mask)  # the episode's own stays
    for turn in others:
        turn.stale = True
    assert CrossPolicy(stale="mask").rows(episode, 0.5) == []


def test_a_player_without_older_weights_is_refused():
    with echo_player(Words()) as player, pytest.raises(ConfigurationError, match="stale_engine"):
        collector(player, rollout=CrossPolicy())


def config(**options):
    return TRAINERS.get("agentrl").configure({"model": "m", **options})


@pytest.mark.parametrize(("engine", "match"), [("vllm", "only one engine"), ("vllm-server", "parts.rollout.base_urls")])
def test_an_engine_that_cannot_be_there_twice_is_refused(engine, match):
    from rstar2_env.trainers.backends.trl.weight_sync.stale import stale_copy

    with pytest.raises(ConfigurationError, match=match):
        stale_copy(config(engine=engine), CrossPolicy(), torch.nn.Linear(1, 1), torch.float32)


def test_there_is_no_copy_of_a_policy_that_processes_divide():
    from rstar2_env.trainers.backends.trl.weight_sync.stale import stale_copy

    with pytest.raises(ConfigurationError, match="vllm-server") as refused:
        stale_copy(config(), CrossPolicy(), torch.nn.Linear(1, 1, device="meta"), torch.float32, divided=True)
    assert refused.value.option == "run.sharding"


def test_older_weights_become_the_newest_every_few_steps_and_are_never_the_same_tensors():
    from rstar2_env.trainers.backends.trl.weight_sync.stale import StalePolicy, stale_copy

    policy = tiny_qwen3(vocab_size=64, max_position_embeddings=64)
    copy = stale_copy(config(), CrossPolicy(), policy, torch.float32)
    trl = SimpleNamespace(
        accelerator=SimpleNamespace(unwrap_model=lambda model: model, device=torch.device("cpu")),
        model=policy,
        state=SimpleNamespace(global_step=0),
    )
    stale = StalePolicy(config(), trl, None, OlderWeights(2), copy)
    weights, held, versions = next(policy.parameters()), next(copy.parameters()), []
    with torch.no_grad():
        for step in range(5):
            trl.state.global_step = step
            weights.fill_(float(step))
            stale.update()
            versions.append((float(held.flatten()[0]), stale.engine._version))
    assert versions == [(0.0, 0), (0.0, 0), (2.0, 2), (2.0, 2), (4.0, 4)]
    assert not held.requires_grad
    stale.close()
