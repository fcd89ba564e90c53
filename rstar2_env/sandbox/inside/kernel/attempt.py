"""Trial of an action in a forked process; layers are found by trial, since the kernel version is not reliable."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable
from typing import Any


def attempt(action: Callable[[], Any]) -> str | None:
    """Try ``action`` in a forked process, which ends afterwards.

    Returns:
        The error, or ``None`` on success.
    """
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        message = b"it ended without a message"
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
        message_text = file.read().decode()
    os.waitpid(pid, 0)
    return message_text or None
