"""Claims about several evaluations in one run: layers of options, presets, folders, what is shared."""

from __future__ import annotations

import json

import gymnasium as gym
import pytest

from rstar2_env.core.errors import ConfigurationError, Rstar2Error, UnknownNameError
from rstar2_env.core.run_folder import read_run
from rstar2_env.core.stop_request import Stop
from rstar2_env.evaluation.presets import PRESETS
from rstar2_env.evaluation.suite import make_suite, read_suite, run_suite
from rstar2_env.problems.catalog import NAMED_SETS

SUITE = {
    "env": "rstar2/MathTool-v0",
    "agent": "scripted",
    "agent_options": {"turns": ["<answer>\\boxed{7}</answer>"]},
    "n": 2,
    "env_options": {"max_turns": 5},
    "sets": {
        "sums": {"problems": "arithmetic", "episodes": 3},
        "oracle": {
            "agent": "oracle",
            "env": "rstar2/Game24-v0",
            "episodes": 4,
            "n": 1,
            "env_options": {"max_turns": 2},
        },
    },
}


def test_options_of_a_set_go_over_those_of_all_and_the_last_layer_over_both():
    sets = make_suite(SUITE, last={"n": 3}).sets
    assert list(sets) == ["sums", "oracle"]
    assert (sets["sums"]["n"], sets["sums"]["agent"], sets["sums"]["env_options"]) == (3, "scripted", {"max_turns": 5})
    # Another agent drops the options of the one before; mappings are merged.
    assert "agent_options" not in sets["oracle"]
    assert sets["oracle"]["env_options"] == {"max_turns": 2}


def test_who_is_named_last_plays_and_an_agent_needs_nothing_of_a_model():
    model = {"model": "tiny", "engine": "vllm", "engine_options": {"a": 1}, "model_options": {"temperature": 0.5}}
    (agent,) = make_suite(model, last={"agent": "oracle", "env": "x"}).sets.values()
    assert agent == {"agent": "oracle", "env": "x"}
    (other,) = make_suite(model, last={"engine": "transformers"}).sets.values()
    assert "engine_options" not in other
    assert make_suite(SUITE, last={"model": "tiny"}).sets["oracle"]["model"] == "tiny"
    assert "agent" not in make_suite(SUITE, last={"model": "tiny"}).sets["oracle"]


def test_a_preset_has_the_settings_of_its_paper_and_what_is_given_goes_over_it():
    suite = make_suite(last={"preset": "rstar2", "model": "tiny"})
    assert list(suite.sets) == ["math-500", "aime24", "aime25", "hmmt25"]
    for options in suite.sets.values():
        assert options["model_options"] == {"temperature": 0.6, "max_episode_tokens": 30720}
        assert (options["n"], options["env_options"]["max_turns"]) == (16, 30)
        assert options["problems"] in NAMED_SETS
    (alone,) = make_suite(last={"preset": "rstar2", "model": "tiny", "problems": "gsm8k", "n": 4}).sets.values()
    assert (alone["problems"], alone["n"], alone["model_options"]["temperature"]) == ("gsm8k", 4, 0.6)
    with pytest.raises(UnknownNameError, match="Did you mean 'rstar2'"):
        make_suite(last={"preset": "rstar"})
    for written in PRESETS.values():
        make_suite(written)


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ({"modle": "m"}, "no option 'modle' for the suite.*Did you mean 'model'"),
        ({"sets": {"a": {"problem": "gsm8k"}}}, "no option 'problem' for the set 'a'"),
        ({"sets": {"a/b": {}}}, "also the name of a folder"),
        ({"sets": ["a"]}, "`sets` of a suite must map"),
        ({"sets": {"a": "gsm8k"}}, "must be a mapping"),
    ],
)
def test_mistakes_in_a_suite_are_named(written, said):
    with pytest.raises(ConfigurationError, match=said):
        make_suite(written)


def test_a_set_without_an_environment_or_a_player_says_so():
    with pytest.raises(ConfigurationError, match="The set 'a' does not name an environment"):
        run_suite(make_suite({"agent": "oracle", "sets": {"a": {"episodes": 1}}}))
    with pytest.raises(ConfigurationError, match="Neither an agent nor a model"):
        run_suite(make_suite({"env": "rstar2/Game24-v0", "episodes": 1}))


