"""A stub sandbox whose sessions have a state: cells run in this process, one namespace a session. For trusted cells."""

import ast
import contextlib
import io
import random

from rstar2_env.core.status import ToolStatus
from rstar2_env.sandbox.job import Outcome
from rstar2_env.testing import StubSandbox


class CellSandbox(StubSandbox):
    """Cells for tests: ``raise SystemExit`` ends the session, ``raise TimeoutError`` is an interrupted cell."""

    def __init__(self):
        super().__init__(self._cell)
        self.states = {}
        self.ended = []

    def end_session(self, name):
        super().end_session(name)
        self.states.pop(name, None)
        self.ended.append(name)

    def lose(self):
        """What an eviction does: every session is gone, and nobody was asked."""
        self.sessions.clear()
        self.states.clear()

    def __reduce__(self):
        return CellSandbox, ()

    def _cell(self, job):
        if job.session not in self.sessions:
            self.states[job.session] = {}
        state = self.states[job.session]
        state["random"] = random.Random(job.seed)
        printed, value = io.StringIO(), None
        try:
            body = ast.parse(job.code).body
            last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
            with contextlib.redirect_stdout(printed):
                exec(compile(ast.Module(body, []), "cell", "exec"), state)
                if last is not None:
                    value = eval(compile(ast.Expression(last.value), "cell", "eval"), state)
        except SyntaxError as error:
            return Outcome(ToolStatus.SYNTAX_ERROR, error_type="SyntaxError", traceback=f"SyntaxError: {error.msg}")
        except SystemExit:
            self.states.pop(job.session)
            return Outcome(ToolStatus.EXCEPTION, exit_code=3, session="ended", session_note="The cell exited.")
        except TimeoutError:
            return Outcome(ToolStatus.TIMEOUT, wall_s=5.0)
        except Exception as error:
            return Outcome(ToolStatus.EXCEPTION, error_type=type(error).__name__, traceback=f"{error!r}")
        text = printed.getvalue()
        return Outcome(
            ToolStatus.OK if text or value is not None else ToolStatus.EMPTY,
            stdout=text,
            value=None if value is None else repr(value),
        )
