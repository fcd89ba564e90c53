"""The server answers about runs while they are written, and for whoever asks again only what has changed."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
import sys
import threading

import pytest
from made_evaluations import write_counts
from run_sample import CONFIG, decisions_of, episode, groups_of, write_run
from starlette.requests import Request
from viewed import viewed, write_page

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.run_folder import RunWriter, TokensEntry, read_run
from rstar2_env.view import answers
from rstar2_env.view.index import RunIndex
from rstar2_env.view.queries.findings import code_state
from rstar2_env.view.queries.health import health_of
from rstar2_env.view.server import ViewOptions
from rstar2_env.view.server.page import PageFiles

_WRITER = """
import sys
from run_sample import CONFIG, write_step
from rstar2_env.core.run_folder import RunWriter
writer = RunWriter(sys.argv[1], tokens=True)
writer.begin(CONFIG)
print("begun", flush=True)
for step in range(1, 4):
    sys.stdin.readline()
    write_step(writer, step)
    print(step, flush=True)
sys.stdin.readline()
writer.event("finished", 3)
print("done", flush=True)
"""


def test_what_another_process_writes_is_told_and_shown(tmp_path):
    run = tmp_path / "runs" / "live"
    process = subprocess.Popen(
        [sys.executable, "-c", _WRITER, str(run)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={"PYTHONPATH": ":".join(sys.path), "PATH": ""},
    )
    try:
        assert process.stdout.readline() == "begun\n"
        with viewed(tmp_path / "runs", base=tmp_path, options=ViewOptions(port=0, poll_s=300)) as ask:
            assert ask.json("runs/live")["state"] == "running"
            for step in (1, 2, 3):
                cursor = ask.json("changes")["cursor"]
                told: list[dict] = []
                waiting = threading.Thread(target=lambda at=cursor, to=told: to.append(ask.json(f"changes?since={at}")))
                waiting.start()
                process.stdin.write("\n")
                process.stdin.flush()
                assert process.stdout.readline() == f"{step}\n"
                waiting.join(200)
                assert told[0]["changed"] == ["live"]
                rows = ask.until(f"runs/live/episodes?step={step}&split=train", lambda page: page["total"] == 9)["rows"]
                assert {row["step"] for row in rows} == {step}
            ask.until("runs/live/metrics", lambda found: found["steps"] == [1, 2, 3])
            process.stdin.write("\n")
            process.stdin.flush()
            ask.until("runs", lambda found: found["runs"][0]["state"] == "finished")
    finally:
        process.kill()
        process.communicate()


def test_who_waits_for_a_change_is_answered_when_the_server_ends(tmp_path):
    write_run(tmp_path / "run", steps=1)
    told: list[dict] = []
    with viewed(tmp_path / "run", base=tmp_path, options=ViewOptions(port=0, poll_s=600.0)) as ask:
        ask.read("run")
        assert ask.json("changes")["changed"] == []
        cursor = ask.until("changes", lambda found: ask.json("changes")["cursor"] == found["cursor"])["cursor"]
        waiting = threading.Thread(target=lambda: told.append(ask.json(f"changes?since={cursor}")))
        waiting.start()
        waiting.join(1)
        assert waiting.is_alive()
    waiting.join(30)
    assert told == [{"cursor": cursor, "changed": [], "runs": False}]


def test_a_run_that_goes_back_loses_what_it_took_back(tmp_path):
    run = tmp_path / "run"
    write_run(run, steps=4)
    with viewed(run, base=tmp_path) as ask:
        ask.read("run")
        key = ask.json("runs/run/episodes?step=4&split=train")["rows"][0]["key"]
        RunWriter(run, tokens=True).begin(CONFIG, resumed=2)
        ask.until("runs/run/episodes?step=3-&split=train", lambda page: page["total"] == 0)
        assert ask(f"/api/runs/run/episodes/{key}").status == 404
        found = ask.until("runs/run/metrics", lambda found: found["steps"][-1] == 2)
        assert found["series"]["eval/pass_rate"][-1] is None, "the evaluation after step 4 was taken back"


def test_a_folder_that_is_deleted_goes_and_one_that_comes_is_shown(tmp_path):
    write_run(tmp_path / "runs" / "a")
    with viewed(tmp_path / "runs", base=tmp_path) as ask:
        ask.read("a")
        cursor = ask.json("changes")["cursor"]
        write_run(tmp_path / "runs" / "b")
        ask.until(f"changes?since={cursor}", lambda found: found["runs"])
        ask.until("runs", lambda found: [row["run"] for row in found["runs"]] == ["a", "b"])
        shutil.rmtree(tmp_path / "runs" / "a")
        ask.until("runs", lambda found: [row["run"] for row in found["runs"]] == ["b"])
        assert ask("/api/runs/a").status == 404


def test_it_answers_what_the_one_reader_reads(tmp_path):
    run = tmp_path / "run"
    write_run(run)
    read = read_run(run)
    with viewed(run, base=tmp_path) as ask:
        found = ask.read("run")
        assert (found["kind"], found["recipe"], found["steps"]) == ("training", "grpo_roc", 4)
        assert found["config"] == read.config
        metrics = ask.json("runs/run/metrics")
        assert [line["loss"] for line in read.metrics()] == metrics["series"]["loss"][1:]
        for step in read.steps:
            rows = ask.json(f"runs/run/episodes?split=train&step={step}")["rows"]
            entries = read.episodes(step)
            assert [(row["group"], row["member"]) for row in rows] == [
                (entry.episode.group, entry.member) for entry in entries
            ]
            assert [row["reward"] for row in rows] == [entry.episode.reward for entry in entries]
            line = ask.json(f"runs/run/episodes/{rows[1]['key']}")
            assert [one["content"] for one in line["messages"]] == [one.content for one in entries[1].episode.messages]
            tokens = ask.json(f"runs/run/episodes/{rows[1]['key']}/tokens")["tokens"]
            assert [one["ratio"] for one in tokens] == read.tokens(step)[0].ratios


def test_a_group_shows_who_trains_and_why_others_do_not(tmp_path):
    run = tmp_path / "run"
    writer = RunWriter(run)
    writer.begin(CONFIG)
    groups = groups_of(1, count=2, size=4)
    writer.train(1, groups, decisions_of(groups))
    with viewed(run, base=tmp_path) as ask:
        ask.read("run")
        row = ask.json("runs/run/groups?sort=-group")["rows"][0]
        assert (row["group"], row["played"], row["kept"], row["reasons"], row["rejected"]) == (
            1,
            4,
            3,
            {"quota": 1},
            False,
        )
        assert row["marks"] == "wWWW"
        group = ask.json("runs/run/groups/1/0")
        assert [one["reason"] for one in group["episodes"]] == ["quota", "", "", ""]
        assert group["selector"] == {"name": "roc", "options": {"mode": "rank"}, "summary": ""}
        assert group["quotas"] == {"right": {"played": 0, "kept": 0}, "wrong": {"played": 4, "kept": 3}}
        assert group["neighbours"] == {"previous": None, "next": [1, 1, 0]}
        assert ask("/api/runs/run/groups/1/9").status == 404


def test_a_file_that_changed_while_it_was_read_is_to_be_asked_for_again(tmp_path, monkeypatch):
    def changed(self, file, *place):
        raise EOFError(f"{file} ends before its line.")

    write_run(tmp_path / "run", steps=1)
    with viewed(tmp_path / "run", base=tmp_path) as ask:
        ask.read("run")
        monkeypatch.setattr(RunIndex, "record", changed)
        reply = ask("/api/runs/run/episodes/train-1-0")
        assert (reply.status, "try again" in reply.json["error"]) == (409, True)


def test_tokens_are_those_of_the_episodes_own_process_and_of_training_alone(tmp_path):
    for rank in range(2):
        writer = RunWriter(tmp_path / "run", rank=rank, tokens=True)
        if not rank:
            writer.begin(CONFIG)
            writer.held_out(1, [episode(0, 0, 9)], member=1)
        writer.train(1, groups_of(1, count=1))
        writer.tokens([TokensEntry(1, 0, 1, [1], [2, 3], [1, 1], [-1.0, -1.0], [0.5, 0.5], [rank + 1.0] * 2)])
    with viewed(tmp_path / "run", base=tmp_path) as ask:
        ask.read("run")
        for key, ratio in (("train-1-1", 1.0), ("train-1-1-rank1", 2.0)):
            tokens = ask.json(f"runs/run/episodes/{key}/tokens")["tokens"]
            assert [one["ratio"] for one in tokens] == [ratio] * 2
        assert ask.json("runs/run/episodes/train-1-1")["has_tokens"]
        found = ask.json("runs/run/episodes/eval-1-0")
        assert (found["row"]["member"], found["has_tokens"]) == (1, False)


def test_of_training_the_newest_episodes_of_a_problem_are_compared(tmp_path):
    for name in "ab":
        write_run(tmp_path / name)
    with viewed(tmp_path / "a", tmp_path / "b", base=tmp_path) as ask:
        ask.read("a")
        ask.read("b")
        row = ask.json("compare?a=a&b=b&split=train")["rows"][0]
        assert [row[name]["key"] for name in "ab"] == ["train-4-0"] * 2
        assert (row["change"], row["gained"]) == ("same", False)


def test_two_runs_are_compared_after_the_last_step_that_both_evaluated(tmp_path):
    for name, steps in (("a", 4), ("b", 2), ("c", 3)):
        writer = write_run(tmp_path / name, steps)
        if name == "a":
            writer.held_out(2, [episode(0, 0, 97)])
    write_counts(tmp_path / "e.jsonl", {"p": (1, 1)})
    with viewed(*(tmp_path / name for name in ("a", "b", "c", "e.jsonl")), base=tmp_path) as ask:
        for name in "abce":
            ask.read(name)
        steps = {
            asked: ask.json(f"compare?split=eval&{asked}")["steps"]
            for asked in ("a=a&b=b", "a=b&b=a", "a=a&b=b&a_step=4", "a=a&b=a", "a=a&b=c", "a=a&b=e")
        }
        assert steps == {
            "a=a&b=b": [2, 2],
            "a=b&b=a": [2, 2],
            "a=a&b=b&a_step=4": [4, 2],
            "a=a&b=a": [4, 4],
            "a=a&b=c": [4, 3],  # before training, both are the same model
            "a=a&b=e": [4, 0],
        }


def test_two_runs_are_compared_over_the_problems_that_both_played(tmp_path):
    write_counts(tmp_path / "a.jsonl", {"p": (1, 4), "q": (2, 4), "only a": (1, 1)})
    write_counts(tmp_path / "b.jsonl", {"p": (3, 4), "q": (2, 4), "only b": (1, 1)}, golds={"q": "1"})
    write_counts(tmp_path / "c.jsonl", {"p": (1, 1), "q": (1, 4)})
    with viewed(*(tmp_path / f"{name}.jsonl" for name in "abc"), base=tmp_path) as ask:
        for name in "abc":
            ask.read(name)
        found = ask.json("compare?a=a&b=b&sort=-difference")
        assert [(row["problem_id"], row["difference"], row["change"]) for row in found["rows"]] == [
            ("p", 0.5, "gained"),
            ("q", 0.0, "same"),
        ]
        figures = found["figures"]
        assert (figures["a"], figures["b"], figures["difference"]) == (0.375, 0.625, 0.25)
        assert (figures["gained"], figures["lost"], figures["same"]) == (1, 0, 1)
        assert (figures["only_a"], figures["only_b"]) == (1, 1)
        assert figures["single"] == 0
        assert len(found["rows"][0]["a"]["keys"]) == 4
        assert ask.json("compare?a=a&b=b&change=gained")["total"] == 1
        assert ask.json("compare?a=a&b=c")["figures"]["single"] == 1
        problem = ask.json("runs/b/problems/q")
        assert (problem["rate"], problem["gold"], problem["count"]) == (0.5, "1", [4])


def test_runs_are_told_apart_by_short_names(tmp_path):
    for name in ("x/run", "y/run", "z/Run é"):
        write_run(tmp_path / "runs" / name, steps=1)
    with viewed(tmp_path / "runs" / "x" / "run", tmp_path / "runs", base=tmp_path) as ask:
        names = [row["run"] for row in ask.json("runs")["runs"]]
        assert len(set(names)) == 3
        assert names[0] == "run"


def test_the_page_is_served_and_kept_by_the_browser(tmp_path):
    write_run(tmp_path / "run", steps=1)
    with viewed(tmp_path / "run", base=tmp_path) as ask:
        page = ask("/")
        assert page.headers["content-type"] == "text/html; charset=utf-8"
        assert page.headers["cache-control"] == "no-cache"
        assert ask("/", If_None_Match=page.headers["etag"]).status == 304
        assert ask("/app.js").headers["content-type"].startswith("text/javascript")


def test_large_answers_and_files_are_compressed_for_who_accepts_it(tmp_path):
    write_run(tmp_path / "run")
    with viewed(tmp_path / "run", base=tmp_path) as ask:
        ask.read("run")
        plain = ask("/api/runs/run/episodes")
        packed = ask("/api/runs/run/episodes", Accept_Encoding="gzip")
        assert len(plain.body) > 4096
        assert "content-encoding" not in plain.headers
        assert packed.headers["content-encoding"] == "gzip"
        assert gzip.decompress(packed.body) == plain.body
        assert len(packed.body) < len(plain.body) / 4


def test_a_large_file_of_the_page_is_compressed_once(tmp_path, monkeypatch):
    folder = write_page(tmp_path / "page")
    text = "let a = 1;\n" * 1000
    (folder / "large.js").write_text(text)
    files = PageFiles(folder)
    monkeypatch.setattr(gzip, "compress", lambda *given: pytest.fail("compressed for a request"))

    def served(encoding):
        headers = [(b"accept-encoding", encoding)]
        return files.respond(Request({"type": "http", "path": "/large.js", "headers": headers}))

    zipped, plain = served(b"gzip, br"), served(b"br")
    assert (zipped.headers["content-encoding"], zipped.headers["vary"]) == ("gzip", "Accept-Encoding")
    assert gzip.decompress(zipped.body).decode() == plain.body.decode() == text
    assert "content-encoding" not in plain.headers
    assert zipped.headers["etag"] == plain.headers["etag"]


def test_figures_of_a_filtered_table_are_answered(tmp_path):
    write_run(tmp_path / "run")
    with viewed(tmp_path / "run", base=tmp_path) as ask:
        ask.read("run")
        rows = ask.json("runs/run/episodes?split=train&kept=0")["rows"]
        found = ask.json("runs/run/aggregates?split=train&kept=0")
        assert found["figures"]["episodes"] == len(rows) > 0
        assert ask("/api/runs/run/aggregates?step=x").status == 400


def test_options_that_differ_are_told_by_their_dotted_names(tmp_path):
    for name, seed in (("a", 0), ("b", 1)):
        writer = RunWriter(tmp_path / name)
        writer.begin(
            {**CONFIG, "run": {**CONFIG["run"], "seed": seed}, "parts": {"selector": {"name": "roc", "x": seed}}}
        )
    with viewed(tmp_path / "a", tmp_path / "b", base=tmp_path) as ask:
        options = ask.json("difference?a=a&b=b")["options"]
        assert options == [{"path": "parts.selector.x", "a": 0, "b": 1}, {"path": "run.seed", "a": 0, "b": 1}]
        rows = ask.json("runs")["runs"]
        assert [row["seed"] for row in rows] == [0, 1]
        assert rows[0]["group"] != rows[1]["group"]


def test_a_run_has_findings_and_a_pipeline_has_those_of_its_stages(tmp_path):
    write_run(tmp_path / "runs" / "run")
    RunWriter(tmp_path / "runs" / "chain", kind="pipeline").begin({"name": "chain", "stages": {}})
    with viewed(tmp_path / "runs", base=tmp_path) as ask:
        found = ask.until("runs/run/findings", lambda answer: answer["again_s"] is None)
        assert found["silent"]
        assert found["failed"] == ""
        refused = ask("/api/runs/chain/findings")
        assert (refused.status, "one of its stages" in refused.json["error"]) == (400, True)
        assert ask("/api/runs/other/findings").status == 404


@pytest.mark.parametrize("path", ["runs/run/sampler", "runs/run/statuses?split=eval", "runs/run/problems"])
def test_a_run_without_episodes_has_answers_too(tmp_path, path):
    RunWriter(tmp_path / "run").begin(CONFIG)
    with viewed(tmp_path / "run", base=tmp_path) as ask:
        assert json.loads(json.dumps(ask.json(path)))


@pytest.mark.parametrize("host", ["nowhere.invalid", "192.0.2.1", "a" * 100, "two words"])
def test_an_address_that_this_machine_has_not_is_no_matter_of_the_port(tmp_path, host):
    write_run(tmp_path / "run", steps=1)
    told = rf"[Cc]annot listen on {host}: .*Use an address of this machine.*\(host=\.\.\.\)"
    options = ViewOptions.create(host, 0)
    with pytest.raises(ConfigurationError, match=told), viewed(tmp_path / "run", base=tmp_path, options=options):
        pass


def test_a_port_that_is_taken_is_told(tmp_path):
    write_run(tmp_path / "run", steps=1)
    with viewed(tmp_path / "run", base=tmp_path) as ask:
        told = rf"[Cc]annot listen on 127\.0\.0\.1:{ask.port}: Address already in use.*Choose another port"
        options = ViewOptions.create("127.0.0.1", ask.port)
        with pytest.raises(ConfigurationError, match=told), viewed(tmp_path / "run", base=tmp_path, options=options):
            pass


def test_health_is_stored_for_the_next_viewer_until_the_run_changes(tmp_path, monkeypatch):
    write_run(tmp_path / "run")
    with (tmp_path / "run" / "metrics.jsonl").open("a") as file:
        file.write('{"step": 1, "grad_norm": 0.5}\n')
    computed = []
    monkeypatch.setattr(answers.health, "health_of", lambda *given: computed.append(given) or health_of(*given))

    def ask():
        with viewed(tmp_path / "run", base=tmp_path) as asker:
            # Nothing is stored while the index is written.
            asker.until("runs", lambda found: found["runs"][0]["indexing"] is None)
            return asker.json("runs/run")["health"]

    first = ask()
    assert first
    assert ask() == first
    assert len(computed) == 1
    os.utime(tmp_path / "run" / "metrics.jsonl", ns=(1, 1))
    ask()
    assert len(computed) == 2


def test_checks_are_imported_before_the_first_request(tmp_path):
    code_state.cache_clear()
    write_run(tmp_path / "run", steps=1)
    with viewed(tmp_path / "run", base=tmp_path):
        assert code_state.cache_info().currsize == 1