@pytest.mark.parametrize(
    ("last", "said"),
    [
        ({"env": "rstar2/Game42-v0"}, "Game24"),
        ({"agent": "oracel"}, "Did you mean 'oracle'"),
        ({"env_options": {"max_turn": 1}}, "Did you mean 'max_turns'"),
        ({"problems": "nowhere.jsonl"}, "cannot be read"),
        ({"n": 2, "k": [4]}, "k = 4"),
        ({"n": 0}, "at least 1"),
        ({"judge": "status"}, "Did you mean 'statuses'"),
        ({"agent": None, "model": "nowhere/at/all"}, "There is no folder"),
    ],
)
def test_a_mistake_in_the_last_set_is_told_before_the_first_is_played(tmp_path, last, said):
    suite = make_suite({**SUITE, "sets": {**SUITE["sets"], "last": last}})
    with pytest.raises((Rstar2Error, gym.error.Error), match=said):
        run_suite(suite, out=tmp_path / "all")
    assert not (tmp_path / "all/sums").exists()


@pytest.mark.parametrize("suffix", ["toml", "json", "yaml"])
def test_a_file_holds_a_suite_in_each_format(tmp_path, suffix):
    file = tmp_path / f"suite.{suffix}"
    text = {
        "toml": 'n = 2\n[sets.a]\nenv = "rstar2/Game24-v0"\n',
        "yaml": "n: 2\nsets:\n  a: {env: rstar2/Game24-v0}\n",
        "json": '{"n": 2, "sets": {"a": {"env": "rstar2/Game24-v0"}}}',
    }
    file.write_text(text[suffix])
    assert make_suite(read_suite(file)).sets == {"a": {"n": 2, "env": "rstar2/Game24-v0"}}


def test_every_set_gets_the_folder_of_a_run_and_all_a_summary_and_a_mean(tmp_path):
    result = run_suite(make_suite(SUITE), out=tmp_path / "all")
    assert {name: one.played for name, one in result.results.items()} == {"sums": 6, "oracle": 4}
    summary = json.loads((tmp_path / "all/summary.json").read_text())
    assert summary["sets"]["oracle"]["pass@1"] == 1.0
    assert summary["mean"]["pass@1"] == pytest.approx((summary["sets"]["sums"]["pass@1"] + 1.0) / 2)
    assert "pass@2" not in summary["mean"]
    assert len(read_run(tmp_path / "all/sums").held_out()) == 6
    again = run_suite(make_suite(SUITE), out=tmp_path / "all", resume=True)
    assert [one.played for one in again.results.values()] == [0, 0]
    with pytest.raises(ConfigurationError, match="already holds a suite of evaluations"):
        run_suite(make_suite(SUITE), out=tmp_path / "all")


def test_a_suite_that_is_stopped_begins_no_further_set_and_goes_on_later(tmp_path):
    stop = Stop()

    result = run_suite(
        make_suite(SUITE, last={"workers": 1}),
        out=tmp_path / "all",
        stop=stop,
        progress=lambda episode, done, total: stop.request(),
    )
    assert result.interrupted
    assert list(result.results) == ["sums"]
    resumed = run_suite(make_suite(SUITE), out=tmp_path / "all", resume=True)
    assert not resumed.interrupted
    assert [one.tally.count for one in resumed.results.values()] == [6, 4]


def test_sets_with_the_same_model_share_it_and_others_do_not(tiny_model, monkeypatch):
    from rstar2_env.evaluation import suite as module

    loaded = []

    def counted(path, options, **more):
        found = load(path, options, **more)
        loaded.append(options.dtype)
        return found

    load = module.load_policy
    monkeypatch.setattr(module, "load_policy", counted)
    written = {
        "env": "rstar2/MathTool-v0",
        "model": str(tiny_model),
        "problems": "arithmetic",
        "episodes": 1,
        "sets": {
            "a": {"model_options": {"max_episode_tokens": 8}},
            "b": {"model_options": {"max_episode_tokens": 12, "temperature": 0.5}},
            "c": {"model_options": {"max_episode_tokens": 8, "dtype": "bfloat16"}},
        },
    }
    assert len(run_suite(make_suite(written)).results) == 3
    assert loaded == ["auto", "bfloat16"]
