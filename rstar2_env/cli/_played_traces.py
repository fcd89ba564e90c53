"""The form of ``rstar2 traces`` in which a model or an agent solves problems."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from rstar2_env.cli._printing import say

if TYPE_CHECKING:
    from rstar2_env.traces.playing import PlayedTraces


def by_playing(
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
    player: dict[str, Any],
    playing: dict[str, Any],
    worked: dict[str, Any],
) -> None:
    """Let a model or an agent solve problems, write traces of the correct episodes, and print the counts.

    The arguments are the values of the flags of ``rstar2 traces`` with the same names, except the last three, which are
    dicts of names and values. ``player`` contains the flags that define the player, which are the keyword arguments of
    ``_player_options``. ``playing`` contains the flags that limit the episodes and select the traces, such as
    ``tries``. ``worked`` contains the options of traces from worked solutions, such as ``error_rate``.
    """
    from dataclasses import fields

    from rstar2_env.cli._command import flag
    from rstar2_env.cli._interrupt import stopped_by_ctrl_c
    from rstar2_env.cli._options import check_flags, options_of, source_of
    from rstar2_env.core.options.declare import call_with_options
    from rstar2_env.core.options.text import Written
    from rstar2_env.traces.playing import TriesOptions, play_traces
    from rstar2_env.traces.selection import TraceSelection

    by_part = options_of(set_, "env", "agent", "model", "engine")
    of_flags: dict[str, tuple[str, object]] = {
        "env.problems": ("problems", problems),
        "env.split": ("split", split),
        "model.temperature": ("temperature", player["temperature"]),
        "model.max_episode_tokens": ("max_tokens", player["max_tokens"]),
        "model.chat_template": ("chat_template", player["chat_template"]),
        "agent.temperature": ("temperature", player["temperature"]),
        "agent.max_tokens": ("max_tokens", player["max_tokens"]),
        "agent.model": ("model", player["model"]),
        "agent.base_url": ("endpoint", player["endpoint"]),
    }
    check_flags(ctx, by_part, of_flags)
    options = _player_options(by_part, **player)
    given = {name: value for name, value in playing.items() if name not in ("share", "worked_solutions")}
    given |= {
        "shares": _shares(playing.get("share", [])),
        "worked": Written(playing.get("worked_solutions", "none"), flag(ctx, "worked_solutions")),
    }
    tries_names = {field.name for field in fields(TriesOptions)}
    tries = call_with_options("traces", TriesOptions, {name: given[name] for name in given if name in tries_names})
    selection = call_with_options(
        "traces", TraceSelection, {name: given[name] for name in given if name not in tries_names}
    )
    source = None if problems is None else source_of(problems, split, "train")
    with stopped_by_ctrl_c("episodes") as stop:
        result = play_traces(
            env,
            out=out,
            tries=tries,
            selection=selection,
            worked_options=worked,
            resume=resume,
            overwrite=overwrite,
            stop=stop,
            problems=source,
            split=split or "train",
            episodes=episodes,
            seed=seed,
            workers=workers,
            wrappers=wrap or (),
            **options,
        )
    _print_played(result, as_json=as_json)
    if result.stopped_by == "interruption":
        say(
            f"Interrupted. The {result.episodes} episodes so far are in {result.episodes_file}. To "
            "continue, run the same command with --resume.",
            err=True,
        )
        raise typer.Exit(130)
    if not result.traces:
        why = ", ".join(f"{reason} ({count})" for reason, count in result.reasons.items())
        say(
            f"Error: none of the {result.episodes} episodes became a trace. Reasons, with the number of "
            f"episodes: {why}. The episodes are in {result.episodes_file}. Use a stronger model (--model, "
            "--endpoint), more --tries or easier problems.",
            err=True,
        )
        raise typer.Exit(1)


def _player_options(
    options: dict[str, dict[str, Any]],
    *,
    model: str | None,
    endpoint: str | None,
    agent: str | None,
    engine: str | None,
    temperature: float | None,
    max_tokens: int | None,
    chat_template: str | None,
) -> dict[str, Any]:
    """Convert the flags and ``--set`` options of player and environment to keyword arguments of ``evaluate``."""
    import os

    from rstar2_env.core.net.chat_endpoint import served_model

    env = {"env_options": options["env"]}
    if agent is not None or endpoint is not None:
        of_model: dict[str, Any] = {
            "--engine": engine,
            "--chat-template": chat_template,
            "--set model.": options["model"],
        }
        of_model |= {"--set engine.": options["engine"]}
        if agent is not None:
            of_model |= {"--model": model, "--endpoint": endpoint}
            of_model |= {"--temperature": temperature, "--max-tokens": max_tokens}
        if refused := [name for name, value in of_model.items() if value not in (None, {})]:
            raise typer.BadParameter(
                f"{refused[0]} does not apply to {'--agent' if agent is not None else '--endpoint'}: "
                "omit it. Set options of the agent with --set agent.NAME=VALUE."
            )
    if agent is not None:
        return {**env, "agent": agent, "agent_options": options["agent"]}
    if endpoint is not None:
        key = os.environ.get(str(options["agent"].get("api_key_env", "OPENAI_API_KEY")))
        limits = {"temperature": temperature, "max_tokens": max_tokens}
        name = model or served_model(endpoint, api_key=key, option="--endpoint")
        return {
            **env,
            "agent": "openai",
            "agent_options": {**options["agent"], "base_url": endpoint, "model": name, **_given(limits)},
        }
    if options["agent"]:
        raise typer.BadParameter(
            "--set agent.NAME=VALUE has no effect with --model: use --set model.NAME=VALUE "
            "for options of the model, or --set engine.NAME=VALUE for options of the engine."
        )
    flags: dict[str, Any] = {
        "temperature": temperature,
        "max_episode_tokens": max_tokens,
        "chat_template": chat_template,
    }
    return {
        **env,
        "model": model,
        "engine": engine or "transformers",
        "engine_options": options["engine"],
        "model_options": {**options["model"], **_given(flags)},
    }


def _given(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _shares(written: list[str]) -> dict[str, float]:
    """Parse ``LEVEL=SHARE`` arguments; return the share of each level of difficulty."""
    shares = {}
    for each in written:
        level, _, share = each.partition("=")
        try:
            shares[level.strip()] = float(share)
        except ValueError:
            raise typer.BadParameter(
                f"--share must be a level and a number from 0 to 1, such as easy=0.4; got {each}."
            ) from None
    return shares


def _print_played(result: PlayedTraces, *, as_json: bool) -> None:
    import json
    from collections import Counter

    from rstar2_env.cli._tables import print_figures
    from rstar2_env.evaluation.figures.text import tally_text

    sources = Counter[str](trace.source for trace in result.traces)
    levels = Counter(trace.level for trace in result.traces if trace.level)
    if as_json:
        figures = {
            "kept": len(result.traces),
            "sources": sources,
            "levels": levels,
            "problems": result.problems,
            "solved": result.solved,
            "episodes": result.episodes,
            "tokens": result.tokens,
            "reasons": dict(result.reasons),
            "stopped_by": result.stopped_by,
            "out": str(result.out),
            "episodes_file": str(result.episodes_file),
        }
        say(json.dumps(figures))
        return
    budgets = {name: f"--{name.replace('_', '-')} is used up" for name in ("max_total_episodes", "max_total_tokens")}
    stopped = budgets.get(result.stopped_by, result.stopped_by and "interrupted")
    print_figures(
        f"traces by playing{f' – {stopped}' if stopped else ''}",
        {
            "kept": str(len(result.traces)),
            "sources": tally_text(sources),
            "levels": tally_text(levels),
            "problems solved": f"{result.solved} of {result.problems}",
            "episodes": f"{result.episodes}{f' ({result.tokens} tokens)' if result.tokens else ''}",
            **{f"  {reason}": str(count) for reason, count in Counter(result.reasons).most_common()},
            "written to": str(result.out) if result.traces else "–",
            "episodes in": str(result.episodes_file),
        },
    )
