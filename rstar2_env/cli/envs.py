"""``rstar2 envs``: list the environments, or show one with a sample episode."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rstar2_env.evaluation.cards import Card


def envs_command(
    env_id: Annotated[
        str | None, typer.Argument(metavar="[ID]", help="Show this one: its whole card and one episode.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the sample episode.")] = 0,
    sample: Annotated[bool, typer.Option(help="Play the sample episode.")] = True,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print the gallery docs/environments.md.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
) -> None:
    """List the environments with their knobs and baselines, or show one.

    Environments of other distributions join through the entry-point group `rstar2_env.envs`.
    """
    import json

    from rstar2_env.evaluation.cards import card, environment_ids, gallery

    if markdown:
        typer.echo(gallery(), nl=False)
    elif env_id is not None:
        _show(card(env_id), seed if sample else None, as_json=as_json)
    elif as_json:
        typer.echo(json.dumps({name: card(name).to_dict() for name in environment_ids()}))
    else:
        _list([card(name) for name in environment_ids()])


def _list(cards: list[Card]) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table()
    # An id that is cut short cannot be copied.
    table.add_column("id", no_wrap=True, min_width=max(len(each.env_id) for each in cards))
    for heading in ("what", "knobs", "random baseline"):
        table.add_column(heading)
    for each in cards:
        whose = f"\n({each.distribution})" if each.distribution else ""
        cells = (each.env_id + whose, each.line, each.knobs_text or "–", each.baseline_text or "–")
        table.add_row(*map(escape, cells))
    Console().print(table)


def _show(shown: Card, seed: int | None, *, as_json: bool) -> None:
    import json

    from rstar2_env.evaluation.cards import sample_episode, written

    episode = None if seed is None else sample_episode(shown.env_id, seed=seed)
    if as_json:
        played = None
        if episode is not None:
            messages = [message.record() for message in episode.messages]
            played = {"messages": messages, "reward": episode.reward, "end": episode.end}
        typer.echo(json.dumps({"id": shown.env_id, **shown.to_dict(), "card": shown.text, "episode": played}))
        return
    typer.echo(f"# {shown.env_id}\n\n{shown.text}\n")
    if episode is not None:
        typer.echo(f"## A sample episode, seed {seed}\n\n{written(episode.messages)}")
        typer.echo(f"Reward {episode.reward:g}, {episode.end}.")
