"""``rstar2/MathTool-v0``: math problems with a Python tool, as in rStar2-Agent (arXiv 2508.20722, section 2).

Not covered: the prompt, the form of calls and the extraction of answers, which the dialect defines
(``rstar2_env/dialects/``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

import gymnasium as gym

from rstar2_env.core.options.declare import Count, Seconds, call_with_options, checked
from rstar2_env.env.grading import GoldGrader
from rstar2_env.env.tool_env import ToolEnv
from rstar2_env.sandbox.job import Sandbox
from rstar2_env.sandbox.limits import Limits
from rstar2_env.tools import NotebookTool, PythonTool
from rstar2_env.tools.by_name import ToolChoice, make_tools
from rstar2_env.tools.cut import Tokenizer
from rstar2_env.tools.sandboxed import SandboxTool
from rstar2_env.verification import VerifierSpec


class MathToolEnv(ToolEnv):
    r"""A math problem, a Python tool, and a verifiable reward.

    ## Action space
    Any string: the policy's whole turn. With the ``rstar2`` dialect a call is a JSON object between ``<tool_call>`` and
    ``</tool_call>``; all calls of a turn run, in order. The answer is a ``\boxed{}`` between ``<answer>`` and
    ``</answer>``.

    ## Observation space
    Any string. ``reset`` returns the user's message; ``step`` returns the text that the policy is shown next: one
    ``<tool_response>`` for each call, or an empty string at the end.

    ## Reward
    1 at the end if the last answer of the policy's own text is right, else 0. A tool's output earns nothing.

    ## Episode end
    The episode continues after a turn that contains a call, well-formed or not, even if it also contains an answer. A
    turn without a call ends it: ``terminated``, with ``info["end"]`` ``answered`` or ``no_answer``. ``truncated``: the
    budget ran out (``turns``: the calls of the last allowed turn are not run; ``tokens``; ``time``), or the
    environment's own machinery failed (``unavailable``: the reward has no meaning, and every trainer drops the
    episode). An episode is never both ``terminated`` and ``truncated``.

    ## Information
    Deterministic, given the seed and the actions. On ``reset``: ``problem_id``, ``tools`` (JSON schemas), ``system``
    (the system message), ``stop`` (strings after which an engine should stop). On ``step``: ``role`` of the returned
    text, ``tool_calls`` (a list with ``name``, ``status``, ``error_type``, ``exit_code``, ``truncated`` and
    ``injected``: whether a wrapper put a fault into the call) and ``answer_tags`` (number of marked answers so far); at
    the end also ``end``, ``answer``, ``correct``, ``turns``, ``tool_errors`` and ``tool_calls_total`` (both without
    ``unavailable`` and injected calls) and, if an answer was graded, ``verdict`` (``reason``, a value of
    ``rstar2_env.verification.Reason``, and ``method``, the layer that decided).

    ## Version history
    v0: first version.

    Args:
        problems: A JSONL path (``question``, ``answer``, optional ``id``, ``source``), a list of dicts, or the name of
            a bundled family.
        dialect: A dialect or its name, with or without options ("rstar2:boxed_anywhere=true"). It also writes the
            system message and the instruction (``rstar2_env/dialects/prompts.py``).
        tools: The tools in place of the environment's own: ``python``, ``notebook``, all tools of an MCP server
            (``mcp:./server.py``, ``mcp:http://HOST:PORT/mcp``, ``mcp:COMMAND``), or tools of your own; see
            docs/mcp-tools.md.
        sandbox: A provider's name, its options, or a ``Sandbox``; see ``rstar2_env.tools.PythonTool``.
        limits: Resource limits of one program; a ``Limits`` or a dict of its fields.
        max_output: Maximum length of a program's output that the policy is shown, in characters, or in tokens with
            ``output_tokenizer``; longer output is cut in the middle.
        output_tokenizer: Tokenizer that counts ``max_output`` in tokens, or its folder or hub name.
        traceback: Whether to show the whole traceback of an exception, or only its last line.
        verifier: Decides whether an answer is right: ``"rules"``, ``"numeric:tolerance=0.02"``,
            ``"model:url=...,model=..."``, your own code, or a ``Verifier``; see docs/verification.md.
        verify_timeout_s: Maximum time, in seconds, to compare an answer with the gold answer by rules.
        **options: Arguments of ``ToolEnv``: ``split``, ``max_turns``, ``max_tokens``, ``max_seconds``, ...

    Raises:
        ConfigurationError: An option is out of range.
    """

    tool_class: ClassVar[type[SandboxTool]] = PythonTool

    @checked
    def __init__(
        self,
        *,
        problems: Any = "arithmetic",
        tools: Sequence[ToolChoice] | None = None,
        sandbox: Sandbox | str | Mapping[str, Any] = "local",
        limits: Limits | Mapping[str, Any] | None = None,
        max_output: Count = 4000,
        output_tokenizer: Tokenizer | str | None = None,
        traceback: bool = True,
        verifier: VerifierSpec = "rules",
        verify_timeout_s: Seconds = 5.0,
        **options: Any,
    ) -> None:
        if isinstance(limits, Mapping):
            limits = call_with_options("limits", Limits, limits, prefix="limits.")
        default, python, notebook = (
            partial(
                kind, sandbox, limits=limits, max_output=max_output, tokenizer=output_tokenizer, traceback=traceback
            )
            for kind in (self.tool_class, PythonTool, NotebookTool)
        )
        made = [default()] if tools is None else make_tools(tools, {"python": python, "notebook": notebook})
        super().__init__(problems=problems, tools=made, grader=GoldGrader(verify_timeout_s, verifier), **options)


gym.register("rstar2/MathTool-v0", entry_point="rstar2_env.envs_registry.math_tool:MathToolEnv")
