"""TRL's own code of its losses: losses and gradients equal those of this package's parts."""

from __future__ import annotations

from collections import defaultdict
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from formula_losses import LENGTHS, LONGEST, Numbers, loss_of, numbers
from trl.trainer.grpo_trainer import GRPOTrainer

CLIP = "ppo_clip:low=0.2,high=0.28"
CASES: dict[str, tuple[dict[str, Any], list[str], str, str]] = {
    "grpo": ({"loss_type": "grpo", "beta": 0.04}, [CLIP, "kl:coef=0.04,estimator=k3"], "seq_mean", "none"),
    "bnpo": ({"loss_type": "bnpo"}, [CLIP], "token_mean", "none"),
    "dr_grpo": ({"loss_type": "dr_grpo"}, [CLIP], f"const_len:length={LONGEST}", "none"),
    "dapo": ({"loss_type": "dapo"}, [CLIP], "token_mean", "none"),
    "gspo": (
        {"loss_type": "grpo", "importance_sampling_level": "sequence"},
        ["ppo_clip:low=0.2,high=0.28,level=sequence"],
        "seq_mean",
        "none",
    ),
    "luspo": (
        {"loss_type": "luspo", "importance_sampling_level": "sequence"},
        ["ppo_clip:low=0.2,high=0.28,level=sequence"],
        "const_len:length=1",
        "none",
    ),
    "cispo": ({"loss_type": "cispo", "epsilon_high": 1.28}, ["cispo:high=0.28"], "token_mean", "none"),
    "sapo": ({"loss_type": "sapo"}, ["sapo:positive=1.0,negative=1.25"], "seq_mean", "none"),
    "vespo": ({"loss_type": "vespo"}, ["vespo"], "token_mean", "none"),
    "two-sided clip": ({"loss_type": "dapo", "delta": 1.5}, [f"{CLIP},two_sided=1.5"], "token_mean", "none"),
    "off-policy mask": (
        {"loss_type": "dapo", "off_policy_mask_threshold": 0.05},
        [CLIP],
        "token_mean",
        "opsm:delta=0.05,anchor=old",
    ),
}
"""Options of TRL; and of this package, the terms, the aggregation and the correction."""


def loss_of_trl(options: dict[str, Any], given: Numbers) -> torch.Tensor:
    """The loss that ``GRPOTrainer`` computes from log-probabilities, without a model."""
    config = {
        "delta": None,
        "use_bias_correction_kl": False,
        "sapo_temperature_pos": 1.0,
        "sapo_temperature_neg": 1.25,  # TRL rounds it to 32 bits, which 1.25 survives
        "vespo_k_pos": 2.0,
        "vespo_lambda_pos": 3.0,
        "vespo_k_neg": 3.0,
        "vespo_lambda_neg": 2.0,
        "steps_per_generation": 1,
    }
    trainer: Any = SimpleNamespace(
        **{
            "args": SimpleNamespace(**{**config, **{name: options[name] for name in config if name in options}}),
            "beta": 0.0,
            "epsilon_low": 0.2,
            "epsilon_high": 0.28,
            "importance_sampling_level": "token",
            "off_policy_mask_threshold": None,
            "top_entropy_quantile": 1.0,
            "aux_loss_enabled": False,
            "use_vllm": False,
            "_entropy_bonus_enabled": False,
            "max_completion_length": LONGEST,
            "current_gradient_accumulation_steps": 1,
            "model": SimpleNamespace(training=False),
            "_metrics": defaultdict(lambda: defaultdict(list)),
            "accelerator": SimpleNamespace(
                num_processes=1, gather=lambda value: value, reduce=lambda value, reduction: value
            ),
            "_get_per_token_logps_and_entropies": lambda *given_, **more: (logp, torch.zeros_like(logp), None),
            "get_off_policy_mask": GRPOTrainer.get_off_policy_mask,
            "get_gamma_weights": GRPOTrainer.get_gamma_weights,
            **{name: value for name, value in options.items() if name not in config},
        }
    )
    logp, mask = given.logp, given.mask.to(given.logp.dtype)
    ids = torch.zeros(mask.shape, dtype=torch.long)
    inputs = {
        "prompt_ids": ids[:, :1],
        "prompt_mask": ids[:, :1] + 1,
        "completion_ids": ids,
        "completion_mask": mask,
        "advantages": given.advantage,
        "old_per_token_logps": given.old,
        "ref_per_token_logps": given.reference,
        "num_items_in_batch": mask.sum(),
    }
    return GRPOTrainer._compute_loss(trainer, None, inputs)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", CASES)
def test_loss_and_gradient_are_those_of_trl(name: str, seed: int) -> None:
    options, *parts = CASES[name]
    given = numbers(seed)
    given = given._replace(sampled=given.old)  # TRL's ratios are to the older weights
    first, second = given.logp.clone().requires_grad_(), given.logp.clone().requires_grad_()
    own, theirs = loss_of(*parts, given._replace(logp=first)), loss_of_trl(options, given._replace(logp=second))
    assert own.item() == pytest.approx(theirs.item(), rel=1e-10, abs=1e-10)
    gradients = [torch.autograd.grad(loss, of)[0] for loss, of in ((own, first), (theirs, second))]
    assert gradients[1].abs().max() > 1e-3
    torch.testing.assert_close(*gradients, rtol=1e-10, atol=1e-10)


def test_the_random_numbers_reach_every_bound() -> None:
    ratios = torch.cat([(given.logp - given.old).exp()[given.mask] for given in map(numbers, range(3))])
    assert ((ratios < 0.8).any(), (ratios > 1.28).any(), (ratios > 1.5).any()) == (True, True, True)
    assert len(LENGTHS) == len(numbers(0).advantage)
