"""Start a local MCP server under limits: ``python launch.py LIMITS COMMAND...``.

Covered: the memory of each process, the size of each file, no core files, no gain of privileges, and the end of the
server when the process that started it ends. Not covered: the file system and the network, which the user's program may
use, and the number of its processes.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import signal
import sys

_PR_SET_PDEATHSIG, _PR_SET_NO_NEW_PRIVS = 1, 38


def main() -> None:
    """Apply the limits to this process, and replace it by the command."""
    limits, command = json.loads(sys.argv[1]), sys.argv[2:]
    if sys.platform == "linux":
        prctl = ctypes.CDLL(None, use_errno=True).prctl
        prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
        prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        if os.getppid() != limits["parent"]:  # it ended before the line above
            return
    for kind, most in (
        # Of the address space, only the writable part counts: some runtimes reserve far more than they use.
        (resource.RLIMIT_DATA, limits["memory"]),
        (resource.RLIMIT_FSIZE, limits["file"]),
        (resource.RLIMIT_CORE, 0),
    ):
        with contextlib.suppress(ValueError, OSError):  # the limit in force is lower
            resource.setrlimit(kind, (most, most))
    try:
        os.execvp(command[0], command)
    except OSError as error:
        sys.exit(f"{command[0]} cannot be started: {error.strerror}")


if __name__ == "__main__":
    main()
