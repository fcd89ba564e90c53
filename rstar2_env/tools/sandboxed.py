"""Common base class of the tools that run Python: it opens a sandbox, and converts programs' outcomes to results.

Not covered: the text of an outcome (``outcome_text``), and how a call runs (``python``: in a new process for each call;
``notebook``: in one session for each episode).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from rstar2_env.core.options.declare import Count, checked
from rstar2_env.sandbox.job import Outcome, Sandbox
from rstar2_env.sandbox.limits import Limits
from rstar2_env.sandbox.packages import declared, installed
from rstar2_env.tools.base import CallContext, ToolResult, ToolSpec
from rstar2_env.tools.cut import Tokenizer, cut_middle, make_tokenizer
from rstar2_env.tools.outcome_text import outcome_text


class SandboxTool(ABC):
    """Base of the tools that run the policy's Python.

    Args:
        sandbox: Where the programs run: a ``Sandbox``, the name of a provider ("local"), or a provider's options with
            its name under ``"provider"``. With a name or options, the tool uses a sandbox that all users of the
            same options in this process share; the first call starts the sandbox, and ``close`` releases it.
        limits: Resource limits of each program.
        max_output: Maximum length of the output that the policy is shown, in characters; longer output is cut in the
            middle.
        tokenizer: Tokenizer that counts ``max_output`` in tokens instead of in characters, or its folder or Hub name.
        traceback: Whether to show the traceback of an exception, or only its type and message.

    Attributes:
        schema: The tool's schema, without the packages that programs may import, which ``spec`` adds.
        noun: The word for the policy's code in messages, such as "program".

    Raises:
        ConfigurationError: ``max_output`` is not a positive integer.
    """

    schema: ClassVar[ToolSpec]
    noun: ClassVar[str]

    @checked
    def __init__(
        self,
        sandbox: Sandbox | str | Mapping[str, Any] = "local",
        *,
        limits: Limits | None = None,
        max_output: Count = 4000,
        tokenizer: Tokenizer | str | None = None,
        traceback: bool = True,
    ) -> None:
        self._choice = sandbox
        self._sandbox: Sandbox | None = None
        self._spec: ToolSpec | None = None
        self._limits = limits or Limits()
        self._max_output = max_output
        self._tokenizer = make_tokenizer(tokenizer)
        self._traceback = traceback

    @property
    def spec(self) -> ToolSpec:
        """The tool's schema; its description names the packages that programs may import."""
        if self._spec is None:
            self._spec = replace(self.schema, description=f"{self.schema.description} {_packages_of(self._choice)}")
        return self._spec

    @property
    def limits(self) -> Limits:
        """Resource limits of one program."""
        return self._limits

    @abstractmethod
    def call(self, arguments: Mapping[str, Any], context: CallContext) -> ToolResult:
        """Run one call whose arguments fit the schema."""

    def close(self) -> None:
        """Release a shared sandbox; a sandbox that was passed as an object stays open."""
        if self._sandbox is not None and self._sandbox is not self._choice:
            self._sandbox.close()
        self._sandbox = None

    def __getstate__(self) -> dict[str, Any]:
        """Pickle without the running sandbox: the copy acquires a sandbox of its own."""
        return {**self.__dict__, "_sandbox": None}

    def _open(self) -> Sandbox:
        if self._sandbox is None:
            if isinstance(self._choice, Sandbox):
                self._sandbox = self._choice
            else:
                from rstar2_env.sandbox import shared_sandbox

                options = {"provider": self._choice} if isinstance(self._choice, str) else dict(self._choice)
                self._sandbox = shared_sandbox(**options)
        return self._sandbox

    def _result(self, outcome: Outcome, note: str = "") -> ToolResult:
        """Convert an outcome to a result; its text is the output, cut to ``max_output``, and then the complete note."""
        text, left_out = cut_middle(
            outcome_text(outcome, noun=self.noun, limits=self._limits, traceback=self._traceback),
            self._max_output,
            tokenizer=self._tokenizer,
        )
        if note:
            text = f"{text.rstrip()}\n{note}".lstrip()
        return ToolResult(
            name=self.spec.name,
            status=outcome.status,
            text=text,
            error_type=outcome.error_type or (str(outcome.status) if outcome.status.is_error else None),
            exit_code=outcome.exit_code,
            truncated=outcome.truncated or left_out > 0,
            wall_s=outcome.wall_s,
            session=outcome.session,
        )


def call_seed(context: CallContext) -> int:
    """Return the seed of a call's random states: different for every call, and the same when the call is replayed."""
    return int(np.random.SeedSequence([context.seed, context.number]).generate_state(1, np.uint64)[0])


def _packages_of(choice: Sandbox | str | Mapping[str, Any]) -> str:
    """Return the sentence in the tool's description that lists the packages that the sandbox declares."""
    names = declared(choice)
    if names is None:
        return "NumPy and SymPy are installed."
    found = installed(names)
    return f"Installed packages: {', '.join(found)}." if found else "There is the standard library, and no package."
