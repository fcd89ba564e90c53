"""Trainers are chosen by name, and what cannot work is said at once."""

import json
import subprocess
import sys

import pytest

from rstar2_env import trainers
from rstar2_env.core.errors import ConfigurationError, UnknownNameError
from rstar2_env.trainers.base import Recipe
from rstar2_env.trainers.options.parts import make_parts


def test_grpo_and_grpo_roc_are_registered():
    assert {"grpo_clip_higher", "grpo_roc"} <= set(trainers.TRAINERS.names())


def test_an_unknown_trainer_suggests_the_nearest():
    with pytest.raises(UnknownNameError, match="grpo_roc"):
        trainers.make("grpo_rok", model="m")


def test_grpo_roc_plays_twice_what_it_keeps_and_clips_as_the_paper_does():
    config = trainers.TRAINERS.get("grpo_roc").configure({"model": "m"})
    assert (config.parts.selector.name, config.rollout.oversample) == ("roc", 2)
    (clip,) = config.parts.loss
    assert (clip.name, clip.options["low"], clip.options["high"]) == ("ppo_clip", 0.2, 0.28)
    assert config.parts.aggregation.name == "token_mean"


def test_grpo_differs_from_grpo_roc_in_the_selection_alone():
    roc, plain = (
        trainers.TRAINERS.get(name).configure({"model": "m"}).record() for name in ("grpo_roc", "grpo_clip_higher")
    )
    differing = {
        f"{group}.{name}" for group, options in roc.items() for name in options if plain[group][name] != options[name]
    }
    assert differing == {"parts.selector", "rollout.oversample"}


RECIPE = Recipe(
    "for a test",
    selector="roc:mode=rank,minimum=3",
    loss=["ppo_clip:low=0.1,level=sequence", "kl:coef=0.01"],
    defaults={"rollout": {"env_options": {"max_turns": 7}}, "optim": {"trl_options": {"adam_beta2": 0.9}}},
)


def of_recipe(*layers):
    return RECIPE.configure({"model": "m"}, *layers)


def test_options_of_the_caller_are_merged_deeply_over_those_of_the_recipe():
    config = of_recipe({"optim": {"trl_options": {"adam_beta1": 0.8}}, "env": {"traceback": False}})
    assert config.optim.trl_options == {"adam_beta1": 0.8, "adam_beta2": 0.9}
    assert config.rollout.env_options == {"max_turns": 7, "traceback": False}


def test_options_of_the_same_part_are_merged_over_the_recipes():
    for selector in ({"mode": "sample"}, "roc:mode=sample", ["roc", {"mode": "sample"}]):
        found = of_recipe({"selector": selector}).parts.selector
        assert (found.name, found.options["mode"], found.options["minimum"]) == ("roc", "sample", 3)
    terms = of_recipe({"loss": ["kl", "ppo_clip:high=0.5"]}).parts.loss
    assert [term.name for term in terms] == ["kl", "ppo_clip"]
    assert (terms[0].options["coef"], terms[1].options["level"], terms[1].options["high"]) == (0.01, "sequence", 0.5)


def test_another_part_does_not_inherit_the_recipes_options():
    assert of_recipe({"selector": "all"}).parts.selector.options == {"reject_equal": False, "equal": "reward"}
    assert [term.name for term in of_recipe({"loss": "reinforce"}).parts.loss] == ["reinforce"]


def test_a_term_is_changed_or_added_by_its_name():
    terms = of_recipe({"loss": {"kl": {"coef": 0.5}, "entropy": {"coef": 0.1}}}).parts.loss
    assert [term.name for term in terms] == ["ppo_clip", "kl", "entropy"]
    assert (terms[0].options["level"], terms[1].options["coef"], terms[2].options["coef"]) == ("sequence", 0.5, 0.1)


def test_text_joins_terms_by_a_plus_sign_where_a_name_follows_it():
    terms = of_recipe({"loss": "ppo_clip:high=1e+0+kl:estimator=k3++entropy:coef=0.5"}).parts.loss
    assert [str(term.name) for term in terms] == ["ppo_clip", "kl", "entropy"]
    assert (terms[0].options["high"], terms[1].options["estimator"]) == (1.0, "k3+")


def test_another_engine_does_not_inherit_the_options_of_the_one_before_it():
    first = {"engine": "vllm", "engine_options": {"sleep": True}}
    assert of_recipe(first, {"engine_options": {"max_model_len": 9}}).rollout.engine_options == {
        "sleep": True,
        "max_model_len": 9,
    }
    assert of_recipe(first, {"engine": "transformers"}).rollout.engine_options == {}


