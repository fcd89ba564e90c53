"""verifiers (0.4): an environment of this package as a taskset, an environment and a harness of verifiers.

Covered: tasks (one for each seed), the episode, rewards, statuses as metrics, limits. The environment plays the user in
verifiers' conversation, so verifiers itself creates the token ids, the masks and the graph of messages. verifiers finds
a plug-in by the name of its installed package; ``rstar2 export --env ID --to verifiers`` writes such a package. Not
covered: MCP tool servers; calls are part of the text of a turn, in a dialect of this package.

In verifiers, an ``unavailable`` episode is an error (``SandboxError``): verifiers may retry it, and never trains on it.
A ``truncated`` episode stops at one of verifiers' limits (``max_turns``, ``max_total_tokens``), so that
``trace.is_truncated`` is true.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

import gymnasium as gym

from rstar2_env.core.episode import Episode
from rstar2_env.core.errors import MissingExtraError
from rstar2_env.core.files.json_values import jsonable
from rstar2_env.wrappers.make import make_env

try:
    import httpx
    import verifiers.v1 as vf
    from verifiers.v1.dialects.chat import message_to_wire
except ImportError as error:
    raise MissingExtraError("verifiers", "The adapter 'verifiers'") from error

T = TypeVar("T")

_STOPS: Mapping[str, str] = {"turns": "max_turns", "tokens": "max_total_tokens"}
"""verifiers' name of the stop condition for some values of ``Episode.end``; all other values keep their names."""
_THREADS = 1024
"""Maximum number of concurrent ``reset`` and ``step`` calls; threads are made when needed."""


class TextData(vf.TaskData):
    """A task: the arguments of ``reset``.

    Attributes:
        seed: Seed of ``reset``.
        problem_id: Id of the problem that ``reset`` chose with this seed when the task was made.
    """

    seed: int = 0
    problem_id: str = ""


class TextTask(vf.Task[TextData]):
    """A task of an environment; the environment returns the reward."""


class TextTasksetConfig(vf.TasksetConfig):
    """Selects the environment and its problems.

    Attributes:
        env: A registered id, or any other value that ``make_env`` accepts.
        options: Options of the environment.
        wrappers: Wrappers of the environment, innermost first, as for ``make_env``.
        first_seed: Seed of the first task; the seed increases by 1 for every further task.
        tasks: Number of tasks; ``None``: unlimited.
    """

    env: str = ""
    options: dict[str, Any] = {}  # noqa: RUF012  # pydantic copies it
    wrappers: list[Any] = []  # noqa: RUF012
    first_seed: int = 0
    tasks: int | None = None

    def make(self) -> gym.Env[str, str]:
        """Make the environment."""
        return make_env(self.env, wrappers=self.wrappers, **self.options)


class TextTaskset(vf.Taskset[TextTask, TextTasksetConfig]):
    """A taskset with one task for every seed; the prompt of a task is the observation of ``reset``."""

    def __init__(self, config: TextTasksetConfig) -> None:
        super().__init__(config)
        self.INFINITE = config.tasks is None

    def load(self) -> Iterator[TextTask]:
        """Yield one task for each seed, from a reset of the environment with that seed."""
        env = self.config.make()
        try:
            for seed in itertools.islice(itertools.count(self.config.first_seed), self.config.tasks):
                text, info = env.reset(seed=seed)
                data = TextData(
                    name=f"{self.config.env}#{seed}",
                    prompt=text,
                    system_prompt=info.get("system") or None,
                    seed=seed,
                    problem_id=str(info.get("problem_id", "")),
                )
                yield TextTask(data, self.config.task)
        finally:
            env.close()


class TextEnvConfig(vf.EnvConfig):
    """Configuration of ``TextEnv``: one player (a "seat"), whose program runs without a container."""

    agent: vf.AgentConfig = vf.AgentConfig(runtime=vf.SubprocessConfig())


