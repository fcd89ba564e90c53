"""Checks of the chat template: turn markup that the policy writes as text, and truncated prompts."""

from __future__ import annotations

from rstar2_env.diagnosis.base import PLAYED, Evidence, RunCheck, register
from rstar2_env.diagnosis.record import EpisodeDigest, RunRecord
from rstar2_env.diagnosis.spells import least_of, shares, spell

_MARKUP, _CUT = 0.2, 0.05


def _markup(run: RunRecord) -> Evidence | None:
    found = spell(shares(run, "markup", lambda one: one.markup), lambda share: share > _MARKUP, least_of(run))
    if found is None:
        return None
    return Evidence(
        since=found.since,
        until=found.until,
        says=f"{100 * found.mean:.0f} % of the episodes contain markup of a chat template that the policy wrote as "
        "text.",
        figures={"share with markup": found.mean},
        episodes=run.examples(found.since, found.until, lambda one: one.markup),
    )


def _is_cut(one: EpisodeDigest) -> bool:
    return bool(one.cut_prompt)


def _cut(run: RunRecord) -> Evidence | None:
    points = shares(run, "cut_prompt", _is_cut, lambda one: one.cut_prompt is not None) or run.series("prompt/cut")
    found = spell(points, lambda share: share > _CUT)
    if found is None:
        return None
    return Evidence(
        since=found.since,
        until=found.until,
        says=f"{100 * found.mean:.0f} % of the prompts were cut.",
        figures={"share cut": found.mean},
        episodes=run.examples(found.since, found.until, _is_cut),
    )


register(
    RunCheck(
        name="template_wrong",
        title="The chat template does not fit the model",
        looks_at="the text of the policy: markup such as `<|im_start|>` or `[INST]` as text",
        rule="in more than 20 % of the episodes of 3 consecutive steps or of an evaluation: if the template fits, "
        "the model ends its turn with an end token, which is not part of the text",
        severity="error",
        cause="A base model, or a template of another family of models.",
        change=("--set model.chat_template=chatml", "rstar2 validate --tokens MODEL"),
        otherwise="Problems about chat templates, whose answers quote such markup.",
        needs=("episodes",),
        look=_markup,
        kinds=PLAYED,
    ),
    RunCheck(
        name="prompts_cut",
        title="Prompts are cut",
        looks_at="`cut_prompt` of the episodes, or `prompt/cut` of the step",
        rule="more than 5 % in 3 consecutive steps: a cut prompt loses the problem or the instructions, and its "
        "episodes reward guessing",
        severity="error",
        cause="A limit on the prompt that is shorter than the longest problem; runs of this package refuse such "
        "prompts, other trainers cut them.",
        change=("data.max_prompt_length=HIGHER (verl)",),
        otherwise="Prompts that are padded to the limit: then all have the same length.",
        needs=("cut_prompt|prompt/cut",),
        look=_cut,
    ),
)
