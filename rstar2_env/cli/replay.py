"""``rstar2 verify --run RUN --episode EPISODE``: replay a stored episode; list responses that differ from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from rstar2_env.cli._options import Json, RunName, Trust
from rstar2_env.cli._printing import say

if TYPE_CHECKING:
    from rstar2_env.evaluation.stored.replay import Replayed


def replay_command(
    run: RunName,
    episode: Annotated[
        str,
        typer.Argument(
            metavar="--episode EPISODE",
            help="Episode to replay: a number for an episode on held-out problems, or STEP/GROUP/MEMBER for a training "
            "episode.",
        ),
    ],
    problems: Annotated[
        str | None,
        typer.Option(
            metavar="SPEC",
            help="Set of problems that contains the problem of the episode [default: the problems of the run].",
        ),
    ] = None,
    split: Annotated[
        str | None,
        typer.Option(
            help="Split of --problems to use, if they are divided into splits [default: the split of the run]."
        ),
    ] = None,
    trust: Trust = False,
    as_json: Json = False,
) -> None:
    """Replay the actions of a stored episode, and report where the environment responds differently.

    Exits with 1 if there is a difference.
    """
    import json
    from dataclasses import asdict

    from rstar2_env.evaluation.stored.replay import replay
    from rstar2_env.evaluation.stored.runs import find_episode, problem_of, problems_of, setting_of

    stored = find_episode(run, episode)
    setting = setting_of(stored.run, trained=stored.trained)
    problem = None
    if problems is not None or not stored.trained:
        problem = problem_of(problems_of(setting, problems, split), stored.entry.episode.problem_id)
    found = replay(stored.entry.episode, setting, problem=problem, trained=stored.trained)
    if as_json:
        say(json.dumps({**asdict(found), "same": found.same}))
    else:
        _show(run, episode, found)
    if not found.same:
        raise typer.Exit(1)


def _show(run: str, place: str, found: Replayed) -> None:
    from rstar2_env.cli._tables import print_table

    turns = (
        f"{found.turns} of {found.turns_stored} turns" if found.turns < found.turns_stored else f"{found.turns} turns"
    )
    if found.same:
        say(f"Episode {place} of {run}: {turns}, identical responses.")
        return
    print_table(
        ("turn", "field", "stored", "replayed"),
        [(str(diff.turn), diff.what, _cut(diff.stored), _cut(diff.replayed)) for diff in found.differences],
        title=f"episode {place} of {run}: the responses differ",
    )


def _cut(value: Any, longest: int = 200) -> str:
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
