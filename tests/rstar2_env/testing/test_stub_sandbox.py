"""StubSandbox keeps the sandbox protocol, and answers instantly, after a wait, or by plan."""

import asyncio
import pickle
import threading
import time

import pytest

from rstar2_env.core.errors import ConfigurationError, SandboxUnavailableError
from rstar2_env.core.status import ToolStatus
from rstar2_env.sandbox.job import Job, Outcome, Sandbox
from rstar2_env.testing import StubSandbox

JOB = Job("print(1)")


def test_it_is_a_sandbox():
    assert isinstance(StubSandbox(), Sandbox)


def test_without_a_plan_every_program_succeeds():
    outcome = StubSandbox().run(JOB)
    assert (outcome.status, outcome.exit_code, outcome.stdout) == (ToolStatus.OK, 0, "stub\n")


def test_it_notes_the_jobs():
    sandbox = StubSandbox()
    sandbox.run(JOB)
    assert sandbox.jobs == [JOB]


def test_a_string_is_what_the_program_printed():
    outcome = StubSandbox("42").run(JOB)
    assert (outcome.status, outcome.stdout) == (ToolStatus.OK, "42")


def test_an_empty_string_is_an_empty_outcome():
    assert StubSandbox("").run(JOB).status is ToolStatus.EMPTY


def test_a_sequence_is_answered_in_order_and_its_last_answer_stays():
    sandbox = StubSandbox([ToolStatus.TIMEOUT, Outcome(ToolStatus.EXCEPTION, exit_code=3), "done"])
    assert [sandbox.run(JOB).status for _ in range(4)] == ["timeout", "exception", "ok", "ok"]


def test_a_function_sees_the_job_and_decides():
    sandbox = StubSandbox(lambda job: ToolStatus.TIMEOUT if "while" in job.code else "fine")
    assert sandbox.run(Job("while True: pass")).status is ToolStatus.TIMEOUT
    assert sandbox.run(JOB).stdout == "fine"


def test_a_function_may_raise_as_a_broken_provider_would():
    def broken(job):
        raise SandboxUnavailableError("no")

    with pytest.raises(SandboxUnavailableError):
        StubSandbox(broken).run(JOB)


@pytest.mark.parametrize("status", ["malformed", "unknown_tool", "invalid_arguments"])
def test_a_status_that_no_sandbox_returns_is_refused(status):
    with pytest.raises(ConfigurationError, match=status):
        StubSandbox(ToolStatus(status))


@pytest.mark.parametrize("status", sorted(set(ToolStatus) - {"malformed", "unknown_tool", "invalid_arguments"}))
def test_every_status_of_a_sandbox_has_an_outcome(status):
    assert StubSandbox(status).run(JOB).status is status


@pytest.mark.parametrize("plan", [[], [7], 7])
def test_a_plan_that_means_nothing_is_refused(plan):
    with pytest.raises(ConfigurationError):
        StubSandbox(plan)


def test_waiting_takes_the_set_time():
    start = time.monotonic()
    outcome = StubSandbox(wait_s=0.05).run(JOB)
    assert time.monotonic() - start >= 0.05
    assert outcome.wall_s == 0.05


def test_jobs_of_one_run_many_wait_together():
    start = time.monotonic()
    outcomes = StubSandbox(["a", "b", "c"], wait_s=0.3).run_many([JOB] * 10)
    assert time.monotonic() - start < 2.5
    assert [outcome.stdout for outcome in outcomes[:3]] == ["a", "b", "c"]


def test_arun_does_not_block_the_loop():
    async def ten():
        sandbox = StubSandbox(wait_s=0.3)
        return await asyncio.gather(*[sandbox.arun(JOB) for _ in range(10)])

    start = time.monotonic()
    assert len(asyncio.run(ten())) == 10
    assert time.monotonic() - start < 2.5


def test_a_cancelled_arun_is_counted():
    async def give_up():
        sandbox = StubSandbox(wait_s=30)
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(sandbox.arun(JOB), 0.01)
        return sandbox.cancelled

    assert asyncio.run(give_up()) == 1


def test_threads_share_one_plan_without_losing_an_answer():
    sandbox = StubSandbox([str(number) for number in range(1, 201)])
    got = []

    def take():
        got.extend(sandbox.run(JOB).stdout for _ in range(50))

    threads = [threading.Thread(target=take) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(got, key=int) == [str(number) for number in range(1, 201)]


def test_a_closed_one_refuses_jobs_and_closes_twice():
    with StubSandbox() as sandbox:
        pass
    sandbox.close()
    with pytest.raises(SandboxUnavailableError, match="closed"):
        sandbox.run(JOB)


def test_it_is_pickled_with_its_plan_and_place():
    sandbox = StubSandbox(["first", "second"])
    sandbox.run(JOB)
    assert pickle.loads(pickle.dumps(sandbox)).run(JOB).stdout == "second"


def test_a_session_is_new_and_then_kept():
    sandbox = StubSandbox()
    outcomes = [sandbox.run(Job("1", session="a")) for _ in range(2)]
    assert [outcome.session for outcome in outcomes] == ["new", "kept"]
    assert [outcome.exit_code for outcome in outcomes] == [None, None]
    assert sandbox.sessions == {"a"}


def test_a_signal_ends_a_session_and_the_next_cell_starts_clean():
    sandbox = StubSandbox([ToolStatus.OK, ToolStatus.TIMEOUT, ToolStatus.OK])
    outcomes = [sandbox.run(Job("1", session="a")) for _ in range(3)]
    assert [outcome.session for outcome in outcomes] == ["new", "ended", "new"]
    assert outcomes[1].session_note == "The stub ended the session: SIGKILL."


def test_a_timeout_without_a_signal_interrupts_a_session():
    sandbox = StubSandbox([ToolStatus.OK, Outcome(ToolStatus.TIMEOUT)])
    sandbox.run(Job("1", session="a"))
    assert sandbox.run(Job("1", session="a")).session == "interrupted"
    assert sandbox.sessions == {"a"}


def test_an_outcome_of_the_plan_may_say_what_became_of_the_session():
    planned = Outcome(ToolStatus.OK, session="replaced", session_note="It was idle for too long.")
    outcome = StubSandbox(planned).run(Job("1", session="a"))
    assert (outcome.session, outcome.session_note) == ("replaced", "It was idle for too long.")


def test_an_ended_session_is_gone_and_an_unknown_one_is_harmless():
    sandbox = StubSandbox()
    sandbox.run(Job("1", session="a"))
    sandbox.end_session("a")
    sandbox.end_session("never there")
    assert sandbox.run(Job("1", session="a")).session == "new"


def test_without_a_session_an_outcome_names_none():
    assert StubSandbox().run(JOB).session is None


def test_something_else_than_a_job_is_told_as_a_real_sandbox_tells_it():
    sandbox = StubSandbox()
    with pytest.raises(ConfigurationError, match="of the type Job, not str"):
        sandbox.run("print(1)")
    assert sandbox.jobs == []
