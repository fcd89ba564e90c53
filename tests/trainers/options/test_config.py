"""What a run is told is checked at once and by name, before a model is loaded or an episode played."""

import pytest

from rstar2_env import trainers
from rstar2_env.core.errors import ConfigurationError, UnknownNameError
from rstar2_env.core.options.declare import parse_options
from rstar2_env.trainers.options.cold_start import SftOptions
from rstar2_env.trainers.options.config import DTYPES, GROUPS, LR_SCHEDULERS, RunOptions
from rstar2_env.trainers.options.parts import make_parts


def configured(*pairs):
    return trainers.TRAINERS.get("grpo_roc").configure({"model": "m", **parse_options(pairs)})


def test_a_rollout_has_at_most_one_optimizer_step_for_each_group_in_each_pass():
    config = configured("steps=100", "minibatches=16", "problems_per_step=8", "updates_per_rollout=2")
    assert (config.updates, config.rollouts) == (16, 7)
    config = configured("steps=100", "minibatches=4", "problems_per_step=8")
    assert (config.updates, config.rollouts) == (4, 25)


@pytest.mark.parametrize(
    ("recipe", "pair", "hooks"),
    [
        ("grpo", "steps=9", ["diagnosis"]),
        ("prorl", "steps=9", ["diagnosis", "reference_reset"]),
        ("grpo", "hook.collapse.window=2", ["diagnosis", "collapse"]),
        ("prorl", "hook=collapse", ["collapse"]),
        ("grpo", "hook=[]", []),
    ],
)
def test_a_run_is_diagnosed_unless_its_list_of_hooks_is_replaced(recipe, pair, hooks):
    config = trainers.TRAINERS.get(recipe).configure({"model": "m", **parse_options([pair])})
    assert [part.name for part in config.parts.hook] == hooks


def test_a_choice_that_is_also_a_word_for_nothing_is_kept():
    assert configured("sharding=none").run.sharding == "none"
    assert configured("sharding=null").run.sharding is None


def test_help_over_the_run_is_counted_in_rollouts():
    pairs = parse_options(["steps=400", "minibatches=4", "problems_per_step=8", "rollout.judge=./mine.py:judge"])
    config = trainers.TRAINERS.get("ruscarl").configure({"model": "m", **pairs})
    scaffold = make_parts(config, shares_weights=True).rollout
    assert scaffold.steps == 100
    assert scaffold.shares(2, 20)[0] > 0.3 > 0.1 > scaffold.shares(2, 25)[0], "the help ends after a fifth of the run"


