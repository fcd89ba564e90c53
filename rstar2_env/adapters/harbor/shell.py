"""The tool ``bash(command)``, which runs commands on the files of a Harbor task, and the grading of these files.

All commands of an episode run in one session of the sandbox, so files and background processes persist between
commands. The tests run in a fresh process on a copy of the files in the task's folders: processes that commands left
behind, and files in ``tests``, ``logs`` and the home folder, have no effect on the reward.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from rstar2_env.adapters.harbor.folder import RESERVED, HarborTask, archive, files_below
from rstar2_env.adapters.harbor.packages import programs_of
from rstar2_env.core.errors import SandboxUnavailableError
from rstar2_env.core.status import ToolStatus
from rstar2_env.sandbox.job import Job, Outcome
from rstar2_env.sandbox.limits import Limits
from rstar2_env.tools.base import CallContext, ToolResult, ToolSpec
from rstar2_env.tools.notebook import NotebookTool, SessionCell

_MOST_STATE = 256 << 20
"""Maximum size, in bytes of base64, of the copy of a task's files that the tests grade."""
_PROGRAM = re.compile(r"[\w.-]+")
_SHOWN = 1 << 18
"""Maximum number of bytes of a command's output that leave the sandbox."""
_PROGRAMS = """
import os, shlex, sys
os.makedirs("/tmp/.programs")
shown = ":".join(one for one in sys.path if one.endswith("packages"))
for name, code in {programs!r}.items():
    with open("/tmp/.programs/" + name, "w") as script:
        # A variable of the interpreter alone, since other interpreters of the machine must not find its packages.
        # The modules of the task come first.
        also = 'PYTHONPATH="${{PYTHONPATH:+$PYTHONPATH:}}"' + shlex.quote(shown) + " " if shown else ""
        command = shlex.join([sys.executable, *(["-c", code] if code else [])])
        script.write("#!/bin/sh\\n" + also + "exec " + command + ' "$@"\\n')
    os.chmod("/tmp/.programs/" + name, 0o755)
os.environ["PATH"] = "/tmp/.programs:" + os.environ["PATH"]
"""
"""Code that puts the sandbox's Python, and the programs of its packages, before the machine's programs in ``PATH``."""
_SET_UP = """
import base64, io, os, subprocess, tarfile, tempfile
for name in {folders!r} + ["tests", "solution", "logs/agent", "logs/verifier"]:
    os.makedirs("/tmp/" + name, exist_ok=True)
for step in {steps!r}:
    if "packed" in step:
        with tarfile.open(fileobj=io.BytesIO(base64.b64decode(step["packed"]))) as packed:
            packed.extractall("/tmp", filter="tar")
        continue
    with tempfile.TemporaryFile() as said:  # a pipe would wait for processes in the background
        done = subprocess.run(["/bin/sh", "-c", step["command"]], cwd=step["workdir"],
                              env={{**os.environ, **step["env"]}}, stdin=subprocess.DEVNULL, stdout=said,
                              stderr=subprocess.STDOUT)
        if done.returncode:
            said.seek(max(0, said.seek(0, 2) - 500))
            text = said.read().decode("utf-8", "replace").strip()
            code = done.returncode
            raise RuntimeError(f"line {{step['line']}} of the Dockerfile ended with exit code {{code}}: {{text}}")
os.chdir({workdir!r})
os.chdir("/tmp")
"""
_COMMAND = """
with tempfile.TemporaryFile() as said:
    done = subprocess.run(["bash", "-c", {command!r}], cwd={workdir!r}, env={{**os.environ, **{variables!r}}},
                          stdin=subprocess.DEVNULL, stdout=said, stderr=subprocess.STDOUT)
    size = said.seek(0, 2)
    said.seek(max(0, size - {shown}))
    text = said.read().decode("utf-8", "replace")
if done.returncode:
    text += ("" if text.endswith("\\n") or not text else "\\n") + f"[exit code {{done.returncode}}]\\n"
print(text or "[no output]\\n", end="")
"""
_COLLECT = """
packed = io.BytesIO()
with tarfile.open(fileobj=packed, mode="w") as tar:
    for name in {folders!r}:
        if os.path.isdir("/tmp/" + name):
            tar.add("/tmp/" + name, name, filter=lambda one: one if one.isreg() or one.isdir() or one.issym() else None)
print({token!r} + base64.b64encode(packed.getvalue()).decode() + {token!r})
"""
_GRADE = """
import json, os, subprocess, tarfile
for name in ("state.tar", "tests.tar"):
    with tarfile.open(name) as packed:
        packed.extractall("/tmp", filter="tar")
    os.unlink(name)
for name in {folders!r} + ["logs/agent", "logs/verifier"]:
    os.makedirs("/tmp/" + name, exist_ok=True)
{programs}
with open("/logs/verifier/test-stdout.txt", "w+b") as said:
    subprocess.run(["bash", "/tests/test.sh"], cwd={workdir!r}, env={{**os.environ, **{variables!r}}},
                   stdin=subprocess.DEVNULL, stdout=said, stderr=subprocess.STDOUT)
    said.seek(0)
    found = {{"said": said.read()[-2000:].decode("utf-8", "replace")}}
for name in ("reward.json", "reward.txt"):
    if os.path.isfile("/logs/verifier/" + name):
        with open("/logs/verifier/" + name, encoding="utf-8", errors="replace") as file:
            found[name] = file.read(10000)
print({token!r} + json.dumps(found) + {token!r})
"""


