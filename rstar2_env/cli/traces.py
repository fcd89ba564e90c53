"""``rstar2 traces``: write supervised tool-use traces from problems with worked solutions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rstar2_env.cli._options import EnvSet, Json, Overwrite, WrapOption

if TYPE_CHECKING:
    from rstar2_env.traces.file import TraceFile


def traces_command(
    problems: Annotated[
        str,
        typer.Option(
            metavar="SPEC",
            help="File of problems with `calculations`, an `expression` or solutions in GSM8K format "
            "(FILE:like=gsm8k), or a family.",
        ),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="Write one JSON line per trace.", dir_okay=False)],
    episodes: Annotated[
        int | None,
        typer.Option("--episodes", "-n", min=1, help="Traces to write [default: one per problem of a file]."),
    ] = None,
    error_rate: Annotated[
        float, typer.Option(min=0, max=1, help="Share of traces whose first call fails and is then corrected.")
    ] = 0.0,
    wrong_rate: Annotated[
        float, typer.Option(min=0, max=1, help="Share of traces that copy a wrong number into the answer.")
    ] = 0.0,
    format_error_rate: Annotated[
        float, typer.Option(min=0, max=1, help="Share of traces whose answer breaks the format.")
    ] = 0.0,
    call_mistake: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Kind of mistake in first calls that fail; repeatable [default: all]."),
    ] = None,
    format_mistake: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Kind of format mistake in answers; repeatable [default: all]."),
    ] = None,
    one_call: Annotated[
        bool, typer.Option("--one-call", help="Run all calculations in one program instead of one program per turn.")
    ] = False,
    reasons: Annotated[
        bool, typer.Option(help="Before the calls, include the reasoning of the worked solution.")
    ] = True,
    split: Annotated[
        str | None, typer.Option(help="Split of the problems, if the source has splits [default: train].")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of every random choice.")] = 0,
    workers: Annotated[
        int | None,
        typer.Option(min=1, help="Threads, each with an environment [default: 4 per processor, at most 32]."),
    ] = None,
    env: Annotated[str, typer.Option(metavar="ID", help="Environment that replays the traces.")] = "rstar2/MathTool-v0",
    set_: EnvSet = None,
    wrap: WrapOption = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue an interrupted run: append to the file --out.")
    ] = False,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Write tool-use traces for a cold start. A trace is kept only if its replay in the environment succeeds.

    Ctrl-C finishes the traces in flight; --resume continues later and produces the same file as an uninterrupted run.
    Exits with 1 if no trace could be written.
    """
    import contextlib
    import json
    import time
    from collections import Counter

    from gymnasium import Env

    from rstar2_env.cli._interrupt import stopped_by_ctrl_c
    from rstar2_env.cli._options import options_of, source_of
    from rstar2_env.cli._progress import progress
    from rstar2_env.cli._tables import print_figures
    from rstar2_env.env.options import env_options as typed_env_options
    from rstar2_env.evaluation.figures.text import tally_text
    from rstar2_env.problems import FiniteSource, Problem
    from rstar2_env.traces.file import TraceFile
    from rstar2_env.traces.mistakes import CALL_MISTAKES, FORMAT_MISTAKES
    from rstar2_env.traces.writer import generate_traces
    from rstar2_env.wrappers.make import make_env
    from rstar2_env.wrappers.registry import read_wrappers, recorded

    source = source_of(problems, split, "train")
    env_options = typed_env_options(env, options_of(set_, "env")["env"])
    wrappers = read_wrappers(wrap or ())
    total = episodes or (len(source) if isinstance(source, FiniteSource) else None)
    options: dict[str, Any] = {
        "error_rate": error_rate,
        "wrong_rate": wrong_rate,
        "format_error_rate": format_error_rate,
        "call_mistakes": tuple(call_mistake or CALL_MISTAKES),
        "format_mistakes": tuple(format_mistake or FORMAT_MISTAKES),
        "one_call": one_call,
        "reasons": reasons,
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

    # Report incompatible options before the file is touched.
    make().close()
    with progress("writing", total=total) as report, stopped_by_ctrl_c("traces") as stop:
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
        typer.echo(json.dumps({**figures, "mistakes": mistakes, "reasons": reasons_dropped, "out": str(out)}))
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
        typer.echo(f"{len(file.records)} traces are in {out}: continue with the same command and --resume.", err=True)
        raise typer.Exit(130)
    if not file.records:
        typer.echo(f"Error: none of the {done} problems of {problems} produced a trace; nothing written.", err=True)
        raise typer.Exit(1)


def _mistakes(file: TraceFile) -> dict[str, int]:
    """Count the deliberate mistakes in the traces of the file, by name."""
    from collections import Counter

    counts: Counter[str] = Counter()
    for record in file.records:
        counts.update(
            filter(None, (record["call_mistake"], record["format_mistake"], "wrong" if record["wrong"] else ""))
        )
    return dict(counts)
