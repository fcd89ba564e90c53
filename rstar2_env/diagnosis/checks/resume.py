"""Check for a resumed run whose optimizer lost its state."""

from __future__ import annotations

from rstar2_env.diagnosis.base import Evidence, RunCheck, register
from rstar2_env.diagnosis.record import RunRecord


def _look(run: RunRecord) -> Evidence | None:
    updates = dict(run.series("optimizer/updates"))
    for resumed in run.resumed:
        before = max((step for step in updates if step <= resumed), default=None)
        later = min((step for step in updates if step > resumed), default=None)
        if before is not None and later is not None and updates[later] < updates[before]:
            return Evidence(
                since=later,
                until=None,
                says=f"The run resumed from step {resumed}. The optimizer's state counted {updates[before]:.0f} "
                f"updates at step {before}, but only {updates[later]:.0f} at step {later}: its moments are lost.",
                figures={"optimizer/updates": updates[later], "before": updates[before], "resumed from step": resumed},
            )
    return None


register(
    RunCheck(
        name="optimizer_lost",
        title="The optimizer lost its state when the run resumed",
        looks_at="`optimizer/updates`: the number of updates in the optimizer's state",
        rule="fewer updates after a resume than before it: a resume that restores the saved state keeps the count",
        severity="warning",
        cause="A checkpoint without the optimizer, or a run that was started from saved weights.",
        change=("--resume", "--set optim.begin_from=CHECKPOINT", "--set optim.warmup_steps=10"),
        otherwise="A hook that resets the optimizer (`reference_reset`, `policy_refresh`): its note says so.",
        needs=("optimizer/updates",),
        look=_look,
        applies=lambda run: any(run.resumed),
    ),
)
