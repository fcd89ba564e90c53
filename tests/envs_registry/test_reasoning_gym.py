"""reasoning-gym's generators as environments, against the real package."""

import gymnasium as gym
import pytest

import rstar2_env  # noqa: F401  # registers the ids
from rstar2_env.core.errors import ConfigurationError, UnknownNameError
from rstar2_env.testing import check_text_env

reasoning_gym = pytest.importorskip("reasoning_gym", reason="needs the extra 'reasoning-gym'")
ID = "rstar2/ReasoningGym-v0"
WITHOUT_REFERENCE = {"boxnet", "graph_color", "propositional_logic", "rubiks_cube", "rush_hour"}


def solve(name, seed=1):
    env = gym.make(ID, dataset=name)
    env.reset(seed=seed)
    return env.step(f"<answer>{env.unwrapped.problem.answer}</answer>")


def test_it_keeps_the_contract():
    check_text_env(ID, seeds=(0, 1))


@pytest.mark.parametrize("name", ["leg_counting", "basic_arithmetic", "word_sorting", "spell_backward"])
def test_the_reference_answer_earns_everything_in_either_form_and_another_does_not(name):
    env = gym.make(ID, dataset=name)
    for form in (env.unwrapped.dialect.format_answer("%s"), "<answer>%s</answer>"):
        env.reset(seed=2)
        _, reward, _, _, info = env.step(form.replace("%s", env.unwrapped.problem.answer))
        assert (reward, info["correct"], info["end"]) == (1.0, True, "answered")
    env.reset(seed=2)
    _, reward, *_, info = env.step("<answer>no such thing</answer>")
    assert reward < 1
    assert info["correct"] is False


def test_a_wrong_answer_that_holds_the_right_one_is_paid_with_partial_scores_alone():
    for partial, least, most in ((False, 0.0, 0.0), (True, 0.1, 0.9)):
        env = gym.make(ID, partial_scores=partial)
        env.reset(seed=0)
        _, reward, _, _, info = env.step(env.unwrapped.dialect.format_answer(f"({env.unwrapped.problem.answer})+1"))
        assert least <= reward <= most
        assert info["correct"] is False


def test_an_answer_of_several_lines_needs_no_box():
    assert solve("sudoku")[1] == 1.0


def test_instances_of_different_seeds_and_splits_do_not_collide():
    # With Random(seed + i) the data sets of seeds 1 and 2 share 99 of 100 items.
    sources = [gym.make(ID, dataset="basic_arithmetic", split=split).unwrapped.problems for split in ("train", "test")]
    train, test = ({source[i].question for i in range(150)} for source in sources)
    assert len(train) > 145
    assert not train & test


def test_options_of_a_generator_go_through_and_name_the_problems():
    env = gym.make(ID, dataset="leg_counting", config={"min_animals": 9, "max_animals": 9})
    _, info = env.reset(seed=1)
    assert "max_animals=9" in info["problem_id"]


def test_an_unknown_generator_is_an_error_that_suggests():
    with pytest.raises(UnknownNameError, match="leg_counting"):
        gym.make(ID, dataset="leg_countin")


@pytest.mark.parametrize("options", [{"dataset": "composite"}, {"config": {"colour": "red"}}])
def test_a_config_that_the_generator_refuses_is_named(options):
    with pytest.raises(ConfigurationError, match="refuses"):
        gym.make(ID, **options)


@pytest.mark.slow
def test_every_generator_that_has_one_gives_its_reference_answer_the_full_reward():
    names = set(reasoning_gym.factory.DATASETS) - {"composite"}  # it is made of others, which its config names
    assert {name for name in names if solve(name)[1] < 1} <= WITHOUT_REFERENCE
