"""A page of others in a browser reaches no environment, neither by HTTP nor by a websocket; programs do."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from rstar2_env.adapters.base.own_pages import OwnPages

OWN = {"host": "127.0.0.1:8000"}


def answered(kind: str, headers: dict[str, str], *, loopback: bool = True) -> bool:
    """Whether a request reaches the application."""
    reached, sent = [], []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        reached.append(scope["type"])

    async def receive() -> Any:
        return {"type": "websocket.connect"} if kind == "websocket" else {"type": "http.request", "body": b""}

    async def send(message: Any) -> None:
        sent.append(message)

    pairs = [(name.encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": kind, "method": "GET", "path": "/ws", "headers": pairs, "query_string": b""}
    asyncio.run(OwnPages(app, loopback=loopback)(scope, receive, send))
    if not reached:
        first = sent[0]
        assert first.get("status") == 403 or (first["type"], first["code"]) == ("websocket.close", 1008)
    return bool(reached)


@pytest.mark.parametrize("kind", ["http", "websocket"])
@pytest.mark.parametrize(
    ("headers", "loopback", "wanted"),
    [
        (OWN, True, True),
        ({**OWN, "origin": "http://localhost:8000"}, True, True),
        ({**OWN, "origin": "https://example.invalid"}, True, False),
        ({**OWN, "origin": "null"}, True, False),
        ({"host": "example.invalid:8000"}, True, False),
        ({"host": "node7:8000"}, False, True),
        ({"host": "node7:8000", "origin": "http://node7:8000"}, False, True),
        ({"host": "node7:8000", "origin": "https://example.invalid"}, False, False),
    ],
)
def test_only_pages_of_the_server_itself_are_answered(
    kind: str, headers: dict[str, str], loopback: bool, wanted: bool
) -> None:
    assert answered(kind, headers, loopback=loopback) is wanted


def test_the_life_of_the_server_is_not_a_request() -> None:
    assert answered("lifespan", {"host": "example.invalid"})
