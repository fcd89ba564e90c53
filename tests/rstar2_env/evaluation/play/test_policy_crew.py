"""Claims about a model that plays an evaluation: by its path, with the policy's own loop, token for token."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="models need the extra 'train'")

import torch
from scripted_engine import EchoEnv
from transformers import AutoModelForCausalLM, AutoTokenizer

from rstar2_env.core.errors import ConfigurationError, MissingExtraError, UnknownNameError
from rstar2_env.core.run_folder import read_run
from rstar2_env.core.stop_request import Stop
from rstar2_env.evaluation.play.policy_crew import NothingPlayedError, PolicyOptions, load_policy
from rstar2_env.evaluation.result import EvalResult
from rstar2_env.evaluation.run import evaluate
from rstar2_env.evaluation.suite import make_suite, run_suite
from rstar2_env.rollout import Budget, ChatCodec, EpisodeRequest, Player, SamplingParams, TransformersEngine
from rstar2_env.testing.stub_sandbox import StubSandbox
from rstar2_env.wrappers.make import make_env

ID = "rstar2/MathTool-v0"
SUMS = [{"id": f"sum-{n}", "question": f"{n}+1?", "answer": n + 1} for n in range(3)]
SHORT = {"max_episode_tokens": 40, "max_in_flight": 4}
ENV = {"sandbox": StubSandbox("4\n")}


def play(model: object, **options: object) -> EvalResult:
    return evaluate(ID, model=model, **{"problems": SUMS, "env_options": ENV, "model_options": SHORT, **options})


def words(result: EvalResult) -> list[list[str]]:
    return [[message.content for message in episode.messages] for episode in result.episodes]


def test_a_model_by_its_path_says_token_for_token_what_the_player_of_training_plays(tiny_model):
    result = play(str(tiny_model), n=2)
    model = AutoModelForCausalLM.from_pretrained(tiny_model).eval()
    tokenizer = AutoTokenizer.from_pretrained(tiny_model)
    engine = TransformersEngine(model, tokenizer)
    player = Player(
        partial(make_env, ID, **ENV),
        engine,
        ChatCodec(tokenizer),
        sampling=SamplingParams(max_tokens=1),
        budget=Budget(tokens=40),
    )
    with player:
        for start, episode in enumerate(result.episodes[::2]):
            request = EpisodeRequest(0, episode.seed, {"problem": SUMS[start]}, sampling_seed=episode.seed)
            (again,) = player.play([request])
            assert again.prompt_ids == episode.prompt_ids
            assert again.completion_ids == episode.completion_ids
            assert again.mask == episode.mask
            assert sum(episode.mask) == episode.policy_tokens > 0
    engine.close()


def test_samples_of_a_start_share_its_reset_and_differ_in_the_draws(tiny_model):
    result = play(str(tiny_model), n=4)
    assert len(result.episodes) == 12
    for start in range(3):
        of_start = result.episodes[4 * start : 4 * start + 4]
        assert len({(episode.seed, episode.problem_id, episode.messages[1].content) for episode in of_start}) == 1
        assert len({tuple(episode.completion_ids) for episode in of_start}) == 4
    assert words(play(str(tiny_model), n=4)) == words(result)


def test_the_record_says_which_model_played_and_how(tiny_model, tmp_path):
    result = play(str(tiny_model), out=tmp_path / "run", repeat=True)
    config = read_run(tmp_path / "run").config
    assert (config["agent"], config["model"], config["engine"]) == ("policy", str(tiny_model), "transformers")
    assert config["model_options"]["max_episode_tokens"] == 40
    assert "max_in_flight" not in config["model_options"]
    summary = json.loads((tmp_path / "run/summary.json").read_text())
    assert "seed of the request" in summary["determinism"]["stated"]
    assert summary["determinism"]["repeated"] == {"episodes": 3, "same": 3}
    assert summary["versions"]["transformers"]
    assert summary["usage"]["completion_tokens"] == sum(episode.policy_tokens for episode in result.episodes)
    assert summary["usage"]["prompt_tokens"] > summary["usage"]["completion_tokens"]


@pytest.mark.parametrize("out", ["all", "all/second"])
def test_another_temperature_is_refused_before_torch_is_imported(tiny_model, tmp_path, out):
    sets = {name: {"env": ID, "problems": SUMS} for name in ("first", "second")}
    shared = {"model": str(tiny_model), "model_options": SHORT, "sets": sets}
    run_suite(make_suite(shared), out=tmp_path / "all")
    other = {**SHORT, "temperature": 0.5}
    if out == "all":
        sets["second"]["model_options"] = other
    else:
        shared = {"model": str(tiny_model), "model_options": other, **sets["second"]}
    code = f"""
