"""``run_pipeline``: runs the stages of a pipeline that are not up to date, and resumes after a kill.

A stage is up to date if it finished with the same options and input content, and its outputs are unchanged. A stage
that started with the same options and inputs but did not finish is resumed. If a stage has to start again, its old
folder is renamed, never removed. Not covered: how a stage resumes (``stages``).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rstar2_env.core.closing import release_memory
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.files.json_lines import lock_file
from rstar2_env.core.files.outputs import check_folder, kind_of
from rstar2_env.core.run_folder import RunWriter, read_run
from rstar2_env.core.run_folder.layout import EVENTS_FILE, RUN_FILE

from .base import Work
from .digests import Digests, fingerprint, made_from
from .file import Pipeline
from .inputs import changes, content_of, contents_of
from .plan import Made, PipelinePlan, Step, bounds, costs_of
from .progress import PipelineProgress, TimedStep
from .state import BEGAN, ENDED, REPLACED, ROUNDS_ENDED, STOPPED, TAKEN, StageState, states_of

PIPELINE_FILE = "pipeline.json"
"""Name of the file with the options of a pipeline's run."""
REPLACED_FOLDER = "replaced"

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Outlook:
    """State of a step: whether the step is up to date, and the reason if it is not.

    Attributes:
        made: The step and its stage object.
        state: ``done``, ``resume`` (to be resumed), ``to do``, ``again`` (its results were made from other options or
            inputs), ``skipped`` (a criterion ended the rounds earlier), ``taken`` (accepted unchanged, even if its
            options differ), ``later`` (not part of this run).
        why: The reason, if the step runs again.
        fingerprint: Fingerprint of its options and inputs; empty if an input does not exist yet.
        record: The options and inputs; ``None`` if an input does not exist yet.
    """

    made: Made
    state: str
    why: str = ""
    fingerprint: str = ""
    record: Any = None


@dataclass(slots=True)
class PipelineRun:
    """A pipeline with the recorded state of its stages.

    Attributes:
        plan: The steps in order.
        states: The recorded state of each step, by id.
        skipped: Ids of steps that are not run because a criterion ended their rounds earlier.
    """

    plan: PipelinePlan
    digests: Digests = field(init=False)
    states: dict[str, StageState] = field(init=False)
    skipped: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        """Read the pipeline's events from its folder.

        Raises:
            ConfigurationError: The folder contains a run that is not a pipeline.
        """
        folder = self.plan.folder
        _check_folder(folder)
        self.digests = Digests(folder)
        self.states = {}
        if (folder / RUN_FILE).exists():
            run = read_run(folder)
            if run.kind != "pipeline":
                raise ConfigurationError(
                    f"The folder {folder} contains a run of the kind {run.kind}, not a pipeline: choose "
                    "another folder.",
                    option="output_dir",
                )
            self.states = states_of(run.events)

    def look(self, step: Step) -> Outlook:
        """Create the stage object of a step, and return the step's state; call this for all steps in order."""
        made = self.plan.make(step, self.skipped.__contains__)
        if step.id in self.skipped:
            return Outlook(made, "skipped")
        state = self.states.get(step.id)
        inputs: dict[str, list[str]] = {}
        for option, given in made.given.items():
            for one in given:
                digest = content_of(one, self.states, self.digests)
                if digest is None:
                    return Outlook(
                        made, "again" if state else "to do", f"its input {one} does not exist yet" if state else ""
                    )
                inputs.setdefault(option, []).append(digest)
        contents = contents_of(made.stage, self.plan.find, self.digests)
        more = {"seed": made.seed, "round": step.round, **({"contents": contents} if contents else {})}
        record = made_from(step.spec.kind, made.stage.resolved(), inputs, self.plan.folder, **more)
        found = fingerprint(record, self.plan.folder)
        if state is None:
            return Outlook(made, "to do", "", found, record)
        if state.fingerprint != found:
            why = "; ".join(changes(made, state.made_from, record)) or "its options or inputs changed"
            return Outlook(made, "again", why, found, record)
        if not state.ended:
            return Outlook(made, "resume", "", found, record)
        for name, now in self.left(made).items():
            if now is None or now != state.outputs.get(name, now):
                why = f"its output {name} was {'removed' if now is None else 'changed'} after it finished"
                return Outlook(made, "again", why, found, record)
        return Outlook(made, "done", "", found, record)

    def end_of_round(self, step: Step) -> bool:
        """If this step ends a round, and the criterion of its group of rounds is met, skip the later rounds.

        Returns:
            Whether any steps are skipped.
        """
        group, state = step.rounds, None
        if group is None or not step.last or group.until is None:
            return False
        state = self.states.get(f"{group.of}-{step.round}")
        if state is None or not state.ended or not group.until.met(state.figures):
            return False
        later = [one.id for one in self.plan.steps if one.rounds is group and one.round > step.round]
        self.skipped.update(later)
        return bool(later)

    def left(self, made: Made, *, sync: bool = False) -> dict[str, str | None]:
        """Return the current digest of each output that must exist; the digest of a missing output is ``None``.

        Args:
            made: The step, with its stage object.
            sync: Whether to wait until the outputs are on disk.
        """
        return {
            name: self.digests.of(made.output(name), output.kind, sync=sync)
            for name, output in made.stage.outputs.items()
            if not output.if_taken or self.plan.is_taken(made.step, name)
        }


