"""``HarborEnv``: an environment whose problems are Harbor tasks in a folder, played with the tool ``bash``."""

from __future__ import annotations

import base64
import posixpath
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rstar2_env.adapters.harbor.folder import HarborTask, files_below, read_tasks
from rstar2_env.adapters.harbor.shell import ShellTool, roots_of
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.declare import Seconds, call_with_options, checked
from rstar2_env.env.tool_env import ToolEnv
from rstar2_env.env.turn_result import Ended
from rstar2_env.problems import Problem
from rstar2_env.sandbox.job import Sandbox
from rstar2_env.sandbox.limits import Limits
from rstar2_env.sandbox.packages import declared

_INSTRUCTION = "%s\n\nWork with the tool bash, in the folder {workdir}. When the task is done, reply without a call."
_SYSTEM = """\
You solve a task with the help of tools. Write a call as JSON between <tool_call> and </tool_call>:
<tool_call>{"name": "bash", "arguments": {"command": "ls"}}</tool_call>
The result follows in <tool_response>. The tools:
%s"""


class HarborEnv(ToolEnv):
    """Environment that plays Harbor tasks in the sandbox.

    The policy runs commands with ``bash``; a turn without a call ends the episode, and the task's own ``tests/test.sh``
    computes the reward from the files that the commands left in the task's folders. All rewards of ``reward.json`` are
    in ``info["reward_components"]``. If the tests exceed a limit, the reward is 0; if they write no reward, the episode
    is ``unavailable``. The reference player runs ``solution/solve.sh``.

    Args:
        tasks: Folder of a task, or a folder that contains folders of tasks.
        skip_refused: Leave out tasks that the sandbox cannot play, instead of raising an error.
        full_reward: Minimum reward at which an episode counts as solved.
        test_timeout_s: Time limit of a task's tests, in seconds; the task's own limit applies if it is lower.
        sandbox: Name of a provider; or a dict of its options, with its name under ``"provider"``; or a ``Sandbox``
            with ``root_folders`` for these tasks. The provider must support sessions and ``root_folders``.
        limits: Resource limits of one command; a ``Limits`` or a dict of its fields.
        max_output: Maximum length of a command's output that the policy is shown, in characters.
        **options: Arguments of ``ToolEnv``.

    Raises:
        ConfigurationError: There is no task, a task cannot be played, or an option is out of range.
    """

    @checked
    def __init__(
        self,
        *,
        tasks: str | Path,
        skip_refused: bool = False,
        full_reward: float = 1.0,
        test_timeout_s: Seconds = 120.0,
        sandbox: Sandbox | str | Mapping[str, Any] = "local",
        limits: Limits | Mapping[str, Any] | None = None,
        max_output: int = 4000,
        **options: Any,
    ) -> None:
        found = read_tasks(tasks, skip_refused=skip_refused)
        self._tasks = {task.name: task for task in found}
        self._full_reward, self._test_timeout_s = full_reward, test_timeout_s
        if not isinstance(sandbox, Sandbox):
            given = {"provider": sandbox} if isinstance(sandbox, str) else dict(sandbox)
            sandbox = {"root_folders": roots_of(found), **given}
        if needed := list(dict.fromkeys(name for task in found for name in task.packages)):
            sandbox = _with_packages(sandbox, needed)
        if not isinstance(limits, Limits):
            given_limits = {"wall_s": 60.0, "memory_mb": 1024, "processes": 128, **(limits or {})}
            limits = call_with_options("command", Limits, given_limits)
        self._shell = ShellTool(sandbox, limits=limits, max_output=max_output)
        problems = [_problem(task) for task in found]
        if options.get("dialect", "rstar2") == "rstar2":
            own = {"system": _SYSTEM, "instruction": "%s", **(options.get("dialect_options") or {})}
            options |= {"dialect_options": own}
        super().__init__(problems=problems, tools=[self._shell], grader=None, **{"max_turns": 30, **options})

    def begin(self, options: Mapping[str, Any]) -> None:
        """Select the task of the episode; the task's files are written before the first command."""
        self._shell.begin_task(self._tasks[self.problem.id])

    def answer_turn(self, turn: str) -> Ended:
        """Run the tests of the task, and end the episode with their reward."""
        outcome = self._shell.grade(self._test_timeout_s)
        answer = self.dialect.answer(self._turns)
        if not outcome.available:
            return Ended(answer, end="unavailable", info={"error": outcome.error})
        reward = outcome.rewards.get("reward", 0.0)
        error = {"error": outcome.error} if outcome.error else {}
        info = {"reward_components": dict(outcome.rewards), **error}
        return Ended(answer, reward, not outcome.error and reward >= self._full_reward, info=info)

    def oracle_turn(self) -> str:
        """Return the next turn of the reference player: the reference solution, then a turn without a call."""
        task = self._tasks[self.problem.id]
        if self.turns or task.solution is None:
            return "The task is done."
        return self.dialect.format_call("bash", {"command": _solution(task, task.solution)})


def _with_packages(sandbox: Sandbox | dict[str, Any], needed: list[str]) -> Sandbox | dict[str, Any]:
    """Return the sandbox's options, extended so that programs can import the packages that tasks install.

    Raises:
        ConfigurationError: The sandbox hides these packages, or it is unknown whether the sandbox has them.
    """
    names = declared(sandbox)
    if isinstance(sandbox, dict) and names is not None:
        return {**sandbox, "packages": [*names, *(name for name in needed if name not in names)]}
    shows_all = isinstance(sandbox, dict) and sandbox.get("provider", "local") == "local"
    if shows_all or (names is not None and set(needed) <= set(names)):
        return sandbox
    raise ConfigurationError(
        f"The tasks need the packages {', '.join(needed)}: use the local sandbox, or a sandbox whose option `packages` "
        "lists them.",
        option="sandbox",
    )


def _problem(task: HarborTask) -> Problem:
    question = _INSTRUCTION.replace("{workdir}", task.workdir).replace("%s", task.instruction.strip(), 1)
    return Problem(task.name, question, "", "harbor", dict(task.metadata))


def _solution(task: HarborTask, folder: Path) -> str:
    """Return a command that writes the files of the reference solution and runs its script ``solve.sh``."""
    lines = []
    for inside, path in files_below(folder, "/solution"):
        content = path.read_bytes()
        try:
            text, read = content.decode(), "cat"
        except UnicodeDecodeError:
            text, read = base64.b64encode(content).decode(), "base64 -d"
        mark = "END"
        while mark in text:
            mark += "_"
        place = shlex.quote(inside)
        # The end marker must be on a line of its own, so a line break is added to a text that does not end with one.
        body = text if text.endswith("\n") else f"{text}\n"
        lines += [f"mkdir -p {shlex.quote(posixpath.dirname(inside))}", f"{read} > {place} << '{mark}'\n{body}{mark}"]
    variables = {"DEBIAN_FRONTEND": "noninteractive", **task.solution_environment}
    given = " ".join(f"{name}={shlex.quote(value)}" for name, value in variables.items())
    return "\n".join([*lines, f"env {given} bash /solution/solve.sh"])
