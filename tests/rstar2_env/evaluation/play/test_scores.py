"""Claims about scores of an evaluation: reward components beside what the environment paid, whoever plays."""

from __future__ import annotations

import json
import math

import pytest
from chat_replies import said
from every_reward import MADE, PROBLEM, judge_server
from flaky_server import flaky
from letter_env import LetterEnv

from rstar2_env.core.errors import ConfigurationError, UnknownNameError
from rstar2_env.evaluation.comparison.compare import compare
from rstar2_env.evaluation.run import evaluate
from rstar2_env.evaluation.stored.runs import find_stored
from rstar2_env.evaluation.suite import make_suite, run_suite
from rstar2_env.rewards import Component, make_component
from rstar2_env.rewards.needs import PLACES
from rstar2_env.testing.stub_sandbox import StubSandbox

ID = "rstar2/MathTool-v0"
SUMS = [{"id": f"sum-{n}", "question": f"{n}+1?", "answer": n + 1, "expression": f"{n}+1"} for n in range(6)]
REASONS = {"lm": "log-probabilities", "play": "further episodes", "tokens": "the policy's tokens"}


def play(agent="oracle", **options):
    options.setdefault("env_options", {"sandbox": StubSandbox()})
    return evaluate(ID, agent, **{"problems": SUMS, "workers": 3, **options})


class Rank:
    """The share of the group that earned less."""

    needs = frozenset({"group"})

    def __call__(self, episode, ctx):
        assert all(one.problem_id == episode.problem_id for one in ctx.group)
        return float(len(ctx.group))


@pytest.fixture(scope="module")
def judge():
    with judge_server() as found:
        yield found


@pytest.mark.parametrize(("name", "options"), MADE)
def test_every_reward_scores_an_agent_or_is_refused_with_the_reason(name, options, judge, tmp_path):
    needs = make_component([name, options]).needs
    asked = {"problems": [PROBLEM], "n": 2, "out": tmp_path / "run"}
    if lacking := needs - PLACES["agents"]:
        with pytest.raises(
            ConfigurationError, match=rf"'{name}' needs {REASONS[min(lacking)]}|'{name}' .*needs.*a model"
        ):
            play(scores=[[name, {**options, "judge": judge}]], **asked)
        assert not (tmp_path / "run").exists()
        return
    if "judge" in needs:
        with pytest.raises(
            ConfigurationError, match=(rf"'{name}' needs a judge, and an evaluation does not provide one")
        ):
            play(scores=[[name, options]], **asked)
        options = {**options, "judge": judge}
    result = play(scores=[[name, options]], **asked)
    assert [episode.reward for episode in result.episodes] == [1.0, 1.0]
    assert all(math.isfinite(episode.rewards[name]) for episode in result.episodes)


def test_scores_stand_beside_the_return_in_the_file_and_in_every_figure(tmp_path):
    scores = [
        "outcome:correct=5,wrong=1,label=five",
        Component("last", lambda episode, ctx: float(episode.problem_id[-1])),
    ]
    result = play(scores=scores, out=tmp_path / "run", n=2)
    assert all(episode.reward == 1.0 for episode in result.episodes)
    lines = [json.loads(line) for line in (tmp_path / "run/episodes/eval-000000.jsonl").read_text().splitlines()]
    assert {line["problem_id"]: line["rewards"] for line in lines}["sum-4"] == {"five": 5.0, "last": 4.0}
    assert lines[0]["run"]["scores"] == ["outcome:correct=5,wrong=1,label=five", "last"]
    five, last = (result.summary.rewards[name] for name in ("five", "last"))
    assert (five.value, five.error, five.count) == (5.0, 0.0, 12)
    # Six problems, the mean of 0 to 5: the deviation over the root of six.
    assert (last.value, last.error) == (2.5, pytest.approx(math.sqrt(3.5) / math.sqrt(6)))
    assert "2.500 ± 0.764" in str(result)
    assert result.log_figures()["reward/last"] == 2.5
    low, high = result.to_dict()["intervals"]["reward/last"]
    assert 0 < low < 2.5 < high < 5
    assert result.to_dict()["rewards"]["last"]["count"] == 12


