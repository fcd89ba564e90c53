"""``rstar2 eval``: let an agent play an environment, and print how it went."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rstar2_env.evaluation.run import EvalResult


def eval_command(
    env_id: Annotated[str, typer.Argument(metavar="ID", help="Gymnasium id, such as rstar2/MathTool-v0.")],
    agent: Annotated[str, typer.Option(help="Who plays; `rstar2 agents` lists them.")],
    problems: Annotated[
        str | None,
        typer.Option(
            help="A file (JSONL, JSON, CSV, TSV, Parquet), a folder of save_to_disk, a set of the field (gsm8k), one "
            "on the hub (hf:owner/name), or a family (arithmetic:level=3) [default: the environment's own problems]."
        ),
    ] = None,
    split: Annotated[str, typer.Option(help="Split of the problems, where the source has splits.")] = "test",
    episodes: Annotated[
        int | None, typer.Option(min=1, help="Episodes to play [default: every problem of a file once].")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the choice of problems and of every episode.")] = 0,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Threads, each with an environment [default: 4 a processor, at most 32].")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write one JSON line an episode.", dir_okay=False)] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on where --out ends.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace --out if it exists.")] = False,
    env_option: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="Argument of gym.make; may be given again.")
    ] = None,
    agent_option: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="Option of the agent; may be given again.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
) -> None:
    """Let an agent play an environment, in parallel, and print how it went.

    Ctrl-C ends the episodes in flight and prints what there is; with --out, --resume goes on later.
    """
    import json

    from rstar2_env.cli._shared import progress_bar
    from rstar2_env.core.options import parse_options
    from rstar2_env.evaluation.run import evaluate

    if resume and out is None:
        raise typer.BadParameter("--resume needs --out, the file to go on with.")
    with progress_bar(quiet=as_json or agent == "human") as bar:
        task = bar.add_task("playing", total=episodes)
        result = evaluate(
            env_id,
            agent,
            problems=problems,
            split=split,
            episodes=episodes,
            seed=seed,
            workers=workers,
            env_options=parse_options(env_option or ()),
            agent_options=parse_options(agent_option or ()),
            out=out,
            resume=resume,
            overwrite=overwrite,
            progress=lambda episode, done, total: bar.update(task, completed=done, total=total),
        )
    if as_json:
        typer.echo(json.dumps(result.to_dict()))
    else:
        _print(result, out)
    if result.interrupted:
        raise typer.Exit(130)


def _print(result: EvalResult, out: Path | None) -> None:
    from rstar2_env.cli._shared import estimate_text, print_table, tally_text

    summary = result.summary
    rows = {
        "episodes": f"{summary.episodes}",
        "unavailable": f"{summary.unavailable}",
        "pass rate": estimate_text(summary.pass_rate, percent=True),
        "mean reward": estimate_text(summary.reward),
        "tool errors, of all calls": estimate_text(summary.tool_error_share, percent=True),
        "tool errors in correct episodes": estimate_text(summary.tool_error_share_correct, percent=True),
        "calls by status": tally_text(summary.statuses),
        "calls an episode": estimate_text(summary.calls),
        "turns": estimate_text(summary.turns),
        "broken answer formats": estimate_text(summary.broken_formats, percent=True),
        "ends": tally_text(summary.ends),
    }
    if summary.injected:
        rows["injected faults"] = tally_text(summary.injected)
    if (speed := result.episodes_per_second) is not None:
        rows["throughput"] = f"{speed:.1f} episodes/s ({result.played} in {result.seconds:.1f} s)"
    if out is not None:
        rows["written to"] = str(out)
    source = f", {result.problems} ({result.split})" if result.problems else ""
    note = " – interrupted" if result.interrupted else ""
    print_table(f"{result.agent} on {result.env_id}{source}{note}", rows)
