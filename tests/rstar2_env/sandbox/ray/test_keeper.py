"""The actor of a node, without Ray: it serves its sandbox on its address, or reports why it does not start."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest

from rstar2_env.sandbox.ray.keeper import Keeper

TOKEN = "of-these-tests"
OPTIONS = {"workers": 1, "preload": ()}


def keeper(**options: Any) -> Keeper:
    return Keeper("127.0.0.1", {**OPTIONS, **options}, TOKEN, 30.0)


def test_it_serves_its_sandbox_to_whoever_has_the_token_until_it_is_stopped() -> None:
    async def go() -> list[int]:
        held = keeper()
        start = await held.start()
        assert start.error is None
        known = {"Authorization": f"Bearer {TOKEN}"}
        async with httpx.AsyncClient(trust_env=False) as http:
            seen = [(await http.get(f"{start.url}/capabilities", headers=head)).status_code for head in ({}, known)]
            said = (await http.get(f"{start.url}/capabilities", headers=known)).json()
            await held.stop()
            with pytest.raises(httpx.ConnectError):
                await http.get(f"{start.url}/capabilities", headers=known)
        assert said["slots"] == 1
        return seen

    assert asyncio.run(go()) == [401, 200]


def test_it_lowers_no_limit_that_a_job_may_have() -> None:
    async def go() -> dict[str, Any]:
        held = keeper()
        start = await held.start()
        call = {"id": "1", "code": "1", "limits": {"wall_s": 100_000.0, "memory_mb": 1 << 20, "output_bytes": 1 << 29}}
        async with httpx.AsyncClient(trust_env=False, headers={"Authorization": f"Bearer {TOKEN}"}) as http:
            answer = await http.post(f"{start.url}/v1/calls", json={"calls": [call]})
        await held.stop()
        return answer.json()

    said = asyncio.run(go())
    assert "cut" not in said
    assert said["outcome"]["status"] == "ok"


@pytest.mark.parametrize(
    ("options", "mistaken", "says"),
    [
        ({"without": ("net", "seccomp")}, False, "no network"),
        ({"readable": ("/no/such/folder",)}, True, "does not exist"),
    ],
)
def test_a_start_that_fails_is_an_answer(options: dict[str, Any], mistaken: bool, says: str) -> None:
    start = asyncio.run(keeper(**options).start())
    assert start.mistaken is mistaken
    assert says in str(start.error)
