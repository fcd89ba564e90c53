"""Runs a stage's training in one or more separate processes, which a launcher starts.

Covered: the command and its exit code, Ctrl-C, and a graceful stop of the command if the runner dies. Not covered: the
launchers themselves; see docs/several-processes.md.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from rstar2_env.core.errors import ConfigurationError, Rstar2Error

from ..launch import child
from ..launch.commands import RSTAR2
from .base import Work
from .spread import given_words

_REST = "--"


class StageFailedError(Rstar2Error, RuntimeError):
    """The launched processes of a stage ended with an error, which they have printed."""


def command(launch: str, words: Sequence[str], configs: Path) -> list[str]:
    """Return the full command that starts a ``rstar2`` command with a launcher.

    Args:
        launch: The launcher: ``accelerate launch --config_file FILE`` or ``torchrun --nproc_per_node 8`` (which run a
            module), ``rstar2 launch --serve 0-3 --train 4-7 --`` (which takes the arguments of ``rstar2 train``), or
            ``python`` for a single process.
        words: A command of ``rstar2`` with its arguments.
        configs: The folder that contains ``configs``; launcher arguments such as ``configs/NAME.yaml`` are resolved in
            it.

    Raises:
        ConfigurationError: The launcher is empty, or cannot start this command.
    """
    given = given_words(shlex.split(launch), configs)
    if not given:
        raise ConfigurationError(
            "The option `launch` must be a command, such as: accelerate launch --config_file FILE.", option="launch"
        )
    if given[0] == "rstar2":
        given = [sys.executable, *RSTAR2, *given[1:]]
    elif given[0] == "python":
        given = [sys.executable, *given[1:]]
    if given[-1] == _REST:
        if words[0] != "train":
            raise ConfigurationError(
                f"The launcher {launch!r} can only start `rstar2 train`, not `rstar2 {words[0]}`: remove "
                "the option `launch` from this stage.",
                option="launch",
            )
        return [*given, *words[1:]]
    return [*given, *RSTAR2, *words]


def run_launched(launch: str, words: Sequence[str], work: Work, configs: Path) -> None:
    """Run a command of ``rstar2`` with a launcher until it ends.

    Args:
        launch: See ``command``.
        words: See ``command``.
        work: The context of the stage.
        configs: See ``command``.

    Raises:
        StageFailedError: The command ended with an error.
        KeyboardInterrupt: The command was interrupted.
    """
    bound = [sys.executable, child.__file__, "-", str(os.getpid())]
    process = subprocess.Popen([*bound, *command(launch, words, configs)], pass_fds=work.inherited)
    try:
        code = process.wait()
    except KeyboardInterrupt:
        process.wait()  # Ctrl-C in a terminal reaches the process too; it finishes its step and writes a checkpoint
        raise
    except BaseException:
        process.terminate()
        process.wait()
        raise
    if code in (130, 143):
        raise KeyboardInterrupt
    if code:
        raise StageFailedError(
            f"The command {shlex.join([launch, *words])} failed with exit code {code}; see its output above."
        )
