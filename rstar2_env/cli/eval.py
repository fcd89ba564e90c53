"""``rstar2 eval``: evaluate a model or an agent on environments, and print the results."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rstar2_env.cli._options import ChatTemplate, Json, Overwrite, ToolOption, WrapOption
from rstar2_env.cli._printing import say

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rstar2_env.evaluation.suite import SuiteResult


def eval_command(
    ctx: typer.Context,
    what: Annotated[
        str | None,
        typer.Argument(
            metavar="ID|FILE",
            help="Environment: a Gymnasium id (rstar2/MathTool-v0), your own environment "
            "(./mine.py:mine/Divisors-v0), or a suite file (suite.yaml) that lists several problem sets "
            "and environments [default: the environment of --preset].",
        ),
    ] = None,
    agent: Annotated[
        str | None,
        typer.Option(help="Agent that plays: a name from `rstar2 list agents`, or your own agent (./mine.py)."),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            metavar="PATH",
            help="Model that plays: a folder (runs/RUN/best), a GGUF file, or a name on the Hugging Face hub.",
        ),
    ] = None,
    engine: Annotated[
        str | None,
        typer.Option(
            help="Engine that runs --model: transformers, vllm, vllm-server, or your own engine [default: "
            "transformers]."
        ),
    ] = None,
    problems: Annotated[
        str | None,
        typer.Option(
            metavar="SPEC",
            help="Problems to play: a file (JSONL, JSON, CSV, TSV, Parquet), a folder written by "
            "save_to_disk, a public set by name (gsm8k), a set on the Hugging Face hub (hf:owner/name), "
            "or a family of generated problems (arithmetic:level=3) [default: the problems of the "
            "environment].",
        ),
    ] = None,
    split: Annotated[
        str | None, typer.Option(help="Split of the problems to play, if they are divided into splits [default: test].")
    ] = None,
    episodes: Annotated[
        int | None,
        typer.Option(
            "--episodes",
            "-n",
            min=1,
            help="Number of problems to play; for an environment without a list of problems, number of seeds [default: "
            "all problems, if their number is finite].",
        ),
    ] = None,
    n: Annotated[
        int | None,
        typer.Option(
            "--samples", min=1, help="Number of episodes that are played for each problem or seed [default: 1]."
        ),
    ] = None,
    k: Annotated[
        str | None,
        typer.Option(
            metavar="K[,K...]",
            help="Numbers of samples k for pass@k, avg@k and maj@k, separated by commas [default: 1 and the "
            "value of --samples].",
        ),
    ] = None,
    preset: Annotated[
        str | None,
        typer.Option(
            help="Use the settings of a published evaluation: rstar2 (temperature 0.6, 30 turns, 30K tokens, "
            "16 samples, on MATH-500, AIME24, AIME25 and HMMT25). Options that you give override these settings."
        ),
    ] = None,
    temperature: Annotated[
        float | None,
        typer.Option(
            min=0, help="Sampling temperature of --model; 0 always selects the most likely token [default: 1]."
        ),
    ] = None,
    max_tokens: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Maximum number of tokens that --model may use in one episode; the tokens of the prompt do not "
            "count [default: 4096].",
        ),
    ] = None,
    chat_template: ChatTemplate = None,
    judge: Annotated[
        str | None,
        typer.Option(
            metavar="NAME[:OPTION=VALUE,...]",
            help="Judge that decides whether the reasoning of a correct episode is sound, for the metric CoT-pass@k: "
            "statuses (a failed tool call counts as a wrong step), model:base_url=URL,model=NAME, or your own judge.",
        ),
    ] = None,
    score: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME[:OPTION=VALUE,...]",
            help="Also score each episode with this reward component: tool_use, overlong, "
            "rubric:judge=(model:url=URL,model=NAME), or your own component; `rstar2 list parts reward` "
            "lists them. Repeat the option to use several.",
        ),
    ] = None,
    baseline: Annotated[
        Path | None,
        typer.Option(
            help="Folder or file of another evaluation of the same problems; the results then list the problems "
            "that only one of the two evaluations solved."
        ),
    ] = None,
    repeat: Annotated[
        bool,
        typer.Option("--repeat", help="Play the first 8 episodes twice, and report how many are the same both times."),
    ] = False,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Seed of the random choice of problems and of every episode [default: 0].")
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Number of threads for --agent; each thread has its own environment [default: 4 per CPU core, at most "
            "32].",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help="Write the results to a run folder (NAME) or to a file with one JSON line per episode "
            "(NAME.jsonl); for a suite, to a folder that holds one run folder per set.",
        ),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue the interrupted evaluation in --out.")] = False,
    overwrite: Overwrite = False,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="PART.NAME=VALUE",
            help="Set an option of the environment (env.max_turns=3), the agent (agent.corrupt=true), the "
            "model (model.top_p=0.95) or the engine (engine.gpu_memory_utilization=0.8). Repeat the "
            "option to set several.",
        ),
    ] = None,
    tool: ToolOption = None,
    wrap: WrapOption = None,
    as_json: Json = False,
) -> None:
    """Evaluate a model or an agent on an environment, many episodes at a time, and print the results.

    A model plays with the same tool loop as in training, token for token. Ctrl-C starts no new episodes and prints the
    results so far; a run with --out can be continued with --resume, even after a kill. docs/evaluation.md explains
    every metric.
    """
    from rstar2_env.cli._command import flag, is_typed
    from rstar2_env.cli._interrupt import stopped_by_ctrl_c
    from rstar2_env.cli._options import check_flags, options_of, source_of, whole_numbers, with_tools
    from rstar2_env.core.files.config_file import SUFFIXES, naming_files
    from rstar2_env.core.files.outputs import refuse_inputs
    from rstar2_env.evaluation.suite import make_suite, read_suite, run_suite

    if resume and out is None:
        raise typer.BadParameter(
            "--resume continues an evaluation that was written to --out: add --out with that file or folder."
        )
    options = options_of(with_tools(set_, tool), "env", "agent", "model", "engine")
    flags = {
        "model.temperature": ("temperature", temperature),
        "model.max_episode_tokens": ("max_tokens", max_tokens),
        "model.chat_template": ("chat_template", chat_template),
        "env.problems": ("problems", problems),
        "env.split": ("split", split),
    }
    options["model"] |= {
        option.partition(".")[2]: value
        for option, value in check_flags(ctx, options, flags).items()
        if option.startswith("model.")
    }
    if agent is not None and (model or engine or options["model"] or options["engine"]):
        of_model = ("model", "engine", "temperature", "max_tokens", "chat_template")
        typed = [flag(ctx, name) for name in of_model if is_typed(ctx, name)]
        typed += [f"--set {one}" for one in set_ or () if one.startswith(("model.", "engine."))]
        raise typer.BadParameter(
            f"--agent does not use --model or its options: omit {' and '.join(typed)}, or omit --agent."
        )
    chosen = {
        "agent": agent,
        "model": model,
        "engine": engine,
        "problems": None if problems is None else source_of(problems, split, "test"),
        "split": split,
        "episodes": episodes,
        "n": n,
        "k": None if k is None else whole_numbers(k, "--k"),
        "preset": preset,
        "judge": judge,
        "scores": score,
        "baseline": None if baseline is None else str(baseline),
        "repeat": repeat or None,
        "seed": seed,
        "workers": workers,
        "wrappers": wrap,
        **{f"{part}_options": each or None for part, each in options.items()},
    }
    of_file: Mapping[str, Any] = {}
    if what is not None and what.lower().endswith(SUFFIXES):
        of_file = read_suite(what)
    elif what is not None:
        chosen["env"] = what
    if out is not None:
        refuse_inputs(out, [what, problems, model, baseline, agent])
    with naming_files([of_file]), stopped_by_ctrl_c("episodes") as stop:
        suite = make_suite(of_file, last=chosen)
        result = run_suite(
            suite,
            out=out,
            resume=resume,
            overwrite=overwrite,
            stop=stop,
        )
    _print(result, out, as_json=as_json)
    if result.interrupted:
        if out is not None:
            count = sum(evaluated.tally.count for evaluated in result.results.values())
            say(
                f"Interrupted. The {count} episodes so far are in {out}. To continue, run the same command "
                "with --resume.",
                err=True,
            )
        raise typer.Exit(130)


def _print(result: SuiteResult, out: Path | None, *, as_json: bool) -> None:
    import json

    from rstar2_env.cli._tables import print_figures, print_table

    if as_json:
        alone = result.results.get("")
        say(json.dumps(alone.to_dict() if alone is not None else result.to_dict()))
        return
    written = {} if out is None else {"written to": str(out)}
    for name, evaluated in result.results.items():
        title = f"{name}: {evaluated.title}" if name else evaluated.title
        print_figures(title, {**evaluated.rows(), **(written if not name else {})})
    if "" not in result.results and len(result.results) > 1:
        from rstar2_env.evaluation.figures.text import interval_text

        mean = result.mean()
        shown = [name for name in mean if name.startswith(("pass@", "avg@", "maj@", "cot_pass@"))]
        rows = [
            [name, *(interval_text(evaluated.figures.by_name[figure]) for figure in shown)]
            for name, evaluated in result.results.items()
        ]
        rows.append(["mean", *("–" if mean[name] is None else f"{100 * (mean[name] or 0):.2f} %" for name in shown)])
        print_table(["set", *shown], rows)
        if out is not None:
            say(f"written to {out}")
