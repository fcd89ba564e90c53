"""A slot reports the limits that the kernel does not enforce, which the zygote watches."""

from __future__ import annotations

import pytest

from rstar2_env.sandbox.inside.warden.slot import MOST_PIPES, ChildSlot

LIMITS = {"processes": 8, "memory_bytes": 100 << 20, "file_bytes": 1 << 20}


class ControlGroup:
    entrances = (7,)

    def __init__(self) -> None:
        self.closed = self.lowered = False

    def lower(self) -> None:
        self.lowered = True

    def close(self) -> None:
        self.closed = True


class ControlGroups:
    """Control groups with some controllers, without the kernel."""

    def __init__(self, *controllers: str) -> None:
        self.controllers = controllers
        self.made = ControlGroup()

    def make(self, index: int) -> ControlGroup:
        return self.made


@pytest.mark.parametrize(
    ("controllers", "scratch", "counted", "own_user", "watched"),
    [
        (("memory", "pids"), None, False, True, (0, 0, 0, 0)),
        (("memory", "pids"), None, False, False, (0, 0, 0, MOST_PIPES)),
        (("memory",), None, False, True, (8, 0, 0, 0)),
        (("pids",), None, False, True, (0, (100 + 64) << 20, 0, 0)),
        ((), None, True, True, (0, (100 + 64) << 20, 0, 0)),
        (("memory", "pids"), "/scratch", False, True, (0, 0, 1 << 20, 0)),
        ((), "/scratch", False, False, (8, (100 + 64) << 20, 1 << 20, MOST_PIPES)),
    ],
)
def test_what_the_kernel_does_not_bound_is_watched(
    controllers: tuple[str, ...],
    scratch: str | None,
    counted: bool,
    own_user: bool,
    watched: tuple[int, int, int, int],
) -> None:
    groups = ControlGroups(*controllers) if controllers else None
    slot = ChildSlot(0, groups, scratch, counted, own_user)  # type: ignore[arg-type]  # no kernel's groups are needed
    assert slot.unbounded(LIMITS) == watched


def test_its_group_is_entered_by_its_children_lowered_and_removed_with_it() -> None:
    groups = ControlGroups("pids")
    slot = ChildSlot(0, groups, None, False, True)  # type: ignore[arg-type]  # no kernel's groups are needed
    assert slot.entrances == (7,)
    slot.lower()
    assert groups.made.lowered
    slot.close()
    assert groups.made.closed
    assert ChildSlot(0, None, None, False, True).entrances == ()
