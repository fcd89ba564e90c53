"""What a stage of a pipeline is: options, inputs and outputs, what it costs, and how it runs.

A kind of stage is a class (a frozen dataclass, most simply) in a file of ``stages``, registered in ``STAGES``. Its
fields are its options. Not covered: which stages there are in a pipeline (``file``), their order (``plan``), and when
one runs (``run``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

from rstar2_env.core.options.own_code import Shape
from rstar2_env.core.options.registry import Registry

if TYPE_CHECKING:
    from .cost import About, Cost

Figures: TypeAlias = Mapping[str, "float | None"]
"""What a stage measured, by name."""


@dataclass(frozen=True, slots=True)
class Output:
    """Something that a stage leaves for others.

    Attributes:
        kind: What it is: ``model`` (a folder), ``problems`` or ``traces`` (files of lines), ``episodes`` (the folder of
            an evaluation), ``optimizer`` (the folder of a run), or a word of one's own. An input takes outputs of its
            kind.
        path: Where, relative to the stage's folder; empty for the folder itself.
        if_taken: Whether it has to be there, and stay as it is, only where another stage takes it.
    """

    kind: str
    path: str = ""
    if_taken: bool = False


@dataclass(frozen=True, slots=True)
class Work:
    """What a stage is given to run.

    Attributes:
        folder: The stage's folder, which exists. Everything that it writes goes into it.
        seed: Seed of the pipeline; in rounds, each round has another one.
        round: Number of the round, from 1; 0 outside of rounds.
        resumed: Whether an earlier run began this very stage (the same options, the same content of its inputs) and did
            not get to its end: what is in the folder is to be gone on with.
        progress: Whether to show progress.
        inherited: Numbers of open files that processes which it starts must have too: while one of them lives, no other
            runner works in the pipeline's folder.
        find: Where a file is that an option names, looked for as those of inputs are; ``None`` where there is none.
        report: Is told how far the stage is: how many are done, and of how many.
        say: Tells the user a sentence.
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
    """One stage, with its options; its class is registered by the name of its kind.

    An option that is an input holds a path (or a name: of a model on a hub, of a family of problems) by the time the
    stage is made, or a list of them.
    """

    @property
    def inputs(self) -> Mapping[str, str]:
        """The kind of each option that takes something that another stage left."""
        ...

    @property
    def outputs(self) -> Mapping[str, Output]:
        """What it leaves, by name."""
        ...

    def resolved(self) -> Mapping[str, Any]:
        """Everything that decides what it makes, its inputs' content aside; what differs here makes it run again.

        Raises:
            ConfigurationError: Its options do not fit together.
        """
        ...

    def cost(self, about: About) -> Cost:
        """What it takes, before anything runs."""
        ...

    def run(self, work: Work) -> Figures:
        """Run it, or go on with it; return what it measured.

        A kill at any moment must leave a folder with which it can go on. Once it has returned, its outputs are there.
        """
        ...


@runtime_checkable
class NamesSources(Protocol):
    """A stage whose options name sources of problems or traces beside its inputs."""

    def named_sources(self) -> Iterable[str | Mapping[str, Any]]:
        """Each of them, as ``load_problems`` takes them; the content of those that are files counts."""
        ...


def _is_stage(value: Any) -> bool:
    return isinstance(value, type) and all(hasattr(value, name) for name in ("inputs", "outputs", "run"))


STAGES: Registry[Callable[..., Stage]] = Registry(
    "kind of stage",
    "rstar2_env.trainers.pipeline.stages",
    "rstar2_env.stages",
    shape=Shape(_is_stage, "a class with inputs, outputs and run(work)"),
)
