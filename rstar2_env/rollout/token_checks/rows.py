"""Checks the rows that a run trained on: each row alone, against its episode, and against the chat template."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from rstar2_env.core.episode import Episode
from rstar2_env.core.errors import Rstar2Error
from rstar2_env.core.run_folder import TokensEntry
from rstar2_env.rollout.chat import ChatCodec
from rstar2_env.rollout.token_checks.findings import TokenFinding

_ROUNDING = 1e-4
"""Largest log-probability above 0 that is accepted: rounding can give a token of probability 1 such a value."""
_DRIFT = 0.1
_REPEATED = 16


def check_row(
    row: TokensEntry,
    *,
    episode: Episode | None = None,
    codec: ChatCodec | None = None,
    vocabulary: int | None = None,
) -> Iterator[TokenFinding]:
    """Check one row that a run trained on, and yield the findings.

    Args:
        row: Token ids, mask and log-probabilities of the row.
        episode: The whole episode that the row was made from; ``None`` skips the checks that need the episode.
        codec: Renders conversations with the episode's chat template; ``None`` skips the checks that need it.
        vocabulary: Number of valid token ids; ``None`` if unknown.
    """
    where = f"step {row.step}, group {row.group}, member {row.member}"
    fatal = False
    for check, detail in _of_row(row, vocabulary):
        fatal = fatal or check not in ("certain_tokens", "ratio_drift")
        yield TokenFinding(check, where, detail)
    if episode is None or fatal:
        return  # the following checks need valid lengths and ids
    for check, detail in _of_episode(row, episode):
        yield TokenFinding(check, where, detail)
    if codec is not None and episode.steps:
        for check, detail in _of_text(row, episode, codec):
            yield TokenFinding(check, where, detail)


def _of_row(row: TokensEntry, vocabulary: int | None) -> Iterator[tuple[str, str]]:
    size = len(row.completion_ids)
    if not row.prompt_ids:
        yield "no_prompt_ids", ""
    if not size:
        yield "empty_response", ""
        return
    for name in ("mask", "advantages", "ratios"):
        length = len(getattr(row, name))
        if length != size and not (name == "ratios" and not length):
            yield "length_mismatch", f"{name} has {length} of {size}"
    if not row.logprobs:
        yield "no_logprobs", ""
    elif len(row.logprobs) != size:
        yield "logprob_misalign", f"{len(row.logprobs)} of {size}"
    limit = math.inf if vocabulary is None else vocabulary
    if outside := [one for one in (*row.prompt_ids, *row.completion_ids) if not 0 <= one < limit]:
        yield "invalid_token_id", f"{outside[0]}"
    if odd := [one for one in row.mask if one not in (0, 1)]:
        yield "invalid_loss_mask", f"{odd[0]}"
    elif not any(row.mask):
        yield "nothing_trainable", ""
    if len(row.mask) == len(row.logprobs) == size:
        yield from _of_logprobs(row)


def _of_logprobs(row: TokensEntry) -> Iterator[tuple[str, str]]:
    policy = [logprob for logprob, mine in zip(row.logprobs, row.mask, strict=True) if mine]
    others = [logprob for logprob, mine in zip(row.logprobs, row.mask, strict=True) if not mine]
    if infinite := [one for one in policy if not math.isfinite(one)]:
        yield "invalid_logprob", f"{len(infinite)} of {len(policy)}"
    if positive := [one for one in policy if one > _ROUNDING]:
        yield "positive_logprob", f"{max(positive):g}"
    if nonzero := [one for one in others if one != 0.0]:
        yield "masked_has_logprob", f"{len(nonzero)} of {len(others)}"
    if certain := sum(one == 0.0 for one in policy):
        yield "certain_tokens", f"{certain} of {len(policy)}"
    if len(row.ratios) == len(row.mask):
        drift = [
            abs(math.log(ratio)) if ratio > 0 else math.inf
            for ratio, mine in zip(row.ratios, row.mask, strict=True)
            if mine and math.isfinite(ratio)
        ]
        if drift and sum(drift) / len(drift) > _DRIFT:
            yield "ratio_drift", f"{sum(drift) / len(drift):.3g} on average"


def _of_episode(row: TokensEntry, episode: Episode) -> Iterator[tuple[str, str]]:
    if not episode.steps:
        yield "no_turns", f"end: {episode.end}"
        return
    marked = [0] * len(row.completion_ids)
    for turn in episode.steps:
        marked[turn.start : turn.stop] = [1] * len(marked[turn.start : turn.stop])
    if marked != row.mask:
        first = next(at for at, (one, other) in enumerate(zip(marked, row.mask, strict=True)) if one != other)
        yield "turn_spans", f"first at token {first}"
    for number, turn in enumerate(episode.steps, 1):
        ids = row.completion_ids[turn.start : turn.stop]
        if not ids:
            yield "empty_completion", f"turn {number}"
        elif _repeats(ids):
            yield "degenerate_rollout", f"turn {number}, {len(ids)} tokens"


def _repeats(ids: Sequence[int]) -> bool:
    return len(ids) >= 2 * _REPEATED and len(set(ids)) <= 2


def _of_text(row: TokensEntry, episode: Episode, codec: ChatCodec) -> Iterator[tuple[str, str]]:
    messages = episode.messages
    system = messages[0].content if messages and messages[0].role == "system" else ""
    first = messages[1 if system else 0].content if len(messages) > bool(system) else ""
    # Some templates write a prefix before the text of a turn, which the policy generates.
    head = codec.text(codec.turn(""))
    try:
        if codec.prompt(system, first) != row.prompt_ids:
            yield "prompt_mismatch", ""
        spoken = [at for at, message in enumerate(messages) if message.role == "assistant"]
        for number, (turn, at) in enumerate(zip(episode.steps, spoken, strict=False), 1):
            ids = row.completion_ids[turn.start : turn.stop]
            text = codec.text(ids)
            if text != messages[at].content:
                yield "text_mismatch", f"turn {number}: {text[:40]!r}, not {messages[at].content[:40]!r}"
            if number == len(episode.steps):
                break
            ended = bool(ids) and ids[-1] in codec.stop_ids
            if not ended:
                yield "truncated_turn", f"turn {number}"
            elif codec.turn(text.removeprefix(head)) != ids:
                yield "not_canonical", f"turn {number}"
            between = row.completion_ids[turn.stop : episode.steps[number].start]
            for shown in messages[at + 1 : at + 2]:
                if between != codec.suffix(shown.role, shown.content, ended=ended):
                    yield "environment_tokens", f"after turn {number}"
    except Rstar2Error as error:
        yield "environment_tokens", f"{error}"