class TextEnv(vf.Env[TextEnvConfig]):
    """Plays the policy's turns in an environment of this package."""

    def __init__(self, config: TextEnvConfig) -> None:
        super().__init__(config)
        self._idle: list[gym.Env[str, str]] = []
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="rstar2-step")

    async def run(self, task: vf.Task[Any], agents: vf.Agents) -> None:
        """Play one episode, with the environment as the user.

        Raises:
            SandboxError: The environment was not available.
        """
        env = self._idle.pop() if self._idle else await self._thread(self.taskset.config.make)
        try:
            await self._play(env, task.data, task, agents)
        finally:
            self._idle.append(env)

    async def _play(self, env: gym.Env[str, str], data: Any, task: vf.Task[Any], agents: vf.Agents) -> None:
        returned = await self._thread(lambda: env.reset(seed=data.seed))
        episode = Episode(seed=data.seed).begin(*returned)
        over = False
        async with agents.agent.interaction(task) as interaction:
            segment = await interaction.turn()
            while not segment.terminated:
                turn = whole_reply(segment)
                step = await self._thread(partial(env.step, turn))
                over = episode.step(turn, step)
                if episode.failed:
                    raise vf.SandboxError(
                        f"The environment {self.taskset.config.env} was not available: {step[4].get('error', '')}"
                    )
                if over:
                    if episode.end == "time":
                        interaction.trace.record_timeout("agent")
                    interaction.trace.stop(_STOPS.get(episode.end, episode.end))
                    break
                segment = await interaction.turn(step[0])
        trace = interaction.trace
        trace.record_reward("environment_return", episode.reward)
        trace.record_metrics(_metrics(episode))
        trace.info["rstar2"] = {
            "problem_id": episode.problem_id,
            "end": episode.end,
            "answer": episode.answer,
            "correct": episode.correct,
            "steps": [{"reward": one.reward, "info": jsonable(one.info)} for one in episode.steps],
        }

    async def stop(self) -> None:
        """Close the environments."""
        while self._idle:
            await self._thread(self._idle.pop().close)

    async def _thread(self, function: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, function)


def _metrics(episode: Episode) -> dict[str, float]:
    statuses = [str(status) for status in episode.statuses]
    return {
        "correct": float(episode.correct),
        "turns": float(episode.turns),
        "tool_calls": float(episode.tool_calls),
        "tool_errors": float(sum(status.is_error for status in episode.statuses)),
        "injected_faults": float(len(episode.injected)),
        **{f"status/{status}": float(statuses.count(status)) for status in sorted(set(statuses))},
        **{f"reward/{name}": value for name, value in episode.rewards.items()},
    }


def whole_reply(segment: vf.Segment) -> str:
    """Return the model's unchanged reply; ``Segment.last_reply`` would strip the spaces around it."""
    for message in reversed(segment.messages):
        if isinstance(message, vf.AssistantMessage):
            return message.content or ""
    return ""


class TextHarness(vf.Harness[vf.HarnessConfig]):
    """Harness that, within this process, requests one turn from the model: no program, no container, no tools."""

    APPENDS_SYSTEM_PROMPT = True
    SUPPORTS_RESUME = True
    EXECUTES_CODE = False
    NEEDS_CONTAINER = False

    async def launch(
        self,
        ctx: vf.ModelContext,
        trace: vf.Trace,
        runtime: vf.Runtime,
        endpoint: str,
        secret: str,
        mcp_urls: dict[str, str],
        data: vf.TaskData,
    ) -> vf.ProgramResult:
        """Send one request to the rollout's endpoint, which records it.

        Args:
            ctx: Context with the name of the model.
            trace: Trace of the rollout.
            runtime: Not used.
            endpoint: Endpoint of the rollout.
            secret: Key of the endpoint.
            mcp_urls: Empty, since this harness supports no tools.
            data: The conversation so far.
        """
        system, prompt = self.resolve_prompt(data)
        messages: list[Any] = [{"role": "system", "content": system}] if system else []
        if isinstance(prompt, str):
            messages.append({"role": "user", "content": prompt})
        else:
            messages += [message_to_wire(message) for message in prompt or ()]
        async with httpx.AsyncClient(timeout=None) as client:
            answer = await client.post(
                f"{endpoint}/chat/completions",
                headers={"Authorization": f"Bearer {secret}"},
                json={"model": ctx.model, "messages": messages},
            )
        failed = answer.status_code >= 400
        return vf.ProgramResult(exit_code=int(failed), stdout="", stderr=answer.text if failed else "")
