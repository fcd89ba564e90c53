"""Decides which ``RUN`` lines of a Dockerfile the sandbox can run at the start of an episode, without an image.

Covered: shell commands, if this machine has the programs that they start. Not covered: lines that install packages
(``packages``), lines that need the network, here-documents, lines in JSON form, and lines with options of ``RUN``
(``--mount=...``).
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from rstar2_env.adapters.harbor.shell_line import ShellLine, read_line, without_quotes
from rstar2_env.sandbox.options import can_be_root_folder

_BEFORE = (
    r"(?:(?:(?:env|nice|sudo|timeout)(?:\s+(?:-|\d)\S*)*|timeout\s+\S+|command|exec|[A-Za-z_]\w*=\S*)\s+)*(?:/\S*/)?"
)
"""Pattern of the text before a command's name: launchers (``env``, ``timeout 5``), variables, the command's folder."""
_NETWORK = re.compile(
    rf"{_BEFORE}(apt-get|apt|curl|wget|uvx?|pipx?|pip3|python3?\s+-m\s+pip|conda|npm|npx|git\s+clone)(?!\S)", re.ASCII
)
"""Pattern of the beginning of a command that needs the network."""
_OF_THE_SANDBOX = re.compile(r"(?:^|[\s=:'\">])(?:/tmp(?![\w.-])|\$HOME\b|\$\{HOME)")
"""Pattern of a path in the temporary folder or the home folder of the sandbox."""
_PLACES = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""This machine's folders of programs, which are visible in the sandbox."""
_OWN_PROGRAMS = frozenset(("python", "python3"))
"""Programs that the sandbox itself provides."""


@dataclass(frozen=True, slots=True)
class SetUpCommand:
    """A ``RUN`` line that the sandbox runs at the start of an episode.

    Attributes:
        line: Number of the line in the Dockerfile.
        command: The line without ``RUN``.
        workdir: Working folder at this line.
        environment: Environment variables at this line.
        folders: Number of the task's ``folders`` that earlier lines created.
        copied: Number of the task's ``files`` that earlier lines copied.
    """

    line: int
    command: str
    workdir: str
    environment: Mapping[str, str]
    folders: int
    copied: int


def can_set_up(run: str, programs: Collection[str] = ()) -> bool:
    """Whether the sandbox can run a ``RUN`` line.

    Args:
        run: The line without ``RUN``.
        programs: Names of programs that earlier lines install.

    Returns:
        ``False`` if the line is in JSON form, has a here-document, or begins with an option (``--mount=...``);
        otherwise ``True``.

    Raises:
        ValueError: A quote is not closed, a command needs the network, a program is not on this machine, or the line
            writes to a folder whose files the tests do not see; the message names the cause.
    """
    if run.startswith("--") or _is_json(run):
        return False
    line = read_line(run)
    if line.has_here_document:
        return False
    if (needing := network_command(line)) is not None:
        raise ValueError(needs_network(needing[1]))
    if (unseen := _unseen(line)) is not None:
        raise ValueError(
            f"{unseen} refers to a file in /tmp, in the home folder or in a folder of the system, and the tests do not "
            "see files there"
        )
    known = {*_OWN_PROGRAMS, *programs, *line.functions}
    first = [command.words[0] for command in line.commands]
    names = [without_quotes(word) for word in first if not re.search(r"[/$`*?]", word)]
    for name in _unknown_to_the_shell([name for name in names if name not in known]):
        raise ValueError(f"the program {name} is not installed on this machine")
    return True


def network_command(line: ShellLine) -> tuple[int, str] | None:
    """Return line number and name of the first command that needs the network; ``None`` without such a command."""
    for command in line.commands:
        if found := _NETWORK.match(" ".join(map(without_quotes, command.words))):
            return command.number, found[1]
    return None


def needs_network(command: str) -> str:
    """Return the error message for a command that needs the network."""
    return f"the command {command!r} needs the network, which the sandbox does not have"


def roots_in(run: str) -> list[str]:
    """Return the top-level folders of the absolute paths in a line: ``app`` for ``/app/data`` and ``--to=/app``."""
    return [
        root
        for word in read_line(run).words
        for root in re.findall(r"(?:^|[\s=:'\"])/([A-Za-z0-9_][\w.-]*)", without_quotes(word))
    ]


def _is_json(run: str) -> bool:
    """Whether Docker reads a line as a JSON list of arguments; it passes every other line to the shell."""
    try:
        return isinstance(json.loads(run), list)
    except (ValueError, RecursionError):
        return False


def _unseen(line: ShellLine) -> str | None:
    """Return a word that refers to files that the tests do not see, from the words of a line; ``None`` if none does.

    Such a word contains a path in the temporary folder or the home folder; or it is the option ``--global`` of ``git``,
    which writes to the home folder; or it is the target of a redirection to a folder of the system (``/usr``,
    ``/etc``), which is read-only in the sandbox.
    """
    for word in line.words:
        plain = without_quotes(word)
        if _OF_THE_SANDBOX.search(plain) or re.search("(?:^|=)~", word):
            return plain
    for command in line.commands:
        if command.words[0] == "git" and "--global" in command.words:
            return "--global"
    for word in map(without_quotes, line.written):
        if word.startswith("/") and not word.startswith("/dev/") and not can_be_root_folder(word.split("/")[1]):
            return word
    return None


def _unknown_to_the_shell(names: list[str]) -> list[str]:
    """Return the names that this machine's shell does not know, either as built-in commands or as programs."""
    if not names:
        return []
    asked = 'for name; do command -v -- "$name" > /dev/null || echo "$name"; done'
    done = subprocess.run(
        ["/bin/sh", "-c", asked, "sh", *names], env={"PATH": _PLACES}, capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()
