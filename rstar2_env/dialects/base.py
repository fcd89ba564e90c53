"""The interface of dialects: how a policy writes calls and answers as text, and how results are shown to the policy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.parts import make_part
from rstar2_env.core.options.registry import Registry
from rstar2_env.tools.base import ToolCall, ToolResult, ToolSpec


@runtime_checkable
class Dialect(Protocol):
    """Parses the policy's turns and writes the texts that the policy reads."""

    @property
    def name(self) -> str:
        """Name in the registry."""
        ...

    @property
    def role(self) -> str:
        """Chat role of the text that the environment's ``step`` returns."""
        ...

    @property
    def stop(self) -> tuple[str, ...]:
        """Strings after which an engine should stop generating, in addition to the end of the turn."""
        ...

    def system(self, tools: Sequence[ToolSpec]) -> str:
        """Return the system message; an empty string if there is none."""
        ...

    def user(self, question: str) -> str:
        """Return the first user message, which contains the question."""
        ...

    def calls(self, turn: str) -> list[ToolCall]:
        """Return every call in a turn, well-formed or not, in order."""
        ...

    def results(self, results: Sequence[ToolResult]) -> str:
        """Return the text in which the policy reads the results of the calls of one turn."""
        ...

    def answer(self, turns: Sequence[str]) -> str | None:
        """Return the last answer in the policy's turns; ``None`` if there is none."""
        ...

    def answer_tags(self, turns: Sequence[str]) -> int:
        """Return the number of marked answers in the policy's turns; 0 if none of these answers is complete."""
        ...

    def format_call(self, name: str, arguments: Mapping[str, Any]) -> str:
        """Return a well-formed call, for scripted agents and for fine-tuning traces."""
        ...

    def format_answer(self, answer: str) -> str:
        """Return a well-formed answer, for scripted agents and for fine-tuning traces."""
        ...


DIALECTS: Registry[Callable[..., Dialect]] = Registry("dialect", "rstar2_env.dialects", "rstar2_env.dialects")


def make_dialect(dialect: Dialect | str, **options: Any) -> Dialect:
    """Return a dialect unchanged, or create a dialect by name.

    Args:
        dialect: A dialect, or the name of one, alone ("rstar2") or with options ("rstar2:boxed_anywhere=true"). Options
            after the name override ``**options``.
        **options: Options of the named dialect.

    Raises:
        UnknownNameError: No dialect has this name.
        ConfigurationError: ``dialect`` is neither a dialect nor a name, or an option does not fit.
    """
    if isinstance(dialect, str):
        return make_part(DIALECTS, dialect, **options)
    if not isinstance(dialect, Dialect) or isinstance(dialect, type):
        raise ConfigurationError(f"`dialect` must be the name of a dialect or a Dialect object, not {dialect!r}.")
    if options:
        raise ConfigurationError(
            f"The options {', '.join(options)} apply only to a dialect that is given by name, and this "
            "dialect is an object: omit them."
        )
    return dialect
