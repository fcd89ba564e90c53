"""Episodes as OpenEnv's ``TrainingTrace`` (``openenv`` 0.10), token for token, and back.

Covered: prompt, completion, log-probabilities and mask of every turn, as the engine made them; the reward, statuses
and weight version of a turn, in ``metadata``. A trace has no field for the end of an episode; the metadata of
the last turn contains the end. Not covered: branched episodes, in which a turn does not begin with all tokens of the
turn before it.
"""

from __future__ import annotations

from typing import Any

from rstar2_env.core.episode import Episode, Message
from rstar2_env.core.errors import ConfigurationError, MissingExtraError
from rstar2_env.core.files.json_values import jsonable
from rstar2_env.core.status import ToolStatus
from rstar2_env.core.turn import Turn

try:
    from openenv.core.harness.training import TrainingTrace, TrainingTurn
except ImportError as error:
    raise MissingExtraError("openenv", "The adapter 'openenv_trace'") from error

_END = ("seed", "problem_id", "reward", "end", "answer", "correct", "answer_tags", "rewards", "task", "source")
"""Fields of an episode that are stored in the metadata of its last turn."""


def training_trace(episode: Episode) -> TrainingTrace:
    """Convert an episode to OpenEnv's ``TrainingTrace``.

    Args:
        episode: An episode with token ids, as the rollout returns it.

    Raises:
        ConfigurationError: The episode has no tokens, or it does not count (``unavailable``, cancelled, unusable): a
            trace cannot express that.
    """
    if not episode.available:
        raise ConfigurationError(
            f"The episode ended with {episode.end!r}, which a training trace of OpenEnv cannot express: "
            "leave the episode out."
        )
    if not episode.prompt_ids or not all(turn.tokens for turn in episode.steps) or not episode.steps:
        raise ConfigurationError(
            "The episode does not contain token ids: play it with an engine (rstar2_env.rollout), which records them."
        )
    turns = []
    own = [number for number, message in enumerate(episode.messages) if message.role == "assistant"]
    for number, (turn, place) in enumerate(zip(episode.steps, own, strict=True)):
        prompt = [*episode.prompt_ids, *episode.completion_ids[: turn.start]]
        span = slice(turn.start, turn.stop)
        metadata: dict[str, Any] = {
            "reward": turn.reward,
            "statuses": [str(status) for status in turn.statuses],
            "version": turn.version,
            "info": jsonable(turn.info),
        }
        if number == len(episode.steps) - 1:
            metadata["episode"] = {name: jsonable(getattr(episode, name)) for name in _END}
        turns.append(
            TrainingTurn(
                node_id=f"turn-{number}",
                prompt_token_ids=prompt,
                completion_token_ids=list(episode.completion_ids[span]),
                per_token_logps=list(episode.logprobs[span]),
                loss_mask=[0] * len(prompt) + list(episode.mask[span]),
                request={"messages": [message.record() for message in episode.messages[:place]]},
                response={"choices": [{"message": episode.messages[place].record()}]},
                metadata=metadata,
            )
        )
    return TrainingTrace(turns=turns)


def from_training_trace(trace: TrainingTrace) -> Episode:
    """Convert a trace to an episode; fields of ``Episode`` that the trace does not have keep their defaults.

    Args:
        trace: The trace; each turn must begin with all tokens of the previous turn.

    Raises:
        ConfigurationError: The trace is empty, or a turn does not begin with all tokens of the previous turn.
    """
    if not trace.turns:
        raise ConfigurationError("The trace does not contain any turns.")
    first = trace.turns[0]
    episode = Episode(prompt_ids=list(first.prompt_token_ids))
    for number, turn in enumerate(trace.turns):
        before = len(episode.prompt_ids) + len(episode.completion_ids)
        if turn.prompt_token_ids[:before] != [*episode.prompt_ids, *episode.completion_ids]:
            raise ConfigurationError(
                f"The tokens of turn {number} of the trace do not begin with the tokens of the turn "
                f"before it, because its history was rewritten: convert the turns from turn {number} on "
                "as a separate episode."
            )
        shown = turn.prompt_token_ids[before:]
        episode.completion_ids += shown
        episode.mask += [0] * len(shown)
        episode.logprobs += [0.0] * len(shown)
        start = len(episode.completion_ids)
        episode.completion_ids += turn.completion_token_ids
        episode.mask += turn.loss_mask[len(turn.prompt_token_ids) :]
        episode.logprobs += turn.per_token_logps
        told = turn.metadata
        statuses = [ToolStatus(status) for status in told.get("statuses", ())]
        episode.steps.append(
            Turn(
                start,
                len(episode.completion_ids),
                reward=float(told.get("reward", 0.0)),
                statuses=statuses,
                version=int(told.get("version", 0)),
                info=dict(told.get("info", {})),
            )
        )
        episode.statuses += statuses
    for name, value in trace.turns[-1].metadata.get("episode", {}).items():
        if name in _END:
            setattr(episode, name, value)
    last = trace.turns[-1]
    messages = [*last.request.get("messages", ()), *(one["message"] for one in last.response.get("choices", ()))]
    episode.messages = [Message(str(one["role"]), str(one["content"])) for one in messages]
    own = [number for number, message in enumerate(episode.messages) if message.role == "assistant"]
    for step, place in zip(episode.steps, own, strict=False):
        step.observation = episode.messages[place - 1].content if place else ""
    episode.turns = len(episode.steps)
    episode.policy_version = episode.steps[0].version
    return episode
