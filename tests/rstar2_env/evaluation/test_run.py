"""Claims about playing many episodes: the plan, the workers, failures, samples. Files are in ``test_run_files``."""

from __future__ import annotations

import json
from pathlib import Path

import gymnasium as gym
import pytest
from places import SHARED

from rstar2_env.agents import make
from rstar2_env.core.errors import ConfigurationError, UnknownNameError
from rstar2_env.core.status import ToolStatus
from rstar2_env.evaluation.result import EvalResult
from rstar2_env.evaluation.run import evaluate
from rstar2_env.problems import load_problems
from rstar2_env.testing.stub_sandbox import StubSandbox
from rstar2_env.testing.toy_env import ToyEnv
from rstar2_env.wrappers import read_episodes

ID = "rstar2/MathTool-v0"
SHARED = SHARED / "data"
SUMS = [{"id": f"sum-{n}", "question": f"{n}+1?", "answer": n + 1, "expression": f"{n}+1"} for n in range(12)]


def play(agent: str = "oracle", **options: object) -> EvalResult:
    options.setdefault("env_options", {"sandbox": StubSandbox()})
    return evaluate(ID, agent, **{"problems": SUMS, "workers": 3, **options})


def gsm8k(name: str) -> Path:
    file = SHARED / f"{name}.jsonl"
    if not file.exists():
        pytest.skip(f"{name}.jsonl is not beside the repository, under shared/data")
    return file


def test_every_problem_of_a_list_is_played_once_and_in_order():
    result = play()
    assert [episode.problem_id for episode in result.episodes] == [record["id"] for record in SUMS]
    assert result.summary.pass_rate.value == 1.0
    assert (result.played, result.interrupted, result.problems) == (12, False, "problems")
    assert result.episodes_per_second is not None


def test_a_changed_answer_earns_nothing():
    assert play(agent_options={"corrupt": True}).summary.reward.value == 0.0


def test_the_number_of_workers_changes_nothing():
    one, many = (
        play("random_text", episodes=20, workers=workers, agent_options={"calls": 0.2, "length": 5})
        for workers in (1, 5)
    )
    assert [episode.record() for episode in one.episodes] == [episode.record() for episode in many.episodes]
    assert len({episode.seed for episode in one.episodes}) == 20


def test_the_seed_chooses_problems_and_episodes():
    first, second = (play(episodes=5, seed=seed).episodes for seed in (1, 2))
    assert [episode.problem_id for episode in first] != [episode.problem_id for episode in second]
    assert not {episode.seed for episode in first} & {episode.seed for episode in second}


def test_the_environments_own_family_is_played_on_its_test_split():
    result = play(problems=None, episodes=6)
    assert (result.problems, result.split) == ("arithmetic", "test")
    assert all(episode.problem_id.startswith("arithmetic/test/") for episode in result.episodes)


def test_a_family_in_the_environment_options_keeps_its_own_options():
    result = play(problems=None, episodes=2, env_options={"sandbox": StubSandbox(), "problems": "arithmetic:level=4"})
    assert result.episodes[0].problem_id.startswith("arithmetic:level=4/test/")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"problems": None}, "without end"),
        ({"episodes": 0}, "at least 1"),
        ({"workers": 0}, "at least 1"),
        ({"agent_options": {"corupt": True}}, "Did you mean 'corrupt'"),
    ],
)
def test_options_that_do_not_fit_are_named(options, said):
    with pytest.raises(ConfigurationError, match=said):
        play(**options)


def test_an_unknown_agent_suggests_the_nearest():
    with pytest.raises(UnknownNameError, match="Did you mean 'oracle'"):
        play("oracel")


def test_an_unavailable_episode_is_counted_apart_and_never_as_a_zero():
    def plan(job):
        return ToolStatus.UNAVAILABLE if "print(3+1)" in job.code else "4\n"

    result = play(env_options={"sandbox": StubSandbox(plan)})
    assert (result.summary.episodes, result.summary.unavailable) == (11, 1)
    assert result.summary.pass_rate.value == 1.0
    assert result.summary.reward.value == 1.0
    assert "unavailable" not in result.summary.statuses


