"""polgrad's ten algorithms: losses, their gradients and advantages equal those of this package's parts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polgrad
import pytest
import torch
from polgrad.advantages import grpo_advantages, rloo_advantages
from polgrad.losses import policy_loss

from rstar2_env.core.episode import Episode
from rstar2_env.core.options.declare import call_with_options
from rstar2_env.core.options.parts import read_part
from rstar2_env.trainers.advantages.base import ADVANTAGES
from rstar2_env.trainers.losses.base import AGGREGATIONS, CORRECTIONS, LOSSES, is_corrected
from rstar2_env.trainers.losses.tokens import Tokens
from rstar2_env.trainers.ranks import ONE

LENGTHS = (5, 2, 7, 4, 1, 6)
LONGEST = 16
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


def made(registry, written):
    part = read_part(written, registry.kind)
    return call_with_options(part.name, registry.get(part.name), part.options)


def numbers(seed):
    """Log-probabilities under the policy, its older weights, the engine and a reference, and the mask."""
    rng = np.random.default_rng(seed)
    shape = (len(LENGTHS), max(LENGTHS))
    logp = torch.tensor(-rng.exponential(1.0, shape) - 0.01)
    beside = [logp + torch.tensor(rng.normal(0, width, shape)) for width in (0.3, 0.9, 0.5)]
    mask = torch.arange(shape[1])[None] < torch.tensor(LENGTHS)[:, None]
    return logp, *beside, mask, torch.tensor(rng.normal(0, 1, len(LENGTHS)))


def ours(name, logp, old, sampled, reference, mask, advantage):
    """The loss of the parts, as the reference backend adds it up."""
    terms, aggregation, correction = PARTS[name]
    zeros = torch.zeros(mask.shape, dtype=torch.long)
    tokens = Tokens(
        logp=logp,
        old=old,
        sampled=sampled,
        advantage=advantage[:, None].expand(mask.shape),
        mask=mask,
        turn=zeros.masked_fill(~mask, -1),
        depth=zeros.masked_fill(~mask, -1),
        reference=reference,
    )
    groups = np.zeros(len(LENGTHS), dtype=np.int64)
    weights = torch.tensor(made(AGGREGATIONS, aggregation)(np.array(LENGTHS), groups, ONE))
    corrected = made(CORRECTIONS, correction)(tokens)
    total = logp.sum() * 0
    for term in (made(LOSSES, written) for written in terms):
        each = term(tokens) * corrected if is_corrected(term) else term(tokens)
        total = total + (weights[:, None] * each.masked_fill(~mask, 0.0)).sum()
    return total


def test_every_algorithm_of_polgrad_is_compared():
    assert set(polgrad.registry.ALGORITHMS) == set(PARTS)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("name", PARTS)
def test_loss_and_gradient_are_those_of_polgrad(name, seed):
    logp, old, sampled, reference, mask, advantage = numbers(seed)
    config = polgrad.get_algorithm(name).loss
    if name == "dr_grpo":
        config = replace(config, norm_len=LONGEST)
    first, second = logp.clone().requires_grad_(), logp.clone().requires_grad_()
    own = ours(name, first, old, sampled, reference, mask, advantage)
    theirs = policy_loss(
        config,
        logprobs=second,
        old_logprobs=old,
        advantages=advantage,
        response_mask=mask,
        ref_logprobs=reference,
        rollout_logprobs=sampled,
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
