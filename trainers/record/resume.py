"""Check that a run can be resumed: the content of its folder, and the options that differ.

Covered: problems that would otherwise be silent: a folder without a checkpoint, another trainer, other options, a run
whose steps are all done, links that lead out of the folder. The options in the folder are only compared with the given
ones, so no code that they name is run. This module does not load torch. Not covered: reading the checkpoint, and
removing lost steps from the run's files.
"""

from __future__ import annotations

import difflib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rstar2_env.core import trust
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.files.json_lines import plain
from rstar2_env.core.files.outputs import check_folder
from rstar2_env.core.options.renamed import named_as
from rstar2_env.core.run_folder.inside import inside

from .checkpoints import newest_checkpoint, step_of

MAY_CHANGE = (
    "run.output_dir",
    "run.steps",
    "run.resume",
    "run.overwrite",
    "run.save_every",
    "run.keep_checkpoints",
    "run.threads",
    "run.process_timeout_s",
    "run.sharding",
    "run.export_dtype",
    "run.report_to",
    "run.log_every",
    "run.keep_episodes",
    "run.keep_tokens",
    "run.progress",
    "model.gradient_checkpointing",
    "rollout.engine_options",
    "rollout.max_in_flight",
    "rollout.adaptive_in_flight",
    "rollout.one_queue",
    "rollout.handover_tolerance",
    "optim.tokens_per_device",
    "optim.share_prefixes",
    "optim.offload_state",
    "eval.every",
)
"""Options that may change when a run is resumed. They do not change the result of a step, except for rounding errors.
The name of a group stands for all options of the group."""

SFT_FILE = "sft.json"
"""File with the options of a cold start; ``config.json`` in the same folder belongs to the model."""

SFT_CPU = "cpu"
"""Key in ``SFT_FILE`` for the number of threads and the precision with which a cold start on a CPU computed."""

SFT_MAY_CHANGE = (
    "output_dir",
    "steps",
    "epochs",
    "resume",
    "overwrite",
    "save_every",
    "threads",
    "sharding",
    "report_to",
    "progress",
    "gradient_checkpointing",
    SFT_CPU,
)
"""Options that may change when a cold start is resumed."""

_ABSENT = "absent"


class TrainingStopped(KeyboardInterrupt):
    """Ctrl-C ended a run after a checkpoint; the error's message explains how to resume.

    Attributes:
        printed: Whether the message was printed.
    """

    printed = True


def check_begun(
    folder: str | os.PathLike[str],
    kind: str = "training",
    *,
    resume: bool,
    overwrite: bool = False,
    inputs: object = (),
) -> None:
    """Check that a run may use a folder; with ``resume``, the folder must have a run to resume.

    For the arguments, see ``check_folder``.

    Raises:
        ConfigurationError: The folder holds something that must not be overwritten, or has no checkpoint and ``resume``
            is on.
    """
    folder = Path(folder)
    if resume and newest_checkpoint(folder) is None:
        raise ConfigurationError(_nothing_to_resume(folder), option="resume")
    check_folder(folder, kind, option="output_dir", resume=resume, overwrite=overwrite, inputs=inputs)


