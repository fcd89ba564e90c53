"""Claims about playing many episodes: the plan, the workers, failures, interruption, resuming."""

from __future__ import annotations

import _thread
import json
import os
import signal
import subprocess
import sys
import threading
import time
import tracemalloc
from pathlib import Path

import gymnasium as gym
import pytest
from page_reader import check_page_reader
from places import SHARED
from run_sample import write_run

from rstar2_env.agents import make
from rstar2_env.core.errors import ConfigurationError, UnknownNameError
from rstar2_env.core.run_folder import read_run
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
        ({"problems": None}, "never ends"),
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


def test_every_episode_is_a_line_of_the_file(tmp_path):
    out = tmp_path / "new" / "episodes.jsonl"
    result = play(out=out)
    lines = [json.loads(line) for line in out.read_text("utf-8").splitlines()]
    assert sorted(line["index"] for line in lines) == list(range(12))
    by_index = {line["index"]: line for line in lines}
    assert by_index[3]["problem_id"] == "sum-3"
    assert by_index[3]["gold"] == "4"
    assert by_index[3]["reward"] == 1.0
    assert by_index[3]["statuses"] == ["ok"]
    assert by_index[3]["messages"] == result.episodes[3].record()["messages"]
    assert by_index[3]["run"]["agent"] == "oracle"
    assert by_index[3]["seconds"] > 0


def test_a_file_that_exists_is_not_overwritten_unasked(tmp_path):
    out = tmp_path / "e.jsonl"
    out.write_text("precious")
    with pytest.raises(ConfigurationError, match="exists already"):
        play(out=out)
    assert out.read_text() == "precious"
    play(out=out, overwrite=True)
    assert len(out.read_text().splitlines()) == 12


