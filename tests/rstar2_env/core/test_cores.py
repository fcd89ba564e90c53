"""The processes of a machine divide its cores."""

from __future__ import annotations

import os

import pytest

from rstar2_env.core.cores import usable_cores
from rstar2_env.sandbox.options import LocalOptions
from rstar2_env.verification.workers.pool import WorkerPool


@pytest.mark.parametrize(("processes", "share"), [(None, 1), ("1", 1), ("2", 2), ("64", 64), ("0", 1), ("x", 1)])
def test_each_process_of_a_machine_has_its_share(
    monkeypatch: pytest.MonkeyPatch, processes: str | None, share: int
) -> None:
    monkeypatch.delenv("LOCAL_WORLD_SIZE", raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(32)))
    if processes is not None:
        monkeypatch.setenv("LOCAL_WORLD_SIZE", processes)
    assert usable_cores() == max(1, 32 // share)


def test_the_sandbox_and_the_verifier_of_a_process_have_its_share(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(32)))
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "8")
    pool = WorkerPool()
    try:
        assert (LocalOptions().slots, pool.workers) == (4, 4)
    finally:
        pool.close()
