"""Variables that switch telemetry on, its cost while it is off, and runs whose collector is gone."""

from __future__ import annotations

import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from typing import Any

import pytest

pytest.importorskip("opentelemetry.sdk", reason="needs the extra otel")

from opentelemetry import metrics, trace
from otlp_receiver import otlp_receiver

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.telemetry import (
    OFF,
    agent_span,
    carried,
    chat_span,
    endpoint_span,
    phase_span,
    recording,
    switch,
    tool_span,
)
from rstar2_env.evaluation.run import evaluate


@pytest.fixture(autouse=True)
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    """The variables of this machine decide nothing."""
    for name in list(os.environ):
        if name.startswith("OTEL_") or name == switch.SWITCH:
            monkeypatch.delenv(name)


def is_on() -> bool:
    return tool_span("python") is not OFF


PLAYED = """
import sys
import rstar2_env
result = rstar2_env.evaluate("rstar2/MathTool-v0", "oracle", problems="arithmetic", episodes=1, progress=False)
assert result.figures, result
print([name for name in sys.modules if name.startswith("opentelemetry")])
"""


def test_while_it_is_off_nothing_of_it_is_imported() -> None:
    done = subprocess.run([sys.executable, "-c", PLAYED], capture_output=True, text=True, timeout=100)
    assert (done.returncode, done.stdout) == (0, "[]\n"), done.stderr


def test_while_it_is_off_no_object_is_made_for_a_turn() -> None:
    def work() -> int:
        return 1

    spans = [agent_span("a"), chat_span("m", "p", None), endpoint_span("u", {}), phase_span("step", 1), tool_span("t")]
    assert all(one is OFF for one in spans)
    with OFF as entered:
        assert entered is OFF
    assert carried(work) is work
    assert not hasattr(OFF, "__dict__")


@pytest.mark.parametrize(
    ("variables", "on"),
    [
        ({}, False),
        ({"RSTAR2_OTEL": "0", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"}, False),
        ({"RSTAR2_OTEL": "off"}, False),
        ({"RSTAR2_OTEL": "1", "OTEL_SDK_DISABLED": "true"}, False),
        ({"RSTAR2_OTEL": "1", "OTEL_TRACES_EXPORTER": "none", "OTEL_METRICS_EXPORTER": "none"}, True),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, False),
    ],
)
def test_the_variables_decide(monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], on: bool) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with recording():
        assert is_on() is on
    assert not is_on()


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"RSTAR2_OTEL": "yes please"}, "RSTAR2_OTEL must be 0, 1 or the address of a collector"),
        ({"RSTAR2_OTEL": "1", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "OTEL_EXPORTER_OTLP_PROTOCOL=grpc"),
        ({"RSTAR2_OTEL": "1", "OTEL_TRACES_EXPORTER": "zipkin"}, "OTEL_TRACES_EXPORTER=zipkin"),
    ],
)
def test_a_value_that_cannot_be_met_is_refused_by_its_name(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], words: str
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ConfigurationError, match=words), recording():
        pass


@pytest.mark.parametrize(
    ("said", "texts"),
    [("", False), ("true", True), ("SPAN_ONLY", True), ("span_and_event", True), ("NO_CONTENT", False), ("x", False)],
)
def test_texts_are_recorded_only_as_the_standard_variable_says(
    monkeypatch: pytest.MonkeyPatch, said: str, texts: bool
) -> None:
    monkeypatch.setenv(switch.CONTENT, said)
    with recording(tracers=trace.NoOpTracerProvider()), tool_span("python") as span:
        assert span.content is texts


def figures_of(result: Any) -> Any:
    return {name: value for name, value in result.to_dict().items() if name not in ("seconds", "episodes_per_second")}


def played() -> Any:
    return evaluate("rstar2/MathTool-v0", "oracle", problems="arithmetic", episodes=4, progress=False, workers=2)


