"""``StubSandbox``: a sandbox that runs nothing, for tests of environments that must not start processes.

Covered: the whole protocol of ``rstar2_env.sandbox.job.Sandbox``; instant, delayed and failing answers; starting and
ending sessions by name. Not covered: the execution of code. A session holds no state, and nothing is isolated.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from rstar2_env.core.errors import ConfigurationError, SandboxUnavailableError
from rstar2_env.core.status import ToolStatus
from rstar2_env.sandbox.job import Capability, Job, Outcome, Sandbox
from rstar2_env.sandbox.messages import check_job
from rstar2_env.testing.plan import StubPlan

Answer: TypeAlias = "Outcome | ToolStatus | str"
SandboxPlan: TypeAlias = "Answer | Sequence[Answer] | Callable[[Job], Answer]"

_OUTCOMES = {
    ToolStatus.OK: Outcome(ToolStatus.OK, exit_code=0, stdout="stub\n"),
    ToolStatus.EMPTY: Outcome(ToolStatus.EMPTY, exit_code=0),
    ToolStatus.SYNTAX_ERROR: Outcome(
        ToolStatus.SYNTAX_ERROR, exit_code=1, error_type="SyntaxError", traceback="SyntaxError: stub\n"
    ),
    ToolStatus.EXCEPTION: Outcome(
        ToolStatus.EXCEPTION, exit_code=1, error_type="RuntimeError", traceback="RuntimeError: stub\n"
    ),
    ToolStatus.TIMEOUT: Outcome(ToolStatus.TIMEOUT, signal="SIGKILL"),
    ToolStatus.MEMORY: Outcome(ToolStatus.MEMORY, exit_code=1, error_type="MemoryError"),
    ToolStatus.OUTPUT_LIMIT: Outcome(ToolStatus.OUTPUT_LIMIT, signal="SIGKILL", truncated=True),
    ToolStatus.BLOCKED: Outcome(ToolStatus.BLOCKED, signal="SIGSYS"),
    ToolStatus.UNAVAILABLE: Outcome(ToolStatus.UNAVAILABLE, error_type="SandboxUnavailableError"),
}


class StubSandbox(Sandbox):
    """Answers every job with planned outcomes, immediately or after a set time. Safe to call from any thread.

    Args:
        plan: One answer, a sequence of answers (the last one repeats), or a function of the ``Job``. An answer is an
            ``Outcome``, a ``ToolStatus`` for a typical outcome of that status, or a string for the output of a program
            that succeeded.
        wait_s: Seconds that every job takes; the jobs of one ``run_many`` take this time together.

    A job with a session name starts or continues that session; the outcome reports the session as ``new`` or ``kept``,
    unless the plan's ``Outcome`` sets its own session state. A signal or ``unavailable`` ends a session; a timeout
    without a signal interrupts it. ``sessions`` holds the names of the live sessions.

    Raises:
        ConfigurationError: The plan is empty, or has a status that no sandbox returns (such as ``malformed``).
    """

    def __init__(self, plan: SandboxPlan = ToolStatus.OK, *, wait_s: float = 0.0) -> None:
        self._plan: StubPlan[Outcome] = StubPlan(plan, _outcome)
        self.wait_s = wait_s
        self.jobs: list[Job] = []
        self.cancelled = 0
        self.closed = False
        self.sessions: set[str] = set()

    def run(self, job: Job) -> Outcome:
        """Answer one job, after blocking this thread for ``wait_s`` seconds."""
        return self.run_many([job])[0]

    async def arun(self, job: Job) -> Outcome:
        """Answer one job, after waiting ``wait_s`` seconds without blocking the event loop.

        The attribute ``cancelled`` counts cancelled jobs.
        """
        outcome = self._answer(job)
        try:
            await asyncio.sleep(self.wait_s)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return outcome

    def run_many(self, jobs: Sequence[Job]) -> list[Outcome]:
        """Answer all jobs, in order, after blocking this thread once for ``wait_s`` seconds."""
        outcomes = [self._answer(job) for job in jobs]
        if self.wait_s > 0 and outcomes:
            time.sleep(self.wait_s)
        return outcomes

    def capabilities(self) -> Sequence[Capability]:
        """Return no layers of isolation, since nothing runs."""
        return ()

    def end_session(self, name: str) -> None:
        """End a session. Unknown names are ignored."""
        self.sessions.discard(name)

    def close(self) -> None:
        """Refuse every later job, and end every session."""
        self.closed = True
        self.sessions.clear()

    def _answer(self, job: Job) -> Outcome:
        if self.closed:
            raise SandboxUnavailableError("This stub sandbox is closed; create a new one.")
        check_job(job)
        self.jobs.append(job)
        outcome = self._plan.next(job)
        if job.session is not None:
            outcome = self._in_session(job.session, outcome)
        return replace(outcome, wall_s=self.wait_s) if self.wait_s > 0 and not outcome.wall_s else outcome

    def _in_session(self, name: str, outcome: Outcome) -> Outcome:
        """Return the outcome of a cell, with the state of its session."""
        state, note = outcome.session, outcome.session_note
        if state is None:
            state = "kept" if name in self.sessions else "new"
            if outcome.signal is not None or outcome.status is ToolStatus.UNAVAILABLE:
                state, note = "ended", f"The stub ended the session: {outcome.signal or outcome.status.value}."
            elif outcome.status is ToolStatus.TIMEOUT:
                state, note = "interrupted", "The cell ran out of time and was interrupted."
        if state == "ended":
            self.sessions.discard(name)
            return replace(outcome, session=state, session_note=note)
        self.sessions.add(name)
        return replace(outcome, session=state, session_note=note, exit_code=None)


def _outcome(answer: Any) -> Outcome:
    if isinstance(answer, Outcome):
        return answer
    if isinstance(answer, ToolStatus):
        if answer not in _OUTCOMES:
            raise ConfigurationError(
                f"A sandbox never returns {answer.value!r}, because this status is determined before a job is "
                f"created. Sandboxes return {', '.join(_OUTCOMES)}."
            )
        return _OUTCOMES[answer]
    if isinstance(answer, str):
        return Outcome(ToolStatus.OK if answer else ToolStatus.EMPTY, exit_code=0, stdout=answer)
    raise ConfigurationError(f"A stub sandbox answers with an Outcome, a ToolStatus or a str, not {answer!r}.")
