"""Start of the server as a command, and its shutdown."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from rstar2_env.core.status import ToolStatus
from rstar2_env.sandbox import Job, Limits, make_sandbox

httpx = pytest.importorskip("httpx", reason="the extra 'remote' is not installed")

COMMAND = [sys.executable, "-c", "from rstar2_env.cli import main; main()", "sandbox", "serve"]
SMALL = {"preload": [], "workers": 1, "waiting": 1}


def sleeping(seconds: float) -> dict[str, Any]:
    return {"code": f"import time\ntime.sleep({seconds})\nprint('slept')", "limits": {"wall_s": 30.0}}


def lines(answer: Any) -> list[dict[str, Any]]:
    return [json.loads(line) for line in answer.text.splitlines() if line]


@pytest.mark.slow
def test_it_stops_in_order(serve: Any, look: Any) -> None:
    with serve(in_flight=1, provider_options=SMALL) as server, ThreadPoolExecutor(1) as pool:
        calls = [{"id": "runs", **sleeping(2)}, {"id": "waits", **sleeping(2)}]
        batch = pool.submit(httpx.post, server.url + "/v1/calls", json={"calls": calls}, timeout=60)
        look.wait_for(lambda: server.metric("in_flight") == 1)
        server.process.send_signal(signal.SIGTERM)
        found = {line["id"]: line for line in lines(batch.result())}
        assert found["runs"]["outcome"]["stdout"] == "slept\n"
        assert found["waits"]["refused"] == "stopping"
        assert server.process.wait(30) == 0
        with pytest.raises(httpx.ConnectError):
            httpx.get(server.url + "/healthz")


@pytest.mark.slow
def test_a_client_that_keeps_asking_does_not_keep_it_from_stopping(serve: Any, look: Any) -> None:
    with serve(provider_options=SMALL) as server, httpx.Client() as client, ThreadPoolExecutor(1) as pool:
        client.get(server.url + "/healthz")
        batch = pool.submit(httpx.post, server.url + "/v1/calls", json={"calls": [sleeping(2)]}, timeout=60)
        look.wait_for(lambda: server.metric("in_flight") == 1)
        with client.stream("POST", server.url + "/v1/calls", json={"calls": [sleeping(2)]}, timeout=60) as kept:
            server.process.send_signal(signal.SIGTERM)
            kept.read()
        batch.result()
        with contextlib.suppress(httpx.HTTPError):
            while True:
                client.get(server.url + "/capabilities")
                time.sleep(0.1)
        assert server.process.wait(20) == 0  # and not after the half minute that requests in flight may take


def test_stopping_is_bounded_and_ends_every_program(serve: Any, look: Any) -> None:
    with serve(drain_timeout_s=0.5, provider_options=SMALL) as server, ThreadPoolExecutor(1) as pool:
        batch = pool.submit(httpx.post, server.url + "/v1/calls", json={"calls": [sleeping(25)]}, timeout=60)
        look.wait_for(lambda: server.metric("in_flight") == 1)
        below = look.descendants(server.process.pid)
        server.process.send_signal(signal.SIGTERM)
        assert lines(batch.result())[0]["outcome"]["status"] == "unavailable"
        assert server.process.wait(30) == 0
        look.wait_for(lambda: not any(look.alive(pid) for pid in below))


def test_a_killed_server_leaves_no_process(serve: Any, look: Any) -> None:
    with serve(provider_options=SMALL) as server:
        below = look.descendants(server.process.pid)
        assert below
        server.process.kill()
        look.wait_for(lambda: not any(look.alive(pid) for pid in below))


def test_a_port_that_is_taken_is_told(server: Any) -> None:
    port = server.url.rpartition(":")[2]
    command = [*COMMAND, "--port", port]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert f"cannot listen on 127.0.0.1:{port}" in done.stderr


def test_the_command_serves_with_its_options(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("correct-horse-battery")
    words = ["--port", "0", "--workers", "1", "--max-timeout", "3", "--set", 'preload=["json"]']
    words += ["--token-file", str(tmp_path / "token")]
    command = [*COMMAND, *words]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            url = process.stderr.readline().split()[-1]
            limits = Limits(wall_s=3)
            with make_sandbox("remote", url=url, token="correct-horse-battery", limits=limits) as sandbox:
                outcome = sandbox.run(Job("1 + 1", limits=limits))
            assert (outcome.status, outcome.value) == (ToolStatus.OK, "2")
        finally:
            process.terminate()
        process.stderr.read()
        assert process.wait(30) == 0


def test_the_command_refuses_before_it_listens() -> None:
    command = [*COMMAND, "--host", "0.0.0.0", "--port", "0"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert "--token-file" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_certificate_that_is_none_is_told(tmp_path: Path) -> None:
    (tmp_path / "cert").write_text("no certificate")
    command = [*COMMAND, "--port", "0", "--tls-cert", str(tmp_path / "cert"), "--tls-key", str(tmp_path / "none")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert "certificate or its private key cannot be used" in done.stderr
