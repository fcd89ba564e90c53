"""Who plays which episode, and when: one limit for all, nobody idle while an episode waits, nothing moved in vain."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rstar2_env.trainers.queue.desk import Desk


def desk_of(size, most, *offers, limit=None):
    desk = Desk(size, most)
    if limit is not None:
        desk.limit = limit
    for rank in range(size):
        desk.enter(rank)
    for owner, count in enumerate(offers):
        for number in range(count):
            desk.offer((owner, number))
    return desk


def test_while_all_have_room_everybody_plays_its_own():
    given_out = desk_of(2, 3, 3, 3).assign()
    assert sorted(given_out) == [((owner, number), owner) for owner in (0, 1) for number in range(3)]


def test_who_has_room_and_nothing_of_its_own_takes_the_oldest_of_who_has_the_most():
    desk = desk_of(3, 1, 4, 2, 1)
    assert sorted(desk.assign()) == [((0, 0), 0), ((1, 0), 1), ((2, 0), 2)]
    desk.forget((2, 0))
    assert desk.assign() == [((0, 1), 2)]
    desk.forget((1, 0))
    assert desk.assign() == [((1, 1), 1)]


def test_one_limit_holds_for_all_together_and_is_shared():
    desk = desk_of(2, 100, 10, 10, limit=6)
    assert sorted(rank for _, rank in desk.assign()) == [0, 0, 0, 1, 1, 1]
    desk.limit = 8
    assert len(desk.assign()) == 2
    desk.limit = 4
    for key in [(0, 0), (0, 1), (1, 0)]:
        desk.forget(key)
    assert desk.assign() == []
    desk.forget((1, 1))
    desk.forget((1, 2))
    assert len(desk.assign()) == 1


def test_one_that_has_not_come_yet_gets_nothing():
    desk = Desk(2, 5)
    desk.enter(0)
    for number in range(9):
        desk.offer((0, number))
    assert {rank for _, rank in desk.assign()} == {0}
    desk.enter(1)
    assert {rank for _, rank in desk.assign()} == {1}


@pytest.mark.parametrize("limit", [1, 2])
def test_a_limit_below_the_number_of_processes_is_kept(limit):
    desk = desk_of(4, 5, 3, 3, 3, 3, limit=limit)
    seen = []
    while given_out := desk.assign():
        assert desk.playing <= limit
        seen += [key for key, _ in given_out]
        for key, _ in given_out:
            desk.forget(key)
    assert len(set(seen)) == len(seen) == desk.ended == 12


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 4), st.integers(1, 5), st.integers(1, 12), st.randoms(use_true_random=False))
def test_every_episode_is_played_once_and_no_room_is_left_while_one_waits(size, most, limit, rng: random.Random):
    desk = Desk(size, most)
    desk.limit = limit
    offered, playing, played = set(), {}, []
    for rank in range(size):
        desk.enter(rank)
    for _ in range(120):
        act = rng.random()
        if act < 0.5:
            key = (rng.randrange(size), len(offered))
            offered.add(key)
            desk.offer(key)
        elif act < 0.9 and playing:
            key = rng.choice(sorted(playing))
            del playing[key]
            desk.forget(key)
        else:
            desk.limit = limit = rng.randint(1, 12)
        for key, rank in desk.assign():
            assert key in offered
            assert key not in played
            played.append(key)
            playing[key] = rank
        counts = [list(playing.values()).count(rank) for rank in range(size)]
        assert max(counts) <= most
        assert desk.playing == len(playing)
        assert desk.waiting == len(offered) - len(played)
        share = min(most, max(1, -(-limit // size)))
        if desk.waiting and len(playing) < limit:
            assert all(count >= share for count in counts)
