"""Check for a resumed run whose optimizer lost its state."""

from __future__ import annotations

from rstar2_env.diagnosis.base import Evidence, RunCheck, register
from rstar2_env.diagnosis.record import RunRecord

_FORGOTTEN = 0.5
"""If the optimizer's second moment falls below this fraction of its previous value, it was lost. An update multiplies
it by beta2, at least .9 and mostly .95 to .999, and adds a positive term, so it does not halve between two steps."""


def _look(run: RunRecord) -> Evidence | None:
    for resumed in run.resumed:
        for name, fraction in (("optimizer/updates", 1.0), ("optimizer/second_moment", _FORGOTTEN)):
            known = dict(run.series(name))
            before = max((step for step in known if step <= resumed), default=None)
            later = min((step for step in known if step > resumed), default=None)
            if before is None or later is None or known[later] >= fraction * known[before]:
                continue
            says = (
                f"The optimizer's state counted {known[before]:.0f} updates at step {before}, but "
                f"only {known[later]:.0f} at step {later}: its moments are lost."
                if name == "optimizer/updates"
                else f"The optimizer's second moment fell from {known[before]:.3g} at step {before} to "
                f"{known[later]:.3g} at step {later}, more than an update can lower it: its moments are lost."
            )
            return Evidence(
                since=later,
                until=None,
                says=f"The run resumed from step {resumed}. {says}",
                figures={name: known[later], "before": known[before], "resumed from step": resumed},
            )
    return None


register(
    RunCheck(
        name="optimizer_lost",
        title="The optimizer lost its state when the run resumed",
        looks_at="`optimizer/updates` (the number of updates in the optimizer's state) and `optimizer/second_moment`",
        rule="the first step after a resume reports fewer updates than the last step before the resume, or a second "
        "moment less than half as large: a resume that restores the saved state keeps the count and the moment; one "
        "update lowers the moment by at most a tenth",
        severity="warning",
        cause="A checkpoint without the optimizer, or a run that was started from saved weights.",
        change=("--resume", "--set optim.begin_from=RUN", "--set optim.warmup_steps=10"),
        otherwise="A hook that resets the optimizer (`reference_reset`, `policy_refresh`): its note says so.",
        needs=("optimizer/updates",),
        look=_look,
        applies=lambda run: any(run.resumed),
        effects=("held_out_falls", "kl_runs_away"),
    ),
)
