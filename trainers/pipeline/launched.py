"""Runs a stage's training in processes of its own: several of them, as a launcher starts them, or one.

Covered: the command, Ctrl-C, the death of the runner (the command is then ended in order), and its exit code. Not
covered: which launchers there are; docs/training.md names them.
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
    """The processes that a stage was launched in ended with an error, which they have printed."""


def command(launch: str, words: Sequence[str], beside: Path) -> list[str]:
    """The command that a launcher is given.

    Args:
        launch: The launcher: ``accelerate launch --config_file FILE`` or ``torchrun --nproc_per_node 8`` (which are
            given a module to run), ``rstar2 launch --serve 0-3 --train 4-7 --`` (which is given what ``rstar2 train``
            is), or ``python`` for one process of its own.
        words: A command of ``rstar2`` with its arguments.
        beside: The pipeline's folder of configurations: words of the launcher that are files of it are found there.

    Raises:
        ConfigurationError: There is no launcher, or it cannot start this command.
    """
    given = given_words(shlex.split(launch), beside)
    if not given:
        raise ConfigurationError("launch is a command, such as accelerate launch --config_file FILE.", option="launch")
    if given[0] == "rstar2":
        given = [sys.executable, *RSTAR2, *given[1:]]
    elif given[0] == "python":
        given = [sys.executable, *given[1:]]
    if given[-1] == _REST:
        if words[0] != "train":
            raise ConfigurationError(
                f"{launch!r} starts `rstar2 train` alone, not `rstar2 {words[0]}`.", option="launch"
            )
        return [*given, *words[1:]]
    return [*given, *RSTAR2, *words]


def run_launched(launch: str, words: Sequence[str], work: Work, beside: Path) -> None:
    """Run a command of ``rstar2`` as a launcher starts it, until it ends.

    Args:
        launch: As of ``command``.
        words: As of ``command``.
        work: What the stage was given.
        beside: As of ``command``.

    Raises:
        StageFailedError: It ended with an error.
        KeyboardInterrupt: It was interrupted.
    """
    bound = [sys.executable, child.__file__, "-", str(os.getpid())]
    process = subprocess.Popen([*bound, *command(launch, words, beside)], pass_fds=work.inherited)
    try:
        code = process.wait()
    except KeyboardInterrupt:
        process.wait()  # the terminal has told it too; it ends its step and writes a checkpoint
        raise
    except BaseException:
        process.terminate()
        process.wait()
        raise
    if code in (130, 143):
        raise KeyboardInterrupt
    if code:
        raise StageFailedError(
            f"{shlex.join([launch, *words])} ended with the exit code {code}; what it said is above."
        )
