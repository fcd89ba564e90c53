"""The warden writes a long job in parts, so that its loop serves other calls in between."""

from __future__ import annotations

import os
from types import SimpleNamespace

import pytest

from rstar2_env.sandbox.inside.warden import child as child_module
from rstar2_env.sandbox.inside.warden.child import Child
from rstar2_env.sandbox.inside.warden.slot import ChildSlot

PART, JOB = 1000, bytes(range(250)) * 10


def test_a_long_job_is_written_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child_module, "_FED_AT_ONCE", PART)
    slot = ChildSlot(0, None, None, counted=True, own_user=True)
    child = Child(1, slot, 1 << 20, SimpleNamespace())  # type: ignore[arg-type]  # its parent is not asked
    try:
        child.job_left = memoryview(JOB)
        read, complete = b"", []
        while not complete or not complete[-1]:
            complete.append(child.feed())
            read += os.read(child.theirs[0], 1 << 16)
        assert complete == [False, False, True]
        assert read == JOB
    finally:
        child.close()
