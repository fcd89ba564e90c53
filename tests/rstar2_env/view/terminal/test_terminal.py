"""What a model wrote is shown in a terminal, and does nothing to it; curves and tables say what the files hold."""

from __future__ import annotations

import gzip
import io
import json
import re
from typing import get_args

import pytest
from hostile_run import TEXTS, write_hostile
from printed_view import show_file, text_view
from rich.console import Console
from run_sample import write_run

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.text import harmless
from rstar2_env.view.answers import read_runs
from rstar2_env.view.index import RunIndex
from rstar2_env.view.queries.health import HealthState
from rstar2_env.view.terminal.episodes import conversation
from rstar2_env.view.terminal.overview import run_overview
from rstar2_env.view.terminal.sanitize import one_line
from rstar2_env.view.terminal.sparkline import sparkline
from rstar2_env.view.words import words

CONTROLS = [chr(code) for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\n\t"]
TURNING = [*map(chr, (0x202A, 0x202E, 0x2066, 0x2069, 0x200E, 0x200F, 0x061C, 0x2028, 0x2029, 0xFEFF, 0xFFF9))]


def printed(*parts, colours: bool = False) -> str:
    out = io.StringIO()
    console = Console(file=out, width=100, force_terminal=colours, color_system="truecolor" if colours else None)
    console.print(*parts, sep="\n")
    return out.getvalue()


@pytest.mark.parametrize("sign", [*CONTROLS, *TURNING], ids=ascii)
def test_no_control_reaches_the_terminal(sign):
    shown = harmless(f"a{sign}b")
    assert sign not in shown
    assert shown.startswith("a")
    assert shown.endswith("b")
    assert len(shown) > 2, "it is shown, not dropped"


def test_lines_and_letters_stay():
    assert harmless("a\r\nb\tc é 数 👩‍👩‍👧") == "a\nb\tc é 数 👩‍👩‍👧"
    assert harmless("\ud800") == r"\ud800"
    assert one_line("a\n b\x1b" + "x" * 300) == r"a b\x1b" + "x" * 192 + "…"


def test_no_episode_of_a_hostile_run_moves_the_terminal(tmp_path):
    folder = write_hostile(tmp_path).folder
    cache = tmp_path / "cache"
    texts = [printed(*text_view([folder], cache=cache)), printed(*text_view([folder], episodes=500, cache=cache))]
    for number in range(len(TEXTS)):
        texts.append(printed(*text_view([folder], key=f"train-1-{2 * number}", cache=cache)))
    texts.append(printed(show_file(folder / "episodes" / "train-000006.jsonl")))
    for text in texts:
        assert not [sign for sign in (*CONTROLS, *TURNING) if sign in text]
    assert r"\x1b[2J" in texts[2 + list(TEXTS).index("escapes")]


def test_with_colours_only_ours_are_there(tmp_path):
    folder = write_hostile(tmp_path).folder
    at = 2 * list(TEXTS).index("escapes")
    text = printed(*text_view([folder], key=f"train-1-{at}", cache=tmp_path / "cache"), colours=True)
    assert "\x1b[" in text
    assert "\x1b[2J" not in text
    assert "\x1b]" not in text
    assert "\x9b" not in text


def test_markup_of_rich_is_text(tmp_path):
    file = tmp_path / "x.jsonl"
    message = {"role": "[bold]user", "content": "[red]no[/red] [link=file:///x]y[/link] [/]"}
    file.write_text(json.dumps({"messages": [message], "answer": "[blink]", "end": "[x]"}) + "\n")
    text = printed(show_file(file))
    assert "[red]no[/red] [link=file:///x]y[/link] [/]" in text
    assert "[bold]user" in text
    assert "[blink]" in text


def test_a_curve_goes_from_the_least_to_the_most():
    assert sparkline([0, 1, 2, 3, 4, 5, 6, 7]) == "▁▂▃▄▅▆▇█"
    assert sparkline([1.0, None, 1.0]) == "▄ ▄"
    assert sparkline([0.0, float("inf"), 1.0]) == "▁ █"
    assert sparkline([]) == sparkline([None]) == sparkline([float("nan")]) == ""
    assert sparkline(list(range(1000)), 8) == "▁▂▃▄▅▆▇█"


def test_curves_of_different_steps_share_an_axis():
    assert sparkline([0.0, 1.0], 8, at=[0, 7]) == "▁      █"
    assert sparkline([0.0, None, 1.0], 8, at=[0, 3, 7]) == "▁      █"
    assert sparkline([0.0, 1.0, 1.0, 0.0], 2, at=[0, 1, 19, 20]) == sparkline([2 / 3, 0.0])
    assert sparkline([1.0], 8, at=[5]) == "▄"


def test_an_overview_tells_of_a_run(tmp_path):
    write_run(tmp_path / "run")
    text = printed(*text_view([tmp_path / "run"], cache=tmp_path / "cache"))
    assert "grpo_roc" in text
    assert "step 4 of 4" in text
    assert "36 training episodes, 6 held out" in text
    assert "Success: held out" in text
    assert "answered 36" in text


def test_the_health_of_a_run_is_told_in_the_words_of_the_page(tmp_path):
    write_run(tmp_path / "run")
    with read_runs([tmp_path / "run"], tmp_path / "cache") as answers:
        run, metrics = answers.run("run"), answers.metrics("run")
    states = get_args(HealthState)
    signs = [
        {"label": f"Figure {at}", "percent": True, "last": 0.125, "values": [0.5, 0.125], "state": state, "says": []}
        for at, state in enumerate(states)
    ]
    text = printed(run_overview({**run, "health": signs}, metrics))
    for at, state in enumerate(states):
        assert re.search(rf"Figure {at} .* 12\.5% .* {words()['health'][state]} ", text), state


def test_events_are_told_in_the_words_of_the_page(tmp_path):
    write_run(tmp_path / "run")
    with read_runs([tmp_path / "run"], tmp_path / "cache") as answers:
        told = [event["details"] for event in answers.run("run")["events"] if event["event"] == "evaluation"]
    text = " ".join(printed(*text_view([tmp_path / "run"], cache=tmp_path / "cache")).split())
    assert told
    assert all(f"pass_rate {part}" in text for one in told for part in [one.split("pass_rate ")[1].split(",")[0]])
    assert "{" not in text.partition("events")[2]


def test_episodes_are_listed_and_one_is_shown(tmp_path):
    write_run(tmp_path / "run")
    cache = tmp_path / "cache"
    asked = {"split": "train", "kept": "0", "sort": "-step"}
    text = printed(*text_view([tmp_path / "run"], episodes=2, params=asked, cache=cache))
    assert "2 of 12 episodes" in text
    assert "train-4-0" in text
    shown = printed(*text_view([tmp_path / "run"], key="train-4-0", cache=cache))
    assert "é step 4 group 0 member 0" in shown
    assert "dropped: quota" in shown
    with pytest.raises(ConfigurationError, match="does not contain an episode 'train-9-9'"):
        text_view([tmp_path / "run"], key="train-9-9", cache=cache)


def test_several_runs_are_listed_and_one_must_be_named_for_more(tmp_path):
    for name in ("a", "b"):
        write_run(tmp_path / "runs" / name, steps=1)
    cache = tmp_path / "cache"
    assert "training" in printed(*text_view([tmp_path / "runs"], cache=cache))
    with pytest.raises(ConfigurationError, match="choose one of"):
        text_view([tmp_path / "runs"], episodes=3, cache=cache)
    with pytest.raises(ConfigurationError, match=r"no runs in .* run\.json"):
        text_view([cache], cache=cache)


def test_a_file_is_summed_up_or_an_episode_of_it_shown(tmp_path):
    write_run(tmp_path / "run")
    file = tmp_path / "run" / "episodes" / "train-000002.jsonl.gz"
    text = printed(show_file(file))
    assert "Episodes" in text
    assert "answered 9" in text
    assert "é step 2 group 1 member 1" in printed(show_file(file, 4))
    with pytest.raises(ConfigurationError, match="does not contain episode 9"):
        show_file(file, 9)


@pytest.mark.parametrize("suffix", [".json", ".jsonl", ".jsonl.gz"])
def test_the_one_episode_of_a_file_is_shown_at_once(tmp_path, suffix):
    file = tmp_path / f"x{suffix}"
    text = json.dumps({"messages": [{"role": "user", "content": "What?"}], "correct": True}) + "\n"
    file.write_bytes(gzip.compress(text.encode()) if suffix.endswith("gz") else text.encode())
    assert "What?" in printed(show_file(file))


def test_what_a_trace_does_not_say_is_not_made_up(tmp_path):
    file = tmp_path / "traces.jsonl"
    line = json.dumps({"problem_id": "p", "messages": [{"role": "user", "content": "What?"}], "reward": 1.0})
    file.write_text(f"{line}\n{line}\n")
    summary = printed(show_file(file))
    assert "Reward" in summary
    assert not [name for name in ("Success", "Turns", "Tokens") if name in summary]
    assert not [name for name in ("correct", "wrong") if name in printed(show_file(file, 1))]


def test_programs_are_shown_beside_their_turn(tmp_path):
    file = tmp_path / "x.jsonl"
    call = '<tool_call>\n{"name": "python", "arguments": {"code": "a = 1\\nprint(a)"}}\n</tool_call>'
    info = {"tool_calls": [{"name": "python", "status": "timeout", "injected": True}]}
    record = {"messages": [{"role": "assistant", "content": call}], "steps": [{"info": info}]}
    file.write_text(json.dumps(record) + "\n")
    lines = [line.strip("│ ") for line in printed(show_file(file)).splitlines()]
    assert lines.index("a = 1") + 1 == lines.index("print(a)")
    assert "python: injected timeout" in lines


def test_what_cannot_be_read_is_noted_with_its_line(tmp_path):
    file = tmp_path / "x.jsonl"
    good = json.dumps({"messages": []})
    file.write_text(f"{good}\nnot json\n[]\n{good}\n")
    text = printed(show_file(file))
    assert "line 2 was skipped: the line is not valid JSON" in text
    assert "line 3 was skipped: the line is not a JSON object" in text
    file.write_text("{}\n")
    with pytest.raises(ConfigurationError, match="does not contain episodes"):
        show_file(file)
    with pytest.raises(ConfigurationError, match="is a folder"):
        show_file(tmp_path)


MARKUP = "[/x]"


@pytest.mark.parametrize("field", ["problem_id", "end", "reason", "statuses", "injected"])
def test_markup_in_a_table_of_episodes_is_text(tmp_path, field):
    value = [MARKUP] if field in ("statuses", "injected") else MARKUP
    file = tmp_path / "x.jsonl"
    file.write_text(json.dumps({"messages": [], "kept": False, field: value}) + "\n")
    text = printed(*text_view([file], episodes=5, cache=tmp_path / "cache"))
    assert "1 of 1 episodes" in text
    assert MARKUP in text


@pytest.mark.parametrize(
    ("written", "said"),
    [("", "does not contain episodes"), ('{"a": 1}\n', "it is not an episode")],
)
def test_a_file_without_an_episode_is_not_shown_as_an_evaluation(tmp_path, written, said):
    (tmp_path / "other.jsonl").write_text(written)
    with pytest.raises(ConfigurationError, match=said):
        text_view([tmp_path / "other.jsonl"], cache=tmp_path / "cache")


def test_markup_in_the_name_of_a_file_is_text(tmp_path):
    (tmp_path / "[").mkdir()
    file = tmp_path / "[" / "x].jsonl"
    file.write_text(2 * (json.dumps({"messages": []}) + "\n"))
    assert "[/x].jsonl" in "".join(printed(show_file(file)).split())
    assert "[/x].jsonl" in "".join(printed(show_file(file, 1)).split())


@pytest.mark.parametrize("field", ["messages", "steps", "statuses", "injected", "rewards"])
@pytest.mark.parametrize("value", [5, "text", {"a": 1}, True, None], ids=repr)
def test_a_field_of_another_form_is_passed_over(field, value):
    line = {"messages": [{"role": "assistant", "content": "so"}], "end": "answered", field: value}
    assert "answered" in printed(conversation(line, heading="x"))


@pytest.mark.parametrize("record", [{"foo": 1}, {"messages": 3}, {"messages": None}], ids=str)
@pytest.mark.parametrize("suffix", [".json", ".jsonl"])
def test_a_record_that_is_no_episode_is_not_shown_as_one(tmp_path, record, suffix):
    file = tmp_path / f"x{suffix}"
    good = {"messages": [{"role": "user", "content": "What?"}]}
    file.write_text(json.dumps([record, good]) if suffix == ".json" else f"{json.dumps(record)}\n{json.dumps(good)}\n")
    with pytest.raises(ConfigurationError, match=f"^Record 0 of {file} cannot be shown: it is not an episode"):
        show_file(file, 0)
    assert "What?" in printed(show_file(file, 1))


def test_what_is_no_record_of_a_list_counts_and_is_noted(tmp_path):
    file = tmp_path / "x.json"
    good = {"messages": [{"role": "user", "content": "What?"}]}
    file.write_text(json.dumps([3, good, good]))
    assert "record 0 was skipped: it is not a JSON object" in printed(show_file(file))
    assert "What?" in printed(show_file(file, 2))
    with pytest.raises(
        ConfigurationError, match=r"does not contain episode 0 \(record 0 was skipped: it is not a JSON object"
    ):
        show_file(file, 0)


@pytest.mark.parametrize("asked", [0, 2, 1000, 1001, 2500, 9000])
def test_as_many_episodes_are_listed_as_were_asked_for(tmp_path, asked):
    file, there = tmp_path / "x.jsonl", 2500
    file.write_text("".join(json.dumps({"messages": [], "reward": number}) + "\n" for number in range(there)))
    text = printed(*text_view([file], episodes=asked, params={"sort": "-reward"}, cache=tmp_path / "cache"))
    keys = re.findall(r"eval-0-(\d+)", text)
    assert list(map(int, keys)) == list(range(there - 1, max(there - asked, 0) - 1, -1))
    assert f"{min(asked, there):,} of 2,500 episodes" in text


@pytest.mark.parametrize("error", [EOFError("x.jsonl ends before its line."), FileNotFoundError("x.jsonl")], ids=repr)
def test_an_episode_that_changes_while_it_is_read_is_to_be_asked_for_again(tmp_path, monkeypatch, error):
    def changed(self, file, *place):
        raise error

    write_run(tmp_path / "run", steps=1)
    monkeypatch.setattr(RunIndex, "record", changed)
    with pytest.raises(ConfigurationError, match=r"changed while the episode 'train-1-0' was read .*x\.jsonl.* again"):
        text_view([tmp_path / "run"], key="train-1-0", cache=tmp_path / "cache")
