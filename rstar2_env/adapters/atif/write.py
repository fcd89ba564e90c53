"""``trajectory_of``: an episode of a run as a trajectory of ATIF 1.8.

The format has fields for messages, calls, results, token ids and log-probabilities. All other data of the episode is in
``extra``, under the key ``rstar2_env``, so that ``read_trajectory`` returns the same episode. A message of the policy
contains its whole original text, including calls; ``tool_calls`` repeats the calls as data.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from rstar2_env.adapters.atif.fields import OWN
from rstar2_env.adapters.atif.read import plain_record, plain_row
from rstar2_env.core.episode import Episode
from rstar2_env.core.files.json_values import jsonable
from rstar2_env.core.run_folder.entries import EpisodeEntry, TokensEntry, training_record
from rstar2_env.core.turn import Turn
from rstar2_env.core.version import __version__
from rstar2_env.dialects.fenced import FencedDialect
from rstar2_env.dialects.rstar2 import Rstar2Dialect

_DIALECTS = (Rstar2Dialect(), FencedDialect())
_BETWEEN = "</tool_response>\n<tool_response>"


def trajectory_of(
    entry: EpisodeEntry, key: str, *, tokens: Sequence[TokensEntry] = (), model: str | None = None
) -> dict[str, Any]:
    """Return the trajectory of an episode.

    Args:
        entry: The episode.
        key: Key of the episode in the run; it becomes ``trajectory_id``.
        tokens: The token rows of the episode, if the run saved them.
        model: Name of the model.
    """
    episode = entry.episode
    row = tokens[0] if len(tokens) == 1 else None
    trajectory: dict[str, Any] = {
        "schema_version": "ATIF-v1.8",
        "trajectory_id": key,
        "agent": {"name": "rstar2-env", "version": __version__, **({"model_name": model} if model else {})},
        "steps": _steps(episode, row),
        "final_metrics": {
            "total_completion_tokens": episode.policy_tokens,
            "total_steps": 0,
            "extra": {"reward": jsonable(episode.reward)},
        },
    }
    trajectory["final_metrics"]["total_steps"] = len(trajectory["steps"])
    found = plain_record(trajectory)
    kept: dict[str, Any] = {
        "format": 1,
        "episode": {
            name: value
            for name, value in line_of(entry).items()
            if name in ("reward", "correct") or name not in found or found[name] != value
        },
    }
    if tokens:
        plain = plain_row(trajectory) or {}
        kept["rows"] = [
            {name: value for name, value in one.record().items() if name not in plain or plain[name] != value}
            for one in tokens
        ]
    return {**trajectory, "extra": {OWN: kept}}


def line_of(entry: EpisodeEntry) -> dict[str, Any]:
    """Return the JSON record of an episode, without tokens and without the options of its run."""
    more = {name: value for name, value in entry.more.items() if name not in ("run", "tokens")}
    if entry.decision is not None:
        record = training_record(entry.episode, entry.step, entry.member, entry.decision)
    else:
        record = {**entry.episode.record(), "step": entry.step, "member": entry.member}
        record = {"index": record.pop("group"), **record}
    line: dict[str, Any] = jsonable({**record, **more})
    return line


def _steps(episode: Episode, row: TokensEntry | None) -> list[dict[str, Any]]:
    steps: list[dict[str, Any]] = []
    turns = iter(episode.steps)
    for message in episode.messages:
        if message.role == "assistant":
            step = _agent_step(message.content, next(turns, None), episode, row, len(steps))
        elif steps and steps[-1]["source"] == "agent":
            results = steps[-1].setdefault("observation", {"results": []})["results"]
            results += _results(message.role, message.content, steps[-1] if not results else {})
            continue
        else:
            step = {
                "source": message.role if message.role in ("system", "user") else "user",
                "message": message.content,
            }
        steps.append({"step_id": len(steps) + 1, **step})
    return steps


def _agent_step(text: str, turn: Turn | None, episode: Episode, row: TokensEntry | None, at: int) -> dict[str, Any]:
    step: dict[str, Any] = {"source": "agent", "message": text, "extra": {OWN: {"whole_text": True}}}
    told = turn.info.get("tool_calls") if turn is not None else None
    told = told if isinstance(told, list) else []
    read = [dialect.calls(text) for dialect in _DIALECTS]
    if calls := next((calls for calls in read if len(calls) == len(told)), read[0]):
        told = told if len(told) == len(calls) else [{}] * len(calls)
        step["tool_calls"] = [
            {
                "tool_call_id": f"call-{at + 1}-{number}",
                "function_name": call.name,
                "arguments": jsonable(call.arguments),
                **_call_extra(one, call.problem),
            }
            for number, (call, one) in enumerate(zip(calls, told, strict=True), 1)
        ]
    if turn is None:
        return step
    if episode.parent is not None and turn.tokens and turn.stop <= episode.parent[1]:
        step["is_copied_context"] = True
    if turn.tokens:
        step["metrics"] = {"completion_tokens": turn.tokens}
    if row is not None and turn.tokens and turn.stop <= len(row.completion_ids):
        prompt = [*(row.shown_ids or row.prompt_ids), *row.completion_ids[: turn.start]]
        logprobs = row.logprobs[turn.start : turn.stop]
        step["metrics"] |= {
            "prompt_tokens": len(prompt),
            "prompt_token_ids": prompt,
            "completion_token_ids": row.completion_ids[turn.start : turn.stop],
        }
        if len(logprobs) == turn.tokens and all(map(math.isfinite, logprobs)):
            step["metrics"]["logprobs"] = logprobs
    return step


def _call_extra(told: Any, problem: Any) -> dict[str, Any]:
    kept = {name: told[name] for name in ("status", "injected") if isinstance(told, Mapping) and told.get(name)}
    if problem is not None:
        kept["problem"] = problem[1]
    return {"extra": {OWN: jsonable(kept)}} if kept else {}


def _results(role: str, text: str, step: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Split the message after a turn into one result per call; if that is impossible, return it as one result."""
    calls = [call["tool_call_id"] for call in step.get("tool_calls", ())]
    pieces = text.replace(_BETWEEN, "</tool_response>\0<tool_response>").split("\0") if "\0" not in text else [text]
    if len(pieces) != len(calls):
        return [{"content": text, "extra": {OWN: {"role": role}}}]
    results: list[dict[str, Any]] = [
        {"source_call_id": call, "content": piece} for call, piece in zip(calls, pieces, strict=True)
    ]
    results[0]["extra"] = {OWN: {"role": role}}
    return results
