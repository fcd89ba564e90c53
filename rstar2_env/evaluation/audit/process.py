"""The audited code in a separate process, with a deadline for every grade.

    with GraderProcess(setup, folder=scratch) as grader:
        grades = grader.grade([AuditCall("5", "5"), AuditCall("5", "6")])

If a grade takes longer than the deadline, the process is ended; the next grade starts another process. Not covered: a
memory limit, and isolation: the code has the rights of the user.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Self

_CHILD = str(Path(__file__).with_name("child.py"))
_LOAD_S = 300.0
_BATCH = 64
"""Maximum number of calls in one request; low enough that all replies fit into a pipe."""


class AuditCall(NamedTuple):
    """The arguments of one call of the grader: gold answer, answer and question."""

    gold: str
    answer: str
    question: str = ""


@dataclass(frozen=True, slots=True)
class AuditGrade:
    """The result of grading one ``AuditCall``.

    Attributes:
        score: The grade as a number; ``None`` if the call did not return one.
        error: Name and message of the exception; "" if none was raised.
        seconds: CPU seconds of the call.
        hung: Whether the process was ended because the call exceeded its deadline.
    """

    score: float | None = None
    error: str = ""
    seconds: float = 0.0
    hung: bool = False

    @property
    def verdict(self) -> tuple[float | None, str, bool]:
        """Values that a repeated call must reproduce: score, exception class, whether the deadline was exceeded."""
        return self.score, self.error.partition(":")[0], self.hung


class TargetError(Exception):
    """The target cannot be loaded, or does not answer; the message gives the reason."""


@dataclass
class GraderProcess:
    """A process that has executed the setup of a target.

    Attributes:
        setup: Source that defines ``grade(gold, answer, question)``.
        folder: Current folder of the process.
        grade_timeout_s: Time limit of one grade, in seconds.
        variables: Environment variables in addition to the variables of this process; ``None`` removes a variable.
        flags: Flags of the interpreter (``-O``).
        trace: Whether to record the files and variables that the target reads.
        thread: Whether every grade runs in a thread other than the main thread.
    """

    setup: str
    folder: Path
    grade_timeout_s: float = 10.0
    variables: Mapping[str, str | None] = field(default_factory=dict)
    flags: Sequence[str] = ()
    trace: bool = False
    thread: bool = False
    _process: subprocess.Popen[bytes] | None = field(default=None, init=False)
    _replies: int = field(default=-1, init=False)
    _read: bytes = field(default=b"", init=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def grade(self, calls: Iterable[AuditCall]) -> list[AuditGrade]:
        """Grade calls one after the other, in the given order.

        Raises:
            TargetError: The target cannot be loaded.
        """
        waiting, grades = list(calls), list[AuditGrade]()
        while len(grades) < len(waiting):
            self._begin()
            batch = waiting[len(grades) : len(grades) + _BATCH]
            self._send({"calls": batch, "thread": self.thread})
            for _ in batch:
                try:
                    told = self._reply(self.grade_timeout_s)
                except TimeoutError:
                    grades.append(AuditGrade(hung=True, error=f"no grade within {self.grade_timeout_s:g} s"))
                    self.stop()
                    break
                except EOFError:
                    grades.append(AuditGrade(error=f"ProcessEnded: exit code {self._code()}"))
                    self.stop()
                    break
                grades.append(AuditGrade(told["score"], told["error"], told["seconds"]))
        return grades

    def ask(self, expression: str) -> Any:
        """Evaluate an expression in the namespace of the setup; its value must be representable in JSON.

        Raises:
            TargetError: The evaluation raised an exception.
        """
        self._begin()
        self._send({"ask": expression})
        told = self._answer("answer")
        if "error" in told:
            raise TargetError(told["error"])
        return told["value"]

    def traced(self) -> tuple[dict[str, bool], list[str], list[str]]:
        """Return the inputs that the target has read: files (true if also written), folders, environment variables."""
        self._begin()
        self._send({"traced": True})
        told = self._answer("report")
        return told["files"], told["folders"], told["variables"]

    def stop(self) -> None:
        """End the process and its children."""
        process, self._process = self._process, None
        if process is not None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            assert process.stdin is not None
            with suppress(BrokenPipeError):
                process.stdin.close()
            os.close(self._replies)

    def _begin(self) -> None:
        if self._process is not None and self._process.poll() is None:
            return
        self.stop()
        self._read = b""
        self._replies, writes = os.pipe()
        self.folder.mkdir(parents=True, exist_ok=True)
        try:
            self._process = subprocess.Popen(
                [sys.executable, *self.flags, _CHILD, str(writes)],
                stdin=subprocess.PIPE,
                cwd=self.folder,
                env=environment(self.variables),
                pass_fds=[writes],
                start_new_session=True,
            )
        finally:
            os.close(writes)
        self._send({"setup": self.setup, "trace": self.trace})
        told = self._answer("load")
        if not told["ok"]:
            self.stop()
            raise TargetError(told["error"])

    def _answer(self, what: str) -> Any:
        try:
            return self._reply(_LOAD_S)
        except TimeoutError:
            self.stop()
            raise TargetError(f"the grader did not {what} within {_LOAD_S:g} s") from None
        except EOFError:
            code = self._code()
            self.stop()
            raise TargetError(f"the process of the grader ended with exit code {code}") from None

    def _code(self) -> int:
        assert self._process is not None
        return self._process.wait()

    def _send(self, asked: Mapping[str, Any]) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # the reply says that the process ended
            self._process.stdin.write(json.dumps(asked).encode() + b"\n")
            self._process.stdin.flush()

    def _reply(self, patience_s: float) -> Any:
        until = time.monotonic() + patience_s
        while b"\n" not in self._read:
            left = until - time.monotonic()
            if left <= 0 or not select.select([self._replies], [], [], left)[0]:
                raise TimeoutError
            more = os.read(self._replies, 1 << 16)
            if not more:
                raise EOFError
            self._read += more
        line, _, self._read = self._read.partition(b"\n")
        return json.loads(line)


def environment(variables: Mapping[str, str | None]) -> dict[str, str]:
    """Return a copy of this process's environment variables with ``variables`` set; ``None`` removes a variable."""
    changed = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **variables}
    return {name: value for name, value in changed.items() if value is not None}
