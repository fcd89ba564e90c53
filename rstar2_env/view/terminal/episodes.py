"""Shows episodes in a terminal: the table of episodes, and one episode as a conversation with highlighted programs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from rstar2_env.core.text import harmless
from rstar2_env.dialects import make_dialect
from rstar2_env.tools import ToolCall
from rstar2_env.view.index.facts import list_field
from rstar2_env.view.queries.episodes import verdict_of
from rstar2_env.view.terminal.columns import TableColumn, printable_table
from rstar2_env.view.terminal.overview import number
from rstar2_env.view.terminal.sanitize import one_line, safe_text

_GOOD = frozenset({"ok", "empty"})
_MOST_CHARACTERS = 200_000
"""Maximum number of characters of a message that are shown."""
_DIALECTS = (("<tool_call>", "rstar2"), ("```", "fenced"))


def episode_table(rows: Sequence[Mapping[str, Any]], total: int) -> RenderableType:
    """Build a table of episodes, for printing.

    Args:
        rows: Rows from ``Answers.episodes``.
        total: Number of episodes that match the filter.
    """
    return printable_table(COLUMNS, rows, f"{len(rows):,} of {total:,} episodes")


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
    TableColumn("key", lambda row: safe_text(row["key"])),
    TableColumn("problem", lambda row: safe_text(one_line(row["problem_id"], 40)), least=10),
    TableColumn("reward", lambda row: safe_text(number(row["reward"])), number=True),
    TableColumn("tokens", lambda row: safe_text(f"{row['policy_tokens']:,}"), number=True),
    TableColumn("turns", lambda row: safe_text(row["turns"]), number=True),
    TableColumn("result", lambda row: Text("correct", "green") if row["correct"] else Text("wrong", "red"), least=5),
    TableColumn("kept", lambda row: safe_text(one_line(_kept(row), 20)), least=5),
    TableColumn("end", lambda row: safe_text(one_line(row["end"], 20)), least=6),
    TableColumn("calls", lambda row: _calls(row["statuses"], row["injected"]), least=9),
)
"""Columns of the table of episodes; the rows come from ``Answers.episodes``."""


def conversation(line: Mapping[str, Any], *, heading: str) -> Group:
    """Build the display of one episode as a conversation, for printing.

    Args:
        line: Record of the episode from a run folder or another file of episodes.
        heading: Heading above the conversation.
    """
    parts: list[RenderableType] = [safe_text(heading, "bold")]
    if line.get("shown"):
        parts.append(Panel(safe_text(_cut(line["shown"])), title="user, as shown to the policy", title_align="left"))
    turns: Iterator[Any] = iter(list_field(line, "steps"))
    for message in list_field(line, "messages"):
        if not isinstance(message, dict):
            continue
        role, content = str(message.get("role", "")), _cut(message.get("content", ""))
        if role == "assistant":
            parts.append(Panel(Group(*_turn(content)), title="assistant", title_align="left", border_style="green"))
            turn = next(turns, None)
            info = turn.get("info") if isinstance(turn, dict) else None
            parts += status_lines(info if isinstance(info, dict) else {})
        else:
            parts.append(message_panel(role, content))
    parts.append(_end(line))
    if line.get("error"):
        parts.append(Panel(safe_text(_cut(line["error"])), title="error", title_align="left", border_style="red"))
    return Group(*parts)


def _turn(content: str) -> list[RenderableType]:
    """Show the text of a turn, and the programs of its calls highlighted."""
    dialect = next((name for mark, name in _DIALECTS if mark in content), None)
    calls = [] if dialect is None else make_dialect(dialect).calls(content)
    return [safe_text(content.rstrip()), *program_parts(calls)]


def message_panel(role: str, content: str) -> Panel:
    """Build a panel with a message from the environment."""
    style = {"system": "dim", "user": "cyan"}.get(role, "blue")
    return Panel(
        safe_text(content.rstrip()), title=safe_text(one_line(role, 40)), title_align="left", border_style=style
    )


def program_parts(calls: Iterable[ToolCall]) -> list[RenderableType]:
    """Build the display of the programs in tool calls: highlighted, each below the name of its tool."""
    parts: list[RenderableType] = []
    for call in calls:
        code = call.arguments.get("code")
        if isinstance(code, str):
            parts += [safe_text(f"{one_line(call.name, 40)}:", "dim")]
            parts += [Syntax(harmless(code), "python", word_wrap=True)]
    return parts


def status_lines(info: Mapping[str, Any]) -> list[RenderableType]:
    """Build one line for the status of each call in a turn, from the ``info`` of the turn's step."""
    lines: list[RenderableType] = []
    for call in list_field(info, "tool_calls"):
        if not isinstance(call, dict):
            continue
        status = str(call.get("status", ""))
        facts = [status, str(call.get("error_type") or "")]
        facts += ["output was cut"] if call.get("truncated") else []
        facts += ["injected by a wrapper"] if call.get("injected") else []
        text = f"{call.get('name') or 'call'}: {', '.join(filter(None, facts))}"
        lines.append(safe_text(one_line(text), "green" if status in _GOOD else "red"))
    return lines


def _end(line: Mapping[str, Any]) -> RenderableType:
    table = Table(show_header=False, title_justify="left")
    if "correct" in line:
        table.title = "correct" if line["correct"] else "not correct"
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
        "calls": ", ".join(map(str, list_field(line, "statuses"))),
        "injected": ", ".join(map(str, list_field(line, "injected"))),
        "policy tokens": line.get("policy_tokens"),
        "advantage": line.get("advantage"),
        "kept": None if line.get("kept") is None else "yes" if line["kept"] else f"no: {line.get('reason') or ''}",
    }
    for name, value in rows.items():
        if value not in (None, ""):
            table.add_row(safe_text(one_line(name)), safe_text(one_line(value, 2000)))
    return table


def _verdict(line: Mapping[str, Any]) -> str:
    """Return the reason and method of the grade, such as ``equal (number)``."""
    verdict = verdict_of(line)
    if verdict is None:
        return ""
    reason = verdict["reason"].replace("_", " ")
    return f"{reason} ({verdict['method']})" if verdict["method"] else reason


def _cut(value: Any) -> str:
    text = str(value)
    if len(text) <= _MOST_CHARACTERS:
        return text
    return f"{text[:_MOST_CHARACTERS]}\n… {len(text) - _MOST_CHARACTERS:,} more characters"
