"""``clean_logs``: escapes control characters in libraries' log records, warnings and exceptions, for the terminal.

Libraries print text from files unchanged: transformers logs the values of a model's ``config.json``. Covered: Python's
logging with tracebacks, warnings, and uncaught exceptions of all threads of this process. Not covered: text that a
library writes to the terminal itself. If a Ctrl-C arrives where Python cannot raise it, such as in a destructor, it is
repeated a moment later, and not shown as a warning.
"""

from __future__ import annotations

import logging
import sys
import threading
import traceback
import warnings
from types import TracebackType
from typing import TYPE_CHECKING, Any

from rstar2_env.core.command.early_interrupt import repeat_interrupt
from rstar2_env.core.secret import hidden
from rstar2_env.core.text import harmless

if TYPE_CHECKING:
    from sys import UnraisableHookArgs


def clean_logs() -> None:
    """Escape control characters, and hide secrets, in all later log records, warnings and uncaught exceptions.

    A second call has no effect.
    """
    make, write = logging.getLogRecordFactory(), warnings.formatwarning
    if getattr(make, "cleans", False):
        return

    def record(*args: Any, **values: Any) -> logging.LogRecord:
        made = make(*args, **values)
        try:
            text = made.getMessage()
        except Exception:  # the arguments do not fit the message; a log record must not end a command
            text = str(made.msg)
        made.msg, made.args = _clean(text), ()
        if made.exc_info and made.exc_info[0]:
            # A formatter uses this text instead of formatting the exception itself.
            made.exc_text = _clean("".join(traceback.format_exception(*made.exc_info)).rstrip())
        return made

    def warning(*args: Any, **values: Any) -> str:
        return _clean(write(*args, **values))

    record.cleans = True  # type: ignore[attr-defined]
    logging.setLogRecordFactory(record)
    warnings.formatwarning = warning
    sys.excepthook = _show
    threading.excepthook = _show_of_thread
    sys.unraisablehook = _show_unraisable


def _show(kind: type[BaseException], error: BaseException | None, trace: TracebackType | None) -> None:
    sys.stderr.write(_clean("".join(traceback.format_exception(kind, error, trace))))


def _show_of_thread(args: threading.ExceptHookArgs) -> None:
    if args.exc_type is not SystemExit:
        sys.stderr.write(f"Exception in thread {_clean(args.thread.name if args.thread else 'unknown')}:\n")
        _show(args.exc_type, args.exc_value, args.exc_traceback)


def _show_unraisable(args: UnraisableHookArgs) -> None:
    if issubclass(args.exc_type, KeyboardInterrupt):
        return repeat_interrupt()
    sys.stderr.write(_clean(f"{args.err_msg or 'Exception ignored in'}: {args.object!r}\n"))
    _show(args.exc_type, args.exc_value, args.exc_traceback)


def _clean(text: str) -> str:
    return harmless(hidden(text))