def test_an_evaluation_is_sent_whole_to_a_collector(monkeypatch: pytest.MonkeyPatch) -> None:
    with otlp_receiver() as receiver:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.address)
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-team=rl")
        played()
    agents = [one for one in receiver.spans if one.name.startswith("invoke_agent")]
    assert len(agents) == 4
    assert len({one.trace_id for one in agents}) == 4
    assert {"gen_ai.client.operation.duration", "rstar2.rollout.episodes"} <= {one.name for one in receiver.metrics}
    assert receiver.schemas == {"https://opentelemetry.io/schemas/1.41.0"}
    assert receiver.resource["service.name"] == "rstar2-env"
    assert {headers["x-team"] for headers in receiver.headers} == {"rl"}


def test_a_switch_with_an_address_sends_there(monkeypatch: pytest.MonkeyPatch) -> None:
    with otlp_receiver() as receiver:
        monkeypatch.setenv("RSTAR2_OTEL", f"{receiver.address}/")
        with recording(), tool_span("python"):
            pass
    assert [one.name for one in receiver.spans] == ["execute_tool python"]


def test_a_run_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    before = trace._TRACER_PROVIDER, metrics._internal._METER_PROVIDER
    logger = logging.getLogger("opentelemetry")
    found = logger.propagate, list(logger.handlers)
    with otlp_receiver() as receiver:
        monkeypatch.setenv("RSTAR2_OTEL", receiver.address)
        for _ in range(2):
            with recording(), tool_span("python"):
                pass
    assert len(receiver.spans) == 2
    assert before == (trace._TRACER_PROVIDER, metrics._internal._METER_PROVIDER)
    assert (logger.propagate, logger.handlers) == found
    assert not [one.name for one in threading.enumerate() if one.name.startswith("Otel")]


def test_an_inner_block_leaves_the_outer_one_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    with recording(tracers=trace.NoOpTracerProvider()):
        with recording():
            assert is_on()
        assert is_on()


def dead_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def test_a_dead_collector_changes_no_figure_and_is_told_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    before = figures_of(played())
    monkeypatch.setenv("RSTAR2_OTEL", f"http://127.0.0.1:{dead_port()}")
    began = time.monotonic()
    with caplog.at_level(logging.WARNING):
        assert figures_of(played()) == before
    assert time.monotonic() - began < 60
    told = [one.getMessage() for one in caplog.records if "elemetry" in one.getMessage()]
    assert len(told) == 1
    assert told[0].startswith("Telemetry could not be sent")


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "half"}, "TRACES_SAMPLER_ARG"),
        ({"OTEL_METRIC_EXPORT_INTERVAL": "soon"}, "export interval"),
    ],
)
def test_a_variable_that_the_sdk_ignores_is_named_and_the_rest_is_sent(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, variables: dict[str, str], words: str
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with otlp_receiver() as receiver, caplog.at_level(logging.WARNING):
        monkeypatch.setenv("RSTAR2_OTEL", receiver.address)
        played()
    told = [one.getMessage() for one in caplog.records if "elemetry" in one.getMessage()]
    assert len(told) == 1
    assert told[0].startswith("OpenTelemetry could not use an environment variable: ")
    assert words in told[0]
    assert receiver.spans
    assert receiver.metrics


def test_a_collector_that_never_answers_delays_the_end_by_a_bounded_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(switch, "FLUSH_S", 0.3)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        monkeypatch.setenv("RSTAR2_OTEL", f"http://127.0.0.1:{silent.getsockname()[1]}")
        began = time.monotonic()
        with recording(), tool_span("python"):
            pass
        assert time.monotonic() - began < 8  # the exporter alone would wait 10 s


INTERRUPTED = """
import sys, time
from rstar2_env.core.telemetry import recording, tool_span
with recording():
    with tool_span("python"):
        print("ready", flush=True)
        time.sleep(60)
"""


def test_ctrl_c_sends_what_was_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    with otlp_receiver() as receiver:
        monkeypatch.setenv("RSTAR2_OTEL", receiver.address)
        with subprocess.Popen([sys.executable, "-c", INTERRUPTED], stdout=subprocess.PIPE, text=True) as program:
            assert program.stdout is not None
            assert program.stdout.readline() == "ready\n"
            program.send_signal(signal.SIGINT)
            assert program.wait(60) != 0
    (span,) = receiver.spans
    assert [one.value.string_value for one in span.attributes if one.key == "error.type"] == ["KeyboardInterrupt"]
