"""The spans of an evaluation arrive at a server of another project that receives OTLP: Arize Phoenix, on loopback."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from waiting import wait_for

from rstar2_env.dialects import make_dialect
from rstar2_env.evaluation.run import evaluate

DIALECT = make_dialect("rstar2")
TOOL = "execute_python_code_with_standard_io"
TURNS = [
    DIALECT.format_call(TOOL, {"code": "print(1 / 0)", "input": ""}),
    DIALECT.format_call(TOOL, {"code": "print(42)", "input": ""}),
    DIALECT.format_answer("42"),
]
QUERY = """{ projects { edges { node { spans(first: 1000) { edges { node {
    name statusCode spanId parentId attributes context { traceId }
} } } } } } }"""


def free_ports(count: int) -> list[int]:
    """Ports that are free at the same time."""
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in held]
    for one in held:
        one.close()
    return ports


class Phoenix:
    """A server of its own, with an empty database."""

    def __init__(self, folder: Path) -> None:
        http, grpc = free_ports(2)
        self.address = f"http://127.0.0.1:{http}"
        given = {
            "PHOENIX_HOST": "127.0.0.1",
            "PHOENIX_PORT": str(http),
            "PHOENIX_GRPC_PORT": str(grpc),
            "PHOENIX_WORKING_DIR": str(folder),
            "PHOENIX_TELEMETRY_ENABLED": "false",
            "PHOENIX_ALLOW_EXTERNAL_RESOURCES": "false",
        }
        self.log = folder / "log.txt"
        with self.log.open("w") as log:
            words = [str(Path(sys.executable).parent / "phoenix"), "serve"]
            self.process = subprocess.Popen(words, env={**os.environ, **given}, stdout=log, stderr=subprocess.STDOUT)

    def answers(self) -> bool:
        """Whether it accepts connections.

        Raises:
            AssertionError: It has ended.
        """
        assert self.process.poll() is None, self.log.read_text()
        try:
            urllib.request.urlopen(f"{self.address}/healthz", timeout=5).close()
        except OSError:
            return False
        return True

    def spans(self) -> list[dict[str, Any]]:
        """All spans that it has stored, with their attributes as nested objects."""
        request = urllib.request.Request(
            f"{self.address}/graphql", json.dumps({"query": QUERY}).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            projects = json.load(answer)["data"]["projects"]["edges"]
        found = [edge["node"] for project in projects for edge in project["node"]["spans"]["edges"]]
        return [{**span, "attributes": json.loads(span["attributes"])} for span in found]


@pytest.fixture(scope="module")
def received(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[dict[str, Any]]]:
    """The spans of two episodes, each with a call that fails and one that works."""
    server = Phoenix(tmp_path_factory.mktemp("phoenix"))
    try:
        wait_for(server.answers, 240)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("RSTAR2_OTEL", server.address)
            patch.setenv("OTEL_METRICS_EXPORTER", "none")
            problems = [{"id": "p", "question": "What is 40 + 2?", "answer": "42"}]
            evaluate(
                "rstar2/MathTool-v0",
                "scripted",
                env_options={"problems": problems},
                agent_options={"turns": TURNS},
                episodes=2,
                workers=1,
                progress=False,
            )
        wait_for(lambda: len(server.spans()) >= 6)
        yield server.spans()
    finally:
        server.process.terminate()
        server.process.wait(60)


def test_each_episode_is_an_agent_with_its_tool_calls_in_one_trace(received: list[dict[str, Any]]) -> None:
    agents = {span["spanId"]: span for span in received if span["parentId"] is None}
    calls = [span for span in received if span["parentId"] is not None]
    assert [span["name"] for span in agents.values()] == ["invoke_agent Scripted"] * 2
    assert [span["name"] for span in calls] == [f"execute_tool {TOOL}"] * 4
    assert sorted(span["parentId"] for span in calls) == sorted([*agents, *agents])
    assert all(span["context"] == agents[span["parentId"]]["context"] for span in calls)


def test_a_call_that_fails_is_an_error_with_its_type(received: list[dict[str, Any]]) -> None:
    calls = [span for span in received if span["parentId"] is not None]
    failed = [span for span in calls if span["statusCode"] == "ERROR"]
    assert len(failed) == 2
    assert [span["attributes"]["error"]["type"] for span in failed] == ["exception"] * 2
    assert [span["attributes"]["rstar2"]["tool"]["exception"] for span in failed] == ["ZeroDivisionError"] * 2


def test_the_server_reads_the_conventions_for_generative_ai(received: list[dict[str, Any]]) -> None:
    kinds = {
        (span["attributes"]["gen_ai"]["operation"]["name"], span["attributes"]["openinference"]["span"]["kind"])
        for span in received
    }
    assert kinds == {("invoke_agent", "AGENT"), ("execute_tool", "TOOL")}
