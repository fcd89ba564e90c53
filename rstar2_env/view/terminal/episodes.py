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
from rstar2_env.tools import ToolCall
from rstar2_env.view.index.episode_columns import list_field
from rstar2_env.view.queries.episodes import verdict_of
from rstar2_env.view.terminal.columns import TableColumn, printable_table
from rstar2_env.view.terminal.overview import number
from rstar2_env.view.terminal.sanitize import one_line, safe_text
from rstar2_env.view.terminal.segments import MessageSegment, segments
from rstar2_env.view.words import selection_words, verdict_words, words

_GOOD = frozenset({"ok", "empty"})
_MOST_CHARACTERS = 200_000
"""Maximum number of characters of a message that are shown."""


def episode_table(rows: Sequence[Mapping[str, Any]], total: int) -> RenderableType:
    """Build a table of episodes, for printing.

    Args:
        rows: Rows from ``Answers.episodes``.
        total: Number of episodes that match the filter.
    """
    return printable_table(
        [column for column in COLUMNS if not column.spare], rows, f"{len(rows):,} of {total:,} episodes"
    )


def _calls(statuses: Mapping[str, int], injected: Mapping[str, int]) -> Text:
    text = Text()
    for name, count in statuses.items():
        text.append(f"{one_line(name, 30)} {count} ", style="" if name in _GOOD else "red")
    for name, count in injected.items():
        text.append(f"injected {one_line(name, 30)} {count} ", style="magenta")
    return text


def _question(row: Mapping[str, Any]) -> Text:
    return safe_text(one_line(row["question"]))


def _result(row: Mapping[str, Any]) -> Text:
    if row["correct"] is None:
        return Text("")
    return Text(_GRADED["true"], "green") if row["correct"] else Text(_GRADED["false"], "red")


_GRADED: Mapping[str, str] = words()["graded"]
_CELLS: Mapping[str, dict[str, Any]] = {
    "key": {"cell": lambda row: safe_text(row["key"])},
    "correct": {"cell": _result},
    "question": {"cell": _question, "least": 20, "spare": True},
    "reward": {"cell": lambda row: safe_text(number(row["reward"])), "number": True},
    "errors": {"cell": lambda row: _calls(row["statuses"], row["injected"]), "least": 9},
    "kept": {"cell": lambda row: safe_text(one_line(selection_words(row["kept"], row["reason"]), 40)), "least": 7},
    "end": {"cell": lambda row: safe_text(one_line(row["end"], 20)), "least": 6},
    "policy_tokens": {"cell": lambda row: safe_text(f"{row['policy_tokens']:,}"), "number": True},
    "turns": {"cell": lambda row: safe_text(row["turns"]), "number": True},
    "problem_id": {"cell": lambda row: safe_text(one_line(row["problem_id"], 40)), "least": 10},
}
"""Cells of the columns that a terminal shows. The columns' headings and order are those of the viewer's web page."""
COLUMNS = tuple(TableColumn(heading, **_CELLS[name]) for name, heading in words()["columns"].items() if name in _CELLS)
"""Columns of the table of episodes; the rows come from ``Answers.episodes``."""


def conversation(line: Mapping[str, Any], *, heading: str) -> Group:
    """Build the display of one episode as a conversation, split into the same segments as on the web page.

    Args:
        line: Record of the episode from a run folder or another file of episodes.
        heading: Heading above the conversation.
    """
    parts: list[RenderableType] = [safe_text(heading, "bold")]
    roles = words()["roles"]
    if line.get("shown"):
        title = f"{roles['problem']}, as shown to the policy"
        parts.append(Panel(safe_text(_cut(line["shown"])), title=title, title_align="left"))
    steps: Iterator[Any] = iter(list_field(line, "steps"))
    turn = 0
    for message in list_field(line, "messages"):
        if not isinstance(message, dict):
            continue
        role, content = str(message.get("role", "")), _cut(message.get("content", ""))
        title, calls = roles.get(role, role), []
        if role == "assistant":
            turn += 1
            title, calls = f"{title} · turn {turn}", _calls_of(next(steps, None))
        elif role == "user" and not turn:
            title = roles["problem"]
        body = Group(*_segment_parts(segments(content, role), calls))
        style = {"assistant": "green", "system": "dim", "user": "cyan"}.get(role, "blue")
        parts.append(Panel(body, title=safe_text(one_line(title, 40)), title_align="left", border_style=style))
    parts.append(_end(line))
    if line.get("error"):
        parts.append(Panel(safe_text(_cut(line["error"])), title="Failure", title_align="left", border_style="red"))
    return Group(*parts)


