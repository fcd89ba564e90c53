"""``BaseSandbox`` with a minimal provider that only submits jobs and ends them."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import warnings
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any

import pytest

from rstar2_env.core.errors import ConfigurationError, SandboxUnavailableError
from rstar2_env.core.status import ToolStatus
from rstar2_env.sandbox import BaseSandbox, Capability, Job, Outcome, Sandbox
from rstar2_env.sandbox.base import CLOSED
from rstar2_env.sandbox.messages import lost


class Options:
    def __init__(self, isolation: str = "strict", answer: str = "42") -> None:
        self.isolation = isolation
        self.answer = answer

    def as_given(self) -> dict[str, Any]:
        return vars(self)


class Waiting:
    def __init__(self) -> None:
        self.future: Future[Outcome] = Future()
        self.dropped = False

    def drop(self) -> None:
        self.dropped = True


class Tiny(BaseSandbox):
    """Sandbox that answers at once; the job ``wait`` waits forever, and ``refuse`` is rejected."""

    options: Options

    def __init__(self, **options: Any) -> None:
        super().__init__(Options(**options))
        self.submitted: list[Waiting] = []
        self.ends = 0
        self._started()

    def _submit(self, job: Job) -> Waiting:
        if job.code == "refuse":
            raise ConfigurationError("not here")
        self.submitted.append(Waiting())
        if job.code != "wait":
            self.submitted[-1].future.set_result(Outcome(ToolStatus.OK, value=self.options.answer))
        return self.submitted[-1]

    def _end(self) -> None:
        self.ends += 1
        for each in self.submitted:
            if not each.future.done():
                each.future.set_result(lost(CLOSED, 1))

    def capabilities(self) -> Sequence[Capability]:
        return (Capability("no network", False, "none here", required=True),)

    def end_session(self, name: str) -> None: ...


def test_it_keeps_the_protocol_and_runs_jobs() -> None:
    with Tiny() as sandbox:
        assert isinstance(sandbox, Sandbox)
        assert sandbox.run(Job("1")).value == "42"
        assert [outcome.value for outcome in sandbox.run_many([Job("1")] * 2)] == ["42", "42"]
    assert sandbox.closed
    assert sandbox.ends == 1
    sandbox.close()
    assert sandbox.ends == 1
    with pytest.raises(SandboxUnavailableError, match="closed"):
        sandbox.run(Job("1"))


def test_what_no_sandbox_takes_is_refused_before_the_provider_sees_it() -> None:
    wrong: Any = "print(1)"
    with Tiny() as sandbox:
        for use in (lambda: sandbox.run(wrong), lambda: sandbox.run_many([Job("1"), wrong])):
            with pytest.raises(ConfigurationError, match="Job"):
                use()
        assert sandbox.submitted == []


def test_of_many_jobs_all_are_submitted_or_none_goes_on() -> None:
    with Tiny() as sandbox:
        with pytest.raises(ConfigurationError, match="not here"):
            sandbox.run_many([Job("wait"), Job("refuse"), Job("wait")])
        assert [each.dropped for each in sandbox.submitted] == [True]


def test_pickled_it_is_its_options() -> None:
    with Tiny(answer="7") as sandbox, pickle.loads(pickle.dumps(sandbox)) as copy:
        assert copy.run(Job("1")).value == "7"


def test_best_warns_once_of_what_is_missing_where_it_was_made_and_none_each_time() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for isolation in ("best", "best", "none", "none", "strict"):
            Tiny(isolation=isolation).close()
    texts = [str(each.message) for each in caught]
    assert [("no network (none here)" in text, "all the rights" in text) for text in texts] == [
        (True, False),
        (False, True),
        (False, True),
    ]
    assert {each.filename for each in caught} == {__file__}


def test_a_warning_that_is_an_error_leaves_nothing_open() -> None:
    made: list[Tiny] = []

    class Noted(Tiny):
        def _warn_of_gaps(self) -> None:
            made.append(self)
            super()._warn_of_gaps()

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(RuntimeWarning, match="all the rights"):
            Noted(isolation="none")
    assert made[0].ends == 1


def test_a_fork_is_told_whose_it_is_and_ends_nothing() -> None:
    with Tiny() as sandbox:
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                sandbox.run(Job("1"))
            except SandboxUnavailableError as error:
                sandbox.close()
                code = 0 if "fork" in str(error) and sandbox.ends == 0 else 2
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        assert sandbox.run(Job("1")).value == "42"


def test_what_was_never_closed_ends_with_the_process_before_what_it_stands_on() -> None:
    program = f"""
import atexit, sys
sys.path.insert(0, {os.path.dirname(__file__)!r})
from test_base import Tiny
class Told(Tiny):
    def _end(self):
        print("ended")
atexit.register(print, "what it stands on ended")
Told()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.splitlines() == ["ended", "what it stands on ended"], done.stderr
