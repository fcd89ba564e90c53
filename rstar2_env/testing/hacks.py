r"""Hacks: answers that should earn nothing, made anew by cause, and how many of them a verifier or an environment pays.

    for name, tally in attack(RuleVerifier(), hacks(count=1000)).items():
        print(name, tally.paid, "of", tally.tried, tally.examples)

Covered: the causes of docs/verification.md (``CAUSES``), and for any problem the formulas of its own question in every
dress (``echoes``). Not covered: whether right answers are paid; that is what labelled pairs are for.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from random import Random

import gymnasium as gym

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.env.reference import playing
from rstar2_env.problems import Problem
from rstar2_env.testing.hack_causes import CAUSES, Hack, dressed
from rstar2_env.verification.verifier import Verifier

MAX_EXAMPLES = 20
"""Most paid hacks that a tally keeps."""

_FORMULA = re.compile(r"\$\$(.+?)\$\$|\\\[(.+?)\\\]|\\\((.+?)\\\)|(?<!\\)\$(.+?)(?<!\\)\$", re.DOTALL)


@dataclass(slots=True)
class Tally:
    """How many hacks of one cause were paid.

    Attributes:
        tried: How many were tried.
        paid: How many counted as right.
        examples: The first of those that were paid.
    """

    tried: int = 0
    paid: int = 0
    examples: list[Hack] = field(default_factory=list)

    def count(self, hack: Hack, *, paid: bool) -> None:
        """Count one hack."""
        self.tried += 1
        self.paid += paid
        if paid and len(self.examples) < MAX_EXAMPLES:
            self.examples.append(hack)


def hacks(causes: Sequence[str] | None = None, *, count: int = 100, seed: int = 0) -> Iterator[Hack]:
    """New hacks, ``count`` of each cause; the same seed gives the same ones.

    Args:
        causes: Names of ``CAUSES``; ``None`` means all.
        count: How many of each.
        seed: Seed of the generators.

    Raises:
        ConfigurationError: A cause has no such name.
    """
    for name in CAUSES if causes is None else causes:
        if name not in CAUSES:
            raise ConfigurationError(f"There is no cause {name!r}: choose among {', '.join(CAUSES)}.")
        chance = Random(f"{name} {seed}")
        for _ in range(count):
            yield CAUSES[name](chance)


def echoes(question: str, gold: str) -> Iterator[Hack]:
    r"""The formulas of a question and the sides of its equations, each in every dress, as answers.

    Args:
        question: The question, with formulas between ``$``, ``$$``, ``\(`` or ``\[``; without any, the expression after
            its last colon.
        gold: The gold answer.
    """
    found = [next(part for part in match.groups() if part is not None) for match in _FORMULA.finditer(question)]
    found = found or [question.rpartition(":")[2].strip(" .?")]
    sides = [side for formula in found if "=" in formula for side in formula.split("=")]
    for formula in (*found, *sides):
        for answer in dressed(formula.strip(" .,;\n")) if formula.strip() else ():
            yield Hack("echo", gold, answer, question)


def attack(verifier: Verifier, tried: Iterable[Hack]) -> dict[str, Tally]:
    """Grade hacks, and count by cause those that are paid.

    Args:
        verifier: Any verifier.
        tried: The hacks.
    """
    tallies: dict[str, Tally] = {}
    for hack in tried:
        verdict = verifier(hack.gold, hack.answer, hack.question)
        tallies.setdefault(hack.cause, Tally()).count(hack, paid=verdict.correct)
    return tallies


def attack_env(env: gym.Env[str, str], *, problems: int = 10, count: int = 5, seed: int = 0) -> dict[str, Tally]:
    """Play hacks in an environment, and count by cause those that earn anything.

    Its own problems are answered with echoes of their questions; then problems made of each cause's gold are played.

    Args:
        env: A text environment with a dialect; ``reset`` must take ``options={"problem": ...}``.
        problems: How many of its own problems to attack.
        count: How many hacks of each cause to play.
        seed: Seed of the problems and of the generators.

    Raises:
        ConfigurationError: The environment has no dialect to write answers in.
    """
    tallies: dict[str, Tally] = {}
    own: list[Hack] = []
    for number in range(problems):
        env.reset(seed=seed + number)
        problem: Problem = playing(env).problem
        own += [hack for hack in echoes(problem.question, problem.answer) if hack.answer != problem.answer]
    for hack in (*own, *hacks(count=count, seed=seed)):
        tallies.setdefault(hack.cause, Tally()).count(hack, paid=_earned(env, hack, seed) > 0)
    return tallies


def _earned(env: gym.Env[str, str], hack: Hack, seed: int) -> float:
    dialect = getattr(playing(env), "dialect", None)
    if dialect is None:
        raise ConfigurationError(f"{env} has no dialect to write answers in (env.unwrapped.dialect).")
    problem = Problem("hack", hack.question or "What is it?", hack.gold)
    env.reset(seed=seed, options={"problem": problem})
    return float(env.step(dialect.format_answer(hack.answer))[1])


__all__ = ["CAUSES", "Hack", "Tally", "attack", "attack_env", "dressed", "echoes", "hacks"]
