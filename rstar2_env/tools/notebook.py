"""The notebook tool: ``jupyter_code(code)``, cells that share one session of the sandbox for a whole episode.

Covered: one session for each episode, with a unique name; messages to the policy when a cell is interrupted or ends its
session; sessions lost through no fault of the policy, which are rebuilt by running their cells again, once. Not
covered: isolation (``rstar2_env.sandbox``), and rich output: a cell shows text only.
"""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from rstar2_env.core.errors import SandboxUnavailableError
from rstar2_env.core.status import ToolStatus
from rstar2_env.sandbox.job import Job, Outcome
from rstar2_env.tools.base import CallContext, ToolResult, ToolSpec
from rstar2_env.tools.sandboxed import SandboxTool, call_seed

NOTEBOOK_TOOL_NAME = "jupyter_code"

_KEPT = "What it had done by then is kept, and so are the variables and imports of earlier cells."


# The result if the cells themselves end the notebook, for example with a thread that exits the process. Either the
# sandbox reports this, or the session ends again right after it was rebuilt.
_ENDED_BY_ITSELF = Outcome(
    ToolStatus.EXCEPTION,
    error_type="SessionEnded",
    error_message="earlier cells end the notebook's process while no cell runs",
    session="ended",
    session_note="The cell has no effect.",
)


@dataclass(frozen=True, slots=True)
class SessionCell:
    """A cell, with everything needed to run it again.

    Attributes:
        code: The cell's Python code.
        seed: Seed of the random states with which the cell runs.
        status: The status of its first run, which a repetition must reproduce.
    """

    code: str
    seed: int
    status: ToolStatus = ToolStatus.OK


class NotebookTool(SandboxTool):
    """Runs the policy's cells in one session of the sandbox, which ends with the episode.

    An instance serves one environment. If a cell ends the session (too much memory, an exit), the cell has the status
    of its error and the policy sees a message; the next cell starts in a new session. If the session was lost through
    no fault of the policy (eviction, a restarted provider), or if the environment is a copy, the earlier cells are run
    again in a new session. If an earlier cell then has a different status than in its first run, the call is
    ``unavailable``. If the earlier cells themselves end the session, the status of the call is ``exception``.

    The tool has the arguments of ``SandboxTool``; ``limits`` apply to the wall clock and output of one cell, and to the
    memory, processes and files of the whole session.
    """

    schema = ToolSpec(
        name=NOTEBOOK_TOOL_NAME,
        description=(
            "Run a cell of Python in a notebook and return what it printed, followed by the value of its last "
            "expression. Variables and imports of earlier cells are kept. There is no network."
        ),
        parameters={
            "type": "object",
            "properties": {"code": {"type": "string", "description": "The cell's Python code."}},
            "required": ["code"],
            "additionalProperties": False,
        },
    )
    noun = "cell"
    gone: ClassVar[str] = "All variables and imports are gone: the next cell starts in a fresh notebook."

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._cells: list[SessionCell] = []
        self._name: str | None = None
        self._pid = 0

    def call(self, arguments: Mapping[str, Any], context: CallContext) -> ToolResult:
        """Run ``arguments["code"]`` in the session of the earlier cells.

        Raises:
            SandboxUnavailableError: The provider does not support sessions.
        """
        cell = SessionCell(arguments["code"], call_seed(context))
        outcome = self._run(cell) if self._is_live or not self._cells else None
        if outcome is not None and outcome.session == "died":
            outcome = _ENDED_BY_ITSELF
        elif outcome is None or self._is_lost(outcome):
            outcome = self._run_rebuilt(cell)
        if outcome.status is ToolStatus.UNAVAILABLE:
            self.end_episode()
            return self._result(replace(outcome, session=None))
        note = ""
        if outcome.session == "ended":
            self.end_episode()
            note = f"{outcome.session_note or 'The notebook has ended.'} {self.gone}"
        else:
            if outcome.session == "interrupted":
                note = _KEPT  # the text for the status already states why the cell was interrupted
            if outcome.status is not ToolStatus.SYNTAX_ERROR:  # such a cell did not run
                self._cells.append(replace(cell, status=outcome.status))
        return self._result(outcome, note)

    def end_episode(self) -> None:
        """End the sandbox session in which the episode's cells ran."""
        self._end_session()
        self._cells = []

    def close(self) -> None:
        """End the session and release the sandbox."""
        self.end_episode()
        super().close()

    def __getstate__(self) -> dict[str, Any]:
        """Pickle without the session: the copy rebuilds a session of its own from the cells."""
        return {**super().__getstate__(), "_cells": list(self._cells), "_name": None}

    @property
    def _is_live(self) -> bool:
        """Whether this instance has a session; a forked process does not inherit the session of its parent."""
        return self._name is not None and self._pid == os.getpid()

    def _run(self, cell: SessionCell) -> Outcome:
        if not self._is_live:
            self._name, self._pid = uuid.uuid4().hex, os.getpid()
        job = Job(cell.code, limits=self._limits, seed=cell.seed, session=self._name)
        outcome = self._open().run(job)
        if outcome.session is None and outcome.status is not ToolStatus.UNAVAILABLE:
            raise SandboxUnavailableError(
                f"{NOTEBOOK_TOOL_NAME} needs a sandbox with sessions, but {type(self._open()).__name__} ran the cell "
                "without a session. Choose another provider."
            )
        return outcome

    def _is_lost(self, outcome: Outcome) -> bool:
        """Return whether the sandbox was unavailable, or the cell ran without the state of the earlier cells."""
        gone = outcome.session in ("died", "replaced") or (outcome.session == "new" and bool(self._cells))
        return gone or outcome.status is ToolStatus.UNAVAILABLE

    def _run_rebuilt(self, cell: SessionCell) -> Outcome:
        """Run the earlier cells in a new session, and then this cell."""
        self._end_session()
        for number, past in enumerate(self._cells):
            outcome = self._run(past)
            if outcome.status is ToolStatus.UNAVAILABLE:
                return outcome
            if outcome.session in ("ended", "died", "replaced") or (number > 0 and outcome.session == "new"):
                return _ENDED_BY_ITSELF
            if outcome.status is not past.status:
                return Outcome(ToolStatus.UNAVAILABLE, error_type="SessionLost")
        outcome = self._run(cell)
        lost = self._is_lost(outcome) and outcome.status is not ToolStatus.UNAVAILABLE
        return _ENDED_BY_ITSELF if lost else outcome

    def _end_session(self) -> None:
        name, live, self._name = self._name, self._is_live, None
        if name is not None and live and self._sandbox is not None:
            with contextlib.suppress(SandboxUnavailableError):
                self._sandbox.end_session(name)
