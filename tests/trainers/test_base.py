"""Trainers are chosen by name, and what cannot work is said at once."""

import json
import subprocess
import sys

import pytest

from rstar2_env import trainers
from rstar2_env.core.errors import ConfigurationError, UnknownNameError
from rstar2_env.trainers.base import make_advantage, make_selector


def test_grpo_and_grpo_roc_are_registered():
    assert {"grpo", "grpo_roc"} <= set(trainers.TRAINERS.names())


def test_an_unknown_trainer_suggests_the_nearest():
    with pytest.raises(UnknownNameError, match="grpo_roc"):
        trainers.make("grpo_rok", model="m")


def test_grpo_roc_plays_twice_what_it_keeps_and_clips_as_the_paper_does():
    config = trainers.TRAINERS.get("grpo_roc").configure({"model": "m"})
    assert (config.selector, config.oversample) == ("roc", 2)
    assert (config.clip_low, config.clip_high, config.kl, config.loss) == (0.2, 0.28, 0.0, "dapo")


def test_grpo_differs_from_grpo_roc_in_the_selection_alone():
    roc, plain = (trainers.TRAINERS.get(name).configure({"model": "m"}) for name in ("grpo_roc", "grpo"))
    selection = {"selector", "selector_options", "oversample"}
    differing = {name for name, value in roc.record().items() if plain.record()[name] != value}
    assert differing == selection


def test_options_of_the_caller_go_over_those_of_the_recipe():
    config = trainers.TRAINERS.get("grpo_roc").configure(
        {"model": "m", "oversample": 3, "selector_options": {"mode": "rank"}}
    )
    assert config.oversample == 3
    assert config.selector_options == {"mode": "rank"}


def test_another_selector_does_not_inherit_the_recipes_options():
    config = trainers.TRAINERS.get("grpo").configure({"model": "m", "selector": "roc"})
    assert config.selector_options == {}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "needs a model"),
        ({"model": "m", "learning_rat": 1}, "learning_rate"),
        ({"model": "m", "group_size": 1}, "group_size must be an integer of at least 2"),
        ({"model": "m", "learning_rate": 0}, "learning_rate must be a positive number"),
        ({"model": "m", "importance_sampling": "sequence"}, "importance_sampling must be"),
        ({"model": "m", "selector_options": {"mood": "rank"}}, "mode"),
        ({"model": "m", "selector": "rok"}, "roc"),
        ({"model": "m", "advantage": "group_nrm"}, "group_norm"),
    ],
)
def test_a_wrong_option_is_named_with_what_to_do(options, words):
    with pytest.raises((ConfigurationError, UnknownNameError), match=words):
        trainers.TRAINERS.get("grpo_roc").configure(options)


def test_a_configuration_file_is_read_and_a_broken_one_is_named_with_its_line(tmp_path):
    path = tmp_path / "run.toml"
    path.write_text("steps = 7\n[env_options]\nmax_turns = 3\n")
    assert trainers.read_config(path) == {"steps": 7, "env_options": {"max_turns": 3}}
    path.write_text("steps = 7\nlr = = 3\n")
    with pytest.raises(ConfigurationError, match=r"run\.toml.*line 2"):
        trainers.read_config(path)
    with pytest.raises(ConfigurationError, match="cannot be read"):
        trainers.read_config(tmp_path / "none.toml")


def test_listing_trainers_imports_neither_torch_nor_trl():
    code = (
        "import sys, rstar2_env.trainers as t; t.TRAINERS.names(); "
        "sys.exit(any(m in sys.modules for m in ('torch', 'trl', 'transformers')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


class TestPartsByName:
    def test_a_selector_may_be_written_with_its_options(self):
        config = trainers.TRAINERS.get("grpo").configure({"model": "m", "selector": "roc:mode=rank,minimum=3"})
        assert (config.selector, config.selector_options) == ("roc", {"mode": "rank", "minimum": 3})

    def test_a_file_of_ones_own_is_a_selector_and_an_advantage(self, tmp_path, monkeypatch):
        monkeypatch.setattr(sys, "path", list(sys.path))
        (tmp_path / "own_parts_1.py").write_text(
            "class First:\n"
            "    def __init__(self, count: int = 1):\n"
            "        self.count = count\n"
            "    def __call__(self, group, keep, rng):\n"
            "        return list(range(self.count))\n"
            "def raw(groups):\n"
            "    return list(groups)\n"
        )
        file = f"{tmp_path}/own_parts_1.py"
        config = trainers.TRAINERS.get("grpo").configure(
            {"model": "m", "selector": f"{file}:First:count=2", "advantage": file}
        )
        assert config.selector_options == {"count": 2}
        assert make_selector(config)([None] * 4, 4, None) == [0, 1]
        assert make_advantage(config)([1, 2]) == [1, 2]
        with pytest.raises(ConfigurationError, match="Did you mean 'count'"):
            trainers.TRAINERS.get("grpo").configure({"model": "m", "selector": f"{file}:First:cuont=2"})

    def test_wrappers_are_checked_and_kept_as_they_can_be_read_again(self):
        options = {
            "wrappers": ["fault_injection:rate=0.1,kinds=timeout+lost", {"name": "tool_budget", "calls": 3}],
            "eval_wrappers": "tool_budget:calls=8",
        }
        record = trainers.TRAINERS.get("grpo").configure({"model": "m", **options}).record()
        assert record["wrappers"] == ["fault_injection:rate=0.1,kinds=timeout+lost", "tool_budget:calls=3"]
        assert record["eval_wrappers"] == ["tool_budget:calls=8"]
        again = trainers.TRAINERS.get("grpo").configure(json.loads(json.dumps(record)))
        assert again.record() == record
        assert trainers.TRAINERS.get("grpo").configure({"model": "m"}).record()["eval_wrappers"] == []

    @pytest.mark.parametrize("name", ["wrappers", "eval_wrappers"])
    @pytest.mark.parametrize(
        ("written", "said"),
        [("tool_bugdet:calls=3", "Did you mean 'tool_budget'"), ("tool_budget:cals=3", "Did you mean 'calls'")],
    )
    def test_a_wrong_wrapper_is_told_before_a_model_is_loaded(self, name, written, said):
        with pytest.raises((ConfigurationError, UnknownNameError), match=said):
            trainers.TRAINERS.get("grpo").configure({"model": "no such model", name: [written]})
