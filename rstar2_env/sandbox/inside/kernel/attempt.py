"""Trying something in a forked process: how each layer is found, since a kernel's version alone says little."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable
from typing import Any


def attempt(action: Callable[[], Any]) -> str | None:
    """Try ``action`` in a forked process, which ends with it.

    Returns:
        The error, or ``None`` when it worked.
    """
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        message = b"it ended without a word"
        try:
            action()
            message = b""
        except OSError as error:
            message = str(error.args[-1] if error.args else error).encode()
        except BaseException:
            message = traceback.format_exc().encode()
        finally:
            os.write(write, message[:4000])
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as file:
        said = file.read().decode()
    os.waitpid(pid, 0)
    return said or None
