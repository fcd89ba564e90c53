"""The program of the process that computes findings: ``python PATH/findings_process.py RUN NAME PARENT NICENESS``.

It lowers its priority before it imports the package, since the imports alone take a second of CPU time.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import sys
from pathlib import Path

_SET_DEATH_SIGNAL = 1


def lower_priority(niceness: int) -> None:
    """Add to the niceness of this process, and set the niceness of its session.

    The session must contain no other process. If Linux distributes computing time among sessions (``sched_autogroup``),
    the niceness of a process has an effect only within its session, so the niceness of the session is set too.
    """
    with contextlib.suppress(OSError):  # some containers refuse it
        os.nice(niceness)
    with contextlib.suppress(OSError):  # not Linux, or a kernel without this setting
        Path("/proc/self/autogroup").write_text(str(niceness))


def main(path: str, name: str, parent: str, niceness: str) -> None:
    """Print the findings of a run as JSON, with lowered priority; end when the process ``parent`` ends (on Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != int(parent):
            raise SystemExit("the viewer ended")
    lower_priority(int(niceness))
    with contextlib.redirect_stdout(sys.stderr):  # where a plugin that prints on import does no harm
        from rstar2_env.view.queries.findings import findings_of

        found = findings_of(Path(path), name)
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
