"""Several evaluations in one run: sets of problems and environments, each with its own budget, and one model for all.

A suite is a mapping: options of ``evaluate`` that hold for every set, and ``sets``, each with options of its own that
go over them::

    model: runs/grpo_roc/best
    n: 16
    model_options: {temperature: 0.6}
    sets:
      aime24: {problems: aime24}
      game24: {env: rstar2/Game24-v0, episodes: 100, n: 4, model_options: {max_episode_tokens: 2048}}

Covered: layers of options, the model loaded once, a folder for each set, figures of all sets side by side. Not covered:
what an option means (``rstar2_env.evaluation.run``).
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from rstar2_env.core.errors import ConfigurationError, UnknownOptionError
from rstar2_env.core.files.config_file import read_mapping
from rstar2_env.core.files.folders import check_folder
from rstar2_env.core.files.lines import write_json
from rstar2_env.core.model_name import check_model
from rstar2_env.core.options.declare import Count, check_option
from rstar2_env.core.options.rules import did_you_mean
from rstar2_env.core.run_folder.layout import SUMMARY_FILE
from rstar2_env.core.stop import Stop
from rstar2_env.env.named import find_env
from rstar2_env.env.options import env_options as typed_env_options
from rstar2_env.evaluation.figures.intervals import check_ks
from rstar2_env.evaluation.judges.base import make_judge
from rstar2_env.evaluation.play.agent_crew import typed_agent_options
from rstar2_env.evaluation.play.log import check_out
from rstar2_env.evaluation.play.policy_crew import LoadedModel, load_policy, policy_options
from rstar2_env.evaluation.play.scores import read_scores
from rstar2_env.evaluation.presets import preset
from rstar2_env.evaluation.result import EvalResult
from rstar2_env.evaluation.run import Progress, evaluate
from rstar2_env.problems import load_problems
from rstar2_env.wrappers.registry import read_wrappers

OPTIONS = (
    "env", "agent", "agent_options", "model", "engine", "engine_options", "model_options", "problems", "split",
    "episodes", "n", "k", "seed", "workers", "env_options", "wrappers", "judge", "scores", "baseline", "repeat",
)  # fmt: skip
"""What a suite and each of its sets may say."""

Watch: TypeAlias = Callable[[str], AbstractContextManager[Progress]]
"""Makes what is told of a set's progress, of the set's name."""

_NAME = re.compile(r"[\w][\w.+-]*")


@dataclass(frozen=True, slots=True)
class Suite:
    """Evaluations by name.

    Attributes:
        sets: By name, the options of each, in the order in which they are played.
    """

    sets: Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class SuiteResult:
    """The results of a suite.

    Attributes:
        results: By name, of every set that was begun.
        interrupted: Whether it was stopped before its end.
    """

    results: Mapping[str, EvalResult]
    interrupted: bool

    def mean(self) -> dict[str, float | None]:
        """The mean over sets of each figure that all of them have, each set counted once."""
        every = [result.figures.numbers() for result in self.results.values()]
        shared = [name for name in (every[0] if every else {}) if all(name in one for one in every)]
        return {name: _mean([one[name] for one in every]) for name in shared}

    def to_dict(self) -> dict[str, Any]:
        """The figures of every set, and their mean, as JSON can hold them."""
        return {
            "sets": {name: result.to_dict() for name, result in self.results.items()},
            "mean": self.mean(),
            "interrupted": self.interrupted,
        }


def read_suite(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read the file of a suite, in TOML, YAML or JSON.

    Raises:
        ConfigurationError: It cannot be read, or is not valid; the message names the file.
    """
    return read_mapping(Path(path))


def make_suite(*layers: Mapping[str, Any], last: Mapping[str, Any] | None = None) -> Suite:
    """Make a suite of layers of options.

    Args:
        *layers: Each as a file has it, a later one over those before it. ``preset`` names one that all go over.
            ``sets`` of a later layer replace those of an earlier one.
        last: Options that go over those of each set too.

    Raises:
        ConfigurationError: An option is unknown, or a set has no name that a folder may have.
        UnknownNameError: There is no such preset.
    """
    named = [layer["preset"] for layer in (*layers, last or {}) if layer.get("preset") is not None]
    together: dict[str, Any] = {}
    sets: Mapping[str, Any] = {}
    for layer in (*(preset(str(name)) for name in named[-1:]), *layers):
        rest = {name: value for name, value in layer.items() if name not in ("preset", "sets")}
        together = _over(together, rest, "the suite")
        if (given := layer.get("sets")) is not None:
            sets = _checked_sets(given)
    most = {name: value for name, value in (last or {}).items() if name != "preset"}
    if not sets or most.get("problems") is not None:
        # Problems that were named take the place of those of the sets.
        return Suite({"": _for_player(_over(together, most, "the command line"))})
    return Suite({
        name: _for_player(_over(_over(together, own, f"the set {name!r}"), most, "the command line"))
        for name, own in sets.items()
    })  # fmt: skip