@dataclass(frozen=True, slots=True)
class TaskRewards:
    """The rewards that the tests of a task wrote.

    Attributes:
        rewards: Rewards by name; ``reward`` is the reward of the episode. Empty if there is none.
        error: Reason why there is no reward; empty if there is a reward.
        available: Whether the result measures the policy; false if the sandbox failed or the tests wrote no valid
            reward.
    """

    rewards: Mapping[str, float]
    error: str = ""
    available: bool = True


class ShellTool(NotebookTool):
    """Tool that runs commands on the files of a task; it is created with the same arguments as ``SandboxTool``."""

    schema = ToolSpec(
        name="bash",
        description=(
            "Run a command with bash and return what it printed, and its exit code if it is not 0. Files are kept "
            "between commands. There is no network."
        ),
        parameters={
            "type": "object",
            "properties": {"command": {"type": "string", "description": "The command, of one or more lines."}},
            "required": ["command"],
            "additionalProperties": False,
        },
    )
    noun = "command"
    gone = "All changes are gone: the next command starts with the files of the task."

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._limits = replace(self._limits, output_bytes=max(self._limits.output_bytes, _MOST_STATE))
        self._task: HarborTask | None = None
        self._folders: list[str] = []

    def begin_task(self, task: HarborTask) -> None:
        """Set the task of the episode; its files are written before the first command."""
        self._task = task
        self._folders = sorted(task.roots | {"app"})

    def call(self, arguments: Mapping[str, Any], context: CallContext) -> ToolResult:
        """Run ``arguments["command"]``.

        Raises:
            SandboxUnavailableError: The provider does not support sessions or ``root_folders``.
        """
        self._set_up()
        assert self._task is not None
        code = _COMMAND.format(
            command=arguments["command"],
            workdir=self._task.workdir,
            variables={**self._task.environment, "PWD": self._task.workdir},
            shown=_SHOWN,
        )
        return super().call({"code": code}, context)

    def grade(self, timeout_s: float) -> TaskRewards:
        """Run the tests of the task on the files as the commands left them.

        Args:
            timeout_s: Time limit of the tests, in seconds; the task's own limit applies if it is lower.
        """
        task, token = self._task, secrets.token_hex(16)
        assert task is not None
        try:
            self._set_up()
        except SandboxUnavailableError as error:
            return TaskRewards({}, str(error), available=False)
        outcome = self._in_session(SessionCell(_COLLECT.format(folders=self._folders, token=token), seed=0))
        if outcome.status is ToolStatus.UNAVAILABLE:
            return TaskRewards({}, "the sandbox was not available", available=False)
        try:
            state = base64.b64decode(_between(outcome.stdout, token), validate=True)
        except (ValueError, binascii.Error):
            return TaskRewards({}, f"the files of the task could not be read back from the sandbox: {outcome.status}")
        code = _GRADE.format(
            programs=_programs(task),
            folders=self._folders,
            workdir=task.workdir,
            variables={**task.environment, **task.test_environment, "PWD": task.workdir},
            token=token,
        )
        limits = Limits(
            wall_s=min(task.test_timeout_s, timeout_s),
            memory_mb=self._limits.memory_mb,
            processes=self._limits.processes,
            file_mb=self._limits.file_mb,
        )
        files = {"state.tar": state, "tests.tar": archive(files_below(task.tests, "/tests"))}
        graded = self._open().run(Job(code, limits=limits, files=files))
        if graded.status is ToolStatus.UNAVAILABLE:
            return TaskRewards({}, "the sandbox was not available", available=False)
        try:
            found = json.loads(_between(graded.stdout, token))
        except ValueError:
            return TaskRewards(
                {}, f"the tests of the task did not finish: {graded.status} {graded.error_message or ''}".strip()
            )
        return _rewards(found)

    def _set_up(self) -> None:
        """Write the files of the task, unless the session has them."""
        if self._cells:
            return
        assert self._task is not None
        code = _programs(self._task) + _SET_UP.format(
            steps=_steps(self._task), folders=self._folders, workdir=self._task.workdir
        )
        cell = SessionCell(code, seed=0)
        outcome = self._in_session(cell)
        if outcome.status not in (ToolStatus.OK, ToolStatus.EMPTY):
            raise SandboxUnavailableError(
                f"The task {self._task.name} could not be set up in the sandbox: "
                f"{(outcome.error_message or str(outcome.status)).removesuffix('.')}. The sandbox must support "
                "sessions, a mount namespace for folders at the root, and the programs of the task's Dockerfile."
            )
        self._cells.append(replace(cell, status=outcome.status))

    def _in_session(self, cell: SessionCell) -> Outcome:
        outcome = self._run(cell) if self._is_live or not self._cells else None
        return self._run_rebuilt(cell) if outcome is None or self._is_lost(outcome) else outcome


