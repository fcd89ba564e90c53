"""``check_sampler``: checks that a sampler makes the same draws for the same seed, also after it was restored."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.parts import PartSpec
from rstar2_env.problems import (
    FiniteSource,
    FixedSource,
    Problem,
    ProblemSource,
    UnknownProblemError,
    load_problems,
)
from rstar2_env.problems.records import as_problem
from rstar2_env.testing.harness import require
from rstar2_env.testing.randomness import untouched
from rstar2_env.testing.runner import by_name, run_checks
from rstar2_env.testing.training.examples import outcomes_of
from rstar2_env.testing.training.lookup import given_to, maker, pickled, resumed, samplers

PROBLEMS = tuple(f"problem-{number}" for number in range(12))
_STEPS, _DRAWN = 12, 4


@dataclass(frozen=True, slots=True)
class SamplerHarness:
    """One sampler under test.

    Attributes:
        make: Function that makes a new sampler from a source of problems and a seed. The source is ``None`` if the
            environment chooses problems by the seed.
        sources: The sources to test.
    """

    make: Callable[[ProblemSource | None, int], Any]
    sources: Sequence[ProblemSource | None]

    def outcomes(self, starts: Sequence[Any], step: int, sampler_rates: Sequence[float] = (0.0, 0.3, 0.9)) -> list[Any]:
        """Make the outcomes of one step, with pass rates from ``sampler_rates``; sometimes one group is unavailable."""
        rng = np.random.default_rng([step, 5])
        mixtures = []
        for number, start in enumerate(starts):
            counted = 0 if step % 5 == 4 and number == 0 else 8
            place = sum(map(ord, start.problem_id)) if start.problem_id else start.seed
            wins = int(rng.binomial(counted, sampler_rates[place % len(sampler_rates)]))
            mixtures.append([1.0] * wins + [0.0] * (counted - wins))
        return outcomes_of(mixtures, starts)

    def run(self, sampler: Any, steps: range) -> list[Any]:
        """Call ``draw`` and ``observe`` for several steps; return the starts that each step drew."""
        drawn = []
        for step in steps:
            starts = sampler.draw(_DRAWN)
            drawn.append(starts)
            sampler.observe(self.outcomes(starts, step))
        return drawn


def draws(harness: SamplerHarness) -> None:
    """Check that ``draw(n)`` returns ``n`` starts, whose problems the source contains or the sampler itself made."""
    for problems in harness.sources:
        sampler = harness.make(problems, 0)
        require(sampler.draw(0) == [], "draw(0) returned something")
        for count in (1, 5, 30):
            drawn: Any = sampler.draw(count)
            whole = isinstance(drawn, list) and all(isinstance(one, samplers.Start) for one in drawn)
            require(whole, f"`draw` returned {drawn!r:.80}; return a list of Start")
            require(len(drawn) == count, f"draw({count}) returned {len(drawn)} starts")
            for one in drawn:
                fits = type(one.seed) is int and 0 <= one.seed < 2**63
                require(fits, f"the seed of a start is {one.seed!r}, not an int from 0 to 2**63 - 1")
                if "problem" in one.options:
                    as_problem(one.options["problem"])  # a new problem, which the sampler made
                    continue
                require(
                    _known(problems, one.problem_id),
                    f"it drew the problem {one.problem_id!r}, which is not among its problems",
                )


def seeds(harness: SamplerHarness) -> None:
    """Check that the same seed gives the same draws, also in another sampler; another seed gives different draws."""
    for problems in harness.sources:
        with untouched():
            first = harness.run(harness.make(problems, 3), range(_STEPS))
        require(first == harness.run(harness.make(problems, 3), range(_STEPS)), "the same seed gives different draws")
        require(first != harness.run(harness.make(problems, 4), range(_STEPS)), "another seed gives the same draws")


def fresh_seeds(harness: SamplerHarness) -> None:
    """Check that all starts have different seeds, so that a repeated problem is played differently."""
    for problems in harness.sources:
        drawn = [start.seed for step in harness.run(harness.make(problems, 0), range(_STEPS)) for start in step]
        require(len(set(drawn)) == len(drawn), "two starts have the same seed")


def parts_of_a_draw(harness: SamplerHarness) -> None:
    """Check that ``draw(a)`` and then ``draw(b)`` give the starts of ``draw(a + b)``."""
    for problems in harness.sources:
        one, other = harness.make(problems, 1), harness.make(problems, 1)
        for sampler in (one, other):
            harness.run(sampler, range(3))
        for a, b in ((1, 1), (3, 5), (10, 0), (0, 7)):
            together, apart = one.draw(a + b), other.draw(a) + other.draw(b)
            require(together == apart, f"draw({a}) and draw({b}) give different starts than draw({a + b})")


def outcomes(harness: SamplerHarness) -> None:
    """Check that ``observe`` accepts late outcomes, outcomes of several draws, unavailable groups and an empty list."""
    for problems in harness.sources:
        sampler = harness.make(problems, 2)
        drawn = harness.run(sampler, range(_STEPS))
        sampler.observe([])
        # A step may be refilled with further groups, which are observed with it; and steps may be observed late.
        sampler.observe(harness.outcomes([start for step in drawn[:2] for start in step], 4))
        sampler.observe(harness.outcomes(drawn[0], 1, (1.0,)))
        sampler.observe(harness.outcomes(drawn[1], 2, (0.0,)))
        require(len(sampler.draw(8)) == 8, "after many outcomes, draw(8) does not return 8 starts")


def checkpoints(harness: SamplerHarness) -> None:
    """Check that ``state_dict`` can be stored as JSON, and that a new sampler continues from it like the saved one."""
    for problems in harness.sources:
        for stop in (0, 1, _STEPS // 2):
            whole = harness.run(harness.make(problems, 6), range(_STEPS))
            sampler = harness.make(problems, 6)
            harness.run(sampler, range(stop))
            kept = json.dumps(sampler.state_dict(), allow_nan=False)
            rest = harness.run(resumed(sampler, harness.make(problems, 6)), range(stop, _STEPS))
            require(
                rest == whole[stop:], f"if it continues from the state after {stop} steps, it draws different starts"
            )
            again = resumed(sampler, harness.make(problems, 6))
            same = json.dumps(again.state_dict()) == kept
            require(same, "a sampler that loaded a state returns a different state")


def figures(harness: SamplerHarness) -> None:
    """Check that ``figures``, if defined, returns finite numbers by name at any time and changes no later draw."""
    for problems in harness.sources:
        sampler, silent = harness.make(problems, 6), harness.make(problems, 6)
        if not hasattr(sampler, "figures"):
            return
        for step in range(_STEPS):
            found: Any = sampler.figures()
            whole = isinstance(found, Mapping) and all(isinstance(name, str) for name in found)
            require(whole, f"`figures` returned {found!r:.80}; return numbers by name")
            finite = all(isinstance(one, (int, float)) and math.isfinite(one) for one in found.values())
            require(finite, f"`figures` returned {found!r:.80}; return finite numbers")
            steps = range(step, step + 1)
            require(
                harness.run(sampler, steps) == harness.run(silent, steps),
                "after a call of `figures`, it draws different starts",
            )


def pickling(harness: SamplerHarness) -> None:
    """Check that a pickled copy, made midway through a run, draws the same starts as the original."""
    for problems in harness.sources:
        sampler = harness.make(problems, 6)
        harness.run(sampler, range(3))
        twin = pickled(sampler)
        same = harness.run(twin, range(3, 6)) == harness.run(sampler, range(3, 6))
        require(same, "the unpickled copy of a sampler in the middle of a run draws different starts")


SAMPLER_CHECKS = by_name(draws, seeds, fresh_seeds, parts_of_a_draw, outcomes, checkpoints, figures, pickling)
"""Checks by name; the first line of a check's docstring describes the check."""


