"""Refuse arguments of ``trl.GRPOConfig`` that have no effect in this package or would break the loss.

The collector plays, selects and scores episodes, and the loss is this package's own, so arguments for TRL's generation,
rewards and loss have no effect. An argument of transformers is refused if the run has an option for it.
"""

from __future__ import annotations

from collections.abc import Iterable

from rstar2_env.core.errors import ConfigurationError

_LOSS = "the loss is built from the parts loss, aggregation and correction"
_REWARD = "rewards and advantages come from the recipe's parts"
_PLAYED = "rollout.engine plays the episodes"
_ROWS = "rows are divided into micro-batches by their tokens"
_REFERENCE = "the reference model is the policy at the start of training"
_SHOWN = "it would log TRL's rewards and advantages, which are not used for training"
_RUN = "the run has its own option for it"
_EVALUATION = "evaluation plays episodes on held-out problems"
_DATA = "the data loader yields only the numbers of the steps"

_WHY: dict[str, dict[str, str]] = {
    _REWARD: {
        "scale_rewards": "advantage",
        "reward_weights": "reward.NAME.weight",
        "multi_objective_aggregation": "reward",
        "remove_unused_columns": "",
    },
    _LOSS: {
        "loss_type": "aggregation",
        "beta": "loss.kl.coef",
        "epsilon": "loss.ppo_clip.low",
        "epsilon_high": "loss.ppo_clip.high",
        "delta": "loss.ppo_clip.two_sided",
        **dict.fromkeys(("sapo_temperature_neg", "sapo_temperature_pos"), "loss"),
        **dict.fromkeys(("vespo_k_pos", "vespo_lambda_pos", "vespo_k_neg", "vespo_lambda_neg"), "loss"),
        "importance_sampling_level": "loss.ppo_clip.level",
        "use_bias_correction_kl": "loss.kl.estimator",
        "off_policy_mask_threshold": "correction",
        "top_entropy_quantile": "loss",
        "entropy_coef": "loss.entropy.coef",
        **dict.fromkeys(("use_adaptive_entropy", "entropy_coef_min", "entropy_coef_max"), "loss.adaptive_entropy"),
        **dict.fromkeys(("entropy_coef_delta", "entropy_target"), "loss.adaptive_entropy"),
        "mask_truncated_completions": "selector",
        "vllm_importance_sampling_correction": "correction",
        "vllm_importance_sampling_mode": "correction",
        "vllm_importance_sampling_cap": "correction.cap",
        "use_liger_kernel": "",
        "liger_kernel_config": "",
        "router_aux_loss_coef": "",
        "label_smoothing_factor": "",
        "neftune_noise_alpha": "",
        "average_tokens_across_devices": "aggregation",
    },
    _REFERENCE: dict.fromkeys(("sync_ref_model", "ref_model_mixup_alpha", "ref_model_sync_steps"), "hook"),
    _PLAYED: {
        "num_generations": "rollout.group_size",
        "num_generations_eval": "eval.episodes",
        "max_completion_length": "rollout.max_episode_tokens",
        "temperature": "rollout.temperature",
        "top_p": "rollout.top_p",
        "top_k": "rollout.top_k",
        "min_p": "",
        "repetition_penalty": "",
        "generation_kwargs": "rollout.engine_options",
        "generation_batch_size": "rollout.problems_per_step",
        "cache_implementation": "rollout.engine_options",
        "chat_template_kwargs": "model.chat_template_options",
        "use_transformers_paged": "rollout.engine",
        "use_transformers_continuous_batching": "rollout.engine",
        "transformers_continuous_batching_config": "rollout.engine",
        "ds3_gather_for_generation": "rollout.engine",
        "use_vllm": 'rollout.engine="vllm" or "vllm-server"',
        "max_tool_calling_iterations": "env.max_turns",
        "shuffle_dataset": "sampler",
    },
    _ROWS: {
        "per_device_train_batch_size": "optim.tokens_per_device",
        "per_device_eval_batch_size": "rollout.max_in_flight",
        "auto_find_batch_size": "optim.tokens_per_device",
        "gradient_accumulation_steps": "optim.tokens_per_device",
        "steps_per_generation": "optim.minibatches",
        "num_iterations": "optim.updates_per_rollout",
        "pad_to_multiple_of": "",
    },
    _SHOWN: dict.fromkeys(
        (
            "log_completions",
            "num_completions_to_print",
            "log_unique_prompts",
            "log_multimodal",
            "log_completions_hub_repo",
        ),
        "run.keep_episodes",
    ),
    _RUN: {
        "output_dir": "run.output_dir",
        "seed": "run.seed",
        "data_seed": "run.seed",
        "max_steps": "run.steps",
        "num_train_epochs": "run.steps",
        "logging_steps": "run.log_every",
        "logging_strategy": "run.log_every",
        "save_strategy": "run.save_every",
        "save_steps": "run.save_every",
        "save_total_limit": "run.keep_checkpoints",
        "report_to": "run.report_to",
        "resume_from_checkpoint": "run.resume",
        "ignore_data_skip": "run.resume",
        "learning_rate": "optim.learning_rate",
        "warmup_steps": "optim.warmup_steps",
        "lr_scheduler_type": "optim.lr_scheduler",
        "weight_decay": "optim.weight_decay",
        "max_grad_norm": "optim.max_grad_norm",
        "bf16": "model.dtype",
        "fp16": "model.dtype",
        "gradient_checkpointing": "model.gradient_checkpointing",
        "model_init_kwargs": "model.dtype, model.revision or model.attn_implementation",
        "trust_remote_code": "model.trust_remote_code",
    },
    _EVALUATION: dict.fromkeys(
        (
            *("do_eval", "eval_strategy", "eval_steps", "eval_on_start", "eval_delay", "eval_accumulation_steps"),
            *("eval_do_concat_batches", "eval_use_gather_object", "prediction_loss_only", "batch_eval_metrics"),
            *("include_for_metrics", "metric_for_best_model", "greater_is_better", "load_best_model_at_end"),
            *("bf16_full_eval", "fp16_full_eval", "do_predict"),
        ),
        "eval.every",
    ),
    _DATA: dict.fromkeys(
        (
            *("dataloader_drop_last", "dataloader_num_workers", "dataloader_persistent_workers"),
            *("dataloader_prefetch_factor", "dataloader_multiprocessing_context", "dataloader_in_order"),
            *("train_sampling_strategy", "length_column_name", "label_names", "include_num_input_tokens_seen"),
        ),
        "",
    ),
}
REFUSED: dict[str, tuple[str, str]] = {
    name: (why, instead) for why, names in _WHY.items() for name, instead in names.items()
}
"""For each refused argument of TRL: the reason, and the option to use instead (empty if there is none)."""


def check_trl_options(names: Iterable[str]) -> None:
    """Refuse options of ``optim.trl_options`` that would have no effect or break the loss.

    Args:
        names: Names of the options that are set.

    Raises:
        ConfigurationError: An option is refused; the message names the reason and the option to use instead, if any.
    """
    for name in names:
        why, instead = REFUSED.get(name) or (REFUSED["use_vllm"] if name.startswith("vllm_") else ("", ""))
        if why:
            use = f" Use {instead}." if instead else ""
            raise ConfigurationError(f"optim.trl_options.{name} is not supported: {why}.{use}")
