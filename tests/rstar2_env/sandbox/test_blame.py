"""Failures of programs are never reported as failures of the sandbox, with any provider, with and without a session."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import pytest
from hostile_mix import ENDS, hostile_program
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rstar2_env.core.status import ToolStatus
from rstar2_env.sandbox import Job, Limits, Outcome, Sandbox
from rstar2_env.sandbox.job import OutcomeReason

SEEDS = st.integers(0, 1 << 32)
LIMITS = Limits(wall_s=1.5, memory_mb=256, processes=16, output_bytes=1 << 14, file_mb=4)
OURS = {"lost", "closed", "session_ended"}
FEW = settings(
    max_examples=12,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def blame(outcome: Outcome, code: str) -> None:
    """Check that a program failed, and that the failure is its own."""
    what = f"{outcome}\n{code}"
    assert outcome.status is not ToolStatus.UNAVAILABLE, what
    assert outcome.status not in (ToolStatus.OK, ToolStatus.EMPTY), what
    assert outcome.reason in get_args(OutcomeReason), what
    assert outcome.reason not in OURS, what
    assert outcome.attempts == 1, what


@FEW
@given(seed=SEEDS)
def test_a_hostile_program_that_fails_is_to_blame(any_sandbox: Sandbox, seed: int) -> None:
    code = hostile_program(seed)
    blame(any_sandbox.run(Job(code, limits=LIMITS)), code)
    assert any_sandbox.run(Job("6 * 7")).value == "42"


@FEW
@given(seeds=st.lists(SEEDS, min_size=1, max_size=3))
def test_a_session_is_to_blame_for_its_cells_and_for_nothing_else(any_sandbox: Sandbox, seeds: list[int]) -> None:
    name = f"hostile {seeds}"
    any_sandbox.run(Job("x = 1", session="beside"))
    for seed in seeds:
        code = hostile_program(seed)
        outcome = any_sandbox.run(Job(code, session=name, limits=LIMITS))
        assert outcome.status is not ToolStatus.UNAVAILABLE, f"{outcome}\n{code}"
        assert outcome.reason not in OURS, f"{outcome}\n{code}"
        # What the kernel saw of its end is what its outcome says.
        failed = outcome.signal is not None or outcome.exit_code not in (0, None)
        assert not (failed and outcome.status in (ToolStatus.OK, ToolStatus.EMPTY)), f"{outcome}\n{code}"
    after = any_sandbox.run(Job("print(6 * 7)", session=name))
    assert after.status is not ToolStatus.UNAVAILABLE, after
    any_sandbox.end_session(name)
    beside = any_sandbox.run(Job("x", session="beside"))
    assert (beside.value, beside.session) == ("1", "kept")


@pytest.mark.parametrize(("end", "statuses"), ENDS.items())
def test_each_end_alone_has_its_status_and_its_reason(local: Sandbox, end: str, statuses: tuple[str, ...]) -> None:
    # Only the program that must time out has a short time: a loaded machine can delay each other end.
    limits = LIMITS if "timeout" in statuses else replace(LIMITS, wall_s=60.0)
    outcome = local.run(Job(f"import ctypes, posix\n{end}", limits=limits))
    assert outcome.status.value in statuses
    assert outcome.reason not in (None, *OURS)


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("print(1)", None),
        ("", None),
        ("while True: pass", "wall_clock"),
        ("x =", "compile"),
        ("1 / 0", "exit"),
        ("import os\nos.abort()", "signal"),
        ("import ctypes\nctypes.CDLL(None).mount(b'x', b'/tmp', b'tmpfs', 0, None)", "system_call"),
        ("while True: print('x' * 999)", "output"),
    ],
)
def test_the_reason_says_what_decided_the_status(local: Sandbox, code: str, reason: str | None) -> None:
    limits = LIMITS if reason == "wall_clock" else replace(LIMITS, wall_s=60.0)
    assert local.run(Job(code, limits=limits)).reason == reason


def test_in_a_session_an_exception_is_what_the_program_told(local: Sandbox) -> None:
    assert local.run(Job("1 / 0", session="told")).reason == "raised"
    local.end_session("told")


FORGE = """
import os
def forge(message):
    os.write(4, message)
"""


@pytest.mark.parametrize("message", ["b'{\"done\": 999999}'", 'b\'{"done": 0, "value": "7"}\'', "b'{\"done\": '"])
def test_a_forged_end_of_another_cell_ends_the_session(local: Sandbox, message: str) -> None:
    local.run(Job(FORGE, session="forger"))
    outcome = local.run(Job(f"forge({message})\nimport time\ntime.sleep(60)", session="forger"))
    assert (outcome.status, outcome.reason, outcome.session) == (ToolStatus.EXCEPTION, "forged", "ended")
    assert local.run(Job("6 * 7", session="forger")).value == "42"
    local.end_session("forger")
