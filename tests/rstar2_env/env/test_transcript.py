"""A drawn episode shows who spoke and how each call went, and nothing in it can act on the reader's terminal."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rstar2_env.core.status import ToolStatus
from rstar2_env.core.text import harmless
from rstar2_env.env.transcript import Transcript
from rstar2_env.tools import ToolResult

OUR_COLOURS = re.compile(r"\x1b\[\d*m")


def plain(text):
    return OUR_COLOURS.sub("", text)


def result(status, **more):
    return ToolResult("tool", status, "text", **more)


@pytest.fixture
def played():
    transcript = Transcript()
    transcript.start("be good", "1+1?")
    transcript.turn("I call", [result(ToolStatus.OK), result(ToolStatus.TIMEOUT)], "shown")
    transcript.end("it is 2", [], "answered", True)
    return transcript


def test_the_episode_is_drawn_in_order_with_statuses_and_end(played):
    assert plain(played.text()) == (
        "[system]\nbe good\n[user]\n1+1?\n[policy]\nI call\n[tool] ok timeout\nshown\n"
        "[policy]\nit is 2\n[end: answered] correct"
    )


def test_news_are_told_once():
    transcript = Transcript()
    transcript.start("", "question")
    assert plain(transcript.news()) == "[user]\nquestion"
    assert transcript.news() == ""
    transcript.end("answer", [], "no_answer", False)
    assert plain(transcript.news()) == "[policy]\nanswer\n[end: no_answer] not correct"


def test_start_forgets_the_last_episode(played):
    played.start("", "new")
    assert plain(played.text()) == "[user]\nnew"
    assert plain(played.news()) == "[user]\nnew"


def test_an_injected_fault_is_marked():
    transcript = Transcript()
    transcript.turn("", [result(ToolStatus.TIMEOUT, injected=True)], "")
    assert "timeout (injected)" in plain(transcript.text())


def test_statuses_are_coloured_by_whose_fault_they_are():
    transcript = Transcript()
    statuses = [ToolStatus.OK, ToolStatus.EMPTY, ToolStatus.BLOCKED, ToolStatus.UNAVAILABLE]
    transcript.turn("", [result(status) for status in statuses], "")
    for expected in ("\x1b[32mok", "\x1b[32mempty", "\x1b[31mblocked", "\x1b[34munavailable"):
        assert expected in transcript.text()


@pytest.mark.parametrize(
    "attack",
    [
        "\x1b[2J",
        "\x1b]0;title\x07",
        "\x9b31m",
        "\x9d0;title\x9c",
        "seen\rhidden",
        "abc\b\b\b",
        "\x0c",
        "\x0b",
        "\x7f",
        "\x00",
        "\u202egnp.exe",
        "\u2066x",
        "\u2028new line",
        "\ud800",
    ],
)
def test_what_a_terminal_would_act_on_is_written_out(attack):
    transcript = Transcript()
    transcript.turn(attack, [], attack)
    drawn = plain(transcript.text())
    assert attack not in drawn
    assert "\\x" in drawn or "\\u" in drawn or "\\r" in drawn
    drawn.encode("utf-8")


@given(st.text(alphabet=st.characters(codec=None)))
def test_no_control_character_is_left_and_all_other_text_is(text):
    shown = harmless(text)
    assert not any((ord(c) < 0x20 and c not in "\t\n") or 0x7F <= ord(c) <= 0x9F for c in shown)
    shown.encode("utf-8")
    if text.isprintable():
        assert shown == text


def test_line_breaks_tabs_and_letters_of_every_script_stay():
    text = "a\tb\nπ 漢字 עברית 😀 e\u0301"
    assert harmless(text) == text
