"""The details of an event are in words, with few digits; curves mark the events that count."""

from __future__ import annotations

import pytest

from rstar2_env.core.run_folder import RunWriter
from rstar2_env.view.queries.events import event_details, marks_of
from rstar2_env.view.queries.run_facts import RunFacts

TOLD = {
    "evaluation": (
        {"figures": {"episodes": 1024.0, "pass_rate": 0.94140625, "reward": 1.0, "seconds": 3.25}, "seconds": 12.345},
        "figures: pass_rate 0.941, reward 1, episodes 1,024; seconds: 12.3",
    ),
    "started": ({"versions": {"torch": "2"}, "processes": 2, "resumed": False}, "processes: 2; resumed: false"),
    "saved": ({"path": "runs/é", "of": None, "list": [1, "b"]}, 'path: runs/é; of: –; list: [1, "b"]'),
    "stage_ended": ({"figures": {"loss": 0.123456, "name": "x"}}, "figures: loss 0.123, name x"),
}


@pytest.mark.parametrize("name", TOLD)
def test_details_of_an_event_are_words(name):
    event, told = TOLD[name]
    assert event_details({"event": name, "time": "t", "step": 3, **event}) == told


def test_long_details_are_cut():
    text = event_details({"event": "failed", "error": "x" * 5000})
    assert len(text) == 2000
    assert text.endswith("x…")


@pytest.mark.parametrize("value", [10**400, -1e300, 1e15])
def test_a_number_of_any_size_is_told(value):
    assert event_details({"event": "note", "value": value}).startswith("value: ")


def test_curves_mark_evaluations_checkpoints_notes_and_where_a_run_was_resumed(tmp_path):
    writer = RunWriter(tmp_path / "run")
    writer.begin({})
    for event, step in (("evaluation", 0), ("checkpoint", 2), ("note", 2), ("note", 2), ("checkpoint", 4)):
        writer.event(event, step)
    RunWriter(tmp_path / "run").begin({}, resumed=2)
    assert marks_of(RunFacts(tmp_path / "run").valid_events) == [
        {"step": 0, "events": ["evaluation"]},
        {"step": 2, "events": ["checkpoint", "note", "resumed"]},
    ]
