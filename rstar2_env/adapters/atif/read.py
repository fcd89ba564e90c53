"""``read_trajectory``: a trajectory of ATIF, from any producer, as an episode with its tokens.

Trajectories of other tools contain calls, results and reasoning as data; this module writes them as text in the dialect
``rstar2``. Steps that were copied from another trajectory, or that no model wrote, are context, and are never
trained on. Not covered: images and audio, which are refused; trajectories of subagents, which are only counted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rstar2_env.adapters.atif.fields import (
    AGENT_ONLY,
    OWN_PLACE,
    SOURCES,
    field,
    finite,
    objects,
    optional,
    own,
    text_of,
    token_id,
)
from rstar2_env.core import record_fields as read
from rstar2_env.core.episode import Episode
from rstar2_env.core.errors import RecordFormatError
from rstar2_env.core.run_folder.entries import EpisodeEntry, TokensEntry, entry_of
from rstar2_env.core.status import ToolStatus
from rstar2_env.core.turn import Turn
from rstar2_env.dialects.rstar2 import Rstar2Dialect
from rstar2_env.tools.base import ToolResult

_VERSION = re.compile(r"ATIF-v1\.\d+")
_DIALECT = Rstar2Dialect(boxed_anywhere=True)


@dataclass(frozen=True, slots=True)
class Imported:
    """An episode that was read from a trajectory.

    Attributes:
        entry: The episode. ``entry.more`` has additional keys, such as ``gold``.
        tokens: The rows of tokens of the episode; empty if the trajectory has no tokens.
        trained: For each message of the policy, whether it may be trained on.
        graded: Whether the trajectory states a reward or a grade.
    """

    entry: EpisodeEntry
    tokens: tuple[TokensEntry, ...]
    trained: tuple[bool, ...]
    graded: bool


def read_trajectory(trajectory: Any) -> Imported:
    """Convert a trajectory, written by this package or by another tool, to an episode.

    Args:
        trajectory: A trajectory of ATIF 1.x, as parsed JSON.

    Raises:
        RecordFormatError: A field is missing or wrong; the message names it.
    """
    if not isinstance(trajectory, Mapping):
        raise RecordFormatError(
            f"expected a trajectory of ATIF, which is a JSON object, got {str(trajectory)[:100]!r}."
        )
    if "schema_version" not in trajectory and "responses_create_params" in trajectory:
        raise RecordFormatError(
            "expected a trajectory of ATIF with the field schema_version, got a rollout of NeMo Gym with the field "
            "responses_create_params: use --from nemo-gym."
        )
    version = field(trajectory, "schema_version", "", read.text)
    if not _VERSION.fullmatch(version):
        raise RecordFormatError(
            f"schema_version: only version 1 of ATIF can be read (such as ATIF-v1.8), got {version[:100]!r}."
        )
    field(trajectory, "agent", "", read.mapping)
    field(trajectory, "steps", "", read.list_of(read.mapping))
    steps = objects(trajectory, "steps", "")
    for number, (place, step) in enumerate(steps, 1):
        _check_step(step, place, number)
    kept = own(trajectory, "")
    record = {**plain_record(trajectory), **(optional(kept, "episode", OWN_PLACE, read.mapping) or {})}
    if "group" in record:  # an episode of training, which has no ``index``
        del record["index"]
    plain = plain_row(trajectory)
    rows = [_row(row, place, plain or {}) for place, row in objects(kept, "rows", OWN_PLACE)]
    if "rows" not in kept and plain is not None:
        rows = [_row({}, "steps", plain)]
    try:
        entry = entry_of(record, optional(record, "step", f"{OWN_PLACE}.episode", read.number) or 0)
    except RecordFormatError as error:
        raise RecordFormatError(f"{OWN_PLACE}.episode: {error}") from error
    agents = [step for _, step in steps if step["source"] == "agent"]
    policy = sum(message.role == "assistant" for message in entry.episode.messages)
    if policy != len(agents):
        raise RecordFormatError(
            f"{OWN_PLACE}.episode.messages: expected one message of the policy for each of the "
            f"{len(agents)} steps of the agent, got {policy}."
        )
    graded = "reward" in kept.get("episode", {}) or _reward(trajectory) is not None
    return Imported(entry, tuple(rows), tuple(not _is_context(step) for step in agents), graded)


def plain_record(trajectory: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON record of an episode, from a trajectory's standard fields, which must be valid."""
    messages: list[dict[str, str]] = []
    turns: list[dict[str, Any]] = []
    row = plain_row(trajectory)
    at = 0
    for place, step in objects(trajectory, "steps", ""):
        if step["source"] != "agent":
            messages.append({"role": step["source"], "content": text_of(step, "message", place)})
            messages += _results(step, place) if step.get("observation") is not None else []
            continue
        messages.append({"role": "assistant", "content": _written(step, place)})
        metrics = optional(step, "metrics", place, read.mapping) or {}
        ids = metrics.get("completion_token_ids") or []
        start = len(metrics["prompt_token_ids"]) - len(row["prompt_ids"]) if row is not None and ids else at
        at = start + (len(ids) or optional(metrics, "completion_tokens", f"{place}.metrics", read.number) or 0)
        statuses = [status for _, call in objects(step, "tool_calls", place) if (status := _status(call)) is not None]
        turns.append({**Turn(start, at).record(""), "statuses": statuses})
        messages += _results(step, place)
    reward = _reward(trajectory)
    if turns:
        turns[-1]["reward"] = reward or 0.0
    written = [message["content"] for message in messages if message["role"] == "assistant"]
    record = Episode(
        problem_id=str(trajectory.get("trajectory_id") or trajectory.get("session_id") or ""),
        reward=reward or 0.0,
        correct=(reward or 0.0) > 0,
        turns=len(written),
        answer=_DIALECT.answer(written),
        answer_tags=_DIALECT.answer_tags(written),
        end="terminated",
        recorded_tokens=sum(turn["stop"] - turn["start"] for turn in turns),
    ).record()
    record |= {"messages": messages, "steps": turns, "statuses": [one for turn in turns for one in turn["statuses"]]}
    extra = optional(trajectory, "extra", "", read.mapping) or {}
    if isinstance(extra.get("gold"), str):
        record["gold"] = extra["gold"]
    if subagents := optional(trajectory, "subagent_trajectories", "", read.list_of(read.mapping)):
        record["subagent_trajectories"] = len(subagents)
    return {"index": record.pop("group"), **record}