def run_suite(
    suite: Suite,
    *,
    out: str | os.PathLike[str] | None = None,
    resume: bool = False,
    overwrite: bool = False,
    keep: bool = False,
    watch: Watch | None = None,
    stop: Stop | None = None,
) -> SuiteResult:
    """Evaluate every set of a suite.

    Args:
        suite: The sets.
        out: Folder that gets a folder of a run for each set, and ``summary.json``; for a single evaluation without a
            name, what ``evaluate`` takes.
        resume: Take up ``out`` where it ends.
        overwrite: Replace what is in ``out``.
        keep: Keep the episodes in memory where there is no ``out``.
        watch: Makes what is told of a set's progress.
        stop: A request to stop.

    Raises:
        ConfigurationError: The options of a set do not fit together.
    """
    stop = Stop() if stop is None else stop
    results: dict[str, EvalResult] = {}
    alone = list(suite.sets) == [""]
    if out is not None and not alone:
        check_folder(Path(out), "out")
    places = {name: out if alone or out is None else Path(out) / name for name in suite.sets}
    for name, options in suite.sets.items():
        _check_set(name, options)
        if (place := places[name]) is not None:
            check_out(place, resume=resume, overwrite=overwrite)
    with _Models() as models:
        for name, options in suite.sets.items():
            if stop():
                break
            arguments = dict(options)
            env = arguments.pop("env")
            if arguments.get("model") is not None:
                arguments["model"] = models.loaded(arguments)
            with ExitStack() as watching:
                told = watching.enter_context(watch(name)) if watch is not None else None
                results[name] = evaluate(
                    env,
                    **arguments,
                    out=places[name],
                    resume=resume,
                    overwrite=overwrite,
                    keep=keep,
                    progress=told,
                    stop=stop,
                )
            if results[name].interrupted:
                break
        interrupted = len(results) < len(suite.sets) or any(result.interrupted for result in results.values())
        found = SuiteResult(results, interrupted)
        if out is not None and not alone:
            write_json(Path(out) / SUMMARY_FILE, found.to_dict())
    return found


def _check_set(name: str, options: Mapping[str, Any]) -> None:
    """Check what can be checked without a model: a mistake in the last set is told before the first one is played."""
    env = options.get("env")
    if env is None:
        raise ConfigurationError(f"{_what(name)} names no environment: give env, such as rstar2/MathTool-v0.")
    typed_env_options(find_env(env), options.get("env_options"))
    read_wrappers(options.get("wrappers") or ())
    samples = options.get("n", 1)
    check_option("n", samples, Count)
    check_ks(options.get("k"), samples)
    if options.get("problems") is not None:
        load_problems(options["problems"], split=options.get("split") or "test")
    if options.get("judge") is not None:
        make_judge(options["judge"])
    scores = options.get("scores") or ()
    if options.get("model") is not None:
        read_scores(scores, policy_options(options.get("model_options")))
        check_model(options["model"])
    elif options.get("agent") is None:
        raise ConfigurationError("Nobody plays: name an agent or a model.", option="agent", value="NAME")
    else:
        typed_agent_options(options["agent"], options.get("agent_options"))
        read_scores(scores)


class _Models:
    """Holds the model of the set that is played: sets with the same model share it."""

    def __init__(self) -> None:
        self._held: LoadedModel | None = None
        self._key = ""

    def loaded(self, arguments: Mapping[str, Any]) -> LoadedModel:
        options = policy_options(arguments.get("model_options"))
        path, engine = os.fspath(arguments["model"]), arguments.get("engine", "transformers")
        engine_options, seed = arguments.get("engine_options") or {}, arguments.get("seed", 0)
        key = json.dumps([path, engine, engine_options, options.loading()], sort_keys=True, default=str)
        if self._held is None or key != self._key:
            self._close()
            self._held = load_policy(path, options, engine=engine, engine_options=engine_options, seed=seed)
            self._key = key
        return self._held

    def __enter__(self) -> _Models:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def _close(self) -> None:
        if self._held is not None:
            self._held.close()
            self._held = None


def _checked_sets(given: Any) -> Mapping[str, Any]:
    if not isinstance(given, Mapping) or not given:
        raise ConfigurationError(f"sets must be one or more evaluations by name, not {given!r}.")
    for name, own in given.items():
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise ConfigurationError(
                f"The name of a set becomes that of a folder: letters, digits, '-', '_', '+' and '.', not {name!r}."
            )
        if not isinstance(own, Mapping):
            raise ConfigurationError(f"The set {name!r} must be a mapping of options, not {own!r}.")
    return given


def _over(base: Mapping[str, Any], over: Mapping[str, Any], where: str) -> dict[str, Any]:
    """One layer over another; mappings are merged, and another engine or agent drops the options of the one before."""
    found = dict(base)
    for name in over:
        if name not in OPTIONS:
            raise UnknownOptionError(
                f"There is no option {name!r} of {where}; there are {', '.join(OPTIONS)}.{did_you_mean(name, OPTIONS)}"
            )
    for part in ("engine", "agent"):
        if over.get(part) is not None and over[part] != base.get(part):
            found.pop(f"{part}_options", None)
    for name, value in over.items():
        if value is None:
            continue
        both = isinstance(value, Mapping) and isinstance(found.get(name), Mapping)
        found[name] = {**found[name], **value} if both else value
    # Who is named last plays.
    if over.get("agent") is not None:
        found.pop("model", None)
    elif over.get("model") is not None:
        found.pop("agent", None)
        found.pop("agent_options", None)
    return found


def _for_player(options: dict[str, Any]) -> dict[str, Any]:
    """Without what a preset says of models, where an agent plays."""
    mine = ("engine", "engine_options", "model_options")
    return options if "model" in options else {name: options[name] for name in options if name not in mine}


def _what(name: str) -> str:
    return f"The set {name!r}" if name else "The evaluation"


def _mean(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known and len(known) == len(values) else None
