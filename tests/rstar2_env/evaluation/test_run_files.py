"""Claims about what an evaluation writes: its file, its folder, its summary, and how it goes on after a stop."""

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

import pytest
from page_reader import check_page_reader
from places import SHARED
from run_sample import write_run

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.run_folder import read_run
from rstar2_env.core.status import ToolStatus
from rstar2_env.evaluation.result import EvalResult
from rstar2_env.evaluation.run import evaluate
from rstar2_env.testing.stub_sandbox import StubSandbox

ID = "rstar2/MathTool-v0"
SHARED = SHARED / "data"
SUMS = [{"id": f"sum-{n}", "question": f"{n}+1?", "answer": n + 1, "expression": f"{n}+1"} for n in range(12)]


def play(agent: str = "oracle", **options: object) -> EvalResult:
    options.setdefault("env_options", {"sandbox": StubSandbox()})
    return evaluate(ID, agent, **{"problems": SUMS, "workers": 3, **options})


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
    with pytest.raises(ConfigurationError, match="already exists"):
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
    with pytest.raises(ConfigurationError, match=r"Line 1 of .*e\.jsonl belongs to another evaluation"):
        play(out=out, resume=True, **other)
    assert out.read_text() == before


def test_what_is_no_file_of_episodes_is_not_resumed(tmp_path):
    out = tmp_path / "e.jsonl"
    out.write_text('{"question": "q"}\n')
    with pytest.raises(ConfigurationError, match=r"Line 1 of .*e\.jsonl is not an episode"):
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
        with pytest.raises(ConfigurationError, match="already holds an evaluation"):
            play(out=tmp_path / "run", episodes=2)
        play(out=tmp_path / "run", episodes=3, overwrite=True)
        assert len(read_run(tmp_path / "run").held_out()) == 3
        write_run(tmp_path / "training")
        with pytest.raises(ConfigurationError, match="holds a training run"):
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
        for words in ("problems × samples", "12 × 4", "pass@4", "maj@4", "avg@4", "difficulty 2", "8 of 8 identical"):
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
    words = ["eval", ID, "--agent", f"{agent}:Guess", "--problems", "arithmetic", "--episodes", "250", "--samples", "4"]
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
