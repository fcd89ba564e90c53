r"""Generates hacks, answers that should earn no reward, and counts the hacks that a verifier or environment rewards.

    for name, tally in attack(RuleVerifier(), hacks(count=1000)).items():
        print(name, tally.paid, "of", tally.tried, tally.examples)

Covered: hacks that exploit a known weakness of verifiers (``CAUSES``, docs/verification-rules.md); and, for any
problem, the formulas of the problem's question in many notational variants (``echoes``). Not covered: whether right
answers are rewarded; tests with labelled pairs check that.
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
"""Maximum number of paid hacks that a tally keeps as examples."""

_FORMULA = re.compile(r"\$\$(.+?)\$\$|\\\[(.+?)\\\]|\\\((.+?)\\\)|(?<!\\)\$(.+?)(?<!\\)\$", re.DOTALL)


@dataclass(slots=True)
class HackTally:
    """Counts of the hacks of one cause: how many were tried, and how many were graded as correct or rewarded ("paid").

    Attributes:
        tried: Number of hacks tried.
        paid: Number of hacks that were graded as correct or earned a reward.
        examples: The first paid hacks, at most ``MAX_EXAMPLES``.
    """

    tried: int = 0
    paid: int = 0
    examples: list[Hack] = field(default_factory=list)

    def count(self, hack: Hack, *, paid: bool) -> None:
        """Add one hack to the counts; ``paid`` is true if the hack was graded as correct or rewarded."""
        self.tried += 1
        self.paid += paid
        if paid and len(self.examples) < MAX_EXAMPLES:
            self.examples.append(hack)


def hacks(causes: Sequence[str] | None = None, *, count: int = 100, seed: int = 0) -> Iterator[Hack]:
    """Generate ``count`` hacks of each cause; the same seed gives the same hacks.

    Args:
        causes: Keys of ``CAUSES``; ``None`` means all causes.
        count: Number of hacks of each cause.
        seed: Seed of the random draws.

    Raises:
        ConfigurationError: A name is not the name of a cause.
    """
    for name in CAUSES if causes is None else causes:
        if name not in CAUSES:
            raise ConfigurationError(
                f"There is no generated wrong answer with the cause {name!r}: choose among {', '.join(CAUSES)}."
            )
        chance = Random(f"{name} {seed}")
        for _ in range(count):
            yield CAUSES[name](chance)


def echoes(question: str, gold: str) -> Iterator[Hack]:
    r"""Yield the formulas of a question, and the sides of its equations, as answers in many notational variants.

    A formula that is the gold answer itself, as in "Is it $P_1$ or $P_2$?", is not an echo.

    Args:
        question: The question, with formulas between ``$``, ``$$``, ``\(`` or ``\[``. If the question has no formula,
            the text after its last colon is used as the formula.
        gold: The gold answer.
    """
    found = [next(part for part in match.groups() if part is not None) for match in _FORMULA.finditer(question)]
    found = found or [question.rpartition(":")[2].strip(" .?")]
    sides = [side for formula in found if "=" in formula for side in formula.split("=")]
    for formula in (formula.strip(" .,;\n") for formula in (*found, *sides)):
        for answer in dressed(formula) if formula not in ("", gold.strip(" $.")) else ():
            yield Hack("echo", gold, answer, question)


def attack(verifier: Verifier, tried: Iterable[Hack]) -> dict[str, HackTally]:
    """Grade hacks, and count the hacks of each cause that are graded as correct.

    Args:
        verifier: Any verifier.
        tried: The hacks to grade.
    """
    return _tallies((hack, verifier(hack.gold, hack.answer, hack.question).correct) for hack in tried)


def attack_env(env: gym.Env[str, str], *, problems: int = 10, count: int = 5, seed: int = 0) -> dict[str, HackTally]:
    """Play hacks in an environment, and count the hacks of each cause that earn a reward.

    First the environment's own problems are answered with formulas of their questions (``echoes``). Then each hack of
    ``hacks`` is played on a problem with the hack's gold answer.

    Args:
        env: A text environment with a dialect; ``reset`` must take ``options={"problem": ...}``.
        problems: Number of the environment's own problems to attack.
        count: Number of hacks of each cause to play.
        seed: Seed of the problems and of the generated hacks.

    Raises:
        ConfigurationError: The environment has no dialect to write answers in.
    """
    own: list[Hack] = []
    for number in range(problems):
        env.reset(seed=seed + number)
        problem: Problem = playing(env).problem
        own += [hack for hack in echoes(problem.question, problem.answer) if hack.answer != problem.answer]
    return _tallies((hack, _earned(env, hack, seed) > 0) for hack in (*own, *hacks(count=count, seed=seed)))


def _tallies(tried: Iterable[tuple[Hack, bool]]) -> dict[str, HackTally]:
    """Count the tried and the rewarded hacks of each cause."""
    tallies: dict[str, HackTally] = {}
    for hack, paid in tried:
        tallies.setdefault(hack.cause, HackTally()).count(hack, paid=paid)
    return tallies


def _earned(env: gym.Env[str, str], hack: Hack, seed: int) -> float:
    dialect = getattr(playing(env), "dialect", None)
    if dialect is None:
        raise ConfigurationError(
            f"Answers cannot be written for {env}, because it does not have a dialect (env.unwrapped.dialect)."
        )
    problem = Problem("hack", hack.question or "What is it?", hack.gold)
    env.reset(seed=seed, options={"problem": problem})
    return float(env.step(dialect.format_answer(hack.answer))[1])


__all__ = ["CAUSES", "Hack", "HackTally", "attack", "attack_env", "dressed", "echoes", "hacks"]
