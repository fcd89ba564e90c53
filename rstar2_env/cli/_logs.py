"""``clean_logs``: escapes control characters in what libraries log, warn about and raise, before a terminal shows it.

Libraries print texts of files as they are: transformers logs the values of a model's ``config.json``. Covered: Python's
logging, warnings and uncaught exceptions of this process. Not covered: what a library writes to the terminal itself.
"""

from __future__ import annotations

import logging
import sys
import traceback
import warnings
from types import TracebackType
from typing import Any

from rstar2_env.core.secret import hidden
from rstar2_env.core.text import harmless


def clean_logs() -> None:
    """Escape control characters, and hide secrets, in all later log records, warnings and uncaught exceptions."""
    make, write = logging.getLogRecordFactory(), warnings.formatwarning

    def record(*args: Any, **values: Any) -> logging.LogRecord:
        made = make(*args, **values)
        try:
            text = made.getMessage()
        except (TypeError, ValueError, KeyError):  # the arguments do not fit the message
            text = str(made.msg)
        made.msg, made.args = _clean(text), ()
        return made

    def warning(*args: Any, **values: Any) -> str:
        return _clean(write(*args, **values))

    logging.setLogRecordFactory(record)
    warnings.formatwarning = warning
    sys.excepthook = _show


def _show(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    sys.stderr.write(_clean("".join(traceback.format_exception(kind, error, trace))))


def _clean(text: str) -> str:
    return harmless(hidden(text))
