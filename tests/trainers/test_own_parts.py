"""One's own part anywhere a name is allowed: a class, a function, an object, a file, a module; and it trains."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest

from rstar2_env import trainers
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.parts import is_factory
from rstar2_env.trainers import TRAINERS, Recipe
from rstar2_env.trainers.advantages.group import GroupMean
from rstar2_env.trainers.options.parts import make_parts


class Keeps:
    def __init__(self, count: int = 1) -> None:
        self.count = count

    def __call__(self, group, keep, rng):
        return list(range(self.count))


def half(groups, ranks):
    return [[0.5 for _ in group] for group in groups]


def made(**options):
    return make_parts(Recipe("r").configure({"model": "m", **options}), shares_weights=True)


@pytest.mark.parametrize(
    ("given", "count"),
    [
        (Keeps, 1),
        (Keeps(3), 3),
        ([Keeps, {"count": 2}], 2),
        (lambda group, keep, rng: [0] * 4, 4),
        ((lambda: Keeps(5)), 5),
    ],
)
def test_a_selector_may_be_a_class_an_object_a_function_or_what_makes_it(given, count):
    assert len(made(selector=given).selector([None] * 8, 8, None)) == count


def test_a_function_is_an_advantage():
    assert made(advantage=half).advantage([[1, 2]], None) == [[0.5, 0.5]]


@pytest.mark.parametrize(
    ("given", "makes"),
    [(Keeps, True), (Keeps(), False), (half, False), (lambda: 0, True), (lambda x=1: 0, True), (len, False)],
)
def test_what_can_be_called_without_an_argument_makes_the_part(given, makes):
    assert is_factory(given) is makes


def test_a_part_that_is_no_class_takes_no_options():
    with pytest.raises(ConfigurationError, match=r"'.*half' is not a class, so it does not accept options such as eps"):
        made(advantage=[half, {"eps": 1}])


def test_options_of_ones_own_class_are_checked_as_all_are():
    with pytest.raises(ConfigurationError, match=r"selector\.count must be an integer, not 'x'"):
        made(selector=[Keeps, {"count": "x"}])
    with pytest.raises(ConfigurationError, match="Did you mean 'count'"):
        made(selector=[Keeps, {"cont": 1}])


def wrong_slot(group, keep, rng):
    return []


def bare_term(tokens):
    return tokens.logp


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"advantage": wrong_slot}, r"wrong_slot' must be callable with \(groups, ranks\): missing .*'rng'"),
        ({"selector": GroupMean}, r"GroupMean' must be callable with \(group, keep, rng\): too many"),
        ({"loss": [bare_term]}, "bare_term' has no attribute 'needs' and no 'policy_gradient'"),
        ({"correction": bare_term}, "bare_term' has no attribute 'needs'; docs"),
        ({"hook": [3]}, "The hook 'int' does not have any of the methods"),
        ({"loss": []}, "parts.loss must name at least one part"),
        ({"reward": []}, "parts.reward must name at least one part"),
    ],
)
def test_a_part_of_another_slot_or_no_part_is_refused_before_anything_is_loaded(options, said):
    with pytest.raises(ConfigurationError, match=said):
        made(**options)


def test_a_class_is_no_recipe(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "own_no_recipe.py").write_text("class Mine: ...\n")
    with pytest.raises(ConfigurationError, match="Mine is a class, which is not valid as trainer: expected a Recipe"):
        TRAINERS.get(f"{tmp_path}/own_no_recipe.py:Mine")


def test_a_part_in_a_module_is_recorded_by_a_name_that_finds_it_again():
    record = Recipe("r").configure({"model": "m", "advantage": GroupMean, "selector": "all"}).record()
    assert record["parts"]["advantage"] == {"name": "rstar2_env.trainers.advantages.group:GroupMean"}
    again = Recipe("run").configure(json.loads(json.dumps(record)))
    assert isinstance(make_parts(again, shares_weights=True).advantage, GroupMean)


FILE = """
from dataclasses import dataclass, field
from rstar2_env.trainers import Start

@dataclass
class Fixed:
    ids: list | None
    seed: int
    first: int = 7
    def draw(self, n):
        return [Start(self.first + at) for at in range(n)]
    def observe(self, outcomes):
        pass
    def state_dict(self):
        return {}
    def load_state_dict(self, state):
        pass

@dataclass
class Bonus:
    each: float = 0.5
    def __call__(self, episode, ctx):
        return self.each * episode.turns

@dataclass
class Squared:
    coef: float = 1.0
    needs = frozenset()
    policy_gradient = False
    def __call__(self, tokens):
        return self.coef * tokens.logp ** 2
"""


def test_every_slot_takes_a_part_from_a_file(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "own_parts_2.py").write_text(FILE)
    file = f"{tmp_path}/own_parts_2.py"
    config = Recipe("r").configure(
        {
            "model": "m",
            "sampler": f"{file}:Fixed:first=3",
            "reward": ["return", f"{file}:Bonus:each=2,weight=0.5"],
            "loss": ["ppo_clip", f"{file}:Squared:coef=0.1"],
        }
    )
    parts = make_parts(config, shares_weights=True)
    assert [start.seed for start in parts.sampler_factory(None, 0).draw(2)] == [3, 4]
    assert [(one.name, one.weight) for one in parts.rewards] == [("return", 1.0), ("Bonus", 0.5)]
    assert (parts.term_names[1], parts.terms[1].coef) == (f"{file}:Squared", 0.1)
    assert Recipe("run").configure(json.loads(json.dumps(config.record()))).record() == config.record()


@pytest.mark.train
def test_functions_and_callbacks_of_ones_own_train(letter_options):
    from transformers import TrainerCallback

    seen = []

    class Counts(TrainerCallback):
        def on_step_end(self, args, state, control, **kwargs):
            seen.append(state.global_step)

    def first(group, keep, rng):
        return [at for at, episode in enumerate(group) if episode.available][:keep]

    def centred(groups, ranks):
        return [[episode.reward - np.mean([one.reward for one in group]) for episode in group] for group in groups]

    trainer = trainers.make(
        "grpo_clip_higher", **letter_options, selector=first, advantage=centred, callbacks=[Counts()]
    )
    try:
        trainer.train()
    finally:
        trainer.close()
    assert seen == [1, 2]
