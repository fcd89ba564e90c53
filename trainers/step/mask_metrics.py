"""Metrics of the loss masks: shares of environment tokens and of end-of-turn tokens that are trained on."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from rstar2_env.core.row import Row

_ENDED = ("answered", "no_answer")
"""Values of ``Episode.end`` for which the policy ended the last turn itself, with an end-of-turn token."""


def mask_metrics(
    rows: Sequence[Row], stop_ids: Collection[int], turn_tokens: int | None = None
) -> dict[str, tuple[float, float]]:
    """Return sum and count of each metric of the loss masks, over on-policy rows with token spans of turns.

    Args:
        rows: The rows of this process.
        stop_ids: The tokens that end a turn; empty if unknown.
        turn_tokens: Budget of one turn in tokens when the rows are collected, ``None`` without one; a turn of this
            length without an end token was cut by the budget. If a hook raised the budget while an episode was carried
            over (``tail="carry"``), the older budget, which is not recorded, may have cut its last turn.
            ``mask/turn_ends`` then counts this turn as ended by the policy, with a last token that is not trained on.

    Returns:
        ``mask/environment``: number of environment tokens (those outside every turn of the policy) with mask 1, and
        number of all environment tokens. ``mask/turn_ends``: number of last turns whose last token ends a turn and has
        mask 1, and number of all last turns that the policy ended itself.
    """
    environment = trained = ends = ended = 0
    for row in rows:
        turns = [turn for turn in row.episode.steps if turn.stop > turn.start]
        if not turns or row.episode.off_policy:
            continue
        mask = np.asarray(row.mask, dtype=bool)
        inside = np.zeros(len(mask), dtype=bool)
        for turn in turns:
            inside[max(0, turn.start - row.start) : max(0, turn.stop - row.start)] = True
        environment += int((~inside).sum())
        trained += int((mask & ~inside).sum())
        last = turns[-1].stop - 1 - row.start
        if stop_ids and row.episode.end in _ENDED and 0 <= last < len(mask):
            stopped = row.completion_ids[last] in stop_ids
            if not stopped and turn_tokens is not None and turns[-1].stop - turns[-1].start >= turn_tokens:
                continue
            ended += 1
            ends += bool(mask[last]) and stopped
    return {"mask/environment": (float(trained), float(environment)), "mask/turn_ends": (float(ends), float(ended))}
