"""Claims about trajectories of ATIF: an exported episode comes back equal, and others' trajectories become episodes."""

from __future__ import annotations

import copy
import json
import math
from pathlib import Path
from typing import Any

import pytest
from cli_runner import run
from hypothesis import given, settings
from hypothesis import strategies as st
from made_evaluations import sample, write_evaluation

from rstar2_env.adapters.atif import read_trajectory, trajectory_of
from rstar2_env.adapters.atif.files import read_trajectories
from rstar2_env.core.episode import Episode, Message
from rstar2_env.core.errors import ConfigurationError, RecordFormatError
from rstar2_env.core.run_folder import Decision, EpisodeEntry, RunWriter, TokensEntry, read_run
from rstar2_env.core.status import ToolStatus
from rstar2_env.core.turn import Turn
from rstar2_env.traces.reading import read_traces

CALL = '<tool_call>{"name": "python", "arguments": {"code": "print(1)"}}</tool_call>'
RESULT = "<tool_response>\n1\n</tool_response>"
TEXTS = st.one_of(
    st.text(max_size=20),
    st.sampled_from(
        [CALL, f"so\n{CALL}\n{CALL}", "<tool_call>{", RESULT, f"{RESULT}\n{RESULT}", "\0", "```python\n1\n```"]
    ),
)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False, width=32)


@st.composite
def played(draw: Any) -> tuple[EpisodeEntry, list[TokensEntry]]:
    """An episode with any turns, and no tokens, those of one row, or several rows."""
    roles = draw(st.lists(st.sampled_from(["system", "user", "tool", "assistant"]), max_size=7))
    messages = [Message(role, draw(TEXTS)) for role in roles]
    count = max(0, roles.count("assistant") + draw(st.integers(-1, 1)))
    statuses = st.lists(st.sampled_from([*ToolStatus]), max_size=2)
    turns, at = [], 0
    for _ in range(count):
        start = at + draw(st.integers(0, 2))
        at = start + draw(st.integers(0, 3))
        turn = Turn(start, at, draw(TEXTS), draw(NUMBERS), draw(statuses), draw(st.integers(0, 3)))
        turn.info = {"tool_calls": [{"name": "python", "status": str(one)} for one in turn.statuses]}
        turns.append(turn)
    length = at + draw(st.integers(0, 2))
    episode = Episode(
        group=draw(st.integers(0, 9)),
        seed=draw(st.none() | st.integers(0, 99)),
        problem_id=draw(TEXTS),
        messages=messages,
        reward=draw(NUMBERS),
        end=draw(st.sampled_from(["answered", "unavailable", "turns"])),
        turns=count,
        statuses=draw(statuses),
        answer=draw(st.none() | TEXTS),
        correct=draw(st.booleans()),
        recorded_tokens=draw(st.integers(0, 99)),
        steps=turns,
        rewards=draw(st.dictionaries(st.text(max_size=3), NUMBERS, max_size=2)),
        parent=draw(st.none() | st.tuples(st.integers(-1, 3), st.integers(0, 5))),
    )
    decision = draw(st.none() | st.builds(Decision, st.booleans(), st.sampled_from(["", "quota"]), st.integers(0, 2)))
    entry = EpisodeEntry(episode, draw(st.integers(0, 9)), draw(st.integers(0, 3)), decision, {"gold": draw(TEXTS)})
    ids = st.integers(0, 1 << 20)
    rows = [
        TokensEntry(
            entry.step,
            episode.group,
            entry.member,
            draw(st.lists(ids, max_size=3)),
            draw(st.lists(ids, min_size=length, max_size=length)),
            draw(st.lists(st.integers(0, 1), min_size=length, max_size=length)),
            draw(st.lists(NUMBERS, min_size=length, max_size=length)),
            draw(st.lists(NUMBERS, min_size=length, max_size=length)),
            shown_ids=draw(st.lists(ids, max_size=2)),
        )
        for _ in range(draw(st.integers(0, 2)))
    ]
    return entry, rows


@settings(max_examples=200, deadline=None)
@given(played())
def test_an_episode_comes_back_as_it_was_exported(made: tuple[EpisodeEntry, list[TokensEntry]]) -> None:
    entry, rows = made
    text = json.dumps(trajectory_of(entry, "train-1-0", tokens=rows), allow_nan=False)
    back = read_trajectory(json.loads(text))
    assert back.entry.episode.record() == entry.episode.record()
    assert back.entry.more["gold"] == entry.more["gold"]
    assert (back.entry.step, back.entry.member, back.entry.decision) == (entry.step, entry.member, entry.decision)
    assert list(back.tokens) == rows


