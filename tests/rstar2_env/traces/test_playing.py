"""Claims about traces by rejection sampling: which episodes are kept, budgets, resume, and worked solutions."""

from __future__ import annotations

import json
import time

import pytest

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.progress import activities, screens
from rstar2_env.core.stop_request import Stop
from rstar2_env.traces.playing import TriesOptions, episodes_file, play_traces
from rstar2_env.traces.reading import read_traces
from rstar2_env.traces.selection import TraceSelection
from rstar2_env.traces.writer import has_worked_solution

ENV = "rstar2/MathTool-v0"
PROBLEMS = [{"id": f"p{n}", "question": f"{n}+1?", "answer": n + 1} for n in range(8)]


class Sometimes:
    """Answers right in about a third of the tries, by the seed of the try; problem p0 never."""

    needs_problem = True
    tokens = 7

    def reset(self, observation, info, *, seed, problem):
        self.right = seed % 3 == 0 and problem.id != "p0"
        self.answer = problem.answer if self.right else "-5"
        self.usage = {"completion_tokens": self.tokens}

    def act(self, observation, info):
        return f"<answer>\\boxed{{{self.answer}}}</answer>"


def play(folder, *, agent=Sometimes, env=ENV, **options):
    options = {"problems": PROBLEMS, "workers": 2, **options}
    return play_traces(env, agent, out=folder / "t.jsonl", **options)


def test_problems_are_played_until_they_have_their_trace_and_every_trace_earned_its_reward(tmp_path):
    result = play(tmp_path)
    traces = read_traces(result.out)
    assert f"traces={len(traces)}, problems=8, solved=7" in repr(result)
    assert [trace["index"] for trace in traces] == list(range(len(traces)))
    assert len({trace["problem_id"] for trace in traces}) == len(traces) == result.solved == 7
    assert all(trace["reward"] == 1 and trace["source"] == "played" for trace in traces)
    assert all(trace["messages"][-1]["role"] == "assistant" for trace in traces)
    lines = [json.loads(line) for line in result.episodes_file.read_text().splitlines()]
    tries = {name: [line for line in lines if line["problem_id"] == name] for name in ("p0", "p1")}
    assert len(tries["p0"]) == 8
    assert [line["correct"] for line in sorted(tries["p1"], key=lambda line: line["sample"])].index(True) == len(
        tries["p1"]
    ) - 1
    for trace in traces:
        played = sum(line["problem_id"] == trace["problem_id"] for line in lines)
        assert trace["success_rate"] == pytest.approx(1 / played)


