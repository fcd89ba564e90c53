"""Claims about stopping: nothing new begins, what is in flight ends, and results come in order."""

from __future__ import annotations

import itertools
import random
import threading
import time

import pytest

from rstar2_env.core.stop_request import Stop, in_order


def test_results_come_in_the_order_of_the_tasks():
    def work(number: int) -> int:
        time.sleep(random.random() / 200)
        return number * number

    found = list(in_order(work, range(100), workers=8, ahead=16))
    assert found == [(number, number * number) for number in range(100)]


def test_an_endless_list_of_tasks_is_taken_few_at_a_time():
    taken = []
    tasks = (taken.append(number) or number for number in itertools.count())
    results = in_order(lambda number: number, tasks, workers=2, ahead=5)
    assert [next(results)[0] for _ in range(10)] == list(range(10))
    assert len(taken) <= 15
    results.close()


def test_a_wish_to_stop_ends_with_the_tasks_that_had_begun():
    stop, begun = Stop(), []
    release = threading.Event()

    def work(number: int) -> int:
        begun.append(number)
        if number >= 2:
            release.wait(10)
        return number

    results = in_order(work, range(1000), workers=3, ahead=20, stop=stop)
    got = [next(results)[0], next(results)[0]]
    while stop.in_flight < 3:
        time.sleep(0.001)
    stop.request()
    release.set()
    got += [task for task, _ in results]
    assert got == sorted(begun)
    assert len(got) < 20
    assert stop.in_flight == 0


def test_work_that_failed_raises_at_the_turn_of_its_task():
    results = in_order(lambda number: 1 // number, [2, 1, 0, 3], workers=2, ahead=4)
    assert [next(results)[1], next(results)[1]] == [0, 1]
    with pytest.raises(ZeroDivisionError):
        next(results)


def test_closing_waits_for_what_is_in_flight_unless_it_is_given_up():
    stop, release, ended = Stop(), threading.Event(), threading.Event()

    def work(number: int) -> int:
        if number:
            release.wait(10)
            ended.set()
        return number

    results = in_order(work, range(10), workers=2, ahead=4, stop=stop)
    next(results)
    stop.request(at_once=True)
    results.close()
    assert not ended.is_set()
    release.set()
    assert ended.wait(5)