class Broken:
    def reset(self, observation, info, *, seed):
        self.problem_id = info["problem_id"]

    def act(self, observation, info):
        if self.problem_id == "sum-6":
            raise RuntimeError("the agent broke")
        return "<answer>\\boxed{1}</answer>"


def test_an_agent_that_raises_stops_the_evaluation_and_the_error_names_the_problem(tmp_path):
    out = tmp_path / "e.jsonl"
    with pytest.raises(RuntimeError, match="the agent broke") as caught:
        play(Broken, out=out, workers=1)
    assert "sum-6" in caught.value.__notes__[0]
    assert len(out.read_text().splitlines()) == 6


def test_a_function_that_makes_agents_serves_as_well_as_a_name():
    result = play(lambda: make("oracle"))
    assert result.summary.pass_rate.value == 1.0
    with pytest.raises(ConfigurationError, match="given by its name"):
        play(lambda: make("oracle"), agent_options={"corrupt": True})


class Words(gym.Env):
    """Somebody else's text environment, without problems."""

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return f"say {self.np_random.integers(1000)}", {}

    def step(self, action):
        return "", 1.0, True, False, {}


gym.register("tests/Words-v0", entry_point=Words)


def test_any_text_environment_is_evaluated_by_seed():
    result = evaluate("tests/Words-v0", "scripted", episodes=5, workers=2, agent_options={"turns": ["hello"]})
    assert result.summary.reward.value == 1.0
    assert len({episode.messages[0].content for episode in result.episodes}) > 1
    with pytest.raises(ConfigurationError, match="episodes="):
        evaluate("tests/Words-v0", "scripted", agent_options={"turns": ["hello"]})


def test_the_result_is_json():
    assert json.loads(json.dumps(play().to_dict()))["pass_rate"]["value"] == 1.0


@pytest.mark.slow
@pytest.mark.parametrize(("corrupt", "episodes"), [(False, 200), (True, 100)])
def test_gsm8k_calculations_earn_the_reward_and_changed_answers_do_not(corrupt, episodes):
    result = evaluate(
        ID, "calculations", problems=gsm8k("gsm8k_test"), episodes=episodes, agent_options={"corrupt": corrupt}
    )
    wrong = [(e.problem_id, e.answer) for e in result.episodes if e.correct is corrupt]
    assert result.summary.unavailable == 0
    assert len(wrong) <= (0 if corrupt else 2), wrong


@pytest.mark.proof
@pytest.mark.parametrize("corrupt", [False, True])
def test_all_of_gsm8k_test_earns_the_reward_and_changed_answers_do_not(corrupt, record_property):
    file = gsm8k("gsm8k_test")
    result = evaluate(ID, "calculations", problems=file, agent_options={"corrupt": corrupt})
    assert result.summary.episodes == len(list(load_problems(file))) == 1319
    wrong = [(e.problem_id, e.answer) for e in result.episodes if e.correct is corrupt]
    record_property("graded wrongly", len(wrong))
    assert len(wrong) <= (0 if corrupt else 13), wrong


