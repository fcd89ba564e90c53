"""Errors say what was expected, what came and what to do, and survive the way home from a worker."""

import copy
import pickle

import gymnasium as gym
import pytest

from rstar2_env.core import errors
from rstar2_env.core.errors import EpisodeOverError, MissingExtraError, Rstar2Error, UnknownNameError
from rstar2_env.problems.source import UnknownProblemError

EXAMPLES = [
    UnknownNameError("dialect", "rstar3", ["rstar2", "fenced"]),
    errors.UnknownEnvError("environment", "rstar2/Maths-v0", ["rstar2/MathTool-v0"]),
    UnknownProblemError("There is no problem 'x'."),
    MissingExtraError("train", "Training"),
    errors.ConfigurationError("max_turns must be a positive integer, not 0."),
    errors.DiskFullError("runs/x/metrics.jsonl"),
    errors.UnknownOptionError("The agent 'oracle' has no option 'corupt'. Did you mean 'corrupt'?"),
    errors.BranchError("There is no turn of the policy at token 7."),
    errors.DuplicateNameError("twice"),
    errors.EpisodeOverError("reset"),
    errors.ProblemFormatError("line 3"),
    errors.RecordFormatError("lacks 'seed'"),
    errors.SandboxUnavailableError("no"),
    errors.ServiceError("no answer", cause="lost", after_s=1.5),
    errors.ToolServerError("did not start", cause="lost"),
    errors.EndpointBudgetError("2,000 tokens are spent"),
    errors.UnusableReplyError("cut", "The reply was cut."),
]


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("travel", [lambda e: pickle.loads(pickle.dumps(e)), copy.copy], ids=["pickle", "copy"])
def test_an_error_comes_home_as_it_left(error, travel):
    home = travel(error)
    assert (type(home), str(home)) == (type(error), str(error))


def test_every_class_has_an_example_here():
    classes = {value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, Rstar2Error)}
    assert classes - {Rstar2Error} <= {type(error) for error in EXAMPLES}


def test_an_unknown_name_suggests_the_nearest_and_lists_all():
    message = str(UnknownNameError("dialect", "rstar3", ["rstar2", "fenced"]))
    assert message == "There is no dialect named 'rstar3'. Did you mean 'rstar2'? Known: fenced, rstar2."


def test_an_unknown_name_among_many_names_the_command_that_lists_them():
    many = [f"p{number}" for number in range(errors.MOST_LISTED)]
    assert "Known: p0, p1" in str(UnknownNameError("part", "x", many, listed_by="rstar2 list parts"))
    message = str(UnknownNameError("part", "x", [*many, "last"], listed_by="rstar2 list parts"))
    assert message == f"There is no part named 'x'. `rstar2 list parts` lists all {len(many) + 1}."
    assert "Known: last, p0" in str(UnknownNameError("part", "x", [*many, "last"]))  # no command lists them


def test_an_unknown_name_among_none_says_so():
    assert str(UnknownNameError("agent", "x", [])) == "There is no agent named 'x'. Known: none."


def test_a_name_that_is_no_string_is_unknown_too():
    assert "None" in str(UnknownNameError("agent", None, ["oracle"]))


def test_an_unknown_name_is_a_key_error_that_reads_like_a_sentence():
    error = UnknownNameError("agent", "x", ["y"])
    assert isinstance(error, KeyError)
    assert not str(error).startswith(("'", '"'))


def test_a_missing_extra_says_how_to_install_it():
    assert str(MissingExtraError("train", "GRPO")) == "GRPO needs the extra 'train': pip install 'rstar2-env[train]'."


def test_one_except_catches_a_step_before_and_after_an_episode():
    assert issubclass(EpisodeOverError, gym.error.ResetNeeded)
