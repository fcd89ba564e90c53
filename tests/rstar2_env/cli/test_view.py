"""``rstar2 view`` from a shell."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest
from cli_runner import run
from hostile_run import TEXTS, write_hostile
from run_sample import write_run
from viewed import write_page
from waiting import wait_for

from rstar2_env.view.server import ViewServer, page


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("RSTAR2_VIEW_CACHE", str(tmp_path / "cache"))


def test_text_goes_from_the_overview_to_one_episode(tmp_path):
    write_run(tmp_path / "run")
    assert "Success: held out" in run("view", "--text", tmp_path / "run", columns=100).output
    listed = run("view", "--text", tmp_path / "run", "--episodes", "3", "--filter", "split=train&kept=0", columns=100)
    assert "3 of 12 episodes" in listed.output
    assert "é step 1 group 0" in run("view", tmp_path / "run", "--episode", "train-1-0", columns=100).output
    assert "answered 9" in run("view", "--text", tmp_path / "run" / "episodes" / "train-000001.jsonl.gz").output


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["view", "--text", "nowhere"], "does not exist: give the folder of a run"),
        (["view", "--text", "empty"], "contains a run.json"),
        (["view", "empty/x.txt"], "or the .jsonl file of an evaluation"),
        (["view", "--text", "run", "--filter", "kepd=1"], "the unknown filter 'kepd'"),
        (["view", "--text", "run", "--filter", "kept"], "must be NAME=VALUE"),
        (
            ["view", "--text", "run", "--filter", "step=x"],
            "--filter: step must be a whole number, or a range",
        ),
        (["view", "--text", "run", "--filter", "step=9-3"], "--filter: step must be a range from the lower"),
        (["view", "--text", "run", "--filter", "kept=2"], "--filter: kept must be 1 or 0, not '2'."),
        (["view", "--text", "run", "--filter", "min_reward=x"], "--filter: min_reward must be a number, not 'x'."),
        (["view", "--text", "run", "--filter", "q=?"], "--filter: The search (q) must contain"),
        (["view", "run", "--filter", "kept=1"], "add --text or --json; --filter and --episodes also apply to --report"),
        (["view", "--text", "run", "--sort", "x"], "cannot be sorted by 'x'"),
        (["view", "--text", "run", "--report", "x.html"], "--report writes a page, but --text, --json and --episode"),
        (["view", "run", "--report", "x.html", "--sort", "step"], "are sorted on the page itself: omit --sort"),
        (["view", "--text", "run", "--episode", "x"], "is not the name of an episode"),
        (["view", "empty/x.txt", "--text"], "does not contain episodes"),
        (["view", "run/episodes/train-000001.jsonl.gz", "--episode", "99"], "does not contain episode 99"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_mistake_is_told_in_one_line(tmp_path, monkeypatch, arguments, told):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "x.txt").write_text("")
    write_run(tmp_path / "run", steps=1)
    done = run(*arguments)
    assert done.exit_code == 2
    assert told in " ".join(done.stderr.split())


def shown_as_json(*arguments):
    """What a command prints, which is one object of JSON that no terminal interprets."""
    done = run("view", *arguments, "--json")
    assert done.exit_code == 0, done.stderr
    assert all(" " <= sign <= "~" for sign in done.stdout.rstrip("\n"))
    return json.loads(done.stdout)


def test_json_has_the_content_of_the_print(tmp_path):
    write_run(tmp_path / "run")
    overview = shown_as_json(tmp_path / "run")
    assert [row["run"] for row in overview["runs"]] == ["run"]
    assert overview["overviews"][0]["run"]["episode_figures"]["train"]["ends"] == {"answered": 36}
    assert overview["overviews"][0]["metrics"]["series"]["eval/pass_rate"][0] == 0.25
    asked = ("--episodes", "2", "--filter", "split=train&kept=0", "--sort", "-step")
    listed = shown_as_json(tmp_path / "run", *asked)
    printed = run("view", tmp_path / "run", "--text", *asked, columns=200).output
    assert (listed["run"], listed["total"], len(listed["episodes"])) == ("run", 12, 2)
    assert all(row["key"] in printed for row in listed["episodes"])
    one = shown_as_json(tmp_path / "run", "--episode", "train-1-0")
    assert one["key"] == one["episode"]["key"] == "train-1-0"
    assert any("é step 1 group 0" in message["content"] for message in one["episode"]["messages"])
    file = tmp_path / "run" / "episodes" / "train-000001.jsonl.gz"
    assert shown_as_json(file)["summary"]["ends"] == {"answered": 9}
    assert shown_as_json(file, "--episode", "4")["episode"]["group"] == 1


def test_json_of_a_hostile_run_has_no_sign_that_a_terminal_interprets(tmp_path):
    folder = write_hostile(tmp_path).folder
    for number, text in enumerate(TEXTS.values()):
        found = shown_as_json(folder, "--episode", f"train-1-{2 * number}")
        assert found["episode"]["messages"][0]["content"] == text


def test_an_empty_folder_waits_for_its_first_run(tmp_path, monkeypatch):
    (tmp_path / "empty").mkdir()
    monkeypatch.setattr(page, "PageFiles", lambda made=page.PageFiles: made(write_page(tmp_path / "page")))
    shown: list[list[str]] = []

    def first_run_comes(server):
        shown.append([row["run"] for row in server.answers.runs()["runs"]])
        write_run(tmp_path / "empty" / "first", steps=1)
        wait_for(lambda: server.answers.runs()["runs"] != [])
        shown.append([row["run"] for row in server.answers.runs()["runs"]])

    monkeypatch.setattr(ViewServer, "wait", first_run_comes)
    done = run("view", tmp_path / "empty", "--port", "0", "--no-browser")
    assert done.exit_code == 0
    assert f"There are no runs in {tmp_path / 'empty'} yet" in " ".join(done.stderr.split())
    assert shown == [[], ["first"]]


def test_nothing_heavy_is_loaded():
    code = (
        "import sys, rstar2_env.view.answers, rstar2_env.view.export, rstar2_env.view.server, rstar2_env.cli.view;"
        "print([name for name in ('torch', 'transformers', 'starlette', 'uvicorn') if name in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


@pytest.mark.parametrize(("flags", "opens"), [((), True), (("--no-browser",), False), (("--token",), False)], ids=str)
def test_a_browser_is_opened_on_the_page_and_never_given_the_token(tmp_path, monkeypatch, flags, opens):
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    monkeypatch.setattr(page, "PageFiles", lambda made=page.PageFiles: made(write_page(tmp_path / "page")))
    monkeypatch.setattr(ViewServer, "wait", lambda server: None)
    write_run(tmp_path / "run", steps=1)
    told = run("view", tmp_path / "run", "--port", "0", *flags).stderr
    (link,) = re.findall(r"http://127\.0\.0\.1:\d+/\S*", told)
    assert ("?token=" in link) == ("Open this link in a browser yourself" in told) == ("--token" in flags)
    assert "***" not in link
    assert opened == ([link] if opens else [])
