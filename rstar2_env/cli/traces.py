"""``rstar2 traces``: make tool-use traces, from worked solutions or by letting a model play."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rstar2_env.cli._options import ChatTemplate, Json, Overwrite, ToolOption, WrapOption
from rstar2_env.cli._printing import say

if TYPE_CHECKING:
    from rstar2_env.traces.file import TraceFile

_PLAYING = "Playing"
_WORKED = "Worked solutions"
_WORKED_FLAGS = {
    "error_rate": "error_rate",
    "wrong_rate": "wrong_rate",
    "format_error_rate": "format_error_rate",
    "call_mistakes": "call_mistake",
    "format_mistakes": "format_mistake",
    "one_call": "one_call",
    "reasons": "reasons",
}
"""For each field of ``TraceOptions``, the name of the command's parameter that sets it."""


def traces_command(
    ctx: typer.Context,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="File to write the traces to, one JSON object per line.", dir_okay=False)
    ],
    problems: Annotated[
        str | None,
        typer.Option(
            metavar="SPEC",
            help="Problems to make traces of: a file, or a family of generated problems [default with --model, "
            "--endpoint or --agent: the problems of --env]. Without these three options, the traces follow worked "
            "solutions, so each problem needs a `program`, `calculations`, an `expression` or a solution in GSM8K "
            "format (FILE:like=gsm8k).",
        ),
    ] = None,
    episodes: Annotated[
        int | None,
        typer.Option(
            "--episodes",
            "-n",
            min=1,
            help="Number of problems to make traces of [default: all problems, if their number is finite].",
        ),
    ] = None,
    split: Annotated[
        str | None, typer.Option(help="Split of the problems to use, if they are divided into splits [default: train].")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of every random choice.")] = 0,
    workers: Annotated[
        int | None,
        typer.Option(
            min=1, help="Number of threads; each thread has its own environment [default: 4 per CPU core, at most 32]."
        ),
    ] = None,
    env: Annotated[
        str,
        typer.Option(
            metavar="ID",
            help="Environment in which the problems are solved.",
        ),
    ] = "rstar2/MathTool-v0",
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="PART.NAME=VALUE",
            help="Set an option of the environment (env.max_turns=3), the agent (agent.max_tokens=512), the "
            "model (model.top_p=0.95) or the engine (engine.max_rows=8). Repeat the option to set "
            "several.",
        ),
    ] = None,
    tool: ToolOption = None,
    wrap: WrapOption = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue the interrupted run that wrote --out.")] = False,
    overwrite: Overwrite = False,
    as_json: Json = False,
    model: Annotated[
        str | None,
        typer.Option(
            metavar="M",
            help="Model that plays: a folder, a GGUF file or a name on the Hugging Face hub. With --endpoint: "
            "the name under which the endpoint serves the model.",
            rich_help_panel=_PLAYING,
        ),
    ] = None,
    endpoint: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Address of an OpenAI-compatible server whose model plays, with the API version "
            "(http://127.0.0.1:8000/v1). Add --model if the server has several models. The API key is "
            "read from the variable OPENAI_API_KEY.",
            rich_help_panel=_PLAYING,
        ),
    ] = None,
    agent: Annotated[
        str | None,
        typer.Option(
            help="Agent that plays: a name from `rstar2 list agents`, or your own agent (./mine.py).",
            rich_help_panel=_PLAYING,
        ),
    ] = None,
    engine: Annotated[
        str | None, typer.Option(help="Engine that runs --model [default: transformers].", rich_help_panel=_PLAYING)
    ] = None,
    temperature: Annotated[
        float | None,
        typer.Option(
            min=0, help="Sampling temperature of the model that plays [default: 1].", rich_help_panel=_PLAYING
        ),
    ] = None,
    max_tokens: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Maximum number of tokens that the model may generate in an episode [default: 4096]. With --endpoint, "
            "the maximum for one turn. The tokens of the prompt do not count.",
            rich_help_panel=_PLAYING,
        ),
    ] = None,
    chat_template: ChatTemplate = None,
    tries: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Maximum number of episodes played for each problem; a problem that already has "
            "--per-problem traces is not played again [default: 8].",
            rich_help_panel=_PLAYING,
        ),
    ] = None,
    per_problem: Annotated[
        int | None,
        typer.Option(
            min=1, help="Maximum number of traces kept for each problem [default: 1].", rich_help_panel=_PLAYING
        ),
    ] = None,
    min_calls: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Keep only episodes that contain at least this many tool calls [default: 0].",
            rich_help_panel=_PLAYING,
        ),
    ] = None,
    clean: Annotated[
        bool,
        typer.Option("--clean", help="Keep only episodes in which no tool call failed.", rich_help_panel=_PLAYING),
    ] = False,
    share: Annotated[
        list[str] | None,
        typer.Option(
            metavar="LEVEL=SHARE",
            help="Limit the share of the traces that come from problems of one level of difficulty: easy=0.4 "
            "allows at most 40 % easy problems. Repeat the option to limit several levels: easy (the "
            "player solves more than half of the episodes of the problem), medium (more than a quarter) "
            "and hard (the rest).",
            rich_help_panel=_PLAYING,
        ),
    ] = None,
    max_total_episodes: Annotated[
        int | None,
        typer.Option(min=1, help="Maximum number of episodes for all problems together.", rich_help_panel=_PLAYING),
    ] = None,
    max_total_tokens: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Number of generated tokens, for all problems together, after which no further episode starts.",
            rich_help_panel=_PLAYING,
        ),
    ] = None,
    worked_solutions: Annotated[
        str | None,
        typer.Option(
            metavar="none|unsolved|all",
            help="Also write traces from the worked solutions that problems contain: none, unsolved (only for "
            "problems that the player did not solve), or all [default: none].",
            rich_help_panel=_PLAYING,
        ),
    ] = None,
    error_rate: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=1,
            help="Share of the traces from worked solutions that get a failing first call, which the next turn "
            "corrects, from 0 to 1 [default: 0].",
            rich_help_panel=_WORKED,
        ),
    ] = None,
    wrong_rate: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=1,
            help="Share of the traces from worked solutions that get a deliberately wrong final answer, from 0 "
            "to 1 [default: 0].",
            rich_help_panel=_WORKED,
        ),
    ] = None,
    format_error_rate: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=1,
            help="Share of the traces from worked solutions that get a deliberate format mistake in their final "
            "answer, from 0 to 1 [default: 0].",
            rich_help_panel=_WORKED,
        ),
    ] = None,
    call_mistake: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Kind of mistake that --error-rate makes in the first call of a trace. Repeat the option to allow "
            "several kinds [default: all kinds].",
            rich_help_panel=_WORKED,
        ),
    ] = None,
    format_mistake: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Kind of format mistake that --format-error-rate adds to answers. Repeat the option to allow "
            "several kinds [default: all kinds].",
            rich_help_panel=_WORKED,
        ),
    ] = None,
    one_call: Annotated[
        bool,
        typer.Option(
            "--one-call",
            help="In traces from worked solutions, run all calculations in one program instead of one program "
            "per turn.",
            rich_help_panel=_WORKED,
        ),
    ] = False,
    reasons: Annotated[
        bool,
        typer.Option(
            help="In traces from worked solutions, write the reasoning of the solution before the calls.",
            rich_help_panel=_WORKED,
        ),
    ] = True,
) -> None:
    """Make tool-use traces for a cold start. A trace is kept only if it succeeds in the environment.

    With --model, --endpoint or --agent, a player solves the problems, and the episodes that earn the full reward become
    traces; all episodes are written to OUT.episodes.jsonl. Without a player, the traces are written from the worked
    solutions of the problems. Ctrl-C finishes the episodes in flight; --resume continues later and produces the same
    file as an uninterrupted run. Exits with 1 if no trace could be written. `rstar2 traces --from FORMAT FILE` converts
    trajectories of other programs instead: see `rstar2 traces --from atif --help`.
    """
    from rstar2_env.cli._command import flag, is_typed
    from rstar2_env.cli._options import given_by, with_tools
    from rstar2_env.core.files.outputs import refuse_inputs
    from rstar2_env.core.options.declare import typed_options
    from rstar2_env.traces.writer import TraceOptions

    refuse_inputs(out, [problems, model, agent, env])
    of_worked = {option: name for option, name in _WORKED_FLAGS.items() if is_typed(ctx, name)}
    worked = typed_options("writer of traces", TraceOptions, given_by(ctx, **of_worked))
    player: dict[str, Any] = {
        "model": model,
        "endpoint": endpoint,
        "agent": agent,
        "engine": engine,
        "temperature": temperature,
        "max_tokens": max_tokens,
        "chat_template": chat_template,
    }
    playing: dict[str, Any] = {
        "tries": tries,
        "per_problem": per_problem,
        "min_calls": min_calls,
        "clean": clean or None,
        "share": share,
        "max_total_episodes": max_total_episodes,
        "max_total_tokens": max_total_tokens,
        "worked_solutions": worked_solutions,
    }
    playing = {name: value for name, value in playing.items() if value is not None}
    common: dict[str, Any] = {
        "problems": problems,
        "split": split,
        "episodes": episodes,
        "seed": seed,
        "workers": workers,
        "env": env,
        "set_": with_tools(set_, tool) or None,
        "wrap": wrap,
        "resume": resume,
        "overwrite": overwrite,
        "as_json": as_json,
    }
    if model or endpoint or agent:
        if worked and playing.get("worked_solutions", "none") == "none":
            raise typer.BadParameter(
                f"{flag(ctx, next(iter(of_worked.values())))} applies only to traces that are "
                "made from worked solutions: add --worked-solutions unsolved or all, or omit this option."
            )
        from rstar2_env.cli._played_traces import by_playing

        by_playing(ctx, out, player=player, playing=playing, worked=worked, **common)
    else:
        for name in (*playing, *(name for name, value in player.items() if value is not None)):
            raise typer.BadParameter(
                f"{flag(ctx, name)} applies only if a model or an agent plays: add --model, "
                "--endpoint or --agent, or omit this option."
            )
        _from_worked_solutions(ctx, out, worked=worked, **common)


