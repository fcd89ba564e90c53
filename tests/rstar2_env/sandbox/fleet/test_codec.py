"""All contents of jobs and outcomes are transmitted unchanged."""

from __future__ import annotations

import json
from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.status import ToolStatus
from rstar2_env.sandbox import Job, Limits, Outcome
from rstar2_env.sandbox.fleet.codec import dump, job_from_json, job_to_json, outcome_from_json, outcome_to_json

ANY_TEXT = st.text(st.characters(codec=None, categories=None))  # lone surrogates included
MAYBE_TEXT = st.none() | ANY_TEXT
SECONDS = st.floats(0, 1e6)


@given(
    st.builds(
        Job,
        code=ANY_TEXT,
        stdin=ANY_TEXT,
        files=st.dictionaries(ANY_TEXT, st.binary(), max_size=3),
        seed=st.integers(),
        limits=st.builds(Limits, wall_s=st.floats(0.1, 1e9), cpu_s=st.none() | st.floats(0.1, 1e9)),
    )
)
def test_a_job_comes_back_as_it_was(job: Job) -> None:
    assert job_from_json(json.loads(dump(job_to_json(job)))) == job


@given(
    st.builds(
        Outcome,
        status=st.sampled_from(ToolStatus),
        exit_code=st.none() | st.integers(0, 255),
        signal=st.none() | st.just("SIGKILL"),
        stdout=ANY_TEXT,
        stderr=ANY_TEXT,
        value=MAYBE_TEXT,
        error_type=MAYBE_TEXT,
        error_message=MAYBE_TEXT,
        traceback=MAYBE_TEXT,
        wall_s=SECONDS,
        cpu_s=SECONDS,
        peak_memory_mb=SECONDS,
        truncated=st.booleans(),
        stdout_left_out=st.integers(0),
        stderr_left_out=st.integers(0),
        attempts=st.integers(0, 5),
    )
)
def test_an_outcome_comes_back_as_it_was(outcome: Outcome) -> None:
    assert outcome_from_json(json.loads(dump(outcome_to_json(outcome)))) == outcome


def test_two_halves_of_a_character_stay_two() -> None:
    job = Job("print('\ud83d' '\ude00')".replace("' '", ""))
    assert job_from_json(json.loads(dump(job_to_json(job)))) == job


def test_a_line_holds_no_newline() -> None:
    assert b"\n" not in dump(outcome_to_json(Outcome(ToolStatus.OK, stdout="a\nb\u2028c\r\n")))


def test_a_field_of_a_newer_server_is_left_out() -> None:
    assert outcome_from_json({"status": "ok", "colour": "red"}) == Outcome(ToolStatus.OK)


def test_every_field_of_an_outcome_is_carried() -> None:
    filled = {
        item.name: {"str": "x", "int": 7, "float": 0.5, "bool": True}.get(str(item.type).split(" ")[0], "kept")
        for item in fields(Outcome)
        if item.name != "status"
    }
    outcome = Outcome(ToolStatus.OK, **filled)
    assert outcome_from_json(outcome_to_json(outcome)) == outcome


@pytest.mark.parametrize(
    ("written", "complaint"),
    [
        ({}, "'code'"),
        ({"code": 5}, "int"),
        ({"code": "1", "seed": "x"}, "seed"),
        ({"code": "1", "session": 3}, "session"),
        ({"code": "1", "limits": {"wall": 3}}, "wall_s"),
        ({"code": "1", "limits": {"wall_s": "3"}}, "number"),
        ({"code": "1", "limits": {"wall_s": -3}}, "above 0"),
        ({"code": "1", "limits": []}, "object"),
        ({"code": "1", "files": [["a", "!"]]}, "wrong type"),
        ({"code": {"base64": 3}}, "base64"),
    ],
)
def test_a_call_that_is_none_is_refused_with_its_reason(written: dict[str, object], complaint: str) -> None:
    with pytest.raises(ConfigurationError, match=complaint):
        job_from_json(written)