def turn_of_tokens() -> tuple[EpisodeEntry, TokensEntry]:
    """Two turns with a call and its result between them, and their tokens."""
    messages = [Message("user", "1?"), Message("assistant", CALL), Message("user", RESULT), Message("assistant", "1")]
    call = {"name": "python", "status": "ok"}
    first = Turn(0, 2, "1?", 0.0, [ToolStatus.OK], info={"tool_calls": [call]})
    episode = Episode(messages=messages, steps=[first, Turn(3, 4, RESULT, 1.0)], reward=1.0, correct=True, turns=2)
    row = TokensEntry(1, 0, 0, [7, 8], [1, 2, 3, 4], [1, 1, 0, 1], [-0.5, -0.25, 0.0, -1.0], [1.0] * 4)
    return EpisodeEntry(episode, 1, 0, Decision(True)), row


def test_the_fields_of_the_format_hold_tokens_calls_and_results() -> None:
    entry, row = turn_of_tokens()
    steps = trajectory_of(entry, "k", tokens=[row])["steps"]
    assert [step["source"] for step in steps] == ["user", "agent", "agent"]
    assert [step["metrics"] for step in steps[1:]] == [
        {
            "completion_tokens": 2,
            "prompt_tokens": 2,
            "prompt_token_ids": [7, 8],
            "completion_token_ids": [1, 2],
            "logprobs": [-0.5, -0.25],
        },
        {
            "completion_tokens": 1,
            "prompt_tokens": 5,
            "prompt_token_ids": [7, 8, 1, 2, 3],
            "completion_token_ids": [4],
            "logprobs": [-1.0],
        },
    ]
    (call,) = steps[1]["tool_calls"]
    assert (call["function_name"], call["arguments"]) == ("python", {"code": "print(1)"})
    assert call["extra"]["rstar2_env"]["status"] == "ok"
    (result,) = steps[1]["observation"]["results"]
    assert (result["source_call_id"], result["content"]) == (call["tool_call_id"], RESULT)


def test_a_result_is_split_by_call() -> None:
    entry, _ = turn_of_tokens()
    entry.episode.messages[1:3] = [Message("assistant", f"{CALL}\n{CALL}"), Message("user", f"{RESULT}\n{RESULT}")]
    step = trajectory_of(entry, "k")["steps"][1]
    assert [one["source_call_id"] for one in step["observation"]["results"]] == ["call-2-1", "call-2-2"]
    assert [one["content"] for one in step["observation"]["results"]] == [RESULT, RESULT]


def test_turns_that_a_branch_shares_with_its_parent_are_copied_context() -> None:
    entry, row = turn_of_tokens()
    entry.episode.parent = (0, 3)
    steps = trajectory_of(entry, "k", tokens=[row])["steps"]
    assert [step.get("is_copied_context") for step in steps] == [None, True, None]


def others() -> dict[str, Any]:
    """A trajectory as a stranger writes it: calls as data, reasoning apart, one step copied, ids of the tokens."""
    call = {"tool_call_id": "a", "function_name": "python", "arguments": {"code": "print(6*7)"}}
    return {
        "schema_version": "ATIF-v1.7",
        "session_id": "s",
        "agent": {"name": "other", "version": "2"},
        "steps": [
            {"step_id": 1, "source": "system", "message": "Solve."},
            {"step_id": 2, "source": "user", "message": [{"type": "text", "text": "6*7?"}]},
            {
                "step_id": 3,
                "source": "agent",
                "message": "I compute.",
                "reasoning_content": "Multiply.",
                "is_copied_context": True,
                "tool_calls": [call],
                "observation": {"results": [{"source_call_id": "a", "content": "42"}]},
                "metrics": {"prompt_token_ids": [1], "completion_token_ids": [2, 3], "logprobs": [-1, -2]},
            },
            {
                "step_id": 4,
                "source": "agent",
                "message": "<answer>\\boxed{42}</answer>",
                "metrics": {"prompt_token_ids": [1, 2, 3, 4], "completion_token_ids": [5], "logprobs": [-0.5]},
            },
        ],
        "extra": {"reward": 1.0, "gold": "42"},
    }


