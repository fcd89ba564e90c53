"""Episodes in a terminal: a table of some, and one as a conversation with its programs coloured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from rstar2_env.dialects import make_dialect
from rstar2_env.view.index.facts import list_in
from rstar2_env.view.queries.episodes import said_by_verifier
from rstar2_env.view.terminal.columns import Column, printed
from rstar2_env.view.terminal.harmless import harmless, one_line, shown
from rstar2_env.view.terminal.overview import number

_GOOD = frozenset({"ok", "empty"})
_MOST_CHARACTERS = 200_000
"""Characters of a message that are shown."""
_DIALECTS = (("<tool_call>", "rstar2"), ("```", "fenced"))


def episode_table(rows: Sequence[Mapping[str, Any]], total: int) -> RenderableType:
    """A table of episodes.

    Args:
        rows: As ``Answers.episodes`` has them.
        total: How many there are of those that were asked for.
    """
    return printed(COLUMNS, rows, f"{len(rows):,} of {total:,} episodes")


def _kept(row: Mapping[str, Any]) -> str:
    return "" if row["kept"] is None else "kept" if row["kept"] else row["reason"] or "dropped"


def _calls(statuses: Mapping[str, int], injected: Mapping[str, int]) -> Text:
    text = Text()
    for name, count in statuses.items():
        text.append(f"{one_line(name, 30)} {count} ", style="" if name in _GOOD else "red")
    for name, count in injected.items():
        text.append(f"injected {one_line(name, 30)} {count} ", style="magenta")
    return text


COLUMNS = (
    Column("key", lambda row: shown(row["key"])),
    Column("problem", lambda row: shown(one_line(row["problem_id"], 40)), least=10),
    Column("reward", lambda row: shown(number(row["reward"])), number=True),
    Column("tokens", lambda row: shown(f"{row['policy_tokens']:,}"), number=True),
    Column("turns", lambda row: shown(row["turns"]), number=True),
    Column("right", lambda row: Text("right", "green") if row["correct"] else Text("wrong", "red"), least=5),
    Column("kept", lambda row: shown(one_line(_kept(row), 20)), least=5),
    Column("end", lambda row: shown(one_line(row["end"], 20)), least=6),
    Column("calls", lambda row: _calls(row["statuses"], row["injected"]), least=9),
)
"""What a table shows of an episode, as ``Answers.episodes`` has it."""


def conversation(line: Mapping[str, Any], *, heading: str) -> Group:
    """One episode.

    Args:
        line: Its line, as a run's folder or another file of episodes has it.
        heading: What it is called.
    """
    parts: list[RenderableType] = [shown(heading, "bold")]
    if line.get("shown"):
        parts.append(Panel(shown(_cut(line["shown"])), title="user, as it was played", title_align="left"))
    turns: Iterator[Any] = iter(list_in(line, "steps"))
    for message in list_in(line, "messages"):
        if not isinstance(message, dict):
            continue
        role, content = str(message.get("role", "")), _cut(message.get("content", ""))
        if role == "assistant":
            parts.append(Panel(Group(*_turn(content)), title="assistant", title_align="left", border_style="green"))
            parts += _statuses(next(turns, None))
        else:
            style = {"system": "dim", "user": "cyan"}.get(role, "blue")
            title = shown(one_line(role, 40))
            parts.append(Panel(shown(content.rstrip()), title=title, title_align="left", border_style=style))
    parts.append(_end(line))
    if line.get("error"):
        parts.append(Panel(shown(_cut(line["error"])), title="error", title_align="left", border_style="red"))
    return Group(*parts)


def _turn(content: str) -> list[RenderableType]:
    """The text of a turn, and the programs of its calls coloured."""
    programs: list[RenderableType] = []
    for mark, name in _DIALECTS:
        if mark in content:
            for call in make_dialect(name).calls(content):
                code = call.arguments.get("code")
                if isinstance(code, str):
                    programs += [shown(f"{one_line(call.name, 40)}:", "dim")]
                    programs += [Syntax(harmless(code), "python", word_wrap=True)]
            break
    return [shown(content.rstrip()), *programs]


def _statuses(turn: Any) -> list[RenderableType]:
    info = turn.get("info") if isinstance(turn, dict) else None
    said: list[RenderableType] = []
    for call in list_in(info, "tool_calls") if isinstance(info, dict) else ():
        if not isinstance(call, dict):
            continue
        status = str(call.get("status", ""))
        words = [status, str(call.get("error_type") or "")]
        words += ["output was cut"] if call.get("truncated") else []
        words += ["injected by a wrapper"] if call.get("injected") else []
        told = f"{call.get('name') or 'call'}: {', '.join(filter(None, words))}"
        said.append(shown(one_line(told), "green" if status in _GOOD else "red"))
    return said


def _end(line: Mapping[str, Any]) -> RenderableType:
    table = Table(show_header=False, title_justify="left")
    if "correct" in line:
        table.title = "right" if line["correct"] else "not right"
        table.title_style = "bold green" if line["correct"] else "bold red"
    rewards = line.get("rewards")
    rows: dict[str, Any] = {
        "problem": line.get("problem_id"),
        "reward": line.get("reward"),
        **({f"  {name}": value for name, value in rewards.items()} if isinstance(rewards, dict) else {}),
        "end": line.get("end"),
        "answer": line.get("answer"),
        "gold answer": line.get("gold"),
        "verdict": _verdict(line),
        "turns": line.get("turns"),
        "calls": ", ".join(map(str, list_in(line, "statuses"))),
        "injected": ", ".join(map(str, list_in(line, "injected"))),
        "tokens of the policy": line.get("policy_tokens"),
        "advantage": line.get("advantage"),
        "kept": None if line.get("kept") is None else "yes" if line["kept"] else f"no: {line.get('reason') or ''}",
    }
    for name, value in rows.items():
        if value not in (None, ""):
            table.add_row(shown(one_line(name)), shown(one_line(value, 2000)))
    return table


def _verdict(line: Mapping[str, Any]) -> str:
    """Why the answer was graded as it was, as ``equal (number)``."""
    said = said_by_verifier(line)
    if said is None:
        return ""
    reason = said["reason"].replace("_", " ")
    return f"{reason} ({said['method']})" if said["method"] else reason


def _cut(value: Any) -> str:
    text = str(value)
    if len(text) <= _MOST_CHARACTERS:
        return text
    return f"{text[:_MOST_CHARACTERS]}\n… {len(text) - _MOST_CHARACTERS:,} characters more"
