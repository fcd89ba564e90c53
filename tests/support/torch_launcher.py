"""Processes of a run, started as a user starts them: by torchrun."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

from places import SUPPORT


def launch(script: Path, *arguments: str, beside: Path | None = None, processes: int = 2) -> str:
    """Run a script on several processes and wait for all.

    Args:
        script: The script.
        *arguments: Its arguments.
        beside: A folder whose modules it may import, in addition to those of the tests' support.
        processes: Number of processes.

    Returns:
        What the processes printed.

    Raises:
        AssertionError: One of them failed; the message is the end of what they wrote to standard error.
    """
    folders = [SUPPORT] if beside is None else [SUPPORT, beside]
    launcher = subprocess.Popen(
        [
            *(sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", str(processes)),
            *(str(script), *arguments),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, folders))},
        start_new_session=True,
    )
    try:
        stdout, stderr = launcher.communicate(timeout=500)
    finally:
        # The launcher's children are in its session: none may outlive the test.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(launcher.pid, signal.SIGKILL)
    assert launcher.returncode == 0, stderr[-3000:]
    return stdout
