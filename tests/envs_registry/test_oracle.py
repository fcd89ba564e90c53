"""A player who knows the answer earns everything in every registered environment; one who is wrong, next to nothing."""

import gymnasium as gym
import pytest

import rstar2_env  # noqa: F401  # registers the ids
from rstar2_env.evaluation.run import evaluate
from rstar2_env.evaluation.validation import validate
from rstar2_env.testing import StubSandbox

IDS = sorted(name for name, spec in gym.registry.items() if spec.namespace == "rstar2")
SANDBOXED = {"rstar2/MathTool-v0", "rstar2/MathFence-v0", "rstar2/MathNotebook-v0"}
each_id = pytest.mark.parametrize("env_id", IDS)


def options(env_id):
    return {"sandbox": StubSandbox("seen")} if env_id in SANDBOXED else {}


@pytest.mark.parametrize("split", ["train", "test"])
@each_id
def test_the_oracle_agent_earns_one(env_id, split):
    found = evaluate(env_id, "oracle", episodes=12, split=split, workers=2, env_options=options(env_id))
    assert [(episode.reward, episode.correct) for episode in found.episodes] == [(1.0, True)] * 12


@each_id
def test_who_has_a_grader_says_why_an_answer_is_right(env_id):
    (episode,) = evaluate(env_id, "oracle", episodes=1, split="train", env_options=options(env_id)).episodes
    env = gym.make(env_id, **options(env_id)).unwrapped
    env.reset(options={"problem_id": episode.problem_id})  # of a mixture, the grader is that of the episode's source
    verdict = episode.steps[-1].info.get("verdict")
    assert (verdict is not None) is (getattr(env, "grader", None) is not None)
    if verdict is not None:
        assert verdict["reason"] == "equal"
        assert verdict["method"]


@each_id
def test_an_oracle_that_is_told_to_be_wrong_is_hardly_ever_right(env_id):
    # Hardly: where many answers are right, as in Saturn, a changed one may be another of them.
    found = evaluate(
        env_id, "oracle", episodes=6, workers=2, env_options=options(env_id), agent_options={"corrupt": True}
    )
    assert sum(episode.correct for episode in found.episodes) <= 1


@each_id
def test_validate_finds_nothing(env_id):
    found = validate(env_id, episodes=12, workers=2, contract=False, env_options=options(env_id))
    assert (found.checked, found.faults, found.unreadable) == (12, [], [])
