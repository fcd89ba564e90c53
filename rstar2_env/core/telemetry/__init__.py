"""OpenTelemetry: spans and metrics of episodes, turns, tool calls, sandboxed jobs and training steps.

``recording`` switches telemetry on according to environment variables; ``recorder`` creates all spans, with names from
``conventions``. While telemetry is off, OpenTelemetry is not imported and no object is created for a turn: each
function that opens a span returns the same constant. docs/telemetry.md lists the spans, the metrics and the variables.
"""

from rstar2_env.core.telemetry.spans import (
    OFF,
    NoSpan,
    agent_span,
    carried,
    chat_span,
    endpoint_span,
    phase_span,
    report_figures,
    report_job,
    tool_span,
)
from rstar2_env.core.telemetry.switch import recording

__all__ = [
    "OFF",
    "NoSpan",
    "agent_span",
    "carried",
    "chat_span",
    "endpoint_span",
    "phase_span",
    "recording",
    "report_figures",
    "report_job",
    "tool_span",
]
