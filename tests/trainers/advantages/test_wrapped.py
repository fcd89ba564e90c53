"""An estimator over another one: it is named with options, and what it needs is what the other needs."""

import copy
import json
import pickle

import numpy as np
import pytest
from credit import advantages, plain

from rstar2_env.core.errors import ConfigurationError, UnknownNameError
from rstar2_env.core.options.parts import make_part
from rstar2_env.trainers import TRAINERS
from rstar2_env.trainers.advantages.base import ADVANTAGES
from rstar2_env.trainers.advantages.step_judges import Statuses

WRAPPERS = ["task_norm", "call_penalty", "apo_stcr", "arpo"]
GROUP = plain(1, 0, 0, 1)


@pytest.mark.parametrize("name", WRAPPERS)
def test_it_needs_what_the_other_one_needs(name):
    assert make_part(ADVANTAGES, name).least == 2
    assert make_part(ADVANTAGES, f"{name}:of=reinforce").least == 1
    assert make_part(ADVANTAGES, f"{name}:of=gpg").of_batch
    assert not hasattr(make_part(ADVANTAGES, name), "state_dict")


def test_what_the_other_one_reads_of_the_policy_is_measured_for_it(tmp_path):
    (tmp_path / "reader.py").write_text(
        "class Reader:\n    needs = frozenset({'answer'})\n    lead = 'So: '\n"
        "    def __call__(self, groups, ranks):\n        return [[0.0] * len(group) for group in groups]\n"
    )
    part = make_part(ADVANTAGES, f"task_norm:of={tmp_path}/reader.py:Reader")
    assert (part.needs, part.lead) == ({"answer"}, "So: ")
    copied = copy.deepcopy(part)
    assert (copied.needs, copied.lead) == ({"answer"}, "So: ")


def test_the_state_of_the_other_one_is_in_checkpoints():
    part = make_part(ADVANTAGES, "call_penalty:of=(rae:decay=0.5)")
    advantages(part, GROUP)
    state = part.state_dict()
    fresh = make_part(ADVANTAGES, "call_penalty:of=(rae:decay=0.5)")
    fresh.load_state_dict(state)
    assert advantages(fresh, GROUP) == advantages(part, GROUP)


def test_it_may_be_over_another_one_of_its_kind():
    twice = advantages("arpo:of=(apo_stcr:of=(group_mean))", GROUP)
    assert twice == advantages("group_mean", GROUP)


@pytest.mark.parametrize(
    "written",
    ["arpo:of=reinforce", "arpo:of=(reinforce)", "arpo:of=reinforce:baseline=batch", ["arpo", {"of": "reinforce"}]],
)
def test_it_is_named_as_a_recipe_names_it(written):
    part = make_part(ADVANTAGES, written)
    assert advantages(part, GROUP) == advantages("reinforce", GROUP)
    assert advantages(pickle.loads(pickle.dumps(part)), GROUP) == advantages("reinforce", GROUP)


def test_it_may_be_the_users_own(tmp_path):
    (tmp_path / "mine.py").write_text(
        "def signs(groups, ranks):\n    return [[1.0 if one.correct else -1.0 for one in group] for group in groups]\n"
    )
    assert advantages(f"call_penalty:of={tmp_path}/mine.py:signs", GROUP) == [[1.0, -1.0, -1.0, 1.0]]
    with pytest.raises(ConfigurationError, match="is not a class, so it does not accept options"):
        make_part(ADVANTAGES, f"call_penalty:of=({tmp_path}/mine.py:signs:eps=1)")


@pytest.mark.parametrize(
    ("of", "error", "words"),
    [
        ("nope", UnknownNameError, "no advantage named 'nope'"),
        ("(group_norm:epsilon=1)", ConfigurationError, "eps"),
        ("3", ConfigurationError, "name:option=value"),
    ],
)
def test_a_wrong_name_or_option_is_told(of, error, words):
    with pytest.raises(error, match=words):
        make_part(ADVANTAGES, f"task_norm:of={of}")


def test_it_takes_groups_of_one_and_of_none():
    for name in WRAPPERS:
        values = advantages(name, plain(1.0), plain())
        assert [np.shape(own) for own in values] == [(1,), (0,)]


class Two:
    """Gives every episode 2; stands in this module for a user's own code."""

    def __call__(self, groups, ranks):
        return [[2.0] * len(group) for group in groups]


@pytest.mark.parametrize(
    ("advantage", "recorded"),
    [
        ("task_norm:of=(gigpo:omega=0.5,gamma=1)", {"of": "(gigpo:omega=0.5,gamma=1)"}),
        (["arpo", {"of": {"name": "gigpo", "omega": 2}}], {"of": {"name": "gigpo", "omega": 2}}),
        (["arpo", {"of": Two}], {"of": f"{__name__}:Two"}),
        (["arpo", {"of": Two()}], {"of": f"{__name__}:Two"}),
        (["capo", {"judge": Statuses}], {"judge": "rstar2_env.trainers.advantages.step_judges:Statuses"}),
    ],
)
def test_a_run_with_one_can_be_recorded_and_configured_again(advantage, recorded):
    config = TRAINERS.get("grpo_clip_higher").configure({"model": "m", "advantage": advantage})
    written = json.loads(json.dumps(config.record()))["parts"]["advantage"]
    assert written.items() >= recorded.items()
    again = TRAINERS.get("grpo_clip_higher").configure({"model": "m", "parts": {"advantage": written}})
    assert again.record()["parts"]["advantage"] == written
