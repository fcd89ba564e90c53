"""Arguments of TRL that would do nothing, or break the loss, are refused; every other one is taken."""

from __future__ import annotations

import pytest
from transformers import TrainingArguments
from trl import GRPOConfig

from rstar2_env import trainers
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.trainers import TRAINERS
from rstar2_env.trainers.backends.trl.run.checks import check_schedule
from rstar2_env.trainers.backends.trl.run.refused_options import REFUSED, check_trl_options
from rstar2_env.trainers.options.config import LR_SCHEDULERS
from rstar2_env.trainers.options.names import known_names
from rstar2_env.trainers.options.slots import FIELDS

TAKEN = {"disable_dropout", "cast_lm_head_to_fp32"}
"""TRL's own arguments that act on the model, whatever the loss is."""
FIELDS_OF_TRL = GRPOConfig.__dataclass_fields__


def test_every_argument_of_trls_own_is_refused_or_known_to_act():
    own = set(FIELDS_OF_TRL) - set(TrainingArguments.__dataclass_fields__)
    for name in own - TAKEN:
        with pytest.raises(ConfigurationError, match=f"optim.trl_options.{name} is not supported: "):
            check_trl_options([name])
    check_trl_options(TAKEN)


def test_only_arguments_that_exist_are_refused():
    assert set(REFUSED) <= set(FIELDS_OF_TRL)


@pytest.mark.parametrize(
    "name",
    ["per_device_train_batch_size", "num_generations", "log_completions", "gradient_accumulation_steps", "save_steps"],
)
def test_what_broke_runs_before_names_the_option_to_use(name):
    with pytest.raises(ConfigurationError, match=r"is not supported: .*\. Use (optim|rollout|run)\.\w+\."):
        check_trl_options([name])


def test_the_options_to_use_exist():
    groups = {f"{group}.{name}" for group, names in known_names().items() for name in names}
    for _, instead in REFUSED.values():
        for option in instead.split(" or ")[0].split(", "):
            name = option.partition("=")[0]
            assert name in groups or name.partition(".")[0] in (*FIELDS, "env", ""), option


@pytest.mark.parametrize(
    "name", ["adam_beta2", "optim", "ddp_timeout", "fsdp", "deepspeed", "torch_compile", "run_name"]
)
def test_what_acts_on_the_optimizer_and_on_processes_is_taken(name):
    check_trl_options([name])


@pytest.mark.parametrize("name", ["cosine_with_min_lr", "warmup_stable_decay"])
def test_a_schedule_that_cannot_be_made_is_refused(name):
    config = TRAINERS.get("grpo_clip_higher").configure({"model": "m", "lr_scheduler": name}, {})
    with pytest.raises(ConfigurationError, match="lr_scheduler_kwargs"):
        check_schedule(config)


def test_a_schedule_that_cannot_be_made_is_refused_before_a_model_is_loaded(tmp_path):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text('{"model_type": "qwen2"}')  # without weights
    options = {"model": str(tmp_path / "model"), "lr_scheduler": "cosine_with_min_lr"}
    with pytest.raises(ConfigurationError, match=r"'cosine_with_min_lr'.*lr_scheduler_kwargs"):
        trainers.make("grpo", **options, env="rstar2/MathTool-v0", output_dir=str(tmp_path / "run"))


@pytest.mark.parametrize("name", LR_SCHEDULERS)
def test_every_schedule_can_be_made_with_its_options(name):
    kwargs = {
        "cosine_with_min_lr": {"min_lr_rate": 0.1},
        "cosine_warmup_with_min_lr": {"min_lr_rate": 0.1},
        "warmup_stable_decay": {"num_decay_steps": 2},
    }.get(name, {})
    options = {"model": "m", "lr_scheduler": name, "trl_options": {"lr_scheduler_kwargs": kwargs}}
    check_schedule(TRAINERS.get("grpo_clip_higher").configure(options, {}))
