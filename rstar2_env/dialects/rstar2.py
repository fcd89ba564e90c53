"""The dialect of rStar2-Agent (arXiv 2508.20722, section 2.1): JSON calls, results and answers in tags.

Covered: several calls in a turn, all of which are run; a separate status for every kind of broken call. Not covered:
the tokenizer's chat template around the turns, and the ``<reason>`` that the template pre-fills.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from rstar2_env.dialects._json_calls import CALL_CLOSE, CALL_OPEN, outside_calls, read_calls
from rstar2_env.dialects.base import DIALECTS
from rstar2_env.dialects.prompts import (
    RSTAR2_COMPACT_SYSTEM,
    RSTAR2_COMPACT_WITHOUT_TOOLS,
    RSTAR2_SYSTEM,
    RSTAR2_USER,
    TOOLS_SECTION,
)
from rstar2_env.tools.base import ToolCall, ToolResult, ToolSpec

ANSWER_OPEN, ANSWER_CLOSE = "<answer>", "</answer>"

_COMPLETE_ANSWER = re.compile(re.escape(ANSWER_OPEN) + r"((?:(?!<answer>).)*?)" + re.escape(ANSWER_CLOSE), re.DOTALL)


class Rstar2Dialect:
    r"""Calls as JSON in ``<tool_call>``, results in ``<tool_response>``, the answer in ``\boxed{}`` in ``<answer>``.

    Args:
        system: Replaces the system message; ``"%s"`` in it is replaced with the tools' schemas; ``""`` means none.
        instruction: Replaces the user message; ``"%s"`` in it is replaced with the question.
        compact: Use a short prompt, for a policy that was fine-tuned on this format: the system message has the tools'
            signatures instead of their schemas, and the user message is the question alone. ``system`` and
            ``instruction`` override this.
        boxed_anywhere: Also accept a ``\boxed{}`` outside ``<answer>`` when there is no complete ``<answer>``.
    """

    name = "rstar2"
    role = "user"
    stop: tuple[str, ...] = ()

    def __init__(
        self,
        *,
        system: str | None = None,
        instruction: str | None = None,
        compact: bool = False,
        boxed_anywhere: bool = False,
    ) -> None:
        self._system = system
        self._compact = compact
        standard = "%s" if compact else RSTAR2_USER
        self._instruction = standard if instruction is None else (instruction or "%s")
        self._boxed_anywhere = boxed_anywhere

    def system(self, tools: Sequence[ToolSpec]) -> str:
        """Return the instructions and the tools' schemas; without tools, only the instructions."""
        if self._system is None and self._compact:
            signatures = "\n".join(map(_signature, tools))
            return RSTAR2_COMPACT_SYSTEM.replace("%s", signatures, 1) if tools else RSTAR2_COMPACT_WITHOUT_TOOLS
        if self._system is None and not tools:
            return RSTAR2_SYSTEM
        schemas = "\n".join(json.dumps(tool.schema(), ensure_ascii=False) for tool in tools)
        text = RSTAR2_SYSTEM + TOOLS_SECTION if self._system is None else self._system
        return text.replace("%s", schemas, 1)

    def user(self, question: str) -> str:
        """Return the instruction and the question."""
        return self._instruction.replace("%s", question, 1)

    def calls(self, turn: str) -> list[ToolCall]:
        """Return every ``<tool_call>`` of the turn, in order.

        A call ends at the end of its JSON, so a program may contain the closing tag in a string. A call that does not
        parse ends at the next closing tag, or at the turn's end.
        """
        return read_calls(turn)

    def results(self, results: Sequence[ToolResult]) -> str:
        """Return one ``<tool_response>`` for each call, in the order of the calls."""
        return "\n".join(_response(result.text) for result in results)

    def answer(self, turns: Sequence[str]) -> str | None:
        """Return the answer in the box of the last complete ``<answer>`` outside a call; ``None`` if there is none.

        See :func:`~rstar2_env.verification.boxed_answer` for several boxes in one sentence.
        """
        from rstar2_env.verification import boxed_answer, last_boxed_answer

        for turn in reversed(turns):
            if ANSWER_CLOSE in turn and (blocks := _COMPLETE_ANSWER.findall(outside_calls(turn))):
                return boxed_answer(blocks[-1])
        if self._boxed_anywhere:
            return last_boxed_answer(map(outside_calls, reversed(turns)))
        return None

    def answer_tags(self, turns: Sequence[str]) -> int:
        """Return the number of opening ``<answer>`` tags outside calls; 0 if none of them is closed."""
        own = [outside_calls(turn) for turn in turns if ANSWER_OPEN in turn]
        if not any(_COMPLETE_ANSWER.search(turn) for turn in own):
            return 0
        return sum(turn.count(ANSWER_OPEN) for turn in own)

    def format_call(self, name: str, arguments: Mapping[str, Any]) -> str:
        """Return the call as JSON between its tags.

        Raises:
            ValueError: The arguments contain values that JSON cannot represent, such as NaN.
        """
        body = json.dumps({"name": name, "arguments": dict(arguments)}, ensure_ascii=False, allow_nan=False)
        return f"{CALL_OPEN}{body}{CALL_CLOSE}"

    def format_answer(self, answer: str) -> str:
        r"""Return the answer as ``\boxed{ANSWER}`` inside ``<answer>`` tags."""
        return f"{ANSWER_OPEN}\\boxed{{{answer}}}{ANSWER_CLOSE}"


def _signature(tool: ToolSpec) -> str:
    """Return a tool as ``name(code, input=...)``, where ``=...`` marks the optional arguments."""
    function = tool.schema()["function"]
    parameters = function["parameters"]
    required = parameters.get("required", ())
    names = [name if name in required else f"{name}=..." for name in parameters.get("properties", {})]
    return f"{function['name']}({', '.join(names)})"


def _response(text: str) -> str:
    return f"<tool_response>\n{text}{'' if text.endswith(chr(10)) else chr(10)}</tool_response>"


DIALECTS.register("rstar2", Rstar2Dialect)
