"""``sums``: a sandbox that runs programs which only print a sum in this process, and all others as ``local`` does.

The runs of ``learning.py`` make thousands of calls each, nearly all of the form ``print(12+34)``, and a process for
each costs more than the tiny model that writes it. What such a program prints, and how it fails, is the same here, to
the words that the policy is shown. Not covered: isolation, which a print of integers does not need.
"""

from __future__ import annotations

import ast
import builtins
import threading
from typing import Any

from rstar2_env.core.status import ToolStatus
from rstar2_env.sandbox import PROVIDERS, make_sandbox
from rstar2_env.sandbox.job import Job, Outcome, Sandbox
from rstar2_env.testing.stub_sandbox import StubSandbox

SUMS = "sums"
"""Its name, once this module is imported."""
_LONGEST = 120
_ALLOWED = (
    *(ast.Module, ast.Expr, ast.Call, ast.BinOp, ast.UnaryOp, ast.Load, ast.Constant, ast.Name),
    *(ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.UAdd, ast.USub),
)
_BUILTINS = frozenset(dir(builtins)) - {"print"}


class Sums(StubSandbox):
    """Returns the outcome of a program; the local sandbox is opened for the first program that is not a sum."""

    def __init__(self) -> None:
        super().__init__(self._outcome)
        self._local: Sandbox | None = None
        self._lock = threading.Lock()

    def close(self) -> None:
        """End the local sandbox, too."""
        super().close()
        with self._lock:
            local, self._local = self._local, None
        if local is not None:
            local.close()

    def _outcome(self, job: Job) -> Outcome:
        return run_sum(job.code) or self._other(job)

    def _other(self, job: Job) -> Outcome:
        with self._lock:
            self._local = self._local or make_sandbox("local")
            local = self._local
        return local.run(job)


def run_sum(code: str) -> Outcome | None:
    """How a program goes that is one call with a sum of whole numbers and names; ``None`` for every other.

    Args:
        code: A Python program.
    """
    if len(code) > _LONGEST or not code.isascii() or "\n" in code.strip() or not code.isprintable():
        return None
    try:
        tree = ast.parse(code, "<cell>")
    except SyntaxError as error:
        return _failed(ToolStatus.SYNTAX_ERROR, error, "compile", f"SyntaxError: {error.msg}\n")
    if not (_is_one_call(tree) and all(map(_is_plain, ast.walk(tree)))):
        return None
    printed: list[str] = []

    def show(*values: Any) -> None:
        printed.append(" ".join(map(str, values)) + "\n")

    try:
        exec(compile(tree, "<cell>", "exec"), {"__builtins__": {"print": show}})
    except (NameError, ZeroDivisionError) as error:
        return _failed(ToolStatus.EXCEPTION, error, "exit", f"{type(error).__name__}: {error}\n")
    except Exception:
        return None
    return Outcome(ToolStatus.OK, exit_code=0, stdout="".join(printed))


def _failed(status: ToolStatus, error: Exception, reason: Any, last: str) -> Outcome:
    told = f"{type(error).__name__}", str(error), f"Traceback (most recent call last):\n{last}"
    return Outcome(status, exit_code=1, error_type=told[0], error_message=told[1], traceback=told[2], reason=reason)


def _is_one_call(tree: ast.Module) -> bool:
    calls = sum(isinstance(node, ast.Call) for node in ast.walk(tree))
    if calls != 1 or len(tree.body) != 1 or not isinstance(tree.body[0], ast.Expr):
        return False
    call = tree.body[0].value
    return isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and not call.keywords and len(call.args) == 1


def _is_plain(node: ast.AST) -> bool:
    if isinstance(node, ast.Constant):
        return type(node.value) is int and node.value < 10**12
    return isinstance(node, _ALLOWED) and not (isinstance(node, ast.Name) and node.id in _BUILTINS)


@PROVIDERS.register(SUMS)
def _sums(**options: Any) -> Sums:
    return Sums()
