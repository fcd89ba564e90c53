"""A message is split in a terminal as on the page, whose own tests read the same cases."""

from __future__ import annotations

import json
import time
from bisect import bisect_left
from dataclasses import asdict

import pytest
from hypothesis import given
from hypothesis import strategies as st
from places import ROOT

from rstar2_env.view.terminal.segments import segments

CASES = json.loads((ROOT / "rstar2_env" / "view" / "web" / "tests" / "segments.json").read_text("utf-8"))
PIECES = ["<tool_call>", "</tool_call>", "```", "<think>", "</think>", "<answer>", "</answer>", "{}", "a\n", " "]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["text"][:20])
def test_a_message_has_the_segments_of_the_page(case):
    found = [asdict(segment) for segment in segments(case["text"], case["role"])]
    assert [{name: one[name] for name in case["segments"][0]} for one in found] == case["segments"]


@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join), st.sampled_from(["assistant", "user"]))
def test_no_character_but_blank_ones_is_lost(text, role):
    assert "".join("".join(one.raw for one in segments(text, role)).split()) == "".join(text.split())


def test_marks_that_are_never_closed_are_looked_for_once():
    text = "<tool_call>" * 50_000 + "<think>" * 50_000
    begun = time.process_time()
    assert [one.kind for one in segments(text, "assistant")] == ["text"]
    assert time.process_time() - begun < 60


@pytest.mark.parametrize("arguments", ['{"a": %s}', '{"a": %s, "code": "1"}'])
def test_a_call_that_is_nested_too_deeply_to_be_indented_stays_as_written(arguments):
    """The depths that json.loads accepts and json.dumps does not are few or many, depending on the Python."""

    def plain(depth):
        call = f'{{"arguments": {arguments % ("[" * depth + "]" * depth)}}}'
        (found,) = segments(f"<tool_call>{call}</tool_call>", "assistant")
        assert found.language in ("json", "python", "text")
        return found.language == "text" and found.text == call

    first = bisect_left(range(3000), True, key=plain)
    assert 100 < first < 3000
    assert {plain(depth) for depth in range(first - 15, first + 15)} == {False, True}
