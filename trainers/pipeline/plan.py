"""``PipelinePlan``: the steps of a pipeline in order, one for each stage and round, and the inputs of each step.

A stage refers to an earlier stage's output as ``STAGE.OUTPUT``. For a repeated stage, this is the newest output: from
the same round if ``STAGE`` comes earlier in the round, else from the previous round. ``A.model or B.model`` is the
first of these that exists. Not covered: which stages are up to date, and how they are run (``run``).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, is_dataclass
from pathlib import Path
from typing import Any

from rstar2_env.core.errors import ConfigurationError, Rstar2Error
from rstar2_env.core.options.declare import call_with_options
from rstar2_env.core.options.rules import did_you_mean
from rstar2_env.problems.spec import located

from .base import STAGES, Output, Stage
from .cost import Cost, CostInputs
from .file import Pipeline, Rounds, StageSpec
from .places import find_file

FOLDER = "stages"
"""Name of the subfolder of the pipeline's folder in which every stage has a folder."""
CONFIG = "config"
"""Kind of an input that is a file of options. The options in it count as options of the stage, so the file itself has
no digest."""
PROBLEMS = "problems"
"""Kind of an input that is a source of problems. Such an input may be written as a file name followed by options."""
_OR = re.compile(r"\s+or\s+")
_REFERENCE = re.compile(r"[^\W\d]\w*\.[^\W\d]\w*")


@dataclass(frozen=True, slots=True)
class Step:
    """One execution of a stage.

    Attributes:
        id: The stage's name; in rounds, with the number of the round (``play-2``).
        spec: The stage, as the pipeline's file describes it.
        number: Position in the plan, from 0.
        round: Number of the round, from 1; 0 outside of rounds.
        rounds: The group of repeated stages to which the step belongs; ``None`` outside of rounds.
        last: Whether it is the last step of a round.
    """

    id: str
    spec: StageSpec
    number: int
    round: int = 0
    rounds: Rounds | None = None
    last: bool = False


@dataclass(frozen=True, slots=True)
class ResolvedInput:
    """The resolved value of one input of a stage.

    Attributes:
        kind: The kind of the input; see ``Output``.
        text: The path or name that the stage object receives.
        step: Id of the step that produces it; empty if it comes from outside the pipeline.
        output: Name of the output of that step.
    """

    kind: str
    text: str
    step: str = ""
    output: str = ""

    def __str__(self) -> str:
        """Return the input's name for messages."""
        return f"{self.step}.{self.output}" if self.step else self.text


@dataclass(frozen=True, slots=True)
class Made:
    """A step, and the stage object that runs it; references to other stages in its options are resolved.

    Attributes:
        step: The execution of the stage for which the stage object was made.
        stage: The stage object with its options.
        folder: The folder of the step.
        given: The resolved inputs, by the name of the option.
        seed: The seed of the step.
    """

    step: Step
    stage: Stage
    folder: Path
    given: Mapping[str, Sequence[ResolvedInput]]
    seed: int

    def output(self, name: str) -> Path:
        """Return the path of an output of the step."""
        path = self.stage.outputs[name].path
        return self.folder / path if path else self.folder