@pytest.mark.parametrize(
    ("pair", "message"),
    [
        ("learning_rate=abc", "optim.learning_rate must be a positive number, or None, not 'abc'."),
        ("optim.learning_rate=abc", "optim.learning_rate must be a positive number, or None, not 'abc'."),
        ("threads=abc", "run.threads must be an integer of at least 1, or None, not 'abc'."),
        ("max_turn_tokens=abc", "rollout.max_turn_tokens must be an integer of at least 1, or None, not 'abc'."),
        ("temperature=0", "rollout.temperature must be a positive number, not 0.0."),
        ("loss.ppo_clip.low=-1", "loss.ppo_clip.low must be a number from 0 to 1, or None, not -1.0."),
        ("loss.kl.coef=-1", "loss.kl.coef must be a number of at least 0, not -1.0."),
        ("loss.kl.coef=nan", "loss.kl.coef must be a finite number of at least 0, not nan."),
        ("loss.kk.coef=1", "There is no loss term named 'kk'. Did you mean 'kl'?"),
        ("loss.kl=1", "loss.kl must be the options of the part kl (loss.kl.OPTION=VALUE), not '1'."),
        ("problems_per_step=2.5", "rollout.problems_per_step must be an integer of at least 1, not '2.5'."),
        ("early_stop=maybe", "rollout.early_stop must be true or false, not 'maybe'."),
        ("selector={mode: rank}", "The value '{mode: rank}' is not valid JSON"),
        ("selector.mode=rang", "selector.mode must be one of 'sample', 'rank', 'weighted', not 'rang'. Did you"),
        ("parts.selector.mode=rang", "selector.mode must be one of 'sample', 'rank', 'weighted', not 'rang'. Did you"),
        ("selector.mood=rank", "The selector 'roc' has no option 'selector.mood'. Did you mean 'mode'"),
        ("advantage.ep=1", "The advantage 'group_norm' has no option 'advantage.ep'. Did you mean 'eps'"),
        ("sampler.seed=1", "sampler.seed is set by the trainer"),
        ("reward.tool_use.each=a", "reward.tool_use.each must be a number, not 'a'."),
        ("reward.tool_use.gate=a", "reward.tool_use.gate must be one of 'always', 'correct', 'wrong', not 'a'."),
        ("rollout=plain", "rollout is a group of options"),
        ("optim=3", "optim must be a dict, not '3'."),
        (
            "env.max_turn=3",
            "The environment 'rstar2/MathTool-v0' has no option 'rollout.env_options.max_turn'. Did you",
        ),
        ("eval.env.max_turns=0", "eval.env_options.max_turns must be an integer of at least 1, not 0."),
        ("eval.temperature=-1", "eval.temperature must be a number of at least 0, or None, not -1.0."),
        ("learning_rat=1", "There is no option 'learning_rat'. Did you mean 'optim.learning_rate'?"),
        ("optim.learning_rat=1", "There is no option optim.learning_rat. Did you mean 'optim.learning_rate'?"),
        ("run.learning_rate=1", "There is no option run.learning_rate. Did you mean 'optim.learning_rate'?"),
        ("eval_every=3", "There is no option 'eval_every'. Did you mean 'eval.every'?"),
        ("kl=0.1", "There is no option 'kl'. 'kl' is the name of a part: write loss.kl.OPTION=VALUE."),
        ("roc=1", "There is no option 'roc'. 'roc' is the name of a part: write selector=roc."),
        ("episodes=3", "There is no option 'episodes'. Did you mean 'eval.episodes'?"),
        ("lr_scheduler=cosin", "optim.lr_scheduler must be one of 'linear', 'cosine',"),
        ("correction=trunc", "There is no correction named 'trunc'. Did you mean 'truncate'"),
    ],
)
def test_a_value_that_no_run_could_use_is_refused_as_it_was_written(pair, message):
    with pytest.raises((ConfigurationError, UnknownNameError)) as caught:
        configured(pair)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("pair", "value"),
    [
        ("early_stop=False", False),
        ("learning_rate=1e-5", 1e-5),
        ("optim.learning_rate=1e-5", 1e-5),
        ("report_to=tensorboard", ["tensorboard"]),
        ("report_to=tensorboard,trackio", ["tensorboard", "trackio"]),
        ("max_turn_tokens=none", None),
        ("env.traceback=False", {"traceback": False}),
        ("rollout.env_options.traceback=False", {"traceback": False}),
        ("env.limits.wall_s=2", {"limits": {"wall_s": 2.0}}),
        ("chat_template_options.enable_thinking=False", {"enable_thinking": False}),
        ("lora_targets=all-linear", "all-linear"),
        ('lora_targets=["q_proj", "v_proj"]', ["q_proj", "v_proj"]),
    ],
)
def test_text_is_typed_by_the_option_it_goes_to(pair, value):
    config = configured(pair)
    name = pair.partition("=")[0].replace("env.", "env_options.")
    name = next(part for part in name.split(".") if part not in GROUPS)
    assert value == next(
        getattr(getattr(config, group), name) for group in GROUPS if hasattr(getattr(config, group), name)
    )


@pytest.mark.parametrize(
    "pairs",
    [
        ["selector.mode=rank"],
        ["parts.selector.mode=rank"],
        ["selector=roc:mode=rank"],
        ['selector={"mode": "rank"}'],
        ['selector={"name": "roc", "mode": "rank"}'],
        ['selector=["roc", {"mode": "rank"}]'],
    ],
)
def test_an_option_of_a_part_may_be_written_in_several_ways(pairs):
    assert configured(*pairs).parts.selector.options["mode"] == "rank"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"trl_options": {"nope": 1}}, "GRPOConfig of TRL has no option 'optim.trl_options.nope'"),
        ({"trl_options": {"adam_beta1": "abc"}}, "optim.trl_options.adam_beta1 must be a number, not 'abc'"),
        ({"trl_options": {"beta": 0.1}}, "optim.trl_options.beta is not supported.*Use loss.kl.coef"),
        ({"trl_options": {"num_generations": 4}}, "Use rollout.group_size"),
        ({"trl_options": {"scale_rewards": "none"}}, "rewards and advantages come from the recipe's parts"),
        ({"trl_options": {"use_vllm": True}}, 'Use rollout.engine="vllm"'),
        ({"report_to": ["tensorbord"]}, "unknown service 'tensorbord'. Did you mean 'tensorboard'"),
        ({"report_to": ["neptune"]}, "'neptune', whose Python package is not installed"),
        ({"engine": "transformer"}, "Did you mean 'transformers'"),
        ({"engine_options": {"idle": 1}}, "'rollout.engine_options.idle'. Did you mean 'idle_s'"),
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


def test_the_names_of_schedules_and_dtypes_are_those_of_transformers_and_torch():
    import torch
    from transformers.trainer_utils import SchedulerType

    assert set(LR_SCHEDULERS) <= {one.value for one in SchedulerType}
    assert all(isinstance(getattr(torch, name), torch.dtype) for name in DTYPES if name != "auto")


def test_a_folder_may_be_a_path(tmp_path):
    assert RunOptions(output_dir=tmp_path).output_dir == str(tmp_path)
    assert SftOptions("m", output_dir=tmp_path).output_dir == str(tmp_path)


def test_a_cold_start_is_checked_too():
    with pytest.raises(ConfigurationError, match="warmup_ratio must be a number from 0 to 1, or None, not 3"):
        SftOptions("m", warmup_ratio=3)
