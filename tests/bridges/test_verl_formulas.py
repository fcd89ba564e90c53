"""verl's own code of its losses and advantages: values and gradients equal those of this package's parts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from formula_losses import loss_of, made, numbers
from verl.trainer.ppo import core_algos
from verl.workers.config import ActorConfig

from rstar2_env.core.episode import Episode
from rstar2_env.trainers.advantages.base import ADVANTAGES
from rstar2_env.trainers.ranks import ONE

LONGEST = 7
CLIP: dict[str, Any] = {"clip_ratio_low": 0.2, "clip_ratio_high": 0.28, "clip_ratio_c": 3.0}
PPO = "ppo_clip:low=0.2,high=0.28,dual=3"
LOSSES: dict[str, tuple[str, dict[str, Any], str, str, str]] = {
    "clip": ("vanilla", CLIP, "token-mean", PPO, "token_mean"),
    "clip, constant length": (
        "vanilla",
        CLIP,
        "seq-mean-token-sum-norm",
        PPO,
        f"const_len:length={LONGEST}",
    ),
    "gspo": ("gspo", CLIP, "token-mean", "ppo_clip:low=0.2,high=0.28,level=sequence,token_gradient=true", "token_mean"),
    "cispo": ("cispo", CLIP, "token-mean", "cispo:low=0.2,high=0.28", "token_mean"),
    "dppo": (
        "dppo_tv",
        {"clip_ratio_low": 0.1, "clip_ratio_high": 0.1, "clip_ratio_c": 20.0},
        "token-mean",
        "dppo:low=0.1,high=0.1,anchor=old",
        "token_mean",
    ),
    "gpg": ("gpg", {}, "token-mean", "reinforce", "token_mean"),
    "clip, mean of answers": ("vanilla", CLIP, "seq-mean-token-mean", PPO, "seq_mean"),
    "sapo": (
        "sapo",
        {"tau_pos": 1.0, "tau_neg": 1.05},
        "seq-mean-token-mean",
        "sapo:positive=1.0,negative=1.05",
        "seq_mean",
    ),
    "gmpo": ("geo_mean", CLIP, "seq-mean-token-mean", "gmpo:low=0.2,high=0.28", "seq_mean"),
}
"""verl's loss, its options and its aggregation; and the term and the aggregation of this package."""
ADVANTAGES_OF_VERL: dict[str, tuple[str, dict[str, Any]]] = {
    "rloo": ("rloo", {}),
    "group_mean": ("grpo", {"norm_adv_by_std_in_grpo": False}),
    "group_norm": ("grpo", {"epsilon": 1e-4}),
    "opo": ("opo", {}),
    "gpg": ("gpg", {}),
}
"""For an advantage of this package, verl's estimator and its options."""


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", LOSSES)
def test_loss_and_gradient_are_those_of_verl(name: str, seed: int) -> None:
    loss, options, mode, term, aggregation = LOSSES[name]
    config = ActorConfig(strategy="fsdp", rollout_n=1, ppo_micro_batch_size_per_gpu=1, **options)
    given = numbers(seed)
    given = given._replace(sampled=given.old)
    first, second = given.logp.clone().requires_grad_(), given.logp.clone().requires_grad_()
    own = loss_of([term], aggregation, "none", given._replace(logp=first))
    theirs, _ = core_algos.get_policy_loss_fn(loss)(
        old_log_prob=given.old,
        log_prob=second,
        advantages=given.advantage[:, None].expand(given.mask.shape),
        response_mask=given.mask.to(given.logp.dtype),
        loss_agg_mode=mode,
        config=config,
    )
    near = 1e-8 if mode == "seq-mean-token-mean" else 1e-10  # verl adds 1e-8 to the length of an answer
    assert own.item() == pytest.approx(theirs.item(), rel=near, abs=near)
    gradients = [torch.autograd.grad(total, of)[0] for total, of in ((own, first), (theirs, second))]
    assert gradients[1].abs().max() > 1e-3
    torch.testing.assert_close(*gradients, rtol=near, atol=near)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", ADVANTAGES_OF_VERL)
def test_advantages_are_those_of_verl(name: str, seed: int) -> None:
    estimator, options = ADVANTAGES_OF_VERL[name]
    rng = np.random.default_rng(seed)
    rewards, lengths = rng.normal(0, 1, (3, 4)), rng.integers(2, LONGEST, (3, 4))
    groups = [
        [
            Episode(group=at, reward=float(one), end="answered", completion_ids=[1] * length, mask=[1] * length)
            for one, length in zip(own, longs, strict=True)
        ]
        for at, (own, longs) in enumerate(zip(rewards, lengths.tolist(), strict=True))
    ]
    mask = torch.tensor(np.arange(LONGEST)[None] < lengths.ravel()[:, None]).to(torch.float64)
    scores = torch.zeros_like(mask)
    scores[:, 0] = torch.tensor(rewards.ravel())
    ids = np.repeat(np.arange(3), 4)
    theirs, _ = core_algos.get_adv_estimator_fn(estimator)(
        token_level_rewards=scores, response_mask=mask, index=ids, **options
    )
    own = np.array(made(ADVANTAGES, name)(groups, ONE)).ravel()
    assert own == pytest.approx(theirs[:, 0].numpy(), rel=1e-10, abs=1e-10)
