"""Deliberate mistakes in traces: calls that fail, and answers in a wrong format.

For each kind of failing call, the statuses that the tool may report are listed, so a replay can check the effect of the
mistake. Covered: Python programs, JSON calls. Not covered: slow programs (timeouts), since writing such a trace would
take seconds.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rstar2_env.core.status import ToolStatus
from rstar2_env.dialects import Dialect
from rstar2_env.evaluation.play.episode import python_call

_NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?![\w.])")
_NAMES = ("x", "n", "a", "total")


@dataclass(frozen=True, slots=True)
class FailingCall:
    """A tool call with a deliberate mistake, which makes the call fail.

    Attributes:
        kind: The kind of mistake, one of ``CALL_MISTAKES``.
        turn: The call as the policy writes it.
        statuses: Statuses that the tool may report.
    """

    kind: str
    turn: str
    statuses: frozenset[ToolStatus]


def failing_call(
    code: str, dialect: Dialect, tools: Sequence[Mapping[str, Any]], rng: np.random.Generator, kinds: Sequence[str]
) -> FailingCall | None:
    """Return a tool call that runs a correct program, with one of the given mistakes in it.

    Args:
        code: The right program.
        dialect: Writes calls.
        tools: Schemas of the environment's tools.
        rng: Chooses the mistake and its details.
        kinds: Mistakes to choose from, names of ``CALL_MISTAKES``; a mistake that does not fit the program is skipped.

    Returns:
        The call, or ``None`` if no mistake fits.
    """
    for at in rng.permutation(len(kinds)):
        mistake = CALL_MISTAKES[kinds[int(at)]]
        program = code if mistake.in_program is None else mistake.in_program(code, rng)
        if program is None:
            continue
        turn: str | None = python_call(dialect, tools, program)
        if mistake.in_call is not None:
            turn = mistake.in_call(str(turn), tools, rng)
        if turn is not None:
            return FailingCall(kinds[int(at)], turn, mistake.statuses)
    return None


@dataclass(frozen=True, slots=True)
class _CallMistake:
    """A mistake in a call; its functions return ``None`` if the program or the call has no place for the mistake.

    Attributes:
        statuses: Statuses that the tool may report.
        in_program: Function that changes the program; ``None`` if the mistake does not change the program.
        in_call: Function that changes the written call; ``None`` if the mistake does not change the written call.
    """

    statuses: frozenset[ToolStatus]
    in_program: Callable[[str, np.random.Generator], str | None] | None = None
    in_call: Callable[[str, Sequence[Mapping[str, Any]], np.random.Generator], str | None] | None = None


def _undefined_name(code: str, rng: np.random.Generator) -> str | None:
    """Replace a number with the name of an undefined variable."""
    return _in_place_of_a_number(code, rng, lambda number: _NAMES[int(rng.integers(len(_NAMES)))])


def _misspelt(code: str, rng: np.random.Generator) -> str | None:
    if "print(" not in code:
        return None
    return code.replace("print(", ("prnt(", "pint(", "Print(")[int(rng.integers(3))], 1)


def _syntax(code: str, rng: np.random.Generator) -> str | None:
    if ")" not in code:
        return None
    if rng.integers(2):
        at = code.rindex(")")
        return code[:at] + code[at + 1 :]
    return _in_place_of_a_number(code, rng, lambda number: f"*/{number}")


def _division_by_zero(code: str, rng: np.random.Generator) -> str | None:
    return _in_place_of_a_number(code, rng, lambda number: f"{number}/0")


def _wrong_type(code: str, rng: np.random.Generator) -> str | None:
    """Put quotes around a number that precedes a plus or minus sign, so that the number becomes a string."""
    places = [match for match in _NUMBER.finditer(code) if code[match.end() : match.end() + 1] in ("+", "-")]
    if not places:
        return None
    match = places[int(rng.integers(len(places)))]
    return f"{code[: match.start()]}'{match.group()}'{code[match.end() :]}"


def _in_place_of_a_number(code: str, rng: np.random.Generator, change: Callable[[str], str]) -> str | None:
    places = list(_NUMBER.finditer(code))
    if not places:
        return None
    match = places[int(rng.integers(len(places)))]
    return code[: match.start()] + change(match.group()) + code[match.end() :]


def _broken_json(call: str, tools: Sequence[Mapping[str, Any]], rng: np.random.Generator) -> str | None:
    """Remove one bracket, quote or comma from the JSON of a call; ``None`` if the call is not JSON."""
    places = [match.start() for match in re.finditer(r'}}|"}|": |, "', call)]
    if not places:
        return None  # The dialect does not write JSON.
    at = places[int(rng.integers(len(places)))]
    return call[:at] + call[at + 1 :]


def _wrong_argument(call: str, tools: Sequence[Mapping[str, Any]], rng: np.random.Generator) -> str | None:
    """Rename the argument ``code`` of a call; ``None`` if the call does not have this argument."""
    if '"code"' not in call:
        return None
    return call.replace('"code"', ('"program"', '"python"', '"source"')[int(rng.integers(3))], 1)


def _unknown_tool(call: str, tools: Sequence[Mapping[str, Any]], rng: np.random.Generator) -> str | None:
    for tool in tools:
        name = f'"{tool["function"]["name"]}"'
        if name in call:
            return call.replace(name, ('"python"', '"calculator"', '"execute"')[int(rng.integers(3))], 1)
    return None


CALL_MISTAKES: Mapping[str, _CallMistake] = {
    "undefined_name": _CallMistake(frozenset({ToolStatus.EXCEPTION}), in_program=_undefined_name),
    "misspelt": _CallMistake(frozenset({ToolStatus.EXCEPTION}), in_program=_misspelt),
    "division_by_zero": _CallMistake(frozenset({ToolStatus.EXCEPTION}), in_program=_division_by_zero),
    "wrong_type": _CallMistake(frozenset({ToolStatus.EXCEPTION}), in_program=_wrong_type),
    "syntax": _CallMistake(frozenset({ToolStatus.SYNTAX_ERROR}), in_program=_syntax),
    "broken_json": _CallMistake(frozenset({ToolStatus.MALFORMED}), in_call=_broken_json),
    "wrong_argument": _CallMistake(frozenset({ToolStatus.INVALID_ARGUMENTS}), in_call=_wrong_argument),
    "unknown_tool": _CallMistake(frozenset({ToolStatus.UNKNOWN_TOOL}), in_call=_unknown_tool),
}
"""The kinds of mistakes in the first call of a trace, keyed by name; each kind makes the call fail."""


def _without_tags(answer: str) -> str | None:
    """Return the text between an answer's tags; ``None`` without tags, or if there is text outside the tags."""
    match = _TAGGED.fullmatch(answer)
    return None if match is None else match.group(2)


def _unclosed(answer: str) -> str | None:
    match = _TAGGED.fullmatch(answer)
    return None if match is None else answer.removesuffix(f"</{match.group(1)}>")


def _twice(answer: str) -> str | None:
    return f"{answer}\n{answer}"


@dataclass(frozen=True, slots=True)
class FormatMistake:
    """A mistake in the format of an answer.

    Attributes:
        spoil: Function that turns a well-formed answer into a malformed one; it returns ``None`` if the dialect's
            format has no such mistake.
        earns: Whether a right answer with the mistake still earns its reward.
    """

    spoil: Callable[[str], str | None]
    earns: bool


_TAGGED = re.compile(r"<(\w+)>(.*)</\1>", re.DOTALL)

FORMAT_MISTAKES: Mapping[str, FormatMistake] = {
    "no_tags": FormatMistake(_without_tags, earns=False),
    "unclosed": FormatMistake(_unclosed, earns=False),
    "two_answers": FormatMistake(_twice, earns=True),
}
"""The kinds of mistakes in the format of an answer, keyed by name."""
