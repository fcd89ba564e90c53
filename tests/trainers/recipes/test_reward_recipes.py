"""The recipes that are made by their rewards and their hooks: what each prescribes, and that it reaches the weights."""

from __future__ import annotations

from functools import partial

import pytest
from recipe_run import train_recipe
from scripted_policy import FOR_RECIPES

from rstar2_env.core.episode import Episode
from rstar2_env.core.run_folder import read_run
from rstar2_env.rewards import RewardContext
from rstar2_env.trainers import TRAINERS
from rstar2_env.trainers.options.parts import make_parts
from rstar2_env.wrappers import make_env

REWARDS = {
    "agentmath": {"return": 1.0, "tool_use": 1.0},
    "agentrl": {"return": 1.0, "unfinished": 1.0},
    "alphamed": {"letter_choice": 1.0},
    "clip_delta": {"outcome": 1.0, "process": 1.0},
    "cog_rethinker": {"return": 1.0},
    "general_reasoner": {"model_verifier": 1.0},
    "grpo_tcr": {"outcome": 1.0, "wrong_by_turns": 1.0, "overlong": 1.0},
    "guru": {"router": 1.0},
    "laser": {"laser": 1.0},
    "mt_r1_zero": {"metric_threshold": 1.0},
    "open_rs": {"cosine_length": 2.0, "answer_format": 1.0},
    "pav": {"return": 1.0, "progress": 3.0},
    "prorl": {"return": 1.0},
    "pta_grpo": {"return": 1.0, "plan_value": 1.0, "answer_format": 1.0},
    "rlpr": {"reference_probability": 0.9, "answer_format": 0.1},
    "rlsp": {"return": 1.0, "exploration": 1.0},
    "swe_rl": {"diff_similarity": 1.0},
    "tool_star": {"tool_hierarchy": 1.0},
}
"""The components of each recipe, with their weights."""


def made(name):
    config = TRAINERS.get(name).configure({"model": "m"})
    return config, make_parts(config, shares_weights=True)


@pytest.mark.parametrize(("name", "weights"), REWARDS.items())
def test_the_reward_is_that_of_the_paper(name, weights):
    _, parts = made(name)
    assert {component.name: component.weight for component in parts.rewards} == weights


def test_open_rs_has_the_schedule_of_its_released_code():
    config, parts = made("open_rs")
    assert (config.run.steps, config.optim.warmup_steps, config.optim.learning_rate) == (500, 50, 1e-6)
    assert config.optim.lr_scheduler == "cosine_with_min_lr"
    assert config.optim.trl_options == {"lr_scheduler_kwargs": {"min_lr_rate": 0.1}}
    assert (config.rollout.group_size, config.rollout.temperature) == (6, 0.7)
    assert [(term.low, term.high) for term in parts.terms] == [(0.2, 0.2)]


def test_general_reasoner_laser_and_tool_star_have_the_terms_of_their_scripts():
    _, parts = made("general_reasoner")
    clip, kl, entropy = parts.terms
    assert (clip.low, clip.high, clip.dual, kl.coef, entropy.coef) == (0.3, 0.3, 10, 1e-4, 1e-3)
    _, parts = made("laser")
    clip, kl, entropy = parts.terms
    assert (clip.low, clip.high, kl.coef, entropy.coef) == (0.2, 0.28, 1e-3, 1e-3)
    steps = {
        name: made(name)[0].optim.minibatches for name in ("general_reasoner", "guru", "laser", "rlpr", "tool_star")
    }
    assert steps == {"general_reasoner": 4, "guru": 8, "laser": 2, "rlpr": 4, "tool_star": 8}


def test_prorl_holds_to_a_reference_and_explores():
    config, parts = made("prorl")
    surrogate, kl = parts.terms
    assert (surrogate.low, surrogate.high, kl.coef) == (0.2, 0.4, 1e-4)
    rollout = config.rollout
    assert (rollout.problems_per_step, rollout.group_size, rollout.temperature, rollout.refill) == (256, 16, 1.2, 9)
    assert [type(hook).__name__ for hook in parts.hooks] == ["DiagnosisHook", "ReferenceReset"]
    assert config.eval.every, "or the hook would refuse the run"


def test_agentmath_pays_calls_in_right_answers_and_grows_its_budget():
    config, parts = made("agentmath")
    bonus = parts.rewards[1]
    assert (bonus.score.each, bonus.score.most) == (0.02, 0.1)
    _, stages = parts.hooks
    assert [round(factor * config.rollout.max_episode_tokens / 1024) for factor in stages.tokens] == [48, 72, 96]
    assert (stages.turns, stages.when_cut) == ((48, 72, 96), 0.1)
    assert config.rollout.env_options == {"max_turns": 48}
    assert (parts.selector.reject_equal, config.rollout.refill) == (True, 9)
    assert (config.rollout.problems_per_step, config.rollout.group_size) == (64, 8)
    assert config.optim.learning_rate == 1e-6


def test_pav_has_the_baseline_and_the_kl_weight_of_its_paper():
    config, parts = made("pav")
    assert config.parts.advantage.name == "group_mean"
    assert [getattr(term, "coef", None) for term in parts.terms] == [None, 0.001]


def test_clip_delta_pays_no_more_for_steps_than_for_the_answer():
    _, parts = made("clip_delta")
    assert not parts.selector.reject_equal
    assert [(term.low, term.high) for term in parts.terms] == [(0.2, 0.2)]
    process = parts.rewards[1].score
    assert (process.bound, process.eta, process.credit) == ("both", 0.8, "turns")
    assert sum(process.bounded([1.0] * 20)) == 0
    assert sum(process.bounded([0.5] * 20)) == pytest.approx(-0.3)


