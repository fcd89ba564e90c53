"""The actor of a node, without Ray around it: what Ray may deliver twice, or not at all, is run once."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from rstar2_env.sandbox import Job, Limits, Outcome
from rstar2_env.sandbox.ray.keeper import Cancel, EndSession, Keeper, Run

SLEEP = Job("import time\ntime.sleep(30)", limits=Limits(wall_s=30))


def with_keeper(use: Any, **options: Any) -> Any:
    async def go() -> Any:
        keeper = Keeper({"workers": 1, "preload": (), **options})
        start = await keeper.start()
        assert start.error is None, start
        try:
            return await use(keeper)
        finally:
            await keeper.stop()

    return asyncio.run(go())


async def gather(keeper: Keeper, count: int) -> dict[int, Outcome]:
    """Collect so many outcomes, with receipts."""
    found: dict[int, Outcome] = {}
    last: list[int] = []
    while len(found) < count:
        outcomes = await keeper.collect(last)
        last = [number for number, _ in outcomes]
        found.update(outcomes)
    return found


def test_orders_that_come_twice_are_carried_out_once() -> None:
    async def use(keeper: Keeper) -> dict[int, Outcome]:
        await keeper.obey(1, [Run(1, Job("print(1)"))])
        found = await gather(keeper, 1)
        await keeper.collect(list(found))
        await keeper.obey(1, [Run(1, Job("print(1)"))])
        await keeper.obey(2, [Run(2, Job("print(2)"))])
        return await gather(keeper, 1)

    found = with_keeper(use)
    assert {number: outcome.stdout for number, outcome in found.items()} == {2: "2\n"}


def test_an_outcome_is_there_until_its_receipt_comes() -> None:
    async def use(keeper: Keeper) -> list[list[int]]:
        await keeper.obey(1, [Run(1, Job("1"))])
        lists = [await keeper.collect([]), await keeper.collect([]), await keeper.collect([1])]
        return [[number for number, _ in found] for found in lists]

    assert with_keeper(use) == [[1], [1], []]


def test_a_quick_call_does_not_wait_for_a_slow_one_of_its_batch() -> None:
    async def use(keeper: Keeper) -> list[int]:
        await keeper.obey(1, [Run(1, SLEEP), Run(2, Job("2"))])
        found = await gather(keeper, 1)
        await keeper.obey(2, [Cancel(1)])
        return list(found)

    assert with_keeper(use, workers=2) == [2]


def test_a_cancelled_call_ends_and_its_place_is_free() -> None:
    async def use(keeper: Keeper) -> list[int]:
        await keeper.obey(1, [Run(1, SLEEP)])
        await asyncio.sleep(0.2)
        await keeper.obey(2, [Run(2, Job("2")), Cancel(1)])
        return list(await asyncio.wait_for(gather(keeper, 1), 20))

    assert with_keeper(use) == [2]


def test_orders_are_carried_out_in_their_order() -> None:
    async def use(keeper: Keeper) -> list[str | None]:
        cell = Job("'x' in globals()", session="s")
        await keeper.obey(1, [Run(1, Job("x = 1", session="s")), Run(2, cell), EndSession("s"), Run(3, cell)])
        found = await gather(keeper, 3)
        return [found[call].session for call in (1, 2, 3)]

    # The end of a session ends the cells that it has not run yet, too.
    assert with_keeper(use)[2] == "new"


@pytest.mark.parametrize(
    ("options", "mistaken", "says"),
    [
        ({"without": ("net", "seccomp")}, False, "no network"),
        ({"readable": ("/no/such/folder",)}, True, "does not exist"),
    ],
)
def test_a_start_that_fails_is_an_answer(options: dict[str, Any], mistaken: bool, says: str) -> None:
    start = asyncio.run(Keeper({"workers": 1, "preload": (), **options}).start())
    assert start.mistaken is mistaken
    assert says in str(start.error)
