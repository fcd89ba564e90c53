"""Checks for log-probabilities that differ between engine and trainer: from the start, or because weight syncs fail."""

from __future__ import annotations

from statistics import median

from rstar2_env.diagnosis.base import Evidence, RunCheck, register
from rstar2_env.diagnosis.record import RunRecord
from rstar2_env.diagnosis.spells import LEAST, rank_trend, spell

_FAR = 0.1
"""Largest difference of log-probabilities, in nats, that rounding can explain. The test of a weight sync in bfloat16
tolerates the same difference."""
_STALE, _LEAST, _TIMES, _GROWTH, _STEPS = 0.02, 5e-4, 20.0, 3.0, 5
_RECENT, _TREND, _HIGHER = 30, 1.9, 1.2
"""The difference between engine and trainer counts as rising if, over at most ``_RECENT`` latest steps, its
``rank_trend`` is at least ``_TREND`` and it grows at least by the factor ``_HIGHER``. A difference that rounding causes
does not rise: it has its full size from the first step on."""
_DEEPER = 2.0


def _lagging(run: RunRecord) -> bool:
    lag = [value for _, value in run.series("policy/lag")]
    return bool(lag) and max(lag) > 0.5


def _explained(run: RunRecord) -> float:
    """Return the largest difference of log-probabilities, in nats, that rounding at the run's precision explains."""
    recorded = run.series("mismatch/explained")
    return min(_FAR, recorded[-1][1]) if recorded else _FAR


def _differs(run: RunRecord) -> Evidence | None:
    points = run.series("mismatch/logp_difference")
    explained = _explained(run)
    # Precision causes a difference already before the first update; a small later one may come from older weights.
    at_start = points[0][1] > explained
    found = spell(points, lambda value: value > (explained if at_start else _FAR))
    if found is None or (_stale(run) is not None and points[0][1] <= _FAR):
        return None
    step = run.last if found.until is None else found.until
    figures = {"mismatch/logp_difference": found.mean}
    says = (
        f"The engine's and the trainer's log-probabilities of the same tokens differ by {found.mean:.3g} nats on "
        f"average over {len(found.values)} consecutive steps."
    )
    depths = [dict(run.series(f"mismatch/logp_difference/depth_{at}")).get(step) for at in (0, 1)]
    if depths[0] is not None and depths[1] is not None:
        figures |= {"before any tool call": depths[0], "after one tool call": depths[1]}
        if depths[1] > _DEEPER * depths[0]:
            says += (
                " The difference is larger after tool calls, so engine and trainer have different tokens between turns."
            )
        else:
            says += " It is as large before any tool call, so the sampling, the precision or the weights differ."
    if found.mean <= _FAR:
        figures |= {"mismatch/explained": explained}
        says += f" The precision of the run explains at most {explained:g} nats."
    return Evidence(
        since=found.since,
        until=found.until,
        says=says,
        figures=figures,
        episodes=run.examples(found.since, found.until, lambda one: one.kept),
        severity="warning" if found.mean <= _FAR else None,
    )


def _stale(run: RunRecord) -> Evidence | None:
    points = run.series("mismatch/logp_difference")
    if len(points) < _STEPS or _lagging(run):
        return None
    # The lowest, because old weights show from the second step on.
    first = min(value for _, value in points[:LEAST])
    # If the run does not record what its precision explains, its first steps show it.
    bound = min(
        _STALE, max(_explained(run), _LEAST) if run.series("mismatch/explained") else max(_LEAST, _TIMES * first)
    )
    found = spell(points, lambda value: value > bound)
    if found is None or found.until is not None:
        return None
    recent = found.values[-_RECENT:]
    if len(recent) < _STEPS or median(recent[-LEAST:]) < _GROWTH * max(first, 1e-6):
        return None
    if rank_trend(recent) < _TREND or median(recent[-LEAST:]) < _HIGHER * median(recent[:LEAST]):
        return None
    return Evidence(
        since=found.since,
        until=None,
        says=f"The difference between the engine's and the trainer's log-probabilities grows from {first:.2g} to "
        f"{found.last:.2g} nats a token: the engine seems to keep earlier weights.",
        figures={"mismatch/logp_difference": found.last, "at the first step": first},
        episodes=run.examples(found.since, None, lambda one: one.kept),
    )


