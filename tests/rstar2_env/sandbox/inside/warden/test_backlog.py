"""The queues of waiting calls: by resource, in order of arrival."""

from __future__ import annotations

from typing import Any

import pytest

from rstar2_env.sandbox.inside.warden.backlog import Backlog
from rstar2_env.sandbox.inside.warden.child import Call, Session

LIMITS = dict.fromkeys(("wall_s", "cpu_s", "memory_bytes", "processes", "output_bytes", "file_bytes"), 1)
LIGHT: Any = "a light parent"
HEAVY: Any = "a heavy parent"


@pytest.fixture
def backlog() -> Backlog:
    return Backlog()


def call(number: int, parent: Any = LIGHT) -> Call:
    return Call(number, LIMITS, b"", parent)


def waiting(backlog: Backlog) -> int:
    return sum(map(len, backlog._lines.values()))


def ids(calls: list[Call]) -> list[int]:
    return [each.id for each in calls]


def test_each_parent_has_a_line_and_the_earliest_head_comes_first(backlog: Backlog) -> None:
    for each in (call(1, HEAVY), call(2), call(3), call(4, HEAVY)):
        backlog.append(each)
    assert waiting(backlog) == 4
    assert ids(backlog.heads()) == [1, 2]
    assert (backlog.waiting_for(LIGHT), backlog.waiting_for(HEAVY)) == (2, 2)
    backlog.remove(backlog.heads()[0])
    assert ids(backlog.heads()) == [2, 4]


def test_a_call_that_had_its_turn_keeps_its_place(backlog: Backlog) -> None:
    first, second = call(1), call(2)
    backlog.append(first)
    backlog.append(second)
    backlog.remove(first)
    backlog.append(call(3, HEAVY))
    backlog.appendleft(first)
    assert ids(backlog.heads()) == [1, 3]
    assert waiting(backlog) == 3


def test_a_session_with_a_process_waits_for_no_parent(backlog: Backlog) -> None:
    running, new = call(1, HEAVY), call(2, HEAVY)
    running.session, new.session = Session("a"), Session("b")
    child: Any = object()
    running.session.child = child
    backlog.append(running)
    backlog.append(new)
    assert backlog.waiting_for(HEAVY) == 1
    running.session.child = None  # its process ends while it waits
    backlog.remove(running)
    backlog.appendleft(running)
    assert ids(backlog.heads()) == [1]
    assert backlog.waiting_for(HEAVY) == 2


def test_the_calls_of_a_parent_that_failed_move_in_their_order(backlog: Backlog) -> None:
    for each in (call(1, HEAVY), call(2), call(3, HEAVY), call(4)):
        backlog.append(each)
    backlog.move(HEAVY, LIGHT)
    order = []
    while waiting(backlog):
        [head] = backlog.heads()
        assert head.parent is LIGHT
        order.append(head.id)
        backlog.remove(head)
    assert order == [1, 2, 3, 4]


def test_the_first_call_for_which_there_is_a_child_is_next(backlog: Backlog) -> None:
    child: Any = object()
    for each in (call(1, HEAVY), call(2), call(3)):
        backlog.append(each)
    found = backlog.next(lambda parent, file_bytes: child if parent is LIGHT else None)
    assert found is not None
    assert (found[0], found[1].id) == (child, 2)
    assert backlog.next(lambda parent, file_bytes: None) is None
    assert waiting(backlog) == 2
    kept = call(4, HEAVY)
    kept.session = Session("a")
    kept.session.child = child
    backlog.append(kept)
    assert backlog.next(lambda parent, file_bytes: None) == (child, kept)
