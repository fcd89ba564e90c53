"""Several evaluations (sets) in one run: each set has its own problems, environment and budget; the model is shared.

A suite is a mapping: options of ``evaluate`` that apply to every set, and ``sets``, each with options that override
them::

    model: runs/grpo_roc/best
    n: 16
    model_options: {temperature: 0.6}
    sets:
      aime24: {problems: aime24}
      game24: {env: rstar2/Game24-v0, episodes: 100, n: 4, model_options: {max_episode_tokens: 2048}}

Covered: layers of options, the model loaded once, a folder for each set, figures of all sets side by side. Not covered:
the meaning of an option (``rstar2_env.evaluation.options``).
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from rstar2_env.core.errors import ConfigurationError, UnknownOptionError
from rstar2_env.core.files.config_file import read_mapping
from rstar2_env.core.files.json_lines import write_json
from rstar2_env.core.files.outputs import begin_folder, check_folder, list_files
from rstar2_env.core.model_name import check_model
from rstar2_env.core.options.rules import did_you_mean
from rstar2_env.core.progress import progress as show_progress
from rstar2_env.core.run_folder.layout import SUMMARY_FILE
from rstar2_env.core.stop_request import Stop
from rstar2_env.core.text import html_table, text_table
from rstar2_env.evaluation.figures.text import NOTHING
from rstar2_env.evaluation.options import EvaluationOptions, make_parts
from rstar2_env.evaluation.play.log import check_out
from rstar2_env.evaluation.play.policy_crew import LoadedModel, load_policy, policy_options
from rstar2_env.evaluation.presets import preset
from rstar2_env.evaluation.result import EvalResult
from rstar2_env.evaluation.run import ProgressCallback, check_resumed_model, evaluate
from rstar2_env.problems import load_problems

OPTIONS = ("env", *(field.name for field in fields(EvaluationOptions)))
"""Names of the options that a suite, and each of its sets, can have."""

_NAME = re.compile(r"[\w][\w.+-]*")


@dataclass(frozen=True, slots=True)
class Suite:
    """The options of several evaluations, by name.

    Attributes:
        sets: The options of each evaluation by its name, in the order of playing; each evaluation is called a set.
    """

    sets: Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class SuiteResult:
    """The results of a suite.

    Attributes:
        results: The result of every set that began, by name.
        interrupted: Whether the suite was stopped before its end.
    """

    results: Mapping[str, EvalResult]
    interrupted: bool

    def mean(self) -> dict[str, float | None]:
        """For each figure that all sets have, its mean over the sets; all sets have the same weight."""
        every = [result.figures.numbers() for result in self.results.values()]
        shared = [name for name in (every[0] if every else {}) if all(name in one for one in every)]
        return {name: _mean([one[name] for one in every]) for name in shared}

    def __str__(self) -> str:
        """The table of each set's figures, and the means of the figures over the sets."""
        return "\n\n".join([*map(str, self.results.values()), text_table("mean of the sets", self._means())])

    def _repr_html_(self) -> str:
        each = "".join(result._repr_html_() for result in self.results.values())
        return each + html_table("mean of the sets", self._means())

    def _means(self) -> list[tuple[str, str]]:
        means = self.mean().items()
        return [(name, f"{value:.4f}") for name, value in means if value is not None] or [("", NOTHING)]

    def to_dict(self) -> dict[str, Any]:
        """Return the figures of every set, and their means over the sets, as JSON values."""
        return {
            "sets": {name: result.to_dict() for name, result in self.results.items()},
            "mean": self.mean(),
            "interrupted": self.interrupted,
        }