def test_an_option_that_is_given_in_two_ways_at_once_is_refused():
    with pytest.raises(ConfigurationError, match=r"run\.steps is given twice, as 'steps' and as 'run\.steps'"):
        of_recipe({"steps": 3, "run": {"steps": 4}})


def test_a_run_is_configured_again_from_its_record():
    config = of_recipe({"env": {"max_turns": 3}, "reward": ["return", "tool_use:each=0.1,gate=correct"]})
    record = json.loads(json.dumps(config.record()))
    assert Recipe("run").configure(record).record() == record


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "No model is named"),
        ({"model": "m", "learning_rat": 1}, "learning_rate"),
        ({"model": "m", "group_size": 0}, "rollout.group_size must be an integer of at least 1"),
        ({"model": "m", "learning_rate": 0}, "optim.learning_rate must be a positive number"),
        ({"model": "m", "selector": {"mood": "rank"}}, "mode"),
        ({"model": "m", "selector": "rok"}, "roc"),
        ({"model": "m", "advantage": "group_nrm"}, "group_norm"),
    ],
)
def test_a_wrong_option_is_named_with_what_to_do(options, words):
    with pytest.raises((ConfigurationError, UnknownNameError), match=words):
        trainers.TRAINERS.get("grpo_roc").configure(options)


def test_a_configuration_file_is_read_and_a_broken_one_is_named_with_its_line(tmp_path):
    path = tmp_path / "run.toml"
    path.write_text("steps = 7\n[env]\nmax_turns = 3\n")
    assert trainers.read_config(path) == {"steps": 7, "env": {"max_turns": 3}}
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
        config = trainers.TRAINERS.get("grpo_clip_higher").configure(
            {"model": "m", "selector": "roc:mode=rank,minimum=3"}
        )
        found = config.parts.selector
        assert (found.name, found.options["mode"], found.options["minimum"]) == ("roc", "rank", 3)

    def test_a_file_of_ones_own_is_a_selector_and_an_advantage(self, tmp_path, monkeypatch):
        monkeypatch.setattr(sys, "path", list(sys.path))
        (tmp_path / "own_parts_1.py").write_text(
            "class First:\n"
            "    def __init__(self, count: int = 1):\n"
            "        self.count = count\n"
            "    def __call__(self, group, keep, rng):\n"
            "        return list(range(self.count))\n"
            "class Raw:\n"
            "    def __call__(self, groups, ranks):\n"
            "        return [[episode.reward for episode in group] for group in groups]\n"
        )
        file = f"{tmp_path}/own_parts_1.py"
        config = trainers.TRAINERS.get("grpo_clip_higher").configure(
            {"model": "m", "selector": f"{file}:First:count=2", "advantage": file}
        )
        parts = make_parts(config)
        assert config.parts.selector.options == {"count": 2}
        assert parts.selector([None] * 4, 4, None) == [0, 1]
        assert parts.advantage([[]], None) == [[]]
        with pytest.raises(ConfigurationError, match="Did you mean 'count'"):
            trainers.TRAINERS.get("grpo_clip_higher").configure({"model": "m", "selector": f"{file}:First:cuont=2"})

    def test_wrappers_are_checked_and_kept_as_they_can_be_read_again(self):
        options = {
            "wrappers": ["fault_injection:rate=0.1,kinds=timeout+lost", {"name": "tool_budget", "calls": 3}],
            "eval": {"wrappers": "tool_budget:calls=8"},
        }
        record = trainers.TRAINERS.get("grpo_clip_higher").configure({"model": "m", **options}).record()
        assert record["rollout"]["wrappers"] == ["fault_injection:rate=0.1,kinds=timeout+lost", "tool_budget:calls=3"]
        assert record["eval"]["wrappers"] == ["tool_budget:calls=8"]
        again = trainers.TRAINERS.get("grpo_clip_higher").configure(json.loads(json.dumps(record)))
        assert again.record() == record
        assert trainers.TRAINERS.get("grpo_clip_higher").configure({"model": "m"}).record()["eval"]["wrappers"] == []

    @pytest.mark.parametrize("group", ["rollout", "eval"])
    @pytest.mark.parametrize(
        ("written", "said"),
        [("tool_bugdet:calls=3", "Did you mean 'tool_budget'"), ("tool_budget:cals=3", "Did you mean 'calls'")],
    )
    def test_a_wrong_wrapper_is_told_before_a_model_is_loaded(self, group, written, said):
        with pytest.raises((ConfigurationError, UnknownNameError), match=said):
            trainers.TRAINERS.get("grpo_clip_higher").configure(
                {"model": "no such model", group: {"wrappers": [written]}}
            )