@pytest.mark.parametrize("progress", [True, False])
def test_a_call_from_python_shows_its_progress_unless_it_is_declined(progress, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(activities, "TICK_S", 0.0)
    monkeypatch.setattr(screens, "FIRST_LINE_S", 0.0)
    result = play(tmp_path, **({} if progress else {"progress": False}))
    shown = capsys.readouterr().err
    assert (f"{len(result.traces)} kept" in shown) is progress
    assert (shown == "") is not progress


def test_the_traces_are_the_same_for_any_number_of_workers(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    assert play(tmp_path / "a", workers=1).traces == play(tmp_path / "b", workers=4).traces


@pytest.mark.parametrize("stopped_after", [1, 9, 15])
def test_a_resumed_run_gives_the_traces_of_an_uninterrupted_one(tmp_path, stopped_after):
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    whole.mkdir()
    cut.mkdir()
    expected = play(whole)
    stop = Stop()
    first = play(cut, stop=stop, workers=1, progress=lambda done, *_: stop.request() if done == stopped_after else None)
    assert first.stopped_by == "interruption"
    assert first.episodes < expected.episodes
    resumed = play(cut, resume=True)
    assert resumed.traces == expected.traces
    assert resumed.episodes == expected.episodes
    assert resumed.out.read_text() == expected.out.read_text()


def test_other_problems_or_another_seed_are_not_resumed(tmp_path):
    play(tmp_path)
    before = (tmp_path / "t.jsonl").read_bytes()
    with pytest.raises(ConfigurationError, match="another evaluation"):
        play(tmp_path, resume=True, seed=1)
    with pytest.raises(ConfigurationError, match="already exists"):
        play(tmp_path)
    assert (tmp_path / "t.jsonl").read_bytes() == before


def test_traces_that_were_not_played_are_not_replaced_by_resume(tmp_path):
    (tmp_path / "t.jsonl").write_text("mine\n")
    with pytest.raises(ConfigurationError, match="cannot be resumed"):
        play(tmp_path, resume=True)
    assert (tmp_path / "t.jsonl").read_text() == "mine\n"


def test_the_budget_of_episodes_counts_those_before_a_resume(tmp_path):
    first = play(tmp_path, tries=TriesOptions(max_total_episodes=5))
    assert (first.episodes, first.stopped_by) == (5, "max_total_episodes")
    second = play(tmp_path, tries=TriesOptions(max_total_episodes=12), resume=True)
    assert (second.episodes, second.stopped_by) == (12, "max_total_episodes")
    third = play(tmp_path, resume=True)
    assert third.stopped_by == ""


def test_no_episode_begins_after_the_budget_of_tokens(tmp_path):
    class Slow(Sometimes):
        def act(self, observation, info):
            time.sleep(0.05)  # as a model would take, so that each episode is counted before the next begins
            return super().act(observation, info)

    result = play(tmp_path, agent=Slow, tries=TriesOptions(max_total_tokens=30), workers=1)
    assert result.stopped_by == "max_total_tokens"
    assert 30 <= result.tokens <= 30 + 7 * 2
    assert result.tokens == 7 * result.episodes


def test_a_budget_of_tokens_needs_a_player_that_counts_them(tmp_path):
    with pytest.raises(ConfigurationError, match="does not report the number of its tokens"):
        play(
            tmp_path, agent=lambda: type("Mute", (Sometimes,), {"tokens": 0})(), tries=TriesOptions(max_total_tokens=30)
        )


def test_several_traces_of_a_problem_differ(tmp_path):
    class Wordy(Sometimes):
        def reset(self, observation, info, *, seed, problem):
            super().reset(observation, info, seed=seed, problem=problem)
            self.words = f"{seed % 4}. "

        def act(self, observation, info):
            return self.words + super().act(observation, info)

    result = play(tmp_path, agent=Wordy, tries=TriesOptions(tries=24), selection=TraceSelection(per_problem=2))
    turns = [(trace.problem_id, trace.messages[-1].content) for trace in result.traces]
    assert len(set(turns)) == len(turns)
    per_problem = [sum(name == own for own, _ in turns) for name in {own for own, _ in turns}]
    assert max(per_problem) == 2


@pytest.mark.parametrize(("worked", "written"), [("unsolved", {"p0"}), ("all", {"p0", "p2", "p4", "p6"})])
def test_worked_solutions_fill_the_problems_that_remain(tmp_path, worked, written):
    problems = [{**one, **({} if n % 2 else {"expression": f"{n}+1"})} for n, one in enumerate(PROBLEMS)]
    result = play(tmp_path, problems=problems, tries=TriesOptions(worked=worked))
    assert {trace.problem_id for trace in result.traces if trace.source == "worked"} == written
    assert sum(trace.source == "played" for trace in result.traces) == 7
    unsolved = next(trace for trace in result.traces if trace.problem_id == "p0")
    assert (unsolved.success_rate, unsolved.level, unsolved.reward) == (0.0, "hard", 1.0)


def test_easy_problems_keep_to_their_share(tmp_path):
    free = play(tmp_path)
    shares = {"easy": 0.25}
    limited = play(tmp_path, resume=True, selection=TraceSelection(shares=shares))
    easy = [sum(trace.level == "easy" for trace in result.traces) for result in (free, limited)]
    assert easy[0] / len(free.traces) > 0.25 >= easy[1] / len(limited.traces)
    assert limited.reasons["the share of traces of this level was used up"] == len(free.traces) - len(limited.traces)
    assert limited.episodes == free.episodes


def test_without_right_episodes_no_file_of_traces_is_left(tmp_path):
    assert play(tmp_path, agent=lambda: Never()).traces == ()
    assert not (tmp_path / "t.jsonl").exists()
    assert episodes_file(tmp_path / "t.jsonl").exists()


class Never(Sometimes):
    def reset(self, observation, info, *, seed, problem):
        super().reset(observation, info, seed=1, problem=problem)


def test_a_worked_solution_is_seen_in_each_of_its_forms():
    from rstar2_env.problems import load_problems

    rows = [
        {"expression": "1+1"},
        {"calculations": ["1+1=2"]},
        {"solution": "It is <<1+1=2>>2."},
        {"solution": "2"},
        {},
    ]
    problems = load_problems([{"question": f"q{n}", "answer": 2, **row} for n, row in enumerate(rows)])
    assert [has_worked_solution(one) for one in problems] == [True, True, True, False, False]
