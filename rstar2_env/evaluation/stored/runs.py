"""Find stored episodes by the names that commands use, and the environment in which they were played.

``RUN`` is the folder of a run or an evaluation's file; ``RUN@STEP`` names the held-out episodes after a step of
training, by default the last step. Not covered: the format (``rstar2_env.core.run_folder``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from rstar2_env.core import trust
from rstar2_env.core.errors import ConfigurationError, Rstar2Error
from rstar2_env.core.run_folder import EpisodeEntry, Run, read_run
from rstar2_env.core.run_folder.layout import RUN_FILE
from rstar2_env.core.trust import UntrustedError
from rstar2_env.problems import Problem, ProblemSource, ProblemSpec, load_problems
from rstar2_env.wrappers.make import make_env

_AT_STEP = re.compile(r"(.+)@(\d+)")
_PLACE = re.compile(r"(\d+)(?:/(\d+)/(\d+))?")


@dataclass(frozen=True, slots=True)
class Stored:
    """Held-out episodes of a run.

    Attributes:
        name: Name of the run, as the user wrote it.
        run: Reader of the run's folder or file.
        step: Training step after which the episodes were played; 0 in an evaluation.
    """

    name: str
    run: Run
    step: int

    def __iter__(self) -> Iterator[EpisodeEntry]:
        """The episodes, one by one, in the order in which they ended."""
        return self.run.each_held_out(self.step)


@dataclass(frozen=True, slots=True)
class Setting:
    """Environment, options and problems of a run.

    Attributes:
        env: The environment, as ``make_env`` takes it.
        env_options: Options of the environment.
        wrappers: Wrappers of the environment, the innermost first.
        problems: Source of the problems; empty if the environment chose the problems.
        split: Split of the source.
        trusted: Whether the setting may name code to import, because the user wrote the setting or trusts the run
            (``rstar2_env.core.trust``).
    """

    env: str
    env_options: Mapping[str, Any] = field(default_factory=dict)
    wrappers: tuple[Any, ...] = ()
    problems: str = ""
    split: str = ""
    trusted: bool = True


def find_stored(written: str) -> Stored:
    """Find the held-out episodes that a name refers to.

    Args:
        written: ``RUN@STEP``, or ``RUN`` for the last step with held-out episodes.

    Raises:
        ConfigurationError: There is no such run, or it has no held-out episodes after that step.
    """
    path, step = written, None
    if (match := _AT_STEP.fullmatch(written)) and not Path(written).exists():
        path, step = match[1], int(match[2])
    run = read_run(path)
    steps = run.evaluated_steps
    if not steps:
        raise ConfigurationError(
            f"{path}, a run of the kind {run.kind}, has no held-out episodes: expected an evaluation (rstar2 eval), "
            "or a training run with eval.every."
        )
    if step is None:
        step = steps[-1]
    if step not in steps:
        known = ", ".join(map(str, steps))
        raise ConfigurationError(
            f"{path} has no held-out episodes of step {step}; it has held-out episodes of the steps {known}."
        )
    return Stored(written, run, step)


def find_sets(written: str) -> dict[str, Stored]:
    """Find the held-out episodes of a single run, or of every set of problems in a suite of evaluations.

    Args:
        written: A run, as ``find_stored`` takes it, or the folder of a suite.

    Returns:
        The episodes of each set, by the name of the set; those of a single run have an empty name.

    Raises:
        ConfigurationError: There is no such run, or it has no held-out episodes after the step in ``written``.
    """
    folder = Path(written)
    if folder.is_dir() and not (folder / RUN_FILE).exists():
        sets = sorted(path.parent for path in folder.glob(f"*/{RUN_FILE}"))
        if sets:
            return {path.name: find_stored(str(path)) for path in sets}
    return {"": find_stored(written)}


@dataclass(frozen=True, slots=True)
class OneStored:
    """One episode of a run.

    Attributes:
        run: The run.
        entry: The episode as the run stores it, with its step and further data, such as the gold answer.
        trained: Whether the episode was played for training; otherwise it is held out.
    """

    run: Run
    entry: EpisodeEntry
    trained: bool


def find_episode(written: str, place: str) -> OneStored:
    """Find one episode of a run.

    Args:
        written: ``RUN``, or ``RUN@STEP`` for held-out episodes after STEP; ``RUN`` alone means the last step.
        place: The number of a held-out episode, or ``STEP/GROUP/MEMBER`` of an episode played for training.

    Raises:
        ConfigurationError: There is no such run, or no such episode.
    """
    match = _PLACE.fullmatch(place)
    if match is None:
        raise ConfigurationError(
            f"{place!r} does not name an episode: expected a number for an episode on held-out problems, or "
            "STEP/GROUP/MEMBER for a training episode."
        )
    found: EpisodeEntry | None = None
    if match[2] is None:
        stored = find_stored(written)
        run, highest = stored.run, -1
        for entry in stored:
            highest = max(highest, entry.episode.group)
            if entry.episode.group == int(place):
                found = entry
                break
        numbers = (
            f"its held-out episodes have the numbers 0 to {highest}"
            if highest >= 0
            else "it contains no held-out episodes"
        )
    else:
        run = read_run(written)
        step, group, member = (int(part) for part in match.groups())
        trained = list(run.episodes(step))
        numbers = f"it contains {len(trained)} episodes of step {step}"
        found = next((entry for entry in trained if (entry.episode.group, entry.member) == (group, member)), None)
    if found is None:
        raise ConfigurationError(f"{written} does not contain the episode {place}: {numbers}.")
    return OneStored(run, found, match[2] is not None)


def setting_of(run: Run, *, trained: bool = False) -> Setting:
    """Return the environment, options and problems of a run.

    Args:
        run: The run.
        trained: Whether to return the settings of training; otherwise the settings of evaluation.

    Raises:
        UntrustedError: The options choose a sandbox, an environment variable, an address or another thing that only
            the user may choose (``rstar2_env.core.trust``).
        ConfigurationError: The run does not record its environment, or the environment was an object without a name.
    """
    config = run.config
    rollout, evaluation = _table(config, "rollout"), _table(config, "eval")
    if rollout:
        options = _table(rollout, "env_options") | ({} if trained else _table(evaluation, "env_options"))
        wrappers = _wrappers((rollout if trained else evaluation).get("wrappers"))
        setting = Setting(str(rollout.get("env", "")), options, wrappers)
    else:
        setting = Setting(
            str(config.get("env", "")),
            _table(config, "env_options"),
            _wrappers(config.get("wrappers")),
            str(config.get("problems") or ""),
            str(config.get("split") or ""),
        )
    if not setting.env:
        raise ConfigurationError(f"{run.path} does not record in which environment its episodes were played.")
    return replace(setting, trusted=trust.found(run.path, config, only=asdict(setting)))


def problems_of(setting: Setting, problems: ProblemSpec | None, split: str | None = None) -> ProblemSource | None:
    """Find the problems of stored episodes.

    Args:
        setting: Environment and options of the run.
        problems: Source to use instead of the run's source; ``None`` uses the run's.
        split: Split of the source; ``None`` uses the run's, or ``test`` if the run has none.

    Returns:
        The source; ``None`` if it cannot be found from the run's record.
    """
    if problems is not None:
        return load_problems(problems, split=split or setting.split or "test")
    if setting.problems:
        try:
            with trust.bounds(trust=setting.trusted):
                return load_problems(setting.problems, split=setting.split or "test")
        except UntrustedError:
            raise
        except (Rstar2Error, OSError):
            pass
    with trust.bounds(trust=setting.trusted), closing(make_env(setting.env, **setting.env_options)) as env:
        source = getattr(env.unwrapped, "problems", None)
        fits = isinstance(source, ProblemSource) and setting.problems in ("", source.name)
        return source if fits else None


def problem_of(source: ProblemSource | None, problem_id: str) -> Problem | None:
    """Return the problem with an id; ``None`` if the source does not have it."""
    if source is None or not problem_id:
        return None
    try:
        return source.get(problem_id)
    except Rstar2Error:
        return None


def _table(config: Mapping[str, Any], name: str) -> dict[str, Any]:
    value = config.get(name)
    return dict(value) if isinstance(value, Mapping) else {}


def _wrappers(value: Any) -> tuple[Any, ...]:
    return (value,) if isinstance(value, str) and value else tuple(value or ())
