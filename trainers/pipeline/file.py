"""``read_pipeline``: reads the file of a pipeline and applies overrides from the command line.

Covered: the format of the file, names, the kinds of stages, ``rounds``, and error messages that name the file, the
stage and the field. Not covered: the options of each stage and their references (``plan``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from rstar2_env.core.errors import ConfigurationError, Rstar2Error
from rstar2_env.core.files.config_file import read_mapping
from rstar2_env.core.options.declare import Count, Seed, call_with_options, typed_options
from rstar2_env.core.options.rules import did_you_mean

from ..hooks.criterion import Criterion, read_criterion
from ..options.layers import merged
from .base import STAGES
from .cost import Machine

_PIPELINE = ("name", "summary", "paper", "seed", "machine", "defaults", "shared", "stages")
_ROUNDS = ("rounds", "until", "stages")


@dataclass(frozen=True, slots=True)
class StageSpec:
    """A stage as the file of its pipeline describes it.

    Attributes:
        name: The name of the stage: letters, digits and underscores.
        kind: The kind of the stage, such as ``train``.
        options: The options, with unresolved references to other stages.
    """

    name: str
    kind: str
    options: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Rounds:
    """A group of stages that is repeated in rounds.

    Attributes:
        name: Name of the group.
        times: Maximum number of rounds.
        stages: The stages of a round.
        of: Name of the stage whose measurements ``until`` tests; empty without a criterion.
        until: Criterion that is tested after each round and ends the rounds early; ``None`` for no criterion.
    """

    name: str
    times: int
    stages: tuple[StageSpec, ...]
    of: str = ""
    until: Criterion | None = None


@dataclass(frozen=True, slots=True)
class Pipeline:
    """A pipeline as its file describes it.

    Attributes:
        file: The file from which the pipeline was read.
        name: Name of the pipeline.
        summary: A description in one line.
        paper: The publication that the pipeline follows.
        seed: Seed of every stage that does not set its own.
        machine: The machine for which costs are computed.
        items: The stages and the groups of repeated stages, in order.
    """

    file: Path
    name: str
    summary: str = ""
    paper: str = ""
    seed: Seed = 0
    machine: Machine = field(default_factory=Machine)
    items: tuple[StageSpec | Rounds, ...] = ()

    def stages(self) -> Iterator[StageSpec]:
        """Iterate over every stage once, in order."""
        for item in self.items:
            yield from item.stages if isinstance(item, Rounds) else (item,)

    def record(self) -> dict[str, Any]:
        """Return the pipeline as JSON-compatible values in the format of a pipeline's file."""
        return {
            "name": self.name,
            "summary": self.summary,
            "paper": self.paper,
            "seed": self.seed,
            "machine": asdict(self.machine),
            "stages": {item.name: _record(item) for item in self.items},
        }


def read_pipeline(file: Path, settings: Mapping[str, Any] | None = None) -> Pipeline:
    """Read a pipeline.

    Args:
        file: A YAML, TOML or JSON file.
        settings: Options that override those of the file, as ``parse_options`` returns them:
            ``{"stage1": {"steps": "3"}}``; ``None`` for none.

    Raises:
        ConfigurationError: The file is not a pipeline; the message names the file, the stage and the field.
        UnknownNameError: A kind of stage does not exist.
    """
    found = read_mapping(file)
    _refuse_unknown(found, _PIPELINE, str(file), "A pipeline")
    written = found.get("stages")
    if not isinstance(written, Mapping) or not written:
        raise ConfigurationError(
            f'{file}: the field "stages" is required, and must map the names of the stages to the stages.'
        )
    defaults = found.get("defaults", {})
    if not isinstance(defaults, Mapping) or not all(isinstance(one, Mapping) for one in defaults.values()):
        raise ConfigurationError(f'{file}: the field "defaults" must map kinds of stages to options; got {defaults!r}.')
    for kind in defaults:
        _kind(kind, f"{file}, defaults")
    over = dict(settings or {})
    top: dict[str, Any] = {name: over.pop(name) for name in ("seed", "machine") if name in over}
    items = tuple(_item(str(name), one, defaults, over, str(file)) for name, one in written.items())
    made = Pipeline(file, file.stem, items=items)
    names = [one.name for one in made.stages()] + [item.name for item in items if isinstance(item, Rounds)]
    for name in names:
        if names.count(name) > 1:
            raise ConfigurationError(f"{file}: two stages have the name {name!r}: rename one of them.")
    if over:
        name = next(iter(over))
        near = did_you_mean(name, names)
        raise ConfigurationError(f"{file} does not contain the stage {name!r}.{near} Its stages: {', '.join(names)}.")
    about: dict[str, Any] = {one: found[one] for one in ("name", "summary", "paper", "seed", "machine") if one in found}
    with _naming(str(file)):
        return replace(made, **typed_options("pipeline", Pipeline, merged(about, top)))


