"""``rstar2 validate``: check that an environment and its problems are fit to train on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from rstar2_env.cli._options import EnvId, EnvSet, Json, Wrap

if TYPE_CHECKING:
    from rstar2_env.evaluation.validation import Validation

_LISTED = 20


def validate_command(
    env_id: EnvId,
    problems: Annotated[
        str | None, typer.Option(metavar="SPEC", help="Problems to check [default: the environment's own].")
    ] = None,
    split: Annotated[
        str | None, typer.Option(help="Split of the problems, where the source has splits [default: train].")
    ] = None,
    episodes: Annotated[
        int | None,
        typer.Option(
            "--episodes", "-n", min=1, help="Problems to check [default: all; 100 of a source that never ends]."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the episodes.")] = 0,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Threads, each with an environment [default: 2 per processor].")
    ] = None,
    contract: Annotated[bool, typer.Option(help="Check the environment's contract as well.")] = True,
    set_: EnvSet = None,
    wrap: Wrap = None,
    as_json: Json = False,
) -> None:
    """Check every problem four ways, and the environment's contract; exits with 1 when something is wrong.

    The gold answer must earn 1, a corrupted one 0, a malformed turn a typed error, and all of it the same twice.
    """
    import json

    from rstar2_env.cli._interrupt import stopped_by_ctrl_c
    from rstar2_env.cli._options import options_of, source_of
    from rstar2_env.cli._progress import progress
    from rstar2_env.evaluation.validation import validate

    with progress("checking", total=episodes) as report, stopped_by_ctrl_c("problems") as stop:
        found = validate(
            env_id,
            problems=None if problems is None else source_of(problems, split, "train"),
            split=split or "train",
            episodes=episodes,
            seed=seed,
            workers=workers,
            contract=contract,
            env_options=options_of(set_, "env")["env"],
            wrappers=wrap or (),
            progress=report,
            stop=stop,
        )
    if as_json:
        typer.echo(json.dumps(found.to_dict()))
    else:
        _print(found)
    if found.interrupted:
        raise typer.Exit(130)
    if not found.ok:
        raise typer.Exit(1)


def _print(found: Validation) -> None:
    from rstar2_env.cli._tables import print_figures

    split = f" ({found.split})" if found.split else ""
    rows = {
        "problems checked": f"{found.checked} of {found.problems}{split}" if found.problems else "it has none",
        "gold answers that do not earn 1": f"{len(found.of('gold'))}",
        "corrupted answers that earn": f"{len(found.of('corrupted'))}",
        "malformed turns without their status": f"{len(found.of('malformed'))}",
        "problems that differ the second time": f"{len(found.of('repeated'))}",
    }
    if found.unreadable:
        rows["gold answers that cannot be read"] = f"{len(found.unreadable)} (only their own words earn)"
    if found.contract or found.breaks:
        rows["contract"] = found.breaks or f"{len(found.contract)} checks passed"
    rows["time"] = f"{found.seconds:.1f} s"
    verdict = "interrupted" if found.interrupted else "nothing is wrong" if found.ok else "something is wrong"
    print_figures(f"{found.env_id}: {verdict}", rows)
    listed = [*found.faults, *found.unreadable]
    for fault in listed[:_LISTED]:
        typer.echo(f"{fault.problem_id} ({fault.check}): {fault.detail}")
    if len(listed) > _LISTED:
        typer.echo(f"... and {len(listed) - _LISTED} more (--json lists them all)")
