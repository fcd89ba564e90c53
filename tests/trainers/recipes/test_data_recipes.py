"""The recipes that choose what is trained on: what each prescribes, and that its choice reaches the weights."""

from __future__ import annotations

import json

import pytest

from rstar2_env import trainers
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.run_folder import read_run
from rstar2_env.problems import FixedSource, Problem
from rstar2_env.trainers import TRAINERS
from rstar2_env.trainers.options.parts import make_parts

SAMPLED = {
    "acereason": "stages",
    "drive": "hard_focus",
    "dump": "dump",
    "envgen": "skill_gap",
    "mopps": "mopps",
    "odf": "uniform",
    "polaris": "uniform",
    "policy_refresh": "stages",
    "r1_ci": "potential",
    "rstar2_paper": "unsolved",
    "rstar2_released": "uniform",
    "saturn": "curriculum",
}


def configured(name, **options):
    return TRAINERS.get(name).configure({"model": "m"}, options)


@pytest.mark.parametrize(("name", "sampler"), SAMPLED.items())
def test_each_draws_with_its_sampler_and_selects_as_its_source_does(name, sampler):
    config = configured(name)
    selector = make_parts(config, shares_weights=True).selector
    assert config.parts.sampler.name == sampler
    # The code of these authors leaves groups without a difference in the mean.
    assert getattr(selector, "reject_equal", True) == (name not in ("dump", "mopps", "saturn"))
    assert config.parts.aggregation.name == ("seq_mean" if name == "saturn" else "token_mean")


def test_the_papers_training_has_its_constants():
    config = configured("rstar2_paper")
    rollout, parts = config.rollout, make_parts(config, shares_weights=True)
    assert (config.run.steps, rollout.problems_per_step, rollout.group_size, rollout.oversample) == (510, 512, 16, 2)
    assert (rollout.max_episode_tokens, rollout.temperature, rollout.refill, rollout.replace) == (8192, 1.0, 0, None)
    assert (config.optim.learning_rate, config.optim.warmup_steps) == (1e-6, 20)
    assert (parts.selector.mode, parts.terms[0].low, parts.terms[0].high, parts.terms[0].dual) == (
        "sample",
        0.2,
        0.28,
        None,
    )
    _, hook = parts.hooks
    assert [round(8192 * factor) for factor in hook.tokens] == [8192, 12288, 12288]
    assert (hook.steps, hook.turns, hook.reset) == ((300, 85), (10, 10, 15), (3,))
    assert config.parts.sampler.options["after"] == 300 + 85
    assert (config.in_evaluation("max_episode_tokens"), config.in_evaluation("temperature")) == (30720, 0.6)
    assert config.eval_env_options["max_turns"] == 30


@pytest.mark.parametrize(("recipe", "file"), [("rstar2_paper", "paper_stage1"), ("rstar2_released", "released_code")])
def test_the_recipes_say_what_the_files_say(recipe, file, pytestconfig):
    of_file, options = trainers.find_recipe(str(pytestconfig.rootpath / f"configs/{file}.toml"))
    written, stated = of_file.configure(options, {"model": "m"}).record(), configured(recipe).record()
    for group, names in (
        ("rollout", ("problems_per_step", "group_size", "oversample", "refill", "max_episode_tokens", "temperature")),
        ("optim", ("learning_rate", "warmup_steps")),
        ("parts", ("selector", "loss", "aggregation", "advantage", "reward")),
        ("eval", ("temperature", "max_episode_tokens")),
    ):
        for name in names:
            assert stated[group][name] == written[group][name], f"{group}.{name}"
    if recipe == "rstar2_released":
        assert stated["rollout"]["env_options"] == written["rollout"]["env_options"]


def test_the_terms_and_steps_are_those_of_the_authors_scripts():
    def terms(name):
        made = make_parts(configured(name), shares_weights=True)
        return dict(zip(made.term_names, made.terms, strict=True))

    assert (terms("dump")["ppo_clip"].high, terms("dump")["kl"].coef) == (0.2, 1e-3)
    assert (terms("mopps")["ppo_clip"].high, terms("mopps")["entropy"].coef) == (0.28, 1e-3)
    assert (terms("saturn")["ppo_clip"].high, terms("saturn")["kl"].coef) == (0.2, 1e-3)
    steps = {name: configured(name).optim.minibatches for name in ("dump", "mopps", "saturn", "acereason", "polaris")}
    assert steps == {"dump": 4, "mopps": 2, "saturn": 8, "acereason": 1, "polaris": 1}
    assert make_parts(configured("rstar2_released"), shares_weights=True).advantage.eps == 1e-6


