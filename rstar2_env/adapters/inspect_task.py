"""Inspect (``inspect_ai`` 0.3): any environment of this package as a task, scored by the environment's own reward.

``inspect eval rstar2_env/play -T env=rstar2/MathTool-v0 -T episodes=100 --model ...``, or ``play(...)`` from Python.

Covered: every text environment, single-turn or with tools (in the dialect's text, or as the model's native calls). The
score is the episode's reward; the result of each turn is in the sample's transcript, the episode in its metadata. An
episode that does not measure the model (``unavailable``, or a refused, cut-off or empty reply) is unscored, not 0. Not
covered: Inspect's own tools, sandboxes and approval (calls run in the environment, under its limits); ``terminated``
and ``truncated`` (the metadata has ``end``); sampling seeds of the model, which only Inspect's ``--seed`` sets.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, Literal

from rstar2_env.adapters.base.messages import as_json
from rstar2_env.adapters.tool_session import native_call
from rstar2_env.core.episode import Episode
from rstar2_env.core.errors import MissingExtraError, UnusableReplyError
from rstar2_env.core.net.chat.reply import ChatReply, Usage
from rstar2_env.core.options.declare import checked
from rstar2_env.env.conversation import Conversation
from rstar2_env.evaluation.play.plan import EvaluationPlan, plan_of, source_of
from rstar2_env.wrappers.make import make_env

try:
    from anyio import to_thread
    from inspect_ai import Task, task
    from inspect_ai.dataset import MemoryDataset, Sample
    from inspect_ai.log import transcript
    from inspect_ai.model import ChatMessageSystem, ChatMessageTool, ChatMessageUser, ModelOutput, get_model
    from inspect_ai.scorer import Score, Target, mean, scorer, stderr
    from inspect_ai.solver import Generate, Solver, TaskState, solver
    from inspect_ai.tool import ToolInfo
except ImportError as error:
    raise MissingExtraError("inspect", "The adapter 'inspect_task'") from error

KEPT = "rstar2"
"""Key in a sample's metadata under which the record of its episode is stored."""
_FINISH = {"max_tokens": "length", "model_length": "length", "content_filter": "content_filter"}
_TURN = ("tool_calls", "answer", "correct", "end")


@task  # type: ignore[untyped-decorator, unused-ignore]  # Inspect is not there where types are checked
@checked
def play(
    env: str = "rstar2/MathTool-v0",
    problems: str | None = None,
    split: str = "test",
    episodes: int | None = None,
    seed: int = 0,
    tools: Literal["text", "native"] = "text",
    wrappers: str | None = None,
    env_options: dict[str, Any] | None = None,
) -> Any:
    """Return a task that plays the episodes that ``rstar2_env.evaluate`` would play with the same options.

    Args:
        env: A Gymnasium id, or your own code.
        problems: Problems, as for ``load_problems``; ``None`` means the environment's own.
        split: Split of the problems, if the source has splits.
        episodes: Number of episodes; ``None`` plays every problem of a finite source.
        seed: Seed of the choice of problems and of every episode.
        tools: ``"text"``: the model writes calls as text in the environment's dialect. ``"native"``: the model receives
            the environment's tools as native tools of its API.
        wrappers: Wrappers of the environment, as for ``make_env``; ``None``: no wrapper.
        env_options: Options of the environment.

    Raises:
        ConfigurationError: The options contradict each other, or ``episodes`` is missing although the source of
            problems is unlimited.
    """
    make = partial(make_env, env, wrappers=wrappers or (), **(env_options or {}))
    made = make()
    try:
        plan = plan_of(source_of(made, problems, split), episodes, seed)
        dialect = getattr(made.unwrapped, "dialect", None) or "rstar2"
        Conversation(dialect, native=tools == "native")  # rejects an unsuitable dialect now, not during an episode
    finally:
        made.close()
    samples = [
        Sample(
            id=each.index,
            input=each.problem.question if each.problem is not None else f"{env}, seed {each.seed}",
            target=each.problem.answer if each.problem is not None else "",
            metadata={"problem_id": each.problem_id, "seed": each.seed},
        )
        for each in plan
    ]
    return Task(
        dataset=MemoryDataset(samples, name=env),
        solver=episode(make, plan, dialect, tools == "native"),
        scorer=reward(),
    )