def _calls_of(step: Any) -> list[Mapping[str, Any]]:
    info = step.get("info") if isinstance(step, dict) else None
    return [call for call in list_field(info, "tool_calls") if isinstance(call, dict)] if isinstance(info, dict) else []


def _segment_parts(found: Sequence[MessageSegment], calls: Sequence[Mapping[str, Any]]) -> Iterator[RenderableType]:
    """Yield the segments of a message for display, with the status of each call above the call.

    If the number of calls in the text differs from the number of calls that were run, all statuses come first.
    """
    labels = words()["segment_labels"]
    written = [part for part in found if part.kind == "call" or (part.kind == "code" and calls)]
    status = iter(map(_status_line, calls))
    if len(written) != len(calls):
        yield from status
    if not found:
        yield safe_text(labels["empty"], "dim")
    for part in found:
        if part.kind in ("call", "code"):
            if any(part is one for one in written) and (line := next(status, None)) is not None:
                yield line
            name = part.name if part.kind == "call" else "" if part.language == "text" else part.language
            yield safe_text(f"{one_line(name or labels[part.kind], 40)}:", "dim")
            yield Syntax(harmless(part.text), part.language, word_wrap=True)
            if part.more:
                yield safe_text(f"{labels['others']}:", "dim")
                yield Syntax(harmless(part.more), "json", word_wrap=True)
        elif part.kind == "text":
            yield safe_text(part.text.strip("\n").rstrip())
        else:
            yield safe_text(f"{labels[part.kind]}:", "dim")
            yield safe_text(part.text or labels["nothing"])


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


def status_lines(info: Mapping[str, Any]) -> list[Text]:
    """Build one line for the status of each call in a turn, from the ``info`` of the turn's step."""
    return [_status_line(call) for call in list_field(info, "tool_calls") if isinstance(call, dict)]


def _status_line(call: Mapping[str, Any]) -> Text:
    status, kind = str(call.get("status", "")), str(call.get("error_type") or "")
    details = ["" if kind == status else kind, f"exit {call['exit_code']}" if call.get("exit_code") else ""]
    details += ["cut" if call.get("truncated") else ""]
    told = ": ".join(
        filter(None, (f"{'injected ' if call.get('injected') else ''}{status}", ", ".join(filter(None, details))))
    )
    return safe_text(one_line(f"{call.get('name') or 'call'}: {told}"), "green" if status in _GOOD else "red")


def _end(line: Mapping[str, Any]) -> RenderableType:
    table = Table(show_header=False, title_justify="left")
    if "correct" in line:
        table.title = _GRADED["true" if line["correct"] else "false"]
        table.title_style = "bold green" if line["correct"] else "bold red"
    rewards = line.get("rewards")
    verdict = verdict_of(line)
    told = {
        **line,
        "verdict": verdict_words(verdict["reason"], verdict["method"] or "") if verdict else None,
        "kept": selection_words(line.get("kept"), str(line.get("reason") or "")),
    }
    rows: dict[str, Any] = {}
    for name, label in words()["facts"].items():
        rows[label] = told.get(name)
        if name == "reward" and isinstance(rewards, dict):
            rows |= {f"  {part}": value for part, value in rewards.items()}
    columns, figures = words()["columns"], words()["figures"]
    rows[columns["errors"]] = ", ".join(map(str, list_field(line, "statuses")))
    rows[figures["injected"]] = ", ".join(map(str, list_field(line, "injected")))
    for name, value in rows.items():
        if value not in (None, ""):
            table.add_row(safe_text(one_line(name)), safe_text(one_line(value, 2000)))
    return table


def _cut(value: Any) -> str:
    text = str(value)
    if len(text) <= _MOST_CHARACTERS:
        return text
    return f"{text[:_MOST_CHARACTERS]}\n… {len(text) - _MOST_CHARACTERS:,} more characters"
