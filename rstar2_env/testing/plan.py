"""Planned answers of a stub sandbox or tool: a constant, a sequence, or the results of a function."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from rstar2_env.core.errors import ConfigurationError

A = TypeVar("A")


class StubPlan(Generic[A]):
    """Supplies a stub's answers, in the order of the calls. May be used from any thread.

    Args:
        plan: One answer for every call; a sequence of answers, the last of which repeats; or a function that receives
            the arguments of the call.
        read: Converts an answer as users may write it (a status, a string) to an answer object.

    Raises:
        ConfigurationError: The sequence is empty.
    """

    def __init__(self, plan: Any, read: Callable[[Any], A]) -> None:
        self._read = read
        self._function: Callable[..., Any] | None = None
        self._answers: list[A] = []
        self._given = 0
        self._lock = threading.Lock()
        if callable(plan):
            self._function = plan
        elif isinstance(plan, Sequence) and not isinstance(plan, str):
            if not plan:
                raise ConfigurationError("A stub's plan must hold at least one answer; the last answer is repeated.")
            self._answers = [read(answer) for answer in plan]
        else:
            self._answers = [read(plan)]

    def next(self, *given: Any) -> A:
        """Return the answer to the next call, with the arguments ``given``; if the plan is a function, it may raise."""
        if self._function is not None:
            return self._read(self._function(*given))
        with self._lock:
            index = min(self._given, len(self._answers) - 1)
            self._given += 1
        return self._answers[index]

    def __getstate__(self) -> dict[str, Any]:
        """Return the state to pickle, without the lock."""
        return {name: value for name, value in self.__dict__.items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore a pickled state, with a new lock."""
        self.__dict__.update(state)
        self._lock = threading.Lock()
