"""Vectorised environments carry text whole, or say loudly that they cannot."""

import gymnasium as gym
import pytest

import rstar2_env  # noqa: F401  # registers the id
from rstar2_env.dialects import make_dialect
from rstar2_env.testing import StubSandbox
from rstar2_env.tools import PYTHON_TOOL_NAME

ID = "rstar2/MathTool-v0"
RSTAR2 = make_dialect("rstar2")
QUESTION = "Was ist π·2? 漢字 😀 \u202e é\u0301\nzweite Zeile \0 Ende"
PRINTED = "π ≈ 3.14 😀\n漢字\0 end"


def call():
    return RSTAR2.format_call(PYTHON_TOOL_NAME, {"code": "print('π')", "input": ""})


def options(**more):
    problems = [{"id": str(n), "question": f"{QUESTION} {n}", "answer": str(n)} for n in range(5)]
    return {"problems": problems, "sandbox": StubSandbox(PRINTED), **more}


@pytest.fixture
def vector(request):
    mode, more = request.param
    envs = gym.make_vec(ID, num_envs=3, vectorization_mode=mode, **options(**more))
    yield envs
    envs.close()


BOTH = pytest.mark.parametrize(
    "vector",
    [("sync", {}), ("async", {"vector_kwargs": {"shared_memory": False}})],
    indirect=True,
    ids=["sync", "async"],
)


@BOTH
def test_observations_are_the_real_texts(vector):
    texts, infos = vector.reset(seed=[1, 2, 3])
    assert [text[: len(RSTAR2.user(QUESTION))] for text in texts] == [RSTAR2.user(QUESTION)] * 3
    numbers = [text.rpartition(" ")[2] for text in texts]
    assert numbers == [str(problem) for problem in infos["problem_id"]]


@BOTH
def test_a_batch_plays_as_each_alone_would(vector):
    alone = gym.make(ID, **options())
    texts, _ = vector.reset(seed=[11, 12, 13])
    shown, rewards, *_ = vector.step([call()] * 3)
    for seed, text, answer in zip((11, 12, 13), texts, shown, strict=True):
        assert alone.reset(seed=seed)[0] == text
        assert alone.step(call())[0] == answer
        assert PRINTED in answer
    assert list(rewards) == [0.0] * 3


@BOTH
def test_rewards_ends_and_infos_come_for_each(vector):
    texts, _ = vector.reset(seed=1)
    right = [RSTAR2.format_answer(text.rpartition(" ")[2]) for text in texts]
    _, rewards, terminated, truncated, infos = vector.step([right[0], "no", call()])
    assert list(rewards) == [1.0, 0.0, 0.0]
    assert list(terminated) == [True, True, False]
    assert list(truncated) == [False] * 3
    assert list(infos["end"][:2]) == ["answered", "no_answer"]
    assert infos["tool_calls"][2][0]["status"] == "ok"


@BOTH
def test_an_ended_episode_is_followed_by_the_next(vector):
    vector.reset(seed=1)
    vector.step(["no", call(), call()])
    texts, *_ = vector.step(["ignored", call(), call()])
    assert texts[0].startswith(RSTAR2.user(QUESTION))


def test_shared_memory_which_would_corrupt_text_is_refused_loudly():
    with pytest.raises(ValueError, match="shared_memory=False"):
        gym.make_vec(ID, num_envs=2, vectorization_mode="async", **options())


@pytest.mark.filterwarnings("ignore:.*ERROR")  # how Gymnasium tells of it, before it raises
def test_an_error_in_a_worker_comes_home_as_itself():
    envs = gym.make_vec(ID, num_envs=2, vectorization_mode="async", vector_kwargs={"shared_memory": False}, **options())
    try:
        with pytest.raises(KeyError, match="no problem 'nine'"):
            envs.reset(options={"problem_id": "nine"})
    finally:
        envs.close(terminate=True)
