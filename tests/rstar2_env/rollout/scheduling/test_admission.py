"""Places on engines: first come, first served, never more than fits, and nothing forgotten."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rstar2_env.core.errors import ConfigurationError, UnknownNameError
from rstar2_env.rollout.scheduling.admission import POLICIES, Admission, LeastRequests, Static, Stay
from rstar2_env.rollout.scheduling.kv_aware import BLOCK, KvAware
from rstar2_env.rollout.scheduling.lengths import BUCKETS, Lengths, bucket

NAMES = ["kv_aware", "least_requests", "static"]


def worst(stays: Sequence[Stay]) -> int:
    return sum(stay.prompt + BLOCK + stay.most for stay in stays)


class Model:
    """An admission that is played with at random, and what must be true of it at every moment."""

    def __init__(self, policy: str, capacities: list[int], overcommit: float) -> None:
        options = {"overcommit": overcommit, "margin": 1.0} if policy == "kv_aware" else {}
        self.admission = Admission(capacities, POLICIES.get(policy)(capacities, **options))
        self.overcommit = overcommit
        self.asked: list[Stay] = []
        self.playing: list[Stay] = []
        self.order: list[int] = []
        self.gone: list[Stay] = []

    def ask(self, prompt: int, most: int) -> None:
        self.asked.append(self.admission.ask(prompt, most))
        self.admit()

    def admit(self) -> None:
        for stay in self.admission.admit():
            self.playing.append(stay)
            self.order.append(stay.number)
        self.check()

    def grow(self, at: int, share: float) -> None:
        stay = self.playing[at % len(self.playing)]
        self.admission.turn_begins(stay, min(stay.tokens + 5, stay.most))
        if share < 0.9:
            self.admission.turn_ends(stay, stay.tokens + int(share * (stay.most - stay.tokens)))
        self.admit()

    def leave(self, at: int, ended: bool) -> None:
        stay = self.playing.pop(at % len(self.playing))
        self.admission.leave(stay, ended=ended)
        self.gone.append(stay)
        self.admit()

    def give_up_waiting(self, at: int) -> None:
        waiting = [stay for stay in self.asked if stay.engine is None and stay not in self.gone]
        if waiting:
            stay = waiting[at % len(waiting)]
            self.admission.leave(stay, ended=False)
            self.gone.append(stay)
            self.admit()

    def check(self) -> None:
        assert self.admission.waiting == len(self.asked) - len(self.playing) - len(self.gone) >= 0
        assert self.order == sorted(self.order), "somebody overtook"
        assert self.playing or not self.admission.waiting, "all wait, and nobody plays"
        policy = self.admission.policy
        if isinstance(policy, KvAware):
            for engine, capacity in enumerate(self.admission.capacities):
                here = [stay for stay in self.playing if stay.engine == engine]
                if len(here) > 1:
                    assert worst(here) <= self.overcommit * capacity
                assert policy.need(engine) <= worst(here)
                assert policy.need(engine) >= sum(stay.prompt + stay.tokens for stay in here) - 1e-6
        else:
            assert policy.episodes == [
                sum(stay.engine == engine for stay in self.playing) for engine in range(len(self.admission.capacities))
            ]


@settings(max_examples=60, deadline=None)
@given(
    policy=st.sampled_from(NAMES),
    capacities=st.lists(st.integers(200, 2000), min_size=1, max_size=4),
    overcommit=st.sampled_from([1.0, 2.0, 16.0]),
    seed=st.integers(0, 2**32),
)
def test_whatever_happens_nobody_overtakes_nobody_is_lost_and_the_budget_holds(
    policy: str, capacities: list[int], overcommit: float, seed: int
) -> None:
    rng, model = random.Random(seed), Model(policy, capacities, overcommit)
    for _ in range(60):
        action = rng.choice(["ask", "ask", "grow", "leave", "give up"]) if model.playing else "ask"
        if action == "ask":
            model.ask(rng.randint(1, max(capacities) - 1), rng.randint(1, 1500))
        elif action == "grow":
            model.grow(rng.randrange(100), rng.random())
        elif action == "leave":
            model.leave(rng.randrange(100), rng.random() < 0.7)
        else:
            model.give_up_waiting(rng.randrange(100))
    # Nobody starves: when those who play end, all others get their turn, and at last nothing is held.
    while model.playing:
        model.leave(0, True)
    assert model.admission.waiting == 0
    assert len(model.order) + sum(stay.number not in model.order for stay in model.gone) == len(model.asked)
    for engine in range(len(capacities)):
        if isinstance(model.admission.policy, KvAware):
            assert model.admission.policy.need(engine) == 0
        else:
            assert model.admission.policy.episodes[engine] == 0


def test_without_observations_an_episodes_most_is_reserved() -> None:
    admission = Admission([1000], KvAware([1000]))
    for _ in range(5):
        admission.ask(100 - BLOCK, 200)
    assert len(admission.admit()) == 3


def test_when_short_episodes_were_seen_more_of_them_fit() -> None:
    policy = KvAware([4000])
    admission = Admission([4000], policy)

    def play(length: int) -> int:
        stays = [admission.ask(50, 1000) for _ in range(40)]
        playing = admission.admit()
        at_once = len(playing)
        while playing:
            admission.turn_begins(playing[0], 0)
            admission.turn_ends(playing[0], length)
            admission.leave(playing.pop(0), ended=True)
            playing += admission.admit()
        assert all(stay.engine is None for stay in stays)
        return at_once

    before = play(100)
    for _ in range(5):
        after = play(100)
    assert before == 3
    assert after > 10
    for _ in range(400):
        play(1000)
    assert play(1000) < 5, "when episodes grow long, fewer are let in"


def test_what_is_larger_than_every_engine_plays_alone() -> None:
    admission = Admission([300, 500], KvAware([300, 500]))
    small = [admission.ask(10, 100) for _ in range(3)]
    large = admission.ask(100, 5000)
    late = admission.ask(10, 10)
    assert set(admission.admit()) == set(small)
    for stay in small:
        admission.leave(stay, ended=True)
    placed = admission.admit()
    assert placed[0] is large
    assert large.engine == 1, "on the largest engine"
    assert late.engine == 0


def test_a_prompt_that_no_engine_can_hold_is_refused() -> None:
    admission = Admission([300, 500], Static([300, 500]))
    with pytest.raises(ConfigurationError, match="the largest cache has room for 500"):
        admission.ask(500, 1)
    assert admission.waiting == 0


def test_an_engine_that_is_left_out_gets_nobody_until_it_is_taken_back() -> None:
    for policy in NAMES:
        admission = Admission([1000] * 3, POLICIES.get(policy)([1000] * 3))
        admission.leave_out(1)
        for _ in range(6):
            admission.ask(1, 1)
        assert {stay.engine for stay in admission.admit()} == {0, 2}, policy
        admission.take_back(1)
        for _ in range(6):
            admission.ask(1, 1)
        assert 1 in {stay.engine for stay in admission.admit()}, policy


def test_who_moves_goes_first_and_elsewhere() -> None:
    admission = Admission([100] * 2, LeastRequests([100] * 2))
    first, second = admission.ask(1, 1), admission.ask(1, 1)
    admission.admit()
    came_from = first.engine
    later = admission.ask(1, 1)
    admission.move(first)
    assert admission.admit() == [first, later]
    assert first.engine != came_from
    assert second.engine == 1


def test_static_deals_out_evenly_and_least_requests_balances() -> None:
    static, least = Admission([10] * 2, Static([10] * 2)), Admission([10] * 2, LeastRequests([10] * 2))
    for admission in (static, least):
        for _ in range(4):
            admission.ask(1, 1)
        stays = admission.admit()
        assert [stay.engine for stay in stays] == [0, 1, 0, 1]
        for stay in (stays[0], stays[2]):
            admission.leave(stay, ended=True)
        for _ in range(2):
            admission.ask(1, 1)
    assert [stay.engine for stay in static.admit()] == [0, 1]
    assert [stay.engine for stay in least.admit()] == [0, 0]


def test_wrong_options_and_names_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="margin"):
        KvAware([10], margin=-1)
    with pytest.raises(ConfigurationError, match="overcommit"):
        KvAware([10], overcommit=0.5)
    with pytest.raises(UnknownNameError, match="kv_aware"):
        POLICIES.get("kv_awre")


def test_lengths_are_those_of_the_episodes_also_while_the_long_ones_still_play() -> None:
    rng = np.random.default_rng(0)
    ends = rng.integers(0, BUCKETS, 2000)
    truth = float((ends + 1).mean() / BUCKETS)
    lengths = Lengths(memory=1e9)
    assert lengths.mean() == 1.0, "nothing seen: all there can be"
    for _ in ends:
        lengths.begin()
    # All begin together; at the half, only short ones have ended.
    for time in range(1, BUCKETS // 2):
        for end in ends:
            if end == time - 1:
                lengths.end(time - 1, seen=True)
            elif end >= time:
                lengths.grow(time - 1, time)
    naive = float((ends[ends < BUCKETS // 2 - 1] + 1).mean() / BUCKETS)
    assert naive < 0.55 * truth
    chance = float((ends >= BUCKETS // 2).mean())
    assert lengths.alive[0, BUCKETS // 2 - 1] == pytest.approx(chance, abs=0.05)
    assert lengths.mean() >= truth - 0.02, "never taken for shorter than they are"


def test_episodes_that_were_cut_off_are_no_lengths() -> None:
    lengths = Lengths()
    for _ in range(100):
        lengths.begin()
        lengths.end(0, seen=False)
    assert lengths.mean() == 1.0


def test_a_bucket_holds_its_share_of_the_most() -> None:
    assert [bucket(tokens, 640) for tokens in (0, 9, 10, 639, 640, 10**6)] == [0, 0, 1, 63, 63, 63]
    assert bucket(1, 0) == BUCKETS - 1
