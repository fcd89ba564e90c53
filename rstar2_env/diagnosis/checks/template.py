"""Checks of the chat template: turn markup that the policy writes as text, and truncated prompts."""

from __future__ import annotations

from rstar2_env.diagnosis.base import PLAYED, Evidence, RunCheck, register
from rstar2_env.diagnosis.record import EpisodeDigest, RunRecord
from rstar2_env.diagnosis.spells import frequent

_MARKUP, _CUT = (0.15, 0.1, 0.5), (0.05, 0.03, 0.2)


def _markup(run: RunRecord) -> Evidence | None:
    found = frequent(run, "markup", lambda one: one.markup, _MARKUP)
    if found is None:
        return None
    return Evidence(
        since=found.since,
        until=found.until,
        says=f"{100 * found.mean:.0f} % of the episodes{found.of_task} contain markup of a chat template that the "
        "policy wrote as text.",
        figures={"share with markup": found.mean},
        episodes=run.examples(found.since, found.until, lambda one: one.markup),
        effects=None if found.in_most else (),
    )


def _is_cut(one: EpisodeDigest) -> bool:
    return bool(one.cut_prompt)


def _cut(run: RunRecord) -> Evidence | None:
    found = frequent(
        run, "cut_prompt", _is_cut, _CUT, of=lambda one: one.cut_prompt is not None, otherwise="prompt/cut"
    )
    if found is None:
        return None
    return Evidence(
        since=found.since,
        until=found.until,
        says=f"{100 * found.mean:.0f} % of the prompts{found.of_task} were cut.",
        figures={"share cut": found.mean},
        episodes=run.examples(found.since, found.until, _is_cut),
        effects=None if found.in_most else (),
    )


register(
    RunCheck(
        name="template_wrong",
        title="The chat template does not fit the model",
        looks_at="the text of the policy: special tokens of chat templates such as `<|im_start|>` or `[INST]`, and "
        "lines that begin with the name of a role",
        rule="markup of a chat template occurs in more than 15 % of the episodes of 3 consecutive steps or of an "
        "evaluation, in more than 10 % over 5 steps, or in more than half of the latest episodes of a task: if the "
        "template fits, the model ends its turn with an end token, which is not part of the text",
        severity="error",
        cause="A base model, or a template of another family of models.",
        change=("--set model.chat_template=chatml", "rstar2 validate --tokens MODEL"),
        otherwise="Problems about chat templates, whose answers quote such markup.",
        needs=("episodes",),
        look=_markup,
        kinds=PLAYED,
        effects=("all_wrong", "cut_by_tokens", "repetition", "tool_fails"),
    ),
    RunCheck(
        name="prompts_cut",
        title="Prompts are cut",
        looks_at="`cut_prompt` of the episodes, or `prompt/cut` of the step",
        rule="more than 5 % of the prompts are cut in 3 consecutive steps, or more than 3 % over 5 steps, or more than "
        "20 % of the latest prompts of a task: a cut prompt loses the problem or the instructions, and its episodes "
        "reward guessing",
        severity="error",
        cause="A limit on the prompt that is shorter than the longest problem; runs of this package refuse longer "
        "prompts, other trainers cut them.",
        change=("data.max_prompt_length=HIGHER (verl)",),
        otherwise="Prompts that are padded to the limit: then all have the same length.",
        needs=("cut_prompt|prompt/cut",),
        look=_cut,
        effects=("all_wrong",),
    ),
)
