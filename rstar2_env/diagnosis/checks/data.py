"""Checks of the data: duplicate problems, and held-out problems among the training problems."""

from __future__ import annotations

from collections.abc import Set
from functools import partial

from rstar2_env.diagnosis.base import Evidence, RunCheck, register
from rstar2_env.diagnosis.record import EpisodeDigest, RunRecord

_SHARE, _LEAST = 0.05, 20
_HELD_OUT, _LEAST_HELD_OUT = 0.05, 3


def _duplicates(run: RunRecord) -> Evidence | None:
    names: dict[str, set[str]] = {}
    for step in run.steps:
        for question, problem in step.questions:
            if question and problem:
                names.setdefault(question, set()).add(problem)
        problems = sum(map(len, names.values()))
        repeated = problems - len(names)
        if problems >= _LEAST and repeated > _SHARE * problems:
            twice = {question for question, own in names.items() if len(own) > 1}
            return Evidence(
                since=step.number,
                until=None,
                says=f"{repeated} of the {problems} problems up to step {step.number} have the text of another "
                "problem.",
                figures={"problems": problems, "repeated": repeated},
                episodes=run.examples(1, step.number, partial(_asks_one_of, twice)),
            )
    return None


def _asks_one_of(questions: Set[str], episode: EpisodeDigest) -> bool:
    return episode.question in questions


def _several_questions(run: RunRecord) -> bool:
    return len({question for step in run.steps for question, _ in step.questions}) > 1


def _contaminated(run: RunRecord) -> Evidence | None:
    held_out = {question for done in run.evaluations for question, _ in done.questions if question}
    met: set[str] = set()
    for step in run.steps:
        met |= {question for question, _ in step.questions if question in held_out}
        if len(met) >= _LEAST_HELD_OUT and len(met) > _HELD_OUT * len(held_out):
            return Evidence(
                since=step.number,
                until=None,
                says=f"{len(met)} of {len(held_out)} held-out problems were trained on up to step {step.number}.",
                figures={"held-out problems": len(held_out), "trained on": len(met)},
                episodes=run.examples(1, step.number, lambda one: one.question in held_out),
            )
    return None


register(
    RunCheck(
        name="duplicates",
        title="The training problems contain duplicates",
        looks_at="the texts of problems with different ids, ignoring white space and case",
        rule="more than 5 % of the drawn problems, if at least 20 were drawn: fewer duplicates hardly matter",
        severity="warning",
        cause="Several sources that share problems, or a file that was joined with itself.",
        change=("rstar2 problems stats FILE", "rstar2 problems decontaminate"),
        otherwise="An environment whose question does not contain the problem, such as a game: all problems then "
        "have the same text.",
        needs=("episodes",),
        look=_duplicates,
        applies=_several_questions,
    ),
    RunCheck(
        name="held_out_in_training",
        title="Held-out problems are trained on",
        looks_at="the texts of the training problems and of the evaluation problems, ignoring white space and case",
        rule="at least 3 and more than 5 % of the held-out problems: small procedural families repeat some by chance",
        severity="error",
        cause="The same file for training and evaluation, or a benchmark that is part of the training data.",
        change=("rstar2 problems decontaminate --problems TRAIN --against HELD_OUT --out clean.jsonl",),
        otherwise="A family with few different problems, such as sums of one digit: draw a harder level.",
        needs=("episodes", "held_out"),
        look=_contaminated,
        applies=_several_questions,
    ),
)
