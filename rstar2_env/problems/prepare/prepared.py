"""Prepares problems for training: load, filter, decontaminate, mix, split, and report removed problems with reasons.

The filters run in this order: integer answers, length, verifiable answers, duplicates (over all sources together, the
first source first), overlap with benchmarks. All problems are held in memory. Not covered: filters that need a policy's
episodes.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.declare import CheckedOptions, option
from rstar2_env.problems.decontaminate import Benchmarks
from rstar2_env.problems.prepare.duplicates import unique_questions
from rstar2_env.problems.prepare.integers import integer_answers
from rstar2_env.problems.prepare.lengths import fitting_lengths
from rstar2_env.problems.prepare.mixing import mix
from rstar2_env.problems.prepare.pinned import Shelf
from rstar2_env.problems.prepare.removed import Removed, sift
from rstar2_env.problems.prepare.splits import split_questions
from rstar2_env.problems.prepare.verifiable import verifiable_answers
from rstar2_env.problems.problem import Problem

EXAMPLES = 5
"""Number of removed problems per filter that a report shows."""
_MARK = "/"
"""Text between a source's name and the rest of a problem's id."""
_Filter = Callable[[list[Problem]], tuple[list[Problem], list[Removed]]]


@dataclass(frozen=True)
class SourceOptions(CheckedOptions):
    """Options of one source of problems.

    Attributes:
        problems: Any value that ``load_problems`` accepts: a file, the name of a data set or a family, or a mapping.
        split: The split to use.
        take: Number of problems to take from the start; ``None`` for all.
        weight: Weight in the mixture. Either all sources have a weight or none; without weights, all problems of all
            sources are used.
    """

    problems: str | dict[str, Any]
    split: str = "train"
    take: int | None = option(None, least=1)
    weight: float | None = option(None, above=0)


@dataclass(frozen=True)
class PrepareOptions(CheckedOptions):
    """Options of the preparation of problems.

    Attributes:
        sources: The sources by name; a name does not contain ``/``.
        against: Benchmarks to decontaminate against (their split ``test``), each as ``load_problems`` accepts it.
        ngram: Length in words of the n-grams compared with benchmarks; shorter questions are compared as a whole.
        integers: Keep only problems with an integer answer.
        most_digits: Maximum number of digits of an integer answer; ``None`` for no bound.
        verifiable: Keep only problems whose gold answer the verifier can check.
        least_length: Minimum number of characters of a question.
        most_length: Maximum number of characters of a question.
        unique: Keep each question once, and remove questions with different answers.
        total: Number of problems in the mixture; ``None`` for the largest possible mixture: with weights, limited by
            the source that has the fewest problems for its weight; without weights, all problems.
        splits: Share of the problems in each split, by its name.
        seed: Seed of the mixture and of the order; ``None`` means 0, or the pipeline's seed in a pipeline.
    """

    sources: dict[str, SourceOptions]
    against: list[str] = field(default_factory=list)
    ngram: int = option(8, least=1)
    integers: bool = True
    most_digits: int | None = option(None, least=1)
    verifiable: bool = True
    least_length: int = option(1, least=0)
    most_length: int = option(8192, least=1)
    unique: bool = True
    total: int | None = option(None, least=1)
    splits: dict[str, float] = field(default_factory=lambda: {"train": 1.0})
    seed: int | None = option(None, least=0)

    def with_seed(self, seed: int) -> PrepareOptions:
        """Return the same options with another seed, as a plain ``PrepareOptions`` even for a subclass."""
        own = {one.name: getattr(self, one.name) for one in dataclasses.fields(PrepareOptions)}
        return PrepareOptions(**{**own, "seed": seed})

    def __post_init__(self) -> None:
        """Check every option.

        Raises:
            ConfigurationError: A value is invalid, there is no source, a source has no usable name, or only some
                sources have a weight.
        """
        super().__post_init__()
        if not self.sources:
            raise ConfigurationError("At least one source of problems is required.", option="sources")
        for name in self.sources:
            if _MARK in name:
                raise ConfigurationError(
                    f"The name of the source {name!r} contains {_MARK!r}, which separates the source from the rest "
                    "of a problem's id. Choose a name without it, and give the location of the data in the "
                    "option `problems` of the source.",
                    option="sources",
                )
        unweighted = [name for name, source in self.sources.items() if source.weight is None]
        if unweighted and len(unweighted) < len(self.sources):
            raise ConfigurationError(
                "Either all sources or none of them must have a weight; these sources have no weight: "
                f"{', '.join(unweighted)}.",
                option="sources",
            )


@dataclass(slots=True)
class Prepared:
    """The prepared problems, and the removed problems with reasons.

    Attributes:
        splits: The problems of each split.
        removed: The removed problems, in the order of the filters.
        loaded: Number of problems of each source before the filters.
        kept: Number of problems of each source in the mixture.
        not_drawn: Number of problems that passed all filters but are not in the mixture.
    """

    splits: dict[str, list[Problem]]
    removed: list[Removed]
    loaded: dict[str, int]
    kept: dict[str, int]
    not_drawn: int = 0

    def report(self) -> dict[str, Any]:
        """Return a report as JSON values: counts, and examples of the problems that each filter removed."""
        by_filter: dict[str, list[Removed]] = {}
        for one in self.removed:
            by_filter.setdefault(one.filter, []).append(one)
        return {
            "loaded": self.loaded,
            "kept": self.kept,
            "removed": {
                name: {
                    "problems": len(several),
                    "by_source": dict(Counter(_source(one.problem_id) for one in several)),
                    "examples": [one.to_dict() for one in several[:EXAMPLES]],
                }
                for name, several in by_filter.items()
            },
            "not_drawn": self.not_drawn,
            "splits": {name: len(problems) for name, problems in self.splits.items()},
        }


def prepare(
    options: PrepareOptions, shelf: Shelf, *, report: Callable[[int, int], None] = lambda done, total: None
) -> Prepared:
    """Load, filter, decontaminate, mix and split problems, as the options specify.

    Args:
        options: The options.
        shelf: The places where data sets are looked up.
        report: Receives the number of finished steps and the total number of steps.

    Raises:
        ConfigurationError: A source cannot be loaded or does not match the lock, or no problem is left.
    """
    steps = _filters(options, shelf)
    total = len(options.sources) + len(steps) + 1
    problems: list[Problem] = []
    loaded: dict[str, int] = {}
    for number, (name, source) in enumerate(options.sources.items()):
        report(number, total)
        found = shelf.problems(name, source.problems, split=source.split, count=source.take)
        loaded[name] = len(found)
        problems += [dataclasses.replace(problem, id=f"{name}{_MARK}{problem.id}") for problem in found]
    removed: list[Removed] = []
    for number, step in enumerate(steps, len(options.sources)):
        report(number, total)
        problems, gone = step(problems)
        removed += gone
        if not problems:
            one = gone[0]
            raise ConfigurationError(
                f"None of the {sum(loaded.values())} loaded problems is left: the filter {one.filter!r} "
                f"removed the last {len(gone)} of them, such as {one.problem_id}: {one.why}."
            )
    mixed = _mixed(problems, options)
    report(total, total)
    return Prepared(
        splits=split_questions(mixed, options.splits),
        removed=removed,
        loaded=loaded,
        kept={name: sum(_source(problem.id) == name for problem in mixed) for name in options.sources},
        not_drawn=len(problems) - len(mixed),
    )


def _filters(options: PrepareOptions, shelf: Shelf) -> Sequence[_Filter]:
    found: list[_Filter] = []
    if options.integers:
        found.append(lambda problems: integer_answers(problems, most_digits=options.most_digits))
    found.append(lambda problems: fitting_lengths(problems, least=options.least_length, most=options.most_length))
    if options.verifiable:
        found.append(verifiable_answers)
    if options.unique:
        found.append(unique_questions)
    if options.against:
        found.append(lambda problems: _decontaminated(problems, options, shelf))
    return found


def _decontaminated(
    problems: list[Problem], options: PrepareOptions, shelf: Shelf
) -> tuple[list[Problem], list[Removed]]:
    against: Mapping[str, list[Problem]] = {
        name: shelf.problems(f"against {name}", name, split="test", count=None) for name in options.against
    }
    benchmarks = Benchmarks(against, ngram=options.ngram)

    def judge(problem: Problem) -> str | None:
        overlap = benchmarks.overlap(problem)
        if overlap is None:
            return None
        return f"the question overlaps {overlap.benchmark_id} of {overlap.benchmark}: “{overlap.words}”"

    return sift(problems, "benchmarks", judge)


def _mixed(problems: list[Problem], options: PrepareOptions) -> list[Problem]:
    names = list(options.sources)
    parts = {name: [problem for problem in problems if _source(problem.id) == name] for name in names}
    weights = {name: source.weight for name, source in options.sources.items()}
    each = {name: 1.0 if weight is None else weight for name, weight in weights.items()}
    total = options.total
    if None in weights.values():
        # Without weights every problem is equally likely: each source is weighted by its size.
        each = {name: float(len(part)) for name, part in parts.items() if part}
        parts = {name: parts[name] for name in each}
        total = min(len(problems), options.total or len(problems))
    return mix(parts, each, total=total, seed=options.seed or 0)


def _source(problem_id: str) -> str:
    return problem_id.partition(_MARK)[0]
