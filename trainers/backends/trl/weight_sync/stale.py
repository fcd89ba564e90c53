"""``StalePolicy``: an engine with older weights of the policy, for rollout parts that need turns of older weights.

Covered: a second copy of an unsharded policy, for ``engine="transformers"``; additional servers, for
``engine="vllm-server"``. The weights are refreshed every ``OlderWeights.every`` optimizer steps. Not covered:
checkpoints of older weights; a resumed run starts with the checkpoint's weights instead.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedTokenizerBase

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.rollout import Engine, KeepsCaches
from rstar2_env.rollout.engines.registry import ENGINES

from ....options.config import TrainConfig
from ....rollouts.base import OlderWeights, Rollout
from ..loss.forward import frozen_copy
from .engine import PolicyEngine


class StalePolicy:
    """Older weights, and the engine that samples from them.

    Args:
        config: Options of the run.
        trl: The TRL trainer that holds the policy.
        tokenizer: The tokenizer of the policy.
        older: Number of steps between copies of the policy's weights, and addresses of servers with the older weights.
        copy: A copy of the policy; ``None`` if servers hold the weights.
    """

    def __init__(
        self,
        config: TrainConfig,
        trl: Any,
        tokenizer: PreTrainedTokenizerBase,
        older: OlderWeights,
        copy: nn.Module | None,
    ) -> None:
        self._trl, self._every, self._copy, self._servers = trl, older.every, copy, None
        self._version: int | None = None
        if copy is None:
            options = {**config.rollout.engine_options, "base_urls": list(older.base_urls)}
            rollout = replace(config.rollout, engine_options=options)
            self._servers = PolicyEngine(replace(config, rollout=rollout), trl, tokenizer)
            self.engine: Engine = self._servers.engine
            return
        copy.to(trl.accelerator.device)
        self.engine = ENGINES.get(config.rollout.engine).make(
            copy,
            tokenizer,
            max_rows=config.rollout.max_in_flight,
            seed=config.run.seed + 1,
            options=config.rollout.engine_options,
        )

    def update(self) -> None:
        """Copy the policy's weights if a refresh is due; all processes call it together."""
        step = int(self._trl.state.global_step)
        if self._version is not None and step // self._every == self._version // self._every:
            return
        if self._servers is not None:
            self._servers.update()
        else:
            self._take_over(step)
        self._version = step

    def free_memory(self) -> None:
        """Free the engine's memory for the training step."""
        if self._servers is not None:
            self._servers.free_memory()
        elif isinstance(self.engine, KeepsCaches):
            self.engine.forget()

    def close(self) -> None:
        """Close the engine."""
        self.engine.close()

    @torch.no_grad()
    def _take_over(self, step: int) -> None:
        policy = self._trl.accelerator.unwrap_model(self._trl.model)
        assert self._copy is not None
        newest = dict(_tensors(policy))
        for name, tensor in _tensors(self._copy):
            tensor.copy_(newest[name])
        self.engine.update_weights(step)


def stale_copy(
    config: TrainConfig, rollout: Rollout, model: nn.Module, dtype: torch.dtype, *, divided: bool = False
) -> nn.Module | None:
    """Copy the policy, to hold older weights, before the trainer adds its fused head.

    Args:
        config: Options of the run.
        rollout: The rollout part.
        model: The policy.
        dtype: Precision of the copy.
        divided: Whether several processes will shard the policy.

    Returns:
        The copy; ``None`` if the rollout part needs no older weights, or if servers hold them.

    Raises:
        ConfigurationError: The engine cannot run twice in a process, there are no servers for the copy, or the policy
            is sharded.
    """
    older, name = rollout.older_weights, config.rollout.engine
    if older is None:
        return None
    kind = ENGINES.get(name)
    if kind.shares_weights:
        if divided:
            raise ConfigurationError(
                "The rollout part samples some turns from older weights, which each process must keep in "
                'full, but the policy is divided among the processes: use engine="vllm-server", or '
                "remove run.sharding.",
                option="run.sharding",
            )
        return frozen_copy(model, dtype)
    if kind.takes_model != "nothing":
        raise ConfigurationError(
            "The rollout part samples some turns from older weights with a second engine, but a process "
            f'can run only one engine={name!r}: use engine="vllm-server" with additional servers, or '
            'engine="transformers".'
        )
    if not older.base_urls:
        raise ConfigurationError(
            "The rollout part samples some turns from older weights on additional servers: set their "
            "addresses as parts.rollout.base_urls."
        )
    return None


def _tensors(module: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """Yield the parameters and buffers by name; tied tensors are yielded under each of their names."""
    yield from module.named_parameters(remove_duplicate=False)
    yield from module.named_buffers(remove_duplicate=False)