def test_another_producers_calls_results_and_reasoning_become_text() -> None:
    got = read_trajectory(others())
    assert [(message.role, message.content) for message in got.entry.episode.messages] == [
        ("system", "Solve."),
        ("user", "6*7?"),
        (
            "assistant",
            "<reason>\nMultiply.\n</reason>\nI compute.\n"
            '<tool_call>{"name": "python", "arguments": {"code": "print(6*7)"}}</tool_call>',
        ),
        ("user", "<tool_response>\n42\n</tool_response>"),
        ("assistant", "<answer>\\boxed{42}</answer>"),
    ]
    episode = got.entry.episode
    assert (episode.answer, episode.reward, episode.correct, got.entry.more["gold"]) == ("42", 1.0, True, "42")


def test_the_statuses_of_another_producer_are_unknown_and_its_subagents_are_counted() -> None:
    got = read_trajectory({**others(), "subagent_trajectories": [{**others(), "trajectory_id": "sub"}]})
    assert (got.entry.episode.statuses, [turn.statuses for turn in got.entry.episode.steps]) == ([], [[], []])
    assert got.entry.more["subagent_trajectories"] == 1
    assert len(got.entry.episode.messages) == 5


def test_the_reward_is_where_other_readers_look_for_it() -> None:
    assert trajectory_of(turn_of_tokens()[0], "k")["final_metrics"]["extra"] == {"reward": 1.0}
    trajectory = others()
    trajectory["extra"], trajectory["final_metrics"] = {}, {"extra": {"reward": 0.5}}
    assert read_trajectory(trajectory).entry.episode.reward == 0.5


def relayed() -> dict[str, Any]:
    """A trajectory of ATIF 1.7 with the fields that NeMo Relay and NeMo Gym write: evidence in ``extra``, no ids."""
    call = {"tool_call_id": "call-1", "function_name": "exec_command", "arguments": {"cmd": "expr 6 '*' 7"}}
    told = {"invocation": {"framework": "nemo_relay", "status": "completed"}, "llm_response": {"output": [{"id": "r"}]}}
    spent = {"prompt_tokens": 21, "completion_tokens": 9, "extra": {"total_tokens": 30}}
    agent = {"source": "agent", "timestamp": "2026-10-01T10:00:00Z", "model_name": "m", "llm_call_count": 1}
    observed = {"results": [{"source_call_id": "call-1", "content": "42", "extra": {"event_name": "exec_command"}}]}
    first = {**agent, "step_id": 2, "message": "", "tool_calls": [call], "observation": observed, "metrics": spent}
    return {
        "schema_version": "ATIF-v1.7",
        "session_id": "run-1",
        "trajectory_id": "task-7",
        "agent": {"name": "relay", "version": "0.9", "model_name": "m", "tool_definitions": [{"type": "function"}]},
        "steps": [
            {"step_id": 1, "source": "user", "message": "6 * 7?", "extra": {"ancestry": {"function_id": "x"}}},
            {**first, "extra": told},
            {**agent, "step_id": 3, "message": "\\boxed{42}", "extra": told},
        ],
        "final_metrics": {"total_prompt_tokens": 63, "total_completion_tokens": 20, "total_steps": 3},
        "extra": {"relay_revision": "1"},
    }


def test_a_trajectory_as_nemo_gym_publishes_them_is_read() -> None:
    got = read_trajectory(relayed())
    episode = got.entry.episode
    assert [message.role for message in episode.messages] == ["user", "assistant", "user", "assistant"]
    assert "exec_command" in episode.messages[1].content
    assert "42" in episode.messages[2].content
    assert (episode.problem_id, episode.answer, episode.recorded_tokens) == ("task-7", "42", 9)
    assert (got.graded, got.trained, got.tokens) == (False, (True, True), ())


def test_copied_context_is_neither_in_the_mask_nor_trained() -> None:
    got = read_trajectory(others())
    (row,) = got.tokens
    assert (row.prompt_ids, row.completion_ids, row.mask) == ([1], [2, 3, 4, 5], [0, 0, 0, 1])
    assert row.logprobs == [-1, -2, 0, -0.5]
    assert got.trained == (False, True)
    assert [(turn.start, turn.stop) for turn in got.entry.episode.steps] == [(0, 2), (3, 4)]


def test_a_step_that_no_model_wrote_is_not_trained() -> None:
    trajectory = others()
    trajectory["steps"][2] |= {"is_copied_context": None, "llm_call_count": 0, "metrics": None}
    trajectory["steps"][2]["reasoning_content"] = None
    assert read_trajectory(trajectory).trained == (False, True)


