"""``rstar2 train``: train a model with a trainer, by name."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rstar2_env.cli._options import ChatTemplate, LoraRank, Overwrite, ReportTo, ToolOption, Trust, WrapOption
from rstar2_env.cli._printing import say
from rstar2_env.cli._trainers import import_trainers

if TYPE_CHECKING:
    from collections.abc import Mapping


_HOLDOUT = 0.05
_FLAGS = {
    "model": "model.path",
    "chat_template": "model.chat_template",
    "lora_rank": "model.lora_rank",
    "env": "rollout.env",
    "problems": "rollout.env_options.problems",
    "holdout": "rollout.env_options.holdout",
    "wrap": "rollout.wrappers",
    "group_size": "rollout.group_size",
    "problems_per_step": "rollout.problems_per_step",
    "temperature": "rollout.temperature",
    "max_tokens": "rollout.max_episode_tokens",
    "learning_rate": "optim.learning_rate",
    "eval_every": "eval.every",
    "eval_problems": "eval.env_options.problems",
    "eval_wrap": "eval.wrappers",
    "output_dir": "run.output_dir",
    "steps": "run.steps",
    "save_every": "run.save_every",
    "seed": "run.seed",
    "report_to": "run.report_to",
    "resume": "run.resume",
    "overwrite": "run.overwrite",
}
"""Dotted name of the run option that each flag sets; the keys are parameters of ``train_command``."""


def train_command(
    ctx: typer.Context,
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="TRAINER",
            help="Trainer to use: a name from `rstar2 list trainers`, your own recipe (./mine.py:MINE), a "
            "file (recipe.toml), or the folder of an earlier run [default: the trainer in --config].",
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            help="Model to train: a folder, a GGUF file, or the name of a causal language model on the Hugging Face "
            "hub."
        ),
    ] = None,
    problems: Annotated[
        str | None,
        typer.Option(
            metavar="SPEC",
            help="Problems to train on: a JSONL file, or a family of generated problems with options "
            "[default: the problems of the environment].",
        ),
    ] = None,
    eval_problems: Annotated[
        str | None,
        typer.Option(
            metavar="SPEC",
            help="Held-out problems for the evaluations, which are not used for training [default: problems set aside "
            "from --problems].",
        ),
    ] = None,
    holdout: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            max=0.9,
            help="Share of the problem file that is set aside for evaluation, from 0 to 0.9; ignored if "
            "--eval-problems is given [default: 0.05].",
        ),
    ] = None,
    env: Annotated[
        str | None,
        typer.Option(
            metavar="ID",
            help="Environment to train in: a Gymnasium id, or your own environment (./mine.py:MyEnv) "
            "[default: rstar2/MathTool-v0].",
        ),
    ] = None,
    output_dir: Annotated[
        Path | None, typer.Option("--out", "-o", help="Folder to write the run to [default: runs/TRAINER].")
    ] = None,
    steps: Annotated[
        int | None,
        typer.Option(min=1, help="Number of optimizer steps [default: the number that the trainer sets, or 100]."),
    ] = None,
    learning_rate: Annotated[
        float | None,
        typer.Option(
            "--learning-rate",
            "--lr",
            help="Highest learning rate of the schedule [default: the rate that the trainer sets, or one "
            "chosen by the size of the model].",
        ),
    ] = None,
    group_size: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Number of episodes of each problem that a step trains on (the group size G) [default: the "
            "number that the trainer sets, or 8].",
        ),
    ] = None,
    problems_per_step: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Number of problems per step; each gives one group of episodes [default: the number that the "
            "trainer sets, or 8].",
        ),
    ] = None,
    temperature: Annotated[
        float | None,
        typer.Option(
            help="Sampling temperature of the episodes, above 0 [default: the value that the trainer sets, or 1]."
        ),
    ] = None,
    max_tokens: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Maximum number of tokens per episode; the tokens of the prompt do not count [default: the "
            "number that the trainer sets, or 4096].",
        ),
    ] = None,
    eval_every: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Number of steps between evaluations on the held-out problems; 0 disables the evaluations "
            "[default: the number that the trainer sets, or 0].",
        ),
    ] = None,
    save_every: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Number of steps between checkpoints; 0 saves only the last one [default: a tenth of all steps].",
        ),
    ] = None,
    chat_template: ChatTemplate = None,
    lora_rank: LoraRank = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Seed of every random choice.")] = None,
    report_to: ReportTo = None,
    config: Annotated[
        Path | None,
        typer.Option(
            help="File of training options (TOML, YAML), or the folder or config.json of an earlier run; "
            "options on the command line override it.",
        ),
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="Set any other training option (top_p=0.95), or an option of a part (env.max_turns=3, "
            "selector.mode=rank). Repeat the option to set several.",
        ),
    ] = None,
    tool: ToolOption = None,
    wrap: WrapOption = None,
    eval_wrap: Annotated[
        list[str] | None,
        typer.Option(
            "--eval-wrap",
            metavar="NAME[:OPTION=VALUE,...]",
            help="Wrapper around the evaluation environment, in the format of --wrap. (--wrap applies only to the "
            "training environment.)",
        ),
    ] = None,
    trust: Trust = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue the interrupted run in --out from its newest checkpoint.")
    ] = False,
    overwrite: Overwrite = False,
) -> None:
    """Train a model with the named trainer.

    `--set` takes every other option. Common ones: `tokens_per_device=32768`, `engine=vllm`, `oversample=2`, `refill=2`,
    `eval.episodes=512`; options of the environment (`env.max_turns=4`) and the engine (`engine.sleep=true`); parts and
    their options (`selector=roc`, `selector.mode=rank`, `advantage.eps=1e-6`, `loss.kl.coef=1e-3`).

    `rstar2 list trainers NAME` prints every option of a trainer, `rstar2 list parts` lists the parts, and
    docs/options.md explains every option. The folder of the run receives the best and last weights, checkpoints, every
    episode and the metrics.
    """
    from rstar2_env.core.files.outputs import refuse_inputs

    api = import_trainers("api")
    settings = checked_settings(ctx)
    name, layers = api.layers_of(name, config)
    layers = [{"output_dir": str(api.default_folder(name))}, *layers, *settings, *flag_layers(ctx)]
    layers.append(_problems(api.chosen(layers, "rollout", "env_options"), problems, eval_problems, holdout))
    if overwrite and output_dir is not None:
        refuse_inputs(output_dir, [name, config], option="output_dir")
    trainer = api.make_trainer(name, *layers)
    folder = Path(trainer.config.run.output_dir)
    try:
        result = trainer.train()
    except KeyboardInterrupt as interrupt:
        if not getattr(interrupt, "printed", False):  # the backend has printed how to resume
            say(f"Interrupted. {_resume_hint(folder)}", err=True)
        raise typer.Exit(130) from None
    finally:
        trainer.close()
    _report(result)


def _problems(
    training: Mapping[str, Any], problems: str | None, eval_problems: str | None, holdout: float | None
) -> dict[str, Any]:
    """Return the environment options that select the problems of training and evaluation.

    Args:
        training: Environment options that the recipe, ``--config`` or ``--set`` gives.
        problems: Value of ``--problems``.
        eval_problems: Value of ``--eval-problems``.
        holdout: Value of ``--holdout`` [default for a file of problems: the value in ``training``, else ``_HOLDOUT``].
    """
    from rstar2_env.problems import FAMILIES

    options: dict[str, Any] = {} if problems is None else {"problems": problems}
    source = problems or training.get("problems")
    if eval_problems is not None:
        return {"env": options, "eval": {"env": {"problems": eval_problems, "holdout": 0.0}}}
    # A mixture, written as JSON, specifies the holdout of each of its sources.
    in_file = isinstance(source, str) and source.lstrip()[:1] != "{" and source.partition(":")[0] not in FAMILIES
    if holdout or (holdout is None and in_file and "holdout" not in training):
        options["holdout"] = holdout or _HOLDOUT
    return {"env": options}


def _resume_hint(folder: Path) -> str:
    checkpoints = import_trainers("record.checkpoints")
    newest = checkpoints.newest_checkpoint(folder)
    if newest is not None:
        steps = checkpoints.step_of(newest)
        return f"To continue after step {steps}, the newest checkpoint in {folder}, run the same command with --resume."
    return (
        f"The run cannot be continued, because {folder} does not contain a checkpoint; --save-every N writes "
        "one every N steps."
    )


def checked_settings(ctx: typer.Context) -> list[dict[str, Any]]:
    """Return the options that ``--set`` and ``--tool`` give: one dict for each argument, in the given order.

    Raises:
        ConfigurationError: A flag gives one of these options a different value.
    """
    from rstar2_env.cli._options import layers_of, refuse_disagreement, with_tools

    api = import_trainers("api")
    given = with_tools(ctx.params["set_"], ctx.params["tool"])
    settings = layers_of(given)
    refuse_disagreement(ctx, _given_flags(ctx), api.by_setting(given, settings), api.typed_value)
    return settings


def _given_flags(ctx: typer.Context) -> dict[str, tuple[str, object]]:
    """Return, for each run option that a flag gives, the name of the flag's parameter and the value."""
    absent: tuple[Any, ...] = (None, (), [])
    given = {parameter: value for parameter in _FLAGS if (value := ctx.params[parameter]) not in absent}
    return {_FLAGS[parameter]: (parameter, value) for parameter, value in given.items() if value is not False}


def flag_layers(ctx: typer.Context) -> list[dict[str, Any]]:
    """Return the run options that the flags of ``rstar2 train`` give, except options of the environment."""
    from rstar2_env.cli._command import flag
    from rstar2_env.cli._options import as_typed

    layers = []
    for option, (parameter, value) in _given_flags(ctx).items():
        group, of_group, *of_env = option.split(".")
        if not of_env:
            layers.append({group: {of_group: as_typed(value, flag(ctx, parameter))}})
    return layers


def _report(result: Any) -> None:
    from rstar2_env.cli._tables import print_figures, print_text
    from rstar2_env.cli.demo import FIGURES, figure_text

    rows = {"run": str(result.output_dir), "model": str(result.model_dir)}
    if result.best_step is not None:
        rows["best step"] = str(result.best_step)
    if result.before and result.after:
        for figure, label in FIGURES.items():
            rows[label] = f"{figure_text(result.before, figure)} -> {figure_text(result.after, figure)}"
    print_figures("trained", rows)
    for sentence in (result.outcome,) if result.verdict is None else result.verdict.sentences:
        print_text(sentence)
    for command in () if result.verdict is None else result.verdict.commands:
        say(f"next: {command}")  # not wrapped, so that it can be copied
