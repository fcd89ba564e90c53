"""The verdict follows the observations of warden and kernel; a program's own report only adds detail."""

from __future__ import annotations

import json
import signal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rstar2_env.core.status import ToolStatus
from rstar2_env.sandbox.inside.warden.verdict import Seen, read_report, verdict

BUSY = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

EXIT_0, EXIT_1 = 0, 1 << 8

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=10,
)
KEYS = ["status", "exit_code", "error_type", "error_message", "traceback", "value", "phase", "value_left_out", "ready"]
REPORTS = st.lists(
    st.binary(max_size=40)
    | st.dictionaries(st.sampled_from(KEYS), JSON, max_size=6).map(lambda r: json.dumps(r).encode()),
    max_size=4,
)


def said(**fields: object) -> list[bytes]:
    return [json.dumps(fields).encode()]


@BUSY
@given(
    status=st.integers(1, 255).map(lambda code: code << 8) | st.integers(1, 31), reports=REPORTS, started=st.booleans()
)
def test_no_report_makes_a_failure_a_success(status: int, reports: list[bytes], started: bool) -> None:
    found = verdict(Seen(wait_status=status, reports=reports, started=started, output=True))
    assert ToolStatus(found["status"]).is_error


@BUSY
@given(reports=REPORTS)
def test_no_report_hides_what_the_warden_enforced(reports: list[bytes]) -> None:
    for limit in ("timeout", "output_limit", "memory"):
        assert verdict(Seen(wait_status=9, stopped_for=limit, reports=reports))["status"] == limit


@BUSY
@given(reports=REPORTS)
def test_no_report_makes_a_success_a_failure(reports: list[bytes]) -> None:
    found = verdict(Seen(wait_status=EXIT_0, started=True, output=True, reports=reports))
    assert (found["status"], found["exit_code"], found.get("error_type")) == ("ok", 0, None)


@BUSY
@given(reports=REPORTS)
def test_a_report_is_bounded_text_whatever_was_sent(reports: list[bytes]) -> None:
    report = read_report(reports)
    assert all(isinstance(report[key], str) for key in report if key != "value_left_out")


def test_a_program_that_started_cannot_claim_a_syntax_error() -> None:
    claim = said(phase="compile", error_type="SyntaxError")
    assert verdict(Seen(wait_status=EXIT_1, started=False, reports=claim))["status"] == "syntax_error"
    assert verdict(Seen(wait_status=EXIT_1, started=True, reports=claim))["status"] == "exception"


def test_the_kernels_count_of_kills_makes_sigkill_memory() -> None:
    killed = int(signal.SIGKILL)
    assert verdict(Seen(wait_status=killed))["status"] == "exception"
    assert verdict(Seen(wait_status=killed, out_of_memory=True))["status"] == "memory"


@pytest.mark.parametrize(
    ("seen", "status"),
    [
        (Seen(wait_status=int(signal.SIGXCPU), cpu_s=3.0, cpu_limit_s=3.0), "timeout"),
        (Seen(wait_status=int(signal.SIGXCPU), cpu_s=0.1, cpu_limit_s=3.0), "exception"),  # it sent it to itself
        (Seen(wait_status=int(signal.SIGKILL), cpu_s=3.0, cpu_limit_s=3.0), "timeout"),
        (Seen(wait_status=int(signal.SIGSYS)), "blocked"),
        (Seen(wait_status=int(signal.SIGSEGV)), "exception"),
        (Seen(wait_status=EXIT_0, over_output=True, output=True), "output_limit"),
        (Seen(wait_status=EXIT_0), "empty"),
        (Seen(wait_status=EXIT_0, reports=said(value="1")), "ok"),
        (Seen(wait_status=EXIT_1, reports=said(error_type="MemoryError")), "memory"),
        (Seen(wait_status=EXIT_1, reports=said(error_type="KeyError")), "exception"),
        (Seen(wait_status=EXIT_1), "exception"),
    ],
)
def test_each_end_has_its_status(seen: Seen, status: str) -> None:
    assert verdict(seen)["status"] == status


def test_what_a_report_says_can_be_sent_on() -> None:
    found = verdict(Seen(wait_status=EXIT_1, reports=said(error_type="E" * 5000, error_message="\ud800 alone")))
    assert len(found["error_type"]) == 200
    assert found["error_message"].encode() == b"? alone"


def test_a_signal_without_a_name_is_numbered() -> None:
    assert verdict(Seen(wait_status=40))["signal"] == "SIG40"
