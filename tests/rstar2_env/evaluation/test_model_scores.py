"""Claims about scores of a model that plays: tokens, its log-probabilities, and further episodes."""

from __future__ import annotations

import math

import pytest

pytest.importorskip("torch", reason="models need the extra 'train'")

from every_reward import MADE, PROBLEM, judge_server

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.evaluation.play.policy_crew import LoadedModel, PolicyOptions, load_policy
from rstar2_env.evaluation.run import evaluate
from rstar2_env.rewards import OnTurns
from rstar2_env.testing.stub_sandbox import StubSandbox

ID = "rstar2/MathTool-v0"
SHORT = {"max_episode_tokens": 24, "max_in_flight": 4}


@pytest.fixture(scope="module")
def model(tiny_model):
    loaded = load_policy(str(tiny_model), PolicyOptions(**SHORT), engine="transformers", engine_options={}, seed=0)
    yield loaded
    loaded.close()


def play(model, *scores, **options):
    options = {"problems": [PROBLEM], "n": 3, "model_options": SHORT, **options}
    return evaluate(ID, model=model, scores=scores, env_options={"sandbox": StubSandbox("4\n")}, **options)


def test_every_reward_scores_a_model(model):
    with judge_server() as judge:
        scores = [[name, {**options, "judge": judge, "label": f"s{at}"}] for at, (name, options) in enumerate(MADE)]
        result = play(model, *scores)
    for at, (name, _) in enumerate(MADE):
        key = f"turns/s{at}" if name == "progress" else f"s{at}"
        assert all(math.isfinite(episode.rewards[key]) for episode in result.episodes if episode.turns), name
    assert set(result.summary.rewards) >= {"s0", f"turns/s{[name for name, _ in MADE].index('progress')}"}


def test_the_policy_is_the_one_that_played_token_for_token(model):
    class Surprise:
        needs = frozenset({"lm", "tokens"})

        async def __call__(self, episode, ctx):
            turn = episode.steps[0]
            own = episode.completion_ids[turn.start : turn.stop]
            assert ctx.lm.decode(own) != ""
            again = await ctx.lm.score([*episode.prompt_ids, *episode.completion_ids[: turn.start]], own)
            drawn = episode.logprobs[turn.start : turn.stop]
            return max(abs(one - other) for one, other in zip(again, drawn, strict=True))

    result = play(model, [Surprise(), {"label": "surprise"}])
    assert all(episode.rewards["surprise"] < 1e-3 for episode in result.episodes)


def test_further_episodes_begin_as_the_scored_one_did_and_draw_the_same_each_time(model):
    played = []

    class Branched:
        needs = frozenset({"play", "tokens"})

        async def __call__(self, episode, ctx):
            children = await ctx.play.branch(episode, 2, 2)
            assert all(child.completion_ids[:2] == episode.completion_ids[:2] for child in children)
            assert all(child.problem_id == episode.problem_id for child in children)
            played.append(tuple(sorted(tuple(child.completion_ids) for child in children)))
            return OnTurns(float(len(children)) for _ in episode.steps)

    result = play(model, [Branched(), {"label": "branched"}])
    assert all(episode.rewards == {"turns/branched": 2.0} for episode in result.episodes)
    assert len(set(played)) == 3
    first, played[:] = sorted(played), []
    play(model, [Branched(), {"label": "branched"}])
    assert sorted(played) == first


def test_the_limit_of_tokens_is_that_of_the_model(model):
    (episode,) = play(model, "overlong:buffer=24,factor=24", n=1).episodes
    assert episode.rewards["overlong"] == -len(episode.completion_ids)


def test_an_engine_that_scores_no_tokens_is_named(model):
    class Mute:
        def __init__(self, engine):
            self.generate, self.capacity = engine.generate, engine.capacity

    mute = LoadedModel(model.path, "vllm", Mute(model.engine), model.chat, "")
    with pytest.raises(ConfigurationError, match=r"needs the policy's log-probabilities, which the engine 'vllm' does"):
        play(mute, "reference_probability")
