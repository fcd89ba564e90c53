"""``rstar2 play``: play an environment yourself, in the terminal."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rstar2_env.cli._options import EnvId, EnvSet, Overwrite, ToolOption, WrapOption
from rstar2_env.cli._printing import say

if TYPE_CHECKING:
    from rstar2_env.problems import Problem, ProblemSource


def play_command(
    ctx: typer.Context,
    env_id: EnvId,
    problems: Annotated[
        str | None,
        typer.Option(
            metavar="SPEC",
            help="Problems to play: a file, a public set or a family of generated problems [default: the "
            "problems of the environment].",
        ),
    ] = None,
    split: Annotated[
        str | None, typer.Option(help="Split of the problems to play, if they are divided into splits [default: test].")
    ] = None,
    problem: Annotated[str | None, typer.Option(metavar="ID", help="Play only the problem with this id.")] = None,
    episodes: Annotated[
        int | None,
        typer.Option("--episodes", "-n", min=1, help="Number of episodes to play [default: play until you stop]."),
    ] = None,
    seed: Annotated[
        int, typer.Option(min=0, help="Seed of the first episode; each further episode uses the next number.")
    ] = 0,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help="Write the episodes to this file (NAME.jsonl), for `rstar2 compare` and `rstar2 verify`.",
        ),
    ] = None,
    overwrite: Overwrite = False,
    set_: EnvSet = None,
    tool: ToolOption = None,
    wrap: WrapOption = None,
) -> None:
    """Play an environment yourself: read its observations, type turns, run programs, and get the reward.

    If the package prompt_toolkit is installed (extra: play), turns are typed in a multi-line editor.
    """
    import contextlib

    from rstar2_env.cli._options import check_flags, options_of, with_tools
    from rstar2_env.cli._screen import Screen
    from rstar2_env.cli._typist import GaveUpError, Typist
    from rstar2_env.core.files.json_lines import add_line, begin_lines, plain
    from rstar2_env.core.files.outputs import check_file
    from rstar2_env.core.telemetry import recording
    from rstar2_env.evaluation.play.episode import play_episode
    from rstar2_env.wrappers.make import make_env
    from rstar2_env.wrappers.registry import read_wrappers, recorded

    options = options_of(with_tools(set_, tool), "env")
    check_flags(ctx, options, {"env.problems": ("problems", problems), "env.split": ("split", split)})
    if out is not None:
        check_file(out, overwrite=overwrite, inputs=[problems, env_id], lines=True)
    env = make_env(env_id, wrappers=wrap or (), **options["env"])
    with contextlib.ExitStack() as stack:
        stack.enter_context(recording())
        stack.callback(env.close)
        source = _source(env, problems, split)
        dialect = getattr(env.unwrapped, "dialect", None)
        screen = Screen(dialect)
        typist = Typist(screen, dialect)
        file = None if out is None else stack.enter_context(begin_lines(out, ()))
        run = {
            "env": env_id,
            "env_options": options["env"],
            "wrappers": recorded(read_wrappers(wrap or ())),
            "agent": "human",
            "problems": source.name if source is not None else "",
            "split": source.split if source is not None else "",
        }
        played = 0
        while episodes is None or played < episodes:
            chosen = _choose(source, problem, seed + played)
            try:
                episode = play_episode(env, typist, seed=seed + played, problem=chosen)
            except GaveUpError as gave_up:
                say(f"{gave_up} {played} episodes were played to the end.", err=True)
                break
            own = chosen or getattr(env.unwrapped, "problem", None)
            gold = getattr(own, "answer", None)
            screen.statuses(episode.steps[-1].info)
            screen.end(episode, gold)
            if file is not None:
                record = episode.record()
                del record["group"]
                add_line(file, {"index": played, "start": played, **record, "gold": gold, "run": plain(run)})
            played += 1
            if problem is not None:
                break
    if out is not None:
        say(f"{played} episodes written to {out}.")


def _source(env: Any, problems: str | None, split: str | None) -> ProblemSource | None:
    from rstar2_env.evaluation.play.plan import source_of as own_source_of

    if problems is not None:
        from rstar2_env.cli._options import source_of

        return source_of(problems, split, "test")
    return own_source_of(env, None, split or "test")


def _choose(source: ProblemSource | None, problem: str | None, seed: int) -> Problem | None:
    import numpy as np

    from rstar2_env.core.errors import ConfigurationError

    if problem is not None:
        if source is None:
            raise ConfigurationError(
                "--problem selects a problem by its id, but this environment has no list of problems: use "
                "--seed to select an episode."
            )
        return source.get(problem)
    return None if source is None else source.sample(np.random.default_rng(seed))
