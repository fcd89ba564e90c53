"""Engine metrics of a rollout, from the engine's counters before and after it: cache, preemptions, tokens."""

from __future__ import annotations

from typing import Any

from rstar2_env.core.errors import ServiceError
from rstar2_env.rollout import EngineStats

from ....step.sums import Sums


def stats_of(engine: Any) -> EngineStats | None:
    """Return the counters of an engine, or the totals of a ``Scheduler``'s engines.

    The result is ``None`` if an engine has no counters or cannot be reached.
    """
    try:
        found = [one.stats() for one in getattr(engine, "engines", [engine]) if hasattr(one, "stats")]
    except ServiceError:
        return None
    if not found or not all(isinstance(one, EngineStats) for one in found):
        return None
    recomputed = [one.recomputed_tokens for one in found]
    return EngineStats(
        preemptions=sum(one.preemptions for one in found),
        recomputed_tokens=None if None in recomputed else sum(recomputed),
        prompt_tokens=sum(one.prompt_tokens for one in found),
        cached_tokens=sum(one.cached_tokens for one in found),
        generated_tokens=sum(one.generated_tokens for one in found),
    )


def add_engine_metrics(
    sums: Sums, before: EngineStats | None, after: EngineStats | None, *, seconds: float, first: bool, each: bool
) -> None:
    """Add the engine metrics of one rollout to the sums.

    Args:
        sums: Receives the metrics.
        before: Counters at the beginning of the rollout; ``None`` if the engine has none, so that nothing is added.
        after: Like ``before``, but at the end of the rollout.
        seconds: Duration of the rollout.
        first: Whether this is the first process. Only the first process counts the rollout, so that the logged totals
            over all processes are divided by the number of rollouts.
        each: Whether each process has its own engine; if all processes share an engine, only the first process reports.
    """
    if before is None or after is None or not (first or each):
        return
    once = float(first)
    prompt = after.prompt_tokens - before.prompt_tokens
    generated = after.generated_tokens - before.generated_tokens
    sums.add("engine/cached_share", after.cached_tokens - before.cached_tokens, prompt)
    sums.add("engine/generated_tokens", generated, once)
    sums.add("engine/preemptions", after.preemptions - before.preemptions, once)
    if before.recomputed_tokens is not None and after.recomputed_tokens is not None:
        sums.add("engine/recomputed_tokens", after.recomputed_tokens - before.recomputed_tokens, once)
    # Processes generate at the same time, so their tokens are added up and their seconds are not.
    sums.add("speed/generated_tokens_per_second", generated, seconds * once)
