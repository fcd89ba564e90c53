"""Checks of the loss mask: environment tokens that are trained on, or end-of-turn tokens that are not."""

from __future__ import annotations

from rstar2_env.diagnosis.base import Evidence, RunCheck, register
from rstar2_env.diagnosis.record import RunRecord
from rstar2_env.diagnosis.spells import spell

_ENDS = 0.75


def _environment(run: RunRecord) -> Evidence | None:
    found = spell(run.series("mask/environment"), lambda share: share > 0, 1)
    if found is None:
        return None
    return Evidence(
        since=found.since,
        until=found.until,
        says=f"{100 * found.mean:.3g} % of the environment's tokens in the trained rows have a mask of 1.",
        figures={"mask/environment": found.mean},
        episodes=run.examples(found.since, found.until, lambda one: one.kept and bool(one.statuses)),
    )


def _ends(run: RunRecord) -> Evidence | None:
    found = spell(run.series("mask/turn_ends"), lambda share: share < _ENDS)
    if found is None:
        return None
    return Evidence(
        since=found.since,
        until=found.until,
        says=f"Of the turns that the policy ended itself, only {100 * found.mean:.0f} % have a mask of 1 on the "
        "token that ends the turn.",
        figures={"mask/turn_ends": found.mean},
        episodes=run.examples(found.since, found.until, lambda one: one.kept),
    )


register(
    RunCheck(
        name="environment_trained",
        title="The environment's tokens are trained on",
        looks_at="`mask/environment`: the share of tokens with mask 1 outside every turn of the policy",
        rule="some token outside the policy's turns has mask 1: the policy must be trained on exactly the tokens that "
        "it sampled",
        severity="error",
        cause="A rollout part or a template that masks by text or by position, so that tool results are trained on.",
        change=("rstar2 validate --tokens RUN", "--set parts.rollout=plain"),
        otherwise="Rows of demonstrations, whose turns have no token spans, are not counted. A run whose rows hold no "
        "token of the environment does not record `mask/environment`.",
        needs=("mask/environment",),
        look=_environment,
        effects=("engine_differs", "held_out_falls", "kl_runs_away"),
    ),
    RunCheck(
        name="turn_end_untrained",
        title="The token that ends a turn is not trained on",
        looks_at="`mask/turn_ends`: among the last turns of episodes that the policy ended itself, the share whose "
        "last token is an end-of-turn token with mask 1",
        rule="in 3 consecutive steps, fewer than 75 % of the last turns that the policy ended itself end with an "
        "end-of-turn token that has mask 1: the share is 100 % if the masks are right, and a policy that is not "
        "trained to end its turns no longer ends them",
        severity="error",
        cause="A stop token that the engine removes, or a mask that excludes this token.",
        change=("rstar2 validate --tokens RUN", "--set model.chat_template=chatml"),
        otherwise="Turns that end with a stop string of the dialect, such as a closing tag, do not contain an "
        "end-of-turn token of the template.",
        needs=("mask/turn_ends",),
        look=_ends,
        effects=("cut_by_tokens", "lengths_explode", "repetition"),
    ),
)
