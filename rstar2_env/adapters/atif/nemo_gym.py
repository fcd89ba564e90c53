"""``rollout_as_trajectory``: a rollout of NeMo Gym as a trajectory of ATIF (``nemo-gym`` 0.7).

A rollout is a row with ``responses_create_params``, ``response`` and ``reward``; input and output are items of OpenAI's
Responses API. Covered: messages, reasoning, function calls and their outputs, token ids and log-probabilities, the
reward, the expected answer, how the episode ended, and outputs that are lists of transitions (as Aviary's agent returns
them). The policy's own items in the input are context, which is never trained on. Not covered: images, audio and files,
which are refused; definitions of tools, settings of the model, and the metrics of a verifier, which are left out.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

from rstar2_env.adapters.atif.fields import OWN, field, finite, objects, optional
from rstar2_env.core import record_fields as read
from rstar2_env.core.errors import RecordFormatError
from rstar2_env.dialects.rstar2 import Rstar2Dialect

_SOURCES = {"system": "system", "developer": "system", "user": "user", "assistant": "agent"}
_TOKENS = {
    "prompt_token_ids": "prompt_token_ids",
    "generation_token_ids": "completion_token_ids",
    "generation_log_probs": "logprobs",
}
"""NeMo Gym's names for the token fields of a model's reply, each with ATIF's name for the same field."""
_TEXTS = ("input_text", "output_text", "text", "summary_text", "reasoning_text", "refusal")
_DIALECT = Rstar2Dialect()


def rollout_as_trajectory(row: Any) -> dict[str, Any]:
    """Convert a rollout to a trajectory, which ``read_trajectory`` reads.

    Args:
        row: A line of a file of rollouts, as parsed JSON.

    Raises:
        RecordFormatError: A field is missing or wrong; the message names it.
    """
    if not isinstance(row, Mapping):
        raise RecordFormatError(f"expected a rollout of NeMo Gym, which is a JSON object, got {str(row)[:100]!r}.")
    if "responses_create_params" not in row and "schema_version" in row:
        raise RecordFormatError(
            "expected a rollout of NeMo Gym with the field responses_create_params, got a trajectory of ATIF with "
            "the field schema_version: use --from atif."
        )
    request = field(row, "responses_create_params", "", read.mapping)
    response = field(row, "response", "", read.mapping)
    reward = field(row, "reward", "", finite)
    steps = _Steps()
    if instructions := optional(request, "instructions", "responses_create_params", read.text):
        steps.add_message("system", instructions, copied=False)
    if isinstance(request.get("input"), str):
        steps.add_message("user", request["input"], copied=False)
    else:
        for place, item in objects(request, "input", "responses_create_params"):
            steps.add(item, place, copied=True)
    for place, item in _output(response):
        steps.add(item, place, copied=False)
    extra: dict[str, Any] = {"reward": reward}
    if isinstance(row.get("expected_answer"), (str, int, float)):
        extra["gold"] = str(row["expected_answer"])
    if end := _end(row, response):
        extra[OWN] = {"episode": end}
    return {
        "schema_version": "ATIF-v1.8",
        "trajectory_id": _name(row),
        "agent": {"name": "nemo-gym", "version": "unknown"},
        "steps": [{"step_id": number, "message": "", **step} for number, step in enumerate(steps.made, 1)],
        "extra": extra,
    }