def test_rlpr_filters_by_deviation_and_clips_as_published():
    _, parts = made("rlpr")
    assert (parts.selector.beta, parts.selector.decay) == (0.5, 0.99)
    assert (parts.terms[0].low, parts.terms[0].high) == (0.2, 0.27)


def test_grpo_tcr_has_daposs_limit_and_its_own_price_of_wrong_answers():
    config, parts = made("grpo_tcr")
    outcome, wrong, overlong = parts.rewards
    assert (outcome.score.correct, outcome.score.wrong) == (1.0, 0.0)
    assert [wrong.value(Episode(correct=correct, turns=1), RewardContext()) for correct in (True, False)] == [0.0, -1.0]
    assert (overlong.score.limit, overlong.score.buffer) == (20480, None)  # a fifth, which is the paper's 4,096
    assert (config.rollout.problems_per_step, config.rollout.group_size, config.optim.minibatches) == (64, 16, 4)
    assert config.rollout.env_options["max_turns"] == config.eval_env_options["max_turns"] == 16
    assert (parts.selector.reject_equal, parts.selector.equal, config.rollout.refill) == (True, "correct", 9)
    assert [(term.low, term.high) for term in parts.terms] == [(0.2, 0.28)]


def test_laser_asks_for_lengths_by_difficulty_up_to_the_runs_limit():
    config = TRAINERS.get("laser").configure({"model": "m", "max_episode_tokens": 8192})
    score = make_parts(config, shares_weights=True).rewards[0].score
    assert (score.mode, score.limit, score.bonus, score.wrong) == ("d", 8192, 0.5, -0.5)


@pytest.fixture
def train(tiny_model, tmp_path):
    """Take a step in mathematics with a tool, as its script plays."""
    return partial(train_recipe, world="tool", model=tiny_model, folder=tmp_path / "run", steps=1, refill=0)


@pytest.mark.train
def test_pav_plays_further_episodes_from_the_turns_and_trains_on_their_progress(train):
    result = train("pav")
    (line,) = [one for one in result.history if "loss" in one]
    assert line["grad_norm"] > 0
    played = read_run(result.output_dir).episodes(1)
    assert len(played) == 8  # the further episodes are no part of the groups
    assert any(each.episode.turns > 1 for each in played)
    assert all("turns/progress" in each.episode.rewards for each in played)
    assert all(each.episode.reward == each.episode.rewards["return"] for each in played)
    assert any(each.episode.rewards["turns/progress"] for each in played)


def test_pta_grpo_asks_for_the_plan_that_its_reward_looks_for_in_any_environment():
    config, parts = made("pta_grpo")
    plan = next(component.score for component in parts.rewards if component.name == "plan_value")
    for wrappers, env_id in (
        (config.rollout.wrappers, "rstar2/MathTool-v0"),
        (config.eval.wrappers, "rstar2/Sudoku-v0"),
    ):
        with make_env(env_id, wrappers=wrappers) as env:
            asked, _ = env.reset(seed=1)
            assert plan.end in asked
            assert asked.startswith(env.unwrapped.reset(seed=1)[0])


@pytest.mark.train
def test_a_plan_is_tried_by_further_episodes(train):
    # The first call stands for a plan: what it is followed by decides.
    planned = ["plan_value", {"end": "<tool_call>", "rollouts": 2}]
    result = train("pta_grpo", reward=["return", planned, "answer_format"])
    values = [each.episode.rewards["plan_value"] for each in read_run(result.output_dir).episodes(1)]
    assert set(values) <= {0.0, 0.5, 1.0}
    assert any(values)


@pytest.mark.train
def test_a_judge_named_in_the_options_verifies_every_answer(train, tmp_path):
    (tmp_path / "mine.py").write_text(
        "async def judge(prompt):\n"
        "    said = [prompt.split(f' {name}>\\n')[1].split('\\n')[0] for name in ('REFERENCE', 'ANSWER')]\n"
        "    return 'CORRECT' if said[0] == said[1] else 'INCORRECT'\n"
    )
    result = train("general_reasoner", judge=f"{tmp_path / 'mine.py'}:judge")
    for each in read_run(result.output_dir).episodes(1):
        episode = each.episode
        expected = float(episode.correct) if episode.answer else -0.5
        assert episode.rewards == {"model_verifier": expected}


EARNED = {
    "alphamed": ("letter_choice", lambda value: value in (0.0, 1.0)),
    "guru": ("router", lambda value: value in (0.0, 1.0)),
    "swe_rl": ("diff_similarity", lambda value: value == -1.0 or 0.5 < value <= 1.0),
}
"""The component of each recipe, and what it may pay."""


@pytest.mark.train
@pytest.mark.parametrize("name", FOR_RECIPES)
def test_a_recipe_that_fits_no_common_world_trains_in_one_of_its_own(name, tiny_model, tmp_path):
    result = train_recipe(name, FOR_RECIPES[name], tiny_model, tmp_path / "run")
    steps = [line for line in result.history if "loss" in line]
    assert [line["step"] for line in steps] == [1, 2]
    assert max(line["grad_norm"] for line in steps) > 0
    run = read_run(result.output_dir)
    earned = [each.episode.rewards for step in (1, 2) for each in run.episodes(step)]
    component, fits = EARNED[name]
    assert all(list(rewards) == [component] and fits(rewards[component]) for rewards in earned)
    assert len({rewards[component] for rewards in earned}) > 1