class TestWrappers:
    FAULTS = "fault_injection:rate=1,kinds=timeout"

    def test_every_worker_plays_in_wrapped_environments(self):
        result = play(wrappers=[self.FAULTS], workers=3)
        assert result.summary.injected == {"timeout": 12}
        assert play().summary.injected == {}

    def test_a_line_says_which_and_another_set_is_not_resumed(self, tmp_path):
        out = tmp_path / "episodes.jsonl"
        play(wrappers=[{"name": "tool_budget", "calls": 3}], out=out)
        assert json.loads(out.read_text().splitlines()[0])["run"]["wrappers"] == ["tool_budget:calls=3"]
        assert play(wrappers=["tool_budget:calls=3"], out=out, resume=True).played == 0
        with pytest.raises(ConfigurationError, match="belongs to another evaluation: wrappers was"):
            play(wrappers=["tool_budget:calls=4"], out=out, resume=True)
        with pytest.raises(ConfigurationError, match="belongs to another evaluation: wrappers was"):
            play(out=out, resume=True)

    def test_a_wrong_option_is_told_before_anything_is_made(self):
        def never(**options):
            raise AssertionError

        with pytest.raises(ConfigurationError, match=r"wrapper 'tool_budget'.*'cals'.*Did you mean 'calls'"):
            evaluate(never, "oracle", wrappers=["tool_budget:cals=3"], episodes=1)

    def test_all_workers_record_into_one_file(self, tmp_path):
        play(wrappers=[f"record_episodes:path={tmp_path}/all.jsonl"], workers=4)
        lines = read_episodes(tmp_path / "all.jsonl")
        assert sorted(line["problem_id"] for line in lines) == sorted(record["id"] for record in SUMS)
        assert [line["index"] for line in lines] == list(range(12))


def test_an_agent_may_be_named_with_its_options_and_an_environment_be_a_class():
    written = evaluate(ToyEnv, "random_text:length=3,answers=0.5", episodes=6)
    given = evaluate(ToyEnv, "random_text", agent_options={"length": 3, "answers": 0.5}, episodes=6)
    assert [episode.messages for episode in written.episodes] == [episode.messages for episode in given.episodes]
    assert written.env_id == "ToyEnv"


def test_an_evaluation_prints_as_its_table_and_shows_without_its_conversations():
    result = evaluate(ID, "oracle", problems="arithmetic", episodes=5)
    lines = str(result).splitlines()
    assert lines[0] == f"oracle on {ID}, arithmetic (test)"
    assert "  pass rate                        100.00 % [56.55, 100.00]" in lines
    assert repr(result) == (
        f"EvalResult(env_id='{ID}', agent='oracle', problems='arithmetic', split='test', episodes=5, pass_rate=1.0)"
    )


class TestSamples:
    def test_a_line_names_its_start_and_which_sample_of_it_it_is(self, tmp_path):
        result = play("random_text", n=3, episodes=4, out=tmp_path / "e.jsonl", agent_options={"length": 5})
        lines = sorted(map(json.loads, (tmp_path / "e.jsonl").read_text().splitlines()), key=lambda line: line["index"])
        assert [(line["index"], line["start"], line["sample"]) for line in lines] == [
            (3 * start + sample, start, sample) for start in range(4) for sample in range(3)
        ]
        for start in range(4):
            of_start = lines[3 * start : 3 * start + 3]
            assert len({(line["seed"], line["problem_id"]) for line in of_start}) == 1
            assert len({line["messages"][-1]["content"] for line in of_start}) == 3
        assert (result.figures.problems, result.summary.episodes) == (4, 12)

    def test_the_first_sample_is_the_one_that_would_be_played_alone(self):
        one, three = (play("random_text", n=n, agent_options={"length": 5}).episodes for n in (1, 3))
        assert [episode.messages for episode in one] == [episode.messages for episode in three[::3]]

    def test_another_number_of_samples_is_not_resumed_and_an_older_file_is(self, tmp_path):
        out = tmp_path / "e.jsonl"
        play(out=out)
        with pytest.raises(ConfigurationError, match="belongs to another evaluation: n was 1 and is 2"):
            play(out=out, resume=True, n=2)
        older = []
        for line in map(json.loads, out.read_text().splitlines()):
            for key in ("start", "sample", "problem_source", "difficulty"):
                del line[key]
            del line["run"]["n"]
            older.append(json.dumps(line) + "\n")
        out.write_text("".join(older))
        assert play(out=out, resume=True).played == 0

    def test_k_above_the_samples_is_refused(self):
        with pytest.raises(ConfigurationError, match="k = 4"):
            play(n=2, k=[1, 4])
