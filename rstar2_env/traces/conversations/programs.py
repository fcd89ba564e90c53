"""Magicoder: an instruction and a response with a program, written as a call of the Python tool.

rStar2-Agent's paper (arXiv 2508.20722, section 4.1) rewrote 48K rows as calls in JSON, with an unnamed model; here the
program of a response with exactly one block of Python becomes the argument of the call, and the conversation ends with
the call, since the program was not run.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from rstar2_env.core.episode import Message
from rstar2_env.tools.python import PYTHON_TOOL_NAME, PythonTool
from rstar2_env.traces.conversations.base import UnusableError, calls_message, checked, plain, system_message

_BLOCK = re.compile(r"```([\w+-]*)[^\n]*\n(.*?)```", re.DOTALL)
_SYSTEM = "You write programs. Where the task asks for one in Python, pass it to the tool."


def programs(row: Mapping[str, Any]) -> list[Message]:
    """Convert a row of Magicoder to a conversation that ends with a call of the Python tool.

    Args:
        row: Has the keys ``instruction`` and ``response``, or ``problem`` and ``solution``, and optionally ``lang``.

    Raises:
        UnusableError: The response does not have exactly one program, or the program is not in Python.
    """
    asked = plain(row.get("instruction", row.get("problem")))
    answered = plain(row.get("response", row.get("solution")))
    blocks = list(_BLOCK.finditer(answered))
    language = str(row.get("lang") or (blocks[0][1] if blocks else "")).lower()
    if len(blocks) != 1 or language not in ("python", "py", "python3"):
        raise UnusableError("the response does not contain exactly one Python program")
    code = blocks[0][2].rstrip()
    try:
        compile(code, "response", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise UnusableError("the program is not valid Python") from error
    call = calls_message([(PYTHON_TOOL_NAME, {"code": code, "input": ""})])
    return checked([system_message(_SYSTEM, [PythonTool.schema.schema()]), Message("user", asked.strip()), call])
