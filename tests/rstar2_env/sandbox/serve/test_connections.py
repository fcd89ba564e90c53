"""Silent, slow or excessive connections do not block other clients; web pages in a browser are rejected."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

import pytest
from waiting import wait_for

httpx = pytest.importorskip("httpx", reason="the extra 'remote' is not installed")

PATIENCE_S = 60.0
MOST = 24


@pytest.fixture(scope="module")
def bounded(serve: Any) -> Iterator[Any]:
    options = {"preload": [], "workers": 1, "waiting": 1}
    with serve(connections=MOST, header_timeout_s=1.0, provider_options=options) as running:
        yield running


@pytest.fixture
def opened(bounded: Any) -> Iterator[Any]:
    """Open connections, which are closed after the test."""
    address = urlsplit(bounded.url)
    with contextlib.ExitStack() as stack:
        yield lambda: stack.enter_context(socket.create_connection((address.hostname, address.port), PATIENCE_S))


def ended(connection: socket.socket) -> bool:
    """Whether the other side closes the connection in any way."""
    try:
        while connection.recv(1 << 16):
            pass
    except ConnectionError:
        return True
    return True


@pytest.mark.parametrize("said", [b"", b"GET /capabilities HTTP/1.1\r\nHost: localhost\r\n"], ids=["nothing", "half"])
def test_a_header_that_does_not_come_ends_its_connection(opened: Any, said: bytes) -> None:
    connection = opened()
    connection.sendall(said)
    assert ended(connection)  # or the read would run into its timeout


def test_a_header_is_bounded_in_size(opened: Any) -> None:
    connection = opened()
    with contextlib.suppress(ConnectionError):
        for _ in range(64):
            connection.sendall(b"GET /" + b"x" * (1 << 20))
    assert ended(connection)


def test_the_next_header_on_a_connection_is_waited_for_no_longer(opened: Any) -> None:
    connection = opened()
    connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert connection.recv(12) == b"HTTP/1.1 200"
    connection.sendall(b"GET /healthz HTTP/1.1\r\n")
    assert ended(connection)


def test_connections_beyond_the_bound_are_closed_and_leave_room_when_they_end(bounded: Any, opened: Any) -> None:
    waiting = [opened() for _ in range(2 * MOST)]
    assert all(ended(connection) for connection in waiting)
    assert httpx.get(f"{bounded.url}/healthz", timeout=PATIENCE_S).status_code == 200


HALF = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"


def test_the_oldest_unfinished_request_makes_room_for_a_new_connection(serve: Any) -> None:
    options = {"preload": [], "workers": 1, "waiting": 1}
    with (
        serve(connections=MOST, header_timeout_s=3600.0, provider_options=options) as server,
        contextlib.ExitStack() as stack,
    ):
        address = urlsplit(server.url)
        place = (address.hostname, address.port)
        slow = []
        for _ in range(MOST):  # as many as there is room for, and none of them ends by itself
            slow.append(stack.enter_context(socket.create_connection(place, PATIENCE_S)))
            slow[-1].sendall(HALF)
        assert httpx.get(f"{server.url}/healthz", timeout=PATIENCE_S).status_code == 200
        assert ended(slow[0])
        slow[-1].sendall(b"\r\n")
        assert slow[-1].recv(12) == b"HTTP/1.1 200", "another connection than the oldest was closed"


def test_a_connection_with_a_request_that_runs_is_kept(serve: Any) -> None:
    options = {"preload": [], "workers": 1, "waiting": 1}
    with (
        serve(connections=MOST, header_timeout_s=3600.0, provider_options=options) as server,
        ThreadPoolExecutor(1) as pool,
        contextlib.ExitStack() as stack,
    ):
        address = urlsplit(server.url)
        call = {"calls": [{"id": "a", "code": "import time\ntime.sleep(1)\n7"}]}
        running = pool.submit(httpx.post, f"{server.url}/v1/calls", json=call, timeout=PATIENCE_S)
        wait_for(lambda: server.metric("in_flight") == 1)
        for _ in range(3 * MOST):
            made = stack.enter_context(socket.create_connection((address.hostname, address.port), PATIENCE_S))
            made.sendall(HALF)
        assert '"value":"7"' in running.result().text.replace(" ", "")


@pytest.mark.parametrize(
    ("header", "value", "status"),
    [
        ("Host", "rebound.example:8700", 403),
        ("Host", "192.0.2.1", 403),
        ("Host", "127.0.0.1", 200),
        ("Host", "localhost:1234", 200),
        ("Host", "[::1]:8700", 200),
        ("Origin", "https://page.example", 403),
        ("Origin", "null", 403),
        ("Origin", "http://localhost:3000", 200),
    ],
)
def test_without_a_token_only_this_machine_is_answered(bounded: Any, header: str, value: str, status: int) -> None:
    answer = httpx.get(f"{bounded.url}/capabilities", headers={header: value}, timeout=PATIENCE_S)
    assert answer.status_code == status
    if status == 403:
        assert value in answer.json()["error"]
