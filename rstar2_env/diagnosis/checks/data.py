"""Checks of the data: duplicate problems, and held-out problems among the training problems."""

from __future__ import annotations

from collections.abc import Set
from functools import partial
from math import exp, sqrt

from rstar2_env.diagnosis.base import Evidence, RunCheck, register
from rstar2_env.diagnosis.record import EpisodeDigest, RunRecord, StepData

_SHARE, _LEAST = 0.05, 20
_HELD_OUT, _LEAST_HELD_OUT = 0.05, 3
_UNSURE = 3
"""If problems have no ids, the size of their family is estimated from the count of repeated texts plus this number.
Otherwise, the estimate can be too large by chance: if 3 repeats are expected, none occurs with a probability of .05."""


def _duplicates(run: RunRecord) -> Evidence | None:
    names: dict[str, set[str]] = {}
    for step in run.steps:
        for question, problem in step.questions:
            if question and problem:
                names.setdefault(question, set()).add(problem)
        problems = sum(map(len, names.values()))
        repeated = problems - len(names)
        # Two standard errors less, because a few of the first problems may be duplicates by chance.
        if problems >= _LEAST and repeated - 2 * sqrt(repeated) > _SHARE * problems:
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


def _number_drawn(step: StepData) -> int:
    return sum(bool(group[0].question) for group in step.groups())


def _met_by_chance(drawn: int, different: int) -> float:
    """Return the probability that a random problem of a family is one of the problems that were drawn from it.

    The size of the family is estimated: it is the size at which ``drawn`` uniform draws are expected to yield
    ``different`` distinct texts.

    Args:
        drawn: Number of problems that were drawn, with repetitions.
        different: Number of distinct texts among them; if no text repeats, the result is 0.
    """
    if different >= drawn:
        return 0.0
    low, high = float(max(1, different)), float(drawn) ** 2
    for _ in range(60):
        size = (low * high) ** 0.5
        low, high = (size, high) if size * (1 - exp(-drawn / size)) < different else (low, size)
    return 1 - exp(-drawn / high)


def _contaminated(run: RunRecord) -> Evidence | None:
    held_out = {question for done in run.evaluations for question, _ in done.questions if question}
    met: set[str] = set()
    drawn, names, different = 0, set[tuple[str, str]](), set[str]()
    for step in run.steps:
        met |= {question for question, _ in step.questions if question in held_out}
        names |= {(question, problem) for question, problem in step.questions if question and problem}
        different |= {question for question, _ in step.questions if question}
        drawn += step.once("questions drawn", _number_drawn)
        if len(met) < _LEAST_HELD_OUT or len(met) <= _HELD_OUT * len(held_out):
            continue
        share = _met_by_chance(len(names), len(different)) if names else _met_by_chance(drawn, len(different) - _UNSURE)
        by_chance = len(held_out) * share
        if len(met) > by_chance + 3 * sqrt(by_chance):
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
        rule="after at least 20 problems were drawn, the number of problems that repeat the text of another one, minus "
        "2 standard errors, is more than 5 % of the drawn problems: fewer repeated problems hardly matter",
        severity="warning",
        cause="Several sources that share problems, or a file that was joined with itself.",
        change=("rstar2 problems stats PROBLEMS",),
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
        rule="at least 3 of the held-out problems and more than 5 % of them were trained on. The number of these "
        "problems also exceeds, by more than 3 standard errors, the number expected by chance if one family generated "
        "the held-out problems and all problems drawn in the run",
        severity="error",
        cause="The same file for training and evaluation, or a benchmark that is part of the training data.",
        change=("rstar2 problems decontaminate --problems PROBLEMS --against HELD_OUT --out clean.jsonl",),
        otherwise="A family with few different problems, such as sums of one digit: draw a harder level.",
        needs=("episodes", "held_out"),
        look=_contaminated,
        applies=_several_questions,
    ),
)
