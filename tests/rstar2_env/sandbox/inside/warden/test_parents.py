"""The choice of a parent for a program, the number of parents, and which one is retired."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

import pytest

from rstar2_env.sandbox.inside import orders
from rstar2_env.sandbox.inside.warden.loop import EventLoop
from rstar2_env.sandbox.inside.warden.parent_link import ParentLink
from rstar2_env.sandbox.inside.warden.parents import Parents


class Grower:
    """A zygote whose parents report that they are ready and do nothing else."""

    def __init__(self) -> None:
        self.made: list[list[str]] = []
        self.theirs: list[socket.socket] = []

    def make_parent(self, names: list[str]) -> ParentLink:
        self.made.append(names)
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.theirs.append(theirs)
        theirs.send(orders.pack_reply(orders.READY))
        return ParentLink(ours)


@pytest.fixture
def grower() -> Iterator[Grower]:
    made = Grower()
    yield made
    for end in made.theirs:
        end.close()


def make(grower: Grower, most: int, *preload: str) -> Parents:
    zygote: Any = grower
    return Parents({"preload": list(preload), "parents": most, "stall_timeout_s": 10.0}, zygote)


def choose(parents: Parents, text: str) -> tuple[str, ...]:
    return parents.for_program([text.encode()]).names


def test_parents_are_made_as_programs_need_them(grower: Grower) -> None:
    parents = make(grower, 4, "a", "b")
    assert grower.made == [[]]
    assert [choose(parents, text) for text in ("1", "a", "b", "a, b", "b, a", "a")] == [
        (),
        ("a",),
        ("b",),
        ("a", "b"),
        ("a", "b"),
        ("a",),
    ]
    assert grower.made == [[], ["a"], ["b"], ["a", "b"]]
    parents.close()


def test_a_place_is_kept_for_the_parent_with_everything(grower: Grower) -> None:
    parents = make(grower, 3, "a", "b", "c")
    assert choose(parents, "a") == ("a",)
    assert choose(parents, "b") == ("a", "b", "c")
    assert choose(parents, "b, c") == ("a", "b", "c")
    assert parents.for_session().names == ("a", "b", "c")
    assert len(grower.made) == 3
    parents.close()


def test_the_only_parent_has_everything(grower: Grower) -> None:
    parents = make(grower, 1, "a", "b")
    assert choose(parents, "1") == parents.for_session().names == ("a", "b")
    assert grower.made == [["a", "b"]]
    parents.close()


def test_a_parent_that_was_not_used_for_long_makes_room(grower: Grower) -> None:
    parents = make(grower, 3, "a", "b", "c")
    unused = parents.for_program([b"a"])
    parents.mark_ready(unused)
    assert choose(parents, "b") == ("a", "b", "c")
    assert not unused.retiring, "it was used a moment ago"
    unused.used_at -= 3600
    assert choose(parents, "b") == ("a", "b", "c")
    assert unused.retiring
    assert choose(parents, "a") == ("a",)
    assert not unused.retiring, "it is needed again before it has gone"
    unused.used_at -= 3600
    choose(parents, "b")
    parents.drop(unused)
    assert choose(parents, "b") == ("b",)
    parents.close()


def test_what_could_not_be_made_is_not_tried_again(grower: Grower) -> None:
    parents, settled = make(grower, 4, "a", "b"), []
    parents.listen(EventLoop(lambda owner, error: None), lambda parent, message: None, settled.append)
    for text in (b"a", b"a, b"):
        parent = parents.for_program([text])
        parent.made_at -= 3600
        assert not parents.stalled()
        assert settled.pop() is parent
        assert not parent.ready
    assert choose(parents, "a") == parents.for_session().names == ()
    assert grower.made == [[], ["a"], ["a", "b"]]
    parents.close()


def test_shares_follow_the_calls_of_late(grower: Grower) -> None:
    parents = make(grower, 4, "a")
    assert parents.share(parents.first) == 1.0
    for _ in range(2000):
        heavy = parents.for_program([b"a"])
    assert parents.share(heavy) > 0.99
    for _ in range(2000):
        choose(parents, "1")
    assert parents.share(heavy) < 0.01
    parents.close()


def test_one_that_does_not_answer_is_noticed(grower: Grower) -> None:
    parents = make(grower, 4, "a")
    assert not parents.stalled()
    parents.first.link._pinged_at = -3600.0
    assert parents.stalled()
    parents.close()


def test_what_a_parent_says_is_passed_on_once_it_is_ready(grower: Grower) -> None:
    messages, settled = [], []
    parents, loop = make(grower, 4, "a"), EventLoop(lambda owner, error: None)
    parents.listen(loop, lambda parent, message: (messages.append((parent, message)), loop.stop()), settled.append)
    heavy = parents.for_program([b"a"])
    grower.theirs[1].send(orders.pack_reply(orders.PONG))
    loop.run()
    assert settled == [heavy]
    assert heavy.ready
    [(parent, message)] = messages
    assert parent is heavy
    assert message.kind == orders.PONG
    parents.close()
