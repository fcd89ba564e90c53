"""``rstar2/MathTool-v0``: math problems with a Python tool, as rStar2-Agent has them (arXiv 2508.20722, section 2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import gymnasium as gym

from rstar2_env.core.options import Count, Seconds, call_with_options, checked
from rstar2_env.env.grading import GoldGrader
from rstar2_env.env.tool_env import ToolEnv
from rstar2_env.sandbox.job import Limits, Sandbox
from rstar2_env.tools import PythonTool
from rstar2_env.tools.cut import Tokenizer
from rstar2_env.tools.sandboxed import SandboxTool
from rstar2_env.verification import VerifierSpec


class MathToolEnv(ToolEnv):
    r"""A math problem, a Python tool, and a verifiable reward.

    ## Action space
    Any string: the policy's whole turn. With the ``rstar2`` dialect a call is a JSON object between ``<tool_call>`` and
    ``</tool_call>``; several calls in one turn all run, in order. The answer is a ``\boxed{}`` between ``<answer>`` and
    ``</answer>``.

    ## Observation space
    Any string. ``reset`` returns the user's message; ``step`` what the policy is shown next: one ``<tool_response>`` a
    call, or nothing at the end.

    ## Reward
    1 at the end if the last answer of the policy's own text is right, else 0. What a tool printed earns nothing.

    ## Episode end
    A turn that holds a call, well formed or not, goes on, even if it also holds an answer. A turn without a call ends
    the episode: ``terminated``, with ``info["end"]`` ``answered`` or ``no_answer``. ``truncated``: the budget ran out
    (``turns``: the calls of the last allowed turn are not run; ``tokens``; ``time``), or our own machinery failed
    (``unavailable``: the reward means nothing, and every trainer drops the episode). Never both.

    ## Information
    The same for the same seed and actions. On ``reset``: ``problem_id``, ``tools`` (JSON schemas), ``system`` (the
    system message), ``stop`` (strings after which an engine should stop). On ``step``: ``role`` of the returned text,
    ``tool_calls`` (a list with ``name``, ``status``, ``error_type``, ``exit_code``, ``truncated``, ``injected``)
    and ``answer_tags`` so far; at the end also ``end``, ``answer``, ``correct``, ``turns``, ``tool_errors`` and
    ``tool_calls_total`` (``unavailable`` and injected ones are in neither).

    ## Version history
    v0: the first.

    Args:
        problems: A JSONL path (``question``, ``answer``, optional ``id``, ``source``), a list of dicts, or the name of
            a bundled family.
        dialect: A dialect or its name, with options or without ("rstar2:boxed_anywhere=true").
        sandbox: A provider's name, its options, or a ``Sandbox``; see ``rstar2_env.tools.PythonTool``.
        limits: What one program may use; a ``Limits`` or a dict of its fields.
        max_output: How much of a program's output the policy is shown, in characters, or in tokens with
            ``output_tokenizer``; more is cut in the middle.
        output_tokenizer: Count ``max_output`` in its tokens; a tokenizer, or the folder or hub name of one.
        traceback: Show the whole traceback of an exception; else its last line alone.
        verifier: Says whether an answer is right: ``"rules"``, ``"numeric:tolerance=0.02"``,
            ``"model:url=...,model=..."``, one's own, or a ``Verifier``; see docs/verification.md.
        verify_timeout: Seconds that comparing an answer by rules may take.
        **options: Everything that ``ToolEnv`` takes: ``split``, ``max_turns``, ``max_tokens``, ``max_seconds``, ...

    Raises:
        ConfigurationError: An option is out of its range.
    """

    tool_class: ClassVar[type[SandboxTool]] = PythonTool

    @checked
    def __init__(
        self,
        *,
        problems: Any = "arithmetic",
        sandbox: Sandbox | str | Mapping[str, Any] = "local",
        limits: Limits | Mapping[str, Any] | None = None,
        max_output: Count = 4000,
        output_tokenizer: Tokenizer | str | None = None,
        traceback: bool = True,
        verifier: VerifierSpec = "rules",
        verify_timeout: Seconds = 5.0,
        **options: Any,
    ) -> None:
        if isinstance(limits, Mapping):
            limits = call_with_options("limits", Limits, limits, prefix="limits.")
        tool = self.tool_class(
            sandbox, limits=limits, max_output=max_output, tokenizer=output_tokenizer, traceback=traceback
        )
        super().__init__(problems=problems, tools=[tool], grader=GoldGrader(verify_timeout, verifier), **options)


gym.register("rstar2/MathTool-v0", entry_point="rstar2_env.envs_registry.math_tool:MathToolEnv")
