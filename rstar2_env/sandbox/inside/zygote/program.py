"""Runs one program like a notebook cell, and reports the result.

Covered: compilation before any code runs, the value of a trailing expression, tracebacks without frames of the harness
(the code around the program), orderly exit (threads joined, ``atexit`` run, output flushed). Not covered: isolation and
limits (``child``), and the status of the call (``verdict``): the report is created in the program's own process, so the
program can tamper with it.
"""

from __future__ import annotations
import __future__

import ast
import atexit
import builtins
import io
import json
import linecache
import os
import resource
import sys
import threading
import traceback
import types
from collections.abc import Callable
from typing import Any

FILENAME = "<cell>"
MAX_REPORT_BYTES = 120_000
"""Size limit of a report in bytes: a report is one message on a socket with a buffer of about 200 kB."""
_MAX_VALUE = 64_000
_MAX_TRACEBACK = 16_000
_MAX_MESSAGE = 4_000
_MAX_SHOWN_SOURCE = 1 << 20
_FRAMES_SHOWN = 60
_BEGINS = frozenset("'\"([{-+~.")
"""Characters with which a Python expression can begin, in addition to letters and digits."""

CellReport = dict[str, Any]
Remembered = list[tuple[dict[str, Any], dict[str, Any]]]
_REMEMBERED: Remembered = []


def open_streams() -> None:
    """Replace the streams of ``sys`` by unbuffered ones over descriptors 0, 1 and 2, so that a kill loses no output.

    This is called once in the parent process, not for each call: a child moves its own pipes to the same descriptors.
    """
    fresh_stdin()
    for name, descriptor in (("stdout", 1), ("stderr", 2)):
        stream = io.TextIOWrapper(
            io.FileIO(descriptor, "w", closefd=False),
            encoding="utf-8",
            errors="backslashreplace",
            write_through=True,
        )
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


def compile_cell(source: str, filename: str = FILENAME, flags: int = 0) -> tuple[types.CodeType, types.CodeType | None]:
    """Compile a cell to its statements and, if the last statement is an expression, that expression.

    Args:
        source: The cell.
        filename: Name of the cell in tracebacks.
        flags: Flags of ``__future__`` features from earlier cells.

    Raises:
        SyntaxError: The source is not valid Python; also ``ValueError``, ``RecursionError``, ``MemoryError`` and
            ``UnicodeEncodeError`` for sources that break the parser.
    """
    if (found := _compile_last_line(source, filename, flags)) is not None:
        return found
    tree = compile(source, filename, "exec", flags | ast.PyCF_ONLY_AST, dont_inherit=True)
    assert isinstance(tree, ast.Module)
    last = tree.body[-1] if tree.body else None
    echoed = None
    if isinstance(last, ast.Expr) and not _ends_in_semicolon(source, last):
        tree.body.pop()
        echoed = ast.Expression(last.value)
    body = compile(tree, filename, "exec", flags, dont_inherit=True)
    if echoed is None:
        return body, None
    # The trailing expression obeys the cell's own __future__ imports.
    return body, compile(echoed, filename, "eval", flags=body.co_flags & FUTURE_FLAGS, dont_inherit=True)


def _compile_last_line(source: str, filename: str, flags: int) -> tuple[types.CodeType, types.CodeType] | None:
    """Compile a cell whose last line is an expression. No syntax tree is built, since that would copy memory pages.

    If all lines before the last one form complete statements, the last line is a statement of its own.

    Returns:
        The same as ``compile_cell``; ``None`` for any other cell.
    """
    at = source.rstrip("\n").rfind("\n") + 1
    first = source[at : at + 1]
    if not (first.isidentifier() or first.isdigit() or first in _BEGINS) or "__future__" in source or "\r" in source:
        return None
    try:
        echoed = compile("\n" * source.count("\n", 0, at) + source[at:], filename, "eval", flags, dont_inherit=True)
        return compile(source[:at], filename, "exec", flags, dont_inherit=True), echoed
    except Exception:  # the line is a statement or the end of one; `compile_cell` raises the errors of the cell
        return None


def run_cell(
    source: str,
    namespace: dict[str, Any],
    started: Callable[[types.CodeType], object],
    ended: Callable[[], object] = bool,
    filename: str = FILENAME,
    flags: int = 0,
) -> tuple[int, CellReport]:
    """Run a cell's code with the globals ``namespace``.

    Args:
        source: The cell: one cell of a session, or a whole program.
        namespace: Globals of the cell; the code changes them.
        started: Called with the compiled code before it runs.
        ended: Called when the code has stopped running, before the report is made.
        filename: Name of the cell in tracebacks.
        flags: Flags of ``__future__`` features from earlier cells.

    Returns:
        The exit code, and the report, whose field ``ends`` is set if the cell requested an exit.
    """
    # The program can change anything that it can reach, so everything needed after it is kept in local variables.
    any_exception, back, restored = BaseException, restore, _REMEMBERED
    getpid, main_pid, exit_now, streams = os.getpid, os.getpid(), os._exit, flush
    try:
        body, trailing = compile_cell(source, filename, flags)
    except BaseException as error:
        return 1, {**describe(error, None), "phase": "compile"}
    if len(source) <= _MAX_SHOWN_SOURCE:  # for tracebacks and warnings
        linecache.cache[filename] = (len(source), None, io.StringIO(source, newline=None).readlines(), filename)
    started(body)
    code = 0
    report: CellReport = {}
    try:
        exec(body, namespace)
        if trailing is not None:
            value = eval(trailing, namespace)
            if value is not None:
                back(restored)
                report["value"], report["value_left_out"] = _cut(repr(value), _MAX_VALUE)
    except any_exception as error:
        ended()
        back(restored)
        make_room()
        code, report = exit_report(error)
    ended()
    if getpid() != main_pid:  # a fork of the program reached this line: it does not report an outcome
        streams()
        exit_now(code)
    return code, report