def _truncated(run: RunRecord) -> Evidence | None:
    top_p, top_k = float(run.option("rollout.top_p", 1.0)), int(run.option("rollout.top_k", 0))
    if (top_p >= 1 and top_k <= 0) or not run.steps:
        return None
    return Evidence(
        since=run.steps[0].number,
        until=None,
        says=f"Episodes are sampled with top_p={top_p:g} and top_k={top_k}, and trained on with the probabilities of "
        "all tokens.",
        figures={"rollout.top_p": top_p, "rollout.top_k": top_k},
    )


_NEEDS = ("mismatch/logp_difference",)

register(
    RunCheck(
        name="engine_differs",
        title="Engine and trainer compute different probabilities",
        looks_at="`mismatch/logp_difference` and `mismatch/explained`; to find the reason, also at "
        "`mismatch/logp_difference/DEPTH` before and after the first tool call",
        rule="the difference of log-probabilities is above 0.1 nats a token in 3 consecutive steps; or, as a warning, "
        "it is above the value that the run's precision explains (0.0005 nats in float32), both in the first step and "
        "in 3 consecutive steps: normal differences are 1e-6 to 1e-4 nats in float32, and 0.01 to 0.03 nats in "
        "bfloat16",
        severity="error",
        cause="Another temperature, top-p or precision in the engine, another chat template, or other weights.",
        change=(
            "--set rollout.top_p=1 --set rollout.top_k=0",
            "--set model.dtype=bfloat16",
            "--set correction=truncate",
        ),
        otherwise="Turns of older weights (`policy/lag` above 0) are expected to differ: `lag_beyond_bound` checks "
        "their age.",
        needs=_NEEDS,
        look=_differs,
        applies=lambda run: not _lagging(run),
        effects=("entropy_collapsed", "entropy_exploded", "held_out_falls", "kl_runs_away"),
    ),
    RunCheck(
        name="weights_stale",
        title="New weights do not reach the engine",
        looks_at="`mismatch/logp_difference` over the steps, in a run whose turns are sampled with the newest weights",
        rule="the difference of log-probabilities has been above 0.02 nats a token (in float32, above 0.0005 nats) for "
        "at least 5 steps in a row, up to the latest step. Over these steps (at most the latest 30), the difference "
        "rises, and its median over the last 3 of them is at least 20 % above its median over the first 3. The median "
        "difference of the run's last 3 steps is at least 3 times the lowest of its first 3 steps: if new weights "
        "reach the engine, the difference stays as small as the precision allows",
        severity="error",
        cause="Weights or adapters (LoRA) that are sent under names that the engine ignores, or a server that was "
        "restarted with the initial model.",
        change=("--set rollout.handover_tolerance=0.05", "--set model.lora_rank=0"),
        otherwise="In low precision, probabilities that become more extreme: the difference rises, then levels off.",
        needs=_NEEDS,
        look=_stale,
        applies=lambda run: not _lagging(run),
        effects=("held_out_falls", "kl_runs_away"),
    ),
    RunCheck(
        name="sampling_truncated",
        title="Training episodes are sampled from only a part of the vocabulary",
        looks_at="`rollout.top_p` and `rollout.top_k`",
        rule="top-p is below 1, or top-k is above 0: the loss uses the probabilities of all tokens, but unlikely "
        "tokens are never sampled, so the samples are biased; `mismatch/logp_difference` does not show this",
        severity="note",
        cause="Sampling options of an evaluation or of a model card that are used for training.",
        change=("--set rollout.top_p=1 --set rollout.top_k=0",),
        otherwise="A recipe that prescribes top-p or top-k, to keep unlikely tokens out of its episodes.",
        needs=("option:rollout",),
        look=_truncated,
        effects=("episodes_identical",),
    ),
)
