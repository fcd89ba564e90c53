"""``rstar2 traces``: write supervised tool-use traces from problems with worked solutions."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def traces_command(
    problems: Annotated[
        str, typer.Option(help="JSONL file whose problems have `calculations` or `expression`, or a family.")
    ],
    out: Annotated[Path, typer.Option(help="Write one JSON line a trace.", dir_okay=False)],
    episodes: Annotated[
        int | None,
        typer.Option("--episodes", "-n", min=1, help="Traces to write [default: one for each problem of a file]."),
    ] = None,
    error_rate: Annotated[
        float, typer.Option(min=0, max=1, help="Share whose first call fails and is then mended.")
    ] = 0.0,
    wrong_rate: Annotated[
        float, typer.Option(min=0, max=1, help="Share that copy a wrong number into the answer.")
    ] = 0.0,
    format_error_rate: Annotated[float, typer.Option(min=0, max=1, help="Share whose answer breaks the form.")] = 0.0,
    call_mistake: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A way in which first calls fail; may be given again [default: all]."),
    ] = None,
    format_mistake: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A way in which answers break the form; may be given again [default: all]."),
    ] = None,
    one_call: Annotated[
        bool, typer.Option("--one-call", help="Run all calculations in one program instead of one a turn.")
    ] = False,
    reasons: Annotated[bool, typer.Option(help="Put the worked solution's words before the calls.")] = True,
    split: Annotated[str, typer.Option(help="Split of the problems, where the source has splits.")] = "train",
    seed: Annotated[int, typer.Option(min=0, help="Of everything that is drawn.")] = 0,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Threads, each with an environment [default: 4 a processor, at most 32].")
    ] = None,
    env: Annotated[str, typer.Option(metavar="ID", help="Environment that replays the traces.")] = "rstar2/MathTool-v0",
    env_option: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="Argument of gym.make; may be given again.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace --out if it exists.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
) -> None:
    """Write tool-use traces for a cold start; each is replayed in the environment and kept only if it comes out so."""
    import json
    import time
    from collections import Counter

    import gymnasium as gym

    from rstar2_env.cli._shared import print_table, progress_bar, tally_text
    from rstar2_env.core.errors import ConfigurationError
    from rstar2_env.core.options import parse_options
    from rstar2_env.env.options import env_options
    from rstar2_env.problems import FiniteSource, Problem, load_problems
    from rstar2_env.traces.mistakes import CALL_MISTAKES, FORMAT_MISTAKES
    from rstar2_env.traces.writer import generate_traces

    why: Counter[str] = Counter()
    mistakes: Counter[str] = Counter()
    kept = right = 0
    with progress_bar(quiet=as_json) as bar:
        if out.exists() and not overwrite:
            raise ConfigurationError(f"{out} exists already; give --overwrite, or choose another file.")
        source = load_problems(problems, split=split)
        options = env_options(env, parse_options(env_option or ()))
        total = episodes or (len(source) if isinstance(source, FiniteSource) else None)
        task = bar.add_task("writing", total=total)

        def drop(problem: Problem, reason: str) -> None:
            why[reason] += 1
            bar.advance(task)

        traces = generate_traces(
            lambda: gym.make(env, disable_env_checker=True, **options),
            source,
            episodes=episodes,
            seed=seed,
            workers=workers,
            dropped=drop,
            error_rate=error_rate,
            wrong_rate=wrong_rate,
            format_error_rate=format_error_rate,
            call_mistakes=tuple(call_mistake or CALL_MISTAKES),
            format_mistakes=tuple(format_mistake or FORMAT_MISTAKES),
            one_call=one_call,
            reasons=reasons,
        )
        began = time.perf_counter()
        out.parent.mkdir(parents=True, exist_ok=True)
        with out.open("w", encoding="utf-8", errors="backslashreplace") as file:
            for trace in traces:
                file.write(json.dumps(trace.record(), ensure_ascii=False) + "\n")
                kept += 1
                right += trace.reward > 0
                mistakes.update(filter(None, (trace.call_mistake, trace.format_mistake, "wrong" * trace.wrong)))
                bar.advance(task)
        seconds = time.perf_counter() - began
    figures = {"kept": kept, "dropped": sum(why.values()), "earned_their_reward": right, "seconds": seconds}
    if as_json:
        typer.echo(json.dumps({**figures, "mistakes": dict(mistakes), "reasons": dict(why), "out": str(out)}))
        return
    rows = {
        "kept": f"{kept} ({right} of them earn the reward)",
        "mistakes": tally_text(mistakes),
        "dropped": f"{figures['dropped']}",
        **{f"  {reason}": str(count) for reason, count in why.most_common()},
        "throughput": f"{(kept + sum(why.values())) / seconds:.1f} traces/s ({seconds:.1f} s)",
        "written to": str(out),
    }
    print_table(f"traces from {source.name} in {env}", rows)