def _from_worked_solutions(
    ctx: typer.Context,
    out: Path,
    *,
    problems: str | None,
    split: str | None,
    episodes: int | None,
    seed: int,
    workers: int | None,
    env: str,
    set_: list[str] | None,
    wrap: list[str] | None,
    resume: bool,
    overwrite: bool,
    as_json: bool,
    worked: dict[str, Any],
) -> None:
    """Write traces from the worked solutions of problems, and print the counts."""
    import contextlib
    import json
    import time
    from collections import Counter

    from gymnasium import Env

    from rstar2_env.cli._interrupt import stopped_by_ctrl_c
    from rstar2_env.cli._options import check_flags, options_of, source_of
    from rstar2_env.cli._tables import print_figures
    from rstar2_env.core.errors import ConfigurationError
    from rstar2_env.core.progress import progress
    from rstar2_env.env.options import env_options as typed_env_options
    from rstar2_env.evaluation.figures.text import tally_text
    from rstar2_env.problems import FiniteSource, Problem
    from rstar2_env.traces.file import TraceFile
    from rstar2_env.traces.mistakes import CALL_MISTAKES, FORMAT_MISTAKES
    from rstar2_env.traces.writer import generate_traces, has_worked_solution
    from rstar2_env.wrappers.make import make_env
    from rstar2_env.wrappers.registry import read_wrappers, recorded

    if problems is None:
        raise typer.BadParameter(
            "--problems is missing: without --model, --endpoint or --agent, the traces are made from the worked "
            "solutions of the problems that --problems names."
        )
    source = source_of(problems, split, "train")
    if isinstance(source, FiniteSource) and not any(map(has_worked_solution, source)):
        raise ConfigurationError(
            f"None of the {len(source)} problems of {problems} has a worked solution (a `program`, "
            "`calculations`, an `expression`, or a solution in GSM8K format), and no model is named to "
            "solve the problems. Let a model play and keep its correct episodes: rstar2 traces --problems "
            f"{problems} --out {out} --model PATH (for a served model, --endpoint URL instead of --model PATH)."
        )
    given = options_of(set_, "env")
    check_flags(ctx, given, {"env.problems": ("problems", problems), "env.split": ("split", split)})
    env_options = typed_env_options(env, given["env"])
    wrappers = read_wrappers(wrap or ())
    total = episodes or (len(source) if isinstance(source, FiniteSource) else None)
    options: dict[str, Any] = {
        "error_rate": 0.0,
        "wrong_rate": 0.0,
        "format_error_rate": 0.0,
        "call_mistakes": tuple(CALL_MISTAKES),
        "format_mistakes": tuple(FORMAT_MISTAKES),
        "one_call": False,
        "reasons": True,
        **worked,
    }
    run = {
        "env": env,
        "env_options": env_options,
        **({"wrappers": recorded(wrappers)} if wrappers else {}),
        "problems": source.name,
        "split": source.split,
        "episodes": total,
        "seed": seed,
        **options,
    }
    file = TraceFile(out, run=run, resume=resume, overwrite=overwrite)
    earlier, done = len(file.records), file.next
    reasons_dropped: Counter[str] = Counter({"dropped before this run": done - earlier} if done > earlier else {})

    def make() -> Env[str, str]:
        return make_env(env, wrappers=wrappers, **env_options)

    def drop(problem: Problem, reason: str) -> None:
        nonlocal done
        reasons_dropped[reason] += 1
        done += 1
        report(done, total)

    # Report incompatible options before the file is changed.
    make().close()
    with progress("writing", total=total, show=True) as report, stopped_by_ctrl_c("traces") as stop:
        traces = generate_traces(
            make,
            source,
            episodes=episodes,
            seed=seed,
            workers=workers,
            dropped=drop,
            start=done,
            stop=stop,
            **options,
        )
        began = time.perf_counter()
        with file, contextlib.closing(traces):
            for trace in traces:
                file.write(trace)
                done += 1
                report(done, total)
        seconds = time.perf_counter() - began
    mistakes = _mistakes(file)
    figures = {
        "kept": len(file.records),
        "dropped": sum(reasons_dropped.values()),
        "earned_their_reward": sum(record["reward"] > 0 for record in file.records),
        "seconds": seconds,
        "interrupted": stop() and done != total,
    }
    if as_json:
        say(json.dumps({**figures, "mistakes": mistakes, "reasons": reasons_dropped, "out": str(out)}))
    else:
        made = len(file.records) - earlier + sum(reasons_dropped.values()) - reasons_dropped["dropped before this run"]
        rows = {
            "kept": f"{figures['kept']} ({figures['earned_their_reward']} of them earn a reward)",
            "mistakes": tally_text(mistakes),
            "dropped": f"{figures['dropped']}",
            **{f"  {reason}": str(count) for reason, count in reasons_dropped.most_common() if count},
            "throughput": f"{made / seconds:.1f} traces/s ({seconds:.1f} s)",
            "written to": str(out) if file.records else "–",
        }
        print_figures(f"traces from {source.name} in {env}{' – interrupted' if figures['interrupted'] else ''}", rows)
    if figures["interrupted"]:
        say(
            f"Interrupted. The {len(file.records)} traces so far are in {out}. To continue, run the same "
            "command with --resume.",
            err=True,
        )
        raise typer.Exit(130)
    if not file.records:
        say(
            f"Error: none of the {done} problems of {problems} produced a trace, so no file was written. The "
            "figures above list the reasons.",
            err=True,
        )
        raise typer.Exit(1)


def _mistakes(file: TraceFile) -> dict[str, int]:
    """Count the deliberate mistakes in a file's traces, by kind."""
    from collections import Counter

    counts: Counter[str] = Counter()
    for record in file.records:
        counts.update(
            filter(None, (record["call_mistake"], record["format_mistake"], "wrong" if record["wrong"] else ""))
        )
    return dict(counts)
