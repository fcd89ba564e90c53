"""Entry points: create a trainer by name, and run a cold start (supervised fine-tuning on traces).

The backends are imported only when one of these functions is called, so that listing trainers needs no torch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any, Unpack

from rstar2_env.core import trust
from rstar2_env.core.closing import release_memory
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.declare import call_with_options, nested_options, read_loosely, typed_options
from rstar2_env.core.progress import progress
from rstar2_env.models.folder import folder_of_gguf, model_folder

from .base import TRAINERS, Recipe, Trainer, needs_training_stack
from .options.cold_start import SftOptions
from .options.config import GROUPS, TrainConfig, run_record
from .options.files import RUN_FILE, OptionsFile, is_file_name, is_run, read_file
from .options.keywords import SftKeywords, TrainKeywords
from .options.layers import merged, read_slot
from .options.names import by_full_name, in_groups
from .options.parts import AUTO, make_parts
from .ranks import first_process
from .record.resume import MAY_CHANGE, SFT_FILE, SFT_MAY_CHANGE, check_begun, checkpoint_to_resume
from .samplers.base import problems_of


def make(name: str, *, callbacks: Sequence[Any] = (), **options: Unpack[TrainKeywords]) -> Trainer:
    """Create a trainer by name.

    Args:
        name: A name that ``rstar2 list trainers`` lists, a recipe in your own code (``./mine.py:MY_RECIPE``), a file of
            options that names or defines a recipe (``recipe.toml``), or the folder of a run. The options in that folder
            may name code if the run began on this machine, or within ``trust.bounds(trust=True)`` (docs/trust.md).
        callbacks: Hooks, or callbacks of transformers, in addition to the recipe's.
        **options: The options of ``TrainConfig``, in groups (``optim={"learning_rate": 1e-6}``) or by their short names
            (``learning_rate=1e-6``, ``selector="roc:mode=rank"``); ``model`` is required. A part may also be given as
            the class or function itself.

    Raises:
        UnknownNameError: No trainer has this name; the message suggests the nearest.
        ConfigurationError: An option is unknown, missing or out of its range.
        UntrustedError: The folder of a run names something that only the user may name, such as code, a sandbox, an
            environment variable or a network address.
        MissingExtraError: torch, transformers or TRL is not installed.
    """
    return make_trainer(name, options, callbacks=callbacks)


def make_trainer(name: str, *layers: Mapping[str, Any], callbacks: Sequence[Any] = ()) -> Trainer:
    """Create a trainer like ``make``, but from several mappings of options; later ones override earlier ones."""
    is_data = is_run(name) and (is_file_name(name) or name not in TRAINERS)
    with trust.bounds() if is_data else nullcontext():
        trust.own(layers)
        return _made(name, layers, callbacks)


def _made(name: str, layers: Sequence[Mapping[str, Any]], callbacks: Sequence[Any]) -> Trainer:
    recipe, of_file = find_recipe(name)
    config = recipe.configure(of_file, *layers)
    config.parts.hook += read_slot("hook", list(callbacks))
    inputs = {name: group for name, group in config.record().items() if name != "run"}
    check_begun(config.run.output_dir, resume=config.run.resume, overwrite=config.run.overwrite, inputs=inputs)
    with progress(f"{recipe.name}: preparing", show=config.run.progress and first_process()):
        config.model.path = model_folder(config.model.path)
        config.model.teacher = folder_of_gguf(config.model.teacher)
        if config.run.resume:
            _check_resumed(recipe.name, config)
        if isinstance(config.rollout.env, str):
            with progress("trying the environment"):
                _try_environments(config)
        with progress("importing torch and TRL"), needs_training_stack(f"The trainer {name!r}"):
            from .backends.trl.run.build import build_run
        return build_run(recipe.name, config)


def find_recipe(name: str) -> tuple[Recipe, dict[str, Any]]:
    """Return the recipe that a name refers to, and the options of the file if the name refers to a file.

    Args:
        name: See ``make``.

    Raises:
        UnknownNameError: No trainer has this name; the message suggests the nearest.
        ConfigurationError: The file cannot be read, or does not name a trainer.
    """
    if not is_file_name(name) and (name in TRAINERS or not is_run(name)):
        return TRAINERS.get(name), {}
    return recipe_of(read_file(name), name)


def recipe_of(found: OptionsFile, name: str) -> tuple[Recipe, dict[str, Any]]:
    """Return the recipe and the options in a file of options; ``name`` is the file's name."""
    if found.of_run:
        return Recipe(found.trainer or "run"), found.options
    if found.trainer:
        return TRAINERS.get(found.trainer), found.options
    if "parts" not in found.options:
        raise ConfigurationError(
            f'{name} does not name a trainer: add trainer = "grpo_roc" (or another name that `rstar2 '
            "list trainers` lists), or a table [parts] that describes your own trainer."
        )
    about: dict[str, Any] = {"name": Path(name).stem, **found.about}
    return Recipe(**about), found.options