def _item(
    name: str, written: Any, defaults: Mapping[str, Any], settings: dict[str, Any], file: str
) -> StageSpec | Rounds:
    where = f"{file}, stage {name!r}"
    if not name.isidentifier():
        raise ConfigurationError(
            f"{where}: the name must consist of letters, digits and underscores, and must not begin with a digit."
        )
    if not isinstance(written, Mapping):
        raise ConfigurationError(f"{where} must be a mapping with a kind and options; got {written!r}.")
    if "rounds" in written or "stages" in written:
        return _rounds(name, written, defaults, settings, file)
    options = _over(written, _settings(settings, name, where))
    kind = options.pop("kind", None)
    if not isinstance(kind, str):
        raise ConfigurationError(f'{where}: "kind" must be one of {", ".join(STAGES)}; got {kind!r}.')
    _kind(kind, where)
    return StageSpec(name, kind, _over(defaults.get(kind, {}), options))


def _over(below: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """Merge options over the defaults ``below``; if they name another engine, drop the default ``engine_options``."""
    engine = options.get("engine")
    if engine is not None and engine != below.get("engine", engine):
        below = {name: value for name, value in below.items() if name != "engine_options"}
    return merged(below, options)


def _rounds(
    name: str, written: Mapping[str, Any], defaults: Mapping[str, Any], settings: dict[str, Any], file: str
) -> Rounds:
    where = f"{file}, rounds {name!r}"
    written = merged(written, _settings(settings, name, where))
    _refuse_unknown(written, _ROUNDS, where, "A group of rounds")
    inner = written.get("stages")
    if not isinstance(inner, Mapping) or not inner:
        raise ConfigurationError(f'{where}: the field "stages" must be a mapping of names to the stages of a round.')
    if "rounds" not in written:
        raise ConfigurationError(f'{where}: the field "rounds" is missing. It must be the maximum number of rounds.')
    with _naming(where):
        times: int = call_with_options("rounds", _times, {"rounds": written["rounds"]})
    stages = []
    for inside, one in inner.items():
        stage = _item(str(inside), one, defaults, settings, file)
        if isinstance(stage, Rounds):
            raise ConfigurationError(
                f"{where}: {inside!r} is a group of rounds inside a group of rounds, which is not supported: "
                "move it to the top level."
            )
        stages.append(stage)
    if written.get("until") is None:
        return Rounds(name, times, tuple(stages))
    with _naming(f"{where}, field 'until'"):
        criterion = read_criterion(str(written["until"]))
    of, dot, figure = criterion.figure.partition(".")
    if not dot or of not in [one.name for one in stages]:
        known = ", ".join(one.name for one in stages)
        raise ConfigurationError(
            f"{where}, field 'until': expected a criterion STAGE.METRIC SIGN NUMBER for one of the stages {known}, "
            f"such as {stages[-1].name}.pass_rate >= 0.9; got {written['until']!r}."
        )
    return Rounds(name, times, tuple(stages), of, Criterion(figure, criterion.sign, criterion.value))


def _times(*, rounds: Count) -> int:
    return rounds


def _settings(settings: dict[str, Any], name: str, where: str) -> Mapping[str, Any]:
    given = settings.pop(name, {})
    if not isinstance(given, Mapping):
        raise ConfigurationError(f"{where}: expected a mapping {name}.OPTION=VALUE; got {name}={given}.")
    return given


def _kind(kind: str, where: str) -> None:
    with _naming(f"{where}, field 'kind'"):
        STAGES.get(kind)


def _refuse_unknown(found: Mapping[str, Any], known: tuple[str, ...], where: str, what: str) -> None:
    for name in found:
        if name not in known:
            near = did_you_mean(str(name), known)
            raise ConfigurationError(
                f"{where}: unknown field {name!r}.{near} {what} has the fields {', '.join(known)}."
            )


@contextmanager
def _naming(where: str) -> Iterator[None]:
    """Context manager that prepends a place in the file to the message of any error that is raised inside it."""
    try:
        yield
    except Rstar2Error as error:
        raise ConfigurationError(f"{where}: {error}") from error


def _record(item: StageSpec | Rounds) -> dict[str, Any]:
    if isinstance(item, StageSpec):
        return {"kind": item.kind, **item.options}
    until = {} if item.until is None else {"until": f"{item.of}.{item.until}"}
    return {"rounds": item.times, **until, "stages": {one.name: _record(one) for one in item.stages}}