import sys
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.evaluation.suite import make_suite, run_suite
try:
    run_suite(make_suite({shared!r}), out={str(tmp_path / out)!r}, resume=True)
except ConfigurationError as error:
    print(error, "torch" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "second/" in done.stdout, done.stderr
    assert "belongs to another evaluation: model_options" in done.stdout
    assert done.stdout.endswith("False\n")


def test_another_model_or_temperature_is_not_resumed_and_more_in_flight_is(tiny_model, tmp_path):
    play(str(tiny_model), out=tmp_path / "run")
    other = {**SHORT, "temperature": 0.5}
    with pytest.raises(ConfigurationError, match="belongs to another evaluation: model_options"):
        play(str(tiny_model), out=tmp_path / "run", resume=True, model_options=other)
    more = {**SHORT, "max_in_flight": 9}
    assert play(str(tiny_model), out=tmp_path / "run", resume=True, model_options=more).played == 0


def test_an_adapter_plays_as_the_model_that_it_is_merged_into(tiny_model, tmp_path):
    from peft import LoraConfig, get_peft_model

    torch.manual_seed(0)
    base = AutoModelForCausalLM.from_pretrained(tiny_model)
    config = LoraConfig(r=2, target_modules="all-linear", task_type="CAUSAL_LM", init_lora_weights=False)
    adapted = get_peft_model(base, config)
    adapted.save_pretrained(str(tmp_path / "adapter"))
    adapted.merge_and_unload().save_pretrained(str(tmp_path / "merged"))
    AutoTokenizer.from_pretrained(tiny_model).save_pretrained(str(tmp_path / "merged"))
    said = [words(play(str(path))) for path in (tmp_path / "adapter", tmp_path / "merged", tiny_model)]
    assert said[0] == said[1]
    assert said[0] != said[2]


def test_a_model_that_was_loaded_once_plays_several_evaluations(tiny_model):
    options = PolicyOptions(**SHORT)
    loaded = load_policy(str(tiny_model), options, engine="transformers", engine_options={}, seed=0)
    try:
        first, second = play(loaded), play(loaded, n=2)
    finally:
        loaded.close()
    assert words(first) == words(second)[::2]


def test_when_nothing_can_be_played_the_first_cause_is_told_and_nothing_goes_on(tiny_model):
    EchoEnv.made.clear()
    with pytest.raises(NothingPlayedError, match=r"None of the first 8 episodes .* OSError: no reset"):
        evaluate(partial(EchoEnv, trouble="reset"), model=str(tiny_model), episodes=500, model_options=SHORT)
    assert len(EchoEnv.made) < 100
    EchoEnv.made.clear()


def test_a_stop_lets_episodes_in_flight_end_and_begins_nothing_new(tiny_model, tmp_path):
    stop = Stop()
    result = play(
        str(tiny_model), n=200, out=tmp_path / "run", stop=stop, progress=lambda episode, done, total: stop.request()
    )
    assert result.interrupted
    assert 1 <= result.played < 600
    assert result.summary.unavailable == 0
    assert play(str(tiny_model), n=200, out=tmp_path / "run", resume=True, stop=stop).played == 0
    assert not [thread for thread in threading.enumerate() if thread.name == "evaluate"]


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"model": "nowhere/at/all"}, ConfigurationError, "There is no folder nowhere/at/all"),
        ({"engine": "transformer"}, UnknownNameError, "Did you mean 'transformers'"),
        ({"model_options": {"temprature": 1}}, ConfigurationError, "Did you mean 'temperature'"),
        ({"model_options": {"temperature": -1}}, ConfigurationError, "temperature"),
        ({"engine_options": {"max_row": 1}}, ConfigurationError, "Did you mean 'max_rows'"),
        ({"engine": "vllm-server"}, (ConfigurationError, MissingExtraError), "needs base_urls"),
        ({"agent": "oracle"}, ConfigurationError, "an agent or a model, not both"),
    ],
)
def test_mistakes_are_told_before_anything_is_played(tiny_model, options, error, said):
    with pytest.raises(error, match=said):
        evaluate(ID, **{"model": str(tiny_model), "problems": SUMS, "env_options": ENV, **options})


@pytest.mark.slow
def test_a_real_vllm_server_plays_what_the_model_in_this_process_plays(vllm_server, policy_folder: Path):
    greedy = {"problems": SUMS, "model_options": {"max_episode_tokens": 24, "temperature": 0.0}}
    options = {"engine": "vllm-server", "engine_options": {"base_urls": vllm_server, "start_timeout_s": 600}}
    served = play(str(policy_folder), **greedy, **options)
    assert served.summary.unavailable == 0
    assert words(served) == words(play(str(policy_folder), **greedy))
