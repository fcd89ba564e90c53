"""The protocol of a pipeline stage: options, inputs and outputs, cost, and execution.

A kind of stage is a class (usually a frozen dataclass) in a module of ``stages``, registered in ``STAGES``. The fields
of the class are the stage's options. Not covered: the file format of a pipeline (``file``), the order of its stages
(``plan``), and the choice of the stages to run (``run``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

from rstar2_env.core.options.registry import Registry
from rstar2_env.core.options.user_code import Shape

if TYPE_CHECKING:
    from .cost import Cost, CostInputs

StageMeasurements: TypeAlias = Mapping[str, "float | None"]
"""Measurements of a stage, by name; ``None`` if a value is unknown."""


@dataclass(frozen=True, slots=True)
class Output:
    """A result of a stage that other stages can use.

    Attributes:
        kind: The kind of the output: ``model`` (a folder), ``problems`` or ``traces`` (files of lines), ``episodes``
            (the folder of an evaluation), ``optimizer`` (the folder of a run), or a custom word. An input accepts
            outputs of the same kind.
        path: Path relative to the stage's folder; empty for the folder itself.
        if_taken: Whether the output is needed only if another stage uses it. If a needed output is missing or has
            changed, the stage runs again.
    """

    kind: str
    path: str = ""
    if_taken: bool = False


@dataclass(frozen=True, slots=True)
class Work:
    """Context in which a stage runs: its folder, its seed, and functions that it may call.

    Attributes:
        folder: The stage's folder, which exists. The stage writes only into it.
        seed: Seed of the stage; each round has a different seed.
        round: Number of the round, from 1; 0 outside of rounds.
        resumed: Whether an earlier run started this stage with the same options and inputs but did not finish it; the
            stage then continues from the content of the folder.
        progress: Whether to show progress.
        inherited: File descriptors that child processes must inherit. As long as one of them is open, the pipeline's
            folder is locked for other runners.
        find: Returns the path of a file that an option names; ``None`` if it does not exist. The file is looked up in
            the same folders as input files.
        report: Receives the progress of the stage: the number of finished items and the total.
        say: Prints a sentence for the user.
    """

    folder: Path
    seed: int = 0
    round: int = 0
    resumed: bool = False
    progress: bool = False
    inherited: tuple[int, ...] = ()
    find: Callable[[str], Path | None] = field(default=lambda name: None)
    report: Callable[[int, int], None] = field(default=lambda done, total: None)
    say: Callable[[str], None] = field(default=lambda text: None)


@runtime_checkable
class Stage(Protocol):
    """One stage with its options; its class is registered under the name of its kind.

    An option listed in ``inputs`` is a path or a name (of a model on a hub or of a family of problems), or a list of
    these. References to other stages are replaced by paths before the stage is created.
    """

    @property
    def inputs(self) -> Mapping[str, str]:
        """Names of the options that can refer to another stage's output, each with the kind of that output."""
        ...

    @property
    def outputs(self) -> Mapping[str, Output]:
        """The outputs of the stage, by name."""
        ...

    def resolved(self) -> Mapping[str, Any]:
        """Return all options that determine the outputs, without the inputs; if they change, the stage runs again.

        Raises:
            ConfigurationError: The options contradict each other.
        """
        ...

    def cost(self, about: CostInputs) -> Cost:
        """Estimate the cost of the stage before it runs."""
        ...

    def run(self, work: Work) -> StageMeasurements:
        """Run or resume the stage; return its measurements.

        If the process is killed at any moment, the stage must be able to resume from its folder. When ``run`` returns,
        the outputs exist.
        """
        ...


@runtime_checkable
class NamesSources(Protocol):
    """Protocol of a stage with options that name sources of problems or traces in addition to its inputs."""

    def named_sources(self) -> Iterable[str | Mapping[str, Any]]:
        """Return each source in a form that ``load_problems`` accepts; the stage's digest covers the sources' files."""
        ...


def _is_stage(value: Any) -> bool:
    return isinstance(value, type) and all(hasattr(value, name) for name in ("inputs", "outputs", "run"))


STAGES: Registry[Callable[..., Stage]] = Registry(
    "kind of stage",
    "rstar2_env.trainers.pipeline.stages",
    "rstar2_env.stages",
    shape=Shape(_is_stage, "a class with inputs, outputs and run(work)"),
    named_alone=True,
)
