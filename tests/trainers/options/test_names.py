"""An option is found by its short name, and one that is not is named with what may be meant."""

import pytest

from rstar2_env.core.errors import ConfigurationError, UnknownOptionError
from rstar2_env.trainers.options.names import in_groups, known_names, place

GROUPS = {"run": ["seed", "shared"], "optim": ["rate", "shared"], "rollout": ["size"], "eval": ["size", "every"]}


def test_a_name_that_one_group_has_needs_no_group():
    assert place("rate", GROUPS) == ("optim", "rate")


def test_rollout_goes_before_evaluation():
    assert place("size", GROUPS) == ("rollout", "size")


def test_an_option_of_evaluation_alone_is_written_out():
    with pytest.raises(UnknownOptionError, match=r"no option 'every'\. Did you mean 'eval\.every'"):
        place("every", GROUPS)


def test_a_name_that_several_groups_have_lists_the_full_names():
    with pytest.raises(ConfigurationError, match=r"write run\.shared or optim\.shared"):
        place("shared", GROUPS)


def test_no_short_name_of_a_run_is_ambiguous():
    groups = known_names()
    for name in {name for group, names in groups.items() if group != "eval" for name in names}:
        assert place(name, groups)[1] == name


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({"steps": 5}, {"run": {"steps": 5}}),
        ({"run": {"steps": 5}, "seed": 1}, {"run": {"steps": 5, "seed": 1}}),
        ({"model": "m"}, {"model": {"path": "m"}}),
        ({"model": {"path": "m", "dtype": "auto"}}, {"model": {"path": "m", "dtype": "auto"}}),
        ({"model": {"path": "m"}, "lora_rank": 4}, {"model": {"path": "m", "lora_rank": 4}}),
        ({"env": "x/Y-v0"}, {"rollout": {"env": "x/Y-v0"}}),
        ({"env": {"max_turns": 3}}, {"rollout": {"env_options": {"max_turns": 3}}}),
        ({"engine": {"sleep": True}}, {"rollout": {"engine_options": {"sleep": True}}}),
        (
            {"env": {"a": 1}, "rollout": {"env_options": {"b": 2}}},
            {"rollout": {"env_options": {"a": 1, "b": 2}}},
        ),
        ({"eval": {"env": {"a": 1}, "every": 2}}, {"eval": {"env_options": {"a": 1}, "every": 2}}),
        ({"selector": "roc"}, {"parts": {"selector": "roc"}}),
        ({"parts": {"rollout": "plain"}}, {"parts": {"rollout": "plain"}}),
        ({"loss": {"kl": {"coef": 1}}}, {"parts": {"loss": {"kl": {"coef": 1}}}}),
        ({"temperature": 0.7}, {"rollout": {"temperature": 0.7}}),
    ],
)
def test_options_are_put_into_their_groups(options, found):
    assert in_groups(options) == found


def test_a_loaded_model_is_a_path():
    model = object()
    assert in_groups({"model": model}) == {"model": {"path": model}}


def test_the_same_option_by_two_names_is_refused():
    with pytest.raises(ConfigurationError, match=r"model\.path is given twice, as 'model\.path' and as 'path'"):
        in_groups({"model": {"path": "m"}, "path": "n"})
