"""``prove``: runs every part of ``rstar2 doctor --prove`` in a separate process, and kills a part that takes too long.

Covered: one machine, with or without accelerators, without a network; packages that are not installed; parts that crash
or hang, in Python or in a kernel. Not covered: several machines, and reaching a stated accuracy.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic

from rstar2_env.core.errors import UnknownNameError

from .findings import PartFinding
from .part import PARTS

_LAST_S = 2.0
"""Seconds of the time limit that are reserved for the report."""


def prove(
    *,
    timeout_s: float = 1200.0,
    model: str | None = None,
    parts: Sequence[str] = (),
    say: Callable[[str], None] = lambda line: None,
    program: str = "rstar2_env.trainers.prove.part",
) -> list[PartFinding]:
    """Run the parts of ``rstar2 doctor --prove``, most important first.

    Args:
        timeout_s: Time limit of all parts together, in seconds.
        model: Folder of a model to compute with; ``None`` for one with random weights.
        parts: Names of the parts to run; empty for all.
        say: Receives a line for each part when it begins.
        program: Module that runs one part.

    Raises:
        UnknownNameError: No part has this name.
    """
    for name in parts:
        if name not in PARTS:
            raise UnknownNameError("part", name, sorted(PARTS))
    chosen = [name for name in PARTS if not parts or name in parts]
    until = monotonic() + timeout_s - _LAST_S
    found = []
    for number, name in enumerate(chosen):
        left = until - monotonic()
        # A part may take twice its equal share of the time that is left.
        limit = min(left, 2 * left / (len(chosen) - number))
        if limit <= 0:
            found.append(PartFinding(name, "late", "not run, because the time limit of --prove was reached"))
            continue
        say(f"{name} (at most {limit:.0f} s) ...")
        found.append(_run(name, model, limit, program))
    return found


def _run(name: str, model: str | None, limit: float, program: str) -> PartFinding:
    with TemporaryDirectory(prefix="rstar2-prove-") as folder:
        out, log = Path(folder) / "finding.json", Path(folder) / "log"
        began = monotonic()
        with log.open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", program, name, model or "", str(out)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                process.wait(limit)
            except subprocess.TimeoutExpired:
                pass
            finally:
                _kill(process)
        seconds = monotonic() - began
        with suppress(OSError, ValueError):
            return PartFinding.from_record(json.loads(out.read_text()))
        said = log.read_text(encoding="utf-8", errors="replace").strip()[-1500:]
    if seconds >= limit:
        return PartFinding(name, "late", f"ended after {limit:.0f} s. {said}".strip(), seconds=seconds)
    return PartFinding(name, "problem", f"ended with exit code {process.returncode}. {said}".strip(), seconds=seconds)


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and all that it started; a process that is blocked in a device kernel may remain."""
    # torchrun starts its processes in sessions of their own, so that they are not in the group of the part.
    started = _descendants(process.pid) if process.poll() is None else []
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    for pid in started:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    with suppress(subprocess.TimeoutExpired):
        process.wait(2)


def _descendants(pid: int) -> list[int]:
    found = []
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in map(int, (task / "children").read_text().split()):
                found += [child, *_descendants(child)]
    return found