def plain_row(trajectory: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return all tokens of a checked trajectory as one row, from its steps' metrics; ``None`` if that is impossible.

    It is possible if each reply of a model has tokens, and each reply's prompt begins with all earlier tokens.
    """
    row: dict[str, Any] | None = None
    for place, step in objects(trajectory, "steps", ""):
        if step["source"] != "agent" or step.get("llm_call_count") == 0:
            continue
        metrics = optional(step, "metrics", place, read.mapping) or {}
        prompt, written = metrics.get("prompt_token_ids"), metrics.get("completion_token_ids")
        if prompt is None or written is None:
            return None
        if row is None:
            row = {"prompt_ids": list(prompt), "completion_ids": [], "mask": [], "logprobs": []}
        before = row["prompt_ids"] + row["completion_ids"]
        if prompt[: len(before)] != before:
            return None
        shown = prompt[len(before) :]
        row["completion_ids"] += [*shown, *written]
        row["mask"] += [0] * len(shown) + [int(not _is_context(step))] * len(written)
        row["logprobs"] += [0.0] * len(shown) + [float(one) for one in metrics.get("logprobs") or [0.0] * len(written)]
    return row


def _row(kept: Mapping[str, Any], place: str, row: Mapping[str, Any]) -> TokensEntry:
    whole = {"step": 0, "group": 0, "member": 0, "advantages": [], "ratios": [], **row, **kept}
    try:
        return TokensEntry.from_record(whole)
    except RecordFormatError as error:
        raise RecordFormatError(f"{place}: {error}") from error


def _is_context(step: Mapping[str, Any]) -> bool:
    return bool(step.get("is_copied_context")) or step.get("llm_call_count") == 0


def _reward(trajectory: Mapping[str, Any]) -> float | None:
    """Return the reward from a trajectory's ``extra`` objects (the format has no field for it), or ``None``."""
    final = optional(trajectory, "final_metrics", "", read.mapping) or {}
    for place, holder in (("final_metrics.extra", final), ("extra", trajectory)):
        extra = optional(holder, "extra", place.rpartition(".")[0], read.mapping) or {}
        if extra.get("reward") is not None:
            return field(extra, "reward", place, finite)
    return None


def _status(call: Mapping[str, Any]) -> str | None:
    """Return the status of a call that the policy made; ``None`` if it is unknown, or if a fault was injected."""
    kept = own(call, "")
    return None if kept.get("injected") or kept.get("status") not in {*ToolStatus} else str(kept["status"])


def _written(step: Mapping[str, Any], place: str) -> str:
    """Return the text of the policy's turn, with its calls."""
    text = text_of(step, "message", place)
    if own(step, place).get("whole_text"):
        return text
    reason = optional(step, "reasoning_content", place, read.text) or ""
    parts = [f"<reason>\n{reason}\n</reason>"] if reason else []
    parts += [text] if text else []
    for at, call in objects(step, "tool_calls", place):
        try:
            parts.append(_DIALECT.format_call(call["function_name"], call["arguments"]))
        except (TypeError, ValueError) as error:
            raise RecordFormatError(f"{at}.arguments: {error}.") from error
    return "\n".join(parts)


def _results(step: Mapping[str, Any], place: str) -> list[dict[str, str]]:
    """Return the messages in which the policy reads the results of a step's calls."""
    observation = optional(step, "observation", place, read.mapping)
    if observation is None:
        return []
    found: list[dict[str, str]] = []
    foreign: list[str] = []
    for at, result in objects(observation, "results", f"{place}.observation"):
        text, kept = text_of(result, "content", at), own(result, at)
        if "role" in kept:
            found.append({"role": field(kept, "role", f"{at}.{OWN_PLACE}", read.text), "content": text})
        elif found:
            found[-1]["content"] += f"\n{text}"
        else:
            foreign.append(text)
    if foreign:
        shown = [ToolResult("", ToolStatus.OK, text) for text in foreign]
        found.insert(0, {"role": "user", "content": _DIALECT.results(shown)})
    return found


def _check_step(step: Mapping[str, Any], place: str, number: int) -> None:
    if (step_id := field(step, "step_id", place, read.number)) != number:
        raise RecordFormatError(
            f"{place}.step_id: expected {number}, got {step_id}: the steps must be numbered in order from 1."
        )
    if (source := field(step, "source", place, read.text)) not in SOURCES:
        raise RecordFormatError(f"{place}.source: expected one of {', '.join(SOURCES)}, got {source[:100]!r}.")
    field(step, "message", place, read.instance_of((str, list), "a text or a list of parts"))
    optional(step, "is_copied_context", place, read.truth)
    count = optional(step, "llm_call_count", place, read.number)
    given = [name for name in AGENT_ONLY if step.get(name) is not None]
    if source != "agent" and given:
        raise RecordFormatError(
            f"{place}.{given[0]}: only steps of the source 'agent' may have this field, and this step has the "
            f"source {source!r}."
        )
    if count == 0 and (unfit := [name for name in given if name in ("metrics", "reasoning_content")]):
        raise RecordFormatError(
            f"{place}.{unfit[0]}: this step reports that no model was called (llm_call_count 0), so this "
            "field must be missing."
        )
    calls = objects(step, "tool_calls", place)
    names = [field(call, "tool_call_id", at, read.text) for at, call in calls]
    for at, call in calls:
        field(call, "function_name", at, read.text)
        field(call, "arguments", at, read.mapping)
    observation = optional(step, "observation", place, read.mapping) or {}
    for at, result in objects(observation, "results", f"{place}.observation"):
        call_id = optional(result, "source_call_id", at, read.text) or ""
        if call_id and call_id not in names and step.get("tool_calls") is not None:
            raise RecordFormatError(
                f"{at}.source_call_id: {call_id[:100]!r} is not the id of any tool call of this step."
            )
    metrics, at = optional(step, "metrics", place, read.mapping) or {}, f"{place}.metrics"
    optional(metrics, "prompt_token_ids", at, read.list_of(token_id))
    ids = optional(metrics, "completion_token_ids", at, read.list_of(token_id)) or []
    logprobs = optional(metrics, "logprobs", at, read.list_of(finite)) or []
    if ids and logprobs and len(ids) != len(logprobs):
        raise RecordFormatError(
            f"{at}.logprobs: expected {len(ids)} numbers, one for each of completion_token_ids, got {len(logprobs)}."
        )
