"""Check for turns that were sampled with older weights than the run's options allow."""

from __future__ import annotations

from rstar2_env.diagnosis.base import Evidence, RunCheck, register
from rstar2_env.diagnosis.record import RunRecord
from rstar2_env.diagnosis.spells import spell


def _bound(run: RunRecord) -> float:
    """Return the largest lag that the options allow: optimizer steps between sampling a turn and training on it."""
    updates = int(run.option("optim.updates_per_rollout", 1)) * int(run.option("optim.minibatches", 1))
    carried = 1 if run.option("rollout.tail") == "carry" else 0
    return float((int(run.option("rollout.max_staleness", 0)) + carried + 1) * updates - 1)


def _look(run: RunRecord) -> Evidence | None:
    bound = _bound(run)
    found = spell(run.series("policy/lag"), lambda lag: lag > bound + 1e-6, 1)
    if found is None:
        return None
    return Evidence(
        since=found.since,
        until=found.until,
        says=f"On average, {found.mean:.2f} updates lie between sampling a turn and training on it; the options "
        f"allow {bound:g}.",
        figures={"policy/lag": found.mean, "bound": bound},
        episodes=run.examples(found.since, found.until, lambda one: one.kept),
    )


register(
    RunCheck(
        name="lag_beyond_bound",
        title="Turns are older than the options allow",
        looks_at="`policy/lag`, `rollout.max_staleness`, `rollout.tail` and the number of updates per rollout",
        rule="the mean lag of one step is above the largest lag that the run's options allow: the limit on the lag "
        "holds for every turn, so a higher mean is never noise",
        severity="error",
        cause="Weights that are not synced after each update, or a version number that does not count every update.",
        change=("--set rollout.max_staleness=1", "--set rollout.handover=drain", "--set rollout.tail=wait"),
        otherwise="A rollout part that plays with older weights on purpose; its turns are marked as `stale`.",
        needs=("policy/lag", "option:rollout"),
        look=_look,
        effects=("clip_always",),
    ),
)