def test_a_rewritten_history_has_no_row() -> None:
    trajectory = others()
    trajectory["steps"][3]["metrics"]["prompt_token_ids"] = [9, 9, 9, 9]
    assert read_trajectory(trajectory).tokens == ()


WRONG: list[tuple[str, Any, str]] = [
    ("schema_version", "ATIF-v2.0", "schema_version: only version 1 of ATIF"),
    ("steps", {}, "steps: expected a list"),
    ("agent", None, "agent: the field is missing"),
    ("steps.1.step_id", 7, r"steps\[1\].step_id: expected 2, got 7"),
    ("steps.1.source", "robot", r"steps\[1\].source: expected one of"),
    ("steps.1.message", 3, r"steps\[1\].message: expected a text or a list"),
    ("steps.1.message", [{"type": "image"}], r"steps\[1\].message\[0\].type: expected 'text'"),
    ("steps.1.metrics", {}, r"steps\[1\].metrics: only steps of the source 'agent'"),
    ("steps.2.tool_calls.0.arguments", "x", r"steps\[2\].tool_calls\[0\].arguments: expected an object"),
    ("steps.2.observation.results.0.source_call_id", "b", r"results\[0\].source_call_id: 'b' is not the id"),
    ("steps.2.metrics.logprobs", [-1], r"steps\[2\].metrics.logprobs: expected 2 numbers"),
    ("steps.2.metrics.logprobs", [-1, None], r"steps\[2\].metrics.logprobs: expected a number"),
    ("steps.2.metrics.completion_token_ids", [-1, 2], r"completion_token_ids: expected a token id"),
    ("steps.2.llm_call_count", 0, r"steps\[2\].reasoning_content: this step reports that no model"),
    ("extra.reward", "high", r"extra.reward: expected a number"),
    ("extra.rstar2_env", {"episode": {"turns": "x"}}, "extra.rstar2_env.episode: .*'turns'"),
    ("extra.rstar2_env", {"episode": {"messages": []}}, "expected one message of the policy for each of the 2"),
    ("extra.rstar2_env", {"rows": [{"mask": "x"}]}, r"extra.rstar2_env.rows\[0\]: .*'mask'"),
]


@pytest.mark.parametrize(("path", "value", "said"), WRONG, ids=[f"{path}={value}" for path, value, _ in WRONG])
def test_a_wrong_field_is_refused_by_its_name(path: str, value: Any, said: str) -> None:
    trajectory: Any = copy.deepcopy(others())
    at, *names = trajectory, *path.split(".")
    for name in names[:-1]:
        at = at[int(name) if isinstance(at, list) else name]
    at[names[-1]] = value
    with pytest.raises(RecordFormatError, match=said):
        read_trajectory(trajectory)


def test_an_error_names_file_and_line(tmp_path: Path) -> None:
    file = tmp_path / "both.jsonl"
    wrong = {**others(), "schema_version": "x"}
    file.write_text(f"{json.dumps(others())}\n\n{json.dumps(wrong)}\n")
    with pytest.raises(RecordFormatError, match=r"both.jsonl, line 3: schema_version"):
        list(read_trajectories(file))
    (tmp_path / "nan.json").write_text('{"schema_version": NaN}')
    with pytest.raises(RecordFormatError, match=r"nan.json is not valid JSON: NaN"):
        list(read_trajectories(tmp_path / "nan.json"))
    with pytest.raises(ConfigurationError, match=r"none.json does not exist: give a file of trajectories"):
        list(read_trajectories(tmp_path / "none.json"))
    (tmp_path / "bytes.json").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigurationError, match=r"bytes.json is not text in UTF-8"):
        list(read_trajectories(tmp_path / "bytes.json"))


def test_a_wrong_file_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_text("{}")
    done = run("traces", "--from", "atif", tmp_path / "bad.json", "--out", tmp_path / "t.jsonl")
    assert done.exit_code != 0
    assert "bad.json: schema_version: the field is missing" in " ".join(done.stderr.split())
    assert [path.name for path in tmp_path.iterdir()] == ["bad.json"]


