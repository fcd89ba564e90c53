"""``rstar2 list envs``: list the environments, or show one with a sample episode."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from rstar2_env.cli._options import Json
from rstar2_env.cli._printing import say

if TYPE_CHECKING:
    from rstar2_env.evaluation.cards import Card


def envs_command(
    env_id: Annotated[
        str | None,
        typer.Argument(
            metavar="ID",
            help="Environment to show with its options and one episode: a Gymnasium id, or your own "
            "environment (./mine.py).",
        ),
    ] = None,
    everything: Annotated[
        bool,
        typer.Option(
            "--all",
            help="Also show the Python package, version and licence of each environment, and validate the "
            "environments that other packages provide.",
        ),
    ] = False,
    check: Annotated[
        bool,
        typer.Option(help="With --all: validate the environments of other packages, or only list them (--no-check)."),
    ] = True,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the sample episode.")] = 0,
    sample: Annotated[bool, typer.Option(help="Play and print a sample episode of ID.")] = True,
    markdown: Annotated[
        bool,
        typer.Option("--markdown", help="Print the whole page docs/environments.md, which this command generates."),
    ] = False,
    as_json: Json = False,
) -> None:
    """List the environments, one line each, or show one with its options and an episode.

    Other distributions add environments through the entry-point group `rstar2_env.envs`; with --all, the exit code is 1
    if one of them does not load or does not pass its checks.
    """
    import json

    from rstar2_env.evaluation.cards import card, environment_ids, gallery

    if everything and (env_id is not None or markdown):
        raise typer.BadParameter(
            "--all lists every environment, so it does not accept ID or --markdown: omit one of them."
        )
    if everything:
        _list_all(check=check, as_json=as_json)
    elif markdown:
        say(gallery(), nl=False)
    elif env_id is not None:
        _show(card(env_id), seed if sample else None, as_json=as_json)
    elif as_json:
        say(json.dumps({name: card(name).to_dict() for name in environment_ids()}))
    else:
        _list([card(name) for name in environment_ids()])


def _list(cards: list[Card]) -> None:
    from rstar2_env.cli._tables import print_list

    print_list({each.env_id: _line(each) for each in cards}, cut=True)
    say("\nrstar2 list envs ID shows the options, spaces, reward and a sample episode of one environment.")


def _list_all(*, check: bool, as_json: bool) -> None:
    import json

    from rstar2_env.cli._tables import print_table
    from rstar2_env.evaluation.installed_environments import catalogue

    found = catalogue(check=check, progress=lambda env_id: say(f"validating {env_id}", err=True))
    if as_json:
        say(json.dumps([each.to_dict() for each in found]))
    else:
        rows = [
            (each.env_id, f"{each.distribution} {each.version}", each.licence or "not stated", each.validation)
            for each in found
        ]
        print_table(("id", "distribution", "licence", "validation"), rows)
    if any(each.ok is False for each in found):
        raise typer.Exit(1)


def _line(each: Card) -> str:
    return f"{each.line} ({each.distribution})" if each.distribution else each.line


def _show(shown: Card, seed: int | None, *, as_json: bool) -> None:
    import json

    from rstar2_env.evaluation.cards import sample_episode, written

    episode = None if seed is None else sample_episode(shown.env_id, seed=seed)
    if as_json:
        played = None
        if episode is not None:
            messages = [message.record() for message in episode.messages]
            played = {"messages": messages, "reward": episode.reward, "end": episode.end}
        say(json.dumps({"id": shown.env_id, **shown.to_dict(), "card": shown.text, "episode": played}))
        return
    say(f"# {shown.env_id}\n\n{shown.text}\n")
    if shown.knobs_text:
        say(f"Options of this environment, with defaults: {shown.knobs_text}\n")
    if episode is not None:
        say(f"## A sample episode, seed {seed}\n\n{written(episode.messages)}")
        say(f"Reward {episode.reward:g}, {episode.end}.")