class _Steps:
    """The steps of a trajectory; the items of one reply of the model become one step."""

    def __init__(self) -> None:
        self.made: list[dict[str, Any]] = []

    def add(self, item: Mapping[str, Any], place: str, *, copied: bool) -> None:
        """Add an item; with ``copied``, mark it as part of the rollout's input.

        Raises:
            RecordFormatError: The item has an unknown type, or a field is wrong.
        """
        kind = optional(item, "type", place, read.text) or "message"
        match kind:
            case "message":
                role = field(item, "role", place, read.text)
                if role not in _SOURCES:
                    raise RecordFormatError(f"{place}.role: expected one of {', '.join(_SOURCES)}, got {role[:100]!r}.")
                self.add_message(_SOURCES[role], _text(item, "content", place), copied=copied)
            case "reasoning":
                parts = [_text(item, name, place) for name in ("summary", "content")]
                self._reply(copied, lambda step: not {"message", "tool_calls", "observation"} & set(step))
                thought = [self.made[-1].get("reasoning_content", ""), *parts]
                self.made[-1]["reasoning_content"] = "\n".join(filter(None, thought))
            case "function_call":
                self._reply(copied, lambda step: "observation" not in step)
                self._add_call(item, place)
            case "function_call_output":
                self._add_output(item, place)
            case _:
                raise RecordFormatError(
                    f"{place}.type: expected message, reasoning, function_call or function_call_output, got "
                    f"{kind[:100]!r}. Leave the rollout out."
                )
        self._add_tokens(item, place)

    def add_message(self, source: str, text: str, *, copied: bool) -> None:
        """Add a message as a new step.

        A message of the policy is added to the previous step instead, if that step has only the policy's reasoning.
        """
        if source == "agent":
            self._reply(copied, lambda step: not {"message", "tool_calls", "observation"} & set(step))
            self.made[-1]["message"] = text
        else:
            self.made.append({"source": source, "message": text})

    def _reply(self, copied: bool, continues: Callable[[dict[str, Any]], bool]) -> None:
        last = self.made[-1] if self.made else None
        if (
            last is None
            or last["source"] != "agent"
            or last.get("is_copied_context", False) != copied
            or not continues(last)
        ):
            self.made.append({"source": "agent", **({"is_copied_context": True} if copied else {})})

    def _add_call(self, item: Mapping[str, Any], place: str) -> None:
        step, written = self.made[-1], field(item, "arguments", place, read.text)
        name = field(item, "name", place, read.text)
        call_id = field(item, "call_id", place, read.text)
        try:
            arguments = json.loads(written or "{}")
        except ValueError:
            arguments = None
        if isinstance(arguments, Mapping):
            call = {"tool_call_id": call_id, "function_name": name, "arguments": arguments}
            step.setdefault("tool_calls", []).append(call)
        else:  # ATIF has no field for arguments that do not parse: the call stays as text
            broken = _DIALECT.format_call(name, {}).replace("{}", written)
            step["message"] = "\n".join(filter(None, [step.get("message", ""), broken]))

    def _add_output(self, item: Mapping[str, Any], place: str) -> None:
        text, call_id = _text(item, "output", place), field(item, "call_id", place, read.text)
        if not self.made or self.made[-1]["source"] != "agent":
            raise RecordFormatError(
                f"{place}.call_id: the result of the call {call_id[:100]!r} must follow a step with a function_call, "
                "but no such step precedes the result."
            )
        step = self.made[-1]
        known = {call["tool_call_id"] for call in step.get("tool_calls", ())}
        result = {"content": text, **({"source_call_id": call_id} if call_id in known else {})}
        step.setdefault("observation", {"results": []})["results"].append(result)

    def _add_tokens(self, item: Mapping[str, Any], place: str) -> None:
        """Copy the tokens of a reply, which NeMo Gym stores in the reply's last item, to the current step."""
        found = {theirs: optional(item, ours, place, read.list_of(finite)) for ours, theirs in _TOKENS.items()}
        if found["completion_token_ids"]:
            self.made[-1]["metrics"] = {name: item[ours] for ours, name in _TOKENS.items() if found[name] is not None}


def _output(response: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Return the items of a response, each with its path.

    If the output is a list of transitions, return the last transition's items: each transition is the whole
    conversation up to one turn.

    Raises:
        RecordFormatError: An item is not an object, or a transition does not continue the one before it.
    """
    found = response.get("output")
    if not isinstance(found, list) or not found or not isinstance(found[0], list):
        return objects(response, "output", "response")
    transitions = field(response, "output", "response", read.list_of(read.instance_of(list, "a list of items")))
    for number, (before, after) in enumerate(pairwise(transitions), 1):
        if after[: len(before)] != before:
            raise RecordFormatError(
                f"response.output[{number}]: this transition must begin with all items of the previous transition, but "
                "the history was rewritten. Leave the rollout out."
            )
    last = f"response.output[{len(transitions) - 1}]"
    return objects({last: transitions[-1]}, last, "")


def _end(row: Mapping[str, Any], response: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that describe how an episode ended: ``end``, and ``error`` if the episode is excluded.

    The result is {} in the normal case, in which the environment ended the episode.
    """
    error = optional(response, "error", "response", read.mapping)
    masked = optional(row, "mask_sample", "", read.truth)
    if masked is None:  # older servers have the field in ``instance_config``
        masked = (optional(row, "instance_config", "", read.mapping) or {}).get("mask_sample")
    if error or masked:
        why = optional(row, "failure_reason", "", read.text) or str((error or {}).get("message") or "")
        return {"end": "unavailable", "error": why or "the field mask_sample excludes the rollout"}
    if reason := (optional(response, "incomplete_details", "response", read.mapping) or {}).get("reason"):
        return {"end": "refused" if reason == "content_filter" else "tokens"}
    truncated = optional(row, "truncated", "", read.truth) and not optional(row, "terminated", "", read.truth)
    return {"end": "truncated"} if truncated else {}


def _text(item: Mapping[str, Any], name: str, place: str) -> str:
    """Read a text, or join the texts of a list of parts; "" if the field is missing."""
    if not isinstance(item.get(name), list):
        return optional(item, name, place, read.text) or ""
    texts = []
    for at, part in objects(item, name, place):
        kind = str(part.get("type"))
        if kind not in _TEXTS:
            raise RecordFormatError(
                f"{at}.type: expected one of {', '.join(_TEXTS)}, got {kind[:100]!r}: episodes hold text only. "
                "Leave the rollout out."
            )
        texts.append(field(part, "refusal" if kind == "refusal" else "text", at, read.text))
    return "".join(texts)


def _name(row: Mapping[str, Any]) -> str:
    """Return the id of a rollout's task, or else the task's number in the data set; empty if the row has neither."""
    found = (row.get(name) for name in ("id", "uuid", "task_id", "_ng_task_index"))
    return next((str(value) for value in found if value is not None), "")
