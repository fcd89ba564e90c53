"""The values of a request are counted without parsing it, too many are refused, and other requests run meanwhile."""

from __future__ import annotations

import asyncio
import json
import urllib.error
import urllib.request
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rstar2_env.sandbox.serve import body
from rstar2_env.sandbox.serve.body import LEAST_VALUES, VALUES_PER_CALL, count_values

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(alphabet='a"\\,[]{}:\né'),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(alphabet='b"\\,{['), inner),
    max_leaves=30,
)


def values_of(found: Any) -> int:
    """Values that a parser makes."""
    inner = found.values() if isinstance(found, dict) else found if isinstance(found, list) else ()
    return 1 + sum(map(values_of, inner))


def containers_of(found: Any) -> int:
    inner = found.values() if isinstance(found, dict) else found if isinstance(found, list) else ()
    return isinstance(found, (dict, list)) + sum(map(containers_of, inner))


@settings(deadline=None)
@given(JSON, st.booleans(), st.integers(1, 12))
def test_values_are_counted_outside_of_strings(found: Any, ascii_only: bool, step: int) -> None:
    text = json.dumps(found, ensure_ascii=ascii_only).encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(body, "_STEP", step)
        count = asyncio.run(count_values(text, 1 << 30))
    assert values_of(found) <= count <= values_of(found) + containers_of(found)


@pytest.mark.parametrize("text", [b'"', b'"\\', b'"\\"', b"\\", b'"\\\\"', b"\xff\xfe", b'{"a'])
def test_any_bytes_are_counted(text: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(body, "_STEP", 1)
    assert asyncio.run(count_values(text, 100)) <= 2


def test_counting_ends_at_the_limit_and_lets_others_run() -> None:
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async def both(text: bytes, most: int) -> int:
        beside = asyncio.create_task(others())
        try:
            return await count_values(text, most)
        finally:
            beside.cancel()

    text = b'["' + b"x" * (2 << 20) + b'"]'
    assert asyncio.run(both(text, 10)) == 2
    assert turns >= 60  # in 64 steps
    turns = 0
    assert asyncio.run(both(b"[" + b"{}," * (1 << 20), 1000)) > 1000
    assert turns <= 2


def answer_of(url: str, text: str) -> str:
    """Post a JSON text, and return the body of the answer, whatever its status."""
    request = urllib.request.Request(url, text.encode(), {"Content-Type": "application/json"}, method="POST")
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return str(answer.read().decode())
    except urllib.error.HTTPError as error:
        return error.read().decode()


@pytest.mark.parametrize("path", ["/v1/calls", "/v1/cancel", "/run/batch"])
def test_a_request_of_too_many_values_is_refused(serve: Any, path: str) -> None:
    max_calls = 2 * LEAST_VALUES // VALUES_PER_CALL
    most = max_calls * VALUES_PER_CALL
    with serve(max_calls=max_calls, provider="failing") as running:
        for count, refused in ((most - 20, False), (most + 20, True)):
            calls = ",".join(['"{,["'] * count)
            text = f'{{"calls": [{calls}], "ids": [], "submissions": [{{}}]}}'
            told = answer_of(running.url + path, text)
            assert ("JSON values" in told) is refused, told


def test_a_service_of_few_calls_reads_a_request_of_many_values(serve: Any) -> None:
    with serve(max_calls=1, provider="failing") as running:
        for count, refused in ((LEAST_VALUES - 20, False), (LEAST_VALUES + 20, True)):
            text = f'{{"ids": [{",".join(["7"] * count)}], "x": "{"y" * LEAST_VALUES}"}}'
            told = answer_of(f"{running.url}/v1/cancel", text)
            assert ("JSON values" in told) is refused, told


def test_a_number_of_many_digits_is_refused(server: Any) -> None:
    text = '{"ids": [], "x": ' + "9" * 401 + "}"
    assert "401 digits" in answer_of(f"{server.url}/v1/cancel", text)
