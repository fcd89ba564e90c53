"""Stages that write letters, with a diary of what ran and deaths on purpose; no torch."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from rstar2_env.core.options.declare import CheckedOptions
from rstar2_env.trainers.pipeline.base import STAGES, Output, StageMeasurements, Work
from rstar2_env.trainers.pipeline.cost import Cost, CostInputs
from rstar2_env.trainers.pipeline.file import Pipeline, read_pipeline
from rstar2_env.trainers.pipeline.plan import plain_options
from rstar2_env.trainers.pipeline.run import PipelineRun, run_pipeline

DIARY = "diary.txt"
DEAD = 9


class Deaths:
    """Where this process dies: (folder of the stage, ``begin``, ``middle``, ``end`` or ``after``)."""

    at: tuple[str, str] | None = None

    @classmethod
    def pass_by(cls, stage: str, point: str) -> None:
        if cls.at == (stage, point):
            os._exit(DEAD)


@dataclass(frozen=True)
class Letters(CheckedOptions):
    """Write what the inputs hold, and a letter more."""

    letter: str = "x"
    source: str | list[str] | None = None
    figure: float = 0.0
    forgets: bool = False
    seed: int | None = None

    inputs: ClassVar[Mapping[str, str]] = {"source": "letters"}
    outputs: ClassVar[Mapping[str, Output]] = {"letters": Output("letters", "letters.txt")}

    def resolved(self) -> Mapping[str, Any]:
        return plain_options(self)

    def cost(self, about: CostInputs) -> Cost:
        return Cost(episodes=1, seconds=1.0)

    def run(self, work: Work) -> StageMeasurements:
        name = work.folder.name
        with (work.folder.parent.parent / DIARY).open("a") as diary:
            diary.write(f"{name} {'resumed' if work.resumed else 'started'}\n")
        Deaths.pass_by(name, "begin")
        (work.folder / "half.txt").write_text(self.letter)
        Deaths.pass_by(name, "middle")
        paths = [self.source] if isinstance(self.source, str) else self.source or []
        before = "".join(Path(path).read_text() for path in paths)
        if not self.forgets:
            (work.folder / "letters.txt").write_text(f"{before}{self.letter}{work.seed}")
        Deaths.pass_by(name, "end")
        return {"figure": self.figure * max(1, work.round), "length": float(len(before) + 1)}


if "letters" not in STAGES:
    STAGES.register("letters", Letters)

CHAIN = """
stages:
  a: {kind: letters, letter: a}
  b: {kind: letters, letter: b, source: a.letters}
  again:
    rounds: 3
    until: d.figure >= 2
    stages:
      c: {kind: letters, letter: c, source: d.letters or b.letters}
      d: {kind: letters, letter: d, source: c.letters, figure: 1}
  e: {kind: letters, letter: e, source: [d.letters, a.letters]}
"""
"""Two stages, two rounds of at most three, and a stage that reads two others."""
ORDER = ("a", "b", "c-1", "d-1", "c-2", "d-2", "e")
"""The steps of it that run."""


def written(folder: Path, text: str, **settings: Any) -> Pipeline:
    """A pipeline of this text."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "letters.yaml"
    file.write_text(text)
    return read_pipeline(file, settings)


def live(pipeline: Pipeline, folder: Path, dies: tuple[str, str] | None = None, **options: Any) -> int:
    """Run a pipeline in a process of its own, which may die on the way; return its exit code."""
    child = os.fork()
    if not child:
        Deaths.at = dies

        def say(text: str) -> None:
            if text.endswith("done.") or "done. " in text:
                Deaths.pass_by(text.split("] ")[1].partition(":")[0], "after")

        try:
            run_pipeline(pipeline, folder, say=say, progress=False, **options)
        except BaseException:
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def run(pipeline: Pipeline, folder: Path, **options: Any) -> tuple[PipelineRun, list[str]]:
    """Run a pipeline here; return it and what was said."""
    said: list[str] = []
    return run_pipeline(pipeline, folder, say=said.append, progress=False, **options), said


def diary(folder: Path) -> list[str]:
    """What ran, a line each."""
    return (folder / DIARY).read_text().splitlines() if (folder / DIARY).exists() else []


def letters(folder: Path) -> dict[str, str]:
    """What every stage left."""
    return {path.parent.name: path.read_text() for path in sorted(folder.glob("stages/*/letters.txt"))}


def begun(lines: Sequence[str]) -> list[str]:
    """The stages that began, in their order."""
    return [line.removesuffix(" started") for line in lines if line.endswith(" started")]
