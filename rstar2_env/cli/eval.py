"""``rstar2 eval``: let an agent play an environment, and print the results."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rstar2_env.cli._options import EnvId, Json, Overwrite, Wrap


def eval_command(
    env_id: EnvId,
    agent: Annotated[
        str, typer.Option(help="Agent that plays: a name (`rstar2 agents` lists them), or your own (./mine.py).")
    ],
    problems: Annotated[
        str | None,
        typer.Option(
            metavar="SPEC",
            help="A file (JSONL, JSON, CSV, TSV, Parquet), a folder of save_to_disk, a public set by its name (gsm8k), "
            "one on the hub (hf:owner/name), or a family (arithmetic:level=3) [default: the environment's own].",
        ),
    ] = None,
    split: Annotated[
        str | None, typer.Option(help="Split of the problems, where the source has splits [default: test].")
    ] = None,
    episodes: Annotated[
        int | None,
        typer.Option("--episodes", "-n", min=1, help="Episodes to play [default: every problem of a file once]."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the choice of problems and of every episode.")] = 0,
    workers: Annotated[
        int | None,
        typer.Option(min=1, help="Threads, each with an environment [default: 4 per processor, at most 32]."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help="Write one JSON line per episode (NAME.jsonl), or the folder of a run (NAME).",
        ),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue where --out ends.")] = False,
    overwrite: Overwrite = False,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="PART.NAME=VALUE",
            help="Option of the environment (env.max_turns=3) or of the agent (agent.model=NAME); may be given again.",
        ),
    ] = None,
    wrap: Wrap = None,
    as_json: Json = False,
) -> None:
    """Let an agent play an environment, in parallel, and print the results.

    Ctrl-C ends the episodes in flight and prints the results so far; with --out, --resume continues later.
    """
    import json

    from rstar2_env.cli._interrupt import stopped_by_ctrl_c
    from rstar2_env.cli._options import options_of, source_of
    from rstar2_env.cli._progress import progress
    from rstar2_env.cli._tables import print_figures
    from rstar2_env.evaluation.run import evaluate

    if resume and out is None:
        raise typer.BadParameter("--resume needs --out, the file to go on with.")
    options = options_of(set_, "env", "agent")
    source = None if problems is None else source_of(problems, split, "test")
    with progress("playing", total=episodes, quiet=agent == "human") as report, stopped_by_ctrl_c("episodes") as stop:
        result = evaluate(
            env_id,
            agent,
            problems=source,
            split=split or "test",
            episodes=episodes,
            seed=seed,
            workers=workers,
            env_options=options["env"],
            wrappers=wrap or (),
            agent_options=options["agent"],
            out=out,
            resume=resume,
            overwrite=overwrite,
            progress=lambda episode, done, total: report(done, total),
            stop=stop,
        )
    if as_json:
        typer.echo(json.dumps(result.to_dict()))
    else:
        written = {} if out is None else {"written to": str(out)}
        print_figures(result.title, {**result.rows(), **written})
    if result.interrupted:
        if out is not None:
            typer.echo(
                f"{len(result.episodes)} episodes are in {out}: the same command with --resume goes on.", err=True
            )
        raise typer.Exit(130)
