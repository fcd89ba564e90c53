"""One way in for every kind of problem source: a file, records in memory, a family's name, or a source."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from rstar2_env.errors import ConfigurationError, UnknownNameError
from rstar2_env.options import call_with_options, parse_options
from rstar2_env.problems.families import families
from rstar2_env.problems.jsonl import read_jsonl
from rstar2_env.problems.problem import Problem
from rstar2_env.problems.records import as_problem
from rstar2_env.problems.source import FixedSource, ProblemSource

ProblemSpec: TypeAlias = "str | os.PathLike[str] | Iterable[Problem | Mapping[str, Any]] | ProblemSource"

_HASHES = 1 << 32


def load_problems(
    spec: ProblemSpec, *, split: str = "train", seed: int = 0, holdout: float = 0.0, **options: Any
) -> ProblemSource:
    """Return the problems that ``spec`` means.

    Args:
        spec: A JSONL file; a list of dicts or ``Problem``s; a source, which is returned as it is; or the name of a
            family, alone ("arithmetic") or with options ("arithmetic:level=3,split=test"), which go before the
            arguments of the same name.
        split: Which part to give. A family has splits of its own. A file or a list is one part, which is labelled so,
            unless ``holdout`` divides it.
        seed: Of a procedural family.
        holdout: Share of a file's or a list's problems that are its "test" split; the others are its "train" split.
            A hash of the question decides, so the same question is never in both.
        **options: Options of the family.

    Raises:
        ConfigurationError: The file cannot be read, an option is unknown or out of its range, or the split is empty.
        ProblemFormatError: A record is not a problem; the message names the place and the field.
        UnknownNameError: ``spec`` is neither a file nor a family.
    """
    if isinstance(spec, ProblemSource):
        _refuse_options(options, holdout, "a source that exists already")
        return spec
    if isinstance(spec, str):
        name, _, written = spec.partition(":")
        if name in families:
            _refuse_options({}, holdout, f"the family {name!r}, which has splits of its own")
            options = {"split": split, "seed": seed, **options, **parse_options(filter(None, written.split(",")))}
            return call_with_options(f"problem family {name!r}", families.get(name), options)
        if not _looks_like_a_file(spec):
            raise UnknownNameError("problem family or file", spec, families)
    if isinstance(spec, (str, os.PathLike)):
        path = Path(spec)
        _refuse_options(options, 0.0, f"the file {path}")
        return _part(read_jsonl(path), path.stem, split, holdout)
    if isinstance(spec, Mapping) or not isinstance(spec, Iterable):
        raise ConfigurationError(
            "problems must be a JSONL file, a list of dicts or Problems, a family's name or a source, not "
            f"{type(spec).__name__}."
        )
    _refuse_options(options, 0.0, "a list of problems")
    problems = [
        as_problem(record, where=f"problems[{index}]", default_id=f"problem-{index}")
        for index, record in enumerate(spec)
    ]
    return _part(list(FixedSource(problems)), "problems", split, holdout)


def _part(problems: list[Problem], name: str, split: str, holdout: float) -> FixedSource:
    if not 0 <= holdout < 1:
        raise ConfigurationError(
            f"holdout is a share of the problems, from 0 up to but not including 1, not {holdout}."
        )
    if holdout == 0:
        return FixedSource(problems, name=name, split=split)
    if split not in ("train", "test"):
        raise ConfigurationError(f"With holdout, {name} has the splits train and test, not {split!r}.")
    part = [problem for problem in problems if (_hash(problem.question) < holdout * _HASHES) == (split == "test")]
    if not part:
        raise ConfigurationError(
            f"holdout={holdout} of the {len(problems)} problems of {name} leaves the split {split!r} empty."
        )
    return FixedSource(part, name=name, split=split)


def _hash(question: str) -> int:
    words = " ".join(question.split())
    return int.from_bytes(hashlib.blake2b(words.encode("utf-8", "surrogatepass"), digest_size=4).digest(), "big")


def _refuse_options(options: Mapping[str, Any], holdout: float, what: str) -> None:
    names = [*options, *(["holdout"] if holdout else [])]
    if names:
        raise ConfigurationError(f"{', '.join(names)}: not an option of {what}.")


def _looks_like_a_file(spec: str) -> bool:
    return os.sep in spec or bool(Path(spec).suffix) or Path(spec).exists()