@dataclass(slots=True)
class PipelinePlan:
    """The steps of a pipeline in order.

    Attributes:
        pipeline: The pipeline, as its file describes it.
        folder: The pipeline's folder.
        steps: All steps, including all rounds.
        made: The created stages, by the ids of their steps.
    """

    pipeline: Pipeline
    folder: Path
    steps: list[Step] = field(init=False)
    made: dict[str, Made] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """List the steps: one for each stage, and for each round of repeated stages."""
        self.steps = []
        for item in self.pipeline.items:
            if isinstance(item, StageSpec):
                self.steps.append(Step(item.name, item, len(self.steps)))
                continue
            for number in range(1, item.times + 1):
                for spec in item.stages:
                    last = spec is item.stages[-1]
                    self.steps.append(Step(f"{spec.name}-{number}", spec, len(self.steps), number, item, last))

    def check(self) -> None:
        """Create every stage once, so that a mistake in the last stage is reported before the first one runs.

        Raises:
            ConfigurationError: A stage cannot be created; the message names the file, the stage and the field.
        """
        for step in self.steps:
            self.make(step)

    def make(self, step: Step, skipped: Callable[[str], bool] = lambda step_id: False) -> Made:
        """Create the stage of a step; the stages of all earlier steps must have been created.

        Args:
            step: The step of the plan for which to create the stage.
            skipped: Takes the id of a step; returns whether that step was skipped.

        Raises:
            ConfigurationError: A reference cannot be resolved, or an option is not valid.
        """
        where = f"{self.pipeline.file}, stage {step.spec.name!r}"
        made_by = STAGES.get(step.spec.kind)
        takes: Mapping[str, str] = made_by.inputs  # type: ignore[attr-defined]  # every class of stages has inputs
        options, given = dict(step.spec.options), {}
        for name, kind in takes.items():
            if (written := options.get(name)) is None:
                continue
            found = [self._given(step, kind, one, skipped, f"{where}, field {name!r}") for one in _texts(written)]
            given[name] = found
            options[name] = [one.text for one in found] if _is_list(written) else found[0].text
        try:
            stage = call_with_options(f"stage {step.spec.name!r} ({step.spec.kind})", made_by, options)
            stage.resolved()
        except Rstar2Error as error:
            raise ConfigurationError(f"{where}: {error}") from error
        seed = options.get("seed")
        own = self.pipeline.seed if seed is None else int(seed)
        made = Made(step, stage, self.folder / FOLDER / step.id, given, own + max(0, step.round - 1))
        self.made[step.id] = made
        return made

    def origin(self, made: Made, option: str = "model") -> str:
        """Return the external model from which the model in a stage's input ``option`` was trained.

        An external model is not an output of the pipeline. Training may have taken several stages. The result is empty
        if there is no external model.
        """
        for one in made.given.get(option, ()):
            if not one.step:
                return one.text
            if found := self.origin(self.made[one.step]):
                return found
        return ""

    def is_taken(self, step: Step, output: str) -> bool:
        """Return whether any stage of the pipeline takes ``output`` of this step's stage as an input.

        The rounds are not distinguished: the output counts as taken if it is taken in any of them.
        """
        reference = f"{step.spec.name}.{output}"
        return any(
            reference in _OR.split(one)
            for spec in self.pipeline.stages()
            for name in STAGES.get(spec.kind).inputs  # type: ignore[attr-defined]  # every class of stages has inputs
            for one in _texts(spec.options.get(name))
        )

    def find(self, written: str) -> Path | None:
        """Resolve a path in the pipeline's file; ``None`` if nothing exists there."""
        return find_file(written, self.pipeline.file)

    def _given(self, step: Step, kind: str, written: str, skipped: Callable[[str], bool], where: str) -> ResolvedInput:
        """Resolve an input: a reference to an output, else a file or a name from outside the pipeline.

        Args:
            step: The step that takes the input.
            kind: The kind of the input; see ``Output``.
            written: The input, as the pipeline's file has it.
            skipped: See ``make``.
            where: Place of the input in that file, for error messages.
        """
        alternatives = _OR.split(written)
        names = {spec.name for spec in self.pipeline.stages()}
        for one in alternatives:
            name, _, output = one.partition(".")
            if not _REFERENCE.fullmatch(one) or name not in names:
                if _REFERENCE.fullmatch(one) and self.find(one) is None:
                    self._refuse_typo(name, output, names, where)
                return ResolvedInput(kind, self._outside(kind, one, where))
            before = [
                other
                for other in self.steps[: step.number]
                if other.spec.name == name and not skipped(other.id) and other.id in self.made
            ]
            if before:
                return self._output(before[-1].id, output, kind, where)
        last = alternatives[-1].partition(".")[0]
        first = ", or name an input for the first round: 'STAGE.OUTPUT or OTHER.OUTPUT'" if step.round else ""
        raise ConfigurationError(
            f"{where}: this stage uses the stage {last!r}, which does not run before it. Move {last!r} "
            f"before this stage{first}."
        )

    def _outside(self, kind: str, written: str, where: str) -> str:
        """Return the value of an input from outside the pipeline, with file names replaced by paths.

        Args:
            kind: The kind of the input; see ``Output``.
            written: The input, as the pipeline's file has it.
            where: Place of the input in that file, for error messages.
        """
        if kind != PROBLEMS:
            return str(self.find(written) or written)
        try:
            return str(located(written, self.find))
        except ConfigurationError as error:
            raise ConfigurationError(f"{where}: {error}") from error

    def _output(self, step_id: str, output: str, kind: str, where: str) -> ResolvedInput:
        made = self.made[step_id]
        outputs: Mapping[str, Output] = made.stage.outputs
        if output not in outputs:
            near = did_you_mean(output, outputs)
            raise ConfigurationError(
                f"{where}: the stage {made.step.spec.name!r} does not have the output {output!r}.{near} Its outputs: "
                f"{', '.join(outputs) or 'none'}."
            )
        if outputs[output].kind != kind:
            raise ConfigurationError(
                f"{where}: this input must be of the kind {kind}, but {made.step.spec.name}.{output} is "
                f"of the kind {outputs[output].kind}."
            )
        return ResolvedInput(kind, str(made.output(output)), step_id, output)

    def _refuse_typo(self, name: str, output: str, names: set[str], where: str) -> None:
        known = {one for spec in self.pipeline.stages() for one in _outputs_of(spec)}
        near = did_you_mean(name, names)
        if near or output in known:
            raise ConfigurationError(f"{where}: there is no stage {name!r}.{near} Stages: {', '.join(names)}.")


