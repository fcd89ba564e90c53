"""The entry point for every kind of problem source: files, data sets, records in memory, families, mixtures."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from rstar2_env.core.errors import ConfigurationError, UnknownNameError
from rstar2_env.core.options.declare import call_with_options, parse_options, typed_options
from rstar2_env.core.options.text import split_list
from rstar2_env.problems.cache import cached, stamp
from rstar2_env.problems.catalog import NAMED_SETS, NamedSet, named_set
from rstar2_env.problems.families import FAMILIES
from rstar2_env.problems.files.columns import make_columns
from rstar2_env.problems.files.formats import Reading, empty, format_of, read_file
from rstar2_env.problems.files.hub import DatasetTable, hub_rows, open_saved
from rstar2_env.problems.files.stream import JsonlTable, LazySource, Table
from rstar2_env.problems.filters import Condition, make_where
from rstar2_env.problems.mixture import MixtureSource
from rstar2_env.problems.problem import Problem
from rstar2_env.problems.records import as_problem
from rstar2_env.problems.source import FixedSource, ProblemSource
from rstar2_env.problems.spec import json_spec, split_spec

ProblemSpec: TypeAlias = (
    "str | os.PathLike[str] | Iterable[Problem | Mapping[str, Any]] | Mapping[str, Any] | ProblemSource"
)

STREAM_FROM_BYTES = 256 << 20
"""Size, in bytes, from which a JSONL file is streamed unless ``stream=False``."""

_HASHES = 1 << 32
_KEYS = ("path", "hub", "spec", "mix")


def load_problems(
    spec: ProblemSpec, *, split: str = "train", seed: int = 0, holdout: float = 0.0, **options: Any
) -> ProblemSource:
    """Return the source of problems that ``spec`` describes.

    Args:
        spec: A file (JSONL, JSON, CSV, TSV, Parquet), a folder written by ``datasets.save_to_disk``, the name of a data
            set ("gsm8k") or a family ("arithmetic"), or ``"hf:owner/name"`` for any data set on the Hugging Face Hub.
            Options may follow each of these ("arithmetic:level=3,split=test"); they override the arguments of the same
            name. Or a list of dicts or ``Problem``s; a data frame of pandas or polars, with a row for each problem; or
            a source, which is returned unchanged. Or a mapping: ``{"path" | "hub" | "spec": ..., option: ...}``, or
            ``{"mix": [...]}``, whose parts may have a ``weight``.
        split: The split to return. Families and data sets have their own splits. A file or a list has no splits, so
            ``split`` is ignored, unless ``holdout`` divides it into "train" and "test".
        seed: Seed of a procedural family or a mixture.
        holdout: Fraction, 0 to 1, of the problems of a file or a list that form its "test" split; the others form its
            "train" split. A hash of the question decides, so the same question is never in both.
        **options: Options of the family; or of a file or a data set: ``columns``, ``keep``, ``where``, ``unique``,
            ``skip_incomplete``, ``stream``, ``format``, ``config``, ``revision``, ``download``, ``hub_folder``,
            ``like``, ``name`` (see docs/problems.md).

    Raises:
        ConfigurationError: The source cannot be read, an option is unknown or out of range, or the split is empty.
        ProblemFormatError: A record is not a problem; the message names the place and the field.
        UnknownNameError: ``spec`` is not a file, family or data set.
        MissingExtraError: Reading the source needs a package that is not installed.
    """
    if isinstance(spec, ProblemSource):
        _refuse_options(options, holdout, "A problem source that already exists")
        return spec
    common: dict[str, Any] = {"split": split, "seed": seed, "holdout": holdout}
    spec = _rows_of_frame(spec)
    if isinstance(spec, str):
        if spec.lstrip().startswith("{"):
            return load_problems(json_spec(spec), **common, **options)
        return _by_name(spec, common, options)
    if isinstance(spec, os.PathLike):
        return _file(Path(spec), common, options)
    if isinstance(spec, Mapping) and any(key in spec for key in _KEYS):
        return _by_mapping(spec, common, options)
    if isinstance(spec, Mapping) or not isinstance(spec, Iterable):
        raise ConfigurationError(
            "`problems` must be a file, a list of dicts or Problems, the name of a family or data set, a "
            'mapping with "path", "hub", "spec" or "mix", or a problem source, not '
            f"{type(spec).__name__}."
        )
    return call_with_options("list of problems", partial(_records, spec, split, holdout), options)


def _rows_of_frame(spec: Any) -> Any:
    """Return the rows of a data frame as dicts, without missing values; return anything else unchanged."""
    if not hasattr(spec, "columns") or not hasattr(spec, "shape"):
        return spec
    rows = spec.to_dicts() if hasattr(spec, "to_dicts") else spec.to_dict("records")
    # A missing value is None in polars, and in pandas not equal to itself.
    return [{name: value for name, value in row.items() if value is not None and value == value} for row in rows]


def _by_name(spec: str, common: Mapping[str, Any], options: Mapping[str, Any]) -> ProblemSource:
    name, written = split_spec(spec)
    family, _, rest = spec.partition(":")
    if family in FAMILIES:
        _refuse_options({}, common["holdout"], f"The family {family!r}, which has its own splits,")
        written = parse_options(split_list(rest))
        together = {"split": common["split"], "seed": common["seed"], **options, **written}
        return call_with_options(f"problem family {family!r}", FAMILIES.get(family), together)
    common = {**common, **_common(written)}
    together = {**options, **written}
    if name.startswith("hf:"):
        return _hub(name.removeprefix("hf:"), common, together)
    if name in NAMED_SETS and not Path(name).exists():
        return _named(named_set(name), common, together)
    if not _looks_like_a_file(name):
        raise UnknownNameError("problem source", name, [*FAMILIES, *NAMED_SETS])
    return _file(Path(name), common, together)


def _by_mapping(spec: Mapping[str, Any], common: Mapping[str, Any], options: Mapping[str, Any]) -> ProblemSource:
    kinds = [key for key in _KEYS if key in spec]
    if len(kinds) > 1:
        raise ConfigurationError(
            f"A source of problems must have only one of the keys {', '.join(map(repr, _KEYS))}; got "
            f"{', '.join(map(repr, kinds))}."
        )
    rest = {key: value for key, value in spec.items() if key not in _KEYS}
    common = {**common, **_common(rest)}
    together = {**options, **rest}
    value = spec[kinds[0]]
    if kinds[0] == "mix":
        return call_with_options("mixture", partial(_mixture, value, common), together)
    if kinds[0] == "hub":
        return _hub(value, common, together)
    if kinds[0] == "path":
        return _file(Path(value), common, together)
    return load_problems(value, **common, **together)


def _common(written: dict[str, Any]) -> dict[str, Any]:
    """Remove from ``written``, and return, the options that ``load_problems`` itself takes (``split``, ...)."""

    def own(*, split: str = "", seed: int = 0, holdout: float = 0.0) -> None: ...

    taken: dict[str, Any] = {name: written.pop(name) for name in ("split", "seed", "holdout") if name in written}
    return typed_options("source", own, taken)


def _mixture(parts: Any, common: Mapping[str, Any], *, name: str | None = None) -> MixtureSource:
    if isinstance(parts, (str, Mapping)) or not isinstance(parts, Iterable):
        raise ConfigurationError(f'"mix" must be a list of sources, not {type(parts).__name__}.')
    found: list[tuple[ProblemSource, float]] = []
    for part in parts:
        weight = 1.0
        if isinstance(part, Mapping) and any(key in part for key in _KEYS):
            part = dict(part)
            weight = part.pop("weight", 1.0)
        found.append((load_problems(part, **common), weight))
    return MixtureSource(found, seed=common["seed"], name=name)


def _named(entry: NamedSet, common: Mapping[str, Any], options: Mapping[str, Any]) -> ProblemSource:
    split = common["split"]
    held_out = common["holdout"] > 0
    theirs = entry.splits.get("train" if held_out else split)
    if theirs is None:
        only = ", ".join(entry.splits)
        hint = "; or pass holdout= to divide it into train and test" if only == "train" else ""
        raise ConfigurationError(
            f"The set {entry.name} has only the split {only}, not {split!r}: pass split={only!r}{hint}."
        )
    together = {"config": entry.config, "columns": entry.columns, "name": entry.name, **entry.options, **options}
    return _hub(entry.hub, common, together, theirs=theirs)


def _hub(
    repository: str, common: Mapping[str, Any], options: Mapping[str, Any], *, theirs: str | None = None
) -> ProblemSource:
    if not isinstance(repository, str) or repository.count("/") != 1:
        raise ConfigurationError(f"A data set on the Hub must be named owner/name, not {repository!r}.")

    def make(
        *,
        config: str | None = None,
        name: str | None = None,
        revision: str | None = None,
        download: bool = True,
        hub_folder: str | None = None,
        **reading: Any,
    ) -> ProblemSource:
        how = _reading(f"set {repository}", reading)
        hub_split = theirs or ("train" if common["holdout"] > 0 else common["split"])
        label = name or repository

        def opened() -> ProblemSource:
            rows = hub_rows(repository, config, hub_split, revision=revision, download=download, hub_folder=hub_folder)
            table = DatasetTable(rows, repository, how.columns)
            return _lazy(table, how, repository.split("/")[1], label, repository, common)

        where = (repository, revision, download, hub_folder, config, hub_split)
        return cached(("hub", *where, label, how, *common.values()), opened)

    return call_with_options(f"set {repository}", make, options)


def _file(path: Path, common: Mapping[str, Any], options: Mapping[str, Any]) -> ProblemSource:
    if (like := options.get("like")) is not None:
        entry = named_set(like)
        options = {"columns": entry.columns, **entry.options, **{key: options[key] for key in options if key != "like"}}

    def make(
        *, format: str | None = None, stream: bool | None = None, name: str | None = None, **reading: Any
    ) -> ProblemSource:
        how = _reading(f"file {path}", reading)
        label = name or path.stem
        kind = "folder" if path.is_dir() else format_of(path, format)
        mark = stamp(path)
        big = mark is not None and mark[2] >= STREAM_FROM_BYTES
        if stream and kind not in ("jsonl", "folder"):
            raise ConfigurationError(
                f"{path}: only JSONL files and folders written by save_to_disk can be streamed, not "
                f"{kind}; convert the source to JSONL with `rstar2 problems write`."
            )

        def opened() -> ProblemSource:
            if kind == "folder":
                # A data set without splits is treated like a file; otherwise ``split`` names one of its splits.
                return _lazy(open_saved(path, common["split"], how.columns), how, path.stem, label, path.name, common)
            if kind == "jsonl" and (big if stream is None else stream):
                return _lazy(JsonlTable(path, how.columns), how, path.stem, label, path.name, common, one_part=True)
            problems = cached(("file", mark, kind, how), lambda: FixedSource(read_file(path, how, format=kind)))
            if common["holdout"] == 0 or mark is None:
                return FixedSource(list(problems), name=label, split="")
            return _part(list(problems), label, common["split"], common["holdout"])

        _check_holdout(label, common)
        if mark is None:
            return opened()  # raises the error that states why the path cannot be read
        return cached((mark, kind, stream, label, how, *common.values()), opened)

    return call_with_options(f"file {path}", make, options)


def _lazy(
    table: Table,
    how: Reading,
    stem: str,
    label: str,
    source: str,
    common: Mapping[str, Any],
    *,
    one_part: bool = False,
) -> LazySource:
    _check_holdout(label, common)
    part: Callable[[str], bool] | None = None
    if common["holdout"] > 0:
        part = partial(_belongs, split=common["split"], holdout=common["holdout"])
    split = "" if one_part and part is None else common["split"]
    return LazySource(table, how, stem=stem, name=label, split=split, source=source, part=part)


def _records(
    records: Iterable[Any],
    split: str,
    holdout: float,
    *,
    columns: Mapping[str, str] | None = None,
    keep: Sequence[str] | None = None,
    where: Any = None,
    name: str = "problems",
) -> ProblemSource:
    names, conditions = make_columns(columns, keep), make_where(where)
    problems = [
        as_problem(
            record if isinstance(record, Problem) else names(record, f"problems[{index}]"),
            where=f"problems[{index}]",
            default_id=f"problem-{index}",
        )
        for index, record in enumerate(records)
    ]
    kept = [problem for problem in problems if all(condition(problem) for condition in conditions)]
    if conditions and not kept:
        raise empty(name, len(problems))
    _check_holdout(name, {"split": split, "holdout": holdout})
    return _part(list(FixedSource(kept)), name, split, holdout)


def _reading(what: str, options: Mapping[str, Any]) -> Reading:
    def read(
        *,
        columns: Mapping[str, str] | None = None,
        keep: Sequence[str] | str | None = None,
        where: str | Condition | Sequence[str | Condition] | None = None,
        unique: bool = False,
        skip_incomplete: bool = False,
    ) -> Reading:
        return Reading(make_columns(columns, keep), make_where(where), bool(unique), bool(skip_incomplete))

    return call_with_options(what, read, options)


def _check_holdout(name: str, common: Mapping[str, Any]) -> None:
    if not 0 <= common["holdout"] < 1:
        raise ConfigurationError(
            f"`holdout` must be a share of the problems, at least 0 and less than 1; got {common['holdout']!r}."
        )
    if common["holdout"] and common["split"] not in ("train", "test"):
        raise ConfigurationError(f"With holdout, {name} has only the splits train and test, not {common['split']!r}.")


def _part(problems: list[Problem], name: str, split: str, holdout: float) -> FixedSource:
    if holdout == 0:
        return FixedSource(problems, name=name, split="")
    part = [problem for problem in problems if _belongs(problem.question, split=split, holdout=holdout)]
    if not part:
        raise ConfigurationError(
            f"holdout={holdout} of the {len(problems)} problems of {name} leaves the split {split!r} "
            "empty: use more problems, or choose another holdout (0 to hold out none)."
        )
    return FixedSource(part, name=name, split=split)


def _belongs(question: str, *, split: str, holdout: float) -> bool:
    words = " ".join(question.split())
    number = int.from_bytes(hashlib.blake2b(words.encode("utf-8", "surrogatepass"), digest_size=4).digest(), "big")
    return (number < holdout * _HASHES) == (split == "test")


def _refuse_options(options: Mapping[str, Any], holdout: float, what: str) -> None:
    names = [*options, *(["holdout"] if holdout else [])]
    if names:
        raise ConfigurationError(f"{what} does not accept the options {', '.join(names)}.")


def _looks_like_a_file(spec: str) -> bool:
    return os.sep in spec or bool(Path(spec).suffix) or Path(spec).exists()
