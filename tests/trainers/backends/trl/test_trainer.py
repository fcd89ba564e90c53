"""What enters TRL: rows, masks, advantages, the token count."""

from itertools import groupby

import numpy as np
import pytest
import torch
from letter_env import LetterEnv

from rstar2_env import trainers
from rstar2_env.core.episode import Episode
from rstar2_env.trainers.advantages.group import group_norm
from rstar2_env.trainers.selectors.keep_all import KeepAll
from rstar2_env.trainers.selectors.resample_on_correct import ResampleOnCorrect


def episode(reward, *, end="answered", tokens=2):
    return Episode(
        prompt_ids=[1, 2],
        completion_ids=[3] * (tokens + 1),
        mask=[1] * tokens + [0],
        logprobs=[-1.0] * tokens + [0.0],
        reward=reward,
        correct=reward > 0,
        end=end,
        turns=1,
        answer_tags=1,
    )


def chosen(groups, size, selector):
    from rstar2_env.trainers.backends.trl.trainer import select  # TRL takes seconds to import

    return select(groups, size, selector, group_norm, np.random.default_rng(0))


def test_every_group_fills_exactly_its_rows():
    groups = [[episode(r) for r in (1, 0, 1, 0, 0, 0, 0, 0)], [episode(0) for _ in range(8)], [episode(1), episode(0)]]
    batch = chosen(groups, 4, ResampleOnCorrect())
    assert len(batch.rows) == len(batch.advantages) == len(batch.rewards) == 12
    assert sum(row is not None for row in batch.rows[:4]) == 4
    assert batch.rows[4:8] == [None] * 4
    assert sum(row is not None for row in batch.rows[8:]) == 2
    assert batch.groups_rejected == 1


def test_a_filler_has_no_advantage_and_the_mean_reward_of_its_group():
    batch = chosen([[episode(1), episode(1), episode(1), episode(1)]], 4, ResampleOnCorrect())
    assert batch.advantages == [0.0] * 4
    assert batch.rewards == [1.0] * 4


def test_an_unavailable_episode_is_in_no_mean_and_in_no_row():
    lost = episode(0, end="unavailable")
    batch = chosen([[episode(1), episode(0), lost, lost]], 4, KeepAll())
    assert lost not in batch.rows
    np.testing.assert_allclose(batch.advantages, [0.7071, -0.7071, 0, 0], atol=1e-3)


def test_a_lone_survivor_trains_nothing():
    batch = chosen([[episode(1), episode(0, end="unavailable")]], 2, KeepAll())
    assert batch.rows == [None, None]


def test_advantages_are_those_of_the_kept_episodes():
    groups = [[episode(r) for r in (1, 1, 1, 0, 0, 0, 0, 0)]]
    batch = chosen(groups, 4, ResampleOnCorrect())
    rewards = [row.reward for row in batch.rows]
    np.testing.assert_allclose(batch.advantages, group_norm([np.array(rewards)])[0])
    assert abs(sum(batch.advantages)) < 1e-9


class TwoTurns(LetterEnv):
    """What stands between the turns is not the policy's; every other problem is always solved, so that none trains."""

    def __init__(self, split="train"):
        super().__init__(turns=2)

    def reset(self, *, seed=None, options=None):
        text, info = super().reset(seed=seed, options=options)
        self._reward = 1.0 if int(text.split()[-1]) % 2 else None
        return text, info


@pytest.fixture
def run(letter_options):
    """Before its first step."""
    made = trainers.make("grpo_roc", **{**letter_options, "env": TwoTurns, "max_episode_tokens": 200})
    yield made
    made.close()


def generate(run):
    rows = run.config.problems_per_step * run.config.group_size
    return run.trl._generate_and_score_completions([{"prompt": "-"}] * rows)


def test_trl_gets_our_advantages_and_counts_the_tokens_that_train(run):
    output = generate(run)
    batch = run.trl._batch
    kept = [row for row in batch.rows if row is not None]
    assert 0 < len(kept) < len(batch.rows), "some rows are fillers"
    assert all(0 in row.mask for row in kept), "some tokens are the environment's"
    np.testing.assert_allclose(output["advantages"].numpy(), batch.advantages, rtol=1e-6)
    assert output["num_items_in_batch"].item() == sum(row.policy_tokens for row in kept)


def test_a_filler_row_reaches_no_loss(run):
    output = generate(run)
    mask = (output["completion_mask"] * output["tool_mask"]).sum(dim=1).tolist()
    for row, tokens in zip(run.trl._batch.rows, mask, strict=True):
        assert tokens == (row.policy_tokens if row else 0)


class Recording:
    """The run's engine, and every turn that it made: what it was asked to continue, and with what it did."""

    def __init__(self, engine):
        self.engine, self.turns = engine, []

    async def generate(self, ids, params):
        turn = await self.engine.generate(ids, params)
        self.turns.append((list(ids), list(turn.ids)))
        return turn


def test_the_ids_that_train_are_the_ids_that_the_engine_made(run):
    engine = run._players["train"].engine = Recording(run.engine)
    output = generate(run)
    rows = [number for number, row in enumerate(run.trl._batch.rows) if row is not None]
    assert rows
    for number in rows:
        prompt = output["prompt_ids"][number][output["prompt_mask"][number].bool()].tolist()
        length = int(output["completion_mask"][number].sum())
        ids = output["completion_ids"][number, :length].tolist()
        trains = output["tool_mask"][number, :length].tolist()
        spans = [(one, list(several)) for one, several in groupby(range(length), key=trains.__getitem__)]
        turns = [(prompt + ids[: span[0]], [ids[at] for at in span]) for one, span in spans if one]
        assert len(turns) == 2
        assert all(turn in engine.turns for turn in turns)


def test_importance_ratios_are_one_when_the_engine_has_the_trainers_weights(letter_options):
    run = trainers.make("grpo_roc", **letter_options, importance_sampling="token")
    try:
        output = generate(run)
        assert output["advantages"].shape == output["completion_mask"].shape
        base = torch.tensor(run.trl._batch.advantages)[:, None].expand_as(output["advantages"])
        torch.testing.assert_close(output["advantages"], base, rtol=2e-3, atol=2e-3)
        assert run.trl._metrics["train"]["sampling_logp_difference"][0] < 1e-3
    finally:
        run.close()


def test_importance_ratios_are_capped_token_by_token(letter_options):
    run = trainers.make("grpo_roc", **letter_options, importance_sampling="token", importance_cap=1.5)
    play = run.trl._play

    def shifted(count):
        groups = play(count)
        for played in (played for group in groups for played in group):
            played.logprobs = [logprob - 3.0 for logprob in played.logprobs]
        return groups

    run.trl._play = shifted
    try:
        output = generate(run)
        mask = (output["completion_mask"] * output["tool_mask"]).bool()
        base = torch.tensor(run.trl._batch.advantages)[:, None].expand_as(output["advantages"])
        torch.testing.assert_close(output["advantages"][mask], 1.5 * base[mask])
    finally:
        run.close()