def look_at(run: PipelineRun, *, begin: str | None = None, until: str | None = None) -> Iterator[Outlook]:
    """Yield every step with its state, for display in a plan, without running or writing anything.

    Args:
        run: The pipeline in its folder.
        begin: See ``run_pipeline``.
        until: See ``run_pipeline``.

    Raises:
        ConfigurationError: A stage does not exist, or a stage before ``begin`` has not finished.
    """
    first, last = bounds(run.plan, begin, until)
    dirty: set[str] = set()
    for step in run.plan.steps:
        outlook = run.look(step)
        if outlook.state != "skipped" and (begin is not None or step.number > last):
            yield (asked := _asked(run, outlook, first, last))
            if asked.state == "taken":
                run.end_of_round(step)
            continue
        depends = next((one.step for given in outlook.made.given.values() for one in given if one.step in dirty), "")
        if depends and outlook.state == "done":
            outlook = Outlook(outlook.made, "again", f"if the output of {depends} changes")
        elif depends and outlook.state == "resume":
            outlook = Outlook(outlook.made, "resume", f"unless the output of {depends} changes")
        if outlook.state not in ("done", "skipped"):
            dirty.add(step.id)
        yield outlook
        if step.id not in dirty:
            run.end_of_round(step)


def run_pipeline(
    pipeline: Pipeline,
    folder: Path,
    *,
    begin: str | None = None,
    until: str | None = None,
    progress: bool = True,
    say: Say = lambda text: None,
) -> PipelineRun:
    """Run or resume a pipeline in a folder.

    Args:
        pipeline: The pipeline, as ``read_pipeline`` returns it.
        folder: The pipeline's folder.
        begin: The first stage to run again (from its first round, if it is repeated); later stages follow. Earlier
            stages are accepted unchanged, even if their options have changed.
        until: The last stage to run (to its last round, if it is repeated). Later stages are left for another run.
        progress: Whether to show progress.
        say: Receives messages for the user, one sentence at a time.

    Raises:
        ConfigurationError: The pipeline cannot be planned, another process uses the folder, or a stage cannot run.
        Exception: Any exception of a stage; the folder keeps finished work.
    """
    plan = PipelinePlan(pipeline, folder)
    first, last = bounds(plan, begin, until)
    plan.check()
    _check_folder(folder)  # before the lock file is created in it
    with _alone(folder) as lock:
        run = PipelineRun(plan)
        events = _Events(run, pipeline)
        try:
            for step in plan.steps[: last + 1]:
                if step.id in run.skipped:
                    continue
                outlook = run.look(step)
                if begin is not None and step.number < first:
                    _take(run, outlook, events, say)
                else:
                    shown = PipelineProgress(tasks_of(run), say) if progress else None
                    _run_step(run, outlook, events, again=begin is not None, lock=lock, shown=shown, say=say)
                if run.end_of_round(step) and step.rounds is not None and outlook.state != "done":
                    say(
                        f"{step.rounds.name}: the criterion {step.rounds.of}.{step.rounds.until} is met after "
                        f"round {step.round}; later rounds are skipped."
                    )
                    events.write(ROUNDS_ENDED, rounds=step.rounds.name, after=step.round)
        except BaseException as error:
            interrupted, failed = STOPPED
            stopped = isinstance(error, (KeyboardInterrupt, SystemExit))
            more = {} if stopped else {"error": f"{type(error).__name__}: {error}"}
            events.write(interrupted if stopped else failed, **more)
            raise
        if last == len(plan.steps) - 1:
            events.write("finished")
    return run


