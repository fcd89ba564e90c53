"""An export is one page with everything in it: it asks for nothing, runs its own script alone, says what it lacks."""

from __future__ import annotations

import base64
import errno
import gzip
import hashlib
import json
import os
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hostile_run import write_hostile
from run_sample import CONFIG, decisions_of, episode, groups_of, write_run
from viewed import viewed, write_page

from rstar2_env.core.errors import ConfigurationError, DiskFullError
from rstar2_env.core.run_folder import RunWriter
from rstar2_env.view.answers import Answers
from rstar2_env.view.export.write import write_export
from rstar2_env.view.following import Follower


class Page(HTMLParser):
    """What a browser makes of a page: its elements, and the text of its scripts and styles."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self._inside = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag in ("script", "style"):
            self._inside = tag
            self.texts.append((tag, ""))

    def handle_endtag(self, tag):
        self._inside = ""

    def handle_data(self, data):
        if self._inside:
            tag, text = self.texts[-1]
            self.texts[-1] = (tag, text + data)

    @property
    def data(self):
        packed = next(text for tag, text in self.texts if tag == "script")
        return json.loads(gzip.decompress(base64.b64decode(packed)))


def export(*roots, base, **options) -> Page:
    write_export(roots, base / "page.html", cache=base / "cache", static=write_page(base / "static"), **options)
    return Page((base / "page.html").read_text("utf-8"))


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    base = tmp_path_factory.mktemp("hostile")
    return export(write_hostile(base).folder, base=base)


def test_the_page_is_one_file_that_asks_for_nothing(hostile):
    assert [tag for tag, _ in hostile.elements].count("script") == 3
    for tag, attributes in hostile.elements:
        assert not {"src", "href", "srcset", "action", "data"} & attributes.keys(), (tag, attributes)


def test_what_a_model_wrote_is_not_in_the_page_as_markup(hostile):
    assert {tag for tag, _ in hostile.elements} == {"html", "head", "meta", "style", "body", "div", "script"}
    data = json.dumps(hostile.data, ensure_ascii=False)
    assert "<img" in data
    assert "</script><script>" in data


def test_its_policy_allows_its_own_script_and_style_alone(hostile):
    policy = next(one["content"] for tag, one in hostile.elements if tag == "meta" and "http-equiv" in one)
    for tag in ("script", "style"):
        texts = [text for name, text in hostile.texts if name == tag]
        own = texts[1:] if tag == "script" else texts  # the first script is the data
        digests = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in own]
        allowed = " ".join(f"'sha256-{digest}'" for digest in digests)
        assert f"{tag}-src {allowed};" in policy
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    assert "connect-src" not in policy


def test_the_policy_stands_before_what_it_is_for(hostile):
    places = [at for at, (tag, one) in enumerate(hostile.elements) if tag in ("script", "style") or "http-equiv" in one]
    assert "http-equiv" in hostile.elements[places[0]][1]


def test_nothing_in_a_script_ends_it_and_it_means_the_same(hostile):
    script = [text for tag, text in hostile.texts if tag == "script"][-1]
    assert not re.search(r"<(/script|script|!--)", script)
    assert script.replace(r"\x3c", "<") == "window.x = '</script><!-- <script>'; document.title = /<!--/u.source;\n"


def test_it_answers_as_the_server_does(tmp_path):
    run = tmp_path / "run"
    write_run(run)
    page = export(run, base=tmp_path)
    responses = page.data["responses"]
    assert page.data["version"] == 1
    assert page.data["note"] == ""
    with viewed(run, base=tmp_path) as ask:
        ask.read("run")
        ask.until("runs/run/findings", lambda found: found["again_s"] is None)
        for address, body in responses.items():
            reply = ask(f"/{address}")
            assert reply.status == 200, address
            if address in ("api/runs", "api/runs/run"):
                continue
            if address.count("/") == 3 and address.endswith(("episodes", "groups", "problems")):
                assert reply.json["rows"] == body["rows"]
            else:
                assert reply.json == body, address
        keys = [row["key"] for row in ask.json("runs/run/episodes")["rows"]]
    assert {f"api/runs/run/episodes/{key}" for key in keys} <= responses.keys()
    assert responses["api/runs"]["exported"] is True


def test_no_path_of_this_machine_is_told_in_the_list_of_runs(tmp_path):
    write_run(tmp_path / "run")
    responses = export(tmp_path / "run", base=tmp_path).data["responses"]
    told = [responses[f"api/{name}"] for name in ("runs", "runs/run", "runs/run/findings")]
    assert str(tmp_path) not in json.dumps(told)


def test_whole_groups_evenly_over_the_steps_are_chosen_and_the_rest_is_told(tmp_path):
    writer = RunWriter(tmp_path / "run")
    writer.begin(CONFIG)
    for step in range(1, 21):
        groups = groups_of(step, count=5, size=4)
        writer.train(step, groups, decisions_of(groups))
    data = export(tmp_path / "run", base=tmp_path, episodes=40).data
    rows = data["responses"]["api/runs/run/episodes"]["rows"]
    assert len(rows) == 40
    groups: dict[tuple[int, int], int] = {}
    for row in rows:
        groups[row["step"], row["group"]] = groups.get((row["step"], row["group"]), 0) + 1
    assert set(groups.values()) == {4}
    steps = sorted(step for step, _ in groups)
    assert [(step + 1) // 2 for step in steps] == list(range(1, 11)), "one of each two steps"
    assert (20, 4) in groups, "the last of all"
    assert {group for _, group in groups} == set(range(5)), "and not the same of each step"
    keys = {row["key"] for row in rows}
    problem = data["responses"]["api/runs/run/problems/p4"]
    assert problem["seen"] == 80
    assert {row["key"] for row in problem["episodes"]} <= keys
    assert "40 of 400 episodes (whole groups" in data["note"]
    assert data["responses"]["api/runs/run"]["episode_figures"]["train"]["episodes"] == 400


def test_the_room_that_training_leaves_is_for_held_out_episodes(tmp_path):
    writer = RunWriter(tmp_path / "run")
    writer.begin(CONFIG)
    writer.train(1, groups_of(1, count=1, size=4))
    writer.held_out(1, [episode(number, 0, 1) for number in range(40)])
    data = export(tmp_path / "run", base=tmp_path, episodes=20).data
    splits = [row["split"] for row in data["responses"]["api/runs/run/episodes"]["rows"]]
    assert (splits.count("eval"), splits.count("train")) == (16, 4)


def test_a_filter_says_which_episodes(tmp_path):
    write_run(tmp_path / "run")
    data = export(tmp_path / "run", base=tmp_path, params={"split": "train", "kept": "0"}).data
    rows = data["responses"]["api/runs/run/episodes"]["rows"]
    assert {row["kept"] for row in rows} == {False}
    assert len(rows) == 12


def test_a_page_that_is_not_built_is_told_how(tmp_path):
    write_run(tmp_path / "run", steps=1)
    with pytest.raises(ConfigurationError, match=r"make view.*then reinstall the package"):
        write_export([tmp_path / "run"], tmp_path / "x.html", cache=tmp_path / "cache", static=tmp_path)
    assert not (tmp_path / "x.html").exists()


def unread(*_, **__):
    raise AssertionError("the runs were read before it was known that nothing can be written")


@pytest.mark.parametrize("lacks", ["index.html", "app.js", "app.css"])
def test_a_page_that_is_not_whole_is_told_before_runs_are_read(tmp_path, monkeypatch, lacks):
    write_run(tmp_path / "run", steps=1)
    (write_page(tmp_path / "static") / lacks).unlink()
    monkeypatch.setattr(Follower, "read_all", unread)
    with pytest.raises(ConfigurationError, match=rf"{lacks}.*make view"):
        write_export([tmp_path / "run"], tmp_path / "x.html", cache=tmp_path / "cache", static=tmp_path / "static")


@pytest.mark.parametrize(
    ("out", "told"),
    [(".", "is a folder"), ("run/run.json/x.html", "cannot be created as a folder"), ("there.html", "already exists")],
)
def test_a_file_that_cannot_be_written_is_told_before_runs_are_read(tmp_path, monkeypatch, out, told):
    write_run(tmp_path / "run", steps=1)
    static = write_page(tmp_path / "static")
    (tmp_path / "there.html").write_text("mine")
    monkeypatch.setattr(Follower, "read_all", unread)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigurationError, match=told):
        write_export([tmp_path / "run"], Path(out), cache=tmp_path / "cache", static=static)


def test_a_disk_that_is_full_leaves_nothing_behind_and_the_file_as_it_was(tmp_path, monkeypatch):
    def full(path, text, *options):
        if path.parent != out.parent:
            return true_write(path, text, *options)
        true_write(path, text[:100], *options)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    write_run(tmp_path / "run", steps=1)
    static, out = write_page(tmp_path / "static"), tmp_path / "out" / "x.html"
    out.parent.mkdir()
    out.write_text("before")
    true_write = Path.write_text
    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(DiskFullError, match=r"x\.html cannot be written, because its disk is full"):
        write_export([tmp_path / "run"], out, cache=tmp_path / "cache", static=static, overwrite=True)
    assert [path.name for path in out.parent.iterdir()] == ["x.html"]
    assert out.read_text() == "before"


def test_an_export_that_is_interrupted_leaves_nothing_behind(tmp_path, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    write_run(tmp_path / "run", steps=1)
    static, out = write_page(tmp_path / "static"), tmp_path / "out" / "x.html"
    out.parent.mkdir()
    monkeypatch.setattr(Follower, "read_all", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_export([tmp_path / "run"], out, cache=tmp_path / "cache", static=static)
    assert list(out.parent.iterdir()) == []


@pytest.mark.parametrize("what", ["episode", "tokens", "problem"])
@pytest.mark.parametrize("error", [KeyError("gone"), EOFError("changed"), FileNotFoundError("gone")], ids=repr)
def test_what_a_run_takes_back_while_it_is_packed_is_left_out(tmp_path, monkeypatch, what, error):
    def taken_back(self, name, one, *asked):
        if one == {"episode": "train-1-1", "tokens": "train-1-1", "problem": "p0"}[what]:
            raise error
        return true_answer(self, name, one, *asked)

    write_run(tmp_path / "run", steps=2)
    true_answer = getattr(Answers, what)
    monkeypatch.setattr(Answers, what, taken_back)
    responses = export(tmp_path / "run", base=tmp_path).data["responses"]
    at = "api/runs/run"
    left_out = {"episode": "episodes/train-1-1", "tokens": "episodes/train-1-1/tokens", "problem": "problems/p0"}[what]
    assert f"{at}/{left_out}" not in responses
    for beside in ("episodes/train-1-2", "episodes/train-2-1/tokens", "problems/p1"):
        assert f"{at}/{beside}" in responses
