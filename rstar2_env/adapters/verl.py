"""Tools (verl 0.9) and interactions (verl 0.7) with which verl's agent loop plays environments of this package.

Covered: every tool of an environment as a ``BaseTool`` of verl, with the environment's own middleware, budgets and
statuses behind it; a whole environment as a ``BaseInteraction``; the rows of verl's data set; a reward function that
grades the final turn. Not covered: playing environments of verl, since verl has none: its trainer calls tools and
reward functions.

With tools, verl parses the calls itself: a call that it cannot parse never reaches the environment, and has no status.
Name the class in verl's configuration: ``class_name: rstar2_env.adapters.verl.EnvTool``, or ``...EnvInteraction``.
"""

from __future__ import annotations

import asyncio
import re
import weakref
from collections.abc import Mapping
from typing import Any, ClassVar
from uuid import uuid4

import gymnasium as gym

from rstar2_env.adapters.base.served import OVER, ServedEnv, start_of, starts, tool_schemas
from rstar2_env.core.errors import ConfigurationError, MissingExtraError
from rstar2_env.core.files.json_values import jsonable
from rstar2_env.wrappers.make import make_env

try:
    from verl.tools.base_tool import BaseTool
    from verl.tools.schemas import OpenAIFunctionToolSchema, ToolResponse
except ImportError as error:
    raise MissingExtraError("verl", "The adapter 'verl'") from error
try:
    from verl.interactions.base import BaseInteraction
except ImportError:
    BaseInteraction = object  # verl 0.8 and later have none

_LAST_TURN = re.compile(r"(?:</tool_response>|<\|im_start\|>assistant|<\|assistant\|>)")
"""Pattern of the text directly before a turn of the policy in a whole response."""


class Trajectory(ServedEnv):
    """An environment during one trajectory of verl.

    Args:
        config: Dict with the key ``env``, and optionally ``options`` and ``wrappers``, as for ``make_env``.
        start: Dict with the key ``seed`` or ``problem_id``, which selects the problem.
    """

    def __init__(self, config: Mapping[str, Any], start: Mapping[str, Any]) -> None:
        chosen = start_of(start, "verl")
        super().__init__(_made(config), "verl")
        self.reset(*chosen)

    def call(self, name: str, arguments: Mapping[str, Any]) -> tuple[str, float, dict[str, Any]]:
        """Play one call as a turn; return its result (without the dialect's tags), the reward and ``info``."""
        if self.over:
            return OVER, 0.0, {"end": self.episode.end}
        text, reward, _, _, info = self.step(self.env.get_wrapper_attr("dialect").format_call(name, arguments))
        return self.text_of_calls(text), float(reward), jsonable(info)

    def record(self) -> dict[str, Any]:
        """Return the ``statuses``, ``turns`` and ``end`` so far, and ``injected``: the statuses of injected faults."""
        return {
            "statuses": [str(status) for status in self.episode.statuses],
            "injected": [str(status) for status in self.episode.injected],
            "turns": self.episode.turns,
            "end": self.episode.end,
        }


class EnvTool(BaseTool):
    """A tool of an environment. All tools of a trajectory use one environment.

    verl makes and releases an instance around every call, so the environment belongs to the trajectory's
    ``agent_data`` and is closed with it. The statuses of the calls are in ``agent_data.extra_fields["rstar2"]``.

    Args:
        config: Dict with the keys ``env``, ``tool`` (if the environment has several), ``options``, ``wrappers``.
        tool_schema: Schema of the tool; ``None`` uses the environment's own schema.

    Raises:
        ConfigurationError: The environment has no such tool.
    """

    _trajectories: ClassVar[weakref.WeakKeyDictionary[Any, Trajectory]] = weakref.WeakKeyDictionary()

    def __init__(self, config: dict[str, Any], tool_schema: OpenAIFunctionToolSchema | None = None) -> None:
        self._own = _schema(config) if tool_schema is None else tool_schema
        self._starts: dict[str, dict[str, Any]] = {}
        super().__init__(config, self._own)

    def get_openai_tool_schema(self) -> OpenAIFunctionToolSchema:
        """Return the tool's schema."""
        return self._own

    async def create(self, instance_id: str | None = None, **kwargs: Any) -> tuple[str, ToolResponse]:
        """Store the arguments for the environment's ``reset``.

        Args:
            instance_id: Name of the instance.
            **kwargs: ``create_kwargs``, with ``seed`` or ``problem_id``.
        """
        instance_id = instance_id or str(uuid4())
        self._starts[instance_id] = dict(kwargs.get("create_kwargs") or kwargs)
        return instance_id, ToolResponse()

    async def execute(
        self, instance_id: str, parameters: dict[str, Any], **kwargs: Any
    ) -> tuple[ToolResponse, float, dict[str, Any]]:
        """Play a turn that consists of one call of this tool.

        Args:
            instance_id: As ``create`` returned it.
            parameters: The arguments of the call.
            **kwargs: ``agent_data``: verl's object for the trajectory.

        Returns:
            The result, the turn's reward, and a dict with ``statuses`` and ``end`` (empty if the episode continues).
        """
        owner = kwargs["agent_data"]
        if owner not in self._trajectories:
            made = await asyncio.to_thread(Trajectory, self.config, self._starts[instance_id])
            self._trajectories[owner] = made
            weakref.finalize(owner, made.env.close)
        trajectory = self._trajectories[owner]
        text, reward, info = await asyncio.to_thread(trajectory.call, self.name, parameters)
        owner.extra_fields["rstar2"] = trajectory.record()
        statuses = [call["status"] for call in info.get("tool_calls", ())]
        return ToolResponse(text=text), reward, {"statuses": statuses, "end": info.get("end", "")}

    async def release(self, instance_id: str, **kwargs: Any) -> None:
        """Forget the instance; the environment stays with its trajectory."""
        self._starts.pop(instance_id, None)