def read_suite(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read the file of a suite, in TOML, YAML or JSON.

    Raises:
        ConfigurationError: The file cannot be read or is not valid; the message names it.
    """
    return read_mapping(Path(path))


def make_suite(*layers: Mapping[str, Any], last: Mapping[str, Any] | None = None) -> Suite:
    """Make a suite from layers of options.

    Args:
        *layers: Mappings, each like the content of a suite's file. A later layer overrides earlier layers, and its
            ``sets`` replace theirs. All layers override the preset; if several name a ``preset``, the last is used.
        last: Options that override every layer and the options of every set. If they name ``problems``, the suite is a
            single evaluation of these problems, without the sets.

    Raises:
        ConfigurationError: An option is unknown, or the name of a set is not a valid folder name.
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
        # Problems on the command line replace those of the sets.
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
    progress: ProgressCallback | bool = True,
    stop: Stop | None = None,
) -> SuiteResult:
    """Evaluate every set of a suite.

    Args:
        suite: The sets with their options.
        out: Folder for ``summary.json`` and the run folder of each set; for a single evaluation without a name, the
            file or folder that ``evaluate`` takes. ``None`` writes nothing.
        resume: Continue ``out`` where it ends.
        overwrite: Replace the contents of ``out``.
        keep: Keep the episodes in memory if there is no ``out``.
        progress: Show the progress of each set; or a callback after every episode.
        stop: Once a stop is requested, no further episode begins.

    Raises:
        ConfigurationError: The options of a set contradict each other.
    """
    stop = Stop() if stop is None else stop
    results: dict[str, EvalResult] = {}
    alone = list(suite.sets) == [""]
    if out is not None and not alone:
        check_folder(
            out, "suite", resume=resume, overwrite=overwrite, inputs=[dict(one) for one in suite.sets.values()]
        )
    places = {name: out if alone or out is None else Path(out) / name for name in suite.sets}
    for name, options in suite.sets.items():
        if (place := places[name]) is not None:
            check_out(place, resume=resume, overwrite=overwrite, inputs=dict(options))
        _check_set(name, options, place if resume else None)
    if out is not None and not alone:
        begin_folder(out, "suite", SUMMARY_FILE, resume=resume)
        list_files(out, folders=dict.fromkeys(suite.sets))
    with _Models() as models:
        for name, options in suite.sets.items():
            if stop():
                break
            arguments = dict(options)
            env = arguments.pop("env")
            with show_progress(name or "evaluation", show=progress is True and arguments.get("agent") != "human"):
                if arguments.get("model") is not None:
                    arguments["model"] = models.loaded(arguments)
                results[name] = evaluate(
                    env,
                    **arguments,
                    out=places[name],
                    resume=resume,
                    overwrite=overwrite,
                    keep=keep,
                    progress=progress,
                    stop=stop,
                )
            if results[name].interrupted:
                break
        interrupted = len(results) < len(suite.sets) or any(result.interrupted for result in results.values())
        found = SuiteResult(results, interrupted)
        if out is not None and not alone:
            write_json(Path(out) / SUMMARY_FILE, found.to_dict())
    return found


def _check_set(name: str, options: Mapping[str, Any], resumed: str | os.PathLike[str] | None) -> None:
    """Perform the checks that need no model, so that a mistake in any set is reported before playing begins.

    Args:
        name: Name of the set.
        options: Options of the set.
        resumed: File or folder of the set's earlier episodes; ``None`` if the set is not resumed.
    """
    env = options.get("env")
    if env is None:
        what = f"The set {name!r}" if name else "The evaluation"
        raise ConfigurationError(f"{what} does not name an environment: give one, such as rstar2/MathTool-v0.")
    asked = EvaluationOptions(**{option: value for option, value in options.items() if option != "env"})
    parts = make_parts(env, asked)
    if asked.problems is not None:
        load_problems(asked.problems, split=asked.split)
    if asked.model is not None:
        check_model(asked.model)
    if resumed is not None:
        check_resumed_model(resumed, env, asked, parts)


class _Models:
    """Keeps the loaded model between sets that share it."""

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
        raise ConfigurationError(
            f"`sets` of a suite must map at least one name to the options of an evaluation; got {given!r}."
        )
    for name, own in given.items():
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise ConfigurationError(
                "The name of a set is also the name of a folder, so it may contain only letters, digits, "
                f"'-', '_', '+' and '.'; got {name!r}."
            )
        if not isinstance(own, Mapping):
            raise ConfigurationError(
                f"The set {name!r} of the suite must be a mapping of options of an evaluation, not {own!r}."
            )
    return given


def _over(base: Mapping[str, Any], over: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return the options ``base``, overridden by ``over``; ``where`` names the origin of ``over`` in error messages.

    If ``over`` names another engine or agent, the ``engine_options`` or ``agent_options`` of ``base`` are dropped.
    """
    found = dict(base)
    for name in over:
        if name not in OPTIONS:
            raise UnknownOptionError(
                f"There is no option {name!r} for {where}.{did_you_mean(name, OPTIONS)} Options: {', '.join(OPTIONS)}."
            )
    for part in ("engine", "agent"):
        if over.get(part) is not None and over[part] != base.get(part):
            found.pop(f"{part}_options", None)
    for name, value in over.items():
        if value is None:
            continue
        both = isinstance(value, Mapping) and isinstance(found.get(name), Mapping)
        found[name] = {**found[name], **value} if both else value
    # The player named last is used.
    if over.get("agent") is not None:
        found.pop("model", None)
    elif over.get("model") is not None:
        found.pop("agent", None)
        found.pop("agent_options", None)
    return found


def _for_player(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options that the player needs; without ``model``, these exclude the options of engine and model."""
    mine = ("engine", "engine_options", "model_options")
    return options if "model" in options else {name: options[name] for name in options if name not in mine}


def _mean(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known and len(known) == len(values) else None
