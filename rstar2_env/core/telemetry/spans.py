"""Functions that open spans and report metrics; while telemetry is off, each function returns immediately.

Not covered: how spans are made (``recorder``) and sent (``switch``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextvars import copy_context
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar

from rstar2_env.core.episode import Episode
from rstar2_env.core.status import ToolStatus

T = TypeVar("T")


class NoSpan:
    """The span of every operation while telemetry is off: its methods do nothing. ``OFF`` is the only instance.

    Attributes:
        on: Whether the span is recorded; if not, a caller can skip computing its attributes.
        content: Whether texts of prompts, turns and tools are recorded.
    """

    __slots__ = ()
    on = False
    content = False

    def __enter__(self) -> Self:
        """Open the span."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the span; an exception in the ``with`` block marks the span as failed."""

    def fail(self, error_type: str) -> None:
        """Mark the operation as failed.

        Args:
            error_type: The kind of failure, from a small set of names.
        """

    def episode(self, episode: Episode) -> None:
        """Add the outcome of an episode."""

    def generation(self, prompt_tokens: int | None, completion_tokens: int | None, finish: str) -> None:
        """Add the numbers of tokens in a turn's prompt and in its text (``None`` if unknown), and its finish reason."""

    def texts(self, messages: Iterable[tuple[str, str]], text: str, finish: str) -> None:
        """Add a turn, and the conversation before it (roles and texts); call this only if ``self.content`` is true."""

    def tool_result(
        self, status: ToolStatus, error_type: str | None, injected: bool, arguments: Mapping[str, Any], text: str
    ) -> None:
        """Add the outcome of a tool call; its arguments and text are recorded only if ``self.content`` is true."""


OFF = NoSpan()
"""The span that every function of this module returns while telemetry is off."""


class Records(Protocol):
    """Interface of an object that creates spans and metrics (``recorder.Recorder``).

    The functions of this module call its methods.
    """

    def agent(self, agent: str, model: str, provider: str) -> NoSpan: ...  # noqa: D102
    def turn(self, model: str, provider: str, params: Any) -> NoSpan: ...  # noqa: D102
    def request(self, url: str, fields: Mapping[str, Any]) -> NoSpan: ...  # noqa: D102
    def tool(self, name: str) -> NoSpan: ...  # noqa: D102
    def phase(self, name: str, step: int | None) -> NoSpan: ...  # noqa: D102
    def job(self, provider: str, status: ToolStatus, wall_s: float) -> None: ...  # noqa: D102
    def figures(self, step: int, figures: Mapping[str, float]) -> None: ...  # noqa: D102


_recorder: Records | None = None


def use(recorder: Records | None) -> None:
    """From now on, create all spans and metrics with ``recorder``, in every thread; ``None`` turns telemetry off."""
    global _recorder
    _recorder = recorder


def is_recording() -> bool:
    """Whether telemetry is on, so that spans and metrics are recorded."""
    return _recorder is not None


def agent_span(agent: str, model: str = "", provider: str = "") -> NoSpan:
    """Open the span ``invoke_agent`` of one episode.

    Args:
        agent: Name of the agent.
        model: Name of the model, if one plays.
        provider: Name of the engine that serves the model.
    """
    return OFF if _recorder is None else _recorder.agent(agent, model, provider)


def chat_span(model: str, provider: str, params: Any) -> NoSpan:
    """Open the span ``chat`` of one turn that an engine generates.

    Args:
        model: Name of the model.
        provider: Name of the engine.
        params: The ``SamplingParams`` of the request.
    """
    return OFF if _recorder is None else _recorder.turn(model, provider, params)


def endpoint_span(url: str, fields: Mapping[str, Any]) -> NoSpan:
    """Open the span ``chat`` of one request to an OpenAI-compatible endpoint.

    Args:
        url: Address of the request.
        fields: Fields of the request, such as ``model`` and ``temperature``.
    """
    return OFF if _recorder is None else _recorder.request(url, fields)


def tool_span(name: str) -> NoSpan:
    """Open the span ``execute_tool`` of one tool call.

    Args:
        name: Name of the tool; empty if the call names no tool of the environment.
    """
    return OFF if _recorder is None else _recorder.tool(name)


def phase_span(name: str, step: int | None = None) -> NoSpan:
    """Open the span of one phase of training.

    Args:
        name: ``step``, ``collect``, ``rollout``, ``reward``, ``select``, ``advantage``, ``update`` or ``evaluate``.
        step: Number of the step, from 1, if the phase belongs to one.
    """
    return OFF if _recorder is None else _recorder.phase(name, step)


def report_job(provider: str, status: ToolStatus, wall_s: float) -> None:
    """Count one job of a sandbox, with its status and duration.

    Args:
        provider: Class name of the sandbox.
        status: Status of the job.
        wall_s: Wall-clock seconds from the start of the job's program to its end.
    """
    if _recorder is not None:
        _recorder.job(provider, status, wall_s)


def report_figures(step: int, figures: Mapping[str, float]) -> None:
    """Report the metrics of a training step, by name."""
    if _recorder is not None:
        _recorder.figures(step, figures)


def carried(function: Callable[[], T]) -> Callable[[], T]:
    """Wrap a function so that spans that it opens, in any thread, become children of the present current span."""
    if _recorder is None:
        return function
    context = copy_context()
    return lambda: context.run(function)
