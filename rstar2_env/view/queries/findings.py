"""The findings of ``rstar2 diagnose`` for the viewer, computed in background threads, once for each state of a run."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rstar2_env.core.errors import Rstar2Error
from rstar2_env.diagnosis.examination import examine
from rstar2_env.diagnosis.folder import read_folder

_WAIT_S = 0.3
"""Seconds that a request waits for findings that are being computed, which is enough for most runs."""
_ASK_S = 2.0
"""Seconds after which the page repeats a request whose findings are still being computed."""
_SHARE = 20.0
"""Minimum time for which findings of a run in progress are kept, as a multiple of the time that their computation took:
each computation reads the whole run, and with this factor computations take at most one twentieth of the time."""


def findings_of(path: Path, name: str) -> dict[str, Any]:
    """Compute the findings of a run.

    Args:
        path: The run's folder, or the file of an evaluation.
        name: Name of the run, which replaces the path in sentences.

    Returns:
        ``summary``, ``step`` (the last examined step), ``findings``, ``silent`` and ``not_recorded`` as in ``rstar2
        diagnose --json``; ``failed``: the reason why the run cannot be diagnosed, or empty.
    """
    try:
        record = read_folder(path)
        record.name = name
        found = examine(record)
    except (Rstar2Error, OSError, EOFError) as error:
        failed = str(error).replace(str(path), name)
        return {"summary": "", "step": 0, "findings": [], "silent": [], "not_recorded": {}, "failed": failed}
    values = found.record()
    kept = ("step", "findings", "silent", "not_recorded")
    return {"summary": found.summary, "failed": "", **{key: values[key] for key in kept}}


@dataclass(slots=True)
class _Held:
    answer: dict[str, Any] | None = None
    state: Any = None
    until: float = 0.0
    done: threading.Event | None = field(default=None, repr=False)


class RunFindings:
    """Computes and caches findings by run, one run at a time, in background threads; thread-safe.

    Args:
        look: Function that computes the findings of a run, given its path and name.
        share: Time for which findings of a run in progress are kept, as a multiple of the time that their computation
            took.
    """

    def __init__(self, look: Callable[[Path, str], dict[str, Any]] = findings_of, share: float = _SHARE) -> None:
        self._look, self._share = look, share
        self._lock, self._one = threading.Lock(), threading.Lock()
        self._held: dict[Path, _Held] = {}

    def find(
        self, path: Path, name: str, state: Any, *, running: bool, wait_s: float | None = _WAIT_S
    ) -> dict[str, Any]:
        """Return the known findings of a run; if the run has changed, begin to compute new ones.

        Args:
            path: Path of the run.
            name: Name of the run.
            state: A value that changes whenever the run does.
            running: Whether the run is in progress, so that its findings are kept for a while.
            wait_s: Seconds to wait for findings of this state; ``None`` for no limit.

        Returns:
            The result of ``findings_of``, and ``again_s``: seconds after which to request newer findings, ``None`` if
            these are for the given state. If no findings are known yet, only ``again_s``.
        """
        with self._lock:
            held = self._held.setdefault(path, _Held())
            kept_s = held.until - time.monotonic() if running and wait_s is not None else 0.0
            if held.state != state and held.done is None and kept_s <= 0:
                held.done = threading.Event()
                threading.Thread(target=self._renew, args=(held, path, name, state), daemon=True).start()
            done = held.done
        if done is not None:
            done.wait(wait_s)
        with self._lock:
            again_s = None if held.state == state else max(_ASK_S, kept_s)
            return {**(held.answer or {}), "again_s": again_s}

    def _renew(self, held: _Held, path: Path, name: str, state: Any) -> None:
        try:
            with self._one:
                began = time.monotonic()
                answer = self._look(path, name)
                took = time.monotonic() - began
            with self._lock:
                held.answer, held.state = answer, state
                held.until = time.monotonic() + self._share * took
        finally:
            with self._lock:
                done, held.done = held.done, None
            if done is not None:
                done.set()