def fresh_stdin() -> None:
    """Replace ``sys.stdin`` by a new stream, since the old one may have buffered earlier input."""
    sys.stdin = sys.__stdin__ = io.TextIOWrapper(  # type: ignore[misc]  # the originals belong to the zygote
        io.BufferedReader(io.FileIO(0, "r", closefd=False)), encoding="utf-8", errors="surrogateescape"
    )


def remember() -> None:
    """Save the globals of the modules that create a program's report, before the program can change them."""
    for module in (builtins, json, traceback, linecache, sys.modules[__name__]):
        _REMEMBERED.append((vars(module), dict(vars(module))))


def restore(remembered: Remembered) -> None:
    """Restore the globals that ``remember`` saved, without using anything that a program could have changed."""
    for current, kept in remembered:
        current.update(kept)


def exit_report(error: BaseException) -> tuple[int, CellReport]:
    """Return the report for an uncaught exception, and the exit code that Python's interpreter would return for it."""
    if not isinstance(error, SystemExit):
        return 1, describe(error, error.__traceback__)
    code = error.code
    if code is None:
        return 0, {"ends": True}
    if isinstance(code, int):
        if not -(1 << 63) <= code < 1 << 63:  # the interpreter treats a number outside a C long as -1
            code = -1
        report = {} if code & 0xFF == 0 else {"error_type": "SystemExit", "error_message": str(code)}
        return code & 0xFF, {**report, "ends": True}
    text, _ = _cut(_safe_str(code), _MAX_MESSAGE)
    sys.stderr.write(text + "\n")
    return 1, {"error_type": "SystemExit", "error_message": text, "ends": True}


def describe(error: BaseException, trace: types.TracebackType | None) -> CellReport:
    """Return the report about an exception: type, message and traceback, truncated, without frames of the sandbox."""
    while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    name = type(error).__name__
    try:
        depth, step = 0, trace
        while step is not None:
            depth, step = depth + 1, step.tb_next
        limit = -_FRAMES_SHOWN if depth > 4000 else None  # the program raised the recursion limit: keep the end
        if trace is None:
            lines = traceback.format_exception_only(error)
        else:
            lines = traceback.format_exception(type(error), error, trace, limit=limit)
        shown, _ = _cut("".join(lines), _MAX_TRACEBACK)
    except BaseException:
        shown = name
    return {
        "error_type": name[:200],
        "error_message": _cut(_safe_str(error), _MAX_MESSAGE)[0],
        "traceback": shown,
    }


def finish() -> None:
    """End the program as the interpreter does at exit: join threads, run ``atexit``, flush. Errors are only printed."""
    try:
        # The first test replaces `threading.active_count`, which also takes a lock and thereby copies pages.
        if len(threading._active) > 1 or threading._limbo or getattr(threading, "_threading_atexits", True):  # type: ignore[attr-defined]
            threading._shutdown()  # type: ignore[attr-defined]  # what the interpreter itself calls at its end
        if atexit._ncallbacks():
            atexit._run_exitfuncs()
    except BaseException:
        traceback.print_exc()
    flush()


def flush() -> None:
    """Flush standard output and standard error, which a program may have replaced by buffered streams."""
    for stream, own in ((sys.stdout, sys.__stdout__), (sys.stderr, sys.__stderr__)):
        try:
            if stream is not own or not getattr(stream, "write_through", False):
                stream.flush()
        except BaseException:
            continue


def encode_report(report: CellReport) -> bytes:
    """Encode a report as JSON; long texts are truncated so that the report fits into one message."""
    while True:
        data = json.dumps(report).encode()
        if len(data) <= MAX_REPORT_BYTES:
            return data
        for key in ("value", "traceback", "error_message"):
            text = report.get(key)
            if isinstance(text, str) and len(text) > 1000:
                report[key], left_out = _cut(text, len(text) // 2)
                if key == "value":
                    report["value_left_out"] = report.get("value_left_out", 0) + left_out


def make_room() -> None:
    """Raise the soft memory limit to the hard limit, so that a ``MemoryError`` can be reported."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_AS, (hard, hard))


def _ends_in_semicolon(source: str, last: ast.Expr) -> bool:
    """Whether the last statement ends with ``;``, which suppresses its value as in a notebook."""
    line, column = last.end_lineno or 1, last.end_col_offset or 0
    lines = source.encode("utf-8", "surrogatepass").splitlines()
    return line <= len(lines) and lines[line - 1][column:].lstrip().startswith(b";")


def _safe_str(thing: object) -> str:
    try:
        return str(thing)
    except BaseException as error:
        return f"<{type(thing).__name__}; str() raises {type(error).__name__}>"


def _cut(text: str, limit: int) -> tuple[str, int]:
    """Cut the middle out of a long text; return the text and the number of removed characters."""
    if len(text) <= limit:
        return text, 0
    left_out = len(text) - limit
    half = limit // 2
    return f"{text[:half]}\n... {left_out} characters left out ...\n{text[-(limit - half) :]}", left_out


FUTURE_FLAGS = sum(getattr(__future__, name).compiler_flag for name in __future__.all_feature_names)
"""All bits of a code object's ``co_flags`` that stand for ``__future__`` features."""