def check_sampler(
    sampler: PartSpec | Callable[..., object],
    *,
    problems: Sequence[str] | ProblemSource | None = PROBLEMS,
    skip: Collection[str] = (),
    **options: Any,
) -> list[str]:
    """Check a sampler against its contract (docs/part-interfaces.md). Needs no pytest and no torch.

    Args:
        sampler: A name as a recipe writes it (``"uniform"``, ``"./mine.py:Name"``), or a class.
        problems: A source of problems; or ids, from which the check makes a source with three origins and three levels
            of difficulty; or ``None`` for a sampler that draws only seeds. A sampler that also accepts ``None`` or
            an unlimited mixture of sources is checked with these too.
        skip: Names of checks to leave out; see ``rstar2_env.testing.SAMPLER_CHECKS``.
        **options: Options of the sampler.

    Returns:
        The names of the checks that were made.

    Raises:
        ConformanceError: The sampler breaks the contract; the message lists every clause that it breaks.
        UnknownNameError: There is no sampler with this name, or ``skip`` contains a name that is not a check.
        ConfigurationError: The sampler does not accept the options, or ``sampler`` is already an object.
    """
    if not isinstance(sampler, (str, Mapping, list, tuple)) and hasattr(type(sampler), "draw"):
        raise ConfigurationError(
            "check_sampler makes samplers with several seeds: give it a name or a class, not a sampler."
        )

    def make(source: ProblemSource | None, seed: int) -> Any:
        ids = source.ids if isinstance(source, FiniteSource) else None
        given = given_to("sampler", sampler, {"ids": ids, "seed": seed, "problems": source})
        return maker("sampler", sampler, options, **given)[1]()

    source = _source(problems) if isinstance(problems, Sequence) else problems
    make(source, 0)  # errors about the options are raised unchanged
    sources = [source]
    for other in () if source is None else (_unlimited(), None):
        try:
            make(other, 0)
            sources.append(other)
        except ConfigurationError:
            pass  # the sampler needs problems of another form
    what, _ = maker("sampler", sampler, options)
    return run_checks(f"The sampler {what}", SAMPLER_CHECKS, SamplerHarness(make, sources), skip=skip)


def _source(ids: Sequence[str]) -> FixedSource:
    kinds = ("sums", "products", "powers")
    return FixedSource(
        [
            Problem(name, f"What is {name}?", "1", kinds[number % 3], {"level": number % 3 + 1})
            for number, name in enumerate(ids)
        ]
    )


def _unlimited() -> ProblemSource:
    return load_problems({"mix": [{"spec": "arithmetic:level=1", "weight": 3}, {"spec": "arithmetic:level=2"}]})


def _known(problems: ProblemSource | None, problem_id: str) -> bool:
    if problems is None:
        return True
    if not problem_id:  # the environment chooses the problem by the seed
        return not isinstance(problems, FiniteSource)
    try:
        problems.get(problem_id)
    except UnknownProblemError:
        return False
    return True
