"""``interleaved_sft``: which problems are taught, when, and that the buffer outlasts a checkpoint."""

from __future__ import annotations

import json

import pytest
from hook_events import HookEvents

from rstar2_env.core.errors import ConfigurationError, ProblemFormatError
from rstar2_env.trainers.hooks.interleaved_sft import InterleavedSft
from rstar2_env.trainers.samplers.base import GroupResult, Start


def shown(number):
    return [{"role": "user", "content": f"Problem {number}"}, {"role": "assistant", "content": f"Answer {number}"}]


@pytest.fixture
def make(tmp_path):
    path = tmp_path / "shown.jsonl"
    records = [{"problem_id": f"p{number}", "messages": shown(number)} for number in range(10)]
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return lambda size=3: InterleavedSft(str(path), size=size)


def went(*problems, successes=0, episodes=4):
    return [
        GroupResult(Start(0), at, episodes, successes, 0.0, 0.0, episodes, problem_id=name)
        for at, name in enumerate(problems)
    ]


def step(events, outcomes):
    events.run.step += 1
    events.hook.observe(outcomes)
    events.hook.on_step_end(None, None, None)


def test_the_newest_problems_are_taught_and_the_others_stay(make):
    events = HookEvents(make())
    step(events, went("p0", "p1"))
    assert events.done("sft_step") == []
    step(events, went("p2", "p3"))
    ((at, (taught, rate)),) = events.done("sft_step")
    assert (at, rate) == (2, 1e-6)
    assert taught == [shown(number) for number in (2, 3, 0)]
    step(events, went("p4"))
    assert len(events.done("sft_step")) == 1
    step(events, went("p5"))
    assert events.done("sft_step")[1][1][0] == [shown(number) for number in (5, 4, 1)]
    assert events.noted() == [2, 4]


def test_what_somebody_solved_what_nobody_played_and_what_nobody_shows_is_not_taught(make):
    events = HookEvents(make(1))
    step(events, went("p0", "p1", successes=1))
    step(events, went("p0", episodes=0))
    step(events, went("unknown", ""))
    assert events.run.done == []


def test_a_problem_that_fails_again_counts_once(make):
    events = HookEvents(make())
    step(events, went("p0", "p0", "p1"))
    step(events, went("p1", "p0"))
    assert events.run.done == []
    assert events.hook.state_dict() == {"buffer": ["p0", "p1"]}


def test_the_buffer_is_in_the_checkpoint(make):
    begun = HookEvents(make())
    step(begun, went("p0", "p1"))
    resumed = begun.resumed(make())
    step(resumed, went("p2"))
    assert resumed.done("sft_step")[0][1][0] == [shown(number) for number in (2, 0, 1)]


def test_a_file_that_is_not_there_or_shows_nothing_is_refused(tmp_path):
    with pytest.raises(ConfigurationError, match=r"file of demonstrations .* does not exist"):
        InterleavedSft(str(tmp_path / "none.jsonl"))
    (tmp_path / "wrong.jsonl").write_text('{"problem_id": "p0"}\n')
    with pytest.raises(ProblemFormatError, match=r'wrong\.jsonl:1 is not a record with "messages"'):
        InterleavedSft(str(tmp_path / "wrong.jsonl"))
    (tmp_path / "empty.jsonl").touch()
    with pytest.raises(ConfigurationError, match="does not contain a record with problem_id and messages"):
        InterleavedSft(str(tmp_path / "empty.jsonl"))
