"""Translates the remedies of a finding to options of TRL and verl, for logs of these trainers.

Not covered: options without a counterpart of the same meaning.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

TRAINERS = ("TRL", "verl")
"""The trainers for which remedies are translated. Each value of ``OPTIONS`` has their option names in this order."""
_ACTOR, _ROLLOUT = "actor_rollout_ref.actor", "actor_rollout_ref.rollout"
OPTIONS: Mapping[str, tuple[str, str]] = {
    "optim.learning_rate": ("learning_rate", f"{_ACTOR}.optim.lr"),
    "optim.warmup_steps": ("warmup_steps", f"{_ACTOR}.optim.lr_warmup_steps"),
    "optim.max_grad_norm": ("max_grad_norm", f"{_ACTOR}.grad_clip"),
    "optim.updates_per_rollout": ("num_iterations", f"{_ACTOR}.ppo_epochs"),
    "loss.ppo_clip.low": ("epsilon", f"{_ACTOR}.clip_ratio_low"),
    "loss.ppo_clip.high": ("epsilon_high", f"{_ACTOR}.clip_ratio_high"),
    "loss.kl.coef": ("beta", f"{_ACTOR}.kl_loss_coef"),
    "loss.entropy.coef": ("entropy_coef", f"{_ACTOR}.entropy_coeff"),
    "rollout.group_size": ("num_generations", f"{_ROLLOUT}.n"),
    "problems": ("train_dataset", "data.train_files"),
    "rollout.temperature": ("temperature", f"{_ROLLOUT}.temperature"),
    "rollout.max_episode_tokens": ("max_completion_length", "data.max_response_length"),
}
"""For some options of this package: the option's name in TRL's ``GRPOConfig`` or ``GRPOTrainer``, and in verl."""


def translated(changes: Sequence[str], path: Path) -> tuple[str, ...]:
    """Return remedies as they can be typed for another trainer.

    Args:
        changes: The remedies of a check: options of this package, its commands, or options of another trainer.
        path: The log. A folder or a ``.json`` file is TRL's; any other log may be of TRL or verl.

    Returns:
        The translated options, each followed by the name of the trainer, for every trainer that may have written the
        log. Commands of this package are left out: they examine its own runs and environments.
    """
    trainers = TRAINERS[:1] if path.is_dir() or path.suffix == ".json" else TRAINERS
    return tuple(one for change in changes for one in _of(change, trainers))


def _of(change: str, trainers: Sequence[str]) -> Iterator[str]:
    if not change.startswith("--"):
        if change.endswith(tuple(f"({trainer})" for trainer in trainers)):
            yield change
        return
    words = [word for word in shlex.split(change.replace("--problems ", "problems=")) if word != "--set"]
    pairs = [word.partition("=") for word in words]
    if all(name in OPTIONS for name, _, _ in pairs):
        for at, trainer in enumerate(trainers):
            yield " ".join(f"{OPTIONS[name][at]}={value}" for name, _, value in pairs) + f" ({trainer})"