def _run_step(
    run: PipelineRun,
    outlook: Outlook,
    events: _Events,
    *,
    again: bool,
    lock: int,
    shown: PipelineProgress | None,
    say: Say,
) -> None:
    made, step = outlook.made, outlook.made.step
    where = f"[{step.number + 1}/{len(run.plan.steps)}] {step.id}"
    if outlook.state == "done" and not again:
        say(f"{where}: this stage is up to date and is not run again.")
        return
    resumed = outlook.state == "resume" and not again
    if not resumed and made.folder.exists() and any(made.folder.iterdir()):
        kept = _set_aside(made.folder, run.plan.folder / REPLACED_FOLDER)
        why = outlook.why or "the command requested it"
        say(f"{where}: this stage runs again, because {why}. The earlier results are kept in {kept}.")
        events.write(REPLACED, stage=step.id, path=str(kept.relative_to(run.plan.folder)), why=why)
    say(f"{where}: {'resumed' if resumed else 'started'}.")
    made.folder.mkdir(parents=True, exist_ok=True)
    lost = run.states[step.id].seconds_of_kill(made.folder) if resumed else 0.0
    killed = {"seconds": lost} if lost else {}
    events.write(BEGAN, stage=step.id, fingerprint=outlook.fingerprint, made_from=outlook.record, **killed)
    with shown.watching(step.id, made.folder) if shown else nullcontext():
        work = Work(
            made.folder,
            made.seed,
            step.round,
            resumed=resumed,
            progress=shown is not None,
            inherited=(lock,),
            find=run.plan.find,
            report=shown.report if shown else lambda done, total: None,
            say=say,
        )
        try:
            figures = made.stage.run(work)
        finally:
            release_memory()  # the next stage may load another model
    outputs = run.left(made, sync=True)
    for name, digest in outputs.items():
        if digest is None:
            raise ConfigurationError(
                f"The stage {step.id!r} finished without its output {name!r}: {made.output(name)} does not exist."
            )
    run.digests.save()
    events.write(ENDED, stage=step.id, fingerprint=outlook.fingerprint, outputs=outputs, figures=figures)
    say(f"{where}: done. {_words(figures)}".rstrip())


def tasks_of(run: PipelineRun) -> dict[str, TimedStep]:
    """Return a ``TimedStep`` for every step that is not skipped, by id; all stages must have been created."""
    steps = [run.plan.made[step.id] for step in run.plan.steps if step.id not in run.skipped]
    found = {}
    for made, cost in zip(steps, costs_of(run.plan, steps), strict=True):
        state = run.states.get(made.step.id)
        measured = state.seconds if state and state.ended else None
        found[made.step.id] = TimedStep(made.step.id, made.step.spec.kind, cost, measured)
    return found


def _asked(run: PipelineRun, outlook: Outlook, first: int, last: int) -> Outlook:
    """Return the outlook of a step in a run that the user limits to the steps ``first`` to ``last``, from 0.

    Raises:
        ConfigurationError: The step comes before ``first``, and cannot be accepted unchanged.
    """
    step = outlook.made.step
    if step.number > last:
        return replace(outlook, state="later", why="")
    if step.number < first:
        _check_done(run, outlook.made)
        return replace(outlook, state="taken")
    return replace(outlook, state="again" if step.id in run.states else "to do", why="")


