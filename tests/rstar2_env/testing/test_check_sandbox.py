"""``check_sandbox`` passes a provider that keeps the contract, and names each clause that another breaks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest

from rstar2_env.core.errors import SandboxUnavailableError, UnknownNameError
from rstar2_env.core.status import ToolStatus
from rstar2_env.sandbox import Job, LocalSandbox, Outcome, Sandbox
from rstar2_env.testing import SANDBOX_CHECKS, ConformanceError, StubSandbox, check_sandbox
from rstar2_env.testing.sandbox_checks import SandboxHarness

SLOW = ("limits", "clock", "isolation", "survival", "closing", "pickling")


def small(kind: type[LocalSandbox] = LocalSandbox) -> Sandbox:
    return kind(workers=2, waiting=2, preload=())


@pytest.mark.slow
def test_a_good_provider_passes_every_check() -> None:
    assert check_sandbox(small) == list(SANDBOX_CHECKS)


def test_checks_can_be_left_out() -> None:
    assert check_sandbox(small, skip=SLOW) == [name for name in SANDBOX_CHECKS if name not in SLOW]
    with pytest.raises(UnknownNameError, match="sesions"):
        check_sandbox(small, skip=("sesions",))


def test_every_clause_that_is_broken_is_named_and_what_was_made_is_closed() -> None:
    made: list[StubSandbox] = []

    def make() -> StubSandbox:
        made.append(StubSandbox())
        return made[-1]

    with pytest.raises(ConformanceError) as told:
        check_sandbox(make, skip=SLOW)
    text = str(told.value)
    assert "- statuses: " in text
    assert "- replay: " in text
    assert "- protocol: " not in text
    assert made
    assert all(stub.closed for stub in made)


class Altered(LocalSandbox):
    """One that changes every outcome on its way."""

    def alter(self, job: Job, outcome: Outcome) -> Outcome:
        return outcome

    def run(self, job: Job) -> Outcome:
        return self.alter(job, super().run(job))

    def run_many(self, jobs: Sequence[Job]) -> list[Outcome]:
        return [self.alter(job, outcome) for job, outcome in zip(jobs, super().run_many(jobs), strict=True)]


class ExitsAreFine(Altered):
    def alter(self, job: Job, outcome: Outcome) -> Outcome:
        return replace(outcome, status=ToolStatus.OK) if outcome.exit_code == 7 else outcome


class WrongOrder(Altered):
    def run_many(self, jobs: Sequence[Job]) -> list[Outcome]:
        return super().run_many(jobs)[::-1]


class NoSeed(Altered):
    def run(self, job: Job) -> Outcome:
        return super().run(replace(job, seed=int.from_bytes(__import__("os").urandom(4), "big")))


class NoFiles(Altered):
    def run(self, job: Job) -> Outcome:
        return super().run(replace(job, files={}) if isinstance(job, Job) else job)


class SilentSessions(Altered):
    def alter(self, job: Job, outcome: Outcome) -> Outcome:
        return replace(outcome, session="kept") if outcome.session == "new" else outcome


class Cancels(Altered):
    async def arun(self, job: Job) -> Outcome:
        return self.run(job)


class StaysOpen(Altered):
    def run(self, job: Job) -> Outcome:
        try:
            return super().run(job)
        except SandboxUnavailableError:
            return Outcome(ToolStatus.UNAVAILABLE)


class TimeIsNoLimit(Altered):
    def alter(self, job: Job, outcome: Outcome) -> Outcome:
        late = outcome.status is ToolStatus.TIMEOUT
        return replace(outcome, status=ToolStatus.EXCEPTION) if late else outcome


class Unpicklable(Altered):
    def __reduce__(self) -> Any:
        raise TypeError("this sandbox cannot be pickled")


BROKEN: list[tuple[type[Altered], str, str]] = [
    (ExitsAreFine, "statuses", "got the status 'ok'"),
    (WrongOrder, "many_at_once", "run_many"),
    (NoSeed, "replay", "one seed"),
    (NoFiles, "inputs", "FileNotFoundError|exception"),
    (SilentSessions, "sessions", "session='kept'"),
    (Cancels, "event_loop", "was blocked"),
    (StaysOpen, "closing", "must raise SandboxUnavailableError"),
    (TimeIsNoLimit, "limits", "an endless loop"),
    (Unpicklable, "pickling", "cannot be pickled"),
]


@pytest.fixture
def harness() -> Iterator[Callable[[type[LocalSandbox]], SandboxHarness]]:
    made: list[SandboxHarness] = []

    def make(kind: type[LocalSandbox]) -> SandboxHarness:
        made.append(SandboxHarness(lambda: small(kind)))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.mark.parametrize(("kind", "check", "complaint"), BROKEN, ids=[kind.__name__ for kind, _, _ in BROKEN])
def test_a_provider_that_breaks_a_clause_is_found(
    harness: Callable[[type[LocalSandbox]], SandboxHarness], kind: type[Altered], check: str, complaint: str
) -> None:
    with pytest.raises((AssertionError, TypeError), match=complaint):
        SANDBOX_CHECKS[check](harness(kind))
