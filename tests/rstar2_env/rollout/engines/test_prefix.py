"""What is kept is found by how it begins, and goes when it was used longest ago."""

from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st

from rstar2_env.rollout.engines.prefix import Kept, Layers, PrefixIndex, PrefixPool, key_of

Sequences = st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=6).map(tuple), max_size=12, unique=True)


def layers() -> Layers:
    return [(torch.zeros(1, 1, 1), torch.zeros(1, 1, 1))]


def common(one: tuple[int, ...], other: tuple[int, ...]) -> int:
    return next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


@given(Sequences, st.lists(st.integers(0, 2), max_size=7).map(tuple))
def test_the_longest_common_beginning_is_found(known: list[tuple[int, ...]], asked: tuple[int, ...]) -> None:
    index: PrefixIndex[tuple[int, ...]] = PrefixIndex()
    # Ids of several bytes: sequences must not be taken for alike in the middle of an id.
    spread = [1, 257, 65537]
    for ids in known:
        index.add(key_of([spread[i] for i in ids]), ids)
    found, tokens = index.best(key_of([spread[i] for i in asked]))
    assert tokens == max((common(ids, asked) for ids in known), default=0)
    if tokens:
        assert found is not None
        assert common(found, asked) == tokens
    for ids in known:
        assert index.pop(key_of([spread[i] for i in ids])) == ids
    assert len(index) == 0


@given(Sequences, st.integers(0, 12))
def test_the_pool_never_holds_more_than_its_room_nor_a_beginning_of_another(
    kept: list[tuple[int, ...]], room: int
) -> None:
    pool = PrefixPool()
    for ids in kept:
        pool.keep(key_of(ids), layers, room)
        assert pool.tokens <= room
        held = [other for other in kept if is_held(pool, other)]
        if len(ids) <= room:
            assert any(other[: len(ids)] == ids for other in held)
        assert not any(a != b and b[: len(a)] == a for a in held for b in held)
        assert sum(map(len, held)) == pool.tokens


def is_held(pool: PrefixPool, ids: tuple[int, ...]) -> bool:
    found, tokens = pool._index.best(key_of(ids))
    return isinstance(found, Kept) and found.tokens == tokens == len(ids)


def test_what_was_used_longest_ago_goes_first() -> None:
    pool = PrefixPool()
    for first in (1, 2, 3):
        pool.keep(key_of([first, 0]), layers, 6)
    pool.best(key_of([1, 9]))
    pool.keep(key_of([4, 0]), layers, 6)
    assert [is_held(pool, (first, 0)) for first in (1, 2, 3, 4)] == [True, False, True, True]


def test_nothing_is_copied_that_is_not_wanted() -> None:
    def never() -> Layers:
        raise AssertionError("copied in vain")

    pool = PrefixPool()
    pool.keep(key_of([1, 2, 3]), layers, 10)
    pool.keep(key_of([1, 2]), never, 10)
    pool.keep(key_of([5] * 11), never, 10)
    assert pool.tokens == 3