def checkpoint_to_resume(
    folder: str | os.PathLike[str],
    config: Mapping[str, Any],
    *,
    steps: int | None,
    record: str = "config.json",
    may_change: tuple[str, ...] = MAY_CHANGE,
    later: Sequence[str] = (),
) -> Path:
    """Return the checkpoint from which a run resumes.

    Args:
        folder: The run's folder.
        config: The present configuration of the run: the trainer's name and its options, as in ``record``.
        steps: Total steps of the run; ``None`` if not known yet.
        record: Name of the file in the folder with the configuration that the run began with.
        may_change: Dotted names of options that may differ.
        later: Dotted names of options that are not compared, because their values in ``config`` are not final yet.

    Raises:
        ConfigurationError: There is no checkpoint; the run has another trainer or other options; its steps are done; or
            this user neither began nor trusts the run, and its folder contains a link that leads out of it.
    """
    folder = Path(folder)
    newest = newest_checkpoint(folder)
    if newest is None:
        raise ConfigurationError(_nothing_to_resume(folder), option="resume")
    began = _read(inside(folder, folder / record))
    if not (trust.trusts() or trust.is_recorded(folder, began)):
        _refuse_links(folder)
    if (was := began.get("trainer")) != (trainer := config.get("trainer")):
        raise ConfigurationError(
            f"The folder {folder} holds a run of the trainer {was!r}: resume it with this trainer instead "
            f"of {trainer!r}, or choose another folder."
        )
    now = plain(config)
    differing = list(_differences(named_as(began, now), now, (*may_change, *later)))
    if differing:
        raise ConfigurationError(
            f"The folder {folder} holds a run with other options: {'; '.join(differing)}. Resume with the "
            "same trainer and options, or choose another folder. Options that may change: "
            f"{', '.join(may_change)}."
        )
    if steps is not None:
        refuse_finished(folder, done=step_of(newest), steps=steps)
    return newest


def refuse_finished(folder: str | Path, *, done: int, steps: int) -> None:
    """Refuse to resume a run whose steps are done.

    Args:
        folder: The run's folder, for the error message.
        done: Number of finished optimizer steps.
        steps: Number of optimizer steps of the whole run.

    Raises:
        ConfigurationError: The steps are done.
    """
    if done >= steps:
        raise ConfigurationError(
            f"The run in {folder} has already done {done} of {steps} steps, so nothing is left to do: to "
            f"continue, set steps to more than {done}.",
            option="steps",
        )


def _refuse_links(folder: Path) -> None:
    """Refuse a link that leads out of the folder: the run would write to another place of this machine.

    Raises:
        ConfigurationError: There is such a link.
    """
    root = folder.resolve()
    for path in folder.rglob("*"):
        if path.is_symlink() and not (target := Path(os.path.realpath(path))).is_relative_to(root):
            raise ConfigurationError(
                f"{path} is a link to {target}, outside of the run's folder, so the run cannot be resumed: "
                "replace the link with a copy, or remove it."
            )


def _nothing_to_resume(folder: Path) -> str:
    if not folder.is_dir():
        parent = folder.parent
        neighbours = [found.name for found in parent.iterdir() if found.is_dir()] if parent.is_dir() else []
        near = difflib.get_close_matches(folder.name, neighbours, n=1)
        hint = f" Did you mean {parent / near[0]}?" if near else ""
        return (
            f"The folder {folder} does not exist, so there is no run to resume.{hint} To begin a new run, do "
            "not resume."
        )
    within = sorted(found.parent.name for found in folder.glob("*/checkpoint-*") if found.is_dir())
    hint = f" There is one in {folder / within[0]}." if within else ""
    return (
        f"The folder {folder} does not hold a finished checkpoint to resume from.{hint} To begin a new "
        "run, remove the folder or choose another one"
    )


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigurationError(
            f"The configuration {path} of the run cannot be read ({error}), so the run cannot be resumed: "
            "choose another folder."
        ) from error
    if not isinstance(found, dict):
        raise ConfigurationError(
            f"The file {path} does not contain the configuration of a run, so the run cannot be resumed: "
            "choose another folder."
        )
    return found


def _differences(began: Mapping[str, Any], now: Mapping[str, Any], may_change: tuple[str, ...]) -> Iterator[str]:
    before, after = dict(_flat(began)), dict(_flat(now))
    for name in {**before, **after}:
        was, is_ = before.get(name, _ABSENT), after.get(name, _ABSENT)
        if was != is_ and not any(name == free or name.startswith(f"{free}.") for free in may_change):
            yield f"{name} was {_shown(was)} and is {_shown(is_)}"


def _flat(options: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in options.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


def _shown(value: Any) -> str:
    return value if value is _ABSENT else json.dumps(value)