def _check_done(run: PipelineRun, made: Made) -> dict[str, str | None]:
    """Check that a stage can be accepted unchanged, and return the digests of its outputs.

    Raises:
        ConfigurationError: The stage has not finished, or an output no longer exists.
    """
    step = made.step
    state = run.states.get(step.id)
    reason = f"the stage {step.id!r} did not finish in {run.plan.folder}"
    if state is not None and state.ended:
        outputs = run.left(made)
        gone = next((name for name, digest in outputs.items() if digest is None), None)
        if gone is None:
            return outputs
        reason = f"the output {gone!r} of the stage {step.id!r} does not exist ({made.output(gone)})"
    raise ConfigurationError(
        f"Later stages cannot run, because {reason}. Start from this stage or from an earlier stage.", option="from"
    )


def _take(run: PipelineRun, outlook: Outlook, events: _Events, say: Say) -> None:
    """Accept the results of a stage unchanged, even if its options or outputs have changed since it ran."""
    step = outlook.made.step
    outputs = _check_done(run, outlook.made)
    if outlook.state != "done":
        say(f"{step.id}: the existing results are reused{f', although {outlook.why}' if outlook.why else ''}.")
        events.write(TAKEN, stage=step.id, fingerprint=outlook.fingerprint, made_from=outlook.record, outputs=outputs)


class _Events:
    """Writes events into a pipeline's folder, and updates the states of the stages after each event."""

    def __init__(self, run: PipelineRun, pipeline: Pipeline) -> None:
        self._run = run
        self._running: tuple[str, float] | None = None
        self._writer = RunWriter(run.plan.folder, kind="pipeline", episodes=False)
        there = (run.plan.folder / RUN_FILE).exists()
        record = {**pipeline.record(), "file": str(pipeline.file)}
        self._writer.begin(record, resumed=self._done() if there else None, config_file=PIPELINE_FILE)

    def write(self, event: str, **more: Any) -> None:
        """Write an event and wait until it is on disk; an event that ends a stage's run contains the run's seconds."""
        if event == BEGAN:
            self._running = (more["stage"], time.monotonic())
        elif self._running and event in (ENDED, *STOPPED):
            stage, began = self._running
            more = {"stage": stage, **more, "seconds": round(time.monotonic() - began, 3)}
            self._running = None
        self._writer.event(event, self._done() + (event == ENDED), **more)
        file = self._run.plan.folder / EVENTS_FILE
        with file.open("rb") as opened:
            os.fsync(opened.fileno())
        self._run.states.clear()
        self._run.states.update(states_of(read_run(self._run.plan.folder).events))

    def _done(self) -> int:
        return sum(state.ended for state in self._run.states.values())


def _check_folder(folder: Path) -> None:
    continued = (folder / RUN_FILE).exists() or kind_of(folder) == "pipeline"
    check_folder(folder, "pipeline", option="output_dir", resume=continued or None, overwrite=None)


@contextmanager
def _alone(folder: Path) -> Iterator[int]:
    """Context manager that locks a pipeline's folder against other runners; yields the lock's file descriptor."""
    try:
        lock = lock_file(folder / PIPELINE_FILE)
    except ConfigurationError as error:
        if isinstance(error.__cause__, BlockingIOError):
            raise ConfigurationError(
                f"Another process is running a pipeline in the folder {folder}: wait until it ends, or "
                "choose another folder.",
                option="output_dir",
            ) from error
        raise
    try:
        yield lock.fileno()
    finally:
        lock.close()  # keep the file: if it were removed, two processes could lock two different files


def _set_aside(folder: Path, to: Path) -> Path:
    to.mkdir(parents=True, exist_ok=True)
    number = 1 + sum(1 for one in to.iterdir() if one.name.rpartition(".")[0] == folder.name)
    while (kept := to / f"{folder.name}.{number}").exists():
        number += 1
    folder.rename(kept)
    return kept


def _words(figures: Any) -> str:
    shown = [f"{name} {value:.4g}" for name, value in figures.items() if isinstance(value, (int, float))]
    return f"{', '.join(shown)}." if shown else ""
