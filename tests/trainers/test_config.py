"""What a run is told is checked at once and by name, before a model is loaded or an episode played."""

import pytest

from rstar2_env import trainers
from rstar2_env.core.errors import ConfigurationError, UnknownNameError
from rstar2_env.core.options import parse_options
from rstar2_env.trainers.cold_start import SftOptions
from rstar2_env.trainers.config import DTYPES, LOSSES, LR_SCHEDULERS, TrainConfig


def configured(*pairs):
    return trainers.TRAINERS.get("grpo_roc").configure({"model": "m", **parse_options(pairs)})


@pytest.mark.parametrize(
    ("pair", "message"),
    [
        ("learning_rate=abc", "learning_rate must be a positive number, not 'abc'."),
        ("threads=abc", "threads must be an integer of at least 1, or None, not 'abc'."),
        ("max_turn_tokens=abc", "max_turn_tokens must be an integer of at least 1, or None, not 'abc'."),
        ("temperature=0", "temperature must be a positive number, not 0.0."),
        ("clip_low=-1", "clip_low must be a number from 0 to 1, not -1.0."),
        ("kl=-1", "kl must be a number of at least 0, not -1.0."),
        ("kl=nan", "kl must be a finite number of at least 0, not nan."),
        ("problems_per_step=2.5", "problems_per_step must be an integer of at least 1, not '2.5'."),
        ("early_stop=maybe", "early_stop must be true or false, not 'maybe'."),
        ("selector_options={mode: rank}", "selector_options must be a dict, not '{mode: rank}'."),
        ("selector_options.mode=rang", "selector_options.mode must be one of 'sample', 'rank', not 'rang'. Did you"),
        ("selector_options.mood=rank", "The selector 'roc' has no option 'selector_options.mood'. Did you mean 'mode'"),
        (
            "env_options.max_turn=3",
            "The environment 'rstar2/MathTool-v0' has no option 'env_options.max_turn'. Did you",
        ),
        ("eval_env_options.max_turns=0", "eval_env_options.max_turns must be an integer of at least 1, not 0."),
        ("learning_rat=1", "The training run has no option 'learning_rat'. Did you mean 'learning_rate'?"),
        ("lr_scheduler=cosin", "lr_scheduler must be one of 'linear', 'cosine',"),
        ("importance_sampling=of", "importance_sampling must be one of 'auto', 'token', 'off', not 'of'. Did you mean"),
    ],
)
def test_a_value_that_no_run_could_use_is_refused_as_it_was_written(pair, message):
    with pytest.raises(ConfigurationError) as caught:
        configured(pair)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("pair", "value"),
    [
        ("early_stop=False", False),
        ("learning_rate=1e-5", 1e-5),
        ("report_to=tensorboard", ["tensorboard"]),
        ("report_to=tensorboard,trackio", ["tensorboard", "trackio"]),
        ("max_turn_tokens=none", None),
        ("selector_options.mode=rank", {"mode": "rank"}),
        ('selector_options={"mode": "rank"}', {"mode": "rank"}),
        ("env_options.traceback=False", {"traceback": False}),
        ("env_options.limits.wall_s=2", {"limits": {"wall_s": 2.0}}),
        ("chat_template_options.enable_thinking=False", {"enable_thinking": False}),
    ],
)
def test_text_is_typed_by_the_option_it_goes_to(pair, value):
    config = configured(pair)
    assert getattr(config, pair.partition("=")[0].partition(".")[0]) == value


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"trl_options": {"nope": 1}}, "GRPOConfig of TRL has no option 'trl_options.nope'"),
        ({"trl_options": {"beta": "abc"}}, "trl_options.beta must be a number, not 'abc'"),
        ({"report_to": ["tensorbord"]}, "no tracker 'tensorbord'. Did you mean 'tensorboard'"),
        ({"report_to": ["neptune"]}, "package of the tracker 'neptune' is not installed"),
        ({"engine": "transformer"}, "Did you mean 'transformers'"),
        ({"engine_options": {"idle": 1}}, "'engine_options.idle'. Did you mean 'idle_s'"),
        ({"engine": "vllm-server", "engine_options": {"schedule": 1}}, "Did you mean 'scheduler'"),
    ],
)
def test_what_the_backend_alone_knows_is_checked_before_a_model_is_loaded(options, message, tmp_path):
    model = tmp_path / "no model that could be loaded"
    model.mkdir()
    (model / "config.json").write_text("{}")
    with pytest.raises((ConfigurationError, UnknownNameError), match=message):
        trainers.make("grpo_roc", model=str(model), output_dir=str(tmp_path / "run"), **options)
    assert not (tmp_path / "run").exists()


def test_the_names_of_schedules_losses_and_dtypes_are_those_of_transformers_trl_and_torch():
    import torch
    from transformers.trainer_utils import SchedulerType
    from trl import GRPOConfig

    assert set(LR_SCHEDULERS) <= {one.value for one in SchedulerType}
    told = GRPOConfig.__dataclass_fields__["loss_type"].metadata["help"]
    assert all(f"'{loss}'" in told for loss in LOSSES)
    assert all(isinstance(getattr(torch, name), torch.dtype) for name in DTYPES if name != "auto")


def test_a_folder_may_be_a_path(tmp_path):
    assert TrainConfig("m", output_dir=tmp_path).record()["output_dir"] == str(tmp_path)
    assert SftOptions("m", output_dir=tmp_path).output_dir == str(tmp_path)


def test_a_cold_start_is_checked_too():
    with pytest.raises(ConfigurationError, match="warmup_ratio must be a number from 0 to 1, not 3"):
        SftOptions("m", warmup_ratio=3)