def _steps(task: HarborTask) -> list[dict[str, Any]]:
    """Return the steps that make a task's files: archives to unpack and commands to run, in the Dockerfile's order."""
    steps: list[dict[str, Any]] = []
    folders = copied = 0

    def pack(until: tuple[int, int]) -> None:
        nonlocal folders, copied
        if until != (folders, copied):
            packed = archive(task.files[copied : until[1]], task.folders[folders : until[0]])
            steps.append({"packed": base64.b64encode(packed).decode()})
        folders, copied = until

    for one in task.commands:
        pack((one.folders, one.copied))
        env = {**one.environment, "PWD": one.workdir}
        steps.append({"line": one.line, "command": one.command, "workdir": one.workdir, "env": env})
    pack((len(task.folders), len(task.files)))
    return steps


def _programs(task: HarborTask) -> str:
    """Return code that creates the commands ``python``, ``python3``, and those of the task's packages."""
    made = {"python": "", "python3": ""}
    for name, target in programs_of([*task.packages]).items():
        module, _, function = target.partition(":")
        if _PROGRAM.fullmatch(name) and _PROGRAM.fullmatch(module) and _PROGRAM.fullmatch(function):
            made[name] = f"import sys; from {module} import {function} as main; sys.exit(main())"
    return _PROGRAMS.format(programs=made)


def roots_of(tasks: list[HarborTask]) -> tuple[str, ...]:
    """Return the names of the top-level folders that a sandbox must provide for these tasks."""
    return tuple(sorted({"app", *RESERVED, *(name for task in tasks for name in task.roots)}))


def _between(text: str, token: str) -> str:
    _, first, rest = text.partition(token)
    found, second, _ = rest.partition(token)
    if not first or not second:
        raise ValueError("the output of the sandbox does not contain a complete message")
    return found


def _rewards(found: Mapping[str, str]) -> TaskRewards:
    """Parse the rewards as Harbor does, from ``reward.json`` or else ``reward.txt``.

    Args:
        found: Contents of the files that exist, by file name; the key ``said`` has the end of the tests' output.
    """
    name = next((one for one in ("reward.json", "reward.txt") if one in found), None)
    if name is None:
        said = found["said"].strip()
        return TaskRewards(
            {}, f"the tests of the task did not write a reward; their output ends with: {said}", available=False
        )
    try:
        value = json.loads(found[name]) if name == "reward.json" else float(found[name])
        rewards = value if isinstance(value, dict) else {"reward": value}
        if not rewards or not all(isinstance(one, (int, float)) and math.isfinite(one) for one in rewards.values()):
            raise ValueError
        if "reward" not in rewards and len(rewards) > 1:
            return TaskRewards({}, f"the file /logs/verifier/{name} does not have a field reward", available=False)
        numbers = {key: float(one) for key, one in rewards.items()}
    except ValueError:
        why = f"the file /logs/verifier/{name} must contain finite numbers, got {found[name][:200]!r}"
        return TaskRewards({}, why, available=False)
    return TaskRewards({"reward": next(iter(numbers.values())), **numbers})
