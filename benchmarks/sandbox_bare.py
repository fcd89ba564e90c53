"""What a sandboxed call costs without Python: the same sandbox, whose children exit as soon as they are isolated.

The warden, the parents, and of each call the processes, the namespaces, the mounts, the filters and the way back are
those of the local sandbox; a child reads its job, says that it began, writes what ``print(1)`` would, and exits. So the
calls a second of a program over those of this sandbox say how much of the time is the isolation's, and how much is left
for reading, compiling, running and ending a program. Not covered: what a program takes beyond that.
"""

from __future__ import annotations

import shutil
import statistics
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sandbox_measures import measure

from rstar2_env.sandbox import Job, LocalSandbox
from rstar2_env.sandbox.inside import launch

_EXITS_AT_ONCE = '''

def _serve(isolation: Isolation) -> int:
    """Take the job and exit."""
    os.read(JOB_FD, 1 << 20)
    os.write(REPORT_FD, wire.STARTED)
    os.write(1, b"1\\n")
    os._exit(0)
'''


@contextmanager
def without_python() -> Iterator[LocalSandbox]:
    """A local sandbox of a copy of the code that runs around programs, in which they are not run."""
    original = launch.__file__
    with tempfile.TemporaryDirectory(prefix="rstar2-bare-") as folder:
        copy = Path(folder) / "inside"
        shutil.copytree(Path(original).parent, copy, ignore=shutil.ignore_patterns("__pycache__"))
        Path(folder).chmod(0o755)
        with (copy / "zygote" / "child.py").open("a") as file:
            file.write(_EXITS_AT_ONCE)
        launch.__file__ = str(copy / "launch.py")
        try:
            sandbox = LocalSandbox()
            sandbox.run(Job("1"))  # starts it, if that was left for later
        finally:
            launch.__file__ = original
        with sandbox:
            yield sandbox


def share_of_bare(program: str, calls: int, pairs: int = 5) -> float:
    """Calls a second over those without Python: the median of the ratios of runs that take turns.

    Args:
        program: Name in ``PROGRAMS``; without Python it still chooses the parent.
        calls: Calls of each run.
        pairs: Runs of each.
    """

    def rate(sandbox: LocalSandbox) -> float:
        return measure("", program, lambda code: _printed(sandbox, code), calls).per_second

    with LocalSandbox() as whole, without_python() as bare:
        for sandbox in (whole, bare):
            rate(sandbox)
        return statistics.median(rate(whole) / rate(bare) for _ in range(pairs))


def _printed(sandbox: LocalSandbox, code: str) -> None:
    outcome = sandbox.run(Job(code))
    if not outcome.stdout:
        raise RuntimeError(f"a call printed nothing: {outcome}")