def test_policy_refresh_begins_each_level_with_its_own_reference():
    config = configured("policy_refresh")
    parts = make_parts(config, shares_weights=True)
    _, hook = parts.hooks
    assert (hook.steps, hook.optimizer) == ((100,), True)
    assert (parts.terms[0].low, parts.terms[0].high, parts.terms[1].coef) == (0.2, 0.2, 1e-3)
    problems = [Problem(f"p{n}", "What?", "1", meta={"level": 5 - n % 3}) for n in range(9)]
    sampler = parts.sampler_factory(FixedSource(problems), 0)
    assert sampler.kind == "3"
    levels = {}
    for step in range(250):
        levels.setdefault(sampler.kind, step)
        sampler.observe([])
    assert levels == {"3": 0, "4": 100, "5": 200}  # where the hook, too, ends its stages


def test_options_of_an_environment_go_with_it():
    assert configured("rstar2_released").rollout.env_options == {"max_turns": 5, "max_output": 256}
    assert configured("rstar2_released", env="rstar2/MathTool-v0").rollout.env_options["max_output"] == 256
    other = configured("rstar2_released", env="rstar2/Saturn-v0", env_options={"max_turns": 2})
    assert other.rollout.env_options == {"max_turns": 2}
    assert configured("rstar2_paper", env="rstar2/Saturn-v0").eval_env_options == {"split": "test"}
    # What the caller gives stays, whichever layer it is in.
    layers = ({"model": "m", "env": {"max_turns": 3}}, {"env": "rstar2/Saturn-v0"})
    assert TRAINERS.get("rstar2_released").configure(*layers).rollout.env_options == {"max_turns": 3}


def test_a_sampler_that_does_not_fit_is_refused_before_a_model_is_loaded(tmp_path):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text('{"model_type": "none that there is"}')
    given = {"model": str(tmp_path / "model"), "output_dir": str(tmp_path / "run"), "env": "rstar2/TicTacToe-v0"}
    for name in ("dump", "envgen", "policy_refresh", "saturn", "acereason"):
        with pytest.raises(ConfigurationError, match="chooses between kinds of problems"):
            trainers.make(name, **given)
    with pytest.raises(ConfigurationError, match="does not exist: give the folder of a run"):
        trainers.make("r1_ci", sampler={"rates": str(tmp_path / "nothing")}, **given)


LADDER = {"mix": [{"spec": "saturn:clauses=5"}, {"spec": "saturn:clauses=6"}]}


@pytest.mark.train
@pytest.mark.parametrize("name", ["dump", "saturn"])
def test_a_run_goes_on_with_what_its_sampler_learned(name, tiny_model, tmp_path):
    def train(folder, steps, **options):
        trainer = trainers.make(
            name,
            model=str(tiny_model),
            env="rstar2/Saturn-v0",
            env_options={"problems": LADDER},
            output_dir=str(tmp_path / folder),
            steps=steps,
            problems_per_step=3,
            group_size=2,
            max_episode_tokens=6,
            save_every=2,
            threads=1,
            progress=False,
            **({"selector": "all", "sampler": {"window": 2}} | options),
        )
        try:
            trainer.train()
        finally:
            trainer.close()
        run = read_run(tmp_path / folder)
        return [[one[0].episode.problem_id for one in run.groups(step)] for step in range(1, 5)]

    whole = train("whole", 4)
    train("parted", 2)
    assert train("parted", 4, resume=True) == whole
    assert all(problem.startswith("saturn:clauses=") for step in whole for problem in step)
    assert json.loads((tmp_path / "whole" / "config.json").read_text())["parts"]["sampler"]["name"] == SAMPLED[name]


@pytest.mark.train
def test_envgen_trains_in_generated_configurations_and_a_resumed_run_keeps_them(tiny_model, tmp_path):
    def train(folder, steps, **options):
        trainer = trainers.make(
            "envgen",
            model=str(tiny_model),
            env="rstar2/Countdown-v0",
            sampler={"name": "generated_worlds", "vary": {"numbers": [2, 4]}, "count": 1, "every": 1, "original": 1},
            selector="all",
            output_dir=str(tmp_path / folder),
            steps=steps,
            problems_per_step=2,
            group_size=2,
            max_episode_tokens=6,
            save_every=1,
            threads=1,
            progress=False,
            **options,
        )
        try:
            trainer.train()
        finally:
            trainer.close()
        run = read_run(tmp_path / folder)
        return [[one[0].episode.problem_id for one in run.groups(step)] for step in run.steps]

    whole = train("whole", 3)
    worlds = [{problem.partition("/")[0] for problem in step} for step in whole]
    assert worlds == [{"countdown:numbers=2"}, {"countdown"}, {"countdown:numbers=2"}], "nothing right: it stays easy"
    train("parted", 2)
    assert train("parted", 3, resume=True) == whole