class EnvInteraction(BaseInteraction):
    """An environment that plays the user in a conversation of verl (verl up to 0.7).

    Args:
        config: Dict with the keys ``env``, ``options``, ``wrappers``.

    Raises:
        ConfigurationError: The installed verl has no interactions (0.8 or newer).
    """

    def __init__(self, config: dict[str, Any]) -> None:
        if BaseInteraction is object:
            raise ConfigurationError(
                "This version of verl does not have interactions, which version 0.8 removed: use EnvTool."
            )
        super().__init__(config)
        self._running: dict[str, Trajectory] = {}

    async def start_interaction(self, instance_id: str | None = None, **kwargs: Any) -> str:
        """Start the row's episode.

        Args:
            instance_id: Name of the trajectory.
            **kwargs: ``seed`` or ``problem_id``: the row's ``interaction_kwargs``.
        """
        instance_id = instance_id or str(uuid4())
        self._running[instance_id] = await asyncio.to_thread(Trajectory, self.config, kwargs)
        return instance_id

    async def generate_response(
        self, instance_id: str, messages: list[dict[str, Any]], **kwargs: Any
    ) -> tuple[bool, str, float, dict[str, Any]]:
        """Play the policy's last turn.

        Args:
            instance_id: Name of the trajectory.
            messages: The conversation; the last message of the assistant is the turn.
            **kwargs: The row's ``interaction_kwargs``, which are not used here.

        Returns:
            Whether the episode is over, the observation, the turn's reward, the info.
        """
        turn = next((str(one.get("content") or "") for one in reversed(messages) if one["role"] == "assistant"), "")
        trajectory = self._running[instance_id]
        text, reward, _, _, info = await asyncio.to_thread(trajectory.step, turn)
        return trajectory.over, text, float(reward), jsonable(info)

    async def calculate_score(self, instance_id: str = "", **kwargs: Any) -> float:
        """Return the episode's return so far."""
        return self._running[instance_id].episode.reward if instance_id in self._running else 0.0

    async def finalize_interaction(self, instance_id: str = "", **kwargs: Any) -> None:
        """Close the trajectory's environment."""
        if (trajectory := self._running.pop(instance_id, None)) is not None:
            await asyncio.to_thread(trajectory.env.close)


def rows(env: str, count: int, *, seed: int = 0, interaction: str = "", **options: Any) -> list[dict[str, Any]]:
    """Return rows of a verl data set, for ``datasets.Dataset.from_list(...).to_parquet(...)``.

    Args:
        env: The environment, as for ``make_env``.
        count: Number of rows.
        seed: Different seeds give rows with different problems.
        interaction: Name of the ``EnvInteraction`` in verl's configuration; without one the rows are for ``EnvTool``.
        **options: Options of ``make_env``.
    """
    found = []
    for text, info, start in starts(env, count, seed, options):
        system = [{"role": "system", "content": info["system"]}] if interaction and info.get("system") else []
        extra: dict[str, Any] = {"index": start["seed"], "env": env, **start}
        if interaction:
            extra["interaction_kwargs"] = {"name": interaction, **start}
        else:
            names = [tool["function"]["name"] for tool in info["tools"]]
            extra |= {"need_tools_kwargs": True, "tools_kwargs": {name: {"create_kwargs": start} for name in names}}
        found.append(
            {
                "data_source": env,
                "agent_name": "tool_agent",
                "prompt": [*system, {"role": "user", "content": text}],
                "reward_model": {"style": "rule", "ground_truth": ""},
                "extra_info": extra,
            }
        )
    return found


def compute_score(
    data_source: str, solution_str: str, ground_truth: str, extra_info: Mapping[str, Any] | None = None, **_: Any
) -> float:
    """Reward function for verl: the environment grades the policy's final turn.

    verl passes the whole response as one text, tool results included, so only the text after the last result is
    graded: the output of a tool cannot earn a reward. This requires a chat template that closes results with
    ``</tool_response>`` (Qwen's, Hermes'), or an ``EnvInteraction``, with which the roles are separate messages.

    Args:
        data_source: The environment, as ``rows`` writes it.
        solution_str: The whole response.
        ground_truth: Not used: the environment has the gold answer.
        extra_info: The row's ``extra_info``, with ``seed`` and ``problem_id``.
        **_: Further arguments of verl, ignored.
    """
    trajectory = Trajectory({"env": data_source}, extra_info or {})
    try:
        return float(trajectory.step(_LAST_TURN.split(solution_str)[-1])[1])
    finally:
        trajectory.env.close()


def _made(config: Mapping[str, Any]) -> gym.Env[str, str]:
    return make_env(config["env"], wrappers=config.get("wrappers", ()), **config.get("options", {}))


def _schema(config: Mapping[str, Any]) -> OpenAIFunctionToolSchema:
    schemas = {schema["function"]["name"]: schema for schema in tool_schemas(_made(config)) or ()}
    name = config.get("tool") or next(iter(schemas), "")
    if name not in schemas:
        raise ConfigurationError(
            f"The option `tool` names {name!r}, but {config['env']} has only the tools {', '.join(schemas) or 'none'}."
        )
    return OpenAIFunctionToolSchema.model_validate(schemas[name])
