"""The stages of a pipeline are told by the events of its folder, also those that are no runs and those to come."""

import pytest

from rstar2_env.view.queries.stages import stages_of

CONFIG = {
    "stages": {
        "data": {"kind": "data"},
        "learn": {"kind": "train"},
        "again": {"rounds": 2, "stages": {"play": {"kind": "evaluate"}}},
    }
}


def began(stage, time="t0"):
    return {"event": "stage_began", "stage": stage, "time": time}


def ended(stage, seconds=2.0, **figures):
    return {"event": "stage_ended", "stage": stage, "time": "t1", "seconds": seconds, "figures": figures}


def by_name(events, state="running", runs=None):
    return {stage["name"]: stage for stage in stages_of(events, CONFIG, state, runs or {})}


def test_stages_come_in_the_order_in_which_they_began_and_then_those_that_wait():
    found = by_name([began("data"), ended("data", problems=9), began("learn")])
    assert {name: stage["state"] for name, stage in found.items()} == {
        "data": "finished",
        "learn": "running",
        "play": "waiting",
    }
    assert list(found) == ["data", "learn", "play"]
    assert found["data"]["figures"] == {"problems": 9}
    assert found["data"]["seconds"] == 2.0


def test_a_stage_of_rounds_is_told_by_round_and_has_the_kind_that_was_planned():
    found = by_name([began("play-1"), ended("play-1"), began("play-2")])
    assert [found[name]["kind"] for name in ("play-1", "play-2")] == ["evaluate", "evaluate"]
    assert "play" not in found


def test_a_stage_that_goes_on_after_a_kill_has_the_seconds_of_all_its_runs():
    found = by_name([began("learn"), ended("learn", 3.0), began("learn", "t5"), ended("learn", 4.0)])
    assert found["learn"]["seconds"] == 7.0
    assert found["learn"]["started"] == "t0"


def test_the_seconds_of_runs_that_were_interrupted_failed_or_were_killed_count():
    stopped = [{"event": event, "stage": "learn", "seconds": 3.0} for event in ("interrupted", "failed")]
    after_a_kill = {**began("learn"), "seconds": 5.0}
    events = [began("learn"), stopped[0], began("learn"), stopped[1], began("learn"), after_a_kill, ended("learn", 4.0)]
    assert by_name(events)["learn"]["seconds"] == 15.0
    assert by_name(events[:2])["learn"]["seconds"] == 3.0


@pytest.mark.parametrize(
    ("state", "told"), [("running", "running"), ("failed", "failed"), ("interrupted", "interrupted")]
)
def test_the_last_stage_is_as_the_pipeline_is(state, told):
    events = [began("data"), began("learn"), {"event": "failed", "error": "no memory"}]
    found = by_name(events, state)
    assert (found["data"]["state"], found["learn"]["state"]) == ("interrupted", told)
    assert found["learn"]["error"] == ("no memory" if state == "failed" else None)


def test_a_stage_that_is_replaced_waits_again():
    assert (
        by_name([began("learn"), ended("learn"), {"event": "stage_replaced", "stage": "learn"}])["learn"]["state"]
        == "waiting"
    )


def test_a_stage_that_is_a_run_leads_to_it_and_shows_its_figures():
    runs = {"learn": {"run": "learn-1", "kind": "training", "figures": {"pass_rate": 0.5}, "error": None}}
    found = by_name([began("learn")], runs=runs)
    assert found["learn"]["run"] == "learn-1"
    assert found["learn"]["figures"] == {"pass_rate": 0.5}
    assert found["learn"]["kind"] == "train"


@pytest.mark.parametrize("config", [{}, {"stages": 7}, {"stages": {"a": None}}])
def test_options_of_another_form_are_no_reason_to_fail(config):
    assert [stage["name"] for stage in stages_of([began("x"), {"event": 3}], config, "running", {})][:1] == ["x"]


def test_seconds_of_any_size_are_added_up_or_left_out():
    events = [began("learn"), ended("learn", 3.5), began("learn"), ended("learn", 10**400)]
    assert by_name(events)["learn"]["seconds"] == 3.5
