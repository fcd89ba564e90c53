"""Old names of options: accepted where the new name is an option, and in what runs recorded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from rstar2_env.core.errors import UnknownOptionError
from rstar2_env.core.options.declare import Seconds, call_with_options, checked, typed_options
from rstar2_env.core.options.renamed import RENAMED, named_as, with_new_names
from rstar2_env.verification import verify
from rstar2_env.wrappers.make import make_env


@dataclass(frozen=True)
class Limited:
    timeout_s: float = 1.0


class Outer:
    @checked
    def __init__(self, *, start_timeout_s: Seconds = 1.0, **options: Any) -> None:
        self.found = {"start_timeout_s": start_timeout_s, **options}


def own(timeout: float = 1.0) -> float:
    return timeout


def test_an_old_name_gives_the_new_option() -> None:
    assert call_with_options("part", Limited, {"timeout": 3}) == Limited(3)
    assert typed_options("part", Outer, {"wait_s": 2.0}) == {"start_timeout_s": 2.0}
    assert Outer(wait_s=2.0).found == {"start_timeout_s": 2.0}


def test_a_target_that_has_the_old_name_keeps_it() -> None:
    assert call_with_options("part", own, {"timeout": 3.0}) == 3.0


def test_both_names_are_refused() -> None:
    with pytest.raises(UnknownOptionError, match="no option 'timeout'"):
        call_with_options("part", Limited, {"timeout": 3, "timeout_s": 4})


def test_environments_and_verification_accept_the_names_of_the_last_version() -> None:
    old: Any = {"timeout": 20.0}
    assert verify("1/2", "0.5", **old).correct
    env: Any = make_env("rstar2/MathTool-v0", verify_timeout=3.0)
    assert env.unwrapped.grader.timeout_s == 3.0
    env.close()


def test_recorded_options_get_the_names_of_the_present_ones() -> None:
    recorded = {"env_options": {"verify_timeout": 3.0, "timeout": 1}, "n": 1}
    present = {"env_options": {"verify_timeout_s": 3.0, "timeout": 2}, "n": 1}
    assert named_as(recorded, present) == {"env_options": {"verify_timeout_s": 3.0, "timeout": 1}, "n": 1}


def test_no_new_name_is_an_old_one() -> None:
    assert RENAMED.keys().isdisjoint(RENAMED.values())
    assert with_new_names({"a": 1}, {"b"}) == {"a": 1}
