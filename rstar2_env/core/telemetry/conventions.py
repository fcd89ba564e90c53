"""The names of spans, attributes and metrics in telemetry.

Names that begin with ``gen_ai``, ``error`` or ``server`` are those of OpenTelemetry's semantic conventions 1.41.0, the
last release that contains the conventions for generative AI (status: development). Later, these conventions moved to a
separate repository. Names that begin with ``rstar2`` are defined by this package.
"""

from __future__ import annotations

from collections.abc import Mapping

VERSION = "1.41.0"
"""Version of OpenTelemetry's semantic conventions that the names follow."""
SCHEMA_URL = f"https://opentelemetry.io/schemas/{VERSION}"

# gen_ai.operation.name
CHAT = "chat"
INVOKE_AGENT = "invoke_agent"
EXECUTE_TOOL = "execute_tool"

OPERATION = "gen_ai.operation.name"
PROVIDER = "gen_ai.provider.name"
AGENT = "gen_ai.agent.name"
MODEL = "gen_ai.request.model"
MAX_TOKENS = "gen_ai.request.max_tokens"
TEMPERATURE = "gen_ai.request.temperature"
TOP_P = "gen_ai.request.top_p"
TOP_K = "gen_ai.request.top_k"
SEED = "gen_ai.request.seed"
STOP = "gen_ai.request.stop_sequences"
FINISH = "gen_ai.response.finish_reasons"
INPUT_TOKENS = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS = "gen_ai.usage.output_tokens"
TOOL = "gen_ai.tool.name"
TOOL_TYPE = "gen_ai.tool.type"
TOOL_ARGUMENTS = "gen_ai.tool.call.arguments"
TOOL_RESULT = "gen_ai.tool.call.result"
INPUT_MESSAGES = "gen_ai.input.messages"
OUTPUT_MESSAGES = "gen_ai.output.messages"
TOKEN_TYPE = "gen_ai.token.type"
ERROR = "error.type"
ADDRESS = "server.address"
PORT = "server.port"

OPERATION_DURATION = "gen_ai.client.operation.duration"
TOKEN_USAGE = "gen_ai.client.token.usage"
UNITS: Mapping[str, str] = {OPERATION_DURATION: "s", TOKEN_USAGE: "{token}"}
"""Units of the metrics that the conventions define, by metric."""
SECONDS_BUCKETS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
"""Bucket bounds, recommended by the conventions, for histograms of seconds."""
TOKEN_BUCKETS = tuple(4**power for power in range(14))
"""Bucket bounds, recommended by the conventions, for histograms of tokens: 1, 4, 16, ... 67108864."""

ENVIRONMENT = "rstar2.environment.id"
END = "rstar2.episode.end"
CORRECT = "rstar2.episode.correct"
REWARD = "rstar2.episode.reward"
TURNS = "rstar2.episode.turns"
TOOL_CALLS = "rstar2.episode.tool_calls"
TOOL_ERRORS = "rstar2.episode.tool_errors"
GROUP = "rstar2.episode.group"
STATUS = "rstar2.tool.status"
EXCEPTION = "rstar2.tool.exception"
INJECTED = "rstar2.tool.injected"
SANDBOX = "rstar2.sandbox.provider"
STEP = "rstar2.train.step"
PHASE = "rstar2.train.phase"

EPISODES = "rstar2.rollout.episodes"
EPISODE_REWARD = "rstar2.rollout.reward"
JOB_DURATION = "rstar2.sandbox.job.duration"
PHASE_DURATION = "rstar2.train.phase.duration"
FIGURE = "rstar2.train.{}"
"""Name of the gauge of a training metric; ``{}`` stands for the metric's name, as in
``rstar2.train.rollout.pass_rate``."""

OTHER = "_OTHER"
"""Value that the conventions define for ``error.type`` if an error has no specific name."""


def unit_of(figure: str) -> str:
    """Return the unit (UCUM) of a training metric, by its name; empty for a share, a count or a mean."""
    if figure.endswith("_per_second"):
        return "{token}/s"
    group = figure.partition("/")[0]
    if group == "seconds" and not figure.partition("/")[2].startswith("share"):
        return "s"
    return "{token}" if group == "tokens" and "share" not in figure else ""
