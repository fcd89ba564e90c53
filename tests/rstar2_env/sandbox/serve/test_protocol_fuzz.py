"""The server answers any request with a reason or with outcomes, never with an internal error.

The requests are valid ones with a changed, removed or added value, and arbitrary bytes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

httpx = pytest.importorskip("httpx", reason="the extra 'remote' is not installed")

pytestmark = pytest.mark.deadlines

CALL = {
    "id": "a",
    "code": "print(input())",
    "stdin": "1\n",
    "seed": 3,
    "session": None,
    "files": [["f", "AAAA"]],
    "limits": {"wall_s": 2.0, "cpu_s": 2.0, "memory_mb": 256, "processes": 8, "output_bytes": 1000, "file_mb": 8},
}
PROGRAM = {"type": "python", "solution": "print(input())", "input": "1", "expected_output": "1"}
VALID: dict[str, Any] = {
    "/v1/calls": {"calls": [CALL, {"code": "1"}]},
    "/v1/cancel": {"ids": ["a", "b"]},
    "/v1/sessions/end": {"sessions": ["s"]},
    "/run": PROGRAM,
    "/judge": PROGRAM,
    "/run/batch": {"type": "batch", "submissions": [PROGRAM, PROGRAM]},
    "/judge/batch": {"type": "batch", "submissions": [PROGRAM]},
}
ANSWERS = {200, 204, 400, 404, 405, 409, 413, 415, 422, 429}
"""What a server says that understood a request, or says why it did not."""

NUMBERS = st.one_of(st.integers(), st.floats(), st.sampled_from([-1, 0, 0.5, 100.5, 1 << 40, 10**400, 1e308, True]))
TEXTS = st.one_of(
    st.text(st.characters(), max_size=20), st.sampled_from(["", "\ud800", "\0", "a" * 300, "../x", "NaN"])
)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)


@st.composite
def changed(draw: st.DrawFn, value: Any) -> Any:
    """A value with one change, removal or addition."""
    if isinstance(value, dict) and value and draw(st.integers(0, 3)):
        name = draw(st.sampled_from(sorted(value)))
        match draw(st.sampled_from(["into", "into", "into", "leave out", "add"])):
            case "into":
                return {**value, name: draw(changed(value[name]))}
            case "leave out":
                return {key: one for key, one in value.items() if key != name}
            case _:
                return {**value, draw(TEXTS): draw(VALUES)}
    if isinstance(value, list) and value and draw(st.integers(0, 3)):
        place = draw(st.integers(0, len(value) - 1))
        return [*value[:place], draw(changed(value[place])), *value[place + 1 :]]
    return draw(VALUES)


@pytest.fixture(scope="module")
def client(serve: Any) -> Iterator[Any]:
    """Client of a separate server for this module."""
    with (
        serve(max_request_mb=0.2, provider_options={"preload": [], "workers": 1, "waiting": 1}) as running,
        httpx.Client(base_url=running.url, timeout=400) as asking,
    ):
        yield asking


def post(client: Any, path: str, body: bytes, kind: str = "application/json") -> Any:
    return client.post(path, content=body, headers={"Content-Type": kind})


def holds_up(client: Any) -> None:
    """Check that a valid call gets its outcome, and that nothing waits."""
    answer = post(client, "/v1/calls", json.dumps({"calls": [{"id": "honest", "code": "6 * 7"}]}).encode())
    said = [json.loads(line) for line in answer.text.splitlines() if line]
    assert [one["outcome"]["value"] for one in said] == ["42"], said
    assert client.get("/healthz").json()["status"] == "ok"


class TestAnyRequest:
    @settings(max_examples=150)
    @given(data=st.data())
    def test_is_answered(self, client: Any, data: st.DataObject) -> None:
        path = data.draw(st.sampled_from(sorted(VALID)))
        body = data.draw(changed(VALID[path]))
        # Each call anew: one that is known is not run again.
        answer = post(client, path, json.dumps(body).encode())
        assert answer.status_code in ANSWERS, (path, body, answer.text)
        if path == "/v1/calls" and answer.status_code == 200:
            said = [json.loads(line) for line in answer.text.splitlines() if line]
            assert len(said) == len({one["id"] for one in said})
            assert all(("outcome" in one) + ("error" in one) + ("refused" in one) == 1 for one in said)
        elif answer.status_code in (400, 413, 415, 422):
            assert answer.json()

    @settings(max_examples=60)
    @given(
        path=st.sampled_from([*sorted(VALID) * 2, "/healthz", "/metrics", "/capabilities", "/", "/v1"]),
        method=st.sampled_from(["POST"] * 6 + ["GET", "PUT", "DELETE", "OPTIONS", "HEAD"]),
        body=st.one_of(st.binary(max_size=200), st.just(b"[" * 100_000), st.just(b'{"calls": NaN}')),
        kind=st.sampled_from(["application/json"] * 4 + ["text/plain", "", "application/json; charset=utf-16"]),
    )
    def test_that_is_no_request_is_answered_too(
        self, client: Any, path: str, method: str, body: bytes, kind: str
    ) -> None:
        answer = client.request(method, path, content=body, headers={"Content-Type": kind})
        assert answer.status_code in ANSWERS, (method, path, body[:50], answer.text)

    def test_and_the_server_holds_up(self, client: Any) -> None:
        holds_up(client)
        page = client.get("/metrics").text
        assert "rstar2_sandbox_queue_depth 0.0" in page, page[:2000]
