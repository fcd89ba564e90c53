r"""The dialect ``fenced``: programs in code fences, as base models write them (ZeroTIR, arXiv 2505.07773).

Covered: a program between ```` ```python ```` and a closing fence is a call of the Python tool with empty input; its
result is returned in an ``output`` fence; the answer is the last ``\boxed{}`` of the policy's own text. A Python fence
that cannot be run has the status ``malformed``. If a turn has neither a Python fence nor an answer, but ends with an
``output`` fence or an untagged fence, this fence is ``malformed`` too: a model that forgot the tag sees a message
instead of losing the episode. Not covered: tools whose argument is not a program.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rstar2_env.core.status import ToolStatus
from rstar2_env.core.text import without_spans
from rstar2_env.dialects.base import DIALECTS
from rstar2_env.dialects.prompts import FENCED_COMPACT_SYSTEM, FENCED_SYSTEM
from rstar2_env.tools.base import ToolCall, ToolResult, ToolSpec

# Quantifiers are possessive, and a match starts only at the first of several backticks: otherwise, many backticks in a
# row would take quadratic time.
_OPEN = re.compile(
    r"(?<!`)(?P<fence>`{3,}+)[ \t]*+(?P<tag>python3?|py|output)\b(?P<line_end>[ \t\r]*+(?:\n|\Z))?", re.IGNORECASE
)
_LINE = re.compile(r"^[ \t]*+(?P<fence>`{3,}+)[ \t]*+(?P<tag>[^\s`]*+)[ \t\r]*+$", re.MULTILINE)
_FENCE_LINE = re.compile(r"^[ \t]*+(`{3,}+)", re.MULTILINE)
_OWN_TAGS = frozenset({"python", "python3", "py", "output"})

_UNCLOSED = "The code fence was not closed: ``` is missing on a line of its own after the program. Nothing was run."
_UNTAGGED = "The code fence is not marked as Python: open it with ```python. Nothing was run."
_MADE_UP = "A fence of output is written by the tool alone: write a program in ```python. Nothing was run."
_SAME_LINE = "The program must start on the line after ```python. Nothing was run."


@dataclass(frozen=True, slots=True)
class _Block:
    """A Python or ``output`` fence in a turn.

    Attributes:
        start: Position of the fence in the turn.
        end: Position after the fence.
        output: Whether it is an ``output`` fence.
        code: The program; ``None`` if there is nothing to run.
        fault: Reason why the fence is a malformed call; empty if it is not.
    """

    start: int
    end: int
    output: bool
    code: str | None
    fault: str = ""


class FencedDialect:
    r"""Calls in ```` ```python ```` fences, results in ``output`` fences, the answer in the last ``\boxed{}``.

    Args:
        system: Replaces the system message; ``""`` means none.
        instruction: The user message; ``"%s"`` stands for the question.
        tool: Name of the tool that runs the programs.
        stdin: Whether that tool has, in addition to ``code``, an argument ``input``, which is always empty.
        compact: Use a short system message, without an example, for a policy that was fine-tuned on this format.
    """

    name = "fenced"
    role = "user"
    stop: tuple[str, ...] = ("\n```\n", "```output")
    """The stop strings: the end of a program, and the start of a result, which the model must not write itself."""

    def __init__(
        self,
        *,
        system: str | None = None,
        instruction: str | None = None,
        tool: str = "execute_python_code_with_standard_io",
        stdin: bool = True,
        compact: bool = False,
    ) -> None:
        self._system = (FENCED_COMPACT_SYSTEM if compact else FENCED_SYSTEM) if system is None else system
        self._instruction = instruction or "%s"
        self._tool = tool
        self._stdin = stdin

    @property
    def only_tool(self) -> str:
        """Name of the only tool that a fence can call; an environment refuses other tools."""
        return self._tool

    def system(self, tools: Sequence[ToolSpec]) -> str:
        """Return the system message: the protocol of calls, without the tools' schemas, which fences do not need."""
        return self._system

    def user(self, question: str) -> str:
        """Return the instruction with the question in it; without an instruction, the question."""
        return self._instruction.replace("%s", question, 1)

    def calls(self, turn: str) -> list[ToolCall]:
        """Return every Python fence of the turn as a call, in order.

        A program ends at the first line that is a bare fence at least as long as the opening fence; to print such a
        line, a program must open with a longer fence. An unclosed fence does not include the next fence. If there is
        neither a Python fence nor an answer, a fence at the end of the turn that is an ``output`` fence or has no tag
        is returned as a malformed call.
        """
        blocks = _blocks(turn)
        calls = [self._call(block) for block in blocks if not block.output]
        if not calls and (fault := _stray(turn, blocks)) is not None:
            return [ToolCall("", problem=(ToolStatus.MALFORMED, fault))]
        return calls

    def results(self, results: Sequence[ToolResult]) -> str:
        """Return one ``output`` fence for each call, in the order of the calls."""
        return "\n".join(_fenced("output", result.text.removesuffix("\n")) for result in results)

    def answer(self, turns: Sequence[str]) -> str | None:
        r"""Return the answer in the last ``\boxed{}`` outside programs and results; ``None`` if there is none.

        See :func:`~rstar2_env.verification.boxed_answer` for several boxes in one sentence.
        """
        from rstar2_env.verification import last_boxed_answer

        return last_boxed_answer(map(_own_text, reversed(turns)))

    def answer_tags(self, turns: Sequence[str]) -> int:
        """Return the number of boxed answers outside Python and output fences; an unclosed box does not count."""
        from rstar2_env.verification import extract_boxed

        return sum(len(extract_boxed(_own_text(turn))) for turn in turns)

    def format_call(self, name: str, arguments: Mapping[str, Any]) -> str:
        """Return the call's program in a Python fence.

        Raises:
            ValueError: The call is for a tool other than ``tool``, or its argument ``input`` is not empty.
        """
        code = arguments.get("code")
        if name != self._tool or not isinstance(code, str) or arguments.get("input") or set(arguments) - _ARGUMENTS:
            raise ValueError(
                f"A code fence can only call {self._tool!r} with a program under 'code' and an empty 'input', not "
                f"{name!r} with {dict(arguments)!r:.200}."
            )
        return _fenced("python", code)

    def format_answer(self, answer: str) -> str:
        r"""Return the answer as ``\boxed{ANSWER}``."""
        return f"\\boxed{{{answer}}}"

    def _call(self, block: _Block) -> ToolCall:
        if block.code is None:
            return ToolCall("", problem=(ToolStatus.MALFORMED, block.fault))
        return ToolCall(self._tool, {"code": block.code, **({"input": ""} if self._stdin else {})})


_ARGUMENTS = {"code", "input"}


def _blocks(turn: str) -> list[_Block]:
    """Return every Python and output fence, in order, in time linear in the length of the turn."""
    blocks: list[_Block] = []
    opening = _OPEN.search(turn)
    while opening is not None:
        block = _read(turn, opening)
        blocks.append(block)
        opening = _OPEN.search(turn, block.end)
    return blocks


def _read(turn: str, opening: re.Match[str]) -> _Block:
    output = opening["tag"].lower() == "output"
    start = opening.start()
    if opening["line_end"] is None:
        # The block ends at the next fence, on this line or on a later one.
        close = turn.find("```", opening.end("tag"))
        return _Block(start, len(turn) if close < 0 else close + 3, output, None, _SAME_LINE)
    body = opening.end()
    for line in _LINE.finditer(turn, body):
        if len(line["fence"]) < len(opening["fence"]):
            continue
        if not line["tag"]:
            code = turn[body : max(body, line.start() - 1)]
            return _Block(start, line.end(), output, code)
        if line["tag"].lower() in _OWN_TAGS:
            return _Block(start, line.start(), output, None, _UNCLOSED)
    return _Block(start, len(turn), output, None, _UNCLOSED)


def _stray(turn: str, blocks: Sequence[_Block]) -> str | None:
    """Return the error if a turn without an answer ends with an untagged or an ``output`` fence; else ``None``."""
    from rstar2_env.verification import last_boxed

    text = turn.rstrip()
    made_up = bool(blocks) and blocks[-1].output and blocks[-1].end >= len(text)
    last_line = text[text.rfind("\n") + 1 :].strip()
    untagged = len(last_line) >= 3 and not last_line.strip("`")
    if not (made_up or untagged) or last_boxed(_own_text(turn)) is not None:
        return None
    return _MADE_UP if made_up else _UNTAGGED


def _own_text(turn: str) -> str:
    """Return the turn without programs and results, since an answer in a program is not an answer of the policy."""
    from rstar2_env.verification.read.boxed import without_tool_text

    return without_tool_text(without_spans(turn, ((block.start, block.end) for block in _blocks(turn))))


def _fenced(tag: str, text: str) -> str:
    longest = max((len(match[1]) for match in _FENCE_LINE.finditer(text)), default=2)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{tag}\n{text}\n{fence}\n"


DIALECTS.register("fenced", FencedDialect)