def test_resuming_plays_what_is_missing_and_gives_the_whole_result(tmp_path):
    out = tmp_path / "e.jsonl"
    whole = play(out=out, env_options={})
    lines = out.read_text().splitlines(keepends=True)
    out.write_text("".join(lines[:5]) + lines[5][: len(lines[5]) // 2])
    resumed = play(out=out, resume=True, env_options={})
    assert resumed.played == 7
    assert [e.record() for e in resumed.episodes] == [e.record() for e in whole.episodes]
    assert sorted(json.loads(line)["index"] for line in out.read_text().splitlines()) == list(range(12))
    assert play(out=out, resume=True, env_options={}).played == 0


def test_a_line_that_is_there_twice_is_taken_up_once(tmp_path):
    out = tmp_path / "e.jsonl"
    play(out=out)
    out.write_text(out.read_text() + out.read_text().splitlines(keepends=True)[2])
    resumed = play(out=out, resume=True)
    assert (resumed.played, resumed.summary.episodes) == (0, 12)
    assert len(out.read_text().splitlines()) == 12


def test_resuming_plays_unavailable_episodes_again(tmp_path):
    out = tmp_path / "e.jsonl"
    play(out=out, env_options={"sandbox": StubSandbox(ToolStatus.UNAVAILABLE)})
    resumed = play(out=out, resume=True)
    assert resumed.played == 12
    assert resumed.summary.unavailable == 0
    assert len(out.read_text().splitlines()) == 12


def test_resuming_with_more_episodes_keeps_the_first_ones(tmp_path):
    out = tmp_path / "e.jsonl"
    play(out=out, episodes=4)
    assert play(out=out, episodes=9, resume=True).played == 5
    assert play(out=out, episodes=2, resume=True).played == 0
    assert len(out.read_text().splitlines()) == 9


@pytest.mark.parametrize(
    "other",
    [
        {"seed": 1},
        {"agent_options": {"corrupt": True}},
        {"problems": SUMS[::-1]},
        {"problems": "arithmetic", "episodes": 12},
    ],
)
def test_a_file_of_another_evaluation_is_not_resumed(tmp_path, other):
    out = tmp_path / "e.jsonl"
    play(out=out)
    before = out.read_text()
    with pytest.raises(ConfigurationError, match=r"e\.jsonl:1 belongs to another evaluation"):
        play(out=out, resume=True, **other)
    assert out.read_text() == before


def test_what_is_no_file_of_episodes_is_not_resumed(tmp_path):
    out = tmp_path / "e.jsonl"
    out.write_text('{"question": "q"}\n')
    with pytest.raises(ConfigurationError, match=r"e\.jsonl:1 is not an episode"):
        play(out=out, resume=True)


class TestInTheFolderOfARun:
    def test_one_reader_reads_the_folder_and_the_single_file(self, tmp_path):
        result = play(out=tmp_path / "run", env_options={})
        play(out=tmp_path / "e.jsonl", env_options={})
        check_page_reader(tmp_path / "run")
        folder, file = read_run(tmp_path / "run"), read_run(tmp_path / "e.jsonl")
        for run in (folder, file):
            assert (run.kind, run.evaluated_steps) == ("evaluation", [0])
            assert run.config["agent"] == "oracle"
            assert [entry.episode.record() for entry in run.held_out()] == [e.record() for e in result.episodes]
            assert [entry.more["gold"] for entry in run.held_out()] == [str(n + 1) for n in range(12)]
        assert [event["event"] for event in folder.events] == ["started", "evaluation", "finished"]
        (figures,) = folder.evaluations
        assert figures.figures["pass_rate"] == 1.0
        assert figures.figures["pass_rate_se"] == 0.0

    def test_it_goes_on_where_it_was_cut(self, tmp_path):
        out = tmp_path / "run"
        whole = play(out=out, env_options={})
        file = out / "episodes" / "eval-000000.jsonl"
        lines = file.read_text().splitlines(keepends=True)
        file.write_text("".join(lines[:5]) + lines[5][:40])
        assert len(read_run(out).held_out()) == 5
        resumed = play(out=out, resume=True, env_options={})
        assert resumed.played == 7
        assert [entry.episode.record() for entry in read_run(out).held_out()] == [e.record() for e in whole.episodes]
        assert [event["event"] for event in read_run(out).events][3:] == ["resumed", "evaluation", "finished"]
        with pytest.raises(ConfigurationError, match="belongs to another evaluation"):
            play(out=out, resume=True, env_options={}, seed=1)
        assert read_run(out).config["seed"] == 0

    def test_another_run_is_not_overwritten(self, tmp_path):
        play(out=tmp_path / "run", episodes=2)
        with pytest.raises(ConfigurationError, match="exists already"):
            play(out=tmp_path / "run", episodes=2)
        play(out=tmp_path / "run", episodes=3, overwrite=True)
        assert len(read_run(tmp_path / "run").held_out()) == 3
        write_run(tmp_path / "training")
        with pytest.raises(ConfigurationError, match="is the folder of a run of training"):
            play(out=tmp_path / "training", episodes=2, overwrite=True)
        assert read_run(tmp_path / "training").steps == [1, 2, 3, 4]


def test_ctrl_c_keeps_what_was_done(tmp_path):
    out = tmp_path / "e.jsonl"

    def press(episode, done, total):
        if done == 4:
            _thread.interrupt_main()

    result = evaluate(
        ID,
        "oracle",
        problems="arithmetic",
        episodes=5000,
        workers=2,
        env_options={"sandbox": StubSandbox(wait_s=0.002)},
        out=out,
        progress=press,
    )
    assert result.interrupted
    assert 4 <= result.played < 5000
    assert len(out.read_text().splitlines()) == result.played == len(result.episodes)
    assert not [thread for thread in threading.enumerate() if thread.name == "evaluate"]


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
    with pytest.raises(ConfigurationError, match="given by name"):
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
    with pytest.raises(ConfigurationError, match="say how many"):
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
    assert "  pass rate                        100.00 ± 0.00 %" in lines
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
        with pytest.raises(ConfigurationError, match="k = 4 was asked for"):
            play(n=2, k=[1, 4])


class TestWhatIsKept:
    def test_without_a_file_episodes_are_kept_only_if_that_is_wanted(self):
        result = play(keep=False)
        assert result.summary.pass_rate.value == 1.0
        with pytest.raises(ConfigurationError, match="were not kept"):
            _ = result.episodes

    def test_with_a_file_they_are_read_from_it(self, tmp_path):
        result = play(out=tmp_path / "e.jsonl")
        assert result.kept is None
        assert [episode.problem_id for episode in result.episodes] == [record["id"] for record in SUMS]

    def test_memory_does_not_grow_with_the_episodes_of_a_problem(self, tmp_path):
        text = "<answer>\\boxed{1}</answer> " + "x" * 50_000

        def peak(n):
            tracemalloc.reset_peak()
            before = tracemalloc.get_traced_memory()[0]
            options = {"agent_options": {"turns": [text]}, "problems": SUMS[:2], "out": tmp_path / f"{n}.jsonl"}
            play("scripted", n=n, workers=1, **options)
            return tracemalloc.get_traced_memory()[1] - before

        play("scripted", workers=1, agent_options={"turns": [text]})
        tracemalloc.start()
        try:
            few, many = peak(10), peak(100)
        finally:
            tracemalloc.stop()
        # 180 more episodes of 50 kB each would be 9 MB.
        assert many < few + 3_000_000


class TestTheSummaryOfTheFolder:
    def test_it_has_plain_figures_intervals_groups_versions_and_seeds(self, tmp_path):
        problems = [{**record, "level": 1 + n % 2, "source": "sums"} for n, record in enumerate(SUMS)]
        play("random_text", problems=problems, n=2, out=tmp_path / "run", agent_options={"answers": 0.5})
        summary = json.loads((tmp_path / "run/summary.json").read_text())
        for name in ("pass@1", "pass@2", "avg@2", "maj@2"):
            assert summary[name] == 0.0
            assert summary["intervals"][name][0] == 0.0 < summary["intervals"][name][1] < 0.3
        assert summary["by"]["difficulty"]["2"]["problems"] == 6
        assert summary["by"]["source"]["sums"]["pass@1"] == 0.0
        assert (summary["n"], summary["k"], summary["seed"]) == (2, [1, 2], 0)
        assert summary["versions"]["rstar2-env"]
        assert summary["determinism"]["stated"]
        assert summary["pass_rate"]["value"] == 0.0

    def test_the_table_shows_several_samples_and_groups(self):
        problems = [{**record, "level": 1 + n % 2} for n, record in enumerate(SUMS)]
        text = str(play(problems=problems, n=4, k=[1, 4], repeat=True))
        for words in ("problems × samples", "12 × 4", "pass@4", "maj@4", "avg@4", "difficulty 2", "8 of 8 the same"):
            assert words in text, words


def test_two_processes_do_not_write_one_file(tmp_path):
    out = tmp_path / "e.jsonl"
    seen = []

    def meanwhile(episode, done, total):
        if done == 3:
            with pytest.raises(ConfigurationError, match="Another process is writing"):
                play(out=out, resume=True)
            seen.append(done)

    play(out=out, progress=meanwhile)
    assert seen == [3]
    assert [path.name for path in tmp_path.iterdir()] == ["e.jsonl"]


KILLED = """
import itertools, os, random, time

turns = itertools.count()

class Guess:
    def reset(self, observation, info, *, seed):
        self.random = random.Random(seed)

    def act(self, observation, info):
        if next(turns) >= int(os.environ.get("HANG_AFTER", "1000000")):
            time.sleep(600)  # so that it is killed before it ends, however busy the machine is
        return f"<answer>\\\\boxed{{{self.random.randint(1, 30)}}}</answer>"
"""


@pytest.mark.slow
def test_an_evaluation_that_was_killed_twice_loses_and_repeats_no_episode_of_a_thousand(tmp_path):
    agent, out = tmp_path / "guess.py", tmp_path / "run"
    agent.write_text(KILLED)
    words = ["eval", ID, "--agent", f"{agent}:Guess", "--problems", "arithmetic", "--episodes", "250", "--n", "4"]
    command = [sys.executable, "-c", "from rstar2_env.cli import main; main()", *words, "--workers", "4"]
    file = out / "episodes/eval-000000.jsonl"
    for enough, hang_after in ((150, 300), (500, 400)):
        resume = ["--resume"] if out.exists() else []
        own = {**os.environ, "HANG_AFTER": str(hang_after)}
        process = subprocess.Popen([*command, "--out", out, *resume], start_new_session=True, env=own)
        while not file.exists() or file.read_bytes().count(b"\n") < enough:
            assert process.poll() is None
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    kept = [json.loads(line)["index"] for line in file.read_bytes().split(b"\n")[:-1]]
    assert 500 <= len(kept) == len(set(kept)) <= 700
    done = subprocess.run([*command, "--out", out, "--resume", "--json"], capture_output=True, check=True)
    summary = json.loads(done.stdout)
    assert summary["played"] == 1000 - len(kept)
    lines = {line["index"]: line for line in map(json.loads, file.read_text().splitlines())}
    assert sorted(lines) == list(range(1000))
    whole = evaluate(ID, f"{agent}:Guess", problems="arithmetic", episodes=250, n=4, workers=4)
    assert [lines[index]["messages"] for index in range(1000)] == [e.record()["messages"] for e in whole.episodes]
    for name in ("pass@1", "pass@4", "maj@4"):
        assert summary[name] == whole.figures.numbers()[name]
        assert summary["intervals"][name] == whole.figures.intervals()[name]
    assert [event["event"] for event in read_run(out).events] == [
        "started",
        "resumed",
        "resumed",
        "evaluation",
        "finished",
    ]