def costs_of(plan: PipelinePlan, steps: Sequence[Made]) -> Iterator[Cost]:
    """Yield the cost of each step, from the numbers of problems and traces that earlier steps are expected to write.

    Args:
        plan: The plan to which the steps belong.
        steps: The steps in order.
    """
    counts: dict[tuple[str, str], int] = {}
    for made in steps:
        known = {
            option: sum(counts[given.step, given.output] for given in many)
            for option, many in made.given.items()
            if all((given.step, given.output) in counts for given in many)
        }
        cost = made.stage.cost(CostInputs(plan.pipeline.machine, plan.origin(made), known))
        for name, count in cost.count.items():
            counts[made.step.id, name] = count
        yield cost


def bounds(plan: PipelinePlan, begin: str | None, until: str | None) -> tuple[int, int]:
    """Return the numbers of the first and the last step to run.

    Args:
        plan: The plan of the whole pipeline.
        begin: Name of the first stage to run (its first round, if it is repeated) or id of the first step; ``None`` for
            the first step of the plan.
        until: Name of the last stage to run (its last round, if it is repeated) or id of the last step; ``None`` for
            the last step of the plan.

    Raises:
        ConfigurationError: A stage does not exist, or ``begin`` comes after ``until``.
    """
    first, last = _place(plan, begin, 0, 0, "from"), _place(plan, until, len(plan.steps) - 1, -1, "until")
    if first > last:
        raise ConfigurationError(
            f"No stage is selected, because the stage to start from, {begin!r}, comes after the stage to end with, "
            f"{until!r}: exchange the two.",
            option="until",
        )
    return first, last


def _place(plan: PipelinePlan, name: str | None, default: int, which: int, option: str) -> int:
    if name is None:
        return default
    found = [step.number for step in plan.steps if name in (step.id, step.spec.name)]
    if not found:
        known = ", ".join(dict.fromkeys(step.spec.name for step in plan.steps))
        raise ConfigurationError(
            f"The pipeline {plan.pipeline.file} does not have a stage {name!r}; its stages are {known}.", option=option
        )
    return found[which]


def plain_options(stage: Any) -> dict[str, Any]:
    """Return the options of a dataclass stage without its inputs; the usual implementation of ``resolved``."""
    found = asdict(stage) if is_dataclass(stage) and not isinstance(stage, type) else dict(vars(stage))
    return {name: value for name, value in found.items() if name not in stage.inputs}


def _is_list(written: Any) -> bool:
    return isinstance(written, (list, tuple))


def _texts(written: Any) -> list[str]:
    """Return the values of an input as a list of texts; a mapping (a source of problems) becomes JSON."""
    every = written if _is_list(written) else [] if written is None else [written]
    return [json.dumps(one) if isinstance(one, Mapping) else str(one) for one in every]


def _outputs_of(spec: StageSpec) -> Iterator[str]:
    outputs = getattr(STAGES.get(spec.kind), "outputs", {})
    yield from outputs if isinstance(outputs, Mapping) else ()