def test_two_evaluations_are_compared_by_their_scores(tmp_path):
    for name, right in (("base", 1), ("other", 3)):
        play(scores=[f"outcome:correct={right},label=paid"], out=tmp_path / name)
    (found,) = compare([find_stored(str(tmp_path / name)) for name in ("base", "other")])
    figure = found.figures["reward/paid"]
    assert (figure.baseline.value, figure.other.value, figure.difference.value) == (1.0, 3.0, 2.0)


def test_what_the_environment_tells_apart_stays_beside_under_the_key_of_training():
    shaped = "reward_shaping:components=tool_use"
    result = play(wrappers=[shaped], scores=["outcome"])
    assert set(result.episodes[0].rewards) == {"return/task", "return/tool_use", "outcome"}
    assert set(play(wrappers=[shaped]).summary.rewards) == {"task", "tool_use"}


def test_an_episode_whose_judge_does_not_answer_counts_for_nothing_and_is_played_again(tmp_path):
    down = {"is": True}

    def answered(asked, number):
        mute = down["is"] and ">\n3\n<" in asked.body["messages"][0]["content"]
        return (503, {"error": "overloaded"}) if mute else (200, said("CORRECT"))

    with flaky(answered) as server:
        score = f"model_verifier:judge=(model:url={server.address}/v1,model=small,retries=0)"
        options = {"scores": [score], "out": tmp_path / "run"}
        result = play(**options)
        assert (result.summary.episodes, result.summary.unavailable) == (5, 1)
        (lost,) = [episode for episode in result.episodes if episode.failed]
        assert (lost.problem_id, lost.rewards) == ("sum-2", {})
        assert "503" in result.tally.cause
        down["is"] = False
        again = play(**options, resume=True)
    assert (again.played, again.summary.unavailable) == (1, 0)
    assert again.summary.rewards["model_verifier"].value == 1.0


def test_a_score_that_compares_sees_the_whole_start_and_needs_several_samples():
    assert {episode.rewards["Rank"] for episode in play(scores=[Rank()], n=3).episodes} == {3.0}
    with pytest.raises(ConfigurationError, match=r"needs the other episodes.*played only once"):
        play(scores=[Rank()])


def test_starts_that_are_scored_together_are_resumed_together(tmp_path):
    out = tmp_path / "e.jsonl"
    whole = play(scores=[Rank()], n=3, out=out)
    lines = sorted(out.read_text().splitlines(keepends=True), key=lambda line: json.loads(line)["index"])
    out.write_text("".join(lines[:7]))
    resumed = play(scores=[Rank()], n=3, out=out, resume=True)
    assert resumed.played == 12
    assert [e.record() for e in resumed.episodes] == [e.record() for e in whole.episodes]
    with pytest.raises(ConfigurationError, match="belongs to another evaluation: scores"):
        play(n=3, out=out, resume=True)


def test_an_environment_that_chooses_has_no_problems_for_scores():
    with pytest.raises(ConfigurationError, match="'letter_choice' needs the problem that is played, and this env"):
        evaluate(LetterEnv, "random_text", episodes=1, scores=["letter_choice"])


@pytest.mark.parametrize(
    ("scores", "words"),
    [
        (["outcome", "outcome:wrong=1"], "distinct names"),
        (["outcome:when=step"], "when=step.*'outcome'"),
        (["outcom"], "Did you mean 'outcome'"),
        (["outcome:wrng=1"], "wrng"),
    ],
)
def test_scores_that_make_no_sense_are_refused_before_anything_is_played(scores, words, tmp_path):
    with pytest.raises((ConfigurationError, UnknownNameError), match=words):
        play(scores=scores, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_the_sets_of_a_suite_have_scores_and_the_last_mistake_is_told_first(tmp_path):
    sets = {"a": {"problems": SUMS}, "b": {"problems": SUMS, "scores": ["reference_probability"]}}
    layer = {"env": ID, "agent": "oracle", "scores": ["outcome"], "env_options": {"sandbox": StubSandbox()}}
    with pytest.raises(ConfigurationError, match=r"'reference_probability' needs .*which an agent does not have"):
        run_suite(make_suite({**layer, "sets": sets}), out=tmp_path / "all")
    assert not (tmp_path / "all").exists()
    found = run_suite(make_suite({**layer, "sets": {"a": sets["a"]}}))
    assert found.results["a"].summary.rewards["outcome"].value == 1.0
    assert found.mean()["reward/outcome"] == 1.0
