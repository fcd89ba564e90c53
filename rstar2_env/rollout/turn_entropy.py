"""How undecided a policy is at the beginning of a turn, from the candidates that an engine reported."""

from __future__ import annotations

import math

from rstar2_env.rollout.engine import Generation


def turn_entropy(generation: Generation, vocabulary: int) -> float | None:
    """The sum of -p ln p over all candidates of all measured tokens, divided by ln of the vocabulary's size.

    It is ARPO's (arXiv 2507.19849, section 3.1, and its code): a sum and no mean, so that 20 tokens of a uniform policy
    over 10 candidates alone come to 20 ln 10 / ln |V|.

    Args:
        generation: A turn.
        vocabulary: Number of tokens that there are.

    Returns:
        The entropy; ``None`` where no candidates were reported.
    """
    if not generation.candidates:
        return None
    total = -sum(logp * math.exp(logp) for each in generation.candidates for logp in each if math.isfinite(logp))
    return total / math.log(max(2, vocabulary))