@solver  # type: ignore[untyped-decorator, unused-ignore]
def episode(make: Any, plan: EvaluationPlan, dialect: Any, native: bool) -> Solver:
    """Return a solver that plays one episode with the model.

    Args:
        make: Function that makes the environment.
        plan: The episodes of the evaluation; the id of an Inspect sample is the index of its episode, from 0.
        dialect: The environment's dialect.
        native: Whether the model receives the environment's tools as its own.
    """

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        each, talk = plan[int(state.sample_id)], Conversation(dialect, native=native)
        env = await to_thread.run_sync(make)
        try:
            options = None if each.problem is None else {"problem": each.problem}
            text, info = await to_thread.run_sync(partial(env.reset, seed=each.seed, options=options))
            played = Episode(seed=each.seed).begin(text, info)
            talk.begin(info)
            state.messages, seen, over = [], 0, False
            tools = [ToolInfo(**one["function"]) for one in talk.fields.get("tools", ())]
            while not over:
                talk.add_observation(text, str(info.get("role", "user")) if played.turns else "user")
                state.messages += [_message(one) for one in talk.messages[seen:]]
                state.metadata[KEPT] = _record(played)
                state.output = await get_model().generate(state.messages, tools=tools)
                state.messages.append(state.output.message)
                reply = _reply(state.output)
                if reply.trouble is not None:
                    played.void(*reply.trouble)
                    break
                try:
                    turn = talk.add_reply(reply)
                except UnusableReplyError as error:
                    played.void(error.end, str(error))
                    break
                seen = len(talk.messages)
                returned = await to_thread.run_sync(env.step, turn)
                over = played.step(turn, returned)
                text, info = returned[0], returned[4]
                shown = {name: info[name] for name in _TURN if name in info}
                transcript().info({"turn": played.turns, "reward": float(returned[1]), **as_json(shown)}, source=KEPT)
        finally:
            await to_thread.run_sync(env.close)
        state.metadata[KEPT] = _record(played)
        return state

    return solve


@scorer(metrics=[mean(), stderr()])  # type: ignore[untyped-decorator, unused-ignore]
def reward() -> Any:
    """Return a scorer whose score is the episode's reward; an episode that does not measure the model is unscored."""

    async def score(state: TaskState, target: Target) -> Score:
        found = state.metadata[KEPT]
        if not found["available"]:
            return Score.unscored(reason=found["end"], explanation=found["error"], metadata=found)
        return Score(value=found["reward"], answer=found["answer"], explanation=found["end"], metadata=found)

    return score


def _record(played: Episode) -> dict[str, Any]:
    names = ("reward", "end", "correct", "answer", "turns", "statuses", "injected", "answer_tags", "rewards", "error")
    whole = played.record()
    return {"available": played.available, **{name: whole[name] for name in names}}


def _message(one: dict[str, Any]) -> Any:
    if one["role"] == "tool":
        return ChatMessageTool(content=one["content"], tool_call_id=one["tool_call_id"])
    return {"system": ChatMessageSystem, "user": ChatMessageUser}[one["role"]](content=one["content"])


def _reply(output: ModelOutput) -> ChatReply:
    """Convert a model's output to a ``ChatReply``; arguments that are not valid JSON stay text."""
    message = output.message
    calls = [
        replace(native_call(number, call.function, call.parse_error or call.arguments), id=call.id)
        for number, call in enumerate(message.tool_calls or ())
    ]
    finish = _FINISH.get(output.stop_reason, output.stop_reason)
    return ChatReply(message.text, tuple(calls), finish, "", Usage())
