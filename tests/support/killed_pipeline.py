"""Runs a pipeline in a process that is killed on the way: ``killed_pipeline.py FILE FOLDER SETTINGS SAID RENAMED``.

It kills itself, by SIGKILL, once it has said a line that begins with ``SAID``, or as soon as a file was renamed to a
path that ends in ``RENAMED``; "-" is never. ``SETTINGS`` is JSON.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

NEVER = "-"
DRIVER = Path(__file__)


def settings_of(small: Path, problems: Path) -> dict[str, Any]:
    """What cuts ``tiny_cpu`` down to seconds: a policy that guesses, few problems, few steps.

    Args:
        small: Folder of the policy, which ``make_guesser`` wrote.
        problems: File of its problems.
    """
    train = {"problems_per_step": 2, "group_size": 4, "save_every": 1, "keep_checkpoints": 3, "threads": 1}
    train |= {"learning_rate": 1e-3, "eval": {"every": 2, "episodes": 4}}
    return {
        "data": {"problems": f"{problems}:holdout=0.3", "count": 12, "held_out_count": 6},
        "traces": {"problems": "arithmetic:level=1", "episodes": 24},
        "cold_start": {
            "model": str(small),
            "steps": 4,
            "options": {"batch_size": 4, "learning_rate": 1e-5, "save_every": 1, "threads": 1},
        },
        "before": {"n": 2},
        "stage1": {"steps": 4, "options": train},
        "stage2": {"steps": 2, "options": train},
        "hard": {"n": 2, "drop_from": 1.5},
        "stage3": {"steps": 2, "options": train},
        "after": {"n": 2},
    }


def start(file: Path, folder: Path, settings: Any, *, said: str = NEVER, renamed: str = NEVER) -> subprocess.Popen[str]:
    """Start a run of a pipeline in a process of its own."""
    words = [sys.executable, str(DRIVER), str(file), str(folder), json.dumps(settings), said, renamed]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(words, stderr=subprocess.PIPE, text=True, env=environment)


def wait_killed(process: subprocess.Popen[str], bound_s: float) -> None:
    """Wait until it has died by SIGKILL."""
    _, errors = process.communicate(timeout=bound_s)
    assert process.returncode == -signal.SIGKILL, errors


def kill_when(process: subprocess.Popen[str], is_time: Callable[[], bool], bound_s: float) -> bool:
    """Kill a process once it is time; return whether it still ran."""
    end = time.monotonic() + bound_s
    while process.poll() is None and not is_time():
        if time.monotonic() > end:
            process.kill()
            raise TimeoutError("it was never time")
        time.sleep(0.01)
    ran = process.poll() is None
    process.kill()
    process.communicate()
    return ran


def _main(file: str, folder: str, settings: str, said: str, renamed: str) -> None:
    from rstar2_env.trainers.pipeline.file import read_pipeline
    from rstar2_env.trainers.pipeline.run import run_pipeline

    late: list[str] = []

    def hook(event: str, words: Any) -> None:
        if late == ["renaming"]:
            late.append("dying")  # before the kill, which is told to this hook too
            os.kill(os.getpid(), signal.SIGKILL)
        if event == "os.rename" and not late and str(words[1]).endswith(renamed):
            late.append("renaming")  # told before it happens; whatever comes next is after

    if renamed != NEVER:
        sys.addaudithook(hook)

    def say(text: str) -> None:
        if said != NEVER and text.partition("] ")[2].startswith(said):
            os.kill(os.getpid(), signal.SIGKILL)

    run_pipeline(read_pipeline(Path(file), json.loads(settings)), Path(folder), progress=False, say=say)


if __name__ == "__main__":
    _main(*sys.argv[1:])
