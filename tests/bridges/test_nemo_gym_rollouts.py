"""Every example rollout that NeMo Gym publishes is imported whole, or refused with the reason.

The files are those of the wheel ``nemo-gym`` 0.7 on the package index; its code needs Python 3.12 and is not imported.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from importlib.metadata import files

import pytest
from cli_runner import run

from rstar2_env.adapters.atif.files import FORMATS
from rstar2_env.core.errors import RecordFormatError
from rstar2_env.core.run_folder import read_run
from rstar2_env.traces.reading import read_traces

PUBLISHED = {
    str(file): file.locate()
    for file in files("nemo-gym") or ()
    if re.fullmatch(r".*rollouts(?!.*(materialized_inputs|reward_profiling)).*\.jsonl", file.name)
}
"""Files of rollouts; the others beside them have only their inputs and means."""
REFUSED = {
    "this line is not JSON": 20,
    "responses_create_params: the field is missing": 10,
    "response: the field is missing": 10,
    "reward: the field is missing": 5,
    "input_image": 35,
}
"""Published lines that are refused, by the reason: placeholders, rows that are no rollouts, and images."""


def reason(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return "this line is not JSON"
    return next((name for name in REFUSED if name in str(error)), str(error))


@pytest.fixture(scope="module")
def lines():
    """Each published line with its file, number, row and episode, and the reasons of the refused lines."""
    read, refused = [], Counter()
    for name, path in PUBLISHED.items():
        for number, line in enumerate(path.read_text("utf-8").split("\n"), 1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
                read.append((f"{name}:{number}", row, FORMATS["nemo-gym"](row)))
            except (RecordFormatError, json.JSONDecodeError) as error:
                refused[reason(error)] += 1
    return read, refused


def texts(item):
    """The texts of an item of the Responses API, as the episode shows them."""
    match item.get("type") or "message":
        case "message":
            content = item["content"]
            yield from [content] if isinstance(content, str) else (part["text"] for part in content)
        case "reasoning":
            yield from (part["text"] for part in item["summary"])
        case "function_call":
            yield item["name"]
        case "function_call_output" if isinstance(item["output"], str):
            yield item["output"]


def items(row):
    """The items of a rollout; of transitions, those of the last one."""
    given, said = row["responses_create_params"]["input"], row["response"]["output"]
    given = [{"role": "user", "content": given}] if isinstance(given, str) else given
    return [*given, *(said[-1] if said and isinstance(said[0], list) else said)]


def test_every_published_rollout_is_read_or_refused_with_the_reason(lines):
    read, refused = lines
    assert len(PUBLISHED) > 150
    assert len(read) > 900
    assert refused == REFUSED


def test_no_text_of_a_published_rollout_is_lost_and_the_order_is_kept(lines):
    for place, row, made in lines[0]:
        whole = "\n".join(message.content for message in made.entry.episode.messages)
        at = 0
        for item in items(row):
            for text in filter(None, texts(item)):
                # Reasoning stands before the text of its turn; calls stand after it.
                found = whole.find(text, 0 if item.get("type") == "reasoning" else at)
                assert found >= 0, (place, text[:200])
                at = max(at, found) if item.get("type") == "function_call_output" else at


def test_the_calls_of_published_rollouts_are_calls_here(lines):
    for place, row, made in lines[0]:
        calls = [item for item in items(row) if item.get("type") == "function_call"]
        said = [message.content for message in made.entry.episode.messages if message.role == "assistant"]
        found = re.findall(r"<tool_call>(.*?)</tool_call>", "\n".join(said), re.DOTALL)
        assert len(found) >= len(calls), place
        for call in calls:
            assert any(call["name"] in one for one in found), place


def test_rewards_ends_and_tokens_are_those_that_the_row_states(lines):
    ends = Counter()
    for place, row, made in lines[0]:
        episode = made.entry.episode
        assert episode.reward == row["reward"], place
        ends[episode.end] += 1
        masked = row.get("mask_sample") or (row.get("instance_config") or {}).get("mask_sample")
        assert episode.available is not bool(masked), place
        written = [item for item in items(row) if item.get("generation_token_ids")]
        if written and made.tokens:
            (tokens,) = made.tokens
            ids = [one for one, kept in zip(tokens.completion_ids, tokens.mask, strict=True) if kept]
            assert ids == [one for item in written for one in item["generation_token_ids"]], place
    assert set(ends) == {"terminated", "truncated", "tokens", "unavailable"}
    assert any(made.tokens for _, _, made in lines[0])


def test_what_is_left_out_of_published_rollouts_is_named(lines):
    with_tools = [(row, made) for _, row, made in lines[0] if row["responses_create_params"].get("tools")]
    assert with_tools
    for row, made in with_tools:
        assert set(made.entry.more) <= {"gold"}
        described = row["responses_create_params"]["tools"][0].get("description") or ""
        shown = "\n".join(message.content for message in made.entry.episode.messages)
        assert len(described) < 100 or described not in shown


@pytest.mark.parametrize(
    "name", ["environments/aviary_gsm8k", "environments/workplace_assistant", "resources_servers/math_with_code"]
)
def test_a_published_file_is_viewed_diagnosed_and_used_as_a_cold_start(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = run("traces", "--from", "nemo-gym", PUBLISHED[f"{name}/data/example_rollouts.jsonl"], "--out", "t.jsonl")
    assert done.exit_code == 0, done.stderr
    entries = read_run("t.episodes.jsonl").held_out()
    right = [entry for entry in entries if entry.episode.reward > 0]
    assert len(read_traces("t.jsonl")) == len(right) > 0
    shown = run("view", "--text", "--no-pager", "--episode", "0", "t.episodes.jsonl")
    assert shown.exit_code == 0, shown.output
    assert max(re.findall(r"[a-zA-Z]+", entries[0].episode.messages[1].content)[:20], key=len) in shown.output
    assert run("diagnose", "t.episodes.jsonl", "--json").exit_code in (0, 1)
