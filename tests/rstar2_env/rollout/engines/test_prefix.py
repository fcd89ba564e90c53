"""What is kept is found by how it begins, and goes when it was used longest ago."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rstar2_env.rollout.engines.prefix import CachedSequence, PrefixIndex, PrefixPool, key_of

Sequences = st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=6).map(tuple), max_size=12, unique=True)


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


@given(Sequences)
def test_the_pool_holds_no_beginning_of_another_and_gives_every_slot_back_once(kept: list[tuple[int, ...]]) -> None:
    pool = PrefixPool()
    free: list[int] = []
    for slot, ids in enumerate(kept):
        free += pool.keep(key_of(ids), slot)
        held = [other for other in kept if is_held(pool, other)]
        assert any(other[: len(ids)] == ids for other in held)
        assert not any(a != b and b[: len(a)] == a for a in held for b in held)
        assert sum(map(len, held)) == pool.tokens
        assert len(held) == len(pool)
    assert sorted([*free, *pool.clear()]) == list(range(len(kept)))
    assert pool.tokens == len(pool) == 0


def is_held(pool: PrefixPool, ids: tuple[int, ...]) -> bool:
    found, tokens = pool._index.best(key_of(ids))
    return isinstance(found, CachedSequence) and found.tokens == tokens == len(ids)


def test_what_was_used_longest_ago_goes_first() -> None:
    pool = PrefixPool()
    for slot in (1, 2, 3):
        assert pool.keep(key_of([slot, 0]), slot) == []
    pool.best(key_of([1, 9]), number=7)
    assert pool.oldest.slot == 2
    assert [pool.drop_oldest() for _ in range(3)] == [2, 3, 1]
