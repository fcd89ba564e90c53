"""polgrad's ten algorithms: losses, their gradients and advantages equal those of this package's parts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polgrad
import pytest
import torch
from formula_losses import LONGEST, loss_of, made, numbers
from polgrad.advantages import grpo_advantages, rloo_advantages
from polgrad.losses import policy_loss

from rstar2_env.core.episode import Episode
from rstar2_env.trainers.advantages.base import ADVANTAGES
from rstar2_env.trainers.ranks import ONE

PARTS = {
    "ppo": (["ppo_clip:low=0.2,high=0.2"], "token_mean", "none"),
    "grpo": (["ppo_clip:low=0.2,high=0.2", "kl:coef=0.04"], "seq_mean", "none"),
    "dr_grpo": (["ppo_clip:low=0.2,high=0.2"], f"const_len:length={LONGEST}", "none"),
    "dapo": (["ppo_clip:low=0.2,high=0.28"], "token_mean", "none"),
    "gspo": (["ppo_clip:low=0.0003,high=0.0004,level=sequence"], "seq_mean", "none"),
    "gspo_token": (["ppo_clip:low=0.0003,high=0.0004,level=sequence,token_gradient=true"], "seq_mean", "none"),
    "cispo": (["cispo:high=0.2"], "token_mean", "none"),
    "rloo": (["reinforce"], "const_len:length=1", "none"),
    "reinforce_pp": (["ppo_clip:low=0.2,high=0.2"], "seq_mean", "none"),
    "grpo_tis": (["ppo_clip:low=0.2,high=0.2", "kl:coef=0.04"], "seq_mean", "truncate:level=token,cap=10"),
}
"""For each algorithm of polgrad, the loss, aggregation and correction of this package."""
ESTIMATES = {"grpo": "group_norm", "dr_grpo": "group_mean", "rloo": "rloo"}
"""For the algorithms of polgrad with other formulas of group advantages, the advantage of this package."""


def test_every_algorithm_of_polgrad_is_compared():
    assert set(polgrad.registry.ALGORITHMS) == set(PARTS)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("name", PARTS)
def test_loss_and_gradient_are_those_of_polgrad(name, seed):
    given = numbers(seed)
    config = polgrad.get_algorithm(name).loss
    if name == "dr_grpo":
        config = replace(config, norm_len=LONGEST)
    first, second = given.logp.clone().requires_grad_(), given.logp.clone().requires_grad_()
    own = loss_of(*PARTS[name], given._replace(logp=first))
    theirs = policy_loss(
        config,
        logprobs=second,
        old_logprobs=given.old,
        advantages=given.advantage,
        response_mask=given.mask,
        ref_logprobs=given.reference,
        rollout_logprobs=given.sampled,
    ).loss
    assert own.item() == pytest.approx(theirs.item(), rel=1e-10, abs=1e-10)
    gradients = [torch.autograd.grad(loss, of)[0] for loss, of in ((own, first), (theirs, second))]
    assert gradients[1].abs().max() > 1e-3
    torch.testing.assert_close(*gradients, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("name", ESTIMATES)
def test_advantages_are_those_of_polgrad(name, seed):
    rewards = np.random.default_rng(seed).normal(0, 1, (3, 4))
    groups = [[Episode(group=at, reward=float(one), end="answered") for one in own] for at, own in enumerate(rewards)]
    own = np.array(made(ADVANTAGES, ESTIMATES[name])(groups, ONE)).ravel()
    given, ids = torch.tensor(rewards.ravel()), torch.arange(3).repeat_interleave(4)
    if name == "rloo":
        theirs = rloo_advantages(given, ids)
    else:
        theirs = grpo_advantages(given, ids, polgrad.get_algorithm(name).advantage_config)
    assert own == pytest.approx(theirs.numpy(), rel=1e-10, abs=1e-10)