def sft(traces: Iterable[Mapping[str, Any]], **options: Unpack[SftKeywords]) -> Path:
    """Fine-tune a model on tool-use traces (the cold start); return the folder of the final model.

    Args:
        traces: Records with ``messages``, as ``rstar2 traces`` writes them.
        **options: Fields of ``SftOptions``; ``model`` is required.

    Raises:
        ConfigurationError: An option is unknown, no trace is short enough, or the model cannot be loaded.
        ProblemFormatError: A record is not a trace.
        MissingExtraError: torch, transformers or TRL is not installed.
    """
    from rstar2_env.traces.reading import check_traces  # here, since a trainer needs no traces

    chosen = call_with_options("cold start", SftOptions, options)
    if isinstance(traces, Sequence):  # an iterator is checked while it is tokenized
        check_traces(traces)
    check_begun(chosen.output_dir, "sft", resume=chosen.resume, overwrite=chosen.overwrite, inputs=[chosen.model])
    chosen.model = model_folder(chosen.model)
    checkpoint = None
    if chosen.resume:
        checkpoint = checkpoint_to_resume(
            chosen.output_dir, asdict(chosen), steps=chosen.steps, record=SFT_FILE, may_change=SFT_MAY_CHANGE
        )
    shown = progress("cold start: importing torch and TRL", show=chosen.progress and first_process())
    with shown, needs_training_stack("The cold start"):
        from .backends.trl.sft import run_sft
    try:
        return run_sft(traces, chosen, checkpoint)
    finally:
        release_memory()


def layers_of(name: str | None, config: str | Path | None) -> tuple[str, list[dict[str, Any]]]:
    """Return the name of the trainer to create, and the options of the file as layers.

    Args:
        name: A trainer, as for ``make``; it overrides the trainer that the file names.
        config: A file of options, or a run's folder.

    Raises:
        ConfigurationError: The file cannot be read, neither ``name`` nor the file names a trainer, or ``config``
            belongs to a run of a trainer other than ``name``.
    """
    if config is None:
        if name is None:
            raise ConfigurationError(
                "No trainer was named: give the name of a trainer that `rstar2 list trainers` lists, or "
                "a file of options that names one."
            )
        return name, []
    if name is None:
        recipe_of(read_file(config), str(config))
        return str(config), []
    found = read_file(config)
    if found.of_run and found.trainer not in ("", name):
        raise ConfigurationError(
            f"{config} is the configuration of a run of the trainer {found.trainer!r}, with all parts of "
            f"this trainer, so it cannot be used for {name!r}. To train with {name!r}, write the options "
            "that you want to keep into a separate file."
        )
    return name, [found.options]


def by_setting(written: Sequence[str] | None, layers: Sequence[Mapping[str, Any]]) -> dict[str, tuple[str, Any]]:
    """Return, by the full name of each option that a ``--set`` argument sets, the argument and the option's value.

    Args:
        written: The ``--set`` arguments, as typed.
        layers: The options that each argument sets.
    """
    return {
        option: (each, value)
        for each, layer in zip(written or (), layers, strict=True)
        for option, value in by_full_name(layer).items()
    }


def typed_value(name: str, value: Any) -> Any:
    """Return a value in the type of the option with this full name; text is parsed.

    Raises:
        ConfigurationError: The option does not accept the value.
    """
    group, option, *inner = name.split(".")
    if inner or group not in GROUPS:
        return read_loosely(value)
    return typed_options("trainer", GROUPS[group], {option: value}, prefix=f"{group}.")[option]


def default_folder(name: str) -> Path:
    """Return the default folder of a run: ``runs/NAME``, or the folder of the earlier run that ``name`` refers to."""
    path = Path(name)
    for folder in (path, path.parent):
        if is_run(folder) and path in (folder, folder / RUN_FILE):
            return folder
    return Path("runs", path.stem)


def chosen(layers: Iterable[Mapping[str, Any]], group: str, name: str) -> dict[str, Any]:
    """Return the merged value of the option ``GROUP.NAME``, which is a mapping; later layers override earlier ones."""
    found: dict[str, Any] = {}
    for layer in layers:
        found = merged(found, nested_options(name, in_groups(layer).get(group, {}).get(name, {})))
    return found


def _check_resumed(name: str, config: TrainConfig) -> None:
    """Compare the options with those of the run that is resumed, before torch is imported.

    Options that are ``"auto"``, and those of TRL, are compared later, in ``build_run``.
    """
    later = ["optim.trl_options"]
    later += ["model.dtype"] if config.model.dtype == AUTO else []
    later += ["parts.correction"] if config.parts.correction.name == AUTO else []
    checkpoint_to_resume(
        config.run.output_dir, run_record(name, config), steps=config.run.steps, may_change=MAY_CHANGE, later=later
    )


def _try_environments(config: TrainConfig) -> None:
    """Create both environments (training, evaluation) and the sampler once, to find errors before a model is loaded."""
    from rstar2_env.wrappers.make import make_env  # here, since listing trainers creates none

    with closing(make_env(config.rollout.env, wrappers=config.rollout.wrappers, **config.rollout.env_options)) as env:
        make_parts(config, shares_weights=True).sampler_factory(problems_of(env), config.run.seed)
    make_env(config.rollout.env, wrappers=config.eval.wrappers, **config.eval_env_options).close()
