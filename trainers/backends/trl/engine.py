"""``PolicyEngine``: the engine of a run, and how the policy's weights come into it.

Covered: engines that compute with the trainer's own module, and engines with a copy of their own, on one process or
many (then through servers: one process hands the weights over, and the others wait). Not covered: policies whose
weights are spread over processes (FSDP, ZeRO-3): their engine must be the trainer's own module.
"""

from __future__ import annotations

from typing import Any

from transformers import PreTrainedTokenizerBase

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.rollout import Engine, KeepsCaches, VllmEngine
from rstar2_env.rollout.engines.registry import ENGINES

from ...config import TrainConfig
from .model import dtype_of, processes


def corrects_importance(config: TrainConfig) -> bool:
    """Whether tokens are weighed by what the trainer finds them likely over what the engine did."""
    if config.importance_sampling == "auto":
        return not ENGINES.get(config.engine).shares_weights
    return config.importance_sampling == "token"


class PolicyEngine:
    """The engine that plays a run's episodes.

    Args:
        config: Names it, and its options.
        trl: Holds the policy.
        tokenizer: The policy's.

    Raises:
        UnknownNameError: There is no engine of that name.
        ConfigurationError: It refuses its options, or does not fit the number of processes.
        MissingExtraError: What it needs is not installed.
    """

    def __init__(self, config: TrainConfig, trl: Any, tokenizer: PreTrainedTokenizerBase) -> None:
        kind = ENGINES.get(config.engine)
        self._trl, self._shares_weights = trl, kind.shares_weights
        self._last: int | None = None
        if not kind.shares_weights and (trl.is_fsdp_enabled or trl.is_deepspeed_enabled):
            raise ConfigurationError(
                f"engine={config.engine!r} needs the policy's weights in one process, and FSDP or DeepSpeed spread "
                'them; use engine="transformers", or plain data parallelism.'
            )
        options = dict(config.engine_options)
        if config.engine == "vllm":
            if processes().num_processes > 1:
                raise ConfigurationError(
                    'engine="vllm" is for one process; with several, start `vllm serve` and use engine="vllm-server".'
                )
            options.setdefault("dtype", str(dtype_of(config)).removeprefix("torch."))
        self.engine: Engine = kind.make(
            self._module(), tokenizer, max_rows=config.max_in_flight, seed=config.seed, options=options
        )

    def update(self) -> None:
        """Bring the engine to the policy as it is now; does nothing when it is there already."""
        step = int(self._trl.state.global_step)
        if step == self._last:
            return
        if self._shares_weights or not processes().is_main_process:
            self.engine.update_weights(step)
        else:
            self.engine.update_weights(step, self._module())
        # Nobody asks a server before it has the new weights. Every process comes here once a step.
        if not self._shares_weights:
            processes().wait_for_everyone()
        self._last = step

    def rest(self) -> None:
        """Have the engine give its memory to the training step; the next ``update`` wakes it, if it slept."""
        if isinstance(self.engine, KeepsCaches):
            # New weights have no use for what the old ones computed.
            self.engine.forget()
        if isinstance(self.engine, VllmEngine) and self.engine.sleeps:
            self.engine.sleep()
            self._last = None

    def close(self) -> None:
        """Close the engine."""
        self.engine.close()

    def _module(self) -> Any:
        return self._trl.accelerator.unwrap_model(self._trl.model)