def test_a_run_is_exported_and_imported_whole(tmp_path: Path) -> None:
    entry, row = turn_of_tokens()
    writer = RunWriter(tmp_path / "run", tokens=True)
    writer.begin({"trainer": "grpo", "model": {"path": "tiny"}})
    writer.train(1, [[entry.episode]], [[Decision(True, advantage=0.5)]])
    writer.tokens([row])
    writer.held_out(1, [entry.episode])
    assert run("export", tmp_path / "run", "--to", "atif", "--out", tmp_path / "out").exit_code == 0
    assert sorted(path.name for path in (tmp_path / "out").glob("*.json")) == ["eval-1-0.json", "train-1-0.json"]
    assert json.loads((tmp_path / "out" / "train-1-0.json").read_text())["agent"]["model_name"] == "tiny"
    held_out, trained = read_trajectories(tmp_path / "out")
    assert held_out.entry.episode.record() == trained.entry.episode.record() == entry.episode.record()
    assert (held_out.tokens, trained.tokens) == ((), (row,))
    assert trained.entry.decision == Decision(True, advantage=0.5)
    # Once more, through the files that an import writes.
    assert run("traces", "--from", "atif", tmp_path / "out", "--out", tmp_path / "t.jsonl").exit_code == 0
    assert run("export", "--to", "atif", tmp_path / "t.episodes.jsonl", "--out", tmp_path / "two").exit_code == 0
    assert [list(one.tokens) for one in read_trajectories(tmp_path / "two")] == [[], [row]]


@pytest.fixture
def imported(tmp_path: Path) -> Path:
    """The files of an import of three trajectories: right, wrong, and without a grade."""
    right, wrong, ungraded = others(), others(), others()
    wrong["extra"] = {"reward": 0.0, "gold": "43"}
    ungraded["extra"] = {}
    (tmp_path / "all.jsonl").write_text("".join(json.dumps(one) + "\n" for one in (right, wrong, ungraded)))
    done = run("traces", "--from", "atif", tmp_path / "all.jsonl", "--out", tmp_path / "t.jsonl")
    assert done.exit_code == 0, done.output
    return tmp_path


def test_traces_are_those_that_did_not_fail_and_copied_turns_are_context(imported: Path) -> None:
    traces = read_traces(imported / "t.jsonl")
    assert len(traces) == 2
    turns = [message for message in traces[0]["messages"] if message["role"] == "assistant"]
    assert [turn.get("train", True) for turn in turns] == [False, True]


def test_imported_episodes_are_viewed_diagnosed_and_regraded(imported: Path) -> None:
    episodes = imported / "t.episodes.jsonl"
    assert len(read_run(episodes).held_out()) == 3
    shown = run("view", "--text", "--no-pager", "--episode", "0", episodes)
    assert shown.exit_code == 0, shown.output
    assert "I compute." in shown.output
    found = run("diagnose", episodes, "--json")
    assert found.exit_code in (0, 1), found.output
    assert json.loads(found.stdout)
    graded = run("verify", "--run", episodes, "--json")
    assert graded.exit_code == 0, graded.output
    told = json.loads(graded.stdout)
    assert (told["graded"], told["correct"], told["no_gold"]) == (2, 1, 1)


def test_only_what_differs_from_the_formats_own_fields_is_extra() -> None:
    entry, row = turn_of_tokens()
    kept = trajectory_of(entry, "k", tokens=[row])["extra"]["rstar2_env"]
    assert not {"messages", "turns"} & set(kept["episode"])
    assert not {"prompt_ids", "completion_ids", "mask", "logprobs"} & set(kept["rows"][0])


def test_a_number_that_is_not_finite_comes_back(tmp_path: Path) -> None:
    entry, row = turn_of_tokens()
    row.logprobs[0] = math.nan
    (back,) = read_trajectory(json.loads(json.dumps(trajectory_of(entry, "k", tokens=[row]), allow_nan=False))).tokens
    assert math.isnan(back.logprobs[0])
    assert back.logprobs[1:] == row.logprobs[1:]


def test_a_run_without_episodes_is_refused(tmp_path: Path) -> None:
    RunWriter(tmp_path / "sft", kind="sft", episodes=False).begin({})
    assert "no episodes" in run("export", tmp_path / "sft", "--to", "atif", "--out", tmp_path / "out").stderr
    full = write_evaluation(tmp_path / "two.jsonl", [sample("p", True)])
    assert run("export", full, "--to", "atif", "--out", tmp_path / "out").exit_code == 0
    assert "can only be written as atif" in run("export", full, "--to", "xml", "--out", tmp_path / "xml").stderr
