"""Trajectories against the package ``atif`` 1.8, whose models refuse unknown fields."""

from __future__ import annotations

import json

import pytest
from atif import Agent, Metrics, Observation, ObservationResult, Step, ToolCall, Trajectory
from cli_runner import run

from rstar2_env.adapters.atif import read_trajectory, trajectory_of
from rstar2_env.adapters.atif.files import read_trajectories
from rstar2_env.core.episode import Episode, Message
from rstar2_env.core.errors import RecordFormatError
from rstar2_env.core.run_folder import Decision, EpisodeEntry, TokensEntry, read_run
from rstar2_env.core.status import ToolStatus
from rstar2_env.core.turn import Turn


def through(trajectory):
    """What is left after the package's own models read and wrote it."""
    return Trajectory.model_validate(trajectory).to_json_dict()


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory):
    at = tmp_path_factory.mktemp("atif")
    played = ("eval", "rstar2/MathTool-v0", "--agent", "oracle", "--problems", "arithmetic", "-n", "3")
    done = run(*played, "--out", at / "run")
    assert done.exit_code == 0, done.output
    assert run("export", at / "run", "--to", "atif", "--out", at / "out").exit_code == 0
    return at


def test_episodes_of_an_evaluation_come_back_through_their_models(evaluated):
    played = {entry.episode.group: entry.episode.record() for entry in read_run(evaluated / "run").held_out()}
    files = sorted((evaluated / "out").glob("*.json"))
    back = [read_trajectory(through(json.loads(file.read_text()))).entry.episode for file in files]
    assert {episode.group: episode.record() for episode in back} == played
    assert len(list(read_trajectories(evaluated / "out"))) == len(played) == 3


CALL = '<tool_call>{"name": "python", "arguments": {"code": "1"}}</tool_call>'
RESULT = "<tool_response>\n1\n</tool_response>"


@pytest.fixture
def whole():
    messages = [Message("system", "s"), Message("user", "1?"), Message("assistant", f"so {CALL}")]
    messages += [Message("user", RESULT), Message("assistant", "1")]
    turns = [Turn(0, 2, "1?", 0.25, [ToolStatus.OK], 3, {"tool_calls": [{"name": "python", "status": "ok"}]})]
    turns.append(Turn(3, 4, RESULT, 1.0, version=3))
    episode = Episode(messages=messages, steps=turns, reward=1.25, rewards={"a": 1.25}, end="answered", turns=2)
    episode.injected, episode.parent = [ToolStatus.TIMEOUT], (1, 2)
    row = TokensEntry(4, 0, 1, [7], [1, 2, 3, 4], [1, 1, 0, 1], [-0.5, -1.5, 0.0, -2.0], [0.5] * 4, [1.0] * 4)
    return EpisodeEntry(episode, 4, 1, Decision(True, advantage=0.5, weighed={"penalty": 0.5}), {"gold": "1"}), row


def test_their_models_read_tokens_calls_results_and_copied_context(whole):
    entry, row = whole
    theirs = Trajectory.model_validate(trajectory_of(entry, "train-4-0", tokens=[row]))
    first, last = theirs.steps[2:]
    assert first.metrics.prompt_token_ids == [7]
    assert (first.metrics.completion_token_ids, first.metrics.logprobs) == ([1, 2], [-0.5, -1.5])
    assert (last.metrics.prompt_token_ids, last.metrics.completion_token_ids) == ([7, 1, 2, 3], [4])
    assert (first.is_copied_context, last.is_copied_context) == (True, None)
    (call,) = first.tool_calls
    assert (call.function_name, call.arguments) == ("python", {"code": "1"})
    assert [(one.source_call_id, one.content) for one in first.observation.results] == [(call.tool_call_id, RESULT)]
    assert [step.message for step in theirs.steps] == ["s", "1?", f"so {CALL}", "1"]


def test_what_the_format_has_no_field_for_comes_back_from_extra(whole):
    entry, row = whole
    back = read_trajectory(through(trajectory_of(entry, "train-4-0", tokens=[row])))
    assert back.entry.episode.record() == entry.episode.record()
    assert (back.entry.step, back.entry.member, back.entry.decision) == (4, 1, entry.decision)
    assert back.entry.more == {"gold": "1"}
    assert back.tokens == (row,)


def test_a_trajectory_that_their_models_make_is_read():
    call = ToolCall(tool_call_id="a", function_name="python", arguments={"code": "1"})
    shown = Observation(results=[ObservationResult(source_call_id="a", content="1")])
    metrics = Metrics(prompt_token_ids=[1], completion_token_ids=[2], logprobs=[-1.0])
    copied = Step(step_id=2, source="agent", message="", tool_calls=[call], observation=shown, metrics=metrics)
    copied.is_copied_context = True
    steps = [Step(step_id=1, source="user", message="1?"), copied, Step(step_id=3, source="agent", message="1")]
    theirs = Trajectory(schema_version="ATIF-v1.8", agent=Agent(name="x", version="1"), steps=steps)
    got = read_trajectory(theirs.to_json_dict())
    assert [message.content for message in got.entry.episode.messages] == ["1?", CALL, RESULT, "1"]
    assert got.trained == (False, True)


@pytest.mark.parametrize("name", ["steps", "agent", "schema_version"])
def test_what_their_models_refuse_is_refused_by_its_field(name, whole):
    trajectory = trajectory_of(whole[0], "k")
    del trajectory[name]
    with pytest.raises(ValueError, match=name):
        Trajectory.model_validate(trajectory)
    with pytest.raises(RecordFormatError, match=name):
        read_trajectory(trajectory)
